#!/usr/bin/env bash
# Files of a table that differ a little from the training file: each gives the same answer, or is refused with
# the name of the error, in evaluate and in predict.
# usage: table_cases.sh BUILD_FOLDER
# shellcheck disable=SC2016 # in awk, $2 is a field
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

awk 'BEGIN {
    srand(8)
    print "key,size,color,day,grade"
    for (i = 0; i < 600; i++) {
        size = rand() * 10
        red = rand() < 0.5
        printf "k%d,%.2f,%s,2021-%02d-%02d,%s\n", i, size, (red ? "red" : "blue"), 1 + i % 12, 1 + i % 28,
            (size + 3 * red > 6 ? "high" : "low")
    }
}' >train.csv
head -n 101 train.csv >test.csv
run_ok belfry train --train_files train.csv --label_column grade --ignore key --num_epochs 5 --model_dir m --no_report
metric() { sed -n "s/^$1 //p" out.txt; }
run_ok belfry evaluate --model_dir m --eval_files test.csv
loss=$(metric loss)
run_ok belfry predict --model_dir m --eval_files test.csv
cp out.txt answers.csv

count=0
same() { # WHAT FILE
    count=$((count + 2))
    run_ok belfry evaluate --model_dir m --eval_files "$2"
    equal "loss: $1" "$(metric loss)" "$loss"
    run_ok belfry predict --model_dir m --eval_files "$2"
    check "predictions: $1" cmp out.txt answers.csv
}
refused() { # WHAT FILE CODE PARTS
    count=$((count + 2))
    run_fails "$3" "$4" belfry evaluate --model_dir m --eval_files "$2"
    run_fails "$3" "$4" belfry predict --model_dir m --eval_files "$2"
    check "no answer: $1" test ! -s out.txt
}
change() { awk -F, -v OFS=, "$1" test.csv; } # PROGRAM of awk

# --- Swapped, added, left out if not needed
change '{ print $5, $3, $1, $4, $2 }' >swapped.csv && same "swapped" swapped.csv
change '{ $6 = NR == 1 ? "more" : "x" NR; print }' >added.csv && same "an additional column" added.csv
change '{ print "new" NR, $0 }' >first.csv && same "an additional first column" first.csv
change '{ print $2, $3, $4, $5 }' >unkeyed.csv && same "an ignored column less" unkeyed.csv
change '{ $6 = NR == 1 ? "size" : "x"; print }' >twice.csv && same "a second column of a name" twice.csv

# --- Written in another way
change '{ for (i = 1; i <= NF; i++) $i = "\"" $i "\""; print }' >quoted.csv && same "quoted" quoted.csv
sed 's/$/\r/' test.csv >crlf.csv && same "CR LF" crlf.csv
{ printf '\357\273\277' && cat test.csv; } >bom.csv && same "a byte-order mark" bom.csv
{ cat test.csv && echo; } >blank.csv && same "a blank line at the end" blank.csv
change 'NR > 1 { $2 = " " $2 " "; $3 = "  " $3 } { print }' >spaces.csv && same "spaces around cells" spaces.csv
gzip -c test.csv >packed.csv.gz && same "packed" packed.csv.gz
change 'NR > 1 { $2 = sprintf("%.2fe0", $2) } { print }' >exponent.csv && same "numbers with exponents" exponent.csv

# --- Renamed and missing
change 'NR == 1 { $2 = "Size" } { print }' >renamed.csv
refused "renamed" renamed.csv 2 'no column "size"|"Size"'
change '{ print $1, $2, $4, $5 }' >missing.csv && refused "missing" missing.csv 2 'no column "color"'
tail -n +2 test.csv >headless.csv && refused "no header" headless.csv 2 'no column "size"'
tr , ';' <test.csv >semicolons.csv && refused "another delimiter" semicolons.csv 2 'no column "size"'
change '{ print $1, $2, $3, $4 }' >unlabeled.csv
run_fails 2 'no column "grade"' belfry evaluate --model_dir m --eval_files unlabeled.csv
run_ok belfry predict --model_dir m --eval_files unlabeled.csv
check "predictions without labels" cmp out.txt answers.csv
count=$((count + 2))

# --- Values of another type
change 'NR == 9 { $2 = "big" } { print }' >text.csv
refused "a text for a number" text.csv 3 'text.csv:9:|column "size": expected a number, got "big"'
change 'NR == 5 { $4 = "soon" } { print }' >date.csv
refused "a text for a date" date.csv 3 'date.csv:5:|column "day": expected a date|got "soon"'
change 'NR > 1 { $5 = NR % 2 } { print }' >classes.csv
run_fails 3 'classes.csv:2:|label "grade": expected a class, one of "high" "low", got' \
    belfry evaluate --model_dir m --eval_files classes.csv
