#!/usr/bin/env bash
# Jobs of Kubernetes, with a stand-in for kubectl (tests/engines/kubernetes). Manifests are checked against
# schemas. Pods are run as processes, killed and suspended: the bits are those of one process. The records are
# checked, too.
# usage: kubernetes.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
engines=$SOURCE/tests/engines/kubernetes
export XDG_STATE_HOME=$work/state KUBE=$work/kube BELFRY_KUBECTL=$engines/kubectl
mkdir -p kube/objects volume
ln -s "$TRAIN_CSV" "$EVAL_CSV" volume/
cat >k.yaml <<'YAML'
machines: {one: {cores: 2, memory: 200 MiB, devices: 2}, small: {cores: 1}}
master: {machine: small}
workers: {count: 3, machine: one, devices: 1}
parameter_servers: {count: 2, machine: small}
environment: {PRICE: "$(HOME) $5"}
limits: {silence_timeout: 3, restarts: 3}
kubernetes: {image: "registry/belfry:0.1", namespace: ml, volume_claim: models, gpus: true}
YAML
settings=(--train_steps 2000 --save_checkpoints_steps 250 --eval_every_steps 1000)
run_ok train alone "${settings[@]}" --num_workers 3
alone=$(digest alone)
files=(--train_files /models/digits-train.csv --eval_files /models/digits-eval.csv)
submit() { # NAME [flags of the submission]
    local name=$1
    shift
    belfry jobs submit training "$name" --config k.yaml --engine kubernetes --job_dir "/models/$name" "$@" \
        -- "${files[@]}" "${digits[@]:4}" "${settings[@]}"
}
play() { # KIND NAME [--kill …]
    timeout -k 5 "$patience" "$engines/play.py" ml "$1" "$2" "$work/volume" "$BUILD/tools" "${@:3}"
}
object() { echo "$KUBE/objects/ml.$1.$2.json"; }
is() { # NAME STATE
    run_ok belfry jobs describe "$1"
    check "job $1 is $2" grep -q "^state $2\$" out.txt
}
condition() { # KIND NAME TYPE MESSAGE
    python3 - "$(object "$1" "$2")" "$3" "$4" <<'PY'
import json, sys
path, kind, message = sys.argv[1:]
value = json.load(open(path))
value["status"] = {"conditions": [{"type": kind, "status": "True", "message": message}]}
json.dump(value, open(path, "w"))
PY
}
with() { sed "s/^kubernetes:.*/kubernetes: {$1}/" k.yaml >"$2"; }

# --- Refusals, before anything is recorded
run_fails 2 'Big|small letters, digits and -' submit Big
run_fails 2 'small letters' submit "$(printf 'a%.0s' {1..41})"
run_fails 2 '/elsewhere|not on the volume|--job_dir /models/a' submit a --job_dir /elsewhere
run_fails 2 '/models2/a|not on the volume' submit a --job_dir /models2/a
with 'volume_claim: models' no-image.yaml
run_fails 2 'no-image.yaml|kubernetes.image is missing' submit a --config no-image.yaml
with 'image: i' no-claim.yaml
run_fails 2 'no-claim.yaml|kubernetes.volume_claim is missing' submit a --config no-claim.yaml
sed 's/count: 3,/count: 3, hosts: [n1],/' k.yaml >hosts.yaml
run_fails 2 'host n1 of the worker role|leave hosts out' submit a --config hosts.yaml
with 'image: i, kind: pod' kind.yaml
run_fails 2 'kind.yaml:7:30: |expected jobset or tfjob' submit a --config kind.yaml
check "nothing was recorded, and kubectl was not called" test ! -e state -a ! -e kube/calls

# --- Submissions
run_ok submit dry --dry_run
cp out.txt dry.yaml
check "a valid JobSet" "$engines/validate.py" dry.yaml
check "with its secret" grep -q '^  secret: "[0-9a-f]\{64\}"$' dry.yaml
check "restarts as in the cluster file" grep -q '^    maxRestarts: 3$' dry.yaml
check "a role has its pods" grep -q '^        completions: 3$' dry.yaml
check "and its machine" grep -q '^                  memory: "209715200"$' dry.yaml
check "the requested GPUs" grep -q '^                  nvidia.com/gpu: "1"$' dry.yaml
check "texts of the user are not expanded" grep -q 'value: "[$][$](HOME) [$][$]5"' dry.yaml
check "nothing was submitted" test ! -e state -a ! -e kube/calls
with 'image: i, kind: tfjob, volume_claim: models, secret: shared, user: 7, service_account: robot' tf.yaml
run_ok submit dry --dry_run --config tf.yaml
cp out.txt tf-dry.yaml
run_ok "$engines/validate.py" tf-dry.yaml
equal "a TFJob, without a new secret" "$(cat out.txt)" TFJob
check "whose chief does not train" grep -q '^ *- "--no_chief_trains"$' tf-dry.yaml
check "the existing secret" grep -q 'secretName: "shared"' tf-dry.yaml
sed -i 's/fsGroup:/fsgroup:/' dry.yaml
run_ok bash -c "! '$engines/validate.py' dry.yaml"
check "an unknown field is found" grep -q 'unknown field fsgroup' out.txt

# --- A job whose pods are killed
run_ok submit whole
check "the manifest is passed on standard input" grep -q '^apply -f -$' kube/calls
check "its secret is in no argument" bash -c \
    "! grep -qF \"\$(sed -n 's/.*\"secret\": \"\([0-9a-f]*\)\".*/\1/p' '$(object secret whole-secret)')\" kube/calls"
