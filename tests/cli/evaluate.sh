#!/usr/bin/env bash
# Evaluation and prediction over towers and workers of a process: the same numbers to the last digit, and the
# same rows in the same order, also with more towers than batches.
# usage: evaluate.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

run_ok belfry train --model_dir m --train_files "$TRAIN_CSV" --label_column digit --train_steps 60 --train_batch_size 32 \
    --model dnn --hidden_units 24 --class_count 10 --no_report
cut -d, -f1-64 "$EVAL_CSV" >features.csv # without labels
for batch in 64 50 359 1000; do
    results=()
    for devices in '--num_gpus 1' '--num_gpus 3' '--num_workers 2 --num_gpus 2' '--num_workers 5' '--num_gpus 12'; do
        read -ra flags <<<"$devices"
        run_ok belfry evaluate --model_dir m --eval_files "$EVAL_CSV" --eval_batch_size "$batch" --json "${flags[@]}"
        results+=("$(cat out.txt)")
        equal "evaluation with batches of $batch, $devices" "${results[-1]}" "${results[0]}"
        run_ok belfry predict --model_dir m --eval_files features.csv --eval_batch_size "$batch" "${flags[@]}"
        cp out.txt "rows-${#results[@]}"
        check "predictions with batches of $batch, $devices" cmp -s "rows-${#results[@]}" rows-1
    done
    equal "rows of batches of $batch" "$(wc -l <rows-1)" 359
done
run_ok belfry evaluate --model_dir m --eval_files "$EVAL_CSV" --eval_batch_size 50 --eval_steps 3 --json
three=$(cat out.txt)
run_ok belfry evaluate --model_dir m --eval_files "$EVAL_CSV" --eval_batch_size 50 --eval_steps 3 --json --num_workers 4
equal "three batches on four workers" "$(cat out.txt)" "$three"
# Parts of an input, by the same number of processes, one after the other; also more parts than batches.
for parts in 1 3 8 11; do
    : >joined
    for ((part = 0; part < parts; part++)); do
        run_ok belfry predict --model_dir m --eval_files features.csv --eval_batch_size 50 --json --num_gpus 2 \
            --part "$part/$parts"
        cat out.txt >>joined
    done
    run_ok belfry predict --model_dir m --eval_files features.csv --eval_batch_size 50 --json
    check "$parts parts give all rows" cmp -s joined out.txt
done
for ranks in 1 3 5; do
    run_ok belfry local ranks --rank_count "$ranks" -- "$BUILD/tools/belfry" predict --model_dir m --part ranks \
        --eval_files features.csv --eval_batch_size 50 --json
    check "$ranks ranks print the same as one process" cmp -s joined out.txt
done
capture belfry local ranks --rank_count 3 -- "$BUILD/tools/belfry" predict --model_dir m --part ranks \
    --eval_files missing.csv --eval_batch_size 50
equal "exit code of ranks that cannot predict" "$code" 3
check "they say why" grep -q '^belfry: prediction input: cannot open missing.csv' err.txt
for part in 3/3 -1/3 1 1/0 a/b 0/99999999999; do
    run_fails 2 "--part: expected K/N such as 0/4|or ranks|got $part" belfry predict --model_dir m --eval_files features.csv \
        --part "$part"
done
run_fails 2 '--num_workers' belfry evaluate --model_dir m --eval_files "$EVAL_CSV" --num_workers 0
run_fails 2 '--num_gpus' belfry predict --model_dir m --eval_files "$EVAL_CSV" --num_gpus 257

# --- The evaluation of a training
run_ok belfry train_and_evaluate --model_dir one --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit \
    --train_steps 30 --train_batch_size 8 --eval_batch_size 50 --num_gpus 4 --json --no_report
one=$(sed 's/"train_seconds.*"digest/"digest/' out.txt)
run_ok belfry train_and_evaluate --model_dir four --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit \
    --train_steps 30 --train_batch_size 8 --eval_batch_size 50 --num_workers 4 --json --no_report
equal "four workers evaluate as four towers" "$(sed 's/"train_seconds.*"digest/"digest/' out.txt)" "$one"
finish
