#!/usr/bin/env bash
# Changes of the number of workers while a job runs: one is lost for good, fewer or more are requested, a
# master is replaced in between. The bits stay those of an undisturbed run. With --elastic_rescale they are
# those of a run that was stopped and resumed with other flags.
# usage: cluster_elastic.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work XDG_STATE_HOME=$work/state # sockets and records are below it
slow=slow:tower_step#10                                 # long enough for events in the middle
settings=(--train_steps 1000 --save_checkpoints_steps 100 --train_batch_size 8)
data=("${digits[@]}")

await() { # TEXT COMMAND…: until it succeeds
    check "waited in vain: $1" until_true quietly "${@:2}"
}
quietly() { "$@" >/dev/null 2>&1; }

has_assignment() { tail -n 1 "$1/job.journal" | grep -qF "\"replicas\":[$2]"; } # FOLDER REPLICAS: the newest
has_step() { [ -f "$1/ckpt-$(printf %08d "$2")/manifest.json" ]; }        # FOLDER STEP
has_ended() { recorded "$1" state && [[ "$field" =~ ^(SUCCEEDED|FAILED|CANCELLED)$ ]]; }
is_gone() { [ -z "$(roles "$1" "$2")" ]; }
kill_role() { kill -KILL "$(roles "$1" "$2")"; }
submit() { # NAME FILE [flags]: the folder has the job's name
    rm -rf "$1"
    run_ok belfry jobs submit training "$1" --replace --config "$2" --job_dir "$1" -- "${data[@]}" \
        "${settings[@]}" "${@:3}"
}
succeeds() { # NAME DIGEST
    await "the end of job $1" has_ended "$1"
    run_ok belfry jobs describe "$1"
    check "job $1 succeeds" grep -q '^state SUCCEEDED$' out.txt
    equal "digest of job $1" "$(digest "$1")" "$2"
}

run_ok train two "${settings[@]}" --num_workers 2
two=$(digest two)
run_ok train five "${settings[@]}" --num_workers 5
five=$(digest five)
printf 'workers: {count: 2}\nparameter_servers: {count: 2}\n' >plain.yaml
printf 'workers: {count: 2}\nlimits: {restarts: 0, min_workers: 1}\n' >once.yaml
printf 'workers: {count: 2}\nlimits: {restarts: 1, min_workers: 1, join_timeout: 10}\n' >twice.yaml
printf 'workers: {count: 3}\nlimits: {restarts: 0, min_workers: 2}\n' >least.yaml

# --- A worker is lost for good: the others play its replicas, from the interrupted step on
for flags in --tcp --distributed "--parameter_server_count 3" "--evaluator_count 1"; do
    rm -rf lost
    read -r -a words <<<"$flags"
    run_ok env BELFRY_FAULT=crash:tower_step#470@worker-1 timeout -k 5 "$patience" "$BUILD/tools/belfry" local train \
        --config once.yaml "${words[@]}" --job_dir lost -- "${digits[@]}" "${settings[@]}"
    check "the log says so" grep -q 'worker 1 .* is not started again.* continues with 1 worker' err.txt
    # or from the checkpoint whose evaluation the loss has interrupted
    check "a new assignment from there on" grep -qE '"step":(469|[1-4]00),.*"replicas":\[2\]' lost/job.journal
    equal "digest without worker 1 ($flags)" "$(digest lost)" "$two"
    check "the killed worker's socket is gone ($flags)" test -z "$(find "$work" -maxdepth 1 -name 'belfry-sockets-*')"
done
rm -rf lost
run_ok env BELFRY_FAULT=crash:tower_step#470@worker-0 timeout -k 5 "$patience" "$BUILD/tools/belfry" local train \
    --config least.yaml --job_dir lost -- "${digits[@]}" "${settings[@]}" --replicas_to_aggregate 5
check "the first worker is absent" grep -q '"replicas":\[0,3,2\]' lost/job.journal
equal "digest without worker 0" "$(digest lost)" "$five"
rm -rf lost # the comparison can fail
run_ok env BELFRY_FAULT=crash:tower_step#470@worker-0,sum_sequential timeout -k 5 "$patience" "$BUILD/tools/belfry" local train \
    --config least.yaml --job_dir lost -- "${digits[@]}" "${settings[@]}" --replicas_to_aggregate 5
check "sums in another order show" test "$(digest lost)" != "$five"
run_fails 1 'worker 1 (pid|was killed by signal 9' env BELFRY_FAULT=crash:tower_step#20@worker-1 timeout -k 5 "$patience" \
    "$BUILD/tools/belfry" local train --config once.yaml --min_workers 2 --job_dir enough -- "${digits[@]}" \
    "${settings[@]}"

export BELFRY_FAULT=$slow

