#!/usr/bin/env bash
# Object stores: every function of src/store/store.h against the stand-in (tests/support/store_server.py), with
# signatures, conditions, credentials from every place, and under every fault.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
unset "${!AWS_@}" "${!GS_@}" "${!GOOGLE_@}" STORAGE_EMULATOR_HOST GCE_METADATA_HOST CLOUDSDK_CONFIG
# No request goes to a real metadata service.
export HOME=$work AWS_EC2_METADATA_DISABLED=true AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1

servers=()
leave() {
    local pid
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap leave EXIT

await_port() { # FILE: sets $port
    for _ in $(seq "$naps"); do
        port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$1" 2>/dev/null | head -n 1) || true
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    echo "no server: $(cat "$1")"
    exit 1
}
serve() { # FOLDER FLAGS…: $port
    timeout 3000 python3 "$SOURCE/tests/support/store_server.py" --folder "$@" >"$1.port" 2>"$1.err" &
    servers+=($!)
    await_port "$1.port"
}
is_silent_of() { ! grep -q "$1" err.txt; } # TEXT: the last command's message does not have it
tool() { timeout -k 5 "$patience" "$BUILD/tests/store_tool" "$@"; }
control() { # JSON: changes settings; the answer is the server's state
    local answer
    exec {asked}<>"/dev/tcp/127.0.0.1/$port"
    printf 'POST /_control HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "${#1}" "$1" >&"$asked"
    IFS= read -r -d '' -t "$patience" -u "$asked" answer || true
    exec {asked}>&-
    [[ "$answer" == "HTTP/1.1 200 "* ]] || {
        echo "FAILED: the stand-in answers $1 with: $answer" >&2
        return 1
    }
    printf '%s\n' "${answer##*$'\r\n\r\n'}"
}
reset() { control '{"reset": true}' >state.json; }
uploads() { control '{}' | sed 's/.*"uploads": \([0-9]*\).*/\1/'; }
requests() { # PATTERN: lines of the log
    grep -cE -- "$1" log.jsonl || true
}
same() { # TEXT FILE: out.txt of the last command has its bytes
    checks=$((checks + 1))
    cmp -s out.txt "$2" || complain "$1: not the bytes of $2"
}

run_ok python3 "$SOURCE/tests/support/store_server.py" --check-vectors

head -c 3000 /dev/urandom >small
head -c 3000 /dev/urandom >other
: >empty
head -c 40000000 /dev/urandom >large

mkdir -p store/parted # what is there at the start has no MD5, as objects that were uploaded in parts
head -c 9000000 large >store/parted/object
serve store --buckets bkt,second --log log.jsonl
s3port=$port
export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test-secret

# --- A renewal that fails, at least 30 s after the credentials came: its result is read at the end
mkdir -p early/.aws
cat >early/issue <<'SH'
#!/bin/sh
if [ -e "$0.used" ]; then echo "the vault is closed" >&2; exit 3; fi
touch "$0.used"
printf '{"Version": 1, "AccessKeyId": "test", "SecretAccessKey": "test-secret", "Expiration": "%s"}' \
    "$(date -u -d '+280 seconds' +%Y-%m-%dT%H:%M:%SZ)"
SH
chmod +x early/issue
printf '[default]\ncredential_process = %s\n' "$work/early/issue" >early/.aws/config
env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY HOME="$work/early" timeout -k 5 "$patience" "$BUILD/tests/store_tool" twice \
    s3://parted/object "$work/early/go" >early/out.txt 2>early/err.txt &
early=$!
{
    until_true [ -s early/out.txt ] # it was asked once
    sleep 31
    touch early/go
} &

# --- Objects of both dialects
objects() { # SCHEME
    local url=$1://bkt/$1 tag key
    run_ok tool write "$url/dir/a b+c%20é~(1)'&.bin" small
    run_ok tool cat "$url/dir/a b+c%20é~(1)'&.bin"
    same "an object is what was written" small
    run_ok tool read "$url/dir/a b+c%20é~(1)'&.bin" 2900 500
    tail -c 100 small >tail.bin
    same "a range at the end is shorter" tail.bin
    run_ok tool read "$url/dir/a b+c%20é~(1)'&.bin" 3000 5
    same "nothing follows the end" empty
    run_fails 1 "has 3000 bytes, and byte 3001" tool read "$url/dir/a b+c%20é~(1)'&.bin" 3001 5
    run_ok tool write "$url/empty" empty
    run_ok tool stat "$url/empty"
    check "an empty object has 0 bytes" grep -q '^0 ' out.txt
    run_ok tool cat "$url/empty"
    same "an empty object is read" empty
    run_ok tool read "$url/empty" 0 10
    same "a range of an empty object is read" empty
    run_ok tool write "$url/folder/" empty
    run_ok tool list "$url/"
    equal "a list has folders and objects, and no markers" "$(cut -d' ' -f1 out.txt | paste -sd' ')" "dir/ empty folder/"
    run_ok tool list "$url/" deep
    equal "a deep list" "$(sed 's/ [0-9]* [^ ]*$//' out.txt | paste -sd,)" "dir/a b+c%20é~(1)'&.bin,empty"
    run_ok tool list "$url/di"
    equal "a prefix within a name" "$(cut -d' ' -f1 out.txt)" dir/
    run_ok tool list "$url/none/"
    same "an empty list" empty
    key=$(printf 'k%.0s' {1..1020})
    run_ok tool write "$1://bkt/$key" small
    run_ok tool stat "$1://bkt/$key"
    run_ok tool remove "$1://bkt/$key"

    # Tags and conditions
    run_ok tool write "$url/lease" small absent
    tag=$(cat out.txt)
    run_fails 2 "$url/lease|expected no such object" tool write "$url/lease" other absent
    run_ok tool stat "$url/lease"
    equal "a stat has the tag of the write" "$(cat out.txt)" "3000 $tag"
    run_ok tool read "$url/lease" 0 3000 "$tag"
    run_ok tool write "$url/lease" other "$tag"
    run_fails 2 "$url/lease|the tag it had" tool write "$url/lease" small "$tag"
    run_fails 3 "$url/lease|changed while it was read" tool read "$url/lease" 0 10 "$tag"
    run_ok tool cat "$url/lease"
    same "a refused write changes nothing" other
    run_fails 2 "the tag it had" tool write "$url/absent" small "$tag"
    run_ok tool list "$url/lease"
    equal "a list has the object's tag" "$(cut -d' ' -f3 out.txt)" "$(tool stat "$url/lease" | cut -d' ' -f2)"
    check "no trial is left" [ -z "$(find store -name '.belfry-trial*')" ]

    # Large objects
    run_ok tool upload large "$url/large"
    run_ok tool stat "$url/large"
    check "the size of a large object" grep -q '^40000000 ' out.txt
    run_ok tool download "$url/large" got.bin
    check "a download is what was uploaded" cmp -s got.bin large
    run_ok tool many "$url/large" 1000000
    same "ranges at once" large
    run_ok tool cat "$url/large"
    same "a large object as one" large
    run_fails 1 "expected at most|38.1 MiB" tool cat "$url/large" 1000
    run_ok tool copy "$url/large" "$1://second/copy"
    run_ok tool stat "$1://second/copy"
    # Limits of a store: an object above that of a copy in one request, and one with the most parts.
    in_parts=0
    [ "$1" = gs ] || in_parts=2
    : >log.jsonl
    BELFRY_FAULT=small_objects run_ok tool copy "$url/large" "$1://second/copied in parts"
    equal "parts of a copy" "$(requests 'PUT.*partNumber')" "$in_parts"
    run_ok tool download "$1://second/copied in parts" got.bin
    check "a copy in parts" cmp -s got.bin large
    : >log.jsonl
    BELFRY_FAULT=small_objects run_ok tool upload large "$url/large"
    equal "an upload of the most parts" "$(requests 'PUT.*partNumber')" 2
    run_ok tool download "$url/large" got.bin
    check "it is whole" cmp -s got.bin large
    run_ok tool upload small "$url/small"
    run_ok tool download "$url/small" got.bin
    check "a small download" cmp -s got.bin small
    run_ok tool download "$url/empty" got.bin
    check "an empty download" cmp -s got.bin empty
    run_ok tool remove "$url/large"
    run_ok tool remove "$url/large"
    run_fails 3 "$url/large: HEAD|HTTP 404" tool stat "$url/large"
    run_fails 3 "$url/large|NoSuchKey" tool download "$url/large" none.bin
    check "a failed download leaves no file" [ -z "$(find . -maxdepth 1 -name 'none.bin*')" ]
    run_fails 3 "NoSuchBucket|is its name correct" tool cat "$1://other/x"
    run_fails 3 "NoSuchBucket" tool list "$1://other/"
    run_fails 3 "NoSuchBucket" tool remove "$1://other/x"
    run_fails 3 "NoSuchBucket" tool write "$1://other/x" small
    run_fails 3 "NoSuchBucket" tool upload large "$1://other/x"
    equal "no upload is left" "$(uploads)" 0
}
objects s3
run_fails 1 "no credentials|AWS_ACCESS_KEY_ID|BELFRY_STORE_ANONYMOUS=1" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY \
    "$BUILD/tests/store_tool" stat s3://bkt/x
export STORAGE_EMULATOR_HOST=127.0.0.1:$port GS_ACCESS_KEY_ID=test GS_SECRET_ACCESS_KEY=test-secret
objects gs

# --- Pages, and few connections
mkdir -p store/bkt/many
for i in $(seq 50); do run_ok tool write "s3://bkt/many/$i" small; done
control '{"page": 7}' >state.json
: >log.jsonl
run_ok tool list s3://bkt/many/
equal "a list of eight pages" "$(wc -l <out.txt)" 50
equal "its requests" "$(requests list-type)" 8
equal "its connections" "$(sed 's/.*"connection": \([0-9]*\).*/\1/' log.jsonl | sort -u | wc -l)" 1
check "a list is sorted" env LC_ALL=C sort -c out.txt
run_ok tool list gs://bkt/many/
equal "a list of Google's of eight pages" "$(wc -l <out.txt)" 50
run_ok tool each s3://bkt/many/
equal "many objects at once" "$(cat out.txt)" "50 150000"

# --- Web servers
reset
control '{"public": 1}' >state.json
web=http://127.0.0.1:$port/bkt
run_ok tool cat "$web/s3/small"
same "a page" small
run_ok tool read "$web/s3/small" 100 50
tail -c +101 small | head -c 50 >part.bin
same "a range of a page" part.bin
run_ok tool download "$web/s3/small" got.bin
check "a downloaded page" cmp -s got.bin small
tag=$(tool stat "$web/s3/small" | cut -d' ' -f2)
run_fails 3 "changed while it was read" tool read "$web/s3/small" 0 10 "x$tag"
run_fails 3 "/bkt/none?…: GET: NoSuchKey (HTTP 404" tool cat "$web/none?token=secret"
check "a query is no part of a message" is_silent_of secret
run_fails 2 "lists no files" tool list "$web/"
run_fails 2 "only read" tool write "$web/x" small
control '{"ranges": 0}' >state.json
run_ok tool read "$web/s3/small" 100 50
same "a range from a server without ranges" part.bin
check "it says so" grep -q "serves no ranges" err.txt
run_ok tool upload large s3://bkt/large
run_ok tool download "$web/large" got.bin
check "a download without ranges" cmp -s got.bin large
python3 -u -m http.server --bind 127.0.0.1 --directory store/bkt 0 >http.port 2>http.err &
servers+=($!)
await_port http.port
run_ok tool cat "http://127.0.0.1:$port/s3/small"
same "a page of Python's web server" small
run_ok tool read "http://127.0.0.1:$port/s3/small" 100 50
same "its range" part.bin
run_fails 3 "no such page (HTTP 404)" tool cat "http://127.0.0.1:$port/none"
# A server that is no store
run_fails 2 "not that of a store|AWS_ENDPOINT_URL" env AWS_ENDPOINT_URL="http://127.0.0.1:$port/s3" \
    "$BUILD/tests/store_tool" list s3://small/
run_fails 3 "HTTP 404|is the server a store" env AWS_ENDPOINT_URL="http://127.0.0.1:$port" \
    "$BUILD/tests/store_tool" stat s3://many/none
run_fails 2 "HTTP 301|is the endpoint correct" env AWS_ENDPOINT_URL="http://127.0.0.1:$port" \
    "$BUILD/tests/store_tool" list s3://many/
run_fails 2 "HTTP 501" env AWS_ENDPOINT_URL="http://127.0.0.1:$port" "$BUILD/tests/store_tool" write s3://many/x small
run_fails 1 "Failed to connect|did not serve it in" env AWS_ENDPOINT_URL=http://127.0.0.1:1 \
    "$BUILD/tests/store_tool" --patience 1 stat s3://bkt/x
run_fails 2 "AWS_ENDPOINT_URL: expected http" env AWS_ENDPOINT_URL=localhost:9000 \
    "$BUILD/tests/store_tool" stat s3://bkt/x
port=$s3port
reset

# --- Faults
faults() { # TEXT JSON COMMAND…: must succeed under the faults
    local text=$1
    control "$2" >state.json
    shift 2
    run_ok "$@"
    reset
    [ "$code" -eq 0 ] || echo "  with $text"
}
for share in '"errors": 30' '"resets": 30' '"truncated": 30' '"corrupt": 20' '"errors": 10, "resets": 5, "truncated": 5'; do
    faults "$share" "{$share}" tool many s3://bkt/large 4000000
    case "$share" in *corrupt*) ;; *) same "ranges with $share" large ;; esac
    faults "$share" "{$share}" tool each s3://bkt/many/
    equal "objects with $share" "$(cat out.txt)" "50 150000"
    faults "$share" "{$share}" tool each gs://bkt/many/
    equal "Google's objects with $share" "$(cat out.txt)" "50 150000"
