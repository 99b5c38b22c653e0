#!/usr/bin/env bash
# Parameter servers with copies, on hosts that keep no memory of a dead process: each shard has a mirror in the process
# of another one. Whichever server is killed, at whatever moment, no step is made twice, and the digest is that of an
# undisturbed run, as if all servers of a host are. If a shard and its mirror are killed, the job goes back to the newest
# checkpoint.
#
# The hosts are this one under other names: a script instead of ssh starts their processes here, as sshd would.
# usage: copies.sh BUILD_FOLDER [KILLS]     KILLS: at random moments (2)
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
kills=${2:-2}
export XDG_STATE_HOME=$work/state XDG_RUNTIME_DIR=$work BELFRY_SSH=$work/here
mkdir home
cat >here <<SH
#!/usr/bin/env bash
[ ! -e "$work/away" ] || [[ " \$* " != *" \$(cat "$work/away") "* ]] ||
    { echo tried >>"$work/tried"; sleep 5; echo "no route to host"; exit 255; }
HOME=$work/home exec bash -c "\${@: -1}"
SH
chmod +x here
cat >copies.yaml <<YAML
workers: {count: 2}
parameter_servers: {count: 4, hosts: [LOCALHOST, Localhost, localHost], copies: 1}
limits: {silence_timeout: 5}
YAML
settings=(--train_steps 60 --save_summary_steps 1 --save_checkpoints_secs 0 --train_batch_size 8 --hidden_units "256,128" --min_shard_bytes 0)
submit() { # NAME FLAGS…
    local name=$1
    shift
    run_ok belfry jobs submit training "$name" --config copies.yaml --engine ssh --job_dir "$name" "${more[@]}" -- \
        "${digits[@]}" "${settings[@]}" "$@"
}
more=()
log() { cat "$(job_folder "$1")/logs/supervisor.log"; } # NAME
alone() { # FLAGS…: the digest to expect
    rm -rf whole
    run_ok train whole "${settings[@]}" --num_workers 2 "$@"
    whole=$(digest whole)
}
tries=0
trains() { # FAULT FLAGS…: the job is $name, its log err.txt
    tries=$((tries + 1))
    name=killed$tries
    more=(--wait)
    BELFRY_FAULT=$1 submit "$name" "${@:2}"
    log "$name" >err.txt
    equal "digest with $*" "$(digest "$name")" "$whole"
}
continues() { # FAULT FLAGS…: nothing is loaded, and each step is in the curves once
    trains "$@"
    check "it continues after $*" grep -q 'state in a mirror: training continues at step' err.txt
    check "it does not go back after $*" test "$(grep -c 'going back' err.txt)" = 0
    equal "steps in the curves after $*" "$(steps_of_curves "$name" | tr '\n' ' ')" "$(seq 60 | tr '\n' ' ')"
}

# --- At moments of a step: sums are sent or not, the mirror has made it or not, curves are reported or not
alone --optimizer adam --moving_average_decay 0.9
for point in shard_sent_sum#20@ps-1 shard_sent_stats#8@ps-2 shard_decides#13@ps-0; do
    continues "crash:$point" --optimizer adam --moving_average_decay 0.9
done
trains crash:shard_sent_stats#8 --optimizer adam --moving_average_decay 0.9 # all
check "without shards and mirrors it goes back" grep -q 'going back from step' err.txt
# --- While a checkpoint is written, or evaluated. Copies have no snapshots
whole_steps=("${settings[@]}")
settings=("${settings[@]::4}" "${settings[@]:6}" --save_checkpoints_steps 20 --eval_every_steps 20 --eval_steps 4)
alone --optimizer adam
evaluations=$(grep -o 'eval at step.*' err.txt)
for _ in 1 2 3 4; do # on a slow machine the kill may come too late
    continues slow:master_saves#500,crash:shard_sent_sum#26@ps-1 --optimizer adam
    grep -q 'has lost its part' err.txt && break
done
check "the checkpoint is left out" grep -q 'snapshot of step 20 with its process: its checkpoint and evaluation are left out' err.txt
check "another one is there" grep -q 'the version of step 2[0-9] is saved instead' err.txt
for _ in 1 2 3 4; do # on a slow machine the kill may come before the evaluation
    continues slow:evaluates#200,crash:shard_sent_sum#26@ps-1 --optimizer adam
    grep -q 'has lost its part' err.txt || break
done
equal "evaluations" "$(grep -o 'eval at step.*' err.txt)" "$evaluations"
alone --optimizer adam --keep_best loss
for _ in 1 2 3 4; do
    trains slow:master_saves#500,crash:shard_sent_sum#26@ps-1 --optimizer adam --keep_best loss
    grep -q 'going back from step' err.txt && break