# --- Lost, restarted, lost for good after the join timeout; a request brings it back
submit comes twice.yaml
await "training" has_step comes 100
kill_role worker 1
await "the worker is back" grep -qs 'worker 1 is back' state/belfry/jobs/comes/logs/master-0.0.log
kill_role worker 1
await "an assignment without it" has_assignment comes 2
run_ok belfry jobs scale comes --worker_count 1
await "the request is received" grep -qs '1 worker is wanted' state/belfry/jobs/comes/logs/supervisor.log
run_ok belfry jobs scale comes --worker_count 2
await "an assignment with it" has_assignment comes 1,1
succeeds comes "$two"

# --- Fewer and more. Five replicas, so that assignments differ; no step is made twice
settings+=(--replicas_to_aggregate 5)
submit scaled plain.yaml
await "training" has_step scaled 100
run_ok belfry jobs scale scaled --worker_count 1
check "the command says so" grep -q '^job scaled was asked to continue with 1 worker$' out.txt
await "one worker" has_assignment scaled 5
await "the end of the other" is_gone worker 1
run_ok belfry jobs scale scaled --worker_count 3
await "three workers" has_assignment scaled 2,2,1
await "progress" sh -c "'$BUILD/tools/belfry' jobs describe scaled | grep -q '^workers 3$'"
succeeds scaled "$five"
check "nothing was lost" test -z "$(grep -l 'going back' state/belfry/jobs/scaled/logs/* || true)"

# --- Tables: room for rows follows the assignment
make_clicks
data=("${clicks[@]}")
run_ok env BELFRY_FAULT= "$BUILD/tools/belfry" train_and_evaluate --model_dir rows "${data[@]}" "${settings[@]}" --num_workers 5
rm -rf lost
run_ok env BELFRY_FAULT=crash:tower_step#470@worker-0 timeout -k 5 "$patience" "$BUILD/tools/belfry" local train \
    --config least.yaml --job_dir lost -- "${data[@]}" "${settings[@]}"
check "a worker was lost" grep -q '"replicas":\[0,3,2\]' lost/job.journal
equal "digest of tables without worker 0" "$(digest lost)" "$(digest rows)"
submit rescaled plain.yaml
await "training" has_step rescaled 100
run_ok belfry jobs scale rescaled --worker_count 1
await "one worker" has_assignment rescaled 5
run_ok belfry jobs scale rescaled --worker_count 4
await "four workers" has_assignment rescaled 2,1,1,1
succeeds rescaled "$(digest rows)"
data=("${digits[@]}")

# --- A replaced master finds the request and the assignment
submit master plain.yaml
await "training" has_step master 100
run_ok belfry jobs scale master --worker_count 1
await "one worker" has_assignment master 5
kill_role master 0
await "another master" grep -qs 'taking over a job that runs' state/belfry/jobs/master/logs/master-0.1.log
run_ok belfry jobs scale master --worker_count 3
await "three workers" has_assignment master 2,2,1
succeeds master "$five"
for point in master_saves#3 checkpoint_after_rename#3 master_new_generation#2 master_gather#2; do
    BELFRY_FAULT=crash:$point@master-0,$slow submit dies plain.yaml
    await "training" has_step dies 100
    run_ok belfry jobs scale dies --worker_count 1
    succeeds dies "$five"
    check "the master was killed at $point" grep -q "killed on purpose" \
        state/belfry/jobs/dies/logs/master-0.0.log
    check "the assignment" has_assignment dies 5
done
settings=("${settings[@]:0:6}")

# --- A dismissed worker dies before it is told, and is not waited for
submit dead plain.yaml --replicas_to_aggregate 5
await "training" has_step dead 100
kill -STOP "$(roles worker 1)"
run_ok belfry jobs scale dead --worker_count 1
await "the request is received" grep -qs '1 worker is wanted' state/belfry/jobs/dead/logs/supervisor.log
kill_role worker 1
succeeds dead "$five"

# --- Replicas and learning rate follow: the bits of a run that resumed with other flags
submit rescaled plain.yaml --elastic_rescale --audit_input
await "training" has_step rescaled 100
run_ok belfry jobs scale rescaled --worker_count 3
await "three workers" has_assignment rescaled 1,1,1
await "the end" has_ended rescaled
unset BELFRY_FAULT
border=$(tail -n 1 rescaled/job.journal | grep -oE '"step":[0-9]+' | cut -d: -f2)
run_ok train parts "${settings[@]}" --num_workers 2 --learning_rate 0.001 --train_steps "$border"
run_ok train parts "${settings[@]}" --num_workers 3 --learning_rate 0.0015 --allow_changes
equal "digest of the same in two parts" "$(digest rescaled)" "$(digest parts)"
check "the rate is another" test "$(digest rescaled)" != "$two"
cat >audit.py <<'PY'
import glob, json, sys
newest = sorted(glob.glob(sys.argv[1] + "/ckpt-*/manifest.json"))[-1]
manifest = json.load(open(newest))
used = []
segments = manifest["segments"]
assert len(segments) == 2, segments
for i, s in enumerate(segments):
    end = segments[i + 1]["first_step"] if i + 1 < len(segments) else manifest["step"]
    for step in range(s["first_step"], end):
        first = s["first_block"] + (step - s["first_step"]) * s["replica_count"]
        used += range(first, first + s["replica_count"])
