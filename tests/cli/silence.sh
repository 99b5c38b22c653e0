#!/usr/bin/env bash
# Processes that are silent for less than silence_timeout cost nothing: a worker, a parameter server and the master
# are stopped (SIGSTOP), over gRPC and shared memory, in four jobs at once. They are stopped for longer than a gRPC
# ping of a shorter timeout may stay unanswered, 10 s after 10 s without data. A fifth job is suspended as a whole, as
# batch systems do it, for longer than its timeout. No process is lost or started again, no generation begins, and the
# digest is that of an undisturbed run. A sixth job, without a supervisor, is asked to stop while its master stands still
# for longer than the timeout: it saves when the master continues.
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
role() { # ROLE LISTEN: of the sixth job; replaces this process
    local task
    task=$(printf '{"role":"%s","index":0,"master":"unix:%s/call","listen":"%s","worker_count":1,"recovers":1,
        "parameter_server_count":1,"silence_timeout_ms":10000}' "$1" "$work" "$2")
    BELFRY_FAULT=slow:tower_step#400 BELFRY_TASK=$task exec "$BUILD/tools/belfry" train_and_evaluate "${digits[@]}" \
        --train_steps 100000 --save_checkpoints_steps 5 --model_dir asked
}
role master "unix:$work/call" >asked-0.txt 2>&1 &
asked=($!)
role ps "unix:$work/call-ps" >asked-1.txt 2>&1 &
asked+=($!)
role worker "" >asked-2.txt 2>&1 &
asked+=($!)
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
until [ -f asked/ckpt-00000005/manifest.json ]; do
    kill -0 "${asked[0]}" 2>/dev/null || break
    sleep 0.05
done
kill -STOP "${asked[0]}"
stopped+=("${asked[0]}")
kill -INT "${asked[1]}" "${asked[2]}"
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
for i in 0 1 2; do
    codes[i]=0
    wait "${asked[i]}" || codes[i]=$?
done
equal "exit codes of the job that was asked to stop: master, ps, worker" "${codes[*]}" "143 0 0"
check "it was interrupted" grep -qx 'interrupted true' asked-0.txt
check "it has saved its step" test -f "asked/ckpt-$(printf %08d "$(awk '/^global_step / { print $2 }' asked-0.txt)")/manifest.json"
finish
