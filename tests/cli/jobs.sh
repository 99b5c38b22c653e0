#!/usr/bin/env bash
# jobs: refusals of submit, records of a failing job and of a cancelled one, and the verbs that show them.
# Jobs here never train: one misses its file, one waits for a pipe that no process fills.
# usage: jobs.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_STATE_HOME=$work/state
printf 'workers: {count: 1}\nparameter_servers: {count: 1}\n' >cluster.yaml
submit() { belfry jobs submit training "$@"; }

member() { # NAME: the member of the JSON object in out.txt
    python3 -c 'import json, sys; print(json.load(open("out.txt"))[sys.argv[1]])' "$1"
}

# --- Refusals
run_fails 2 'jobs: expected one of: submit training, list' belfry jobs
run_fails 2 'did you mean jobs list?' belfry jobs lists
run_fails 2 'expected one name of a job' belfry jobs describe
run_fails 2 'expected one name of a job before --' submit --config cluster.yaml -- --train_steps 5
run_fails 2 '--config is needed' submit a --job_dir d
run_fails 2 'nothing.yaml' submit a --config nothing.yaml --job_dir d
run_fails 2 '--engine moon|expected one of: local' submit a --engine moon --config cluster.yaml
run_fails 2 '--job_dir is needed' submit a --config cluster.yaml
run_fails 2 'unknown flag --train_step' submit a --config cluster.yaml -- --train_step 5
for name in 1a a.b 'a b' ../a; do
    run_fails 2 "job name \"$name\"|expected letters" submit "$name" --config cluster.yaml --job_dir d
done
run_fails 3 'there is no job nobody' belfry jobs describe nobody
run_fails 3 'there is no job nobody' belfry jobs cancel nobody
run_fails 3 'there is no job nobody' belfry jobs stream-logs nobody
run_ok belfry jobs list
equal "an empty list has its head only" "$(wc -l <out.txt)" 1
run_ok belfry jobs list --json
check "an empty list is empty as JSON" test ! -s out.txt
run_ok belfry jobs top
check "nothing was recorded" test ! -e state

# --- A job that fails
run_fails 3 'missing.csv' submit broken --config cluster.yaml --job_dir d -- --train_files missing.csv
run_fails 3 'missing-too.csv' submit broken --config cluster.yaml --job_dir d -- --data_dir . \
    --train_files cluster.yaml --eval_files missing-too.csv
run_fails 3 'there is no job broken' belfry jobs describe broken
printf 'a,b\n1,x\n' >bad.csv
run_ok submit broken --config cluster.yaml --job_dir d -- --train_files bad.csv --train_steps 5
check "one line about following the job" \
    grep -qE '^job broken is [A-Z]+; to watch it: belfry jobs stream-logs broken$' out.txt
await_state broken FAILED
check "its exit code" test "$(member exit_code)" -ne 0
check "why it failed" grep -q 'bad.csv' <<<"$(member message)"
equal "the folder of the model" "$(member model_dir)" "$work/d"
equal "the cluster file" "$(member config)" "$work/cluster.yaml"
run_ok belfry jobs describe broken
check "facts for people" grep -q '^state FAILED$' out.txt
run_ok belfry jobs list
check "a row of the list" grep -qE '^broken +FAILED +- .*local$' out.txt
logs=$XDG_STATE_HOME/belfry/jobs/broken/logs
echo "of no process" | tee "$logs/worker-0.0.log.old" "$logs/worker-0.x.log" >"$logs/worker-0.log"
run_ok belfry jobs stream-logs broken
check "no other file is a log" test "$(grep -c 'of no process' out.txt)" = 0
check "lines say whose they are" grep -qE '^\[(master|worker 0|ps 0)\] error: .*bad.csv' out.txt
check "the end is reported" grep -q 'job broken is FAILED: ' err.txt
run_ok belfry jobs stream-logs broken --json --no_follow
check "lines as JSON" grep -qE '^\{"process":"(master|worker 0|ps 0)",' out.txt
run_ok belfry jobs top
check "top shows a job that has just finished" grep -q '^broken .*FAILED' out.txt
run_fails 1 'broken|FAILED|--replace' submit broken --config cluster.yaml --job_dir d
run_fails 2 'nothing to cancel' belfry jobs cancel broken
run_fails 2 'broken|FAILED' belfry supervise broken

