#!/usr/bin/env bash
# Another number of parameter servers while a job runs: it saves, and continues with them. No step is repeated, and the
# bits are those of an undisturbed run.
# usage: cluster_servers.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work XDG_STATE_HOME=$work/state # sockets and records are below it
settings=(--train_steps 200 --save_checkpoints_steps 1000 --train_batch_size 8 --optimizer adam --log_step_count_steps 2)
run_ok train two "${settings[@]}" --num_workers 2
two=$(digest two)
run_ok train five "${settings[@]}" --num_workers 5
five=$(digest five)
printf 'workers: {count: 2}\nparameter_servers: {count: 2}\n' >plain.yaml
printf 'workers: {count: 2}\nparameter_servers: {count: 0}\n' >none.yaml

log() { cat "state/belfry/jobs/$1/logs/supervisor.log"; } # NAME
has() { # NAME PATTERN. Starts no process
    local text=
    [ ! -e "state/belfry/jobs/$1/logs/supervisor.log" ] ||
        { IFS= read -r -d '' text <"state/belfry/jobs/$1/logs/supervisor.log" || true; }
    [[ "$text" =~ $2 ]]
}
exited() { recorded "$1" state && [[ "$field" =~ ^(SUCCEEDED|FAILED|CANCELLED)$ ]]; } # NAME
has_or_exited() { has "$@" || exited "$1"; }
await() { # NAME PATTERN in the job's log; nothing more comes from a job that exited
    until_true has_or_exited "$@" || true
    check "waited in vain for $2 of job $1" has "$@"
}
trains_on() { # NAME: since the last call
    recorded "$1" step
    [ "${field:-0}" -gt "$from" ] || exited "$1"
}
begins() { # NAME SHARDS: a part of the job trains with them
    await "$1" "workers?, [0-9]+ replicas? of batch 8, $2 shards?"
    until_true trains_on "$1" || true
    from=$(job_step "$1")
}
program=()
submit() { # NAME FILE [flags]. It is slow until `release`
    from=0
    rm -rf "$1"
    brake
    run_ok env BELFRY_FAULT=slow:tower_step#400 "$BUILD/tools/belfry" jobs submit training "$1" --replace \
        --config "$2" --job_dir "$1" -- "${program[@]}" "${digits[@]}" "${settings[@]}" "${@:3}"
}
ends() { # NAME
    release
    await_state "$1" 'SUCCEEDED|FAILED|CANCELLED|LOST'
}
succeeds() { # NAME DIGEST
    ends "$1"
    check "job $1 succeeds" grep -q '"state": *"SUCCEEDED"' out.txt
    [ -z "$2" ] || equal "digest of job $1" "$(digest "$1")" "$2"
    check "no state of job $1 goes back" test -z "$(log "$1" | grep 'going back')"
    # Each part begins at the step at which the last one was stopped.
    equal "parts of job $1" "$(sed -n 's/.*"generation":[0-9]*,"step":\([0-9]*\),.*/\1/p' "$1/job.journal" | tail -n +2 |
        xargs)" "$(log "$1" | sed -n 's/^saved at step \([0-9]*\), to continue.*/\1/p' | xargs)"
}

submit more none.yaml # the workers hold the parameters
begins more 2
run_ok belfry jobs scale more --parameter_server_count 3
check "the command says so" grep -q '^job more was asked to continue with 3 parameter servers$' out.txt
run_ok belfry jobs describe more
check "the request is shown" grep -q '^asked_parameter_servers 3$' out.txt
begins more 3
run_ok belfry jobs scale more --parameter_server_count 1
begins more 1
check "the log says so" has more '1 parameter server is wanted, instead of 3: the job saves, and continues with it'
succeeds more "$two"

# Both numbers; another number of workers stays when the servers change.
submit both plain.yaml --replicas_to_aggregate 5
begins both 2
run_ok belfry jobs scale both --worker_count 3
await both '3 workers from step'
run_ok belfry jobs scale both --parameter_server_count 1
begins both 1
await both '3 workers from step|3 workers, 5 replicas of batch 8, 1 shard'
run_ok belfry jobs scale both --worker_count 1 --parameter_server_count 2
check "the command says both" grep -q 'with 1 worker and 2 parameter servers$' out.txt
ends both
equal "digest of both" "$(digest both)" "$five"

