#!/usr/bin/env bash
# belfry serve: both protocols, bad requests, versions that are exchanged under load, limits, and the end.
# usage: serve.sh BUILD_FOLDER
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"

ask() { run_ok timeout -k 5 "$patience" python3 "$SOURCE/tests/cli/serve_check.py" "$1" "$url" "${@:2}"; }
logged() { until_true grep -q -- "$1" serve.err; }

# Two models: digits at three steps, and a table.
for step in 60 120 180; do
    run_ok train m --train_steps $step
    run_ok belfry export --model_dir m --export_dir exports/$step
    run_ok belfry predict --model_dir m --eval_files "$EVAL_CSV" --feature_scale 0.0625 --eval_batch_size 7
    mv out.txt predicted-$step.csv
done
penguins=$SOURCE/examples/data/penguins.csv
run_ok belfry train_and_evaluate --train_files "$penguins" --label_column Species --train_steps 50 --eval_share 0.2 \
    --model_dir p --no_report
run_ok belfry export --model_dir p --export_dir penguins
run_ok belfry predict --model_dir p --eval_files "$penguins" --eval_batch_size 32
mv out.txt predicted-penguins.csv
mkdir digits
touch load.log
cp -r exports/60 digits/60

start digits penguins --max_body 1 --timeout_secs 2 --access_log access.log --max_examples 400
ask same_bits "$EVAL_CSV" predicted-60.csv
ask table "$penguins" predicted-penguins.csv
ask wrong
ask unread
ask metrics
check "the log is JSON" python3 -c '
import json
lines = [json.loads(line) for line in open("access.log")]
assert any(l["model"] == "digits" and l["code"] == 200 and l["version"] == 60 for l in lines if "model" in l)
assert any(l["code"] == 400 for l in lines)'
mv access.log old.log
kill -HUP "$server"
check "the log is opened again" until_true test -e access.log

# Versions are exchanged while requests arrive.
timeout -k 5 "$patience" python3 "$SOURCE/tests/cli/serve_check.py" under_load "$url" "$EVAL_CSV" end \
    60=predicted-60.csv 120=predicted-120.csv 180=predicted-180.csv >load.out 2>load.err &
load=$!
answers() { until_true sh -c "tail -n 1 load.log | grep -qx $1"; } # VERSION: it answers the requests of the load
check "60 answers" answers 60
for _ in 1 2 3; do
    cp -r exports/120 digits/.120
    mv digits/.120 digits/120
    check "120 answers" answers 120
    cp -r exports/180 digits/.180
    mv digits/.180 digits/180
    check "180 answers" answers 180
    rm -r digits/120 digits/180
    check "60 answers again" answers 60
done
touch end
code=0
wait "$load" || code=$?
cat load.out load.err >out.txt
equal "no answer is lost or mixed" "$code" 0
check "old versions are unloaded" logged 'version 180 is unloaded'

# A version that does not load is named once, and the old one stays.
mkdir digits/.999
echo nonsense >digits/.999/model.onnx
mv digits/.999 digits/999
check "the broken version is named" logged 'model digits: digits/999 does not load: .*the loaded versions stay'
ask versions 60
cp -r exports/120 digits/120
check "120 answers beside it" until_true curl -sf -m 5 -o out.txt "$url/v2/models/digits/versions/120"
equal "it is named once" "$(grep -c 'digits/999 does not load' serve.err)" 1
ask versions 120
stop TERM

# Two versions at a time; one thread and no queue.
BELFRY_FAULT=slow:serves#50 start digits --keep_versions 2 --threads 1 --queue 0 --connections 12
ask versions 120 60
ask memory
ask full "$EVAL_CSV"
ask crowd 12
stop INT
rm -r digits/999

# Labels, and their file read again.
printf '# model label version\ndigits stable 60\ndigits canary newest\n' >labels
start digits --labels labels
ask label stable 60
ask label canary 120
ask label no
printf 'digits stable 120\n' >labels
kill -HUP "$server"
check "the label moves" until_true sh -c \
    "curl -sf -m 5 '$url/v1/models/digits/labels/stable' | grep -q '\"version\":\"120\"'"
ask label canary
# Shares: the id of a request decides, or its turn.
printf 'digits stable 60 75%%\ndigits canary newest 25%%\n' >labels
kill -HUP "$server"
check "the shares are in use" until_true sh -c \
    "curl -sf -m 5 '$url/v1/models/digits/labels/stable' | grep -q '\"version\":\"60\"'"
ask shares 60 120 25
cp shares.txt before.txt
printf 'digits canary newest 100%%\n' >labels
kill -HUP "$server"
check "the share moves" until_true sh -c \
    "curl -sf -m 5 -d '{\"instances\":[[$(yes 0, | head -63 | tr -d '\n')0]]}' -D - '$url/v1/models/digits:predict' |
        grep -q 'Model-Version: 120'"
ask shares 60 120 100
printf 'digits stable 60 75%%\ndigits canary newest 25%%\n' >labels
stop TERM
start digits --labels labels
ask shares 60 120 25
check "ids have their versions after a restart" cmp shares.txt before.txt
printf 'digits stable\n' >labels
kill -HUP "$server"
check "a wrong file is named" logged 'the old labels stay in use: labels:1: expected a model'
ask label stable 60
stop TERM
printf 'digits a 1 50%%\ndigits b newest 49.99%%\n' >labels
run_fails 2 'labels: the shares of model digits are 99.99% together, expected 100%' belfry serve digits --port 0 --labels labels
for share in 0% 0.001% 101% 5 x%; do
    printf 'digits a 1 %s\n' "$share" >labels
    run_fails 2 "labels:1: expected a share of 0.01% to 100% with at most two decimals, got \"$share\"" \
        belfry serve digits --port 0 --labels labels
