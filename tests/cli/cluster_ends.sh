#!/usr/bin/env bash
# Ends of a cluster: by signals, by the death of any process that is not restarted, and by impossible
# settings. Every process ends with the job, one message gives the reason, and the same command resumes to the
# bits of an undisturbed run.
# usage: cluster_ends.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 400 --save_checkpoints_steps 50 --train_batch_size 8)
export XDG_RUNTIME_DIR=$work # sockets are below it

# Steps take so long that events come in the middle of a run.
start() { # MODEL_DIR [flags]: a cluster in the background; waits for a checkpoint
    BELFRY_FAULT=$fault "$BUILD/tools/belfry" local train --distributed --parameter_server_count 2 --job_dir "$1" \
        "${cluster_flags[@]}" -- "${digits[@]}" "${settings[@]}" "${@:2}" >out.txt 2>err.txt &
    supervisor=$!
    until [ -f "$1/ckpt-00000050/manifest.json" ]; do
        kill -0 "$supervisor" || break
        nap 0.02
    done
}
cluster_flags=(--restarts 0)
fault=slow:tower_step#8

finish_run() { # waits for the supervisor; sets $code
    code=0
    { wait "$supervisor" || code=$?; } 2>/dev/null
}

resume() { # MODEL_DIR: the same command again
    run_ok belfry local train --distributed --parameter_server_count 2 --job_dir "$1" -- \
        "${digits[@]}" "${settings[@]}"
}

saving() { compgen -G "$1/ckpt-*.tmp-*" >/dev/null; } # MODEL_DIR: a checkpoint is being written
idles() {                                             # PID: it computes nothing for a fifth of a second
    local before now
    before=$(cut -d' ' -f14,15 "/proc/$1/stat")
    for _ in $(seq 10); do
        nap 0.02
        now=$(cut -d' ' -f14,15 "/proc/$1/stat")
        [ "$now" = "$before" ] || return 1
    done
}

run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

# --- The death of a process
for victim in "worker 1" "ps 0" "master 0"; do
    read -r role index <<<"$victim"
    name=dead-$role
    start "$name"
    kill -KILL "$(roles "$role" "$index")"
    finish_run
    check "exit code $code after the death of $role" test "$code" -ne 0
    said=${victim/master 0/master}
    check "the message names $said" grep -qE "^belfry: $said \(pid [0-9]+ on .*\) was killed by signal 9" err.txt
    equal "messages after the death of $role" "$(grep -c '^belfry: ' err.txt)" 1
    check "no process is left after the death of $role" nothing_left
    resume "$name"
    equal "digest after the death of $role" "$(digest "$name")" "$whole"
done

# --- Signals to the supervisor, and its death
for signal in TERM INT; do
    start "by-$signal"
    kill "-$signal" "$supervisor"
    finish_run
    equal "exit code after SIG$signal" "$code" $((128 + $(kill -l "$signal")))
    check "no process is left after SIG$signal" nothing_left
    resume "by-$signal"
    equal "digest after SIG$signal" "$(digest "by-$signal")" "$whole"
done
fault=slow:master_saves#1500 # it stops while it waits for a snapshot, after it has reported the step
start waiting --save_checkpoints_steps 10
check "a snapshot is being saved" until_true saving waiting
check "training waits for it" until_true idles "$(roles worker 0)"
kill -TERM "$supervisor"
finish_run
equal "exit code after a stop that waits for a snapshot" "$code" 143
resume waiting
equal "digest after a stop that waits for a snapshot" "$(digest waiting)" "$whole"
fault=slow:tower_step#8,slow:master_saves#400
start service # like systemctl stop: all processes get the signal, and the supervisor passes it on
# shellcheck disable=SC2046
kill -TERM $(roles)
kill -TERM "$supervisor"
finish_run
equal "exit code after SIGTERM to all processes" "$code" 143
check "all is saved after SIGTERM to all processes" grep -q '^interrupted true$' out.txt
resume service
equal "digest after SIGTERM to all processes" "$(digest service)" "$whole"
fault=slow:tower_step#8
start saved --save_checkpoints_steps 1 # the version at which it stops has a snapshot
kill -TERM "$supervisor"
finish_run
equal "exit code after a stop at a snapshot" "$code" 143
resume saved
equal "digest after a stop at a snapshot" "$(digest saved)" "$whole"
# A signal to one process ends the job: SIGINT, or SIGTERM without restarts.
for victim in "master 0" "worker 1" "ps 0"; do
    read -r role index <<<"$victim"
    for way in "TERM 0" "INT 2"; do
        read -r signal restarts <<<"$way"
        cluster_flags=(--restarts "$restarts")
        rm -rf one
        start one
        kill "-$signal" "$(roles "$role" "$index")"
        finish_run
        expected=143
        [ "$signal $role" != "INT master" ] || expected=130
        equal "exit code after SIG$signal to $role" "$code" "$expected"
        check "all is saved after SIG$signal to $role" grep -q '^interrupted true$' out.txt
        check "nothing is restarted after SIG$signal to $role" sh -c "! grep 'started again' err.txt"
    done
    resume one
    equal "digest after a signal to $role" "$(digest one)" "$whole"