# A number that the cluster's rules forbid: refused, and where it is written by hand the job continues.
printf 'workers: {count: 2}\nparameter_servers: {count: 2, hosts: [localhost, 127.0.0.1]}\n' >hosts.yaml
submit few hosts.yaml
begins few 2
run_fails 2 '2 hosts, but the count of parameter_servers is 1' belfry jobs scale few --parameter_server_count 1
echo '{"parameter_servers": 1}' >few/job.scale
await few 'the job continues with 2 parameter servers: .*2 hosts'
# Two requests, the second while the job stops for the first.
run_ok belfry jobs scale few --parameter_server_count 4
await few '4 parameter servers are wanted'
run_ok belfry jobs scale few --parameter_server_count 3
begins few 3
succeeds few "$two"

# Workers can be scaled once there are servers.
submit elastic none.yaml --replicas_to_aggregate 5
begins elastic 2
run_fails 2 'the workers hold the parameters' belfry jobs scale elastic --worker_count 3
run_ok belfry jobs scale elastic --worker_count 3 --parameter_server_count 1
begins elastic 1
run_ok belfry jobs scale elastic --worker_count 1
ends elastic
equal "digest of elastic" "$(digest elastic)" "$five"

# Processes are killed before, and the master while the job saves.
program=("$SOURCE/tests/support/with_faults" "$BUILD/tools/belfry" train_and_evaluate --model_dir killed)
faults="ps-0=crash:shard_passes#30 worker-1=crash:tower_step#25 master-0=crash:master_saves#2"
FAULTS=$faults submit killed plain.yaml
begins killed 2
run_ok belfry jobs scale killed --parameter_server_count 3
ends killed
equal "digest with kills" "$(digest killed)" "$two"
check "all were killed" killed_all state/belfry/jobs/killed/logs "$faults"
program=()

# Every mode; backups and stale reports give other bits.
for mode in '--mode async' '--replicas_to_aggregate 1'; do
    read -ra words <<<"$mode"
    submit mode plain.yaml "${words[@]}"
    begins mode 2
    run_ok belfry jobs scale mode --parameter_server_count 1
    begins mode 1
    succeeds mode ''
done

# A user's request to end wins over the next start.
submit ended plain.yaml
begins ended 2
run_ok belfry jobs scale ended --parameter_server_count 3
await ended 'parameter servers are wanted'
run_ok belfry jobs cancel ended
await_state ended 'CANCELLED|SUCCEEDED|FAILED|LOST'
check "the job is cancelled" grep -q '"state": *"CANCELLED"' out.txt
run_ok belfry jobs resume ended
ends ended
equal "digest of the resumed job" "$(digest ended)" "$two"

# Without a job: a file in the folder.
brake
BELFRY_FAULT=slow:tower_step#400 "$BUILD/tools/belfry" local train --distributed --parameter_server_count 1 --job_dir local \
    -- "${digits[@]}" "${settings[@]}" >local.out 2>local.err &
job=$!
until_true grep -qs '"step":[1-9]' local/board.json || true
echo '{"parameter_servers": 2}' >local/job.scale
until_true grep -qs '2 parameter servers are wanted' local.err || true
release
wait "$job" || complain "local train with another number of servers"
check "it continues with two" grep -q '2 parameter servers are wanted, instead of 1' local.err
equal "its digest" "$(sed -n 's/^digest //p' local.out)" "$two"
check "one result" test "$(grep -c '^digest' local.out)" = 1

run_fails 2 'job more is SUCCEEDED: there is nothing to scale' belfry jobs scale more --parameter_server_count 2
run_fails 2 '--parameter_server_count|[1, 1024]' belfry jobs scale more --parameter_server_count 0
check "none is left" nothing_left
finish