# --- A job that runs until it is killed
mkfifo pipe.csv
run_ok submit waiting --config cluster.yaml --job_dir e --json -- --train_files pipe.csv \
    --label_column y --train_steps 5
equal "submitted as JSON" "$(member name)" waiting
await_state waiting RUNNING
supervisor=$(member supervisor)
run_fails 2 'waiting is RUNNING|jobs cancel waiting' belfry jobs remove waiting
run_fails 1 'waiting|RUNNING|jobs cancel waiting' submit waiting --replace --config cluster.yaml \
    --job_dir e
run_ok belfry jobs list
equal "newest first" "$(awk 'NR > 1 { print $1 }' out.txt | tr '\n' ' ')" "waiting broken "
run_ok belfry jobs cancel waiting
# A process that is busy reading does not notice. After a second request it is killed.
capture belfry jobs cancel waiting
await_state waiting CANCELLED
for ((i = 0; i < naps; i++)); do # the supervisor exits right after its last line
    if [ ! -e "/proc/$supervisor" ] || grep -q '^State:.Z' "/proc/$supervisor/status"; then break; fi
    sleep 0.05
done
check "no supervisor is left" test "$i" -lt "$naps"

# --- A record whose supervisor is gone
status=$XDG_STATE_HOME/belfry/jobs/waiting/status.json
sed -i 's/CANCELLED/RUNNING/' "$status"
run_ok belfry jobs describe waiting
check "it is lost" grep -q '^state LOST$' out.txt
check "and the message says how to continue" grep -q '^message .*belfry jobs resume waiting continues.*/e$' out.txt
run_fails 2 'LOST|nothing to cancel' belfry jobs cancel waiting
sed -i 's/"host": .*,/"host": "far-away",/; s/"boot_id": .*,/"boot_id": "another",/' "$status"
run_ok belfry jobs describe waiting
check "on another machine it may run" grep -q '^state RUNNING on far-away$' out.txt
run_ok belfry jobs list
check "a row of the list says where" grep -qE '^waiting +RUNNING on far-away +- ' out.txt
run_fails 2 'RUNNING on far-away|cancel it there' belfry jobs cancel waiting
run_fails 2 'RUNNING on far-away' belfry jobs remove waiting
run_fails 3 'there is no job nobody' belfry jobs remove nobody
run_fails 1 'RUNNING on far-away|jobs/waiting' submit waiting --replace --config cluster.yaml --job_dir e
printf 'nonsense' >"$status"
run_fails 3 'status.json' belfry jobs describe waiting
run_ok belfry jobs list
check "a damaged record is skipped" grep -q 'warning: job waiting is passed over' err.txt
check "and others are shown" grep -q '^broken ' out.txt

# --- A name is used again
run_ok submit broken --replace --config cluster.yaml --job_dir d -- --train_files bad.csv
await_state broken FAILED
run_ok belfry jobs remove broken
run_fails 3 'there is no job broken' belfry jobs describe broken
check "its logs are gone" test ! -e "$XDG_STATE_HOME/belfry/jobs/broken"

# --- Many submissions with one name: one gets it
run_ok submit wanted --config cluster.yaml --job_dir f -- --train_files bad.csv --train_steps 5
await_state wanted FAILED
racers=()
for i in 1 2 3 4 5 6; do
    submit wanted --replace --config cluster.yaml --job_dir f -- --train_files pipe.csv --label_column y \
        --train_steps 5 >"racer$i.txt" 2>&1 &
    racers+=($!)
done
winners=0
for pid in "${racers[@]}"; do
    if wait "$pid"; then winners=$((winners + 1)); fi
done
cat racer?.txt >err.txt
equal "jobs that got the name" "$winners" 1
await_state wanted RUNNING
run_ok belfry jobs cancel wanted
capture belfry jobs cancel wanted
await_state wanted CANCELLED

finish
