#!/usr/bin/env bash
# Processes that are silent for less than silence_timeout cost nothing: a worker, a parameter server and the master
# are stopped (SIGSTOP), over gRPC and shared memory, in four jobs at once. They are stopped for longer than a gRPC
# ping of a shorter timeout may stay unanswered, 10 s after 10 s without data. A fifth job is suspended as a whole, as
# batch systems do it, for longer than its timeout. No process is lost or started again, no generation begins, and the
# digest is that of an undisturbed run.
# usage: silence.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
settings=(--train_steps 120 --save_checkpoints_steps 20 --train_batch_size 8)
cat >patient.yaml <<'YAML'
workers: {count: 2}
parameter_servers: {count: 2}
limits: {silence_timeout: 120, restarts: 2}
YAML
sed 's/120/15, stall_timeout: 15/' patient.yaml >hasty.yaml

run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

victims=("worker 1 grpc" "ps 1 grpc" "master 0 grpc" "worker 1 shm" "all - grpc")
supervisors=()
brake # 40 s are left to stop a process of every job
for i in "${!victims[@]}"; do
    read -r role index lane <<<"${victims[i]}"
    config=patient.yaml
    [ "$role" != all ] || config=hasty.yaml
    BELFRY_FAULT=slow:tower_step#400 "$BUILD/tools/belfry" local train --config "$config" --job_dir "job-$i" -- \
        "${digits[@]}" "${settings[@]}" --lane "$lane" >"out-$i.txt" 2>"err-$i.txt" &
    supervisors+=($!)
done
stopped=()
trap 'kill -CONT "${stopped[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
processes_of() { # JOB ROLE INDEX: of this job, which has the folder; the supervisor is the last of all
    local pid roles=()
    [ "$2" = all ] || roles=("$2" "$3")
    for pid in $(roles "${roles[@]}"); do
        if grep -qzE "^BELFRY_MODEL_DIR=.*job-$1$" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
    done
    [ "$2" != all ] || echo "${supervisors[$1]}"
}
for i in "${!victims[@]}"; do
    read -r role index lane <<<"${victims[i]}"
    until [ -f "job-$i/ckpt-00000020/manifest.json" ]; do
        kill -0 "${supervisors[i]}" 2>/dev/null || break
        sleep 0.05
    done
    mapfile -t found < <(processes_of "$i" "$role" "$index")
    count=1
    [ "$role" != all ] || count=6 # and the supervisor
    equal "processes of job $i that are stopped" "${#found[@]}" $count
    stopped+=("${found[@]}")
    kill -STOP "${found[@]}" || complain "processes of job $i have ended"
done
sleep 21 # more than twice 10 s
for i in "${!victims[@]}"; do
    check "job $i waits meanwhile" kill -0 "${supervisors[i]}"
done
kill -CONT "${stopped[@]}" || complain "a process has ended while it was stopped"
sleep 1 # they look at their clocks before a step ends
release
for i in "${!victims[@]}"; do
    read -r role index lane <<<"${victims[i]}"
    code=0
    wait "${supervisors[i]}" || code=$?
    cp "err-$i.txt" err.txt
    cp "out-$i.txt" out.txt
    equal "exit code with a silent $role over $lane" "$code" 0
    equal "digest with a silent $role over $lane" "$(digest "job-$i")" "$whole"
    check "no process is started again, $role over $lane" test -z "$(compgen -G "job-$i/logs/*.1.log")"
    check "none is lost, $role over $lane" sh -c "! grep -qE 'lost|started again' err.txt"
    equal "generations, $role over $lane" "$(grep -c '"generation"' "job-$i/job.journal")" 1
done
finish
