#!/usr/bin/env bash
# Cells as people and programs write them: decimal commas, markers, values that training did not have, bytes
# that are not text. And headers that do not fit.
# usage: table_cells.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

awk 'BEGIN {
    srand(7)
    print "size;floor;color;grade"
    for (i = 0; i < 300; i++) {
        size = rand() * 10
        red = rand() < 0.5
        printf "%.2f;%d;%s;%s\n", size, i % 4, (red ? "red" : "blue"), (size + 3 * red > 6 ? "high" : "low")
    }
}' >points.csv
sed 's/\([0-9]\)\./\1,/' points.csv >commas.csv
base=(--label_column grade --num_epochs 5 --no_report)
metric() { sed -n "s/^$1 //p" out.txt; }

# --- Decimal commas
run_ok belfry train_and_evaluate "${base[@]}" --train_files points.csv --eval_files points.csv --model_dir points
loss=$(metric loss)
run_ok belfry train_and_evaluate "${base[@]}" --train_files commas.csv --eval_files commas.csv --model_dir commas
equal "loss of the same numbers with commas" "$(metric loss)" "$loss"
run_ok belfry train "${base[@]}" --train_files commas.csv --model_dir commas --decimal ,
run_fails 2 '--decimal: the training began with another one' belfry train "${base[@]}" --train_files commas.csv \
    --model_dir commas --decimal .
run_fails 2 '--decimal|expected' belfry train "${base[@]}" --train_files commas.csv --model_dir bad --decimal x
run_fails 3 'points.csv:2:1: column "size": expected a number' belfry evaluate --model_dir commas --eval_files points.csv
belfry predict --model_dir commas --eval_files commas.csv >whole.txt 2>err.txt
belfry predict --model_dir commas --eval_files - <commas.csv >stream.txt 2>err.txt
check "standard input reads commas, too" cmp -s <(cut -d, -f1 whole.txt) <(cut -d, -f1 stream.txt)
# shellcheck disable=SC2016
awk 'BEGIN { print "price,share,fee,y"; for (i = 0; i < 60; i++)
    printf "\"$1,%03d.50\",%d.5%%,%s%d,%d\n", i * 13, i % 9, i % 2 ? "$" : "€", i % 5, i % 2 }' >dressed.csv
run_ok belfry columns dressed.csv
check "currencies and commas between thousands are read" grep -q '"price", kind: number.*unit: "\$", thousands: ","' out.txt
check "per cent is read" grep -q '"share", kind: number.*unit: "%"' out.txt
check "two currencies are reported" grep -q '"fee" is no number column: its texts look like numbers with currencies' err.txt
check "also in the note" grep -q '"fee".*these look like numbers with currencies' out.txt
cp out.txt columns.yaml
run_fails 2 '--columns and --decimal exclude each other' belfry train --train_files dressed.csv \
    --columns columns.yaml --model_dir bad --decimal ,

# --- Values that training did not have
awk 'BEGIN { print "flag,number,y"; for (i = 0; i < 300; i++) printf "%s,%d,%s\n", (i % 3 == 0 ? "True" : "False"), i % 5,
    (i % 3 == 0 ? "a" : "b") }' >values.csv
values=(--label_column y --num_epochs 5 --no_report --categorical number)
run_ok belfry train_and_evaluate "${values[@]}" --train_files values.csv --eval_files values.csv --model_dir values
loss=$(metric loss)
check "known values are not reported" test "$(grep -c 'that training distinguished' err.txt)" = 0
sed '2,$s/,\([0-9]\),/,\1.0,/' values.csv >fractions.csv
run_ok belfry evaluate --model_dir values --eval_files fractions.csv
equal "loss with 1.0 for 1" "$(metric loss)" "$loss"
sed '2,$s/^True/TRUE/; 2,$s/^False/FALSE/' values.csv >upper.csv
for verb in evaluate predict; do
    run_ok belfry $verb --model_dir values --eval_files upper.csv
    check "$verb names new values" grep -q \
        'column "flag": 300 of 300 values are not among those that training distinguished.*upper.csv:2:1: "TRUE"$' err.txt
done
sed '2,$s/^True/TRUE/' values.csv >third.csv
run_ok belfry evaluate --model_dir values --eval_files third.csv
check "a third of unknown values is not reported" test "$(grep -c 'that training distinguished' err.txt)" = 0