done
check "for the best checkpoint it goes back" grep -q 'going back from step' err.txt
settings=("${whole_steps[@]}")
alone --optimizer momentum --clip_global_norm 1 --exchange_precision bf16
for point in shard_passed#62@ps-1 shard_sent_sum#21@ps-0; do
    continues "crash:$point" --optimizer momentum --clip_global_norm 1 --exchange_precision bf16
done

# --- A step that diverges ends the job, also if shard 0 is killed before it sees that, and its mirror has made the step
diverging=(--optimizer sgd --learning_rate 1e6)
run_fails 1 'the loss is not finite' train diverged "${settings[@]}" --num_workers 2 "${diverging[@]}"
last=$(sed -n 's/.*the loss is not finite .* at step \([0-9]*\).*/\1/p' err.txt | head -n 1)
BELFRY_FAULT=crash:shard_decides#$((last + 2))@ps-0 run_fails 1 "not finite|at step $last" \
    belfry jobs submit training diverges --config copies.yaml --engine ssh --job_dir diverges --wait -- \
    "${digits[@]}" "${settings[@]}" "${diverging[@]}"
check "its shard 0 was lost" grep -q 'lost ps 0' <(log diverges)

# --- At random moments: a server; one and a worker; the master; a newcomer
settings=("${settings[@]/60/300}")
longer=("${settings[@]}")
alone --optimizer adam
slow=slow:tower_step#4
disturbed() { # NAME COMMAND…: the job trains, and the command kills
    more=()
    BELFRY_FAULT=$slow submit "$1" --optimizer adam
    check "$1 trains" job_reaches "$1" 20
    "${@:2}"
    await_state "$1" "SUCCEEDED|FAILED|CANCELLED"
    check "$1 succeeds" grep -q SUCCEEDED out.txt
    log "$1" >err.txt
    equal "digest of $1" "$(digest "$1")" "$whole"
}
strike() { # ROLE INDEX…
    local pids=()
    while [ $# -gt 0 ]; do
        mapfile -t -O "${#pids[@]}" pids < <(roles "$1" "$2")
        shift 2
    done
    kill -9 "${pids[@]}" || true # one may have ended
}
often() { # a server, one after another; not one that has the other's only state. A copy is two servers on
    for _ in $(seq "$kills"); do
        local index=$((RANDOM % 2))
        [ -z "$(roles ps $index)" ] || strike ps $index
        python3 -c 'import random, time; time.sleep(random.uniform(0.5, 0.8))'
    done
}
disturbed often often
check "no kill of one server goes back" test "$(grep -c 'going back' err.txt)" = 0
disturbed both strike ps 1 worker 1
check "a server and a worker: no step is lost" test "$(grep -c 'going back' err.txt)" = 0
disturbed master strike master 0
disturbed host strike ps 0 ps 3 # the first host's; copies are with 2 and 1
check "all servers of a host: no step is lost" test "$(grep -c 'going back' err.txt)" = 0
check "both continue" grep -q 'shards 0, 3 are back with their state in a mirror' err.txt
said() { # NAME TEXT [TIMES]
    for _ in $(seq "$naps"); do
        [ "$(log "$1" | grep -c "$2")" -ge "${3:-1}" ] && return 0
        sleep 0.05
    done
    return 1
}
curves() { # points outlive shard 0's control, a new mirror, a successor of shard 0, and go to a new master
    local servers=(1 2 0) i
    for i in 1 2 3; do
        strike ps "${servers[i - 1]}"
        check "server $i continues" said curves 'state in a mirror: training continues' "$i"
        check "steps follow" job_reaches curves $((i * 60))
    done
    strike master 0
}
slow=slow:tower_step#15
disturbed curves curves
check "only the master is lost at last" test "$(grep -c 'going back' err.txt)" = 0
equal "steps in the curves" "$(steps_of_curves curves | tr '\n' ' ')" "$(seq 300 | tr '\n' ' ')"
slow=slow:tower_step#4
again() { # the newcomer is killed while it takes its state
    strike ps 1
    check "the newcomer takes its state" said again 'back with its state in a mirror'
    strike ps 1
    check "the next one, too" said again 'ps 1 .*2 of 10 times'
}
slow=slow:tower_step#4,slow:shard_takes_state#300
disturbed again again
check "a newcomer without its state: no step is lost" test "$(grep -c 'going back' err.txt)" = 0
slow=slow:tower_step#4
stay_away() { # the host of server 1 is gone for good: the server moves to another one
    echo Localhost >away
    strike ps 1
    check "the server moves" said moved 'ps 1 is started on localHost, as Localhost cannot be reached'
}
sed -i 's/silence_timeout: 5/silence_timeout: 5, join_timeout: 12/' copies.yaml
disturbed moved stay_away
equal "attempts until it moves, as one takes more than a third of the time" "$(wc -l <tried)" 1
check "no step is lost with the host" test "$(grep -c 'going back' err.txt)" = 0
check "it continues there" grep -q 'back with its state in a mirror' err.txt
rm away
sed -i 's/, join_timeout: 12//' copies.yaml
scale() { run_ok belfry jobs scale scaled --parameter_server_count 3; }
slow=slow:tower_step#15 # it trains until the request has come
disturbed scaled scale
check "three servers have copies, too" grep -q '3 shards' err.txt

# --- Without copies: back to the newest checkpoint, of which a shard that lives reads only its file: for the checksum,
# and for the values
bytes_read() { sed -n 's/^rchar: //p' "/proc/$1/io"; } # PID: by read and pread, not from sockets
go_back() {
    local server
    server=$(roles ps 0)
    before=$(bytes_read "$server")
    strike ps 1
    check "the job goes back" said bare 'going back from step'
    check "and continues" job_reaches bare 90
    after=$(bytes_read "$server")
}
sed -i 's/count: 4\(.*\), localHost], copies: 1/count: 2\1]/' copies.yaml
settings=(--train_steps 200 --save_checkpoints_steps 20 --train_batch_size 8 --hidden_units "1024,1024")
alone --optimizer adam
slow=slow:tower_step#30
disturbed bare go_back
own=$(stat -c %s bare/ckpt-*/shard-00000-of-00002.safetensors | tail -n 1)
check "the living shard reads its file: $((after - before)) bytes of $own" test $((after - before)) -ge "$own"
check "and no other: $((after - before)) bytes of $own" test $((10 * (after - before))) -le $((22 * own))

# --- Resumed, without and with copies
settings=("${longer[@]}")
alone --optimizer adam
for flags in "--train_steps 100" "--train_steps 200 --parameter_server_copies 1" "--train_steps 300"; do
    read -r -a words <<<"$flags"
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 "${words[@]:2}" --job_dir parts -- \
        "${digits[@]}" "${settings[@]}" --optimizer adam "${words[@]::2}"
done
equal "digest of a resumed job" "$(digest parts)" "$whole"

# --- Where there can be no copies
run_fails 2 'parameter_server_copies) is 1|the count is 1' belfry local train --distributed --parameter_server_copies 1 --job_dir no -- "${digits[@]}"
run_fails 2 'parameter_server_copies) is 1|restarts is 0' belfry local train --distributed --parameter_server_count 2 --restarts 0 \
    --parameter_server_copies 1 --job_dir no -- "${digits[@]}"
run_fails 2 'parameter_server_copies' belfry local train --distributed --parameter_server_count 2 \
    --parameter_server_copies 2 --job_dir no -- "${digits[@]}"
cat >odd.yaml <<YAML
parameter_servers: {count: 3, hosts: [LOCALHOST, Localhost], copies: 1}
YAML
run_fails 2 'odd.yaml|the count is 3, on 2 hosts: ps 2 and its copy would be on one host' \
    belfry jobs submit training odd --config odd.yaml --engine ssh --job_dir no -- "${digits[@]}"
impossible() { # PARTS FLAGS…
    rm -rf no
    run_fails 2 "copies of parameter servers is 1|$1" belfry local train --distributed --parameter_server_count 2 \
        --parameter_server_copies 1 --job_dir no -- "${digits[@]}" --train_steps 5 "${@:2}"
}
# Both need more memory than there is: the copies are counted.
large=("${digits[@]}" --train_steps 5 --optimizer sgd --hidden_units "500000,500000")
run_fails 1 'with optimizer and gradients (5 copies)' belfry local train --distributed --worker_count 2 \
    --parameter_server_count 2 --job_dir no -- "${large[@]}"
run_fails 1 'with optimizer and gradients (9 copies)' belfry local train --distributed --worker_count 2 \
    --parameter_server_count 2 --parameter_server_copies 1 --job_dir no -- "${large[@]}"
impossible 'not all workers count' --mode async
impossible 'local steps' --local_steps 2
impossible 'trust ratios' --optimizer lamb
impossible '--min_shard_bytes 0' --min_shard_bytes 1000000000
finish
