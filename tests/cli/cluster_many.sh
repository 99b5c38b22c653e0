#!/usr/bin/env bash
# 64 workers on one host, through shared memory, over gRPC and through relays. Hollow ones (bench/hollow.c) beside a
# real master and a real shard: memory of both that grows with the number of workers, not with its square, and the
# frames that the protocol says. Real ones: the bits of one process.
# usage: cluster_many.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# Peak memory of master and shard in MB, without the decimals after the first.
peaks() { awk -F '|' '$2 + 0 > 0 { split($7, master, ","); split($8, shard, ","); print master[1] + 0, shard[1] + 0 }' out.txt; }
hollow() { run_ok timeout -k 5 "$patience" "$BUILD/bench/bench_hollow" "$@" --steps 20; }
grows() { # by at most 0.2 MB a worker
    awk -v most=$((48 * 2)) 'NR == 1 { m = $1; s = $2 } NR == 2 { exit !(($1 - m) * 10 < most && ($2 - s) * 10 < most) }'
}
for lane in shm grpc; do
    hollow 16 1 10 --lane "$lane"
    few_peaks=$(peaks)
    hollow 64 1 10 --lane "$lane"
    check "memory of master and server over $lane" grows <<<"$few_peaks
$(peaks)"
    # 22 steps of 64 workers with one chunk: a report and step statistics up, after one pull; over gRPC values and a
    # version down. Shared memory needs no frames of values, and payloads are read in place.
    down=$((23 * 64))
    [ "$lane" = shm ] || down=$((2 * down))
    check "frames over $lane" grep -q "^frames $((64 + 22 * 64 * 2)) and $down," out.txt
done

# Through 8 relays a server has 8 lanes. 56 workers reach their relay over gRPC, 8 in their process without frames of
# values.
hollow 64 1 10 --lane grpc --fan_in 8
check "relays" grep -q 'fan_in 8: 8 relays' out.txt
check "frames to relays" grep -q "^frames $((64 + 22 * 64 * 2)) and $((2 * 23 * 56 + 23 * 8))," out.txt
less() { awk 'NR == 1 { most = $2 + 2 } NR == 2 { exit !($2 < most) }'; } # memory of a server, in MB
check "memory of a server with 8 relays" less <<<"$few_peaks
$(peaks)"

# All connections break three times: nothing is lost or sent twice, and no process calls more than nine times.
for fan_in in "" "--fan_in 8"; do
    read -ra words <<<"$fan_in"
    hollow 64 1 10 --lane grpc --drops 3 "${words[@]}"
    check "calls after broken connections $fan_in" grep -qE \
        '^drops 3: .*; [1-9] calls of the master and [0-9] streams of a lane at most' out.txt
done

# Up: sums of 22 steps, and 24 bytes of statistics with each. Down: the first values, then a version of 22 steps.
for row in "f32 80000" "bf16 40000" "int8 21250"; do
    read -r precision bytes <<<"$row"
    hollow 64 1 10 --parameters 20000 --lane grpc --exchange_precision "$precision"
    check "bytes with $precision" grep -q \
        ", bytes $((22 * 64 * (bytes + 24))) and $((64 * 80000 + 22 * 64 * bytes)), to and" out.txt
done

few=(--train_steps 4 --train_batch_size 1 --num_gpus 1)
run_ok train one "${few[@]}" --num_workers 64
run_ok belfry local train --distributed --worker_count 64 --parameter_server_count 2 --job_dir many -- "${digits[@]}" \
    "${few[@]}"
equal "digest of 64 workers" "$(digest many)" "$(digest one)"
finish
