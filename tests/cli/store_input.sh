#!/usr/bin/env bash
# Bad input around object stores: URLs, keys, objects, regions, servers that are no stores, files of credentials, and
# programs of credentials. One clear line each.
# usage: store_input.sh BUILD_DIR
# shellcheck disable=SC2317 # functions are called through run_ok and check
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY "${!AWS_@}" "${!GS_@}" STORAGE_EMULATOR_HOST
export HOME=$work AWS_EC2_METADATA_DISABLED=true LC_ALL=C # bytes that are no UTF-8 are text for grep
tool() { timeout -k 5 "$patience" "$BUILD/tests/store_tool" "$@"; }

mkdir -p "store/data/with space"
cp "$TRAIN_CSV" "store/data/with space/digits train.csv"
cp "$TRAIN_CSV" store/data/digits.csv
: >store/data/empty.csv
truncate -s 5368709121 store/data/5-GiB-and-1
store_begin
long=$(printf 'k%.0s' {1..1025})

# --- The same bad names everywhere a URL can stand: in data, in models, in bare calls
flags=(--label_column digit --hidden_units 4 --train_steps 1 --num_threads 1 --no_report)
train() { belfry train --train_files "$1" "${flags[@]}" --model_dir "${2:-model}"; }
bad_url() { # PATTERNS URL
    run_fails 2 "$1" tool check "$2"
    run_fails 2 "$1" train "$2"
    run_fails 2 "$1" train "$TRAIN_CSV" "$2/x"
    equal "one line for $2" "$(grep -c . err.txt)" 1
}
bad_url "bucket" s3://
bad_url "bucket" s3:///key.csv
bad_url "bucket" 's3://two words/key.csv'
bad_url 'a part ".."' s3://data/../digits.csv
bad_url "UTF-8" $'s3://data/\xff\xfe.csv'
bad_url "1024" "s3://data/$long"
bad_url "a user" 's3://me:secret@data/digits.csv'
check "no secret is in the message" [ "$(grep -c secret err.txt)" -eq 0 ]

run_ok train "s3://data/with space/digits train.csv"
run_ok train "s3://data/with space/digits*.csv" named-by-a-pattern
run_ok tool write "s3://data/${long%k}" "$TRAIN_CSV"
run_ok tool read "s3://data/${long%k}" 0 10
bad_url "ARN|alias" s3://arn:aws:s3:us-east-1:1:accesspoint/name
run_fails 3 "s3://data/none.csv|no such object" train s3://data/none.csv
run_fails 3 "s3://none/digits.csv|no such object or bucket" train s3://none/digits.csv
run_fails 2 "s3://data/|expected an object" train s3://data/
run_fails 3 "s3://data/empty.csv" train s3://data/empty.csv
run_fails 3 "no object matches" train 's3://data/no*.csv'
run_ok tool write s3://data/marker/ /dev/null
run_fails 3 "no object matches" train 's3://data/marker/*.csv'
run_fails 3 "s3://data/marker/" train s3://data/marker/

# --- More than one request may hold
run_ok tool stat s3://data/5-GiB-and-1
check "its size" grep -q '^5368709121 ' out.txt
run_ok tool read s3://data/5-GiB-and-1 5368709120 10
equal "its last byte" "$(wc -c <out.txt)" 1
run_fails 1 "has 5368709121 bytes" tool read s3://data/5-GiB-and-1 5368709122 1

# --- Where the server is: an IPv6 address, a section of services, a proxy; settings that are not supported have an error
six_port() { sed -n 's/^port //p' six.txt; }
python3 "$SOURCE/tests/support/store_server.py" --folder store --address ::1 >six.txt 2>six.err &
six=$!
trap 'kill "$server" "$six" 2>/dev/null || true; rm -rf "$work"' EXIT
until_true grep -qs '^port ' six.txt || true
if grep -q '^port ' six.txt; then
    run_ok env AWS_ENDPOINT_URL="http://[::1]:$(six_port)" no_proxy='*' timeout -k 5 "$patience" "$BUILD/tests/store_tool" \
        stat s3://data/digits.csv
else
    echo "an IPv6 address is left out: this host has none"
fi
placed() { # CONFIG VARIABLES…: stat with this config file and no variable of the server
    printf '%b' "$1" >placed.conf
    env -u AWS_ENDPOINT_URL "${@:2}" AWS_CONFIG_FILE="$work/placed.conf" timeout -k 5 "$patience" "$BUILD/tests/store_tool" \
        --patience 1 stat s3://data/digits.csv
}
own="[services own]\ns3 =\n  endpoint_url = $AWS_ENDPOINT_URL\n"
run_ok placed "[default]\nservices = own\nendpoint_url = http://127.0.0.1:1\n$own"
run_fails 2 "services = own|no section" placed '[default]\nservices = own\n'
run_fails 2 "AWS_USE_FIPS_ENDPOINT is not|AWS_ENDPOINT_URL_S3" placed '' AWS_USE_FIPS_ENDPOINT=true
run_fails 2 "use_accelerate_endpoint" placed '[default]\ns3 =\n  use_accelerate_endpoint = true\n'
run_fails 2 "addressing_style|both" placed "[default]\nservices = own\ns3 =\n  addressing_style = both\n$own"
run_fails 2 "ca_bundle|AWS_CA_BUNDLE" placed "[default]\nservices = own\nca_bundle = /x\n$own"
run_fails 2 "login_session" placed "[default]\nservices = own\nlogin_session = me\n$own" -u AWS_ACCESS_KEY_ID \
    -u AWS_SECRET_ACCESS_KEY