done
cluster_flags=(--restarts 2)
start missing # a worker that is needed for the last step dies while the job stops
kill -STOP "$(roles worker 1)"
kill -TERM "$supervisor"
kill -KILL "$(roles worker 1)"
finish_run
equal "exit code after a death while stopping" "$code" 143
check "all is saved after a death while stopping" grep -q '^interrupted true$' out.txt
resume missing
equal "digest after a death while stopping" "$(digest missing)" "$whole"
fault=slow:tower_step#8,crash:master_finishes@master-0 # the master itself
start heir
kill -TERM "$supervisor"
finish_run
equal "exit code after the master's death while stopping" "$code" 137
check "the master's death is the reason" grep -qE '^belfry: master \(pid [0-9]+ on .*\) was killed by signal 9' err.txt
resume heir
equal "digest after the master's death while stopping" "$(digest heir)" "$whole"
fault=slow:tower_step#8
cluster_flags=(--restarts 0)
start orphans
kill -KILL "$supervisor"
finish_run
check "processes end with their supervisor" nothing_left
check "sockets are removed with the job" test -z "$(find "$work" -maxdepth 1 -name 'belfry-sockets-*')"
resume orphans
equal "digest after the supervisor's death" "$(digest orphans)" "$whole"
for _ in 1 2 3; do # before training begins
    "$BUILD/tools/belfry" local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir unborn -- \
        "${digits[@]}" --train_steps 100000 >/dev/null 2>&1 &
    supervisor=$!
    until compgen -G "$work/belfry-sockets-*/master" >/dev/null; do
        kill -0 "$supervisor" || break
        nap 0.02
    done
    kill -KILL "$supervisor"
    { wait "$supervisor" || true; } 2>/dev/null
    check "processes end with their supervisor before they train" nothing_left
    check "and so do their sockets" test -z "$(find "$work" -maxdepth 1 -name 'belfry-sockets-*')"
done

fault=slow:tower_step#8,hang:master_saves#3@master-0
start unwatched # the master holds the folder until it is killed
master=$(roles master 0)
kill -KILL "$supervisor"
finish_run
run_fails 2 "another run trains in unwatched" belfry local train --distributed --job_dir unwatched -- "${digits[@]}"
kill -KILL "$master"
check "processes end with their supervisor" nothing_left
resume unwatched
equal "digest of a folder whose supervisor was killed" "$(digest unwatched)" "$whole"
fault=slow:tower_step#8
cluster_flags=(--restarts 2)
start both # no process restarts a member
kill -KILL "$supervisor" "$(roles worker 1)"
finish_run
check "processes do not wait for a member that is not restarted" nothing_left
start frozen # the kernel wakes it with SIGHUP, as its group has lost its parent
frozen=$(roles worker 1)
kill -STOP "$frozen"
kill -KILL "$supervisor"
kill -HUP "$frozen" || true # it may have been woken and exited
kill -CONT "$frozen" || true
finish_run
check "processes end with their supervisor and a stopped member" nothing_left
newest=$(find frozen -maxdepth 1 -name 'ckpt-*' | sort | tail -n 1)
check "a checkpoint is saved with the stopped member" test "$newest" != frozen/ckpt-00000050
start moved
mv moved elsewhere
finish_run
equal "exit code in a folder that was renamed" "$code" 1
check "the folder that was renamed is named" grep -q '^belfry: moved is not the folder any more' err.txt
check "no process is left after a renamed folder" nothing_left
cluster_flags=(--restarts 0)

