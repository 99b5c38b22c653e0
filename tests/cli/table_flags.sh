#!/usr/bin/env bash
# Flags of tables in places where they would be ignored: with a description, in a resumed training, with a
# checkpoint to read. And defaults that follow from absent flags.
# usage: table_flags.sh BUILD_FOLDER
# shellcheck disable=SC2016 # in awk, $2 is a field
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

awk 'BEGIN {
    srand(5)
    print "size,color,w,grade,price"
    for (i = 0; i < 300; i++) {
        size = rand() * 10
        red = rand() < 0.5
        printf "%.3f,%s,%d,%s,%.4f\n", size, (red ? "red" : "blue"), 1 + i % 3, (size + 3 * red > 6 ? "high" : "low"),
            size * 2 + red
    }
}' >all.csv
base=(--train_files all.csv --label_column grade --ignore price --num_epochs 5 --no_report)
number=(--train_files all.csv --label_column price --ignore grade --num_epochs 5 --no_report)
more() { belfry train_and_evaluate "${base[@]}" --model_dir m "$@"; }
metric() { sed -n "s/^$1 //p" out.txt; }

# --- A resumed training reports its first settings
run_ok belfry train_and_evaluate "${base[@]}" --model_dir m --weight_column w
run_ok more --weight_column w --categorical color --delimiter , --header
run_fails 2 '--weight_column size: the training began with those of w' more --weight_column size
run_fails 2 '--delimiter: the training began with another' more --delimiter tab
run_fails 2 '--no_header: the training began with a header' more --no_header
run_fails 2 '--log_columns size: the training began with column "size" as number' more --log_columns size
run_fails 2 '--ignore nosuch: the training began without such a column' more --ignore nosuch
run_fails 2 '--numeric color: the training began with column "color" as category' more --numeric color
run_ok belfry train_and_evaluate "${base[@]}" --model_dir plain --eval_files all.csv
run_fails 2 '--weight_column w: the training began with no weights' \
    belfry train_and_evaluate "${base[@]}" --model_dir plain --weight_column w

# Its objective is remembered, and patterns name a label like a column.
run_ok belfry train "${number[@]}" --model_dir huber --objective huber --schedule constant --train_steps 20
run_ok belfry train "${number[@]}" --model_dir huber --schedule constant --train_steps 30
check "it resumes" grep -q 'resuming from huber/ckpt-00000020' err.txt
run_ok belfry inspect huber --json
check "with the objective that it began with" grep -q '"param.objective":"huber"' out.txt
run_ok belfry train "${base[@]}" --model_dir pattern --label_column 'gr*'

# --- Several files as a shell expands them: words up to the next flag
mkdir parts
head -n 1 all.csv | tee parts/a.csv >parts/b.csv
tail -n +2 all.csv | awk '{ print >>(NR % 2 ? "parts/a.csv" : "parts/b.csv") }'
run_ok belfry train --label_column grade --num_epochs 1 --model_dir one-word --train_files parts/a.csv,parts/b.csv
run_ok belfry train --label_column grade --num_epochs 1 --train_files parts/*.csv --model_dir words
equal "a list and words" "$(belfry inspect words --digest)" "$(belfry inspect one-word --digest)"
run_ok belfry predict --model_dir words --eval_files parts/*.csv
equal "lines of predictions, with a header" "$(grep -c . out.txt)" "$(grep -c . all.csv)"
run_fails 2 'unexpected argument "words"' belfry train --train_files all.csv --model_dir bad words

# --- Flags of a schedule count with the default schedule of tables, and with no other
of_run() { belfry inspect "$1" | sed -n "s/^ *$2  *//p"; }
run_ok belfry train "${base[@]}" --model_dir decay --decay_steps 7
equal "the schedule of --decay_steps" "$(of_run decay schedule)" 'cosine, steps 7, alpha 0'
run_fails 2 '--decay_steps has no effect without|and that is constant' belfry train "${base[@]}" --model_dir bad \
    --schedule constant --decay_steps 7