done
faults "errors" '{"errors": 20, "lost": 20}' tool upload large s3://bkt/large2
faults "errors" '{"errors": 20, "resets": 20, "truncated": 10}' tool download s3://bkt/large2 got.bin
check "an upload and a download under faults" cmp -s got.bin large
faults "errors" '{"errors": 30, "page": 5}' tool list s3://bkt/many/
equal "a list under faults" "$(wc -l <out.txt)" 50
faults "a stall" '{"stalls": 100, "first": 1}' tool --patience 12 cat s3://bkt/many/1
same "a stalled body" small
faults "a corrupt download" '{"corrupt": 100, "first": 1, "only": "small"}' tool download s3://bkt/s3/small got.bin
check "a corrupt download" cmp -s got.bin small
run_ok tool write s3://bkt/shrinks large
faults "an object that becomes shorter" '{"shrinks": 100, "first": 1, "only": "GET /bkt/shrinks"}' \
    tool download s3://bkt/shrinks got.bin
check "nothing of the longer object is left" cmp -s got.bin store/bkt/shrinks
control '{"corrupt": 100}' >state.json
run_fails 3 "do not match their MD5, in each of 5 tries" tool cat s3://bkt/s3/small
run_fails 3 "do not match their CRC-32C" tool cat gs://bkt/gs/small
run_fails 3 "do not match their checksum" tool download s3://bkt/s3/small none.bin
control '{"corrupt": 0, "checksums": 1}' >state.json
run_ok tool download s3://parted/object got.bin
check "the checksum of an object of parts" cmp -s got.bin store/parted/object
control '{"corrupt": 100, "only": "parted"}' >state.json
run_fails 3 "s3://parted/object: GET: the bytes do not match their checksum" tool download s3://parted/object none.bin
control '{"only": ""}' >state.json
check "a corrupt download leaves no file" [ -z "$(find . -maxdepth 1 -name 'none.bin*')" ]
control '{"corrupt": 0, "errors": 100}' >state.json
run_fails 1 "s3://bkt/s3/small: GET: HTTP 503 SlowDown, request R|within 1 s" tool --patience 1 cat s3://bkt/s3/small
control '{"retry_after": "9"}' >state.json
: >log.jsonl
run_fails 1 "asks for a longer pause" tool --patience 5 cat s3://bkt/s3/small
equal "no request comes before the pause" "$(requests '"GET"')" 1
reset
for wait in '"1"' '"date"'; do
    : >log.jsonl
    faults "Retry-After: $wait" "{\"errors\": 100, \"first\": 1, \"retry_after\": $wait}" tool cat s3://bkt/s3/small
    equal "one repetition after Retry-After: $wait" "$(requests '"GET"')" 2
