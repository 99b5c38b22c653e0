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
tool() { timeout -k 5 60 "$BUILD/tests/store_tool" "$@"; }

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
trap 'kill "$server" "$portal" 2>/dev/null || true; rm -rf "$work"' EXIT
for ((i = 0; i < 200; i++)); do
    grep -qs '^port ' "$page/port" && break
    read -r -t 0.05 <> <(:) || true
done
portal_url=http://127.0.0.1:$(awk '{ print $2 }' "$page/port")
for command in "stat s3://data/x" "read s3://data/x 0 10" "list s3://data/" "write s3://data/x $TRAIN_CSV"; do
    # shellcheck disable=SC2086 # words
    run_fails 2 "$portal_url|not that of a store|AWS_ENDPOINT_URL" env AWS_ENDPOINT_URL="$portal_url" \
        timeout -k 5 60 "$BUILD/tests/store_tool" $command
done
run_fails 2 "$portal_url|STORAGE_EMULATOR_HOST" env STORAGE_EMULATOR_HOST="$portal_url" GS_ACCESS_KEY_ID=a \
    GS_SECRET_ACCESS_KEY=b timeout -k 5 60 "$BUILD/tests/store_tool" stat gs://data/x

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
run_ok env BELFRY_FAULT=short_lease timeout -k 5 120 "$BUILD/tools/belfry" train --train_files "$TRAIN_CSV" "${big[@]}" \
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

# --- An evaluator waits on when the store does not tell who owns the folder
control '{"refuse": "AccessDenied", "only": "job.lease", "after": 2}' # the first two reads are those of its start
TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}' timeout --foreground 20 \
    "$BUILD/tools/belfry" train_and_evaluate --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" "${flags[@]}" \
    --model_dir s3://data/waits >out.txt 2>err.txt </dev/null &
evaluator=$!
for ((i = 0; i < 300; i++)); do
    ! grep -q 'owner is on another host is unknown' err.txt || break
    read -r -t 0.05 <> <(:) || true
done
check "one line says so" [ "$(grep -c 'AccessDenied.*owner is on another host is unknown' err.txt)" -eq 1 ]
check "it runs" kill "$evaluator"
wait "$evaluator" || true
control '{"reset": true}'

# --- Files of credentials: one that cannot be read counts only when its turn comes
mkdir unreadable
export AWS_CONFIG_FILE=$work/unreadable
run_ok tool stat s3://data/digits.csv
run_ok env -u AWS_REGION timeout -k 5 60 "$BUILD/tests/store_tool" stat s3://data/digits.csv
check "one line says that it was not read" grep -q 'unreadable.*its region and endpoint_url are not used' err.txt
run_fails 1 "unreadable" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY timeout -k 5 60 "$BUILD/tests/store_tool" stat \
    s3://data/digits.csv
# Keys of the second file may be of another account than those of the first, and the data must not go to Amazon.
printf '[default]\naws_access_key_id = test\naws_secret_access_key = test-secret\n' >config
run_fails 1 "unreadable" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_CONFIG_FILE="$work/config" \
    AWS_SHARED_CREDENTIALS_FILE="$work/unreadable" timeout -k 5 60 "$BUILD/tests/store_tool" stat s3://data/digits.csv
run_fails 1 "unreadable|may have endpoint_url|AWS_ENDPOINT_URL" env -u AWS_REGION -u AWS_ENDPOINT_URL timeout -k 5 60 \
    "$BUILD/tests/store_tool" stat s3://data/digits.csv
export AWS_CONFIG_FILE=$work/config
by_program() { # TEXT FLAGS…: the program's answer
    printf '%s\n' "$1" >answer.json
    printf '[default]\ncredential_process = cat %s\n' "$work/answer.json" >config
    env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY timeout -k 5 60 "$BUILD/tests/store_tool" stat s3://data/digits.csv
}
keys='"AccessKeyId": "test", "SecretAccessKey": "test-secret"'
run_ok by_program "{\"Version\": 1, $keys}"
run_fails 1 'credential_process: expected "Version": 1' by_program "{\"Version\": 2, $keys}"
run_fails 1 'credential_process: expected "Version": 1' by_program "{\"Version\": \"1\", $keys}"

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
run_ok env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY timeout -k 5 60 "$BUILD/tests/store_tool" leave s3://data/digits.csv \
    "$work/hang.pid"
gone() { # both processes of the program have exited, or wait to be reaped
    local pid
    while read -r pid; do
        ! grep -qs '^State:[[:space:]]*[RSD]' "/proc/$pid/status" || return 1
    done <hang.pid
}
for ((i = 0; i < 100; i++)); do
    ! gone || break
    read -r -t 0.05 <> <(:) || true
done
check "the program and its child are gone" gone
finish
