#!/usr/bin/env bash
# All-reduce training with rates scaled by the number of replicas, and with compared workers: over shared
# memory and gRPC, with and without parameter servers, while workers are killed. A worker with other
# parameters is found.
# usage: cluster_checks.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
plain=(--train_steps 40 --save_checkpoints_steps 10 --train_batch_size 8 --num_gpus 2)
settings=("${plain[@]}" --scale_learning_rate linear --warmup_steps 12)
digits_for others # large enough for parts on each parameter server
data=("${digits[@]}")

cluster() { # MODEL_DIR SHARDS [training flags]
    local model_dir=$1 shards=$2
    shift 2
    belfry local train --distributed --parameter_server_count "$shards" --job_dir "$model_dir" -- "${data[@]}" \
        "${settings[@]}" "$@"
}
killed() { # FAULT SHARDS [training flags]: the killed processes change nothing
    rm -rf killed
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed \
        --parameter_server_count "$2" --job_dir killed -- "${data[@]}" "${settings[@]}" --check_replicas 1 "${@:3}"
    check "$1 kills" grep -q 'killed on purpose' killed/logs/*.log
    equal "digest with $*" "$(digest killed)" "$whole"
}

# --- The bits of one process, checked at every step
run_ok train whole "${settings[@]}" --num_workers 2
check "the log names the factor" grep -q 'scale_learning_rate: 4 times the learning rate' err.txt
whole=$(digest whole)
for lane in shm grpc; do
    for shards in 0 2; do
        run_ok cluster "$lane-$shards" "$shards" --lane "$lane" --check_replicas 1
        equal "digest over $lane with $shards parameter servers" "$(digest "$lane-$shards")" "$whole"
        # a killed worker's shard is lost with it, so the job goes back
        killed crash:shard_passes#31 "$shards" --lane "$lane"
        for point in worker_reported#17 worker_sends_stats#9 worker_waits#11; do
            killed "crash:$point@worker-1" "$shards" --lane "$lane"
        done
    done
done

# --- One of worker 1's parameters has another sign: found at the start, and at a later check
for shards in 0 2; do
    streams=$((shards > 0 ? shards : 1)) # streams that bring worker 1 its parameters
    export BELFRY_FAULT=flip@worker-1
    run_fails 3 'worker 1 computes step 0 on other parameters than worker 0: their hash is |, expected ' \
        cluster "start-$shards" "$shards" --lane grpc
    equal "its checkpoints" "$(echo "start-$shards"/ckpt-*)" "start-$shards/ckpt-00000000"
    export BELFRY_FAULT=flip#$((streams * 24 + 1))@worker-1
    run_fails 3 'worker 1 computes step 24 on other parameters than worker 0' \
        cluster "found-$shards" "$shards" --lane grpc --check_replicas 8
    run_ok cluster "late-$shards" "$shards" --lane grpc --check_replicas 9
    unset BELFRY_FAULT
    run_ok cluster "found-$shards" "$shards" --lane grpc --check_replicas 8
    equal "digest of the resumed job" "$(digest "found-$shards")" "$whole"
    BELFRY_FAULT=flip@worker-1 run_fails 3 'worker 1 computes step 40 on other parameters than worker 0' \
        cluster "found-$shards" "$shards" --lane grpc --train_steps 50
done

# --- Rows of tables are not compared; dense parameters beside them are
make_clicks
data=("${clicks[@]}")
run_ok belfry train_and_evaluate --model_dir rows "${data[@]}" "${settings[@]}" --num_workers 2
whole=$(digest rows)
run_ok cluster rows-cluster 0 --lane grpc --check_replicas 1
equal "digest of tables" "$(digest rows-cluster)" "$whole"
killed crash:worker_rows_reported#21@worker-1 2 --lane grpc
data=("${digits[@]}")

# --- With elastic_rescale R follows the workers
settings=("${plain[@]}" --optimizer sgd --warmup_steps 4)
follows() { # WORKERS STEPS
    belfry local train --distributed --worker_count "$1" --job_dir follows -- "${data[@]}" "${settings[@]}" \
        --elastic_rescale --scale_learning_rate linear --train_steps "$2"
}
run_ok follows 2 10
run_ok follows 1 20
for part in "2 10 4" "1 20 2"; do
    read -r workers steps scale <<<"$part"
    run_ok train parts "${settings[@]}" --num_workers "$workers" --train_steps "$steps" --rate_scale "$scale" --allow_changes
done
equal "digest of the rates of four and of two replicas" "$(digest follows)" "$(digest parts)"

# --- Modes in which workers compute on different versions
settings=("${plain[@]}")
for words in "with backup workers --replicas_to_aggregate 1" "in mode async --mode async" \
    "in mode bounded --mode bounded --max_staleness 1"; do
    read -r -a flags <<<"--${words#*--}"
    run_fails 2 "check_replicas compares|${words%% --*} they compute on different versions" \
        train refused --num_workers 2 --check_replicas 4 "${flags[@]}"
    run_fails 2 "check_replicas compares" cluster refused 1 --check_replicas 4 "${flags[@]}"
    check "nothing was begun" test ! -e refused/ckpt-00000000
done
check "no process is left" nothing_left

finish
