#!/usr/bin/env bash
# Evaluations while a cluster trains: many of them, of models of one chunk and of several, on one to
# three parameter servers, over every kind of lane; each says what the same run says in one process.
# usage: cluster_evals.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 26 --train_batch_size 16 --save_checkpoints_steps 13)
evals() { grep -o 'eval at step .*' err.txt; }

evaluate_all() { # HIDDEN_UNITS EVERY SHARDS:LANE…
    local units=$1 every=$2 case places training expected
    shift 2
    training=("${digits[@]}" "${settings[@]}" --hidden_units "$units" --eval_every_steps "$every")
    run_ok belfry train_and_evaluate --model_dir "alone-$units" "${training[@]}" --num_workers 2
    expected=$(evals)
    for case in "$@"; do
        places=(--parameter_server_count "${case%:*}")
        [ "${case#*:}" = tcp ] && places+=(--tcp)
        run_ok belfry local train --distributed --worker_count 2 "${places[@]}" --job_dir "$units-$case" \
            -- "${training[@]}" --lane "$([ "${case#*:}" = shm ] && echo shm || echo grpc)"
        equal "evaluations of $units-$case" "$(evals)" "$expected"
    done
}

# Values are sent chunk by chunk, of 16 Ki elements at least: here 1, 4 and 11 of them.
evaluate_all 8 1 1:shm 3:grpc
evaluate_all 256,128 2 1:grpc 2:tcp
evaluate_all 512,256 2 1:shm 1:tcp 3:grpc
finish