run_ok belfry predict --model_dir m --eval_files classes.csv
check "a label does not matter to predictions" cmp out.txt answers.csv
count=$((count + 2))
change 'NR == 7 { $0 = $1 "," $2 } { print }' >short.csv
refused "a row that is too short" short.csv 3 'short.csv:7:|expected 5 fields, got 2'
change 'NR > 1 { $3 = toupper($3) } { print }' >values.csv
run_ok belfry predict --model_dir m --eval_files values.csv
check "values that training did not have are reported" grep -q '"color"' err.txt
count=$((count + 1))

# --- A counter of the rows is useless, also if rows are held out; a copy of the label gives the answer away
awk 'BEGIN { srand(4); print "id,a,twin,day,y"; for (i = 1; i <= 300; i++)
    printf "%d,%g,%s,20%02d-%02d-%02d,%d\n", i, rand(), (i <= 150 ? "p" : "q"), 10 + i / 336, 1 + i / 28 % 12, 1 + i % 28, i <= 150 }' >counted.csv
run_ok belfry train_and_evaluate --train_files counted.csv --label_column y --eval_share 0.2 --num_epochs 1 --model_dir counted --no_report
check "a counter with gaps is left out" grep -q 'column "id" is left out: it counts the rows' err.txt
check "the time of dates in the order of the rows is left out, too" \
    grep -q 'column "day": in the order of the rows, so its time counts them' err.txt
check "a column that predicts the label is reported" grep -q 'column "twin": it predicts nearly all of "y" without other columns' err.txt

# --- A name with a comma in it, in a list that is split at commas
awk 'BEGIN { srand(2); print "\"price, EUR\",b,c,y"; for (i = 0; i < 60; i++) print rand() "," rand() "," rand() "," i % 2 }' >comma.csv
for _ in first again; do
    run_ok belfry train --train_files comma.csv --ignore 'c,price, EUR' --num_epochs 2 --model_dir comma --no_report
done
check "the names are found" test "$(belfry inspect comma | grep -c '"price, EUR", kind: ignore\|"c", kind: ignore')" = 2
run_fails 2 'no column "price"' belfry train --train_files comma.csv --ignore 'price,b' --model_dir bad

# --- Precision and recall are those of the rarer of two classes
awk 'BEGIN { srand(1); print "a,y"; for (i = 0; i < 400; i++) { bad = i % 8 == 0; print rand() + bad * 0.6 "," (bad ? "fail" : "pass") } }' >rare.csv
two=(--train_files rare.csv --eval_files rare.csv --num_epochs 20 --no_report)
run_ok belfry train_and_evaluate "${two[@]}" --model_dir rare
check "the log says so" grep -q 'precision and recall are those of class "fail", the rarer one (--positive_class)' err.txt
found=$(metric recall)
run_ok belfry predict --eval_files rare.csv --model_dir rare --keep_columns y
equal "its recall" "$(awk -F, '$1 == "fail" { all++; hit += $2 == "fail" } END { printf "%.4f", hit / all }' out.txt)" \
    "$(printf %.4f "$found")"
run_ok belfry evaluate --eval_files rare.csv --model_dir rare
equal "the same in evaluate" "$(metric recall)" "$found"
run_ok belfry train_and_evaluate "${two[@]}" --model_dir common --positive_class pass
check "the other one" awk -v a="$(metric recall)" -v b="$found" 'BEGIN { exit !(a > b && a > 0.9) }'
awk 'BEGIN { srand(2); print "a,grade"; for (i = 0; i < 60; i++) print rand() "," substr("lowmidtop", i % 3 * 3 + 1, 3) }' >three.csv
run_fails 2 '--positive_class is for two classes, and "grade" has 3' belfry train_and_evaluate \
    --train_files three.csv --label_column grade --model_dir bad --positive_class high --train_steps 1
run_fails 2 '--positive_class: expected "fail" or "pass", a class of "y", got "yes"' belfry train "${two[@]:0:2}" \
    --model_dir bad --positive_class yes

# --- Held-out rows are read again, with their numbers
run_ok belfry train_and_evaluate --train_files train.csv --label_column grade --key_columns key --eval_share 0.2 \
    --num_epochs 5 --model_dir held --no_report
