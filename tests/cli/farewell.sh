#!/usr/bin/env bash
# Processes that are told to leave (SIGTERM, a notice of the machine) while the job continues. No step is
# lost, they are replaced or left out, and the bits are those of an undisturbed run. If all are told at once,
# the job ends.
# usage: farewell.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_RUNTIME_DIR=$work # sockets are below it

settings=(--train_steps 400 --save_checkpoints_steps 100 --train_batch_size 8)
common=() # training flags of a group of runs
pause=12  # ms of a step

start() { # MODEL_DIR CLUSTER-FLAGS…: a cluster in the background, in the middle of its training
    BELFRY_FAULT=slow:tower_step#$pause "$BUILD/tools/belfry" local train --distributed --restarts 1 --job_dir "$1" \
        "${@:2}" -- "${digits[@]}" "${settings[@]}" "${common[@]}" >out.txt 2>err.txt &
    supervisor=$!
    check "$1 is on its way" wait_for test -f "$1/ckpt-00000100/manifest.json"
}
wait_for() { # CONDITION…: while the job runs
    for _ in $(seq "$naps"); do
        "$@" && return 0
        kill -0 "$supervisor" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}
said() { grep -q "$1" err.txt; } # TEXT
end() { # waits for the job; sets $code
    code=0
    { wait "$supervisor" || code=$?; } 2>/dev/null
}
generations() { grep -c '"event":"generation"' "$1/job.journal" || true; } # MODEL_DIR
# No step is made again, and no process is reported as lost or dead.
nothing_is_lost() { ! grep -E 'going back|lost (worker|ps)|killed|of 1 times' err.txt; }
ends_well() { # WHAT MODEL_DIR
    end
    equal "exit code of $1" "$code" 0
    check "nothing is lost: $1" nothing_is_lost
    check "no process is left: $1" nothing_left
}

run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

# --- If a job needs all its processes, each one is replaced, more often than it may die
for victim in "worker 1" "ps 0" "ps 1" "master 0"; do
    read -r role index <<<"$victim"
    named=${victim/master 0/master}
    start "by-$role$index" --parameter_server_count 2
    kill -TERM "$(roles "$role" "$index")"
    check "$named is started again" wait_for said "$named has left, as it was told to: it is started again"
    if [ "$role" = worker ]; then
        check "$named is back" wait_for said "$named is back"
        kill -HUP "$(roles "$role" "$index")" # counts as SIGTERM
    fi
    ends_well "the farewell of $named" "by-$role$index"
    equal "digest after the farewell of $named" "$(digest "by-$role$index")" "$whole"
    left=$(grep -c "$named has left" err.txt || true)
    if [ "$role" = worker ]; then
        equal "farewells of $named" "$left" 2
        equal "generations with $named" "$(generations "by-$role$index")" 1
    else
        equal "generations with $named" "$(generations "by-$role$index")" 2
    fi
done
# --- Two at once, one of which has state
start two --parameter_server_count 2
check "a list of processes names their roles" grep -qz '^belfry.ps-1.$' "/proc/$(roles ps 1)/cmdline"
kill -TERM "$(roles worker 0)" "$(roles ps 1)"
ends_well "the farewell of two" two
check "both have left" test "$(grep -c 'has left, as it was told to' err.txt)" = 2
equal "digest after the farewell of two" "$(digest two)" "$whole"

# --- Workers that hold the parameters, and a master that trains
start holders --parameter_server_count 0
kill -TERM "$(roles worker 1)"
ends_well "the farewell of a worker with a shard" holders
equal "digest after the farewell of a worker with a shard" "$(digest holders)" "$whole"
equal "generations with a worker with a shard" "$(generations holders)" 2
cat >trains.yaml <<'YAML'
master: {trains: true}
workers: {count: 1}
YAML
start trains --config trains.yaml
kill -TERM "$(roles master 0)"
ends_well "the farewell of a master that trains" trains
equal "digest after the farewell of a master that trains" "$(digest trains)" "$whole"

