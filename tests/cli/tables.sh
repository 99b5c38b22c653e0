#!/usr/bin/env bash
# Exported tables: columns by name, categories, missing values, answers in the user's words.
# usage: tables.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# A table whose class depends on a category, a number and whether that is missing.
make_table() { # FILE ROWS SEED
    awk -v rows="$2" -v seed="$3" 'BEGIN {
        srand(seed); split("red green blue", color, " ")
        print "id,color,size,joined,kind"
        for (i = 0; i < rows; i++) {
            c = int(rand() * 3); s = int(rand() * 100); gone = rand() < 0.1
            kind = gone ? "none" : (c == 0 || s > 60) ? "yes" : "no"
            printf "k%d-%d,\"%s\",%s,2020-%02d-%02d,%s\n", seed, i, color[c + 1], gone ? "NA" : s,
                int(rand() * 12) + 1, int(rand() * 28) + 1, kind
        }
    }' >"$1"
}
metric() { # NAME: from the last command's output
    sed -n "s/^$1 //p" out.txt
}
make_table train.csv 2000 1
make_table test.csv 400 2
all=(--train_files train.csv --eval_files test.csv --label_column kind --num_threads 1)

run_ok belfry columns train.csv
check "a description" grep -q 'name: "color", kind: category' out.txt
check "an identifier is left out" grep -q '^id *ignore' err.txt
cp out.txt columns.yaml
run_ok belfry train_and_evaluate --model_dir m "${all[@]}"
check "it is learned" awk -v a="$(metric accuracy)" 'BEGIN { exit !(a > 0.97) }'
loss=$(metric loss) digest=$(metric digest)
run_ok belfry train_and_evaluate --model_dir given "${all[@]}" --columns columns.yaml
equal "digest with the same columns from a file" "$(metric digest)" "$digest"
run_ok belfry local train --distributed --worker_count 1 --parameter_server_count 2 --tcp -- --model_dir d "${all[@]}"
equal "digest of a job of processes" "$(metric digest)" "$digest"

# --- By name: each file is correct, or is refused by name
evaluates() { # WHAT FILE: evaluates to the same loss
    run_ok belfry evaluate --model_dir m --eval_files "$2"
    equal "loss with $1" "$(metric loss)" "$loss"
}
awk -F, -v OFS=, '{ print $5, $3, $1, $2, $4 }' test.csv >swapped.csv
evaluates "columns in another order" swapped.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "more"; next } { print $0, "x" }' test.csv >more.csv
evaluates "a column more" more.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "class"; next } { print $0, "x" }' test.csv >more_class.csv
check "the log says so" grep -q 'left out, as the model was not trained with them: "more"' err.txt
cut -d, -f2- test.csv >no_id.csv
evaluates "an ignored column less" no_id.csv
sed '1s/color/hue/' test.csv >renamed.csv
run_fails 2 'renamed.csv|no column "color"|"color"' belfry evaluate --model_dir m --eval_files renamed.csv
cut -d, -f1,2,4,5 test.csv >missing.csv
run_fails 2 'missing.csv|no column "size"' belfry predict --model_dir m --eval_files missing.csv
check "and nothing is printed" test ! -s out.txt
awk -F, -v OFS=, 'NR == 4 { $3 = "big" } { print }' test.csv >retyped.csv
run_fails 3 'retyped.csv:4:|column "size": expected a number, got "big"' belfry evaluate --model_dir m --eval_files retyped.csv
awk -F, -v OFS=, 'NR > 1 { $5 = toupper($5) } { print }' test.csv >classes.csv
run_fails 3 'classes.csv:2:|label "kind": expected a class|399 more of 400' belfry evaluate --model_dir m --eval_files classes.csv
awk -F, -v OFS=, 'NR == 3 { $5 = "other" } NR == 5 { $5 = "" } { print }' test.csv >few.csv
run_ok belfry evaluate --model_dir m --eval_files few.csv
equal "examples without an unknown and a missing class" "$(metric examples)" 398
check "the unknown class is reported" grep -q 'few.csv:3:.*got "other"' err.txt
check "the missing class is reported" grep -q '1 of 400 rows have no label "kind", and are left out: 1 empty$' err.txt
awk -F, -v OFS=, 'NR > 1 && NR < 12 { $5 = "None" } { print }' test.csv >named.csv
run_ok belfry evaluate --model_dir m --eval_files named.csv
check "texts for a missing class are named" grep -q 'left out: 10 "None"; hint: .*--missing' err.txt
sed 's/\r$//; s/$/\r/' test.csv >crlf.csv
evaluates "lines that end with CR LF" crlf.csv
run_fails 2 '--label_column color' belfry train_and_evaluate --model_dir m "${all[@]/kind/color}"