done
faults "too many requests" '{"errors": 100, "first": 2, "error_status": 429}' tool cat s3://bkt/s3/small

# A write whose answer is lost
faults "a lost answer" '{"lost": 100, "first": 1}' tool write s3://bkt/lost1 small
faults "a lost answer to a condition" '{"lost": 100, "first": 1, "only": "PUT /bkt/lost2"}' \
    tool write s3://bkt/lost2 small absent
faults "a lost answer to a condition of Google's" '{"lost": 100, "first": 1, "only": "PUT /bkt/lost3"}' \
    tool write gs://bkt/lost3 small absent
faults "a lost completion" '{"lost": 100, "first": 1, "only": "POST.*uploadId"}' tool upload large s3://bkt/lost4
faults "an error in a completion" '{"complete_errors": 2}' tool upload large s3://bkt/lost5
run_ok tool cat s3://bkt/lost5
same "an upload whose completion failed twice" large
equal "no upload is left" "$(uploads)" 0

# A failed upload leaves no parts; those of a killed process can be aborted
control '{"refuse": "AccessDenied", "only": "PUT.*partNumber=2"}' >state.json
run_fails 1 "AccessDenied (HTTP 403, request R|s3:PutObject|credentials from the environment" \
    tool upload large s3://bkt/killed/large
