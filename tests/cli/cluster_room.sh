#!/usr/bin/env bash
# A model whose reports are more than a server has room for, over gRPC: the bits of one process, also when processes
# die while parts of a report wait for their turn; and memory of a server that does not grow with every worker's report.
# usage: cluster_room.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
# 38 MB of parameters; all reports of a step are twice that.
settings=(--hidden_units "3072,3072" --train_steps 4 --train_batch_size 2 --num_gpus 1 --clip_global_norm 1)
run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

finishes() { # FAULT [flags] [-- flags]: killed there, and with the bits of an undisturbed run
    rm -rf room
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count 1 --job_dir room "${@:2}" -- "${digits[@]}" "${settings[@]}" --lane grpc
    equal "digest with $1" "$(digest room)" "$whole"
    check "killed: $1" grep -qs "^killed on purpose at " room/logs/*.log
}
finishes crash:worker_sent_part#14@worker-1
finishes crash:worker_sent_part#15@worker-0 --tcp
finishes crash:shard_passed#16@ps-0

# 64 workers with 2 MB each: 128 MB of reports. The room is 32 MB, and gRPC has up to 1 MB of each stream under way.
run_ok timeout -k 5 "$patience" "$BUILD/bench/bench_hollow" 64 1 1 --parameters 5e5 --lane grpc --steps 10
peak=$(awk -F '|' '$2 + 0 > 0 { split($8, shard, ","); print int(shard[1]) }' out.txt)
check "memory of a server with 64 workers: $peak MB" test "$peak" -lt 130
finish
