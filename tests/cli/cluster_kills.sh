#!/usr/bin/env bash
# Processes of a cluster die at every named point, two at once, at random moments, or stop and resume. The job
# continues automatically and ends with the digest of an undisturbed run.
# usage: cluster_kills.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 40 --save_checkpoints_steps 10 --eval_steps 20 --train_batch_size 8)
export XDG_RUNTIME_DIR=$work # sockets are below it
declare -A hit
data=("${digits[@]}")

survives() { # FAULT [flags]: a cluster that loses processes has the result of an undisturbed one
    local lane=()
    [[ " $* " != *' --tcp '* ]] || lane=(--lane grpc) # else workers of a host are a group, which begins anew
    rm -rf killed
    BELFRY_FAULT=$1 run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed \
        --parameter_server_count 2 --job_dir killed "${@:2}" -- "${data[@]}" "${settings[@]}" "${lane[@]}"
    ended_well "$@"
}
ended_well() { # FAULTS [flags]
    local line
    equal "digest with $*" "$(digest killed)" "$whole"
    for log in killed/logs/*.log; do
        while IFS= read -r line; do
            [[ "$line" != 'killed on purpose at '* ]] || hit[${line##* }]=$((${hit[${line##* }]:-0} + 1))
        done <"$log"
    done
}
all_survive() { # FAULTS [flags]: the same with a fault a role (tests/support/with_faults): a job loses them all
    local lane=()
    [[ " $* " != *' --tcp '* ]] || lane=(--lane grpc)
    rm -rf killed
    FAULTS=$1 run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed \
        --parameter_server_count 2 --job_dir killed "${@:2}" -- "$SOURCE/tests/support/with_faults" "$BUILD/tools/belfry" \
        train_and_evaluate --model_dir killed "${data[@]}" "${settings[@]}" "${lane[@]}"
    ended_well "$@"
    check "each of $* was killed" killed_all killed/logs "$1"
}

run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

# --- Every named point, in one process: those of a line in one job, at different steps
while read -r faults; do
    all_survive "${faults//=/=crash:}"
done <<'END'
worker-0=member_begins worker-1=worker_sends_stats#12 ps-0=shard_passes#35 ps-1=shard_snapshot#3 master-0=checkpoint_after_rename#4
ps-1=member_begins worker-1=tower_step#15 master-0=checkpoint_before_rename#3 ps-0=file_syncs#3
ps-0=shard_loads worker-0=worker_waits#10 master-0=evaluates#2 worker-1=tower_compute#25
master-0=master_gather worker-0=worker_reported#20 worker-1=input_reads#12 ps-0=shard_kept_piece#45
worker-1=worker_sent_stats#23 ps-0=shard_decides#13 master-0=file_writes#20 ps-1=file_writes#9
master-0=master_new_generation worker-0=tower_compute#5 ps-0=checkpoint_shard_written#2
worker-1=worker_reported#40 ps-0=shard_passes#20 master-0=master_saves#3
worker-0=worker_sends_stats#35 ps-0=shard_passed#21 master-0=master_finishes
END
# --- In all processes that reach it
for point in member_begins tower_step#15 worker_waits#21 shard_passes#22 shard_snapshot shard_loads; do
    survives "crash:$point"
done

# --- With a best checkpoint (the choice: keep_best.sh)
settings+=(--keep_best loss)
survives crash:master_counts_best#2
survives crash:master_states_best#3@master-0
settings=("${settings[@]::${#settings[@]}-2}")

# --- The same with tables: rows are requested again, and reported once
make_clicks
data=("${clicks[@]}")
dense=$whole
run_ok belfry train_and_evaluate --model_dir rows "${data[@]}" "${settings[@]}" --num_workers 2
whole=$(digest rows)
for lane in "" --tcp; do
    while read -r faults; do
        # shellcheck disable=SC2086 # no word, or a flag
        all_survive "${faults//=/=crash:}" $lane
    done <<'END'
worker-1=worker_rows_reported#18 worker-0=worker_reported#40 ps-1=shard_snapshot#3 master-0=master_saves#4
worker-0=worker_rows_reported#19 ps-1=shard_passes#90 ps-0=checkpoint_shard_written#3 worker-1=worker_sent_stats#35
worker-0=worker_waits#8 worker-1=tower_step#17 ps-0=shard_passed#110
END
    # shellcheck disable=SC2086
    survives crash:worker_rows_reported#61 $lane
done
survives crash:worker_rows_reported#58@worker-0 --parameter_server_count 0
# --- With state, which is updated after the norm of the complete model has arrived
data=("${any_digits[@]}" --model resnet --blocks 1 --width 4 --clip_global_norm 1)
run_ok belfry train_and_evaluate --model_dir residual "${data[@]}" "${settings[@]}" --num_workers 2
whole=$(digest residual)
all_survive "worker-1=crash:worker_sends_stats#12 ps-1=crash:shard_passes#200 worker-0=crash:worker_waits#18"
all_survive "worker-0=crash:worker_reported#45 worker-1=crash:worker_sent_stats#33"
data=("${digits[@]}")

# --- With local steps: a replacement trains all batches of its step again
settings+=(--local_steps 3 --optimizer adam)
run_ok train local "${settings[@]}" --num_workers 2
whole=$(digest local)
all_survive "worker-1=crash:tower_compute#41 worker-0=crash:worker_reported#40 ps-0=crash:shard_passes#33"
survives crash:tower_compute#64
survives crash:tower_compute#50@worker-0 --tcp
survives crash:tower_compute#50@worker-0 --parameter_server_count 0
settings=("${settings[@]::${#settings[@]}-4}")
whole=$dense

while read -r point; do
    printf '  %-26s killed %d\n' "$point" "${hit[$point]:-0}"
    check "a process was killed at $point" test "${hit[$point]:-0}" -gt 0
done < <(grep -rhoE 'bel_fault_point\("[a-z_]+"' "$SOURCE/src" | cut -d'"' -f2 | sort -u |
    grep -vxE 'serves|worker_exchanges|ddl_met|stored_before_last|worker_sent_part|relay_.*|shard_sent_.*|shard_takes_state')
# Those: serve.sh, cluster_exchanges.sh, test_ddl_hosts, store_jobs.sh, cluster_room.sh, cluster_relays.sh, copies.sh

# --- Back from the last step, which is soon made again
settings=(--train_steps 40 --save_checkpoints_steps 30 --train_batch_size 8)
survives crash:checkpoint_shard_written#2@ps-1
settings=(--train_steps 40 --save_checkpoints_steps 10 --eval_steps 20 --train_batch_size 8)

# --- Other shapes of a cluster
survives crash:shard_passes#25@worker-0 --parameter_server_count 0 # its shard is lost with it
all_survive "worker-1=crash:worker_sends_stats#5 ps-0=crash:shard_passed#23 master-0=crash:master_saves#3" --tcp
survives crash:shard_passed#23@ps-1 --evaluator_count 1
cat >trains.yaml <<'YAML'
master: {trains: true}
workers: {count: 1}
parameter_servers: {count: 2}
YAML
rm -rf killed
run_ok env BELFRY_FAULT=crash:tower_step#12@master-0 timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --config trains.yaml \
    --job_dir killed -- "${digits[@]}" "${settings[@]}"
equal "digest when a master that trains was killed" "$(digest killed)" "$whole"

# --- Random kills
run_ok "$SOURCE/bench/soak" --build "$BUILD" --kills "${BELFRY_SOAK_KILLS:-5}" --seed 11 --steps "${BELFRY_SOAK_STEPS:-300}"
cat out.txt

# --- First the master, whose successor resumes from an odd step, then a worker, which it admits
settings=(--train_steps 40 --save_checkpoints_steps 5 --train_batch_size 8)
rm -rf killed
BELFRY_FAULT=crash:checkpoint_after_rename#2@master-0,slow:tower_step#40 belfry local train --distributed \
    --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${settings[@]}" >out.txt 2>err.txt &
supervisor=$!
until grep -qs "taking over a job that runs" killed/logs/*.log; do
    kill -0 "$supervisor" || break
    nap 0.02
done
kill -KILL "$(roles worker 1)"
code=0
{ wait "$supervisor" || code=$?; } 2>/dev/null
equal "exit code without a master and a worker" "$code" 0
check "the worker is admitted" grep -q "worker 1 is back" killed/logs/*.log
equal "digest without a master and a worker" "$(digest killed)" "$whole"

# --- A stopped process is replaced, and does no harm when it wakes up
cat >silent.yaml <<'YAML'
workers: {count: 2}
parameter_servers: {count: 2}
limits: {silence_timeout: 3}
YAML
settings=(--train_steps 300 --save_checkpoints_steps 50 --train_batch_size 8)
run_ok train long "${settings[@]}" --num_workers 2
export BELFRY_FAULT=slow:tower_step#8 # long enough for events in the middle
start_silent() { # MODEL_DIR: starts a job and waits for its middle
    belfry local train --config silent.yaml --job_dir "$1" -- "${digits[@]}" "${settings[@]}" \
        >silent.txt 2>&1 &
    supervisor=$!
    until [ -f "$1/ckpt-00000050/manifest.json" ]; do
        kill -0 "$supervisor" || break
        nap 0.02
    done
}
end_silent() {
    code=0
    { wait "$supervisor" || code=$?; } 2>/dev/null
    cp silent.txt err.txt
}
start_silent silent
kill -STOP "$(roles worker 1)"
end_silent
equal "exit code with a silent member" "$code" 0
check "a silent member is named" grep -q "lost worker 1 .* nothing heard of it for" silent.txt
check "it is replaced" grep -q "worker 1 is back" silent.txt
equal "digest with a silent member" "$(digest silent)" "$(digest long)"
start_silent master # no other process reports a silent master, or a member that its successor never met
kill -STOP "$(roles master 0)"
end_silent
equal "exit code with a silent master" "$code" 0
check "a silent master is named" grep -q "master (pid [0-9]*) stands still since 6 s: it is killed" silent.txt
equal "digest with a silent master" "$(digest master)" "$(digest long)"
start_silent both
kill -STOP "$(roles ps 1)"
kill -KILL "$(roles master 0)"
end_silent
equal "exit code with a silent member and another master" "$code" 0
check "a member that was never met is named" grep -q "ps 1 (pid [0-9]*) stands still since 6 s: it is killed" silent.txt
equal "digest with a silent member and another master" "$(digest both)" "$(digest long)"

# Starts single roles, as another launcher would: no supervisor kills the stopped one.
role() { # ROLE INDEX INCARNATION
    local task
    task=$(printf '{"role":"%s","index":%d,"incarnation":%d,"master":"unix:%s/m","listen":"unix:%s/%s",
        "worker_count":2,"parameter_server_count":2,"recovers":1,"silence_timeout_ms":60000}' \
        "$1" "$2" "$3" "$work" "$work" "$1-$2")
    [ "$1" != master ] || task=${task/\/master-0/\/m}
    BELFRY_TASK=$task exec timeout -k 5 "$patience" "$BUILD/tools/belfry" train_and_evaluate --model_dir own \
        "${digits[@]}" "${settings[@]}"
}
for member in "ps 0 0" "ps 1 0" "worker 0 0"; do
    read -r -a words <<<"$member"
    role "${words[@]}" >>members.txt 2>&1 &
done
role worker 1 0 >old.txt 2>&1 &
old=$!
role master 0 0 >out.txt 2>err.txt &
master=$!
until [ -f own/ckpt-00000050/manifest.json ]; do
    kill -0 "$master" || break
    nap 0.02
done
stopped=$(roles worker 1)
kill -STOP "$stopped"
role worker 1 1 >>members.txt 2>&1 &
until grep -q "worker 1 is back" err.txt; do
    kill -0 "$master" || break
    nap 0.02
done
kill -CONT "$stopped"
old_code=0
{ wait "$old" || old_code=$?; } 2>/dev/null
code=0
wait "$master" || code=$?
wait
equal "exit code of the master" "$code" 0
check "the replaced process ends with an error" test "$old_code" -ne 0
check "it reports why" grep -q "was replaced by incarnation 1" old.txt
equal "digest when a replaced process wakes up" "$(digest own)" "$(digest long)"

unset BELFRY_FAULT

# --- Too many restarts
run_fails 1 "worker 0 (pid|was killed by signal 9" env BELFRY_FAULT=crash:tower_step@worker-0 \
    "$BUILD/tools/belfry" local train --distributed --restarts 0 --job_dir limit -- "${digits[@]}" \
    "${settings[@]}"
check "no process is left" nothing_left

finish