# --- Timeouts
cat >silent.yaml <<'YAML'
workers: {count: 2}
parameter_servers: {count: 2}
limits: {silence_timeout: 3, restarts: 0} # long: a loaded machine must not look silent
YAML
cluster_flags=(--config silent.yaml)
start silent
kill -STOP "$(roles worker 1)"
finish_run
check "a silent member is named" grep -qE "^belfry: lost worker 1 .* nothing heard of it for" err.txt
check "no process is left after a silent member" nothing_left

export BELFRY_FAULT=hang:tower_step # a step that never ends
run_fails 1 "no step for|worker 0 computes|ps 0 waits for reports of worker 0, 1" \
    belfry local train --distributed --job_dir stalled -- "${digits[@]}" --train_steps 50 --stall_timeout 3
unset BELFRY_FAULT
check "no process is left after a stall" nothing_left
export BELFRY_FAULT=hang:master_saves#2@master-0 # the master, which looks for the stalls of all others
run_fails 1 "the master has hung for 6.5 s" \
    belfry local train --distributed --job_dir still -- "${digits[@]}" --train_steps 50 --stall_timeout 1
unset BELFRY_FAULT
check "no process is left after a master's stall" nothing_left
run_ok belfry local train --distributed --job_dir still -- "${digits[@]}" --train_steps 50
export BELFRY_FAULT=lane:corrupt # ends the job at once, and the message names the frame
run_fails 1 "malformed frame|kind 31" \
    belfry local train --distributed --tcp --job_dir corrupt -- "${digits[@]}" --train_steps 400 --lane grpc
unset BELFRY_FAULT
check "no process is left after a corrupt frame" nothing_left
echo "{master: {trains: true}, workers: {count: 1}, parameter_servers: {count: 1}}" >trains.yaml
export BELFRY_FAULT=hang:tower_step@master-0 # of a master that trains; it still has the last word
run_fails 1 "no step for|worker 0 computes" \
    belfry local train --config trains.yaml --job_dir own -- "${digits[@]}" --train_steps 50 --stall_timeout 3
unset BELFRY_FAULT
check "no process is left after a training master's stall" nothing_left
check "no token is left after a training master's stall" test ! -e own/job.token

# --- Impossible settings
run_fails 1 "the loss is not finite" belfry local train --distributed --job_dir nan -- \
    "${digits[@]}" --hidden_units 512,512 --train_steps 100 --optimizer sgd --learning_rate 100000
run_ok belfry local train --distributed --job_dir changed -- "${digits[@]}" --train_steps 20
run_fails 2 "learning_rate was" belfry local train --distributed --job_dir changed -- \
    "${digits[@]}" --train_steps 40 --learning_rate 0.5
run_fails 2 "no process would" belfry local train --distributed --worker_count 0 --job_dir x -- "${digits[@]}"
echo "workers: {cont: 2}" >bad.yaml
run_fails 2 "bad.yaml:1:11|did you mean \"count\"" \
    belfry local train --config bad.yaml --job_dir x -- "${digits[@]}"
echo "workers: {count: 2, hosts: [elsewhere]}" >hosts.yaml
run_fails 2 "hosts.yaml: host elsewhere of the worker role" belfry local train --config hosts.yaml --job_dir x -- "${digits[@]}"
run_fails 2 "job_dir" belfry local train --distributed -- "${digits[@]}"
run_fails 2 "unknown flag|train_step" belfry local train --job_dir x -- "${digits[@]}" --train_step 3

