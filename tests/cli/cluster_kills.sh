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
    local point
    rm -rf killed
    run_ok env BELFRY_FAULT="$1" timeout -k 5 120 "$BUILD/tools/belfry" local train --distributed \
        --parameter_server_count 2 --job_dir killed "${@:2}" -- "${data[@]}" "${settings[@]}"
    equal "digest with $*" "$(digest killed)" "$whole"
    while read -r point; do
        hit[$point]=$((${hit[$point]:-0} + 1))
    done < <(sed -n 's/^killed on purpose at //p' killed/logs/*.log)
}

run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

# --- Every named point, in one process and in all that reach it
for point in member_begins@worker-0 member_begins@ps-1 tower_step#15@worker-1 worker_reported#40@worker-0 \
    worker_sends_stats#12@worker-1 worker_sent_stats#23@worker-0 worker_waits#18@worker-0 shard_loads@ps-0 shard_passes#30@ps-0 \
    shard_passed#31@ps-0 shard_kept_piece#25@ps-0 shard_decides#13 shard_snapshot#2@ps-1 checkpoint_shard_written#2@ps-0 \
    master_gather master_new_generation master_saves#2 evaluates#3@master-0 checkpoint_before_rename#2 \
    checkpoint_after_rename#3 master_finishes file_writes#9@ps-1 file_writes#20@master-0 \
    file_syncs#3@ps-0 input_reads#12@worker-1 tower_compute#17@worker-0 \
    member_begins tower_step#15 worker_waits#21 shard_passes#22 shard_snapshot shard_loads; do
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
for point in worker_rows_reported#58@worker-1 worker_rows_reported#59@worker-0 worker_rows_reported#61 \
    worker_reported#40@worker-0 worker_sent_stats#23@worker-0 worker_waits#18@worker-0 tower_step#15 \
    shard_passes#90@ps-1 shard_passed#91@ps-0 shard_snapshot#2@ps-1 checkpoint_shard_written#2@ps-0 master_saves#2; do
    survives "crash:$point"
    survives "crash:$point" --tcp
done
survives crash:worker_rows_reported#58@worker-0 --parameter_server_count 0
# --- With state, which is updated after the norm of the complete model has arrived
data=("${any_digits[@]}" --model resnet --blocks 1 --width 4 --clip_global_norm 1)
run_ok belfry train_and_evaluate --model_dir residual "${data[@]}" "${settings[@]}" --num_workers 2
whole=$(digest residual)
for point in worker_reported#45@worker-0 worker_sends_stats#12@worker-1 worker_sent_stats#23@worker-0 worker_waits#18@worker-1 \
    shard_passes#40@ps-1; do
    survives "crash:$point"
done
data=("${digits[@]}")

# --- With local steps: a replacement trains all batches of its step again
settings+=(--local_steps 3 --optimizer adam)
run_ok train local "${settings[@]}" --num_workers 2
whole=$(digest local)
for point in tower_compute#41@worker-1 tower_compute#64 worker_reported#40@worker-0 shard_passes#30@ps-0; do
    survives "crash:$point"
done
survives crash:tower_compute#50@worker-0 --tcp
survives crash:tower_compute#50@worker-0 --parameter_server_count 0
settings=("${settings[@]::${#settings[@]}-4}")
whole=$dense

while read -r point; do
    printf '  %-26s killed %d\n' "$point" "${hit[$point]:-0}"
    check "a process was killed at $point" test "${hit[$point]:-0}" -gt 0
done < <(grep -rhoE 'bel_fault_point\("[a-z_]+"' "$SOURCE/src" | cut -d'"' -f2 | sort -u |
    grep -vxE 'worker_exchanges|ddl_met|stored_before_last|worker_sent_part|relay_.*')
# Those: cluster_exchanges.sh, test_ddl_hosts, store_jobs.sh, cluster_room.sh, cluster_relays.sh

# --- Back from the last step, which is soon made again
settings=(--train_steps 40 --save_checkpoints_steps 30 --train_batch_size 8)
survives crash:checkpoint_shard_written#2@ps-1
settings=(--train_steps 40 --save_checkpoints_steps 10 --eval_steps 20 --train_batch_size 8)

# --- Other shapes of a cluster
survives crash:shard_passes#25@worker-0 --parameter_server_count 0 # its shard is lost with it
survives crash:worker_sends_stats#11@worker-1 --tcp
survives crash:shard_passed#23@ps-0 --tcp
survives crash:master_saves#2 --tcp
survives crash:shard_passed#23@ps-1 --evaluator_count 1
cat >trains.yaml <<'YAML'
master: {trains: true}
workers: {count: 1}
parameter_servers: {count: 2}
YAML
rm -rf killed
run_ok env BELFRY_FAULT=crash:tower_step#12@master-0 timeout -k 5 120 "$BUILD/tools/belfry" local train --config trains.yaml \
    --job_dir killed -- "${digits[@]}" "${settings[@]}"
equal "digest when a master that trains was killed" "$(digest killed)" "$whole"

# --- Random kills
run_ok "$SOURCE/bench/soak" --build "$BUILD" --kills 10 --seed 11 --steps "${BELFRY_SOAK_STEPS:-300}"
cat out.txt

# --- First the master, whose successor resumes from an odd step, then a worker, which it admits
settings=(--train_steps 40 --save_checkpoints_steps 5 --train_batch_size 8)
rm -rf killed
BELFRY_FAULT=crash:checkpoint_after_rename#2@master-0,slow:tower_step#40 belfry local train --distributed \
    --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${settings[@]}" >out.txt 2>err.txt &
supervisor=$!
until grep -qs "taking over a job that runs" killed/logs/*.log; do
    kill -0 "$supervisor" || break
    sleep 0.02
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
        sleep 0.02
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
    BELFRY_TASK=$task exec timeout -k 5 120 "$BUILD/tools/belfry" train_and_evaluate --model_dir own \
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
    sleep 0.02
done
stopped=$(roles worker 1)
kill -STOP "$stopped"
role worker 1 1 >>members.txt 2>&1 &
until grep -q "worker 1 is back" err.txt; do
    kill -0 "$master" || break
    sleep 0.02
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
