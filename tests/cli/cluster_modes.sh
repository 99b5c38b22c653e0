#!/usr/bin/env bash
# Modes of aggregation: backups, rounds, async and bounded, in one process and over processes, with disturbed
# lanes and killed processes. Exact results are compared by digest, the rest by counts.
# usage: cluster_modes.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 120 --save_checkpoints_steps 40 --train_batch_size 8)
export XDG_RUNTIME_DIR=$work # sockets are below it

cluster() { # WORKERS MODEL [cluster's flags] -- [flags]
    local workers=$1 model=$2
    shift 2
    rm -rf "$model"
    local places=()
    while [ "$1" != -- ]; do
        places+=("$1")
        shift
    done
    run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count "$workers" \
        --job_dir "$model" "${places[@]}" -- "${digits[@]}" "${settings[@]}" "${@:2}"
}

loses() { # FAULTS [flags]: three workers and two servers, each with a fault (tests/support/with_faults)
    rm -rf killed
    FAULTS=$1 run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 3 \
        --parameter_server_count 2 --job_dir killed -- "$SOURCE/tests/support/with_faults" "$BUILD/tools/belfry" \
        train_and_evaluate --model_dir killed "${digits[@]}" "${settings[@]}" "${@:2}"
    has_learnt "killed with $*"
    check "each of $* was killed" killed_all killed/logs "$1"
}

has_learnt() { # WHAT
    local accuracy
    accuracy=$(sed -n 's/^accuracy 0\.\(..\).*/\1/p' out.txt)
    check "$1: accuracy of ${accuracy:-no} %" test "${accuracy:-0}" -gt 40
}

counted() { # WHAT STEPS: the number of counted reports is that of the steps, each once
    equal "$1: reports counted" "$(sed -nE 's/^([0-9]+) reports counted.*/\1/p' err.txt)" "$2"
}

dropped() {
    sed -nE 's/.*; ([0-9]+) came too late.*/\1/p' err.txt
}

# --- Exact results
run_ok train five "${settings[@]}" --num_workers 5
run_ok train rounds "${settings[@]}" --num_workers 3 --replicas_to_aggregate 5
equal "5 reports of 3 workers" "$(digest rounds)" "$(digest five)"
cluster 2 rounds --parameter_server_count 2 -- --replicas_to_aggregate 5
equal "5 reports of 2 processes" "$(digest rounds)" "$(digest five)"
run_ok train one "${settings[@]}" --num_gpus 2
for mode in async bounded; do
    run_ok train alone "${settings[@]}" --num_gpus 2 --mode "$mode" --parameter_server_count 3
    equal "$mode with one worker" "$(digest alone)" "$(digest one)"
    rm -rf alone
done
cluster 1 alone --parameter_server_count 2 -- --num_gpus 2 --mode async
equal "async with one process" "$(digest alone)" "$(digest one)"

# --- Every mode in every shape
for mode in "--mode async" "--mode bounded --max_staleness 1" "--replicas_to_aggregate 2" \
    "--mode async --replicas_to_aggregate 2"; do
    steps=120
    case $mode in *aggregate*) steps=240 ;; esac
    read -ra flags <<<"$mode"
    rm -rf many
    run_ok train many "${settings[@]}" --num_workers 3 --parameter_server_count 2 "${flags[@]}"
    counted "$mode, one process" "$steps"
    for shape in "--parameter_server_count 2" "--parameter_server_count 0" "--parameter_server_count 2 --tcp"; do
        read -ra places <<<"$shape"
        cluster 3 many "${places[@]}" -- "${flags[@]}"
        counted "$mode, $shape" "$steps"
        has_learnt "$mode, $shape"
    done
done

# --- Disturbed lanes
export BELFRY_FAULT=lane:delay+repeat+reorder
for mode in "--mode async" "--replicas_to_aggregate 2"; do
    read -ra flags <<<"$mode"
    cluster 3 many --parameter_server_count 2 -- "${flags[@]}"
    has_learnt "$mode, disturbed"
    BELFRY_FAULT=lane:delay+repeat+reorder+break cluster 3 many --parameter_server_count 2 --tcp -- "${flags[@]}"
    has_learnt "$mode, disturbed over TCP"
done
unset BELFRY_FAULT

# --- Slow workers
export BELFRY_FAULT=slow:tower_step#5,slow:tower_step#100@worker-2
settings=(--train_steps 30 --train_batch_size 8)
cluster 3 slow -- --replicas_to_aggregate 2
counted "a backup" 60
check "the slow worker's reports are dropped" test "$(dropped)" -gt 0
cluster 3 slow -- --mode bounded
check "no worker runs ahead of the slow one" grep -q "at most [0-4];" err.txt
unset BELFRY_FAULT