is whole QUEUED
check "its name in Kubernetes" grep -q '^engine_id ml/jobset/whole$' out.txt
run_fails 2 'whole is QUEUED' belfry jobs remove whole
run_ok play jobset whole --kill worker-1@250 --kill ps-0@750 --kill master-0@1250
check "killed pods were replaced" grep -q 'Completed  master-0:2 ps-0:2 ps-1:1 worker-0:1 worker-1:2 worker-2:1' out.txt
equal "the bits of one process" "$(digest volume/whole)" "$alone"
run_ok belfry jobs stream-logs whole
check "the logs of its pods" grep -q '^\[master\] eval at step 2000' out.txt
check "the end is reported" grep -q 'job whole is SUCCEEDED' err.txt
logs=$XDG_STATE_HOME/belfry/jobs/whole/logs
check "one for each pod" test -s "$logs/master-0.0.log" -a -s "$logs/master-0.1.log" -a ! -e "$logs/master-0.2.log"
(cd "$logs" && cat ./*.log) >before.txt
run_ok belfry jobs stream-logs whole
(cd "$logs" && cat ./*.log) >after.txt
check "a second fetch adds nothing" cmp -s before.txt after.txt
rm "$(object jobset whole)"
is whole SUCCEEDED

# --- Cancelled and resumed
settings=(--train_steps 20000 --save_checkpoints_steps 10000)
run_ok submit long
play jobset long >play.txt 2>&1 &
player=$!
for _ in $(seq "$naps"); do
    belfry jobs describe long >out.txt 2>err.txt
    if grep -q '^state RUNNING' out.txt; then break; fi
    sleep 0.1
done
check "it runs once its master listens" grep -q '^state RUNNING' out.txt
run_fails 1 'there is a job long already' submit long --replace
run_fails 2 'long is one of engine kubernetes' belfry jobs scale long --worker_count 2
run_ok belfry jobs cancel long
equal "one word" "$(cat out.txt)" "job long was asked to save and end"
wait "$player" || complain "play.py failed: $(cat play.txt)"
check "suspended" grep -q '^Suspended' play.txt
is long CANCELLED
run_fails 2 'nothing to cancel' belfry jobs cancel long
saved=$(belfry inspect volume/long --json 2>/dev/null | sed -n 's/.*"step": *\([0-9]*\).*/\1/p' | head -n 1)
check "it saved on the way" test "${saved:-0}" -gt 0
run_ok belfry jobs resume long
check "the old object is deleted first" grep -q '^delete jobset long --namespace ml --cascade=foreground --wait$' kube/calls
is long QUEUED
check "and it is not suspended any more" grep -q '"suspend": false' "$(object jobset long)"
settings=(--train_steps 2000 --save_checkpoints_steps 250 --eval_every_steps 1000)

# --- Ends
condition jobset long Failed "jobset failed due to reaching max number of restarts"
is long FAILED
check "with Kubernetes' words" grep -q '^message jobset failed due to reaching max' out.txt
run_ok submit gone
rm "$(object jobset gone)"
is gone LOST
check "and why" grep -q '^message namespace ml has no jobset gone any more' out.txt
run_ok belfry jobs remove gone
touch kube/down
run_fails 1 'kubectl|no route to host' submit unheard
run_ok belfry jobs describe unheard
check "it failed" grep -q '^state FAILED$' out.txt
rm kube/down
python3 - "$(object jobset taken)" <<'PY'
import json, sys
json.dump({"kind": "JobSet", "metadata": {"labels": {}}, "spec": {"suspend": True}}, open(sys.argv[1], "w"))
PY
run_fails 1 "taken already|not one of belfry's" submit taken
run_ok submit missing-file --replace --job_dir /models/missing
sed -i 's/digits-train.csv/nothing.csv/g' "$(object jobset missing-file)"
run_ok play jobset missing-file
check "a permanent error is not retried" grep -q '^Failed .* ended with exit code 3' out.txt
is missing-file FAILED

# --- TFJob
with 'image: i, kind: tfjob, namespace: ml, volume_claim: models' tf.yaml
run_ok submit tf --config tf.yaml
is tf QUEUED
run_ok play tfjob tf --kill worker-0@500
equal "the bits of one process, as a TFJob" "$(digest volume/tf)" "$alone"
is tf SUCCEEDED
sed 's/^master:.*/master: {machine: small, trains: true}/; s/count: 3/count: 2/' k.yaml >chief.yaml
run_ok submit chief --config chief.yaml
run_ok play jobset chief --kill worker-1@500
equal "the bits with a master that trains" "$(digest volume/chief)" "$alone"
echo "of a pod" >>kube/logs/chief-worker-0-1-x1.log
echo "of its successor" >>kube/logs/chief-worker-0-1-x2.log
printf "cut o" >>kube/logs/chief-worker-0-1-x2.log
run_ok belfry jobs stream-logs chief
check "whose workers begin with 1" grep -qx '\[worker 2\] .*of a pod' out.txt
check "a replacing pod has a separate log" grep -qx '\[worker 2\] .*of its successor' out.txt
check "incomplete lines come later" bash -c '! grep -q "cut o" out.txt'
printf "ff\n" >>kube/logs/chief-worker-0-1-x2.log
run_ok belfry jobs stream-logs chief
check "complete" grep -qx '\[worker 2\] .*cut off' out.txt
equal "each line once" "$(grep -c 'of its successor' out.txt)" 1

finish