reset
equal "a failed upload leaves no parts" "$(uploads)" 0
control '{"errors": 100, "only": "partNumber=3"}' >state.json
"$BUILD/tests/store_tool" upload large "s3://bkt/killed/a b" >/dev/null 2>&1 &
victim=$!
for _ in $(seq "$naps"); do
    [ "$(uploads)" -eq 0 ] || break
    sleep 0.05
done
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
reset
equal "a killed process leaves an upload" "$(uploads)" 1
run_ok tool abort s3://bkt/other/
equal "an upload of another prefix stays" "$(uploads)" 1
run_ok tool abort s3://bkt/killed/
equal "it is aborted" "$(uploads)" 0

# --- Refusals: each names a permission
refused() { # CODE PARTS COMMAND…
    control "{\"refuse\": \"$1\"}" >state.json
    run_fails 1 "$2" "${@:3}"
    reset
}
refused AccessDenied "GET: AccessDenied|s3:GetObject" tool cat s3://bkt/x
refused AccessDenied "GET: AccessDenied|s3:GetObject" tool stat s3://bkt/x
refused AccessDenied "s3:ListBucket for this bucket" tool list s3://bkt/x
refused AccessDenied "s3:DeleteObject" tool remove s3://bkt/x
refused AccessDenied "s3:ListBucketMultipartUploads" tool abort s3://bkt/x
refused AccessDenied "storage.objects.get" tool cat gs://bkt/x
refused AccessDenied "storage.objects.create" tool write gs://bkt/x small
refused ExpiredToken "ExpiredToken|have expired" tool cat s3://bkt/x
run_fails 1 "InvalidAccessKeyId|does not know the key" env AWS_ACCESS_KEY_ID=unknown "$BUILD/tests/store_tool" cat s3://bkt/x
run_fails 1 "SignatureDoesNotMatch|the secret does not belong" env AWS_SECRET_ACCESS_KEY=hush-hush \
    "$BUILD/tests/store_tool" cat s3://bkt/x