run_ok belfry train "${base[@]}" --model_dir ftrl --optimizer ftrl
equal "ftrl has a rate that does not fall" "$(of_run ftrl schedule)" ''
run_fails 2 'ftrl divides by the learning rate' belfry train "${base[@]}" --model_dir bad --optimizer ftrl \
    --schedule cosine
run_ok belfry train "${base[@]}" --model_dir floor --optimizer ftrl --schedule cosine --alpha 0.1
run_fails 2 '--class_weights has no effect without|and that is regression' belfry train "${number[@]}" --model_dir bad \
    --class_weights balanced

# --- A longer training continues, and reports the effect; a shorter one is refused
longer() { belfry train --train_files all.csv --label_column grade --ignore price --no_report --model_dir longer "$@"; }
run_ok longer --num_epochs 2
steps=$(metric global_step)
run_ok longer --num_epochs 4
check "it resumes" grep -q "resuming from longer/ckpt-0*$steps" err.txt
check "the longer schedule is reported" grep -q \
    "longer from step $steps on: the end of the schedule was $steps and is $((2 * steps)); num_epochs was 2 and is 4" \
    err.txt
equal "twice as many steps" "$(metric global_step)" $((2 * steps))
equal "a schedule over all of them" "$(of_run longer schedule)" "cosine, steps $((2 * steps)), alpha 0"
digest=$(metric digest)
run_ok longer --num_epochs 4
equal "a finished one stays unchanged" "$(metric digest) $(grep -c 'is longer' err.txt)" "$digest 0"
run_fails 2 'trained with other settings|the number of epochs' longer --num_epochs 3
run_fails 2 'trained with other settings|: seed was 1 and is 2' longer --num_epochs 6 --seed 2
run_fails 2 'param.decay_over was training and is not set' longer --num_epochs 6 --decay_steps 99
run_ok longer
check "without a flag, with the default of tables" grep -q 'num_epochs was 4 and is' err.txt

# --- With a description, and with a checkpoint to read
run_ok belfry columns all.csv --label_column grade --ignore price
cp out.txt columns.yaml
for flag in --no_header --missing=x --delimiter=tab --numeric=size --feature_scale=2; do
    run_fails 2 '--columns and|exclude each other' belfry train --train_files all.csv --columns columns.yaml \
        --model_dir bad "$flag"
done
for flag in --no_header --feature_scale=3 --id_columns=size --length_column=size --class_count=2; do
    run_fails 2 'is not read: the model was trained with a description' belfry evaluate --model_dir plain \
        --eval_files all.csv "$flag"
done

# --- The schedule ends with the data, whichever reports make a step
for counting in '--mode async --num_workers 3' '--replicas_to_aggregate 3' '--num_workers 2 --towers_of_workers 2,1'; do
    rm -rf counted
    # shellcheck disable=SC2086 # several flags
    run_ok belfry train "${base[@]}" --model_dir counted --json $counting
    steps=$(sed -n 's/.*"global_step":\([0-9]*\).*/\1/p' out.txt)
    run_ok belfry inspect counted --json
    check "a schedule of $steps steps with $counting" grep -q "\"param.decay_steps\":\"$steps\"" out.txt
done

# --- Best and early stopping have evaluations to compare, without a flag for their interval
run_ok belfry train_and_evaluate "${base[@]}" --model_dir best --eval_share 0.2 --keep_best loss
equal "an evaluation per pass" "$(grep -c '^eval at step' err.txt)" 5
run_ok belfry train_and_evaluate "${base[@]}" --model_dir rare --eval_share 0.2 --keep_best loss --eval_every_steps 30
equal "the number that a flag sets" "$(grep -c '^eval at step' err.txt)" 2
run_ok belfry train_and_evaluate "${base[@]}" --model_dir none --eval_share 0.2
equal "without these flags only at the end" "$(grep -c '^eval at step' err.txt)" 1

# --- Results of training
awk 'BEGIN { print "x,y"; srand(2); for (i = 0; i < 500; i++) { x = rand() * 10
    printf "%.4f,%.3f\n", x, 1600000000 + 30 * x + rand() } }' >far.csv
