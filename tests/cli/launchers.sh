#!/usr/bin/env bash
# Other launchers make a job of processes. Each is played by its variables, Open MPI's mpirun is real. All
# jobs have the bits of one process.
# usage: launchers.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_RUNTIME_DIR=$work
settings=(--train_steps 20 --train_batch_size 8 --eval_every_steps 10 --save_checkpoints_steps 10)

for workers in 1 2 3; do
    run_ok train "alone-$workers" "${settings[@]}" --num_workers "$workers"
done
of2=$(digest alone-2) of3=$(digest alone-3)

# Several ports that no other process gets: they stay bound here, without a listener.
python3 -c '
import signal, socket
def hold(port):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("127.0.0.1", port))
    return one
def hold_row(count):
    while True:
        try:
            row = [hold(0)]
            while len(row) < count:
                row.append(hold(row[-1].getsockname()[1] + 1))
            return row
        except (OSError, OverflowError):
            pass
held = hold_row(1) + hold_row(1) + hold_row(1) + hold_row(1) + hold_row(3)
print(*[one.getsockname()[1] for one in held], flush=True)
signal.pause()' >ports.txt &
holder=$!
until [ -s ports.txt ]; do sleep 0.05; done
read -r -a ports <ports.txt

# Starts processes that learn their role from variables, waits for all, and checks their results.
others=()
start() { # NAME [NAME=VALUE…] -- [flags]: in the background
    local name=$1 variables=()
    shift
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    env "${variables[@]}" timeout -k 5 "$patience" "$BUILD/tools/belfry" train_and_evaluate --model_dir "$name" \
        "${digits[@]}" "${settings[@]}" "$@" >"$name-${#others[@]}.out" 2>"$name-${#others[@]}.err" &
    others+=("$!")
}
ends_well() { # NAME DIGEST
    local pid number=0
    for pid in "${others[@]}"; do
        checks=$((checks + 1))
        code=0
        wait "$pid" || code=$?
        cp "$1-$number.out" out.txt
        cp "$1-$number.err" err.txt
        [ "$code" -eq 0 ] || complain "$1: process $number ended with $code"
        [ "$number" -eq 0 ] || check "$1: only the master prints" test ! -s out.txt
        number=$((number + 1))
    done
    others=()
    equal "digest of $1" "$(digest "$1")" "$2"
    check "$1 leaves no sockets" test -z "$(find "$work" -maxdepth 1 -name 'belfry-sockets-*')"
}

# --- Ranks on one host: unix sockets in a folder of the job's
torchrun() { # NAME RANK SIZE [NAME=VALUE…] [-- flags]
    local name=$1 rank=$2 size=$3
    shift 3
    start "$name" RANK="$rank" WORLD_SIZE="$size" LOCAL_RANK="$rank" LOCAL_WORLD_SIZE="$size" MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=29500 TORCHELASTIC_RUN_ID="$name-$$" "$@"
}
for rank in 0 1 2; do torchrun torchrun "$rank" 3 --; done
ends_well torchrun "$of3"
check "the first rank is the master" grep -q 'shards' torchrun-0.err
check "sockets need no secret" test -z "$(grep BELFRY_SECRET torchrun-0.err)"
for rank in 0 1 2; do torchrun torchrun-2 "$rank" 3 -- --no_chief_trains; done # rank 0 only coordinates
ends_well torchrun-2 "$of2"
for rank in 0 1; do
    start slurm SLURM_PROCID="$rank" SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID="$rank" SLURM_JOB_ID="$$" SLURM_STEP_ID=0 \
        SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=0 SLURM_STEP_NODELIST=here --
done
ends_well slurm "$of2"
for rank in 0 1; do # Hydra names no job: its ranks have one parent
    start mpiexec PMI_RANK="$rank" PMI_SIZE=2 MPI_LOCALRANKID="$rank" MPI_LOCALNRANKS=2 BELFRY_JOB="mpich-$$" --
done
ends_well mpiexec "$of2"
run_ok mpirun --allow-run-as-root --oversubscribe -np 3 "$BUILD/tools/belfry" train_and_evaluate --model_dir mpirun \
    "${digits[@]}" "${settings[@]}"
equal "digest of mpirun's job" "$(digest mpirun)" "$of3"
check "results come once" test "$(grep -c 'digest' out.txt)" -le 1
run_ok belfry local ranks --rank_count 2 -- "$BUILD/tools/belfry" train_and_evaluate --model_dir local "${digits[@]}" \
    "${settings[@]}"