check "a secret is in no message" is_silent_of hush
run_fails 1 "AccessDenied|the request was anonymous" env BELFRY_STORE_ANONYMOUS=1 "$BUILD/tests/store_tool" cat s3://bkt/x
control '{"public": 1}' >state.json
run_ok env BELFRY_STORE_ANONYMOUS=1 "$BUILD/tests/store_tool" cat s3://bkt/s3/small
run_ok env BELFRY_STORE_ANONYMOUS=1 "$BUILD/tests/store_tool" list gs://bkt/

# --- A store that ignores conditions
control '{"conditions": 0}' >state.json
run_fails 2 "does not know conditions" tool write s3://bkt/new-lease small absent
run_fails 2 "does not know conditions" tool write gs://bkt/new-lease small absent
run_fails 3 "HTTP 404" tool stat s3://bkt/new-lease
check "no trial is left" [ -z "$(find store -name '.belfry-trial*')" ]
reset

# --- Region and clock
control '{"region": "eu-west-1"}' >state.json
: >log.jsonl
run_ok tool download s3://bkt/large got.bin
equal "a wrong region is corrected once" "$(requests '"status": 400')" 1
run_ok tool stat s3://bkt/s3/small
run_ok env AWS_REGION=eu-west-1 "$BUILD/tests/store_tool" stat s3://bkt/s3/small
control '{"redirect": 1}' >state.json
run_ok tool cat s3://bkt/s3/small
run_ok tool stat s3://bkt/s3/small
reset
control '{"clock_secs": -4000}' >state.json
run_ok tool cat s3://bkt/s3/small
run_ok tool cat gs://bkt/gs/small
run_ok tool clock s3://bkt/s3/small
check "the store's clock" grep -qE '^-(399[1-9]|400[0-9])$' out.txt
reset