run_ok belfry train_and_evaluate --train_files far.csv --eval_files far.csv --model_dir far
check "labels far from 0 keep their digits" awk -v r="$(metric r2)" 'BEGIN { exit !(r > 0.99 && r < 1) }'
check "errors are in the label's units" awk -v e="$(metric root_mean_squared_error)" 'BEGIN { exit !(e < 9 && e > 0.1) }'
run_ok belfry predict --model_dir far --eval_files far.csv
check "so do predictions" awk -F, 'NR == FNR { y[FNR] = $2; next }
    FNR > 1 { s += ($1 - y[FNR]) ^ 2 } END { exit !(sqrt(s / (FNR - 1)) < 9) }' far.csv out.txt
awk 'BEGIN { print "x,y"; for (i = 0; i < 200; i++) print i % 17 "," i % 5 - 1 }' >negative.csv
for objective in poisson tweedie; do
    run_fails 2 'expected labels of 0 or more, and the least "y" is -1' belfry train --train_files negative.csv \
        --objective "$objective" --model_dir bad
done
sed '1!s/,-1$/,7/' negative.csv >counts.csv
run_ok belfry train_and_evaluate --train_files counts.csv --eval_files counts.csv --objective poisson --model_dir rates
check "rates have the labels' mean" awk -v a="$(metric label_mean)" -v b="$(metric prediction_mean)" \
    'BEGIN { exit !((a - b) ^ 2 < 0.01) }'

{ head -n 1 far.csv && sed -n 7p far.csv; } >one.csv
run_ok belfry evaluate --model_dir far --eval_files one.csv
equal "one label has no spread" "$(metric r2)" null

# One example in a hundred counts a hundred times, in any batch: the mean of predictions is the weighted one.
awk 'BEGIN { print "x,w,y"; srand(4); for (i = 0; i < 2000; i++) {
    heavy = i % 100 == 0; printf "%.3f,%d,%.2f\n", rand(), heavy ? 100 : 1, heavy ? 1.5 : 0.25 } }' >heavy.csv
run_ok belfry train_and_evaluate --train_files heavy.csv --eval_files heavy.csv --weight_column w --model_dir heavy
check "weights count in training as in metrics" awk -v a="$(metric label_mean)" -v b="$(metric prediction_mean)" \
    'BEGIN { exit !((a - b) ^ 2 < 0.005) }'
run_ok belfry columns heavy.csv --weight_column w
check "their mean is described" grep -q '{name: "w", kind: weight, mean: 1.98999' out.txt
sed 's/,1,/,-1,/' heavy.csv >minus.csv
run_fails 2 'the weights "w" are to be 0 or more, some above it' \
    belfry train --train_files minus.csv --weight_column w --model_dir bad

# Rare classes, and thresholds.
awk 'BEGIN { print "x,kind"; srand(6); for (i = 0; i < 3000; i++) { rare = rand() < 0.06
    printf "%.3f,%s\n", rand() * 2 + (rare ? 0.9 : 0), rare ? "rare" : "common" } }' >rare.csv
rare=(--train_files rare.csv --eval_files rare.csv --label_column kind --num_epochs 10 --no_report)
run_ok belfry train_and_evaluate "${rare[@]}" --model_dir rare1
plain=$(metric recall)
check "calibrated" awk -v e="$(metric calibration_error)" 'BEGIN { exit !(e < 0.03) }'
check "the mean of probabilities" awk -v a="$(metric label_mean)" -v b="$(metric prediction_mean)" \
    'BEGIN { exit !((a - b) ^ 2 < 0.0009) }'
run_ok belfry train_and_evaluate "${rare[@]}" --model_dir rare2 --class_weights balanced
check "balanced classes are found" awk -v a="$plain" -v b="$(metric recall)" 'BEGIN { exit !(b > a + 0.05) }'
run_ok belfry train_and_evaluate "${rare[@]}" --model_dir rare3 --class_weights rare=15.7
check "so are classes with a larger weight" awk -v a="$plain" -v b="$(metric recall)" 'BEGIN { exit !(b > a + 0.05) }'
run_fails 2 '--class_weights: expected balanced, or CLASS=WEIGHT with a class of "kind"|got "scarce=2"' \
    belfry train "${rare[@]:0:2}" --label_column kind --model_dir bad --class_weights scarce=2
