#!/usr/bin/env bash
# Transformers on GPUs, which a stand-in for CUDA plays: a gpt of Llama's parts and one of GPT-2's with bf16 activations, and
# an encoder with hidden tokens and with classes train to the processor's bits.
# usage: cards_text.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export BELFRY_CUDA_PATH=$BUILD/tests/cuda_double XDG_CACHE_HOME=${BELFRY_TEST_CACHE:-$BUILD/tests/cuda_double/cache}
sizes=(--layers 2 --heads 2 --token_width 32 --context 16 --train_batch_size 2 --train_steps 4 --dropout 0.1 --no_report)
text=$SOURCE/docs/tour.md

capture belfry train --model gpt --train_files "$text" "${sizes[@]}" --device cuda --model_dir none
if grep -q "BELFRY_CUDA=OFF" err.txt; then
    finish
    exit 77
fi
both() { # NAME FLAGS…
    local name=$1
    shift
    for device in cpu cuda; do
        run_ok belfry train "$@" "${sizes[@]}" --num_gpus 1 --device $device --model_dir "$name-$device"
    done
    equal "$name: a GPU, and the processor" "$(digest "$name-cuda")" "$(digest "$name-cpu")"
}
both gpt2 --model gpt --train_files "$text" --precision bf16
both llama --model gpt --train_files "$text" --positions rotary --norm rms --activation swiglu --no_bias --no_tied --kv_heads 1
both hidden --model encoder --train_files "$text"
both classes --model encoder --train_files "$SOURCE/examples/data/penguins.csv" --text_column Island --label_column Species
finish
