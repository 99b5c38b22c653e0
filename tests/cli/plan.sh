#!/usr/bin/env bash
# belfry plan: its counts are those of hollow jobs, and its table those of the flags; its processor time is that of real
# jobs; kept figures; the page; bad input.
# usage: plan.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_STATE_HOME=$work/state TMPDIR=$work/scratch
mkdir scratch
flags=(--columns none --train_files "$TRAIN_CSV" --hidden_units 32 --train_batch_size 16)
plan() { # FLAGS of plan…: with --json; the object is in out.txt
    run_ok belfry plan --json "$@" -- "${flags[@]}" "${more[@]}"
}
value() { # EXPRESSION over p, the object, and r, the row of the last number of workers
    python3 -c 'import json, sys
p = json.load(open("out.txt"))
r = p["workers"][-1]
print(eval(sys.argv[1]))' "$1"
}
more=()

# bench_hollow fails if frames and bytes are not those that the layout predicts.
for lane in shm grpc; do
    for precision in f32 bf16 int8; do
        for deal in "4 1" "16 2"; do
            read -ra counts <<<"$deal"
            run_ok timeout -k 5 "$patience" "$BUILD/bench/bench_hollow" "${counts[@]}" 10 --parameters 40000 --lane "$lane" \
                --exchange_precision "$precision" --steps 5
        done
    done
done

run_ok timeout -k 5 "$patience" "$BUILD/bench/bench_hollow" 4 1 10 --lane grpc --fan_in 2 --steps 5 --parameters 40000

# The table, and its lines for people.
run_ok belfry plan --workers 1,2 -- "${flags[@]}"
equal "rows" "$(grep -cE '^ +[12] ' out.txt)" 2
run_ok belfry plan --workers 1 -- "${flags[@]}" --train_steps 100000
check "it names what it measured" grep -qE '^measured: .*, 1 worker of 1 thread: computing [0-9.]+ ms' out.txt
check "it names its assumptions" test "$(grep -c '^assumed: ' out.txt)" -ge 4
check "it writes nothing here" test ! -e model
check "the scratch folder is gone" test -z "$(ls scratch)"

# Kept figures give the same plan again; damaged ones and --calibrate measure anew.
plan --workers 1,2
equal "measured by an earlier plan" "$(value '{m["kept"] for m in p["measured"]}')" "{True}"
cp out.txt first.txt
plan --workers 1,2
check "the same plan" cmp out.txt first.txt
for file in state/belfry/plan/steps-*; do echo '{"belfry":"0.0.1"}' >"$file"; done
plan --workers 1
equal "damaged figures do not count" "$(value '{m["kept"] for m in p["measured"]}')" "{False}"
sed -i 's/"way":[0-9]*/"way":0/' state/belfry/plan/steps-*
plan --workers 1
equal "figures of another way of measuring do not count" "$(value '{m["kept"] for m in p["measured"]}')" "{False}"

# Bytes of digits: 64 × 32 + 32 + 32 × 10 + 10 floats, 16 aligned; 24 bytes of statistics.
plan --workers 1..4
equal "numbers of workers" "$(value '[w["workers"] for w in p["workers"]]')" "[1, 2, 4]"
equal "parameters" "$(value 'p["parameters"]')" 2410
equal "examples of a step" "$(value 'r["examples"]')" 64
equal "a worker's frames" "$(value '(r["worker"]["up_frames"], r["worker"]["down_frames"])')" "(2, 1)"
equal "shared memory brings no values" "$(value 'r["worker"]["down_bytes"]')" 0
equal "no link limits one host" "$(value 'r["parts_ms"]["shard_link"] + r["parts_ms"]["latency"]')" 0
plan --workers 3 --bandwidth 1Gb --latency 2ms
equal "values of a separate host" "$(value 'r["worker"]["up_bytes"] - r["worker"]["down_bytes"]')" 24
equal "latency" "$(value 'r["parts_ms"]["latency"]')" 4
equal "a shard's link" \
    "$(value 'abs(r["parts_ms"]["shard_link"] * 1e6 - 3 * 8 * (r["worker"]["down_bytes"] + 24)) < 1')" True
equal "the bottleneck" "$(value 'r["bottleneck"] == max(r["parts_ms"], key=r["parts_ms"].get)')" True
full=$(value 'r["worker"]["down_bytes"]')
more=(--exchange_precision bf16)
plan --workers 3 --bandwidth 1Gb
equal "bf16 halves values" "$(value "2 * r['worker']['down_bytes'] - $full")" 0
more=(--exchange_precision int8)
plan --workers 2 --bandwidth 1Mb
equal "no part is longer than the step" "$(value 'max(r["parts_ms"].values()) <= r["step_ms"]')" True
more=(--min_shard_bytes 0)
plan --workers 2 --parameter_servers 2
equal "servers" "$(value '(p["shards"], r["all"]["up_frames"])')" "(2, $(value '2 * r["worker"]["up_frames"]'))"
more=()
plan --workers 4 --bandwidth 1Gb
without=$(value '(r["relays"], r["shard"]["up_frames"])')
more=(--fan_in 2)
plan --workers 4 --bandwidth 1Gb
equal "relays" "$without $(value '(r["relays"], r["relay_levels"], r["shard"]["up_frames"])')" "(0, 8) (2, 1, 4)"
equal "a relay has the bytes of one reporter and of one sum" \
    "$(value 'r["relay"]["up_bytes"] - 2 * r["worker"]["up_bytes"]')" 0
