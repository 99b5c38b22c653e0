#!/usr/bin/env bash
# Processes that are silent for less than silence_timeout cost nothing: a worker, a parameter server and the master
# are stopped (SIGSTOP), over gRPC and shared memory, in four jobs at once. They are stopped for longer than a gRPC
# ping of a shorter timeout may stay unanswered, 10 s after 10 s without data. No process is lost or started again,
# no generation begins, and the digest is that of an undisturbed run.
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

run_ok train whole "${settings[@]}" --num_workers 2
whole=$(digest whole)

victims=("worker 1 grpc" "ps 1 grpc" "master 0 grpc" "worker 1 shm")
supervisors=()
brake # 40 s are left to stop a process of every job
for i in "${!victims[@]}"; do
    read -r role index lane <<<"${victims[i]}"
    BELFRY_FAULT=slow:tower_step#400 "$BUILD/tools/belfry" local train --config patient.yaml --job_dir "job-$i" -- \
        "${digits[@]}" "${settings[@]}" --lane "$lane" >"out-$i.txt" 2>"err-$i.txt" &
    supervisors+=($!)
done
stopped=()
for i in "${!victims[@]}"; do
    read -r role index lane <<<"${victims[i]}"
    until [ -f "job-$i/ckpt-00000020/manifest.json" ]; do
        kill -0 "${supervisors[i]}" 2>/dev/null || break
        sleep 0.05
    done
    for pid in $(roles "$role" "$index"); do # of all jobs: the one that has this job's folder
        if grep -qzE "^BELFRY_MODEL_DIR=.*job-$i$" "/proc/$pid/environ" 2>/dev/null; then
            kill -STOP "$pid"
            stopped+=("$pid")
        fi
    done
    equal "a process of job $i is stopped" "${#stopped[@]}" $((i + 1))
done
release
sleep 21 # more than twice 10 s
for i in "${!victims[@]}"; do
    check "job $i waits meanwhile" kill -0 "${supervisors[i]}"
done
kill -CONT "${stopped[@]}"
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
