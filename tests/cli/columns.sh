#!/usr/bin/env bash
# Columns are bound by name: files with columns in another order give the same numbers. A missing or renamed
# column is refused with both names. The label's name is remembered.
# usage: columns.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

table() { # FILE SEED COLUMN…: 400 rows of age, income, tenure (very different sizes) and whether they stay
    local file=$1 seed=$2
    shift 2
    awk -v seed="$seed" -v order="$*" 'BEGIN {
        n = split(order, names, " ")
        for (i = 1; i <= n; i++) printf "%s%s", names[i], i < n ? "," : "\n"
        for (row = 0; row < 400; row++) {
            v["age"] = (row * 37 + seed * 11) % 60 / 60
            v["income"] = (row * 101 + seed * 7) % 97 / 20
            v["tenure"] = (row * 53 + seed * 3) % 41 / 82
            v["Age"] = v["age"]; v["other"] = row
            v["stays"] = v["income"] + 3 * v["age"] - v["tenure"] > 3.5
            for (i = 1; i <= n; i++) printf "%s%s", v[names[i]], i < n ? "," : "\n"
        }
    }' >"$file"
}
table train.csv 1 age stays income tenure
table mixed-train.csv 1 tenure income age stays
table eval.csv 2 age stays income tenure
table mixed.csv 2 income tenure age stays
table more.csv 2 other income tenure stays age
table renamed.csv 2 tenure income Age stays
table fewer.csv 2 tenure income stays
table unlabeled.csv 2 tenure income age
tail -n +2 mixed.csv >headless.csv

flags=(--hidden_units 8 --class_count 2 --train_batch_size 20 --num_threads 1 --no_report)
fit() { belfry train_and_evaluate --model_dir "$1" "${flags[@]}" --train_files train.csv --label_column stays "${@:2}"; }
numbers() { grep -E '^(loss|accuracy|auc|examples) ' out.txt; }

run_ok fit model --eval_files eval.csv --train_steps 60
expected=$(numbers)
run_ok fit other --eval_files mixed.csv --train_steps 60
equal "an evaluation file in another order while training" "$(numbers)" "$expected"
for file in eval.csv mixed.csv more.csv; do
    run_ok belfry evaluate --model_dir model --eval_files $file
    equal "$file evaluated" "$(numbers)" "$expected"
done
check "an unused column is reported" grep -q 'more.csv: left out, as the model was not trained with them: "other"' err.txt
for file in renamed.csv fewer.csv; do
    run_fails 2 "$file: no column \"age\", with which the model was trained" belfry evaluate --model_dir model --eval_files $file
    run_fails 2 "$file: no column \"age\"" fit "$file-model" --eval_files $file --train_steps 1
done
run_fails 2 'columns here that training did not have: "Age"' belfry predict --model_dir model --eval_files renamed.csv
run_fails 2 'the label is column "3" here, but it was "stays" in training' belfry evaluate --model_dir model \
    --eval_files headless.csv --no_header --label_column 3
run_fails 2 'the label is column "income" here, but it was "stays" in training' \
    belfry evaluate --model_dir model --eval_files eval.csv --label_column income

run_ok belfry predict --model_dir model --eval_files unlabeled.csv
cp out.txt predicted.txt
for file in eval.csv mixed.csv more.csv; do # the label among them is no feature
    run_ok belfry predict --model_dir model --eval_files $file
    check "$file is predicted as without a label" cmp -s out.txt predicted.txt
done

# Training continues with a file in another order, and its bits are those of one run.
run_ok fit half --eval_files eval.csv --train_steps 30
run_ok belfry train --model_dir half "${flags[@]}" --train_files mixed-train.csv --label_column stays --train_steps 60 \
    --allow_changes # the place of the label is a part of the input's fingerprint
equal "digest over two orders" "$(digest half)" "$(digest model)"
run_fails 2 'renamed.csv: no column "age"' belfry train --model_dir half "${flags[@]}" --train_files renamed.csv \
    --label_column stays --train_steps 90 --allow_changes
run_ok belfry local train --distributed --worker_count 2 --evaluator_count 1 --job_dir cluster -- "${flags[@]}" \
    --train_files train.csv --label_column stays --eval_files mixed.csv --train_batch_size 10 --train_steps 60
run_ok fit alone --eval_files eval.csv --train_batch_size 10 --num_workers 2 --train_steps 60
run_ok belfry bisect cluster alone

# Without a header names are numbers, and the label is remembered, too.
tail -n +2 train.csv >bare.csv
run_ok belfry train_and_evaluate --model_dir bare "${flags[@]}" --no_header --label_column 1 --train_files bare.csv \
    --eval_files bare.csv --train_steps 60
expected=$(numbers)
run_ok belfry evaluate --model_dir bare --no_header --eval_files bare.csv
equal "the label of a file without names" "$(numbers)" "$expected"

run_ok belfry predict --model_dir bare --no_header --eval_files bare.csv
cp out.txt predicted.txt
cut -d, -f1,3- bare.csv >places.csv # without the label; the others keep their order
run_ok belfry predict --model_dir bare --no_header --eval_files places.csv
check "columns without names are bound by place" cmp -s out.txt predicted.txt
sed 's/$/,7/' bare.csv >wide.csv
run_fails 2 'wide.csv: expected 3 columns of numbers as in training, or one more with the label, got 5' \
    belfry predict --model_dir bare --no_header --eval_files wide.csv
run_fails 2 'columns that have names, and this file has no header' \
    belfry predict --model_dir model --no_header --eval_files places.csv

# Names in the bytes of ISO 8859-1 are kept as UTF-8.
sed '1s/.*/gr\xf6\xdfe,stays,income,tenure/' train.csv >latin.csv
sed '1s/.*/größe,stays,income,tenure/' train.csv >utf.csv
run_ok belfry train_and_evaluate --model_dir latin "${flags[@]}" --label_column stays --train_files latin.csv \
    --eval_files utf.csv --train_steps 5
run_ok belfry evaluate --model_dir latin --eval_files latin.csv
finish
