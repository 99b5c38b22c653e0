#!/usr/bin/env bash
# Checks that the programs of two compilers train to the same digest, on digits and on Fashion-MNIST.
# usage: tests/compilers.sh BUILD_A BUILD_B
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
images=data/fashion-mnist/train-images-idx3-ubyte.gz
labels=data/fashion-mnist/train-labels-idx1-ubyte.gz

train() { # BUILD NAME flags…
    local build=$1 name=$2
    shift 2
    "$build/tools/belfry" train --quiet --no_report --model_dir "$work/$name" --train_steps 200 \
        --hidden_units 512,512 --dropout 0.2 --clip_global_norm 0.5 --train_batch_size 64 "$@" \
        >/dev/null
    "$build/tools/belfry" inspect --digest "$work/$name"
}

for data in digits fashion; do
    if [ "$data" = digits ]; then
        flags=(--train_files examples/data/digits-train.csv --label_column digit
            --feature_scale 0.0625)
    else
        flags=(--train_files "$images,$labels" --feature_scale 0.00392156862745098)
    fi
    a=$(train "$1" "$data-a" "${flags[@]}")
    b=$(train "$2" "$data-b" "${flags[@]}")
    if [ "$a" != "$b" ]; then
        echo "compilers.sh: $data: $1 gives $a, $2 gives $b" >&2
        exit 1
    fi
    echo "$data: $a from both"
done