# --- Credentials
credentials=(env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY -u GS_ACCESS_KEY_ID -u GS_SECRET_ACCESS_KEY
    -u AWS_EC2_METADATA_DISABLED)
with() { # VARIABLE=VALUE…: the tool reads an object without the keys in the environment
    run_ok "${credentials[@]}" "$@" "$BUILD/tests/store_tool" --patience 20 cat "${url:-s3://bkt/s3/small}"
    same "with $1" "${expected:-small}"
}
mkdir -p .aws
printf '[default]\naws_access_key_id = test\naws_secret_access_key = test-secret\n' >.aws/credentials
with A=1
printf '[work]\naws_access_key_id = test\naws_secret_access_key = test-secret\n' >.aws/credentials
printf '[profile work]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:%s\n' "$port" >.aws/config
control '{"region": "eu-west-1"}' >state.json
: >log.jsonl
with -u AWS_ENDPOINT_URL AWS_PROFILE=work
equal "the profile's region" "$(requests '"status": 400')" 0
reset
mv .aws/credentials keys
mv .aws/config config
with AWS_PROFILE=work AWS_SHARED_CREDENTIALS_FILE=keys AWS_CONFIG_FILE=config
run_fails 2 "profile \"unknown\" is in neither" env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_PROFILE=unknown \
    "$BUILD/tests/store_tool" cat s3://bkt/s3/small
# Roles, by other profiles and by what surrounds the process; single sign-on; a program
cat >.aws/config <<'EOF'
[default]
role_arn = arn:aws:iam::1:role/first
source_profile = second
[profile second]
role_arn = arn:aws:iam::1:role/second
external_id = x
source_profile = keys
[profile keys]
aws_access_key_id = test
aws_secret_access_key = test-secret
[profile itself]
role_arn = arn:aws:iam::1:role/itself
source_profile = itself
aws_access_key_id = test
aws_secret_access_key = test-secret
[profile variables]
role_arn = arn:aws:iam::1:role/variables
credential_source = EcsContainer
[profile identity]
role_arn = arn:aws:iam::1:role/identity
web_identity_token_file = identity
[profile denied]
role_arn = arn:aws:iam::1:role/denied
source_profile = keys
[profile circle]
role_arn = arn:aws:iam::1:role/circle
source_profile = other
[profile other]
role_arn = arn:aws:iam::1:role/other
source_profile = circle
[profile half]
role_arn = arn:aws:iam::1:role/half
[profile code]
role_arn = arn:aws:iam::1:role/code
source_profile = keys
mfa_serial = arn:aws:iam::1:mfa/me
[profile program]
credential_process = ./issue "a b" 'c' "d\e\"" f\ g
[profile failing]
credential_process = ./issue fails
[profile open]
credential_process = ./issue "a
[profile absent]
credential_process = ./none
[profile odd]
credential_process = ./issue odd
[profile slow]
credential_process = ./issue slow
[profile environment]
role_arn = arn:aws:iam::1:role/environment
credential_source = Environment
[profile no-file]
role_arn = arn:aws:iam::1:role/no-file
web_identity_token_file = none
[profile signed]
sso_session = work
sso_account_id = 123
sso_role_name = Reader
[profile older]
sso_start_url = https://older.example/start
sso_region = eu-west-1
sso_account_id = 123
sso_role_name = Reader
[profile other-role]
sso_session = work
sso_account_id = 123
sso_role_name = Writer
[sso-session work]
sso_region = eu-west-1
sso_start_url = https://example/start
EOF
cat >issue <<'EOF'
#!/bin/sh
[ "$1" != fails ] || { echo 'the vault is locked' >&2; exit 3; }
[ "$1" != odd ] || { echo '{"SecretAccessKey": hush-hush}'; exit; }
[ "$1" != slow ] || exec sleep 50
[ "$1,$2,$3,$4" = 'a b,c,d\e",f g' ] && echo '{"Version": 1, "AccessKeyId": "test", "SecretAccessKey": "test-secret"}'
EOF
chmod +x issue
base=http://127.0.0.1:$port
echo web-identity >identity
profile_fails() { # PROFILE WORDS
    run_fails "${3:-1}" "$2" "${credentials[@]}" AWS_PROFILE="$1" "$BUILD/tests/store_tool" cat s3://bkt/s3/small
}
for name in default itself identity program; do with AWS_PROFILE="$name"; done
with AWS_PROFILE=variables AWS_CONTAINER_CREDENTIALS_FULL_URI="$base/container" AWS_CONTAINER_AUTHORIZATION_TOKEN=container-token
profile_fails variables "no credentials in credential_source EcsContainer" 2
profile_fails denied "AccessDenied: not authorized to perform sts:AssumeRole on arn:aws:iam::1:role/denied"
profile_fails circle "no credentials in source_profile circle" 2
profile_fails half "role_arn: expected one of source_profile" 2
profile_fails code "mfa_serial is not supported" 2
profile_fails failing "credential_process|the vault is locked"
profile_fails open "credential_process: expected a command with closed quotes" 2
profile_fails absent "credential_process|./none"
profile_fails odd "credential_process:1|not valid JSON"
check "a secret of a program is in no message" is_silent_of hush
run_fails 1 "./issue took more than 2 s" "${credentials[@]}" AWS_PROFILE=slow "$BUILD/tests/store_tool" --patience 3 \
    cat s3://bkt/s3/small