# Starts single roles, as another launcher would.
role() { # ROLE INDEX MASTER LISTEN [flags]
    local task
    task=$(printf '{"role":"%s","index":%d,"master":"%s","listen":"%s","worker_count":1,
        "parameter_server_count":1,"join_timeout_ms":3000}' "$1" "$2" "$3" "$4")
    shift 4
    BELFRY_TASK=$task belfry train_and_evaluate "${digits[@]}" --train_steps 5 "$@"
}
run_fails 1 "no word from ps 0, worker 0 within 3 s" role master 0 "unix:$work/m" "" --model_dir alone
run_fails 1 "cannot reach the master at unix:$work/none" role ps 0 "unix:$work/none" "unix:$work/p" --model_dir alone
run_fails 1 "cannot reach the master at no-such-host.invalid:1: its host name does not resolve" \
    env BELFRY_SECRET=0123456789abcdef0123 bash -c "$(declare -f role belfry); BUILD='$BUILD'; digits=(${digits[*]@Q})
    role \"\$@\"" - worker 0 no-such-host.invalid:1 "" --model_dir alone
run_fails 2 "BELFRY_TASK|\"role\" must be" env BELFRY_TASK='{}' "$BUILD/tools/belfry" \
    train_and_evaluate "${digits[@]}" --train_steps 5 --model_dir alone

# --- Asked to stop while others are waited for
for asked in "master 0 unix:$work/m unix:$work/m" "ps 0 unix:$work/none unix:$work/p"; do
    read -r -a words <<<"$asked"
    socket=${words[3]#unix:}
    rm -f "$socket"
    role "${words[@]}" --model_dir alone >out.txt 2>err.txt &
    asked=$!
    until [ -S "$socket" ]; do
        kill -0 "$asked" || break
        nap 0.02
    done
    kill -TERM "$(roles "${words[0]}" 0)"
    code=0
    { wait "$asked" || code=$?; } 2>/dev/null
    equal "exit code of a single ${words[0]} that is asked to end" "$code" 143
    check "that is no error" sh -c "! grep '^belfry: ' err.txt"
done

pair() { # FLAGS-OF-WORKER…: a master, a ps and a worker with other flags; returns the master's exit code
    role ps 0 "unix:$work/m" "unix:$work/p" --model_dir pair >/dev/null 2>&1 &
    role worker 0 "unix:$work/m" "" "$@" >worker.txt 2>&1 &
    role master 0 "unix:$work/m" "" --model_dir pair
}
two_masters() { # returns the second one's exit code
    role master 0 "unix:$work/m" "" --model_dir pair >/dev/null 2>&1 &
    until [ -S "$work/m" ]; do nap 0.02; done
    role master 0 "unix:$work/m" "" --model_dir other
}
run_fails 2 "worker 0 on|other settings|seed was 1 and is 7 there" pair --model_dir pair --seed 7
wait
run_fails 2 "worker 0 on|does not see the master's model_dir" pair --model_dir elsewhere
wait
check "the worker reports why" grep -q "does not see the master's model_dir" worker.txt
# A ps that sees the token, but not the checkpoints.
mkdir -p blind/pair
ln -s "$work/pair/job.token" blind/pair/job.token
(cd blind && role ps 0 "unix:$work/m" "unix:$work/p" --model_dir pair >/dev/null 2>&1) &
role worker 0 "unix:$work/m" "" --model_dir pair >/dev/null 2>&1 &
run_fails 3 "ps 0: shard 0: |pair/ckpt-00000000" role master 0 "unix:$work/m" "" --model_dir pair
wait
run_fails 1 "cannot listen on unix:$work/m: another process does" two_masters
wait
BELFRY_SECRET=another-secret-of-theirs role worker 0 "unix:$work/m" "" --model_dir pair >worker.txt 2>&1 &
run_fails 1 "no word from" role master 0 "unix:$work/m" "" --model_dir pair
wait
check "a wrong secret is refused" grep -q "does not show this job's secret" worker.txt
check "and the master says so" grep -q "refused a call from .* does not show this job's secret" err.txt

# --- A master that trains reports errors in its data at once
echo bad >bad.csv
run_fails 3 "bad.csv" timeout 20 "$BUILD/tools/belfry" local train --config trains.yaml --job_dir bad -- \
    "${digits[@]}" --eval_files bad.csv --train_steps 5

finish
