#!/usr/bin/env bash
# Object stores against a real server, Swift with its S3 interface (tests/engines/s3-up): objects that Belfry writes
# are read by boto3, rclone and s3cmd, and theirs by Belfry. Skipped if Swift cannot be started.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
unset "${!AWS_@}"
engines=$SOURCE/tests/engines
trap '"$engines/s3-up" --down "$work/swift"; rm -rf "$work"' EXIT
for program in rclone s3cmd; do
    command -v $program >/dev/null || {
        echo "store_swift: there is no $program (tools/install-deps --stores)" >&2
        exit 77
    }
done
"$engines/s3-up" "$work/swift" || {
    [ $? -eq 77 ] && exit 77
    exit 1
}
export HOME=$work
# shellcheck disable=SC1091
source swift/environment
tool() { timeout -k 5 "$patience" "$BUILD/tests/store_tool" "$@"; }
same() { # TEXT FILE FILE
    checks=$((checks + 1))
    cmp -s "$2" "$3" || complain "$1: $2 is not $3"
}

head -c 3000 /dev/urandom >small
head -c 40000000 /dev/urandom >large
: >empty
cat >client.py <<'PY'
import os, sys
import boto3
from boto3.s3.transfer import TransferConfig
client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], region_name="us-east-1")
command, *words = sys.argv[1:]
if command == "bucket":
    client.create_bucket(Bucket=words[0])
elif command == "get":
    client.download_file("bkt", words[0], words[1])
elif command == "put":
    client.upload_file(words[0], "bkt", words[1], Config=TransferConfig(multipart_chunksize=8 << 20))
elif command == "begin":
    client.create_multipart_upload(Bucket="bkt", Key=words[0])
elif command == "uploads":
    print(len(client.list_multipart_uploads(Bucket="bkt").get("Uploads", [])))
PY
boto() { timeout 100 /usr/bin/python3 client.py "$@"; } # Debian's Python has boto3
cat >rclone.conf <<CONF
[swift]
type = s3
provider = Other
access_key_id = $AWS_ACCESS_KEY_ID
secret_access_key = $AWS_SECRET_ACCESS_KEY
endpoint = $AWS_ENDPOINT_URL
CONF
cloned() { timeout 100 rclone --config rclone.conf "$@"; }
host=${AWS_ENDPOINT_URL#http://}
s3cmd_() {
    timeout 100 s3cmd --no-ssl --host="$host" --host-bucket="$host" --access_key="$AWS_ACCESS_KEY_ID" \
        --secret_key="$AWS_SECRET_ACCESS_KEY" --region=us-east-1 "$@"
}
run_ok boto bucket bkt

# Written by Belfry
name="dir/a b+c%20é~(1)'&.bin"
run_ok tool write "s3://bkt/$name" small
run_ok tool write s3://bkt/empty empty
run_ok tool upload large s3://bkt/large
run_ok tool copy s3://bkt/large s3://bkt/copy
run_ok boto get "$name" got
same "boto3 reads an object" got small
run_ok boto get large got
same "boto3 reads a large object" got large
run_ok cloned copyto "swift:bkt/$name" got
same "rclone reads an object" got small
run_ok cloned copyto swift:bkt/copy got
same "rclone reads a copied object" got large
run_ok s3cmd_ get --force "s3://bkt/$name" got
same "s3cmd reads an object" got small
run_ok s3cmd_ get --force s3://bkt/large got
same "s3cmd reads a large object" got large

# Written by the others
run_ok boto put large theirs/boto
run_ok cloned copyto large swift:bkt/theirs/rclone --s3-upload-cutoff 10M --s3-chunk-size 8M
run_ok s3cmd_ put small "s3://bkt/theirs/s3 cmd"
run_ok s3cmd_ put --multipart-chunk-size-mb=8 large s3://bkt/theirs/s3cmd-large
for key in boto rclone s3cmd-large; do
    run_ok tool download "s3://bkt/theirs/$key" got
    same "Belfry reads an object of $key" got large
    run_ok tool many "s3://bkt/theirs/$key" 3000000
    same "Belfry reads its ranges" out.txt large
done
run_ok tool cat "s3://bkt/theirs/s3 cmd"
same "Belfry reads an object of s3cmd" out.txt small
run_ok tool list s3://bkt/theirs/
equal "a list" "$(sed 's/ [0-9]* [^ ]*$//' out.txt | paste -sd,)" "boto,rclone,s3 cmd,s3cmd-large"
run_ok tool list s3://bkt/
equal "a list with folders" "$(cut -d' ' -f1 out.txt | paste -sd,)" "copy,dir/,empty,large,theirs/"

# Ends and refusals
run_ok tool cat s3://bkt/empty
same "an empty object" out.txt empty
run_ok tool read s3://bkt/empty 0 10
run_fails 1 "has 3000 bytes" tool read "s3://bkt/$name" 3001 5
run_fails 3 "HTTP 404" tool stat s3://bkt/none
run_fails 3 "NoSuchBucket" tool list s3://nobucket/
run_fails 2 "does not know conditions" tool write s3://bkt/lease small absent
run_fails 1 "SignatureDoesNotMatch" env AWS_SECRET_ACCESS_KEY=wrong "$BUILD/tests/store_tool" list s3://bkt/
run_ok env AWS_REGION=eu-north-1 "$BUILD/tests/store_tool" stat s3://bkt/large
run_ok boto begin "killed/a b"
run_ok tool abort s3://bkt/other/
run_ok boto uploads
equal "an upload of another prefix stays" "$(cat out.txt)" 1
run_ok tool abort s3://bkt/killed/
run_ok boto uploads
equal "it is aborted" "$(cat out.txt)" 0
for key in "$name" large copy empty; do run_ok tool remove "s3://bkt/$key"; done
run_ok tool remove s3://bkt/large
run_fails 3 "HTTP 404" tool stat s3://bkt/large
finish
