#!/usr/bin/env bash
# A job of a real Slurm: four nodes on this host (tests/engines/slurm-up), with components if roles need
# different machines. The bits are those of one process, also if a process is killed, a node is lost, or Slurm
# restarts the job. Skipped if Slurm cannot be started.
# usage: slurm.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
engines=$SOURCE/tests/engines
"$engines/slurm-up" "$work/slurm" || {
    [ $? -eq 77 ] && exit 77
    exit 1
}
trap '"$engines/slurm-up" --down "$work/slurm"; rm -rf "$work"' EXIT
export SLURM_CONF=$work/slurm/slurm.conf XDG_STATE_HOME=$work/state
cat >slurm.yaml <<'YAML'
machines: {one: {cores: 1, memory: 200 MiB, devices: 1}, small: {cores: 1, memory: 100 MiB}}
master: {machine: small}
workers: {count: 3, machine: one}
parameter_servers: {count: 2, machine: small}
limits: {silence_timeout: 3}
slurm: {partition: debug, minutes: 10, gpus: true, options: [--comment=test]}
YAML
settings=(--train_steps 60 --save_checkpoints_steps 20 --eval_every_steps 30)
submit() { # NAME [flags of the submission]
    local name=$1
    shift
    belfry jobs submit training "$name" --config slurm.yaml --engine slurm --job_dir "$name" "$@" -- "${digits[@]}" \
        "${settings[@]}"
}
becomes() { # NAME STATE
    for _ in $(seq "$naps"); do
        belfry jobs describe "$1" >out.txt 2>err.txt
        grep -q "^state $2" out.txt && return 0
        sleep 0.05
    done
    return 1
}

# --- The submission, and a job without trouble
run_ok submit dry --dry_run
check "a component for each kind of machine" test "$(grep -c '^#SBATCH hetjob$' out.txt)" -eq 1
check "master and servers share one" grep -q '^#SBATCH --ntasks=3 --cpus-per-task=1 --mem-per-cpu=100M$' out.txt
check "the other has its machine's resources" grep -q '^#SBATCH --ntasks=3 --cpus-per-task=1 --mem-per-cpu=200M --gpus-per-task=1$' out.txt
check "and Slurm's other settings" \
    grep -q '^#SBATCH --requeue --partition=debug --time=10 --comment=test$' out.txt
check "nothing was submitted" test ! -e "$(job_folder dry)"
run_ok train alone "${settings[@]}" --num_workers 3
alone=$(digest alone)
run_ok submit whole --wait
equal "digest of Slurm's job" "$(digest whole)" "$alone"
run_ok belfry jobs describe whole
check "Slurm's number is known" grep -q '^engine_id [0-9]*$' out.txt
run_ok submit one --wait --worker_count 1 --parameter_server_count 0
run_ok train alone-1 "${settings[@]}"
equal "digest with the counts of flags" "$(digest one)" "$(digest alone-1)"
run_fails 2 'slurm.yaml:2:11: unknown key "queue"' bash -c 'printf "workers: {count: 1}\nslurm:   {queue: x}\n" >slurm.yaml
    exec "$@"' - "$BUILD/tools/belfry" jobs submit training bad --config slurm.yaml --engine slurm --job_dir bad -- \
    "${digits[@]}"
cat >slurm.yaml <<'YAML'
machines: {one: {cores: 1}}
master: {machine: one}
workers: {count: 3, machine: one}
parameter_servers: {count: 2, machine: one}
limits: {silence_timeout: 3, join_timeout: 40}
YAML
run_fails 1 "exit code 1 of sbatch: |Batch job submission failed: Invalid partition name specified" bash -c '
    cp slurm.yaml other.yaml; echo "slurm: {partition: none}" >>other.yaml; exec "$@"' - "$BUILD/tools/belfry" jobs \
    submit training refused --config other.yaml --engine slurm --job_dir refused -- "${digits[@]}"

