#!/usr/bin/env bash
# --exchange_precision: the same bits in one process, on any shards, through shared memory and over gRPC, and when
# processes are killed.
# usage: exchange_precision.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work
settings=(--train_steps 30 --save_checkpoints_steps 12 --train_batch_size 8 --optimizer adam --exchange_precision bf16)
cluster() { # FOLDER FAULT [flags of the cluster] -- [flags]
    local folder=$1 fault=$2 of_cluster=()
    shift 2
    while [ "$1" != -- ]; do
        of_cluster+=("$1")
        shift
    done
    run_ok env BELFRY_FAULT="$fault" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed \
        --parameter_server_count 2 --job_dir "$folder" "${of_cluster[@]}" -- "${digits[@]}" "${settings[@]}" "${@:2}"
    equal "digest of $folder" "$(digest "$folder")" "$whole"
}

run_ok train whole "${settings[@]}" --num_workers 4
whole=$(digest whole)
check "a line says what is rounded" grep -q "exchange_precision bf16: sums of gradients and updates are rounded" err.txt
run_ok train plain "${settings[@]}" --exchange_precision f32 --num_workers 4
check "rounding changes the bits" test "$(digest plain)" != "$whole"
run_ok train towers "${settings[@]}" --num_workers 2 --num_gpus 2 --parameter_server_count 3
equal "digest of two towers each, three shards" "$(digest towers)" "$whole"

cluster here "" --worker_count 4 --
cluster streams lane:break --worker_count 4 -- --lane grpc
cluster disturbed lane:delay+repeat+reorder --worker_count 4 -- --lane grpc
cluster apart "" --worker_count 4 --parameter_server_count 0 --tcp --
cluster lost crash:worker_sent_stats#15@worker-1 --worker_count 4 --tcp -- --lane grpc
cluster kept crash:shard_kept_piece#25@ps-0 --worker_count 4 --
cluster between crash:shard_passed#12@ps-1 --worker_count 4 --tcp -- --lane grpc
cluster again crash:shard_passes#17@ps-0 --worker_count 4 --tcp --

# A clip needs a second pass. Towers of a worker share a report.
settings+=(--clip_global_norm 0.5 --optimizer momentum)
run_ok train whole2 "${settings[@]}" --num_workers 4
whole=$(digest whole2)
printf 'workers: {count: 2, devices: 2}\nparameter_servers: {count: 2}\n' >two.yaml
run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --config two.yaml --tcp --job_dir two -- "${digits[@]}" "${settings[@]}" --lane grpc
equal "digest of two workers with two towers over gRPC" "$(digest two)" "$whole"

settings=(--train_steps 30 --save_checkpoints_steps 12 --train_batch_size 8 --optimizer adam --exchange_precision int8)
run_ok train eight "${settings[@]}" --num_workers 4
whole=$(digest eight)
check "a line says what is rounded" grep -q "exchange_precision int8: sums of gradients and updates are rounded" err.txt
check "int8 has separate bits" test "$(digest here)" != "$whole"
run_ok train towers8 "${settings[@]}" --num_workers 2 --num_gpus 2 --parameter_server_count 3
equal "digest of two towers each, three shards" "$(digest towers8)" "$whole"
cluster disturbed8 lane:delay+repeat+reorder --worker_count 4 -- --lane grpc
cluster lost8 crash:worker_sent_stats#15@worker-1 --worker_count 4 --tcp --
cluster kept8 crash:shard_kept_piece#25@ps-0 --worker_count 4 --
run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --config two.yaml --tcp --job_dir two8 -- "${digits[@]}" "${settings[@]}"
equal "digest of two workers with two towers over gRPC" "$(digest two8)" "$whole"

run_fails 2 "precision|f32|bf16" train words "${settings[@]}" --precision int8
run_fails 2 "exchange_precision|local_steps" train local "${settings[@]}" --local_steps 2
run_fails 2 "exchange_precision|async" train async "${settings[@]}" --mode async --num_workers 2
run_fails 2 "exchange_precision|backup" train backup "${settings[@]}" --replicas_to_aggregate 1 --num_workers 2
run_fails 2 "exchange_precision|update_device" train device "${settings[@]}" --update_device cuda
run_fails 2 "exchange_precision was bf16" train whole "${digits[@]}" --train_steps 40 --train_batch_size 8 --optimizer adam \
    --num_workers 4
finish