# --- If fewer are enough, the others play its part until its replacement comes
start elastic --min_workers 1
kill -TERM "$(roles worker 1)"
check "the job continues with fewer" wait_for said "1 worker from step .*: 2 of worker 0"
check "the replacement is admitted" wait_for said "2 workers from step .*: 1 of worker 0, 1 of worker 1"
ends_well "the farewell of a worker of whom fewer are enough" elastic
equal "digest after the farewell of a worker that the job does not need" "$(digest elastic)" "$whole"

# --- If not all count in a step, the others do not wait
common=(--mode async --train_steps 900)
start async --parameter_server_count 2
kill -TERM "$(roles worker 0)"
check "the worker is back" wait_for said "worker 0 is back"
kill -TERM "$(roles ps 1)"
check "the shard is replaced" wait_for said "ps 1 has left"
ends_well "farewells in mode async" async
common=()

# --- All are told, as by an engine that suspends them, or by the notice of a machine that they share
export BELFRY_NOTICE_FILE=$work/notice
pause=40 # the end takes two seconds and a poll
start noticed
touch notice
end
equal "exit code after a notice to all" "$code" 143
check "the notice is named" said "notice that this machine is to go ($work/notice)"
check "all is saved after a notice to all" grep -q '^interrupted true$' out.txt
check "no process is left after a notice to all" nothing_left
run_ok env BELFRY_NOTICE_FILE= "$BUILD/tools/belfry" local train --distributed --job_dir noticed -- "${digits[@]}" "${settings[@]}"
equal "digest after a notice to all" "$(digest noticed)" "$whole"
capture "$BUILD/tools/belfry" train_and_evaluate --model_dir alone "${digits[@]}" "${settings[@]}"
equal "exit code of a process that begins on such a machine" "$code" 143
rm notice
unset BELFRY_NOTICE_FILE

# --- Without a supervisor: another launcher restarts processes
role() { # ROLE INDEX INCARNATION [VARIABLE=VALUE…]: in the background; its pid is in $started
    local task listen=$1$2
    [ "$1" != master ] || listen=m
    task=$(printf '{"role":"%s","index":%d,"master":"unix:%s/m","listen":"unix:%s/%s","worker_count":2,
        "parameter_server_count":1,"recovers":1,"incarnation":%d}' "$1" "$2" "$work" "$work" "$listen" "$3")
    env "${@:4}" BELFRY_TASK="$task" BELFRY_FAULT=slow:tower_step#40 "$BUILD/tools/belfry" train_and_evaluate \
        --model_dir "$model" "${digits[@]}" "${settings[@]}" >"$1$2.$3.out" 2>"$1$2.$3.err" &
    started=$!
}
role_ends() { # PID: sets $code
    code=0
    { wait "$1" || code=$?; } 2>/dev/null
}
launch() { # MODEL_DIR
    model=$1
    role master 0 0 && supervisor=$started
    role ps 0 0 && ps=$started
    role worker 0 0 && worker0=$started
    role worker 1 0 BELFRY_NOTICE_FILE="$work/notice" && worker1=$started
    check "$model is on its way" wait_for test -f "$model/ckpt-00000100/manifest.json"
}
launch foreign
touch notice # of the machine of one of them
role_ends "$worker1"
equal "exit code of a worker that leaves" "$code" 143
role worker 1 1 && worker1=$started
kill -TERM "$supervisor"
master=$supervisor
role_ends "$master"
equal "exit code of a master that leaves" "$code" 143
role master 0 1 && supervisor=$started
for pid in "$supervisor" "$ps" "$worker0" "$worker1"; do
    role_ends "$pid"
    equal "exit code of the others" "$code" 0
done
cat ./*.err >err.txt
check "nothing is lost without a supervisor" nothing_is_lost
equal "digest without a supervisor" "$(digest foreign)" "$whole"
rm notice
launch suspended
kill -TERM "$worker1" "$ps"
sleep 0.5 # they do not receive it at the same moment
kill -TERM "$worker0" "$supervisor"
role_ends "$supervisor"
equal "exit code of the master when all are told" "$code" 143
for pid in "$ps" "$worker0" "$worker1"; do
    role_ends "$pid"
    equal "exit code of the others when all are told" "$code" 0
done
cp master0.0.out out.txt
check "all is saved when all are told" grep -q '^interrupted true$' out.txt

finish
