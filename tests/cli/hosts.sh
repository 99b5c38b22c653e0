#!/usr/bin/env bash
# A job over several hosts, reached by ssh: namespaces with separate addresses (tests/engines/hosts-up). h2
# and h3 share no build folder with this host. The bits are those of one process, whatever happens to a host:
# killed or stopped processes, links that are cut and restored, delay and loss. Skipped if namespaces cannot
# be made.
# usage: hosts.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
# shellcheck source=tests/cli/lib_hosts.sh
source "$SOURCE/tests/cli/lib_hosts.sh"
engines=$SOURCE/tests/engines
net=$work/net
mkdir apart
"$engines/hosts-up" "$net" 4 "$BUILD/tools" "$work/apart" || {
    [ $? -eq 77 ] && exit 77
    exit 1
}
trap '"$engines/hosts-up" --down "$net"; rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state BELFRY_SSH=$net/ssh
data_dir='' fault=''
on0() {
    timeout -k 5 "$patience" "$net/on" h0 env BELFRY_DATA_DIR="$data_dir" BELFRY_FAULT="$fault" "$BUILD/tools/belfry" "$@"
}
cat >hosts.yaml <<YAML
workers: {count: 3, hosts: [h1, h2, h3]}
parameter_servers: {count: 2, hosts: [h1, h2]}
limits: {silence_timeout: 4, join_timeout: 40}
YAML
settings=(--train_steps 300 --save_checkpoints_steps 100 --eval_every_steps 150)
engine=ssh config=hosts.yaml
submit() { # NAME [flags of the submission]
    local name=$1
    shift
    on0 jobs submit training "$name" --config "$config" --engine "$engine" --job_dir "$name" "$@" -- "${digits[@]}" \
        "${settings[@]}"
}
log() { cat "$XDG_STATE_HOME/belfry/jobs/$1/logs/supervisor.log"; }

run_ok train alone "${settings[@]}" --num_workers 3
alone=$(digest alone)

# --- A job without trouble
run_ok submit whole --dry_run
check "a dry run shows the way to each process" grep -q "^worker 2: $net/ssh .* h3 'exec sh -c " out.txt
run_ok submit whole --wait
equal "digest over hosts" "$(digest whole)" "$alone"
log whole >err.txt
check "a host without the program gets a copy" grep -q "belfry is copied to h3" err.txt
check "one that sees it does not" test -L "$(echo "$net"/home-h1/.cache/belfry/*/belfry)"
check "the log warns once that the secret is sent in clear" test "$(grep -c 'without TLS' err.txt)" -eq 1
check "no secret is on a command line or in a log" test -z "$(grep -r 'BELFRY_SECRET=' "$XDG_STATE_HOME" || true)"