equal "digest of local ranks" "$(digest local)" "$of2"

# --- A described cluster: ranks take its places
run_ok mpirun --allow-run-as-root --oversubscribe -np 6 "$BUILD/tools/belfry" rank --worker_count 3 \
    --parameter_server_count 2 --job_dir rank -- "${digits[@]}" "${settings[@]}"
equal "digest of ranks in a cluster" "$(digest rank)" "$of3"
printf 'master: {trains: true}\nworkers: {count: 1}\nparameter_servers: {count: 1}\n' >cluster.yaml
echo 'environment: {BEL_TEST_WORD: seen}' >>cluster.yaml
cat >program.sh <<'SH'
#!/bin/sh
echo "$BEL_TEST_WORD $BELFRY_TASK"
SH
chmod +x program.sh
run_ok mpirun --allow-run-as-root --oversubscribe -np 3 "$BUILD/tools/belfry" rank --config cluster.yaml --job_dir x \
    -- ./program.sh
check "rank 0 is the master" grep -q '^seen {"job":"ranks","role":"master",.*"master_trains":1,.*"local_rank":0,"local_size":2' out.txt
check "servers and workers come after it" grep -q '^seen .*"role":"worker","index":1,.*"local_rank":1,' out.txt
check "all have exited" test -z "$(find "$work" -maxdepth 1 -name 'belfry-sockets-*')"
run_fails 2 "Open MPI has 1 rank, and the cluster 3 processes|mpirun -np 3 belfry rank" env OMPI_COMM_WORLD_RANK=0 \
    OMPI_COMM_WORLD_SIZE=1 "$BUILD/tools/belfry" rank --config cluster.yaml --job_dir x -- "${digits[@]}"

# --- Ranks of several hosts, played by local sizes; a secret keeps strangers out
echo 0123456789abcdef0123 >secret.txt
chmod 600 secret.txt
for rank in 0 1 2; do
    start hosts RANK="$rank" WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 \
        MASTER_PORT="$((ports[0] - 1))" BELFRY_SECRET_FILE=secret.txt --
done
ends_well hosts "$of3"

# --- ps-lite: a scheduler, servers, workers
dmlc() { # NAME ROLE [NAME=VALUE…]
    local name=$1 role=$2
    shift 2
    start "$name" DMLC_ROLE="$role" DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=2 DMLC_PS_ROOT_URI=127.0.0.1 \
        DMLC_PS_ROOT_PORT="${ports[1]}" BELFRY_SECRET=0123456789abcdef0123 "$@" --
}
dmlc bytescheduler scheduler
for i in 0 1; do dmlc bytescheduler server DMLC_SERVER_ID="$i"; done
for i in 0 1; do dmlc bytescheduler worker DMLC_WORKER_ID="$i"; done
ends_well bytescheduler "$of2"
dmlc tracker scheduler
for i in 0 1; do dmlc tracker worker DMLC_TASK_ID="$i"; done
for i in 2 3; do dmlc tracker server DMLC_TASK_ID="$i"; done
ends_well tracker "$of2"

# --- TF_CONFIG: the chief trains as in TensorFlow 1, or coordinates as in TensorFlow 2
tf() { # NAME TYPE INDEX FLAGS…
    local name=$1
    start "$name" TF_CONFIG="{\"cluster\": {\"chief\": [\"127.0.0.1:${ports[2]}\"], \"ps\": [\"127.0.0.1:0\"],
        \"worker\": [\"127.0.0.1:0\", \"127.0.0.1:0\"]}, \"task\": {\"type\": \"$2\", \"index\": $3}}" -- "${@:4}"
}
tf tf1 chief 0
for i in 0 1; do tf tf1 worker "$i"; done
tf tf1 ps 0
ends_well tf1 "$of3"
for role in "worker 1" "ps 0" "chief 0"; do # a role that is restarted after the end exits with 0, at once
    read -r type index <<<"$role"
    tf tf1 "$type" "$index"
    code=0
    wait "${others[0]}" || code=$?
    others=()
    equal "$role after the end" "$code" 0
    check "$role says so" grep -qE 'is over, at step 20|nothing to train' tf1-0.err
done
tf tf2 chief 0 --no_chief_trains
for i in 0 1; do tf tf2 worker "$i" --no_chief_trains; done
tf tf2 ps 0 --no_chief_trains
ends_well tf2 "$of2"