check "a level of relays is a hop" test "$(value 'round(r["parts_ms"]["latency"], 9)')" = 0.2
more=(--min_shard_bytes 0)
for copies in 0 1; do
    echo "{workers: {count: 1}, parameter_servers: {count: 2, copies: $copies}}" >copies.yaml
    plan --workers 1 --config copies.yaml
    value '(r["parts_ms"]["copies"] > 0, round(r["host_recovery_seconds"]) > 300)' >copies.$copies
done
equal "copies cost a sum and an update, and save no steps on one host" "$(cat copies.0 copies.1)" \
    $'(False, True)\n(True, True)'
for hosts in a "a, b"; do
    echo "{workers: {count: 1}, parameter_servers: {count: 2, copies: 1, hosts: [$hosts]}}" >copies.yaml
    plan --workers 1 --config copies.yaml
    value 'round(r["host_recovery_seconds"]) > 300'
done >spread
equal "copies save steps on two hosts" "$(xargs <spread)" "True False"
back='r["process_recovery_seconds"] > 300'
plan --workers 1
here=$(value "$back")
plan --workers 1 --bandwidth 1Gb
equal "a killed server's state is kept on one host" "$here $(value "$back")" "False True"
more=()
plan --workers 4 --bandwidth 1Gb --price 1.20 --report plan.html
equal "hosts that are paid" "$(value 'r["hosts"]')" 5
equal "cost of an epoch" "$(value 'abs(r["epoch_cost"] - r["epoch_seconds"] / 3600 * 5 * 1.2) < 1e-9')" True
equal "an epoch" "$(value 'round(r["epoch_seconds"] * r["examples_per_second"])')" "$(($(wc -l <"$TRAIN_CSV") - 1))"
equal "charts of the page" "$(grep -c '<figure>' plan.html)" 4
check "the page names its axis" grep -q '>workers</text>' plan.html
cat >cluster.yaml <<'END'
machines: {box: {cores: 2}}
workers: {count: 1, machine: box, hosts: [a]}
parameter_servers: {count: 1, machine: box, hosts: [b]}
END
plan --workers 4 --config cluster.yaml
equal "hosts of a file: four workers share two cores" "$(value 'round(r["parts_ms"]["latency"], 9)')" 0.1
sed -i 's/hosts: \[a\]/hosts: [a, c]/; s/workers: {count: 1/workers: {count: 2/' cluster.yaml
plan --workers 4 --config cluster.yaml
equal "two workers on each of two hosts add there" "$(value 'r["relays"]')" 2

# Processor time of two workers and a server: that of a long job less that of a short one. A step's kernels take most of
# it, and other load of the machine changes it by less than half.
more=(--hidden_units "512,512" --train_batch_size 256 --num_threads 1 --num_epochs 1000)
train_for() { # STEPS: seconds of processor time, in thousandths
    local times
    TIMEFORMAT='%U %S'
    times=$({ time belfry local train --quiet --distributed --worker_count 2 --job_dir "real$1" -- "${flags[@]}" \
        "${more[@]}" --no_report --save_checkpoints_secs 0 --train_steps "$1" >real.txt 2>&1; } 2>&1)
    awk '{ printf "%d\n", ($1 + $2) * 1000 }' <<<"$times"
}
plan --workers 2
planned=$(value 'sum(r["processor_ms"].values())')
real=$(awk -v long="$(train_for 320)" -v short="$(train_for 20)" 'BEGIN { print (long - short) / 300 }')
check "processor time of a step: planned $planned ms, real $real ms" \
    awk -v planned="$planned" -v real="$real" 'BEGIN { exit !(planned > real / 2 && planned < real * 2) }'
more=()
# The same of a server whose workers compute nothing, and report over gRPC. The workers share a thread for gRPC here,
# which those of a plan do not.
run_ok timeout -k 5 "$patience" "$BUILD/bench/bench_hollow" 16 1 10 --lane grpc --steps 100 --plan state/belfry/plan
# shellcheck disable=SC2016 # fields of awk
check "processor time of a hollow job's server" awk '/^planned and measured: shards/ { found = 1; planned = $5; real = $7 }
    END { exit !(found && planned > real / 3 && planned < real * 3) }' out.txt
run_fails_hollow() { # without kept figures
    capture timeout -k 5 "$patience" "$BUILD/bench/bench_hollow" 2 1 1 --steps 5 --plan nowhere
    [ "$code" -eq 1 ] && grep -q "no figures of this machine in nowhere" err.txt
}
check "a hollow job needs a plan's figures to predict" run_fails_hollow

# Bad input.
refused() { # PARTS ARGUMENTS…
    run_fails 2 "$1" belfry plan "${@:2}"
}
refused "--workers: expected numbers in [1, 1024] or FIRST..LAST, got \"0\"" --workers 0 -- "${flags[@]}"
refused "got \"4..2\"" --workers 4..2 -- "${flags[@]}"
refused "--bandwidth: expected bits a second|got \"10\"" --bandwidth 10 -- "${flags[@]}"
refused "--bandwidth: expected|got \"0Gb\"" --bandwidth 0Gb -- "${flags[@]}"
refused "--latency: expected a time|got \"1s\"" --latency 1s -- "${flags[@]}"
refused "--latency has no effect on one host" --latency 1ms -- "${flags[@]}"
refused "--price" --price -1 -- "${flags[@]}"
refused "plan cannot model --mode async" -- "${flags[@]}" --mode async
refused "plan cannot model --local_steps 4" -- "${flags[@]}" --local_steps 4
refused "plan cannot model --accumulate_steps 2" -- "${flags[@]}" --accumulate_steps 2
refused "unexpected argument \"program\"" -- program
refused "parameter_servers" --parameter_servers 0 -- "${flags[@]}"
make_clicks
refused "plan cannot model tables" -- --model wide_deep --train_files clicks-train.csv --id_columns user,item \
    --class_count 2 --optimizer adagrad
finish
