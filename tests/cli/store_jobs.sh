#!/usr/bin/env bash
# Jobs on hosts without a common folder: data, models and checkpoints in an object store, by the stand-in of
# tests/support/store_server.py. A host is a folder of copies (BELFRY_CACHE_DIR). Digests are those of local files,
# also when processes are killed, another host continues, and the store refuses and breaks requests.
# usage: store_jobs.sh BUILD_DIR
# shellcheck disable=SC2317 # functions are called through run_ok and check
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"

mkdir -p store/data/digits store/runs one two three four
cp "$TRAIN_CSV" "$EVAL_CSV" "$SOURCE/examples/data/penguins.csv" store/data/digits/
gzip -k -n -c "$TRAIN_CSV" >store/data/digits/packed.csv.gz
store_begin

flags=(--label_column digit --feature_scale 0.0625 --train_batch_size 32 --num_threads 1 --hidden_units 32
    --no_report --save_checkpoints_steps 20)
data=(--train_files s3://data/digits/digits-train.csv --eval_files "s3://data/digits/digits-e*.csv")
local_data=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV")

# --- Data ---------------------------------------------------------------------------------------

run_ok belfry train_and_evaluate "${local_data[@]}" "${flags[@]}" --train_steps 200 --model_dir plain
expected=$(digest plain)
run_ok on one belfry train_and_evaluate "${data[@]}" "${flags[@]}" --train_steps 200 --model_dir from-store
equal "data of the store" "$(digest from-store)" "$expected"
check "the fields of the data are read" grep -q '(359 examples)' err.txt
before=$(wc -l <requests.jsonl)
run_ok on one belfry train_and_evaluate "${data[@]}" "${flags[@]}" --train_steps 200 --model_dir again
equal "data of the copies" "$(digest again)" "$expected"
read_bytes=$(tail -n +$((before + 1)) requests.jsonl | python3 -c '
import json, sys
print(sum(r["bytes"] for r in map(json.loads, sys.stdin) if r["method"] == "GET" and "csv" in r["path"]))')
equal "a second job reads copies" "$read_bytes" 0
run_ok on one belfry train_and_evaluate --train_files s3://data/digits/packed.csv.gz --eval_files "$EVAL_CSV" \
    "${flags[@]}" --train_steps 200 --model_dir packed
equal "packed data" "$(digest packed)" "$expected"
run_ok on one belfry train_and_evaluate --data_dir s3://data/digits --train_files digits-train.csv \
    --eval_files digits-eval.csv "${flags[@]}" --train_steps 200 --model_dir below
equal "--data_dir" "$(digest below)" "$expected"

# A table whose columns are found, with rows held out; a submitted job.
table=(--label_column Species --eval_share 0.2 --train_steps 50 --num_threads 1 --hidden_units 8 --no_report)
run_ok belfry train_and_evaluate --train_files "$SOURCE/examples/data/penguins.csv" "${table[@]}" --model_dir table-plain
run_ok on one belfry train_and_evaluate --train_files s3://data/digits/penguins.csv "${table[@]}" --model_dir s3://runs/table
equal "a table of the store" "$(on two digest s3://runs/table)" "$(digest table-plain)"
run_ok on two belfry evaluate --held_out --model_dir s3://runs/table
check "the held out rows" grep -q '^examples 68$' out.txt
run_ok on two belfry columns s3://data/digits/penguins.csv --label_column Species
export XDG_STATE_HOME=$work/state
run_ok on one belfry jobs submit training in-store --config "$SOURCE/cluster.yaml" --job_dir s3://runs/job -- \
    "${data[@]:0:2}" "${flags[@]}" --train_steps 40
run_ok on one belfry jobs stream-logs in-store
run_ok on one belfry jobs describe in-store
check "it is described by its URL" grep -q '^model_url s3://runs/job$' out.txt
check "a submitted job is in the store" test -f store/runs/job/ckpt-00000040/manifest.json

run_fails 3 's3://data/digits/none.csv|no such object' on one belfry train --train_files s3://data/digits/none.csv "${flags[@]}" \
    --model_dir bad
run_fails 3 'no object matches the pattern|s3://data/none/*.csv' on one belfry train \
    --train_files 's3://data/none/*.csv' "${flags[@]}" --model_dir bad
run_fails 2 'BELFRY_CACHE_SIZE|a number of MiB|"much"' env BELFRY_CACHE_SIZE=much BELFRY_CACHE_DIR="$work/three" \
    "$BUILD/tools/belfry" train "${data[@]:0:2}" "${flags[@]}" --model_dir bad

# --- The model's folder ---------------------------------------------------------------------------

run_ok on one belfry train_and_evaluate "${data[@]}" "${flags[@]}" --train_steps 100 --model_dir s3://runs/a
check "the store has the manifest" test -f store/runs/a/ckpt-00000100/manifest.json
check "nothing of this host is in the store" test ! -e store/runs/a/job.lock
run_ok on two belfry evaluate --eval_files s3://data/digits/digits-eval.csv --model_dir s3://runs/a
check "the evaluation's events are in the store" test -d store/runs/a/evaluate
run_ok on two belfry predict --eval_files s3://data/digits/digits-eval.csv --model_dir s3://runs/a
equal "a line for each example" "$(wc -l <out.txt)" 359
run_ok on two belfry export --model_dir s3://runs/a --export_dir s3://runs/a.export/
check "the export is in the store" test -f store/runs/a.export/signature.json
run_ok on two belfry export --model_dir s3://runs/a
equal "an export below the model" "$(cat out.txt)" "export_dir s3://runs/a/export/100"
run_ok on two belfry inspect s3://runs/a/ckpt-00000080
run_fails 3 's3://runs/none: the store has no files' on two belfry predict --eval_files "$EVAL_CSV" \
    --model_dir s3://runs/none
run_fails 3 'there is no folder|ckpt-00000007' on two belfry inspect s3://runs/a/ckpt-00000007
run_fails 2 'web server' on two belfry train "${data[@]:0:2}" "${flags[@]}" --model_dir "http://127.0.0.1:$port/x"
run_fails 2 'a study keeps' on two belfry cross_validate "${data[@]:0:2}" "${flags[@]}" --model_dir s3://runs/study
# Another host continues, as a cluster, and retention also acts in the store.
run_ok on two belfry local train --distributed --worker_count 1 --parameter_server_count 2 --job_dir s3://runs/a -- \
    "${data[@]}" "${flags[@]}" --min_shard_bytes 0 --train_steps 200
equal "another host continues" "$(on three digest s3://runs/a)" "$expected"
check "an old checkpoint is gone" test ! -f store/runs/a/ckpt-00000060/manifest.json
# The first host sees that another one was there.
run_ok on one belfry train_and_evaluate "${data[@]}" "${flags[@]}" --train_steps 220 --model_dir s3://runs/a
check "it fetches the newer checkpoint" grep -q 'resuming from .*ckpt-00000200' err.txt
run_ok on three belfry train --warm_start s3://runs/a "${data[@]:0:2}" "${flags[@]}" --train_steps 20 \
    --model_dir s3://runs/warm

# --- Owners ---------------------------------------------------------------------------------------

slow() { # HOST STEPS [NAME]: a job of about ten seconds in the background
    BELFRY_FAULT="slow:tower_step#50" BELFRY_CACHE_DIR=$work/$1 "$BUILD/tools/belfry" train \
        "${data[@]:0:2}" "${flags[@]}" --train_steps "$2" --model_dir "s3://runs/${3:-b}" >slow.txt 2>slow.err </dev/null &
    job=$!
}
wait_for() { # PATTERN: retention may remove the first checkpoints before a slow store has them
    until_true compgen -G "$1" >/dev/null
}
slow one 200
check "a checkpoint is sent" wait_for "store/runs/b/ckpt-*/manifest.json"
run_fails 2 'another job trains in s3://runs/b|lease' on two belfry train "${data[@]:0:2}" "${flags[@]}" \
    --train_steps 200 --model_dir s3://runs/b
kill -9 "$job"
wait "$job" 2>/dev/null || true
# The same host continues at once with the files that it has.
run_ok on one belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 200 --model_dir s3://runs/b
run_ok belfry train "${local_data[@]:0:2}" "${flags[@]}" --train_steps 200 --model_dir plain-b
equal "a killed owner" "$(on three digest s3://runs/b)" "$(digest plain-b)"
# Another host takes a lease that ended. Its time is set back instead of waiting.
set_lease() { # OWNER SECS: the lease as of another owner, renewed SECS ago
    python3 -c 'import json, sys, time
print(json.dumps({"owner": sys.argv[1], "host": "elsewhere", "renewed": time.time() - float(sys.argv[2])}))' \
        "$1" "$2" >lease.json
    "$BUILD/tests/store_tool" write s3://runs/b/job.lease lease.json >/dev/null
}
set_lease another 100
run_ok on two belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 220 --model_dir s3://runs/b
# An owner whose lease is taken ends, and writes nothing more.
slow three 700
check "it has the folder" wait_for "store/runs/b/ckpt-00000[3-6]??/manifest.json"
set_lease another 0
code=0
wait "$job" || code=$?
cp slow.txt out.txt && cp slow.err err.txt
checks=$((checks + 1))
[ "$code" -ne 0 ] || complain "an owner without its lease ended well"
check "it says who took the lease" grep -q 'host elsewhere took the lease' slow.err
check "it wrote nothing more" test ! -e store/runs/b/ckpt-00000700/manifest.json
# An evaluator of another host follows the checkpoints in the store, and its curves are there.
rm -rf two
follow() {
    TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}' on two belfry \
        train_and_evaluate "${data[@]}" "${flags[@]}" --train_steps 200 --model_dir s3://runs/followed
}
control '{"refuse": "AccessDenied", "only": "^PUT .*/evaluator/"}' # its credentials only read
follow >follow.txt 2>follow.err </dev/null &
follower=$!
slow one 200 followed
wait "$job" || complain "the followed job failed"
code=0
wait "$follower" || code=$?
cp follow.txt out.txt && cp follow.err err.txt
equal "the evaluator ends well" "$code" 0
check "with the last checkpoint" grep -q '^global_step 200$' out.txt
check "after others" test "$(grep -c 'eval at step' err.txt)" -gt 1
equal "one line says that its curves stay" "$(grep -c 'the curves of this evaluator stay in' err.txt)" 1
check "its end says so" grep -q 'the store lacks curves of this evaluator' err.txt
control '{"reset": true}'
run_ok follow
check "the next one sends all curves" [ "$(compgen -G "store/runs/followed/evaluator/events.out.tfevents.*" | wc -l)" -eq 2 ]
run_ok on three belfry evaluate --eval_files s3://data/digits/digits-eval.csv --model_dir s3://runs/followed
equal "its result" "$(grep -E '^(loss|accuracy) ' follow.txt)" "$(grep -E '^(loss|accuracy) ' out.txt)"

# --- Faults ---------------------------------------------------------------------------------------

# Files that a cleanup of temporary files removed come back; the store loses nothing.
rm -rf one/belfry-folders-*/a-*/ckpt-00000220 one/belfry-folders-*/a-*/job.yaml
run_ok on one belfry train_and_evaluate "${data[@]}" "${flags[@]}" --train_steps 220 --model_dir s3://runs/a
check "the store keeps its files" test -f store/runs/a/job.yaml -a -f store/runs/a/ckpt-00000220/manifest.json

# A fetch that fails notes the files that it fetched.
control '{"refuse": "AccessDenied", "only": "^GET /runs/a/ckpt"}'
run_fails 1 'AccessDenied' on four belfry evaluate --eval_files "$EVAL_CSV" --model_dir s3://runs/a
control '{"reset": true}'
check "the state has them" grep -q '"job.yaml"' four/belfry-folders-*/a-*.store/state.json
check "and no other" test -z "$(grep 'ckpt-' four/belfry-folders-*/a-*.store/state.json || true)"
run_ok on four belfry evaluate --eval_files "$EVAL_CSV" --model_dir s3://runs/a

# The folder of a running owner is removed: the store keeps what it has.
slow one 200 e
check "it is sent" wait_for "store/runs/e/ckpt-*/manifest.json"
for ((i = 0; i < 100; i++)); do # the owner writes meanwhile
    rm -rf one/belfry-folders-*/e-*[0-9a-f] 2>/dev/null && break
done
wait "$job" || true
check "the store keeps its checkpoints" compgen -G "store/runs/e/ckpt-*/manifest.json"

# A store that cannot be reached at the end: the files stay on this host, and are sent by the next run there, or set
# aside if another host had the folder since.
run_ok on one belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 40 --model_dir s3://runs/d
control '{"refuse": "AccessDenied", "only": "^(PUT|DELETE).*ckpt"}'
run_fails 1 's3://runs/d lacks files|the same command sends them' on one timeout 100 "$BUILD/tools/belfry" train \
    "${data[@]:0:2}" "${flags[@]}" --train_steps 60 --model_dir s3://runs/d
control '{"reset": true}'
run_ok on one belfry evaluate --eval_files "$EVAL_CSV" --model_dir s3://runs/d
check "it evaluates the unsent checkpoint" grep -q '^global_step 60$' out.txt
check "a reader does not send it" test ! -e store/runs/d/ckpt-00000060
run_ok on one belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 60 --model_dir s3://runs/d
check "the next run sends it" test -f store/runs/d/ckpt-00000060/manifest.json
check "no checkpoint is set aside" test -z "$(compgen -G "one/belfry-folders-*/d-*.unsent")"
control '{"refuse": "AccessDenied", "only": "^(PUT|DELETE).*ckpt"}'
run_fails 1 's3://runs/d lacks files' on one timeout 100 "$BUILD/tools/belfry" train \
    "${data[@]:0:2}" "${flags[@]}" --train_steps 80 --model_dir s3://runs/d
control '{"reset": true}'
run_ok on two belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 100 --model_dir s3://runs/d
run_ok on one belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 120 --model_dir s3://runs/d
check "it says what it moved" grep -q 'ckpt-00000080 of this host was never sent' err.txt
check "it is there" ls -d one/belfry-folders-*/d-*.unsent/ckpt-00000080-*

# Files that a training writes before it owns the folder are sent.
printf 'the cat sat on the mat. a dog ran. %s\n' {1..200} >store/data/digits/cats.txt
control '{"reset": true}'
cp store/data/digits/cats.txt .
text=(--model gpt --tokenizer chars --train_files cats.txt --context 16 --train_steps 10 --num_threads 1 --no_report
    --layers 1 --heads 1 --token_width 16 --train_batch_size 4)
run_ok on one belfry train "${text[@]}" --model_dir s3://runs/text
run_ok on two belfry generate --model_dir s3://runs/text --prompt cat --length 5
check "the tokenizer is in the store" test -f store/runs/text/tokenizer.json
run_ok on two belfry train "${text[@]}" --model_dir s3://runs/text
run_ok on two belfry tokens encode cats.txt --tokenizer s3://runs/text/tokenizer.json --out remote.bin
run_ok belfry tokens encode cats.txt --tokenizer store/runs/text/tokenizer.json --out local.bin
check "a tokenizer in the store" cmp remote.bin local.bin

# A store that refuses, resets and truncates; kills of every role.
control '{"errors": 10, "resets": 5, "truncated": 2, "retry_after": "0"}'
for kill in "master 0" "worker 1" "ps 0" none; do
    name=faulty-${kill// /-}
    mkdir -p "$name"
    BELFRY_FAULT="slow:tower_step#10" BELFRY_CACHE_DIR=$work/$name timeout 400 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count 1 --job_dir "s3://runs/$name" -- "${data[@]}" "${flags[@]}" --train_steps 200 \
        --min_shard_bytes 0 >job.txt 2>job.err </dev/null &
    job=$!
    check "a checkpoint is sent in spite of faults" wait_for "store/runs/$name/ckpt-*/manifest.json"
    # shellcheck disable=SC2086 # two words
    [ "$kill" = none ] || for pid in $(roles $kill); do kill -9 "$pid" 2>/dev/null || true; done
    code=0
    wait "$job" || code=$?
    cp job.txt out.txt && cp job.err err.txt
    equal "the job ends well ($name)" "$code" 0
    control '{"errors": 0, "resets": 0, "truncated": 0}'
    [ -n "${cluster:-}" ] || {
        run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 1 --job_dir cluster -- \
            "${local_data[@]}" "${flags[@]}" --train_steps 200 --min_shard_bytes 0
        cluster=$(digest cluster)
    }
    equal "the digest ($name)" "$(on three digest "s3://runs/$name")" "$cluster"
    control '{"errors": 10, "resets": 5, "truncated": 2, "retry_after": "0"}'
done
control '{"reset": true}'

# An object that is replaced during a job: a worker that starts again has other data, and the master refuses it.
"$BUILD/tests/store_tool" write s3://data/digits/moving.csv "$TRAIN_CSV" >/dev/null
BELFRY_FAULT="slow:tower_step#20" BELFRY_CACHE_DIR=$work/one timeout 300 "$BUILD/tools/belfry" local train --distributed \
    --worker_count 2 --parameter_server_count 1 --job_dir moving -- --train_files s3://data/digits/moving.csv \
    "${flags[@]}" --train_steps 1000 --min_shard_bytes 0 >job.txt 2>job.err </dev/null &
job=$!
check "it trains" wait_for "moving/ckpt-000000[2-9]?/manifest.json"
"$BUILD/tests/store_tool" write s3://data/digits/moving.csv "$EVAL_CSV" >/dev/null
for pid in $(roles worker 1); do kill -9 "$pid"; done
code=0
wait "$job" || code=$?
cp job.txt out.txt && cp job.err err.txt
checks=$((checks + 1))
[ "$code" -ne 0 ] || complain "a worker trained on another object"
check "it says why" grep -q 'worker 1 .*hint: a file or an object was replaced since the job began' job.err

# A process that is killed while it sends leaves a folder in the store in which readers find whole checkpoints.
BELFRY_FAULT="crash:stored_before_last#2" capture on one belfry train "${data[@]:0:2}" "${flags[@]}" \
    --train_steps 100 --model_dir s3://runs/c
equal "it was killed" "$code" 137
run_ok on one belfry train "${data[@]:0:2}" "${flags[@]}" --train_steps 200 --model_dir s3://runs/c
equal "killed while it sends" "$(on two digest s3://runs/c)" "$(digest plain-b)"
finish