# --- The data once: a block that a worker was granted and lost is granted again
settings=(--num_epochs 1 --train_batch_size 8 --save_checkpoints_steps 50)
cluster 3 epoch --parameter_server_count 2 -- --mode async
counted "an epoch" 180 # batches of 8 in 1,438 records
export BELFRY_FAULT=crash:tower_step#9@worker-1
cluster 3 epoch --parameter_server_count 2 -- --mode async
counted "an epoch with a worker that was replaced" 180
# Going back omits the steps under way, so the data end earlier than planned.
for point in shard_passes#120@ps-1 shard_passes#170@ps-0 shard_decides#175; do
    BELFRY_FAULT=crash:$point cluster 3 epoch --parameter_server_count 2 -- --mode async
    has_learnt "an epoch, killed at $point"
done
for point in shard_passes#40@ps-1 shard_decides#55 tower_step#18@worker-1; do # of some 60 steps
    BELFRY_FAULT=crash:$point cluster 3 epoch --parameter_server_count 2 -- --replicas_to_aggregate 2
done
unset BELFRY_FAULT

# --- Two parts: granted and unused blocks are left out, none is used twice
settings=(--train_steps 40 --train_batch_size 8)
cluster 3 parts -- --mode async
block=$(grep -oE '"first_block": [0-9]+' parts/ckpt-00000040/manifest.json | tail -n 1 | grep -oE '[0-9]+')
check "first block $block of the next part" test "$block" -ge 40 -a "$block" -le 46
settings=(--train_steps 80 --train_batch_size 8)
run_ok train parts "${settings[@]}" --num_workers 3 --mode async
counted "the other part" 40
run_fails 2 "mode|async" train parts --train_steps 120 --train_batch_size 8 --num_workers 3

# --- Killed processes
settings=(--train_steps 120 --save_checkpoints_steps 40 --train_batch_size 8)
for mode in "--mode async" "--mode bounded --max_staleness 1" "--replicas_to_aggregate 2"; do
    read -ra flags <<<"$mode"
    while read -r faults; do
        loses "${faults//=/=crash:}" "${flags[@]}"
    done <<'END'
worker-1=tower_step#15 worker-0=worker_reported#40 ps-1=checkpoint_shard_written#2
worker-1=worker_sends_stats#12 ps-0=shard_passes#30 master-0=master_saves#2
worker-1=worker_sent_stats#23 worker-0=worker_waits#18 ps-0=shard_passed#31
ps-0=shard_decides#13 worker-2=tower_step#30
END
    for point in tower_step#15 shard_passes#22; do # in all that reach it
        BELFRY_FAULT=crash:$point cluster 3 killed --parameter_server_count 2 -- "${flags[@]}"
        has_learnt "$mode, killed at $point"
    done
done

# --- A parameter server is killed repeatedly, with unread frames of a late worker
BELFRY_FAULT='slow:tower_compute#10,slow:worker_sent_stats#100@worker-2' timeout -k 5 "$patience" "$BUILD/tools/belfry" local \
    train --distributed --worker_count 3 --parameter_server_count 2 --restarts 1000 --job_dir lossy -- "${digits[@]}" \
    --train_batch_size 8 --train_steps 100000 --save_checkpoints_steps 20 --replicas_to_aggregate 2 \
    >out.txt 2>err.txt </dev/null &
lossy=$!
killed=
for _ in $(seq 5); do
    server=$(roles ps 1)
    while kill -0 "$lossy" 2>/dev/null && { [ -z "$server" ] || [ "$server" = "$killed" ]; }; do
        nap 0.02
        server=$(roles ps 1)
    done
    sleep 0.6 # it dies at a random moment of the training
    kill -KILL "$server" 2>/dev/null || break
    killed=$server
done
kill -TERM "$lossy" 2>/dev/null || true
code=0
wait "$lossy" || code=$?
equal "a job whose server is killed five times, then stopped" "$code" 143

# --- A master that begins after everything is done and all others have exited
settings=(--train_batch_size 8)
for mode in "--mode async --train_steps 30" "--replicas_to_aggregate 2 --train_steps 30" "--mode async --num_epochs 1"; do
    read -ra flags <<<"$mode"
    cluster 3 over --parameter_server_count 2 -- "${flags[@]}"
    wait=60000 # only members know the end of the input, so they are waited for, but not for ever
    [[ $mode != *epochs* ]] || wait=500
    task='{"role":"master","index":0,"incarnation":1,"master":"unix:'$work'/m","listen":"unix:'$work'/m",
        "worker_count":3,"parameter_server_count":2,"recovers":1,"join_timeout_ms":'$wait'}'
    run_ok env BELFRY_TASK="$task" timeout -k 5 "$patience" "$BUILD/tools/belfry" train_and_evaluate --model_dir over \
        "${digits[@]}" "${settings[@]}" "${flags[@]}"
    check "$mode: nothing is left" grep -q "nothing to train" err.txt
done

# --- Impossible settings
run_fails 2 "replicas_to_aggregate is 4|3 workers" train bad --train_steps 10 --num_workers 3 --mode async \
    --replicas_to_aggregate 4
run_fails 2 "worker 1 has 2 towers" train bad --train_steps 10 --num_workers 2 --towers_of_workers 1,2 \
    --mode async
run_fails 2 "mode|sync" train bad --train_steps 10 --mode sometimes
finish