# --- Trouble
settings=(--train_steps 700 --save_checkpoints_steps 175 --eval_every_steps 350)
fault=slow:tower_step#5 # so that a job is in the middle when events come, on any machine
run_ok train long "${settings[@]}" --num_workers 3
long=$(digest long)
trouble() { # NAME COMMAND…: the job ends with the same bits
    local name=$1
    shift
    run_ok submit "$name"
    check "$name: it trains" job_reaches "$name" 200
    "$@"
    check "$name: it ends" ended "$name"
    check "$name: well" grep -q '^state SUCCEEDED' out.txt
    equal "digest of $name" "$(digest "$name")" "$long"
}
cut_off() { # HOST SECONDS
    ip -n "$("$net/name-of" h0)" link set "to-$1" down
    sleep "$2"
    ip -n "$("$net/name-of" h0)" link set "to-$1" up
}
link() { ip netns exec "$("$net/name-of" h0)" tc qdisc "$1" dev "to-$2" root "${@:3}"; } # WORD HOST tc's words
kill_one() { kill -9 "$(process "$@")"; }
leave_one() { kill -TERM "$(process "$@")"; }
missing_data() {
    rm data-h3/digits-train.csv
    submit missing --job_dir apart/missing --wait
}
stop_one() { kill -STOP "$(process "$@")"; }
trouble killed-worker kill_one worker 1 h2
log killed-worker >err.txt
check "the dead process is named, with its pid" grep -q 'worker 1 (pid [0-9]* on .*) was killed by signal 9' err.txt
trouble killed-shard kill_one ps 1 h2
carrier() { ps -o ppid= -p "$(process "$@")" | tr -d ' '; }
kill_carrier() { kill -9 "$(carrier "$@")"; }
trouble killed-carrier kill_carrier worker 0 h1
trouble stopped-worker stop_one worker 2 h3 # silent, so it is killed on its host, and replaced
check "no stopped process is left" test -z "$(process worker 2 h3)"
trouble cut-worker cut_off h3 8
log cut-worker >err.txt
check "the lost worker is named" grep -q 'lost worker 2 on' err.txt
trouble cut-shard cut_off h2 8
# With copies of parameter servers a host that is lost with all its processes, or its link, costs no step.
with_copies() { sed 's/\(parameter_servers: .*\)}/\1, copies: 1}/' hosts.yaml; }
kill_host() { # HOST
    local pid pids=()
    while read -r pid; do
        if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = belfry ]; then pids+=("$pid"); fi
    done < <(ip netns pids "$("$net/name-of" "$1")")
    kill -9 "${pids[@]}"
}
with_copies >copies.yaml
config=copies.yaml
trouble copies-host kill_host h2
log copies-host >err.txt
check "the shard's state is in its mirror" grep -q 'state in a mirror: training continues at step' err.txt
check "no step is repeated without a host" sh -c "! grep 'going back' err.txt"
trouble copies-cut cut_off h2 8
log copies-cut >err.txt
check "no step is repeated without a link" sh -c "! grep 'going back' err.txt"
config=hosts.yaml
link add h1 tbf rate 20mbit burst 32k latency 400ms
trouble slow-link true
link del h1
if link add h1 netem delay 20ms 5ms loss 1% 2>/dev/null; then
    trouble bad-link true
    link del h1
else
    echo "delay is left out: this kernel has no netem"
fi
lossy() { # HOST PERCENT: of the packets that reach it
    "$net/on" "$1" nft add table inet loss
    "$net/on" "$1" nft add chain inet loss in '{ type filter hook input priority 0; }'
    "$net/on" "$1" nft add rule inet loss in numgen random mod 100 "<" "$2" drop
}
if lossy h2 3 2>why.txt; then
    trouble loss true
    "$net/on" h2 nft delete table inet loss
else
    echo "loss is left out: $(head -n 1 why.txt)"
fi
# Clocks that are hours apart affect only displayed times.
faketime=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
if [[ "$(ldd "$BUILD/tools/belfry")" == *san.so.* ]]; then
    echo "clocks that are apart are left out: a sanitizer wants to be loaded first"
elif [ -n "$faketime" ]; then
    cat >skewing-ssh <<SH
#!/usr/bin/env bash
last=\${*: -1} by=
case " \$* " in
*" h2 "*) by=+7200 ;;
*" h3 "*) by=-86400 ;;
esac
[ -z "\$by" ] || last="export LD_PRELOAD=$faketime FAKETIME=\$by FAKETIME_DONT_FAKE_MONOTONIC=1; \$last"
exec $net/ssh "\${@:1:\$# - 1}" "\$last"
SH
    chmod +x skewing-ssh
    BELFRY_SSH=$work/skewing-ssh trouble skewed kill_one ps 1 h2
    seen=$(tr '\0' '\n' <"/proc/$$/environ" | grep -c FAKETIME || true)
    check "this test has the right time" test "$seen" -eq 0
    check "a log has the time of its host" test "$(sed -n 's/^{"time":\([0-9]*\).*/\1/p' "$XDG_STATE_HOME/belfry/jobs/skewed/logs/worker-2.0.log" | head -n 1)" -lt "$(($(date +%s) - 80000))"
else
    echo "clocks that are apart are left out: there is no libfaketime (Debian: faketime)"
fi