run_ok belfry evaluate --model_dir rare1 --eval_files rare.csv --threshold 0.1
check "a lower threshold finds more" awk -v a="$plain" -v b="$(metric recall)" 'BEGIN { exit !(b > a + 0.05) }'
low=$(metric recall)
run_ok belfry predict --model_dir rare1 --eval_files rare.csv --threshold 0.1 --keep_columns kind
equal "predictions have it, too" "$low" \
    "$(awk -F, 'NR > 1 && $1 == "rare" { all++; hit += $2 == "rare" } END { printf "%.17g", hit / all }' out.txt |
        xargs printf '%.16g')"
run_fails 2 'threshold is for two classes, and here are 3' belfry train --train_files "$SOURCE/examples/data/penguins.csv" \
    --label_column Species --threshold 0.3 --model_dir bad

# Several labels at once.
awk 'BEGIN { srand(9); print "x,color,spam,urgent,long"; for (i = 0; i < 900; i++) {
    x = rand() * 10; red = rand() < 0.5
    printf "%.3f,%s,%s,%d,%s\n", x, (red ? "red" : "blue"), (x + 3 * red > 6 ? "yes" : "no"), x < 4,
        (x > 2 && !red ? "Y" : "N") } }' >labels.csv
labels=(--train_files labels.csv --label_columns 'spam,urgent,lo*' --num_epochs 60 --no_report)
run_ok belfry train_and_evaluate "${labels[@]}" --eval_share 0.2 --model_dir labels
check "all labels are learned" awk -v a="$(metric exact_match)" -v f="$(metric f1)" 'BEGIN { exit !(a > 0.9 && f > 0.95) }'
check "the log names them" grep -q 'labels "spam", "urgent", "long", two classes each' err.txt
run_ok belfry predict --model_dir labels --eval_files labels.csv --keep_columns spam,urgent,long
equal "columns of predictions" "$(head -n 1 out.txt)" "spam,urgent,long,prediction,p_spam,p_urgent,p_long"
check "each prediction by its name" awk -F, 'NR > 1 { t = ""
    if ($1 == "yes") t = "spam"
    if ($2 == 1) t = t (t == "" ? "" : "|") "urgent"
    if ($3 == "Y") t = t (t == "" ? "" : "|") "long"
    right += t == $4 } END { exit !(right > 0.9 * (NR - 1)) }' out.txt
cp out.txt labels.txt
run_ok belfry predict --model_dir labels --eval_files labels.csv --json
check "as JSON" python3 -c 'import json
rows = [json.loads(line) for line in open("out.txt")]
lines = open("labels.txt").read().split("\n")[1:]
assert all("|".join(row["labels"]) == line.split(",")[3] for row, line in zip(rows, lines)), rows[0]'
awk -F, -v OFS=, '{ print $5, $4, $3, $2, $1 }' labels.csv >other.csv
run_ok belfry evaluate --model_dir labels --eval_files labels.csv
loss=$(metric loss)
run_ok belfry evaluate --model_dir labels --eval_files other.csv
equal "labels are found by name" "$(metric loss)" "$loss"
sed '5s/,[01],/,,/' labels.csv >gap.csv
run_ok belfry train "${labels[@]:2}" --train_files gap.csv --num_epochs 1 --model_dir gap
check "a row that lacks one of them is left out" grep -q '1 of 900 rows have no label' err.txt
run_ok belfry local train --distributed --job_dir labels2 -- "${labels[@]}" --eval_share 0.2
equal "digest of a job of processes" "$(digest labels2)" "$(belfry train_and_evaluate "${labels[@]}" --num_workers 2 \
    --eval_share 0.2 --model_dir labels3 2>/dev/null | sed -n 's/^digest //p')"
run_fails 2 '--label_column and --label_columns exclude each other' belfry train "${labels[@]}" --label_column x \
    --model_dir bad