# --- Parameter servers, and a chief that does not train, have no data where they run
cp "$TRAIN_CSV" here.csv
plain=("${digits[@]}")
digits=("${digits[@]/#$TRAIN_CSV/here.csv}")
bare() { # NAME FLAGS…
    BELFRY_DATA_DIR=$work/nowhere tf "$1" chief 0 --no_chief_trains "${@:2}"
    for i in 0 1; do BELFRY_DATA_DIR=$work tf "$1" worker "$i" --no_chief_trains "${@:2}"; done
    BELFRY_DATA_DIR=$work/nowhere tf "$1" ps 0 --no_chief_trains "${@:2}"
}
bare bare
ends_well bare "$of2"
check "the chief says that it hears of the data" grep -q "not on this host: waiting for a worker's description" bare-0.err
short=("${settings[@]}")
settings=("${settings[@]/#20/30}")
bare bare # goes on
run_ok "$BUILD/tools/belfry" train_and_evaluate --model_dir longer "${digits[@]}" "${settings[@]}" --num_workers 2
ends_well bare "$(digest longer)"

# A table's model and defaults follow from its columns. A chief that comes after a killed one hears of them again.
digits=(--train_files here.csv --label_column digit)
settings=(--num_threads 1 --train_steps 400 --save_checkpoints_steps 50)
run_ok "$BUILD/tools/belfry" train_and_evaluate --model_dir columns "${digits[@]}" "${settings[@]}" --num_workers 2
BELFRY_FAULT=slow:tower_compute#10 bare table
for ((tries = 0; tries < 600; tries++)); do
    [ ! -d table/ckpt-00000050 ] || break
    sleep 0.05
done
check "the table's job saves" test -d table/ckpt-00000050
kill -KILL "$(cat "/proc/${others[0]}/task/${others[0]}/children")" # the command that `timeout` runs
wait "${others[0]}" || true
mv table-0.err killed.err
members=("${others[@]:1}") others=()
BELFRY_FAULT='' BELFRY_DATA_DIR=$work/nowhere tf table chief 0 --no_chief_trains
others+=("${members[@]}")
ends_well table "$(digest columns)"
check "the chief heard of the columns" grep -q "the workers' data: 1438 rows; label \"digit\", classes" killed.err
check "and the next chief hears again" grep -q "waiting for a worker's description" table-0.err
settings=("${short[@]}") digits=("${plain[@]}")

# A program's chief calls its input function, whose file is not there either.
"$SOURCE/examples/clicks/make_data" 4000 1 >clicks.csv
"$SOURCE/examples/clicks/make_data" 500 2 >clicks-eval.csv
run_ok "$BUILD/tests/own_program" clicks.csv "$work/clicks-eval.csv" 1 --model_dir clicks-here
program() { # TYPE INDEX DATA_FOLDER: in the background
    env TF_CONFIG="{\"cluster\": {\"chief\": [\"127.0.0.1:${ports[2]}\"], \"ps\": [\"127.0.0.1:0\"],
        \"worker\": [\"127.0.0.1:0\", \"127.0.0.1:0\"]}, \"task\": {\"type\": \"$1\", \"index\": $2}}" BELFRY_DATA_DIR="$3" \
        timeout -k 5 "$patience" "$BUILD/tests/own_program" clicks.csv "$work/clicks-eval.csv" 1 --model_dir clicks \
        --no_chief_trains >"clicks-${#others[@]}.out" 2>"clicks-${#others[@]}.err" &
    others+=("$!")
}
program chief 0 "$work/nowhere"
for i in 0 1; do program worker "$i" "$work"; done
program ps 0 "$work/nowhere"
ends_well clicks "$(digest clicks-here)"
check "the program's chief hears of the data" grep -q "waiting for a worker's description" clicks-0.err

# --- A worker with other evaluation data is not asked to help: the results are the master's
mkdir own other
cp "$EVAL_CSV" own/eval.csv
awk -F, -v OFS=, 'NR > 1 { $NF = ($NF + 1) % 10 } 1' "$EVAL_CSV" >other/eval.csv # the same size, other labels
plain=("${digits[@]}")
digits=("${digits[@]/#$EVAL_CSV/eval.csv}")
run_ok env BELFRY_DATA_DIR="$work/own" "$BUILD/tools/belfry" train_and_evaluate --model_dir others-alone "${digits[@]}" \
    "${settings[@]}" --num_workers 2 --eval_batch_size 8
grep '^eval at step' err.txt >expected.txt
for rank in 0 1 2; do
    torchrun others "$rank" 3 BELFRY_DATA_DIR="$work/$([ "$rank" -eq 1 ] && echo other || echo own)" \
        BELFRY_FAULT=slow:evaluates#20@master-0 -- --no_chief_trains --evaluate_on_workers --eval_batch_size 8