# --- mpirun starts the job on hosts
if [[ "$(mpirun --version 2>/dev/null)" == *"Open MPI"* ]]; then
    export OMPI_MCA_plm_rsh_agent=$net/ssh OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    engine=mpi
    sed 's/hosts: [[].*[]]/hosts: [10.213.0.2]/' hosts.yaml >mpi.yaml
    config=mpi.yaml
    run_ok submit mpi --dry_run
    check "a dry run shows a rank for each process of the job" \
        grep -q "^worker 2: mpirun .* -np 1 --host 10.213.0.2 $BUILD/tools/belfry carry$" out.txt
    trouble mpi kill_one worker 1 h1
    trouble mpi-cut cut_off h1 5
    engine=ssh config=hosts.yaml
else
    echo "mpirun is left out: there is none of Open MPI (Debian: openmpi-bin)"
fi

# --- A package and a file of settings are copied with the program
run_ok "${CC:-cc}" -std=c17 -O2 -fPIC -shared -I "$SOURCE/include" -o apart/my_model.so "$SOURCE/examples/my_model/my_model.c"
echo 'train_steps: 60' >apart/settings.yaml
any=("${any_digits[@]}" --package=gone.so --package=apart/my_model.so --param units=16 --config-file apart/settings.yaml)
run_ok belfry train_and_evaluate --model_dir packaged-alone "${any[@]}" --num_workers 3
run_ok on0 jobs submit training packaged --config hosts.yaml --engine ssh --job_dir packaged --wait -- "${any[@]}"
equal "digest with a package over hosts" "$(digest packaged)" "$(digest packaged-alone)"

# --- Names that resolve later
know() { # HOST NAME ADDRESS: from now on
    echo "$3 $2" >>"/etc/netns/$("$net/name-of" "$1")/hosts"
}
member() { # HOST TYPE: in the background
    local cluster='{"chief": ["boss:7000"], "worker": ["helper:7000"]}'
    timeout -k 5 "$patience" "$net/on" "$1" env BELFRY_SECRET=0123456789abcdef0123 \
        TF_CONFIG="{\"cluster\": $cluster, \"task\": {\"type\": \"$2\", \"index\": 0}}" "$BUILD/tools/belfry" \
        train_and_evaluate --model_dir names "${digits[@]}" --train_steps 100 >"$2.out" 2>"$2.err" </dev/null &
}
says() { # FILE TEXT
    until_true grep -q "$2" "$1"
}
run_ok train names-alone --num_workers 2 --train_steps 100
know h1 boss 10.213.0.2
member h1 chief
chief=$!
member h2 worker
worker=$!
check "a process that cannot resolve its name waits" says worker.err 'waiting for the name of helper:7000 to resolve'
know h2 helper 10.213.0.3
know h1 helper 10.213.0.3
know h2 boss 10.213.0.2
check "the worker ends well" wait "$worker"
check "and the master" wait "$chief"
equal "digest of a job whose names come late" "$(digest names)" "$(digest names-alone)"

# --- Hosts that do not see the model's folder, and have their data in other places
cp hosts.yaml shared.yaml
for i in 0 1 2 3; do
    mkdir "data-h$i"
    cp "$TRAIN_CSV" "$EVAL_CSV" "data-h$i"