profile_fails no-file "web_identity_token_file: cannot open none"
profile_fails environment "no credentials in credential_source Environment" 2
: >log.jsonl
with AWS_PROFILE=environment AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test-secret
equal "the environment's keys assume the role" "$(requests '"method": "POST"')" 1
run_fails 2 "AWS_ENDPOINT_URL_STS: expected http" "${credentials[@]}" AWS_PROFILE=itself AWS_ENDPOINT_URL_STS=localhost:9000 \
    "$BUILD/tests/store_tool" cat s3://bkt/s3/small
profile_fails signed "there is no sign-on; hint: aws sso login"
mkdir -p .aws/sso/cache
sign_on() { # NAME EXPIRY
    printf '{"accessToken": "sso-token", "expiresAt": "%s"}' "$2" >".aws/sso/cache/$(printf %s "$1" | sha1sum | cut -d' ' -f1).json"
}
sign_on work 2001-01-01T00:00:00Z
profile_fails signed "the sign-on has expired"
sign_on work 2099-01-01T00:00:00Z
export AWS_ENDPOINT_URL_SSO=$base/
with AWS_PROFILE=signed
sign_on https://older.example/start 2099-01-01T00:00:00Z
with AWS_PROFILE=older
profile_fails other-role "single sign-on|HTTP 403"
unset AWS_ENDPOINT_URL_SSO
rm .aws/config
echo web-identity >identity
with AWS_WEB_IDENTITY_TOKEN_FILE=identity AWS_ROLE_ARN=arn:aws:iam::1:role/r
run_fails 1 "AWS_WEB_IDENTITY_TOKEN_FILE: cannot open none" "${credentials[@]}" AWS_WEB_IDENTITY_TOKEN_FILE=none \
    AWS_ROLE_ARN=r "$BUILD/tests/store_tool" cat s3://bkt/s3/small
echo wrong >identity
run_fails 1 "STS|HTTP 400" "${credentials[@]}" AWS_WEB_IDENTITY_TOKEN_FILE=identity AWS_ROLE_ARN=r \
    "$BUILD/tests/store_tool" cat s3://bkt/s3/small