# The stand-in is also the proxy: it takes the host out of the request.
proxied() { env AWS_ENDPOINT_URL=http://store.invalid http_proxy="$AWS_ENDPOINT_URL" "$@" timeout -k 5 "$patience" \
    "$BUILD/tests/store_tool" --patience 1 stat s3://data/digits.csv; }
run_ok proxied no_proxy=
run_fails 1 "s3://data/digits.csv|resolve" proxied no_proxy=store.invalid

# --- Another region, another clock, and servers that are no stores
control '{"region": "eu-west-1"}'
run_ok tool stat s3://data/digits.csv
control '{"reset": true}'
control '{"clock_secs": 7200}'
run_ok tool stat s3://data/digits.csv
run_ok tool clock s3://data/digits.csv
offset=$(cat out.txt)
check "the store's clock is used" [ "$((offset > 7100 && offset < 7300))" -eq 1 ]
control '{"reset": true}'
page=$work/page
mkdir page
python3 -u - >page/port 2>page/err <<'PY' &
import http.server
class Portal(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b"<html><body>Please sign in</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
    do_HEAD = do_PUT = do_POST = do_GET
    def log_message(self, *arguments):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Portal)
print("port", server.server_address[1], flush=True)
server.serve_forever()
PY
portal=$!
trap 'kill "$server" "$six" "$portal" 2>/dev/null || true; rm -rf "$work"' EXIT
until_true grep -qs '^port ' "$page/port" || true
portal_url=http://127.0.0.1:$(awk '{ print $2 }' "$page/port")
for command in "stat s3://data/x" "read s3://data/x 0 10" "list s3://data/" "write s3://data/x $TRAIN_CSV"; do
    # shellcheck disable=SC2086 # words
    run_fails 2 "$portal_url|not that of a store|AWS_ENDPOINT_URL" env AWS_ENDPOINT_URL="$portal_url" \
        timeout -k 5 "$patience" "$BUILD/tests/store_tool" $command
done
run_fails 2 "$portal_url|STORAGE_EMULATOR_HOST" env STORAGE_EMULATOR_HOST="$portal_url" GS_ACCESS_KEY_ID=a \
    GS_SECRET_ACCESS_KEY=b timeout -k 5 "$patience" "$BUILD/tests/store_tool" stat gs://data/x

# --- Each try and part of a change needs the owner's permission; the parts of a refused upload are removed
log_has() { # METHOD PATTERN: lines of the log since $from
    tail -n +"$((from + 1))" requests.jsonl | grep -c "\"$1\".*$2" || true
}
control '{"errors": 100, "only": "^PUT"}'
from=$(wc -l <requests.jsonl)
run_fails 1 "s3://data/|no further change is permitted" tool --changes 2 write s3://data/x "$TRAIN_CSV"
equal "each try asks" "$(log_has PUT /data/x)" 2
control '{"reset": true}'
run_ok tool --changes 0 stat s3://data/digits.csv
run_fails 1 "s3://data/|no further change is permitted" tool --changes 0 remove s3://data/digits.csv
truncate -s 40000000 large
from=$(wc -l <requests.jsonl)
run_fails 1 "s3://data/|no further change is permitted" tool --changes 2 upload large s3://data/large
equal "the parts are removed" "$(log_has DELETE '/data/large.*uploadId.*"status": 204')" 1

# --- An upload that lasts longer than the owner's lease is fresh
big=(--label_column digit --hidden_units 70000 --num_threads 1 --no_report)
control '{"slow_ms": 2200, "only": "/data/run/ckpt-00000001.*upload"}'
from=$(wc -l <requests.jsonl)
run_ok env BELFRY_FAULT=short_lease timeout -k 5 "$patience" "$BUILD/tools/belfry" train --train_files "$TRAIN_CSV" "${big[@]}" \
    --train_steps 1 --model_dir s3://data/run
control '{"reset": true}'
check "the store has the checkpoint" test -f store/data/run/ckpt-00000001/manifest.json
check "it had several parts" [ "$(log_has PUT 'partNumber=2')" -ge 1 ]
equal "no upload began again" "$(log_has POST 'uploads=')" "$(log_has POST 'uploadId=')"

# --- A web page instead of the last answers of the store is no success
control '{"portal": 1, "only": "^(PUT|POST) /data/run/(ckpt|export)"}'
run_fails 2 "s3://data/run lacks files|not that of a store" belfry train --train_files "$TRAIN_CSV" "${big[@]}" \
    --train_steps 2 --model_dir s3://data/run
run_fails 2 "not that of a store" belfry export --model_dir s3://data/run
control '{"reset": true}'

# --- An evaluator waits on when the store does not answer
control '{"refuse": "AccessDenied", "only": "job.lease", "after": 2}' # the first two reads are those of its start
TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}' timeout --foreground 20 \
    "$BUILD/tools/belfry" train_and_evaluate --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" "${flags[@]}" \
    --model_dir s3://data/waits >out.txt 2>err.txt </dev/null &
