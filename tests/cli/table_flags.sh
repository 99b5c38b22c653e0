#!/usr/bin/env bash
# Flags of tables where they would go unread: beside a description, where a training goes on, where a checkpoint is
# read. And what follows from flags that are not given.
# usage: table_flags.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

awk 'BEGIN {
    srand(5)
    print "size,colour,w,grade,price"
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

# --- A training that goes on says what it began with
run_ok belfry train_and_evaluate "${base[@]}" --model_dir m --weight_column w
run_ok more --weight_column w --categorical colour --delimiter , --header
run_fails 2 '--weight_column size: the training began with those of w' more --weight_column size
run_fails 2 '--delimiter: the training began with another' more --delimiter tab
run_fails 2 '--no_header: the training began with a header' more --no_header
run_fails 2 '--log_columns size: the training began with column "size" as number' more --log_columns size
run_fails 2 '--ignore nosuch: the training began without such a column' more --ignore nosuch
run_fails 2 '--numeric colour: the training began with column "colour" as category' more --numeric colour
run_ok belfry train_and_evaluate "${base[@]}" --model_dir plain --eval_files all.csv
run_fails 2 '--weight_column w: the training began with no weights' \
    belfry train_and_evaluate "${base[@]}" --model_dir plain --weight_column w

# What it learns is remembered, and patterns name a label as they name columns.
run_ok belfry train "${number[@]}" --model_dir huber --objective huber --schedule constant --train_steps 20
run_ok belfry train "${number[@]}" --model_dir huber --schedule constant --train_steps 30
check "it goes on" grep -q 'resuming from huber/ckpt-00000020' err.txt
run_ok belfry inspect huber --json
check "with the objective that it began with" grep -q '"param.objective":"huber"' out.txt
run_ok belfry train "${base[@]}" --model_dir pattern --label_column 'gr*'

# --- Beside a description, and where a checkpoint is read
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

# --- Best and early stopping have evaluations to compare, without a flag that says when
run_ok belfry train_and_evaluate "${base[@]}" --model_dir best --eval_share 0.2 --keep_best loss
equal "an evaluation a pass" "$(grep -c '^eval at step' err.txt)" 5
run_ok belfry train_and_evaluate "${base[@]}" --model_dir rare --eval_share 0.2 --keep_best loss --eval_every_steps 30
equal "as often as a flag says" "$(grep -c '^eval at step' err.txt)" 2
run_ok belfry train_and_evaluate "${base[@]}" --model_dir none --eval_share 0.2
equal "without one of these at the end alone" "$(grep -c '^eval at step' err.txt)" 1

# --- Names and hints
cp all.csv idx.csv
run_ok belfry train --train_files idx.csv --label_column grade --num_epochs 1 --model_dir idx
run_fails 3 'column "colour": expected a number, got|hint: texts are categories where no flag such as --class_count' \
    belfry train --train_files all.csv --label_column w --class_count 4 --num_epochs 1 --model_dir bad
finish