# --- A process is killed; the queue; cancelling and resuming
settings=(--train_steps 1200 --save_checkpoints_steps 100 --log_step_count_steps 10)
run_ok train long "${settings[@]}" --num_workers 3
long=$(digest long)
export BELFRY_FAULT=slow:tower_step#40 # until `release`: each job lasts longer than the commands that disturb it
victim() { # NAME: prints the pid of a worker
    local pid
    for pid in $(pgrep -x belfry); do
        trains_as "$pid" "{\"job\":\"$1\",\"role\":\"worker\",\"index\":1,*" && echo "$pid" && return
    done
}
brake
run_ok submit killed
check "it trains" job_reaches killed 110
kill -9 "$(victim killed)"
release
check "it ends well" becomes killed SUCCEEDED
equal "digest after a kill" "$(digest killed)" "$long"
cp "$(job_folder killed)/logs/supervisor.log" err.txt
check "the dead process is named" grep -q 'worker 1 (pid [0-9]* on .*) was killed by signal 9 (Killed) after step' err.txt
brake
run_ok submit stopped
run_ok submit waits --worker_count 5 # there is no room for both
check "it trains" job_reaches stopped 110
check "the other one is queued" becomes waits QUEUED
check "with Slurm's reason" grep -q '^message Slurm.s job [0-9]*: PENDING ' out.txt
run_fails 2 'has room for the 3 workers with which it was submitted, got 4' \
    belfry jobs scale stopped --worker_count 4
run_ok belfry jobs cancel waits
check "it is cancelled" becomes waits CANCELLED
run_ok belfry jobs remove waits
run_ok belfry jobs cancel stopped
check "the first one saves and ends" becomes stopped CANCELLED
release
check "and has a checkpoint" compgen -G 'stopped/ckpt-*' >/dev/null
run_ok belfry jobs resume stopped --wait
equal "digest after resuming" "$(digest stopped)" "$long"

# --- A node is lost, or the job is requeued: Slurm restarts it, and it resumes from a checkpoint. Slurm waits
# two minutes before that, unless it is released. A release must not come in the second in which the first run
# was ended: a node refuses the new run as part of the old one ("Job credential revoked"), and Slurm drops the
# job.
begins_again() { # NAME: fails at once if the job has ended without that
    local number told=
    number=$(cat "$(job_folder "$1")/engine_id")
    for _ in $(seq 1200); do
        case "$(scontrol show job "$number" 2>/dev/null)" in
        *"JobState=PENDING "*Restarts=[1-9]*)
            [ -n "$told" ] || ! scontrol update JobId="$number" StartTime=now+2 >/dev/null 2>&1 || told=yes
            ! squeue --noheader --format=%r --job "$number" 2>/dev/null | grep -qi held || # too early for its nodes
                scontrol release "$number" >/dev/null 2>&1 || true
            ;;
        *"JobState=RUNNING "*Restarts=[1-9]* | *"JobState=COMPLETED "*Restarts=[1-9]*) return 0 ;; # or it is quick
        *"JobState=COMPLETED "* | *"JobState=FAILED "* | *"JobState=CANCELLED "*) return 1 ;;
        esac
        sleep 0.05
    done
    return 1
}
brake
run_ok submit lost
check "it trains" job_reaches lost 110
lost=$(squeue --noheader --job "$(cat "$(job_folder lost)/engine_id")" --format=%N)
lost=$(scontrol show hostnames "$lost" | tail -n 1)
run_ok "$engines/slurm-up" --lose "$work/slurm" "$lost"
check "Slurm restarts it elsewhere" begins_again lost
release
check "it ends well" becomes lost SUCCEEDED
equal "digest after the loss of a node" "$(digest lost)" "$long"
brake
submit requeued --wait >waited.txt 2>&1 &
waiting=$!
check "it trains" job_reaches requeued 110
run_ok scontrol requeue "$(cat "$(job_folder requeued)/engine_id")"
check "Slurm restarts it" begins_again requeued
release
check "it ends well" becomes requeued SUCCEEDED
code=0
wait "$waiting" || code=$?
cp waited.txt err.txt
equal "the waiting submission waited for the whole job" "$code" 0
equal "digest of a restarted job" "$(digest requeued)" "$long"
check "it resumed from a checkpoint" grep -q 'resuming from' "$(job_folder requeued)/logs/supervisor.log"
finish
