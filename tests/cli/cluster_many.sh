#!/usr/bin/env bash
# 64 workers on one host, through shared memory and over gRPC: the bits of one process, and memory of the master and of
# the server that grows with the number of workers, not with its square.
# usage: cluster_many.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# Rows of bench/many_workers: workers, shards, variables, lanes, and the peak memory of master and server in MB.
run_ok env STEPS=20 timeout -k 5 300 "$SOURCE/bench/many_workers" "$BUILD" 16 64 16g 64g
check "four jobs" test "$(grep -cE '^\| (16|64) ' out.txt)" = 4
grows() { # LANE: by at most 0.2 MB a worker
    awk -F '|' -v lane="$1" '
        index($5, lane) && $2 + 0 == 16 { master = $6; server = $7 }
        index($5, lane) && $2 + 0 == 64 { exit !($6 - master < 48 * 0.2 && $7 - server < 48 * 0.2) }' out.txt
}
for lane in shm grpc; do
    check "memory of master and server over $lane" grows "$lane"
done

few=(--train_steps 4 --train_batch_size 1 --num_gpus 1)
run_ok train one "${few[@]}" --num_workers 64
run_ok belfry local train --distributed --worker_count 64 --parameter_server_count 2 --job_dir many -- "${digits[@]}" \
    "${few[@]}"
equal "digest of 64 workers" "$(digest many)" "$(digest one)"
finish
