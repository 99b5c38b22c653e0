#!/usr/bin/env bash
# Checks that programs on different processors and instruction-set levels train the same models to the same
# digests, on the digits.
# usage: tests/processors.sh COMMAND…     each runs belfry: "env BELFRY_ISA=v2 build/release/tools/belfry"
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

models=("dnn --hidden_units 64,32 --dropout 0.2 --optimizer adam"
    "dnn --hidden_units 64 --optimizer lamb --schedule cosine --decay_steps 10 --learning_rate 0.01"
    "dnn --hidden_units 64 --optimizer adamw --schedule exponential --decay_steps 10 --decay_rate 0.7"
    "dnn --hidden_units 64 --optimizer ftrl --learning_rate 0.01"
    "cnn --filters 20,16 --window 3 --dense_units 24 --image_shape 8,8,1"
    "resnet --blocks 1 --width 8 --image_shape 8,8,1"
    "gru --recurrent_units 24 --sequence_width 8"
    "lstm --recurrent_units 20,16 --sequence_width 8")

for model in "${models[@]}"; do
    read -r -a words <<<"$model"
    first=
    for run in "$@"; do
        read -r -a belfry <<<"$run"
        rm -rf "$work/run"
        "${belfry[@]}" train --quiet --no_report --model_dir "$work/run" --model "${words[@]}" --train_steps 20 \
            --train_batch_size 16 --train_files examples/data/digits-train.csv --label_column digit \
            --feature_scale 0.0625 >/dev/null
        digest=$("${belfry[@]}" inspect --digest "$work/run")
        if [ "$digest" != "${first:=$digest}" ]; then
            echo "processors.sh: $model: $1 gives $first, $run gives $digest" >&2
            exit 1
        fi
    done
    echo "$first ${words[0]} from all of $# (${model#* })"
done
