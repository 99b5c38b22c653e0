#!/usr/bin/env bash
# Large objects that are read while they are copied: the same bytes as from files, by several processes, after a kill,
# with a checksum that does not match, and with an object that changes or is removed; objects that must be copied as a
# whole.
# usage: store_partial.sh BUILD_DIR
# shellcheck disable=SC2317 # functions are called through run_ok and check
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"
tool() { timeout -k 5 "$patience" "$BUILD/tests/store_tool" "$@"; }
transferred() { # PATH FROM_LINE: bytes that were read
    tail -n "+$2" requests.jsonl | python3 -c '
import json, sys
print(sum(r["bytes"] for r in map(json.loads, sys.stdin) if r["method"] == "GET" and r["path"] == sys.argv[1]))' "$1"
}
lines() { wc -l <requests.jsonl; }

mkdir -p store/data one two three four five six
python3 - <<'PY'
import gzip, random, struct
random.seed(7)
count = 86000
open("store/data/images.idx", "wb").write(struct.pack(">IIII", 0x803, count, 28, 28) + random.randbytes(count * 784))
open("store/data/labels.idx", "wb").write(
    struct.pack(">II", 0x801, count) + bytes(random.randrange(10) for _ in range(count)))
open("store/data/few.idx", "wb").write(struct.pack(">II", 0x801, 10) + bytes(10))
tokens = random.randbytes(68000000)
open("store/data/tokens.bin", "wb").write(tokens)
open("tokens.bin", "wb").write(tokens)
other = bytearray(tokens)
other[-1] ^= 1
open("other.bin", "wb").write(other)
open("store/data/packed.idx.gz", "wb").write(gzip.compress(open("store/data/images.idx", "rb").read(), 0))
PY
store_begin
control '{"latency_ms": 5}'

# --- The same training as from files, for any number of workers; a later job reads the copies
train() { # MODEL_DIR IMAGES LABELS FLAGS…
    belfry train --train_files "$2,$3" --feature_scale 0.004 --train_batch_size 32 --num_threads 1 --hidden_units 8 \
        --no_report --train_steps 30 --model_dir "$1" "${@:4}"
}
run_ok train plain store/data/images.idx store/data/labels.idx
expected=$(digest plain)
run_ok on one train from-store s3://data/images.idx s3://data/labels.idx
equal "images of the store" "$(digest from-store)" "$expected"
run_ok on two belfry local train --distributed --worker_count 2 --parameter_server_count 1 --job_dir cluster -- \
    --train_files s3://data/images.idx,s3://data/labels.idx --feature_scale 0.004 --train_batch_size 16 \
    --num_threads 1 --hidden_units 8 --no_report --train_steps 30
run_ok belfry train --train_files store/data/images.idx,store/data/labels.idx --feature_scale 0.004 \
    --train_batch_size 16 --num_workers 2 --num_threads 1 --hidden_units 8 --no_report --train_steps 30 --model_dir pair
equal "two processes of a host" "$(digest cluster)" "$(digest pair)"
run_ok on one train packed s3://data/packed.idx.gz s3://data/labels.idx
equal "packed images" "$(digest packed)" "$expected"

# A training resumes with the same state of the object. Another state may have other data.
run_ok on three train from-store s3://data/images.idx s3://data/labels.idx --train_steps 40
run_fails 2 "trained with other settings|input|--allow_changes" train from-store store/data/images.idx \
    store/data/labels.idx --train_steps 50
cp -r from-store at-40
run_ok train from-store store/data/images.idx store/data/labels.idx --train_steps 50 --allow_changes
run_ok train plain store/data/images.idx store/data/labels.idx --train_steps 50
equal "it continues with the same bits" "$(digest from-store)" "$(digest plain)"

# --- Tokens: the first ones need few bytes; the rest is fetched once
run_ok tool first tokens.bin 64
first=$(cut -d' ' -f2 out.txt)
before=$(($(lines) + 1))
run_ok on five tool first s3://data/tokens.bin 1
equal "three requests until the first record" "$(tail -n "+$before" requests.jsonl | head -n 3 | python3 -c '
import json, sys
print(*("%s %d" % (r["method"], r["bytes"]) for r in map(json.loads, sys.stdin)), sep=", ")')" \
    "HEAD 0, GET 262144, GET 262144"
run_ok on one tool first s3://data/tokens.bin 64
equal "the first contexts" "$(cut -d' ' -f2 out.txt)" "$first"
run_ok tool first tokens.bin 32 joined
joined=$(cut -d' ' -f2 out.txt)
run_ok on six tool first s3://data/tokens.bin 32 joined
equal "contexts of combined datasets" "$(cut -d' ' -f2 out.txt)" "$joined"
rm -rf six && mkdir six
export STORAGE_EMULATOR_HOST=127.0.0.1:$port GS_ACCESS_KEY_ID=test GS_SECRET_ACCESS_KEY=test-secret
run_ok on one tool first gs://data/tokens.bin 64
equal "the first contexts of gs" "$(cut -d' ' -f2 out.txt)" "$first"
run_ok on one tool partial s3://data/tokens.bin </dev/null
sum=$(tail -n 1 out.txt)
before=$(($(lines) + 1))
run_ok on one tool partial s3://data/tokens.bin </dev/null
equal "the copy has the bytes" "$(tail -n 1 out.txt)" "$sum"
equal "a whole copy is not read again" "$(transferred /data/tokens.bin "$before")" 0
run_fails 3 "token|expected a number below 5" on one belfry train --train_files s3://data/tokens.bin --input_format tokens \
    --vocabulary 5 --context 16 --model gpt --layers 1 --heads 1 --token_width 8 --train_steps 1 --no_report --model_dir bad