loss=$(metric loss)
run_ok belfry evaluate --held_out --model_dir held --eval_steps 1 --eval_batch_size 5
equal "flags of evaluations count for held-out rows" "$(sed -n 's/^examples //p' out.txt)" 5
run_ok belfry evaluate --held_out --model_dir held
equal "the loss of the held out rows" "$(metric loss)" "$loss"
equal "their number" "$(metric examples)" 120
run_ok belfry predict --held_out --model_dir held --keep_columns grade
equal "the header" "$(head -1 out.txt)" "row,key,grade,prediction,p_high,p_low"
check "rows are those of the file" awk -F, 'NR > 1 && $2 != "k" $1 { bad++ } END { exit bad > 0 || NR != 121 }' out.txt
run_ok belfry predict --held_out --model_dir held --json
check "also in JSON" grep -qE '^\{"example":0,"row":[0-9]+,"key":"k' out.txt
cp train.csv kept.csv
sed -n 2p kept.csv >>train.csv
for verb in evaluate predict; do # the rows held out of another file are others
    run_fails 2 "--held_out: the training's input was" belfry $verb --held_out --model_dir held
done
mv kept.csv train.csv
run_fails 2 '--held_out and --eval_files exclude each other' belfry evaluate --held_out --model_dir held --eval_files test.csv
run_fails 2 '--held_out: the training in m held no rows out' belfry evaluate --held_out --model_dir m
awk -F, -v OFS=, '{ print $2, NR == 1 ? "grade" : $5 == "high" }' train.csv >plain.csv
run_ok belfry train_and_evaluate --train_files plain.csv --label_column grade --class_count 2 --eval_share 1/4 \
    --train_steps 50 --hidden_units 8 --model_dir plain --no_report
loss=$(metric loss)
run_ok belfry evaluate --held_out --model_dir plain
equal "the loss of held-out numbers" "$(metric loss)" "$loss"
run_ok belfry predict --held_out --model_dir plain
check "and their rows" awk -F, '$1 <= last { bad++ } { last = $1 } END { exit bad > 0 || NR != 150 || last > 599 }' out.txt

# --- Files of another kind, by name
other() { # WHAT PARTS: WHAT.csv is written
    run_fails 3 "$1.csv|$2" belfry train --train_files "$1.csv" --num_epochs 1 --model_dir bad
}
printf 'PK\003\004abc' >zip.csv && other zip 'a zip archive, or a workbook of Excel; hint: unzip'
printf 'PAR1\025\004abc' >parquet.csv && other parquet 'a Parquet file'
printf '{"a": 1}\n{"a": 2}\n' >json.csv && other json 'got JSON; hint: jq'
printf '1 3:0.5 17:1\n0 2:1\n' >libsvm.csv && other libsvm "rows of LIBSVM's format"
printf 'sep=;\na;b;y\n1;2;3\n' >sep.csv && other sep 'a first line that names the delimiter; hint: leave that line out'
printf 'Sales of 2020\na,b,y\n1,2,3\n' >title.csv && other title 'is the first line a title?'
printf 'a,b,y\n1,2,3,\n4,5,6,\n' >trailing.csv && other trailing 'rows end with a delimiter, and the header does not'

# --- Warnings for likely mistakes
awk 'BEGIN { srand(6); print "key,a,y"; for (i = 0; i < 100; i++) printf "caf\351 %d,%g,%d\n", i, rand(), i % 7 }' >latin.csv
run_ok belfry train_and_evaluate --train_files latin.csv --eval_files ./latin.csv --key_columns key --train_batch_size 200 \
    --num_epochs 1 --model_dir latin --no_report
check "numbers that become classes" grep -q 'label "y": its 7 different numbers are taken for classes; hint: --objective regression' err.txt
check "a batch larger than the data" grep -q 'a single step takes all 100 examples: it has room for 200' err.txt
check "the same file twice" grep -q 'latin.csv is trained on and evaluated on' err.txt
run_ok belfry train_and_evaluate --train_files latin.csv --label_column y --objective regression --ignore key --num_epochs 2 \
    --model_dir unevaluated --no_report
check "no evaluation" grep -q 'nothing is evaluated: neither --eval_files nor --eval_share is given' err.txt
check "and nothing of classes, batches or files" test "$(grep -c 'taken for classes\|single step\|trained on and' err.txt)" = 0
run_ok belfry predict --eval_files latin.csv --model_dir latin --json
check "keys that are not UTF-8 are read as ISO 8859-1" grep -q '"key":"café 0"' out.txt
for flag in --num_epochs --train_batch_size --eval_batch_size; do
    run_fails 2 "$flag: expected an integer in" belfry train_and_evaluate --train_files latin.csv --eval_files latin.csv \
        --num_gpus 4 "$flag" 4611686018427387904 --model_dir huge
done

check "twenty cases or more" test "$count" -ge 20
run_ok belfry train --train_files "$TRAIN_CSV" --label_column digit --model_dir told --train_steps 2 --no_report --dropout 0.1
check "the log has the defaults that the table has" grep -qE '^defaults for this table: --hidden_units [0-9,]+ .*--learning_rate 0' err.txt
check "and not those that were given" test "$(grep -c '^defaults for this table.*--dropout' err.txt)" = 0
finish
