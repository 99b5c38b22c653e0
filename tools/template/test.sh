#!/bin/sh
# Trains on synthetic data, in one process and in several, and compares the models.
# usage: test.sh PACKAGE.so; BELFRY names the command if it is not in $PATH
set -eu
here=$(cd "$(dirname "$0")" && pwd)
package=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$here/make_data" 2000 1 >train.csv
"$here/make_data" 500 2 >eval.csv
flags="--package $package --train_files train.csv --eval_files eval.csv --train_steps 400
    --optimizer adam --learning_rate 0.01 --num_workers 2"
# shellcheck disable=SC2086 # flags are words
"${BELFRY:-belfry}" train_and_evaluate --model_dir alone $flags >alone.txt
# shellcheck disable=SC2086
"${BELFRY:-belfry}" local train --distributed --worker_count 2 --job_dir many -- $flags >many.txt
awk '$1 == "accuracy" { if ($2 < 0.9) exit 1; found = 1 } END { exit !found }' alone.txt || {
    echo "test.sh: expected an accuracy of 0.9 or more, got:" >&2
    cat alone.txt >&2
    exit 1
}
[ "$(grep digest alone.txt)" = "$(grep digest many.txt)" ] || {
    echo "test.sh: two processes trained another model than one" >&2
    exit 1
}