run_fails 2 'labels.csv: the label "x" has nearly as many|' belfry train --train_files labels.csv \
    --label_columns spam,x --model_dir bad
run_fails 2 '--objective regression: expected a label of numbers, and "spam" is one of several labels' \
    belfry train "${labels[@]}" --objective regression --model_dir bad
awk -F, -v OFS=, 'NR % 3 == 2 { $3 = "perhaps" } { print }' labels.csv >three.csv
run_fails 2 'of several labels each has two classes, and "spam" has more' belfry train "${labels[@]:2}" \
    --train_files three.csv --model_dir bad

# A penalty belongs only to training's loss, and classes are the same however their numbers are written.
run_ok belfry evaluate --model_dir rare1 --eval_files rare.csv
plain=$(metric loss)
run_ok belfry evaluate --model_dir rare1 --eval_files rare.csv --l2 5
equal "loss of an evaluation" "$(metric loss)" "$plain"
awk 'BEGIN { print "x,kind"; for (i = 0; i < 200; i++) print i % 13 "," (i % 4 < 2 ? i % 2 : i % 2 ".0") }' >mixed.csv
run_ok belfry columns mixed.csv
check "0 and 0.0 are one class" grep -q 'kind: label, classes: \["0", "1"\], rows: \[100, 100\]' out.txt
run_ok belfry train --train_files "$TRAIN_CSV" --label_column digit --class_count 10 --feature_scale 0.0625 \
    --hidden_units 4 --train_steps 5 --model_dir numbers
awk -F, -v OFS=, 'NR > 1 { $NF = $NF % 2 } { print }' "$TRAIN_CSV" >odd.csv
run_ok belfry train --train_files odd.csv --class_count 2 --feature_scale 0.0625 --hidden_units 8 --train_steps 50 \
    --model_dir odd
run_ok belfry predict --model_dir odd --eval_files odd.csv --threshold 0.05
check "a threshold counts without a description, too" awk -F, '($3 > 0.05) != $1 { exit 1 }' out.txt
awk 'BEGIN { print "x;y"; for (i = 0; i < 60; i++) print (i % 10 ? i ",17" : "3.0") ";" i % 2 }' >commas.csv
run_ok belfry columns commas.csv
check "decimal commas are not read in a file with points" sh -c '! grep -q "stands for a missing number" out.txt'
awk 'BEGIN { print "x,w,y"; for (i = 0; i < 60; i++) print i "," (i == 30 ? "1e39" : 1) "," i % 2 }' >heavy39.csv
run_fails 2 'the weights "w" are to be 0 or more, some above it, and to fit f32' belfry train --train_files heavy39.csv \
    --weight_column w --model_dir bad

# One text among many numbers does not turn them into classes.
awk 'BEGIN { print "x,age"; for (i = 0; i < 90; i++) print i % 7 "," (i == 50 ? "-" : 20 + i % 60) }' >age.csv
run_fails 3 'the label "age" is to be a number|age.csv:52:3: "-"|--missing for texts' \
    belfry train --train_files age.csv --model_dir bad
run_ok belfry train_and_evaluate --train_files age.csv --missing=- --eval_share 0.2 --model_dir age
check "it is a number then" grep -q 'label "age", a number' err.txt

# Rows are counted, whatever a description says.
run_ok belfry columns all.csv --label_column grade --ignore price
cp out.txt rows.yaml
grep -v '^rows:' rows.yaml >no_rows.yaml
sed 's/^rows:.*/rows: 12/' rows.yaml >few_rows.yaml
for description in rows no_rows few_rows; do
    run_ok belfry train --train_files all.csv --columns "$description.yaml" --num_epochs 5 --model_dir "$description"
done
equal "the same training without rows" "$(digest no_rows)" "$(digest rows)"
equal "and with too few" "$(digest few_rows)" "$(digest rows)"

# --- The description of a large table is cached
awk 'BEGIN { print "size,color,grade"; for (i = 0; i < 1100000; i++)
    print i * 7919 % 10007 / 8 "," (i % 3 ? "red" : "blue") "," (i * 7919 % 10007 > 5000 ? "high" : "low") }' >large.csv