done
ends_well others "$of2"
check "the results are those of the master's data" cmp <(grep '^eval at step' others-0.err) expected.txt
check "the other worker is named" \
    grep -q 'worker 0.*data to evaluate on, or their order, are not those of the master' others-0.err
digits=("${plain[@]}")

# --- gcloud's local runner, the real one
if command -v gcloud >/dev/null && command -v python >/dev/null; then
    echo leak:libcares >leaks.txt # the library leaks the text "localhost"; for builds that look for leaks
    gcloud_trains() { # NAME [gcloud's flags]
        PATH=$BUILD/tools:$PATH CLOUDSDK_CONFIG=$work/gcloud CLOUDSDK_CORE_DISABLE_PROMPTS=1 \
            LSAN_OPTIONS=suppressions=$work/leaks.txt:print_suppressions=0 BELFRY_SECRET=0123456789abcdef0123 \
            timeout -k 5 "$patience" gcloud ml-engine local train --module-name trainer.task \
            --package-path "$SOURCE/examples/gcloud/trainer" --job-dir "$work/$1" "${@:2}" -- "${digits[@]}" \
            "${settings[@]}"
    }
    run_ok gcloud_trains gcloud-alone
    equal "digest of gcloud's process" "$(digest gcloud-alone)" "$(digest alone-1)"
    run_ok gcloud_trains gcloud --distributed --worker-count 1 --parameter-server-count 1 --start-port "${ports[4]}"
    equal "digest of gcloud's job" "$(digest gcloud)" "$of2"
else
    echo "gcloud is left out: there is none, or no python"
fi

# --- Impossible jobs
hosts=(env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=192.0.2.1 MASTER_PORT=29500)
alone=("$BUILD/tools/belfry" train_and_evaluate --model_dir refused "${digits[@]}" "${settings[@]}")
run_fails 2 'any process that reaches 192.0.2.1 port 29501 could take part|BELFRY_SECRET_FILE=belfry.secret' \
    "${hosts[@]}" "${alone[@]}"
run_fails 2 'BELFRY_SECRET_FILE secret.txt: every user of this host may read' \
    env BELFRY_SECRET_FILE=secret.txt bash -c 'chmod 644 secret.txt; exec "$@"' - "${hosts[@]}" "${alone[@]}"
run_fails 2 'BELFRY_SECRET and BELFRY_SECRET_FILE exclude each other' \
    env BELFRY_SECRET=0123456789abcdef0123 BELFRY_SECRET_FILE=secret.txt "${alone[@]}"
run_fails 2 'BELFRY_TLS_CA, BELFRY_TLS_CERTIFICATE and BELFRY_TLS_KEY: expected all three or none, got 1' \
    env BELFRY_TLS_CA=ca.pem "${hosts[@]}" "${alone[@]}"
run_fails 2 '2 ranks of Open MPI run on several hosts|expected BELFRY_ADDRESS=HOST:PORT' env OMPI_COMM_WORLD_RANK=0 \
    OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_NAMESPACE=x "${alone[@]}"
run_fails 2 'RANK: expected from 0 to 1, got 2' env RANK=2 WORLD_SIZE=2 MASTER_PORT=1 "${alone[@]}"
run_fails 2 '--num_workers is for one process, and the environment' env RANK=0 WORLD_SIZE=2 MASTER_PORT=1 \
    "${alone[@]}" --num_workers 2
psl=(env DMLC_ROLE=worker DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=1 DMLC_PS_ROOT_URI=a DMLC_PS_ROOT_PORT=9)
run_fails 2 'DMLC_WORKER_ID: expected which of the 2 workers this is' "${psl[@]}" "${alone[@]}"
run_fails 2 'DMLC_WORKER_ID: expected from 0 to 1, got 2' "${psl[@]}" DMLC_WORKER_ID=2 "${alone[@]}"
run_fails 2 'DMLC_ROLE: expected scheduler, worker or server, got boss' "${psl[@]}" DMLC_ROLE=boss "${alone[@]}"
run_fails 2 'DMLC_NUM_WORKER: expected from 1 to 1024, got 0' \
    "${psl[@]}" DMLC_NUM_WORKER=0 "${alone[@]}"
run_fails 2 '"cluster" must be with a worker at least, as the chief does not train' \
    env TF_CONFIG='{"cluster":{"chief":["a:1"]},"task":{"type":"chief","index":0}}' "${alone[@]}" --no_chief_trains

kill "$holder"
finish