base=http://127.0.0.1:$port
with AWS_CONTAINER_CREDENTIALS_FULL_URI="$base/container" AWS_CONTAINER_AUTHORIZATION_TOKEN=container-token
with AWS_EC2_METADATA_SERVICE_ENDPOINT="$base"
# Temporary keys: renewed when they are refused, and before they expire
control '{"refuse": "ExpiredToken", "first": 1}' >state.json
with AWS_EC2_METADATA_SERVICE_ENDPOINT="$base"
reset
control '{"credential_secs": 2}' >state.json
run_ok "${credentials[@]}" AWS_EC2_METADATA_SERVICE_ENDPOINT="$base" "$BUILD/tests/store_tool" each s3://bkt/many/
equal "objects with keys that expire at once" "$(cat out.txt)" "50 150000"
control '{"credential_secs": 60}' >state.json
: >log.jsonl
run_ok "${credentials[@]}" AWS_EC2_METADATA_SERVICE_ENDPOINT="$base" "$BUILD/tests/store_tool" each s3://bkt/many/
equal "keys of one minute are renewed after a pause" "$(requests security-credentials/role)" 1
reset
: >log.jsonl
run_ok "${credentials[@]}" AWS_EC2_METADATA_SERVICE_ENDPOINT="$base" "$BUILD/tests/store_tool" each s3://bkt/many/
equal "one renewal serves all threads" "$(requests security-credentials/role)" 1

url=gs://bkt/gs/small
with GCE_METADATA_HOST="127.0.0.1:$port"
printf '{"type": "authorized_user", "client_id": "id", "client_secret": "client-secret", "refresh_token": "%s",
    "token_uri": "%s/token"}' refresh-me "$base" >user.json
with GOOGLE_APPLICATION_CREDENTIALS=user.json
sed 's/refresh-me/hush-hush/' user.json >bad.json
run_fails 1 "OAuth|HTTP 400" "${credentials[@]}" GOOGLE_APPLICATION_CREDENTIALS=bad.json "$BUILD/tests/store_tool" cat $url
check "a secret is in no message" is_silent_of hush
: >log.jsonl
control '{"credential_secs": 1}' >state.json
with GCE_METADATA_HOST="127.0.0.1:$port"
reset

# A service account, and https with a certificate of our own
openssl genrsa -out key.pem 2048 2>/dev/null
openssl req -x509 -key key.pem -out cert.pem -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null
serve tls --buckets bkt --cert cert.pem --cert-key key.pem \
    --jwt-modulus "$(openssl rsa -in key.pem -noout -modulus | sed 's/.*=//')"
export AWS_ENDPOINT_URL=https://127.0.0.1:$port STORAGE_EMULATOR_HOST=https://127.0.0.1:$port
run_fails 1 "certificate|AWS_CA_BUNDLE" tool stat s3://bkt/x
export AWS_CA_BUNDLE=cert.pem
run_ok tool write s3://bkt/small small
run_ok tool upload large s3://bkt/large
run_ok tool download s3://bkt/large got.bin
check "a download over https" cmp -s got.bin large
python3 - "https://127.0.0.1:$port/token" >account.json <<'PY'
import json, sys
print(json.dumps({"type": "service_account", "client_email": "a@b", "private_key": open("key.pem").read(),
                  "token_uri": sys.argv[1]}))
PY
url=gs://bkt/small
with GOOGLE_APPLICATION_CREDENTIALS=account.json
echo '{"type": "service_account", "client_email": "a@b", "private_key": "hush"}' >bad.json
run_fails 1 "bad.json: private_key|RSA private key" "${credentials[@]}" GOOGLE_APPLICATION_CREDENTIALS=bad.json \
    "$BUILD/tests/store_tool" cat $url
check "a key is in no message" is_silent_of hush

# --- Without libcurl
mkdir -p without
: >without/libcurl.so.4
run_fails 2 "libcurl.so.4|apt-get install libcurl4" env LD_LIBRARY_PATH="$work/without" "$BUILD/tests/store_tool" stat s3://bkt/x

for folder in store tls; do check "the stand-in has no errors" [ ! -s $folder.err ]; done
# --- The renewal of above
code=0
wait "$early" || code=$?
equal "the old credentials are used" "$code" 0
check "one line reports the renewal" [ "$(grep -c 'credentials from credential_process end in .* a renewal failed.*the vault is closed' \
    early/err.txt)" -eq 1 ]
finish