check "it is large" test "$(stat -c %s large.csv)" -ge 16777216
export XDG_CACHE_HOME=$work/cache
BELFRY_LOOK=(belfry columns large.csv)
run_ok "${BELFRY_LOOK[@]}"
cp out.txt first.yaml
kept=$(ls cache/belfry/columns)
equal "one description, and no lock" "$(wc -w <<<"$kept")" 1
sed -i '1!s/"red"/"rot"/' "cache/belfry/columns/$kept"
run_ok "${BELFRY_LOOK[@]}"
check "a changed one is not used" cmp out.txt first.yaml
text=$(sed '1d; s/rows: 1100000/rows: 1100001/' "cache/belfry/columns/$kept")
printf 'belfry columns 1 seen 0000000000000000\n%s\n' "$text" >"cache/belfry/columns/$kept"
run_ok "${BELFRY_LOOK[@]}"
check "nor one with another hash" cmp out.txt first.yaml
touch -d '2001-01-01' "cache/belfry/columns/$kept"
run_ok "${BELFRY_LOOK[@]}"
equal "the cached one is read and not made again" "$(stat -c %Y "cache/belfry/columns/$kept")" \
    "$(date -d 2001-01-01 +%s)"
check "and prints the same" cmp out.txt first.yaml
run_ok "${BELFRY_LOOK[@]}" --ignore color
equal "another question, another answer" "$(find cache/belfry/columns -type f | wc -l)" 2
rm -r cache
for i in 1 2 3; do "$BUILD/tools/belfry" columns large.csv >"beside$i.yaml" 2>/dev/null </dev/null & done
wait
check "concurrent runs print the same" cmp beside1.yaml beside3.yaml
check "the same as before" cmp beside2.yaml first.yaml
rm -rf cache
echo >cache
run_ok "${BELFRY_LOOK[@]}"
check "without a cache the table is read" cmp out.txt first.yaml
rm cache
mkdir -p cache/belfry/columns
mkfifo "cache/belfry/columns/$kept"
run_ok "${BELFRY_LOOK[@]}"
check "the same if another file is in its place" cmp out.txt first.yaml
rm -r cache
large=(--train_files large.csv --label_column grade --train_steps 20 --no_report)
run_ok belfry local train --distributed --worker_count 2 --job_dir large -- "${large[@]}"
run_ok belfry train "${large[@]}" --num_workers 2 --model_dir alone --columns first.yaml
equal "digest of a job whose processes share one description" "$(digest large)" "$(digest alone)"
unset XDG_CACHE_HOME

# --- Cells are checked in advance, unless a flag turns it off
sed '100s/^[^,]*/oops/' all.csv >wrong.csv
wrong=(--train_files wrong.csv --columns columns.yaml --num_epochs 1 --no_report)
run_fails 3 'wrong.csv:100:1: column "size": expected a number, got "oops"' belfry train "${wrong[@]}" --model_dir wrong
check "before the training begins" test ! -e wrong/ckpt-00000000
run_fails 3 'wrong.csv:100:1: column "size": expected a number, got "oops"' \
    belfry train "${wrong[@]}" --model_dir wrong --no_check_input
check "it had begun" test -e wrong/ckpt-00000000
sed '100s/^\([^,]*,[^,]*,[^,]*\),[^,]*/\1,/' all.csv >gone.csv
run_ok belfry train --train_files gone.csv --columns columns.yaml --num_epochs 1 --model_dir gone --no_check_input
check "rows without a label are left out all the same" grep -q '1 of 300 rows have no label' err.txt

# --- Names and hints
cp all.csv idx.csv
run_ok belfry train --train_files idx.csv --label_column grade --num_epochs 1 --model_dir idx
run_fails 3 'column "color": expected a number, got|hint: texts are categories unless a flag such as --class_count' \
    belfry train --train_files all.csv --label_column w --class_count 4 --num_epochs 1 --model_dir bad
finish