# --- Texts for missing values that training did not have
awk -F, -v OFS=, 'NR % 10 == 3 { $2 = "unknown" } NR % 10 == 4 { $2 = -999 } { print }' values.csv >marked.csv
sed 's/,unknown,/,,/; s/,-999,/,,/' marked.csv >empty.csv
run_ok belfry train "${values[@]/categorical/numeric}" --train_files values.csv --model_dir marked
run_fails 3 'marked.csv:3:|column "number": expected a number, got "unknown"' \
    belfry evaluate --model_dir marked --eval_files marked.csv
run_ok belfry evaluate --model_dir marked --eval_files empty.csv
loss=$(metric loss)
run_ok belfry evaluate --model_dir marked --eval_files marked.csv --missing unknown,-999
equal "loss with texts declared as missing values" "$(metric loss)" "$loss"
run_ok belfry predict --model_dir marked --eval_files empty.csv
cp out.txt expected.txt
run_ok belfry predict --model_dir marked --eval_files marked.csv --missing unknown,-999
check "predictions, too" cmp -s expected.txt out.txt
checks=$((checks + 1))
belfry predict --model_dir marked --eval_files - --missing unknown,-999 <marked.csv >out.txt 2>err.txt || complain "standard input"
check "and those of standard input" cmp -s <(cut -d, -f1 expected.txt) <(cut -d, -f1 out.txt)

# --- A table is shown with or without a label
printf 'name,town\n' >unlabeled.csv
for i in $(seq 40); do echo "n$i,t$((i % 3)).$i"; done >>unlabeled.csv
sed 's/^\(n[0-9]*\),\(.*\)/1.\1,\2/; s/^1.n/1./' unlabeled.csv >numbers.csv
run_ok belfry columns numbers.csv
check "a missing label is reported" grep -q 'there is no label: .*the label "town"' err.txt
check "with all columns" grep -q '^town  *ignore' err.txt
run_fails 2 'the label "town"' belfry columns numbers.csv --label_column town
long=a_name_of_a_column_that_has_more_than_32_bytes
printf '%s,y\n1,0\n2,1\n' "$long" >long.csv
run_ok belfry columns long.csv
check "a gap after a long name" grep -q "^$long  number" err.txt
run_ok belfry columns long.csv --json
equal "an object per column" "$(sed -n 2p out.txt)" '{"name":"y","kind":"label","note":"2 classes"}'
check "and nothing else" test "$(wc -l <out.txt)" = 2

# --- Bytes, lines and headers that do not fit
printf 'a,b,y\n1,x,0\n2,x\0z,1\n' >zero.csv
run_fails 3 'zero.csv:3:4: expected text, got a zero byte' belfry columns zero.csv
printf 'a,b,y\n1,"x",0\n2,"x\0z",1' >quoted.csv
run_fails 3 'quoted.csv:3:5: expected text, got a zero byte' belfry columns quoted.csv
printf 'a,a,y\r1,x,0\r2,y,1\r' >carriage.csv
run_fails 3 'carriage.csv:1:6: lines end with only CR' belfry columns carriage.csv
check "first of all" test "$(grep -c 'have the name of an earlier' err.txt)" = 0
awk 'BEGIN { for (i = 0; i < 15; i++) printf "a,"; print "b,y"; for (r = 0; r < 4; r++) { for (i = 0; i < 16; i++) printf "%d,", r;
    print r % 2 } }' >doubled.csv
run_ok belfry columns doubled.csv
equal "one line of columns with the same name" "$(grep -c 'have the name of an earlier' err.txt)" 1
check "it ends after ten" grep -q '14 columns have the name of an earlier one, .*: column 2, "a"; .*; column 11, "a" …$' err.txt
printf 'a,b,y\n1,1,x,0\n2,2,y,1\n' >short.csv
run_fails 3 'short.csv:2:7: expected 3 fields, got 4; hint: the header has one name less' belfry columns short.csv
run_fails 2 'no column "Grade"; did you mean "grade"?' belfry columns points.csv --label_column Grade
run_fails 2 'no column "Y"; did you mean "y"?' belfry columns values.csv --label_column Y
stream() { belfry predict --model_dir values --eval_files - <rows.txt; }
sed 's/,/;/g' values.csv >rows.txt
run_fails 2 'no column "flag"|fields have semicolons between them' stream
check "no header before an error" test ! -s out.txt
run_fails 2 'no column "flag"|fields have semicolons between them' belfry predict --model_dir values --eval_files rows.txt
: >rows.txt
run_fails 3 'standard input: expected rows of CSV, got none' stream
check "no output before it" test ! -s out.txt
head -1 values.csv >rows.txt
run_fails 3 'standard input: expected records after the header, got none' stream
printf 'flag,number\nTr\0ue,1\n' >rows.txt
run_fails 3 'standard input:2:3: expected text, got a zero byte' stream

finish
