#!/usr/bin/env bash
# A job over hosts whose only common place is an object store: namespaces (tests/engines/hosts-up) that share neither
# the program nor copies of objects, and the stand-in of tests/support/store_server.py. Each host has its credentials
# in its home. The bits are those of local files, also after kills of every role; the evaluator is on another host than
# the master. Skipped if namespaces cannot be made.
# usage: store_hosts.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
# shellcheck source=tests/cli/lib_hosts.sh
source "$SOURCE/tests/cli/lib_hosts.sh"
engines=$SOURCE/tests/engines net=$work/net server=
mkdir -p store/data store/runs copies
"$engines/hosts-up" "$net" 4 "$BUILD/tools" "$work/copies" || {
    [ $? -eq 77 ] && exit 77
    exit 1
}
trap '[ -z "$server" ] || kill "$server"; "$engines/hosts-up" --down "$net"; rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state BELFRY_SSH=$net/ssh

cp "$TRAIN_CSV" "$EVAL_CSV" store/data/
"$net/on" h0 python3 "$SOURCE/tests/support/store_server.py" --folder store --address 10.213.0.1 --log requests.jsonl \
    >server.txt 2>server.err &
server=$!
until_true grep -q '^port ' server.txt || true
check "the store answers" grep -q '^port ' server.txt
for host in h0 h1 h2 h3; do
    mkdir -p "$net/home-$host/.aws"
    cat >"$net/home-$host/.aws/config" <<CONF
[default]
endpoint_url = http://10.213.0.1:$(sed -n 's/^port //p' server.txt)
region = us-east-1
aws_access_key_id = test
aws_secret_access_key = test-secret
CONF
done
cat >hosts.yaml <<YAML
workers: {count: 3, hosts: [h1, h2, h3]}
parameter_servers: {count: 2, hosts: [h1, h2]}
limits: {silence_timeout: 2, join_timeout: 40}
environment: {TMPDIR: $work/copies}
YAML
(cat hosts.yaml && echo 'evaluators: {count: 1, hosts: [h3]}') >evaluated.yaml
fault=''
on() { # HOST ARGUMENTS…: with the copies of that host
    timeout -k 5 "$patience" "$net/on" "$1" env BELFRY_FAULT="$fault" TMPDIR="$work/copies" BELFRY_CACHE_DIR="$work/copies" \
        "$BUILD/tools/belfry" "${@:2}"
}
on0() { on h0 "$@"; }
flags=(--label_column digit --feature_scale 0.0625 --train_batch_size 32 --num_threads 1 --hidden_units 32
    --no_report --min_shard_bytes 0 --train_steps 1000 --save_checkpoints_steps 250)
submit() { # NAME [CONFIG]
    on0 jobs submit training "$1" --config "${2:-hosts.yaml}" --engine ssh --job_dir "s3://runs/$1" -- \
        --train_files s3://data/digits-train.csv --eval_files s3://data/digits-eval.csv "${flags[@]}" "${@:3}"
}
digest_in_store() { on h3 inspect "s3://runs/$1" | sed -n 's/^digest //p'; }

run_ok belfry train_and_evaluate --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" "${flags[@]}" --num_workers 3 \
    --model_dir plain
plain=$(digest plain)
# An evaluator of another host follows the checkpoints in the store.
TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}' on h3 train_and_evaluate \
    --train_files s3://data/digits-train.csv --eval_files s3://data/digits-eval.csv "${flags[@]}" \
    --model_dir s3://runs/whole >follow.txt 2>follow.err </dev/null &
follower=$!
run_ok submit whole
check "it ends" ended whole
check "well" grep -q '^state SUCCEEDED' out.txt
equal "digest in the store" "$(digest_in_store whole)" "$plain"
readers=$(grep -c '"path": "/data/digits-train.csv".*"status": 20[06]' requests.jsonl)
check "hosts read the data from the store" [ "$readers" -ge 3 ]

code=0
wait "$follower" || code=$?
equal "the evaluator ends well" "$code" 0
check "with the last checkpoint" grep -q '^global_step 1000$' follow.txt
check "its curves are in the store" compgen -G "store/runs/whole/evaluator/events.out.tfevents.*" >/dev/null

fault=slow:tower_step#2 # so that a job is in the middle when processes are killed, on any machine
evaluating=(--eval_start_delay_secs 0 --eval_throttle_secs 0 --keep_best accuracy --export "best,final")
for victim in "master 0 h0" "worker 2 h3" "ps 1 h2" "evaluator 0 h3"; do
    name=killed-${victim%% *}
    run_ok submit "$name" evaluated.yaml "${evaluating[@]}"
    check "$name: it trains" job_reaches "$name" 300
    # shellcheck disable=SC2086 # three words
    kill -9 "$(process $victim)"
    check "$name: it ends" ended "$name"
    check "$name: well" grep -q '^state SUCCEEDED' out.txt
    equal "digest of $name" "$(digest_in_store "$name")" "$plain"
    on0 jobs stream-logs "$name" >log.txt 2>&1 || true
    check "$name: the end is evaluated" grep -q 'eval at step 1000: .*(359 examples)' log.txt
    check "$name: its curves are in the store" compgen -G "store/runs/$name/eval/events.out.tfevents.*" >/dev/null
    check "$name: so is the best" test -f "store/runs/$name/best.json"
    check "$name: and the exports" test -f "store/runs/$name/export/final/1000/model.onnx"
done
check "no key is on a command line or in a log" test -z "$(grep -r 'test-secret' "$XDG_STATE_HOME" || true)"
finish