# --- Answers
run_ok belfry predict --model_dir m --eval_files test.csv --keep_columns id,kind
equal "the header" "$(head -1 out.txt)" "id,kind,prediction,p_no,p_none,p_yes"
equal "lines" "$(wc -l <out.txt)" 401
# shellcheck disable=SC2016
check "classes are names, keys are the rows' keys" awk -F, 'NR > 1 { if ($1 != "k2-" NR - 2) bad++; if ($2 == $3) good++ }
    END { exit bad > 0 || good < 388 }' out.txt
cp out.txt whole.txt
for part in 0 1; do run_ok belfry predict --model_dir m --eval_files test.csv --keep_columns id,kind --part "$part/2"; cat out.txt; done >parts.txt
check "joined parts give all rows" cmp -s whole.txt parts.txt
checks=$((checks + 1))
belfry predict --model_dir m --eval_files - --keep_columns id,kind <test.csv >stream.txt 2>err.txt || complain "standard input"
check "standard input gives the same classes" cmp -s <(cut -d, -f1-3 whole.txt) <(cut -d, -f1-3 stream.txt)
mkfifo requests answers
belfry predict --model_dir m --eval_files - --json --quiet <requests >answers &
exec 4>requests 5<answers
head -1 test.csv >&4
sed -n 2p test.csv >&4
read -r -t 60 answer <&5
check "a request is answered before the next comes" test "${answer:0:12}" = '{"example":0'
check "with probabilities by name" grep -q '"probabilities":{"no":' <<<"$answer"
echo 'k,red,wide,2020-01-01' >&4
exec 4>&- 5<&-
checks=$((checks + 1))
wait $! && complain "a bad request ends with an error"

checks=$((checks + 1))
(cat test.csv; printf '\n\r\n') | belfry predict --model_dir m --eval_files - --keep_columns id,kind >blank.txt 2>err.txt || complain "blank lines at the end"
check "blank lines at the end of standard input are skipped" cmp -s stream.txt blank.txt
belfry predict --model_dir m --eval_files - --quiet <requests >answers 2>err.txt &
exec 4>requests 5<answers
head -1 test.csv >&4
echo 'k,a 5" pipe,1,2020-01-01,no' >&4
checks=$((checks + 1))
wait $! && complain "a stray quote ends with an error"
exec 4>&- 5<&-
check "at once, with its place" grep -q 'standard input:2:6: expected no quote' err.txt

# --- Numbers
awk -F, -v OFS=, 'NR == 1 { print "a", "b", "y"; next } { x = NR % 17; z = NR % 5; print x, "c" z, 1000 + 50 * x - 100 * z }' train.csv >numbers.csv
run_ok belfry train_and_evaluate --model_dir n --train_files numbers.csv --eval_files numbers.csv
check "a number is learned" awk -v r="$(metric r2)" 'BEGIN { exit !(r > 0.95) }'
check "in its units" awk -v m="$(metric prediction_mean)" 'BEGIN { exit !(m > 1100 && m < 1300) }'
for objective in huber quantile poisson tweedie; do
    run_ok belfry train_and_evaluate --model_dir "n-$objective" --train_files numbers.csv --eval_files numbers.csv --objective "$objective"
    check "$objective learns" awk -v r="$(metric r2)" 'BEGIN { exit !(r > 0.8) }'
done
# Flags that would be ignored
run_fails 2 '--columns and --ignore exclude each other' belfry train --model_dir bad --train_files train.csv --columns columns.yaml --ignore id
run_fails 2 '--ignore size|began with column "size" as number' belfry train_and_evaluate --model_dir m "${all[@]}" --ignore size
run_ok belfry train_and_evaluate --model_dir m "${all[@]}" --ignore 'id*'
equal "digest of a finished training" "$(metric digest)" "$digest"
run_fails 2 '--columns' belfry evaluate --model_dir m --eval_files test.csv --columns columns.yaml
run_fails 2 '--json|"class"' belfry predict --model_dir m --eval_files more_class.csv --keep_columns class --json

# The rate falls over the actual steps, however many batches a step has
steps_of() { belfry inspect "$1" | sed -n 's/^ *param.decay_steps *//p'; }
run_ok belfry train --model_dir two --train_files train.csv --label_column kind --num_workers 2
equal "steps of two workers, and of the rate" "$(metric global_step)" "$(steps_of two)"
run_ok belfry train --model_dir logs --train_files numbers.csv --log_columns a
check "a logarithm is scaled" grep -q '"a", kind: number, scale: log' <(belfry inspect logs)

run_fails 2 '--columns and --feature_scale exclude each other' belfry train --model_dir bad --train_files numbers.csv --columns columns.yaml --feature_scale 2
run_fails 2 '--ignore is for tables' belfry train --model_dir bad --train_files numbers.csv --ignore a --feature_scale 2

finish