done
printf 'digits a 1\ndigits a 2\n' >labels
run_fails 2 'labels:2: the model digits has a label a already' belfry serve digits --port 0 --labels labels
printf 'digits 60 60\n' >labels
run_fails 2 'labels:1: expected a label without' belfry serve digits --port 0 --labels labels
printf 'other a 1\n' >labels
run_fails 2 'labels:1: there is no model "other"' belfry serve digits --port 0 --labels labels

# Requests that run together have the bits of separate runs.
for size in 1 3; do
    run_ok belfry predict --model_dir m --eval_files "$EVAL_CSV" --feature_scale 0.0625 --eval_batch_size $size
    mv out.txt batches-of-$size.csv
done
start exports/180 --name digits --threads 2 --max_batch 16 --batch_delay_us 100000
ask joined "$EVAL_CSV" batches-of-1.csv batches-of-3.csv
stop TERM
run_fails 2 'batch_delay_us: expected --max_batch' belfry serve exports/60 --port 0 --batch_delay_us 1

# A request in progress is answered when the server stops. One processor has one thread; the trace is written.
cpu=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
start digits --cpus "$cpu" --trace trace.json
check "it runs on one processor" sh -c "taskset -acp $server | sed 's/.*: //' | sort -u | grep -qx $cpu"
python3 - "$url" >late.out <<'PYTHON' &
import socket, sys, time, urllib.parse
url = urllib.parse.urlparse(sys.argv[1])
one = socket.create_connection((url.hostname, url.port), timeout=20)
body = b'{"instances":[' + b",".join([b"[" + b",".join([b"1"] * 64) + b"]"]) + b"]}"
one.sendall(b"POST /v1/models/digits:predict HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
open("begun", "w").close()
end = time.monotonic() + 120
while b"stopping" not in open("serve.err", "rb").read():
    assert time.monotonic() < end, "the server does not say that it stops"
    time.sleep(0.02)
one.sendall(body[9:])
print(one.recv(65536).decode())
PYTHON
late=$!
check "a request has begun" until_true test -e begun
check "it is counted" until_true sh -c "curl -sf -m 5 '$url/v2' >out.txt"
stop TERM
wait "$late" || true
check "it is answered" grep -q '^HTTP/1.1 200' late.out
check "and its connection closes" grep -q '^Connection: close' late.out
check "the trace has its stages" python3 -c '
import json
names = [e["name"] for e in json.load(open("trace.json")) if e["ph"] == "X"]
assert sorted(names) == ["load", "queue", "read", "run", "write"], names'
check "its parts are gone" test ! -e trace.json.parts

# An export has the threshold of its training. Requests may have the label and other columns, as rows of a file; values
# that the training did not distinguish are counted.
awk 'BEGIN { print "x,f,y"; for (i = 0; i < 200; i++) print i * 7 % 11 "," (i % 3 ? "True" : "False") "," (i % 10 < 7 ? "yes" : "no") }' \
    >shares.csv
run_ok belfry train --train_files shares.csv --label_column y --threshold 0.99 --train_steps 20 --model_dir shares --no_report
run_ok belfry export --model_dir shares --export_dir shares.export
start shares shares.export
for model in shares shares.export; do
    curl -sf -m 5 -d '{"instances": [{"x": 3, "f": true, "y": "no", "day": [1]}, {"x": 3, "f": "True"}, {"x": 3, "f": "T"}]}' \
        "$url/v1/models/$model:predict" >out.txt
    check "$model: the threshold decides, and true is True" python3 -c '
import json
a, b, c = json.load(open("out.txt"))["predictions"]
assert a == b != c, (a, b, c)
assert a["class"] == "no" and 0.5 < a["predictions"][1] < 0.99, a'
    curl -sf -m 5 "$url/metrics" >out.txt
    check "$model: an unknown value is counted" grep -q "^belfry_serve_unknown_values_total{model=\"$model\",.*column=\"f\"} 1\$" out.txt
    check "and named" logged "model $model, column \"f\": the value \"T\" is not among those"
    check "as is a column that is left out" logged "model $model: a request has \"y\", which the model does not read"
done
stop TERM

# Arguments that are refused at the start.
run_fails 2 'expected folders of exports' belfry serve
run_fails 3 'none' belfry serve none --port 0
run_fails 3 'expected a model.onnx, or folders with numbers' belfry serve "$SOURCE/examples" --port 0
run_fails 2 'two models have the name "60"|--name' belfry serve exports/60 exports/60 --port 0
run_fails 2 'expected 2 names, one a path, got 1' belfry serve exports/60 exports/120 --name a --port 0
run_fails 2 "a model's name has letters" belfry serve exports/60 --name a/b --port 0
run_fails 2 '--cpus: expected processors such as 0-3,8, got "1-"' belfry serve exports/60 --port 0 --cpus 1-
run_fails 2 '--cpus: this process may not use processor 1023' belfry serve exports/60 --port 0 --cpus 1023
run_fails 2 '--trace: .: expected a file, got a folder' belfry serve exports/60 --port 0 --trace .
run_fails 1 'cannot serve models on no.address' belfry serve exports/60 --port 0 --address no.address
start exports/60
run_fails 1 'cannot serve models on 127.0.0.1|another --port' belfry serve exports/60 --port "${url##*:}"
stop TERM
finish