done
echo "data: {h1: $work/data-h1, h2: $work/data-h2, h3: $work/data-h3}" >>hosts.yaml
data_dir=$work/data-h0
there=("${digits[@]}")
digits=("${digits[@]/"$TRAIN_CSV"/digits-train.csv}")
digits=("${digits[@]/"$EVAL_CSV"/digits-eval.csv}")
apart() { # NAME COMMAND…
    local name=$1
    shift
    run_ok submit "$name" --job_dir "apart/$name"
    check "$name: it trains" job_reaches "$name" 200
    "$@"
    check "$name: it ends" ended "$name"
    check "$name: well" grep -q '^state SUCCEEDED' out.txt
    equal "digest of $name" "$(digest "apart/$name")" "$long"
}
apart unseen true
log unseen >err.txt
check "the process that does not see the folder is named" grep -q 'ps 1 on .* does not see the model folder: this process transfers its checkpoints' err.txt
apart unseen-killed kill_one ps 1 h2
log unseen-killed >err.txt
check "the job goes back" grep -q 'going back from step' err.txt
with_copies >copies.yaml
config=copies.yaml
apart unseen-copies kill_one ps 1 h2
config=hosts.yaml
log unseen-copies >err.txt
check "with copies it does not go back" grep -q 'state in a mirror: training continues at step' err.txt
apart unseen-master kill_one master 0 h0
apart unseen-cut cut_off h2 8
apart unseen-left leave_one ps 1 h2
log unseen-left >err.txt
check "the leaving process is named" grep -q 'ps 1 leaves, as it was told to' err.txt
check "no step is repeated for one that leaves" sh -c "! grep -E 'going back|lost ps' err.txt"
run_fails 3 "data-h3|digits-train" missing_data
make_clicks # rows of tables: their shards are assigned anew, so each needs all files
run_ok belfry train_and_evaluate --model_dir clicks "${clicks[@]}" --train_steps 500 --num_workers 3
cp clicks-*.csv data-h0; cp clicks-*.csv data-h1; cp clicks-*.csv data-h2; mv clicks-*.csv data-h3
digits=("${clicks[@]}") settings=(--train_steps 500 --save_checkpoints_steps 125) long=$(digest clicks)
apart unseen-tables kill_one ps 1 h2
lose_one() { # ROLE INDEX HOST: with the files that its host has; it fetches a delta and its base
    local pid
    pid=$(process "$@")
    kill -STOP "$pid"
    check "it has files of the job" test -d "/proc/$pid/cwd/apart/unseen-deltas/copies/$1-$2"
    rm -rf "/proc/$pid/cwd/apart/unseen-deltas/copies"
    kill -9 "$pid"
}
# An evaluator that does not see the folder gets the files of each checkpoint, deltas included.
settings=(--train_steps 500 --save_checkpoints_steps 20 --full_checkpoint_every 20 --eval_start_delay_secs 0
    --eval_throttle_secs 0)
(cat hosts.yaml && echo 'evaluators: {count: 1, hosts: [h3]}') >evaluated.yaml
config=evaluated.yaml
apart unseen-deltas lose_one ps 1 h2
config=hosts.yaml
log unseen-deltas >err.txt
check "the evaluator does not see the folder" grep -q 'evaluator 0 on .* does not see the model folder' err.txt
check "it evaluates deltas" grep -qE 'eval at step [0-9]*[48]0: ' err.txt
evaluated=$(grep -o 'eval at step 500: loss = [^,]*' err.txt | tail -n 1)
run_ok belfry evaluate --model_dir apart/unseen-deltas --eval_files data-h0/clicks-eval.csv
equal "the results are those of the folder" "eval at step 500: loss = $(awk '$1 == "loss" { printf "%.5g", $2 }' out.txt)" \
    "$evaluated"
digits=("${there[@]}") data_dir=
mv shared.yaml hosts.yaml

# --- A job that is asked to end, and one whose host cannot be reached
settings=(--train_steps 1000000 --save_checkpoints_steps 100000)
none_stay() {
    for _ in $(seq "$naps"); do
        [ -z "$(process worker 0 h1)$(process worker 1 h2)$(process ps 0 h1)" ] && return 0
        sleep 0.05
    done
    return 1
}
run_ok submit cancelled
check "it trains" job_reaches cancelled 100
run_ok on0 jobs cancel cancelled
check "it ends" ended cancelled
check "as requested" grep -q '^state CANCELLED' out.txt
check "it has saved" compgen -G 'cancelled/ckpt-*' >/dev/null
check "no process stays on the host" none_stay
ip -n "$("$net/name-of" h0)" link set to-h3 down
run_fails 1 'host h3 cannot be made ready by|Connection timed out' submit unreachable --wait
sed -i 's/h3/no-such-host/' hosts.yaml
run_fails 1 'host no-such-host cannot be made ready by|Could not resolve hostname no-such-host' submit unknown --wait
printf 'master: {host: h1}\nworkers: {count: 1, hosts: [h2]}\n' >hosts.yaml
run_fails 2 'with ssh the master runs on the host of the submission, and its host is h1' submit elsewhere
printf 'workers: {count: 2}\n' >hosts.yaml
run_fails 2 'expected hosts of workers or parameter servers other than this one' submit nowhere
finish
