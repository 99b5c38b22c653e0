#!/usr/bin/env bash
# Workers of one host add their reports there, in shared memory, and map one copy of the values. The bits are those of
# one process, for every shape of the tree, also when a relay, a worker of its host, or a server dies or stops at whatever
# moment. Servers receive and send once for each host.
#
# The hosts are this one under other names: a script instead of ssh starts their processes here, as sshd would.
# usage: cluster_hosts.sh BUILD_FOLDER [KILLS]     KILLS: at random moments (2)
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
kills=${2:-2}
export XDG_STATE_HOME=$work/state XDG_RUNTIME_DIR=$work/run BELFRY_SSH=$work/here
mkdir home run
cat >here <<SH
#!/usr/bin/env bash
HOME=$work/home exec bash -c "\${@: -1}"
SH
chmod +x here
hosts() { # WORKERS HOST…
    local count=$1 list
    shift
    list=$(IFS=,; echo "$*")
    cat >hosts.yaml <<YAML
workers: {count: $count, hosts: [${list//,/, }]}
parameter_servers: {count: 2}
limits: {silence_timeout: 5}
YAML
}
settings=(--train_steps 20 --save_checkpoints_steps 10 --train_batch_size 4)
data=("${digits[@]}")
submit() { # NAME FLAGS…
    run_ok belfry jobs submit training "$1" --config hosts.yaml --engine ssh --job_dir "$1" "${wait[@]}" -- \
        "${data[@]}" "${settings[@]}" "${@:2}"
}
wait=(--wait)
log() { cat "$(job_folder "$1")/logs/supervisor.log"; } # NAME
tries=0
trains() { # WHAT FLAGS…: the digest is that of one process; the job is $name, its log err.txt
    tries=$((tries + 1))
    name=job$tries
    submit "$name" "${@:2}"
    log "$name" >err.txt
    equal "digest $1" "$(digest "$name")" "$whole"
}
alone() { # WORKERS FLAGS…: the digest to expect
    rm -rf whole
    run_ok belfry train_and_evaluate --model_dir whole "${data[@]}" "${settings[@]}" --num_workers "$@"
    whole=$(digest whole)
}

# --- Shapes: two hosts, of three and two workers; no groups; groups of two hosts above, and one beside them
hosts 5 LOCALHOST Localhost
alone 5
trains "with two hosts"
check "it says so" grep -q 'workers 0-2 of LOCALHOST, 3-4 of Localhost add in shared memory' err.txt
check "no socket is left" test -z "$(ls run)"
trains "over gRPC" --lane grpc
check "no groups" test -z "$(grep 'shared memory' err.txt)"
hosts 6 LOCALHOST Localhost localHost
alone 6
trains "with two levels" --fan_in 2
check "it says both" grep -q 'groups of 2, on 2 levels' err.txt

# --- Several replicas a worker, whose nodes are not those of groups; state; norms
hosts 5 LOCALHOST Localhost
others=(--model resnet --blocks 1 --width 4 --clip_global_norm 1 --num_gpus 3 --device cpu --train_steps 8)
data=("${any_digits[@]}")
alone 5 "${others[@]}"
trains "with state and several replicas" "${others[@]}"
data=("${digits[@]}")

# --- Deaths. No step is lost: training continues at the version of the servers
alone 5
for point in tower_step#9@worker-1 relay_reported#8@worker-0 relay_sent_stats#7@worker-3 relay_passes_on#6@worker-0 \
    relay_reported#8 shard_passes#14@ps-0; do
    BELFRY_FAULT=crash:$point trains "killed at $point"
    check "killed: $point" grep -q 'killed on purpose at ' err.txt
    case $point in
    *@worker-*) check "it continues there: $point" grep -q 'relays begin anew: training continues at step' err.txt ;;
    esac
done

# --- At random moments: workers; all workers of a host; a relay's process that stops
settings=("${settings[@]/#20/150}" --log_step_count_steps 5)
alone 5
strike() { # SIGNAL WORKER…: at a random moment; fails if one of them is not there
    python3 - "$work" "$@" <<'PY'
import os, random, signal, sys, time
work, name, *wanted = sys.argv[1:]
there = 0
time.sleep(random.uniform(0, 0.3))
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if not os.path.samefile(f"/proc/{pid}/cwd", work): continue
        environment = open(f"/proc/{pid}/environ", "rb").read()
        if any(b'"role":"worker","index":%d,' % int(worker) in environment for worker in wanted):
            os.kill(int(pid), signal.Signals["SIG" + name])
            there += 1
    except OSError: continue  # it has exited, or is another user's
sys.exit(there != len(wanted))
PY
}
hit_job=struck
begun_anew() { log $hit_job | grep -c '^steps [0-9]* to 150;' || true; }
has_begun_more() { [ "$(begun_anew)" -gt "$1" ]; } # TIMES
hit() { # SIGNAL WORKER…: at a random moment; then the job continues
    local before
    before=$(begun_anew)
    if strike "$@"; then
        check "$*: the job begins anew" until_true has_begun_more "$before"
    else
        complain "$*: the workers are there"
    fi
}
wait=()
BELFRY_FAULT=slow:tower_step#100 submit struck # longer than the hits take on a busy machine
check "it trains" job_reaches struck 10
for _ in $(seq "$kills"); do hit KILL $((RANDOM % 5)); done
hit KILL 3 4
hit STOP 0
await_state struck "SUCCEEDED|FAILED|CANCELLED"
check "it succeeds" grep -q SUCCEEDED out.txt
log struck >err.txt
equal "digest after all that" "$(digest struck)" "$whole"

# --- The sockets are lost, as when their user logs out: the workers that cannot connect again go back to gRPC
BELFRY_FAULT=slow:tower_step#60 submit lost
check "it trains" job_reaches lost 10
rm -r run/belfry-sockets-*
hit_job=lost
hit KILL 4
await_state lost "SUCCEEDED|FAILED|CANCELLED"
check "it succeeds without sockets" grep -q SUCCEEDED out.txt
log lost >err.txt
check "it says so" grep -q 'shares no memory with others of its host any more' err.txt
equal "digest without sockets" "$(digest lost)" "$whole"
wait=(--wait)

# --- Servers receive and send once for each host
per_step() { # FOLDER: bytes that the servers have received and sent, by version
    python3 - "$1/board.json" <<'PY'
import json, sys
shards = [row for row in json.load(open(sys.argv[1]))["rows"] if row["role"] == "shard"]
for name in ("received_bytes", "sent_bytes"):
    print(round(sum(row[name] for row in shards) / shards[0]["versions"]))
PY
}
mapfile -t by_worker < <(per_step job2)
mapfile -t by_host < <(per_step job1)
near() { # TEXT NUMBER PART WHOLE OF: the number is PART / WHOLE of another, but for the first version
    check "$1 by step: $2, over gRPC $5" test $(($4 * $2 * 20)) -gt $(($3 * $5 * 19)) -a $(($4 * $2 * 20)) -lt $(($3 * $5 * 21))
}
near received "${by_host[0]}" 4 5 "${by_worker[0]}" # nodes of the summation tree: workers 0 and 1, then one each
near sent "${by_host[1]}" 2 5 "${by_worker[1]}"

# --- Where a lost worker would cost steps, there are groups only on request
settings=(--train_steps 12 --save_checkpoints_steps 10 --train_batch_size 4)
submit lamb --optimizer lamb
log lamb >err.txt
check "without groups" test -z "$(grep 'shared memory' err.txt)"
check "it says why" grep -q 'a lost worker would cost all steps' err.txt
submit asked --optimizer lamb --fan_in 32
log asked >err.txt
check "with groups" grep -q 'workers 0-2 of LOCALHOST, 3-4 of Localhost add in shared memory' err.txt
equal "digest with LAMB" "$(digest asked)" "$(digest lamb)"
check "no process is left" nothing_left
finish