assert used == list(range(len(used))), "a block is missing, or is there twice"
PY
run_ok python3 audit.py rescaled
run_ok belfry inspect --audit rescaled
check "no record was read twice or left out" grep -q '^epoch 0: [0-9]* records, each once$' out.txt

# The same when it is resumed with another number of workers.
run_ok belfry local train --distributed --worker_count 1 --job_dir rescaled -- "${digits[@]}" "${settings[@]}" \
    --elastic_rescale --train_steps 1100
run_ok train parts "${settings[@]}" --num_workers 1 --learning_rate 0.0005 --allow_changes --train_steps 1100
equal "digest of three parts" "$(digest rescaled)" "$(digest parts)"

# --- Refusals
run_fails 2 'job rescaled is SUCCEEDED: there is nothing to scale' belfry jobs scale rescaled --worker_count 2
run_fails 3 'there is no job nobody' belfry jobs scale nobody --worker_count 2
run_fails 2 '--worker_count or --parameter_server_count is needed' belfry jobs scale rescaled
run_fails 2 '--worker_count|[1, 1024]' belfry jobs scale rescaled --worker_count 0
run_fails 2 '--worker_count|[1, 1024]' belfry jobs scale rescaled --worker_count 1025
export BELFRY_FAULT=slow:tower_step#400
brake # the three jobs last until they are cancelled
submit bound plain.yaml
run_fails 2 'job bound has 2 replicas|2 workers are the most, got 3|--elastic_rescale' \
    belfry jobs scale bound --worker_count 3
printf 'workers: {count: 2}\nparameter_servers: {count: 0}\n' >none.yaml
submit shards none.yaml
run_fails 2 'the workers hold the parameters|at least one parameter server' \
    belfry jobs scale shards --worker_count 1
submit free plain.yaml --mode async
run_fails 2 'job free cannot be scaled|--mode sync' belfry jobs scale free --worker_count 1
# The master reports, once, limits of a user's program that jobs scale cannot know.
printf '{"workers": 3}\n' >bound/job.scale
printf '{"workers": 1}\n' | tee shards/job.scale >free/job.scale
said() { # NAME TEXT: the warnings
    grep -F "$2" "state/belfry/jobs/$1/logs/master-0.0.log" 2>/dev/null
}
bound='3 workers are wanted (job.scale), but each plays at least one replica, and there are at most 2'
shards='1 worker is wanted (job.scale), but the workers hold the parameters: the job continues with 2'
free='1 worker is wanted (job.scale), but not all workers count in every step'
await "a warning on job bound" said bound "$bound"
await "a warning on job shards" said shards "$shards"
await "a warning on job free" said free "$free"
printf '{"workers": 4}\n' >bound/job.scale
await "a warning on another request" said bound "${bound/3/4}" # the other files were looked at again until then
await "a worker that is not possible ends, if the supervisor has seen the request" is_gone worker 2
for name in bound shards free; do
    equal "warnings on job $name" "$(said "$name" "${!name}" | wc -l)" 1
    await "the request of job $name is the possible number" grep -q '"workers": 2' "$name/job.scale"
    run_ok belfry jobs cancel "$name"
    await "the end of job $name" has_ended "$name"
done
release
unset BELFRY_FAULT
local_train() { belfry local train --distributed --job_dir refused "$@"; }
run_fails 2 'min_workers|the workers hold the parameters' \
    local_train --min_workers 1 --parameter_server_count 0 -- "${digits[@]}" --train_steps 5
run_fails 2 'min_workers is 3, but there are only 2 workers' \
    local_train --min_workers 3 -- "${digits[@]}" --train_steps 5
run_fails 2 'min_workers|--mode sync' local_train --min_workers 1 -- "${digits[@]}" --train_steps 5 --mode async
run_fails 2 'elastic_rescale|exclude each other' \
    local_train -- "${digits[@]}" --train_steps 5 --elastic_rescale --replicas_to_aggregate 3
run_fails 2 'elastic_rescale|cluster' train alone --train_steps 5 --elastic_rescale
check "nothing is left" nothing_left

finish