evaluator=$!
until_true grep -q 'checkpoints are looked for again' err.txt || true
check "one line says so" [ "$(grep -c 'AccessDenied.*checkpoints are looked for again' err.txt)" -eq 1 ]
check "it runs" kill "$evaluator"
wait "$evaluator" || true
control '{"reset": true}'

# --- It sends only its curves: checkpoint 2 of this host was not sent above, and another job may own the folder soon
TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}' run_ok timeout \
    --foreground 60 "$BUILD/tools/belfry" train_and_evaluate --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" \
    "${big[@]}" --train_steps 2 --model_dir s3://data/run
check "it evaluates the checkpoint" grep -q '^global_step 2$' out.txt
check "its curves are sent" compgen -G "store/data/run/evaluator/events.out.tfevents.*" >/dev/null
check "the checkpoint is not" test ! -e store/data/run/ckpt-00000002

# --- Files of credentials: one that cannot be read counts only when its turn comes
mkdir unreadable
export AWS_CONFIG_FILE=$work/unreadable
run_ok tool stat s3://data/digits.csv
run_ok env -u AWS_REGION timeout -k 5 "$patience" "$BUILD/tests/store_tool" stat s3://data/digits.csv
check "one line says that it was not read" grep -q 'unreadable.*its region and endpoint_url are not used' err.txt
run_fails 1 "unreadable" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY timeout -k 5 "$patience" "$BUILD/tests/store_tool" stat \
    s3://data/digits.csv
# Keys of the second file may be of another account than those of the first, and the data must not go to Amazon.
printf '[default]\naws_access_key_id = test\naws_secret_access_key = test-secret\n' >config
run_fails 1 "unreadable" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_CONFIG_FILE="$work/config" \
    AWS_SHARED_CREDENTIALS_FILE="$work/unreadable" timeout -k 5 "$patience" "$BUILD/tests/store_tool" stat s3://data/digits.csv
run_fails 1 "unreadable|may have endpoint_url|AWS_ENDPOINT_URL" env -u AWS_REGION -u AWS_ENDPOINT_URL timeout -k 5 "$patience" \
    "$BUILD/tests/store_tool" stat s3://data/digits.csv
export AWS_CONFIG_FILE=$work/config
by_program() { # TEXT FLAGS…: the program's answer
    printf '%s\n' "$1" >answer.json
    printf '[default]\ncredential_process = cat %s\n' "$work/answer.json" >config
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY timeout -k 5 "$patience" "$BUILD/tests/store_tool" stat s3://data/digits.csv
}
keys='"AccessKeyId": "test", "SecretAccessKey": "test-secret"'
run_ok by_program "{\"Version\": 1, $keys}"
run_fails 1 'credential_process: expected "Version": 1' by_program "{\"Version\": 2, $keys}"
run_fails 1 'credential_process: expected "Version": 1' by_program "{\"Version\": \"1\", $keys}"

# Keys that come after the patience, as the machine was suspended meanwhile, send no request.
cat >late <<SH
#!/bin/sh
touch "\$0.runs"
while [ ! -e "\$0.go" ]; do sleep 0.05; done
cat "$work/answer.json"
SH
chmod +x late
printf '%s\n' "{\"Version\": 1, $keys}" >answer.json
printf '[default]\ncredential_process = %s\n' "$work/late" >config
from=$(wc -l <requests.jsonl)
env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY "$BUILD/tests/store_tool" --patience 2 stat s3://data/digits.csv >out.txt \
    2>err.txt </dev/null &
suspended=$!
for ((i = 0; i < naps; i++)); do
    [ ! -e late.runs ] || break
    read -r -t 0.05 <> <(:) || true
done
kill -STOP "$suspended"
touch late.go
read -r -t 4 <> <(:) || true # the patience passes
kill -CONT "$suspended"
code=0
wait "$suspended" || code=$?
equal "late keys are an error" "$code" 1
check "it says so" grep -q 'not sent: new credentials came after\|credential_process: .* took more than' err.txt
equal "requests with late keys" "$(log_has HEAD /data/digits.csv)" 0

# A program that hangs does not outlive Belfry.
cat >hang <<'SH'
#!/bin/sh
echo $$ >"$0.pid"
sleep 300 &
echo $! >>"$0.pid"
wait
SH
chmod +x hang
printf '[default]\ncredential_process = %s\n' "$work/hang" >config
run_ok env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY timeout -k 5 "$patience" "$BUILD/tests/store_tool" leave s3://data/digits.csv \
    "$work/hang.pid"
gone() { # both processes of the program have exited, or wait to be reaped
    local pid
    while read -r pid; do
        ! grep -qs '^State:[[:space:]]*[RSD]' "/proc/$pid/status" || return 1
    done <hang.pid
}
until_true gone || true
check "the program and its child are gone" gone
finish