# --- A process that is killed while it copies: another one continues with what is there
control '{"latency_ms": 400}'
before=$(($(lines) + 1))
mkfifo pause
BELFRY_CACHE_DIR=$work/two "$BUILD/tests/store_tool" partial s3://data/tokens.bin <pause >killed.txt 2>&1 &
victim=$!
exec 7>pause
for ((i = 0; i < naps; i++)); do
    [ "$(transferred /data/tokens.bin "$before")" -lt 9000000 ] || break
    read -r -t 0.05 <> <(:) || true
done
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
exec 7>&-
control '{"latency_ms": 0}'
run_ok on two tool partial s3://data/tokens.bin </dev/null
equal "the bytes after a kill" "$(tail -n 1 out.txt)" "$sum"

# --- A wrong byte is found by the checksum. The copy is refused until its user has removed it
remove_copy() { # the copy that the last message names
    rm "$(sed -n 's/.*copy: rm //p' err.txt)" || complain "the message names no copy"
}
run_ok tool write s3://data/summed.bin tokens.bin
control '{"corrupt": 100, "only": "GET /data/summed.bin", "first": 1}'
run_fails 3 "s3://data/summed.bin|do not match their checksum" on three tool partial s3://data/summed.bin check </dev/null
control '{"reset": true}'
run_fails 3 "s3://data/summed.bin|do not match their checksum|since 2" on three tool partial s3://data/summed.bin </dev/null
remove_copy
run_ok on three tool partial s3://data/summed.bin </dev/null
equal "the copy is made anew" "$(tail -n 1 out.txt)" "$sum"

# A training that ends before the comparison waits for it. Its folder is marked for all hosts until its user lifts that.
run_ok tool write s3://data/summed.idx store/data/images.idx
control '{"corrupt": 100, "only": "GET /data/summed.idx", "after": 20, "first": 2}' # blocks that one process fetches
run_fails 1 "s3://data/summed.idx|do not match their checksum|remove the checkpoints" on three belfry local train \
    --distributed --worker_count 2 --job_dir s3://data/wrong -- --train_files s3://data/summed.idx,s3://data/labels.idx \
    --feature_scale 0.004 --train_batch_size 16 --num_threads 1 --hidden_units 8 --no_report --train_steps 2
remove_copy
control '{"reset": true}'
for host in two three; do # three is the last that has the folder
    run_fails 3 "wrong|s3://data/summed.idx|read since 2|remove the checkpoints|job.damage" on "$host" train \
        s3://data/wrong s3://data/summed.idx s3://data/labels.idx --train_steps 4 --allow_changes
done
run_ok on two belfry inspect s3://data/wrong --digest
check "a reader is warned" grep -q 'its checkpoints may be wrong: s3://data/summed.idx' err.txt
: >empty
run_ok tool write s3://data/wrong/job.damage empty # its user lifts the mark
run_ok on two train s3://data/wrong s3://data/summed.idx s3://data/labels.idx --train_steps 4 --allow_changes
mkdir right
echo "some data" >right/job.damage # without a checkpoint
run_ok on three train right s3://data/summed.idx s3://data/labels.idx
check "the mark of a folder without a checkpoint is lifted" grep -q 'damaged data is lifted: some data' err.txt
equal "the right bytes" "$(digest right)" "$expected"

# --- An object that changes while it is copied
control '{"latency_ms": 1000}'
BELFRY_CACHE_DIR=$work/four "$BUILD/tests/store_tool" partial s3://data/summed.bin <pause >changing.txt 2>changing.err &
reader=$!
exec 7>pause
until_true grep -q open changing.txt || true
control '{"errors": 100, "only": "GET /data/summed.bin", "latency_ms": 0}'
run_ok tool write s3://data/summed.bin other.bin
control '{"reset": true}'
echo >&7
exec 7>&-
code=0
wait "$reader" || code=$?
equal "it is an error" "$code" 3
check "the error names the object" grep -q 's3://data/summed.bin: the object changed' changing.err

# --- A server without ranges, and a full disk
control '{"ranges": 0}'
run_ok on four tool first s3://data/tokens.bin 64
equal "a server without ranges" "$(cut -d' ' -f2 out.txt)" "$first"
rm -rf four/belfry-objects-*
run_ok on four train right s3://data/summed.idx s3://data/labels.idx --train_steps 40
equal "the data are the same ones" "$(digest right)" "$(digest at-40)"
control '{"reset": true}'
run_fails 1 "No space|s3://data/tokens.bin|BELFRY_CACHE_DIR" env BELFRY_ENABLE_FAULTS=1 BELFRY_FAULT="write:1" BELFRY_CACHE_DIR="$work/full" \
    "$BUILD/tests/store_tool" partial s3://data/tokens.bin </dev/null

# --- An object that is removed: no record is left out as a bad one
run_fails 3 "labels" on six train none s3://data/summed.idx s3://data/few.idx
control '{"errors": 100, "only": "GET /data/summed.idx"}'
before=$(($(lines) + 1))
on six train none s3://data/summed.idx s3://data/labels.idx --skip_bad_records 20000 >removed.txt 2>removed.err &
trainer=$!
for ((i = 0; i < naps; i++)); do
    ! tail -n "+$before" requests.jsonl | grep -q '"GET", "path": "/data/summed.idx"' || break
    read -r -t 0.05 <> <(:) || true
done
run_ok tool remove s3://data/summed.idx
control '{"reset": true}'
code=0
wait "$trainer" || code=$?
equal "a removed object ends the job" "$code" 1
check "it is named" grep -q 's3://data/summed.idx: GET: NoSuchKey' removed.err
check "no record is left out" test "$(grep -c 'bad record' removed.err)" = 0
finish
