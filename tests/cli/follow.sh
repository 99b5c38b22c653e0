#!/usr/bin/env bash
# Training on a file that grows (--follow): each row once, in order, over interruptions and kills, with the digest of a
# training on the whole file.
# usage: follow.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
make_clicks
# Some texts have line feeds, so that pieces end between them, too.
sed -E 's/^(u[0-9]*7),/"\1\nx",/' clicks-train.csv >all.csv
split -n 30 all.csv piece.
flags=(--model wide_deep --id_columns=user --id_columns=item --class_count 2 --hidden_units 8 --embedding_width 8 --optimizer adagrad
    --learning_rate 0.1 --initial_accumulator 1e-6 --num_threads 1 --train_batch_size 16 --no_report)

cluster() { # MODEL SERVERS
    timeout --foreground -k 5 100 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count "$2" --job_dir "$1" -- "${follow[@]}" >out.txt 2>err.txt </dev/null
}
feed() { # PIECE…: appends them one after another
    local piece
    for piece in "$@"; do
        cat "$piece" >>log.csv
        sleep 0.01
    done
}
pieces=(piece.*)

for workers in 1 2; do
    run_ok belfry train "${flags[@]}" --train_files all.csv --shuffle_buffer 1 --num_epochs 1 --num_workers $workers \
        --model_dir batch$workers
done

# --- One process: a stop, a kill, and an end after a while without rows
follow=("${flags[@]}" --train_files log.csv --follow --audit_input --save_checkpoints_steps 10 --keep_checkpoint_max 0
    --full_checkpoint_every 3)
cp "${pieces[0]}" log.csv
"$BUILD/tools/belfry" train "${follow[@]}" --model_dir one >out.txt 2>err.txt </dev/null &
trainer=$!
feed "${pieces[@]:1:10}"
check "it saves" appears one/ckpt-00000050
kill -INT "$trainer"
code=0
wait "$trainer" || code=$?
equal "the code of a stop while it waits" "$code" 130
check "it was stopped" grep -q '^interrupted true' out.txt
"$BUILD/tools/belfry" train "${follow[@]}" --model_dir one >out.txt 2>err.txt </dev/null &
trainer=$!
feed "${pieces[@]:11:10}"
check "it saves after it was resumed" appears one/ckpt-00000120
kill -KILL "$trainer"
wait "$trainer" 2>/dev/null || true
feed "${pieces[@]:21}"
run_ok belfry train "${follow[@]}" --follow_timeout 0.2 --model_dir one
check "it ends without new rows" grep -q 'no record was appended for 0.2 s: training ends at step 250$' err.txt
equal "the digest of the whole file" "$(digest one)" "$(digest batch1)"
run_ok belfry inspect --audit one
check "each row once" grep -q '^epoch 0: 4000 records, each once' out.txt
printf 'u1,i1,0.5,1\n' >>log.csv
run_ok belfry train "${follow[@]}" --follow_timeout 0.2 --model_dir one
check "a row waits for others" grep -q 'ends at step 250; the last 1 records wait for more, as a step takes 16' err.txt
equal "and changes nothing" "$(digest one)" "$(digest batch1)"
printf 'u1,"i1,0.5,1\n' >>log.csv
run_ok belfry train "${follow[@]}" --follow_timeout 0.2 --model_dir one
check "a row without an end is named" grep -q 'ends at step 250; the last 1 records .*; 13 bytes from log.csv:[0-9]* on are no whole row' err.txt

# --- A log that is another one when training continues
cp log.csv other.csv
head -n 2000 other.csv >log.csv
run_fails 3 'log.csv: expected at least | bytes, got only |; training has read 4000 rows' belfry train "${follow[@]}" --model_dir one
{
    head -n 1 other.csv
    tail -n +3 all.csv
    tail -n +2 all.csv
} >log.csv
run_fails 3 'log.csv: expected the rows of 4000 rows, |, got others; ' belfry train "${follow[@]}" --model_dir one
cp other.csv log.csv
run_ok belfry train "${follow[@]}" --follow_timeout 0.2 --model_dir one

# --- A cluster, whose processes are killed
follow+=(--train_steps 125)
for run in "1 tower_step#30@worker-1" "2 shard_passes#150@ps-1" "1 master_saves#4@master-0" "2 shard_passes#60@ps-0"; do
    read -r servers fault <<<"$run"
    rm -rf many
    cp "${pieces[0]}" log.csv
    code=0
    BELFRY_FAULT=crash:$fault cluster many "$servers" &
    job=$!
    feed "${pieces[@]:1}"
    wait "$job" || code=$?
    equal "the code, $fault" "$code" 0
    check "one was killed, $fault" grep -q "killed on purpose" many/logs/*.log
    equal "the digest, $fault" "$(digest many)" "$(digest batch2)"
    run_ok belfry inspect --audit many
    check "each row once, $fault" grep -q '^epoch 0: 4000 records, each once' out.txt
done

# --- What a log must not do
ends_with() { # TEXT COMMAND…: the command on the log ends the training with this message
    head -n 40 clicks-train.csv >log.csv
    rm -rf bad
    "$BUILD/tools/belfry" train "${follow[@]}" --save_checkpoints_steps 1 --model_dir bad >out.txt 2>err.txt </dev/null &
    trainer=$!
    check "it begins, $1" appears bad/ckpt-00000002
    "${@:2}"
    code=0
    wait "$trainer" || code=$?
    equal "the code, $1" "$code" 3
    check "$1" grep -q "^belfry: .*$1" err.txt
}
other() {
    head -n 60 clicks-train.csv >other.csv
    mv other.csv log.csv
}
ends_with 'log.csv: expected it to grow from [0-9]* bytes, got 100; hint: only append' truncate -s 100 log.csv
ends_with 'log.csv: another file has its name now' other
ends_with 'log.csv: it was removed while it was followed' rm log.csv
ends_with 'log.csv:41:.*expected' sh -c 'printf "u1,i1,0.5\n" >>log.csv'
ends_with 'log.csv:41:.*expected no quote inside' sh -c 'printf "5\" pipe,i1,0.5,1\nu1,i1,0.5,1\n" >>log.csv'
anew() { # in place, longer, with other rows
    { head -n 1 clicks-train.csv && tail -n 200 clicks-train.csv; } >other.csv
    dd if=other.csv of=log.csv conv=notrunc 2>dd.txt
}
ends_with 'log.csv: it was written anew while it was followed' anew

# --- Rows that come rarely: training waits for them, longer than a stall, and each step is whole
head -n 17 clicks-train.csv >log.csv
"$BUILD/tools/belfry" train "${flags[@]}" --train_files log.csv --follow --follow_timeout 1 --stall_timeout 1 \
    --train_batch_size 16 --model_dir rare >out.txt 2>err.txt </dev/null &
trainer=$!
for row in $(seq 18 33); do
    sed -n "${row}p" clicks-train.csv >>log.csv
    sleep 0.08
done
code=0
wait "$trainer" || code=$?
equal "the code" "$code" 0
check "the slow step was made" grep -q 'no record was appended for 1 s: training ends at step 2$' err.txt
"$BUILD/tools/belfry" train "${flags[@]}" --train_files log.csv --follow --follow_timeout 1e9 --stall_timeout 1 \
    --train_batch_size 16 --train_steps 3 --model_dir rare >out.txt 2>err.txt </dev/null &
trainer=$!
sleep 1.2
sed -n '34,49p' clicks-train.csv >>log.csv
code=0
wait "$trainer" || code=$?
equal "the code of a step after a long timeout" "$code" 0

# --- A worker with other rows than those that were learned
mkdir a b
head -n 321 clicks-train.csv >a/log.csv
sed '5s/,[01]$/,2/; 6s/^/x/' a/log.csv | sed '5s/,2$/,1/' >b/log.csv
export BELFRY_DATA_DIR=$work/a
run_ok belfry train "${follow[@]}" --train_steps 5 --num_workers 2 --model_dir apart
unset BELFRY_DATA_DIR
python3 -c '
import signal, socket
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
one.bind(("127.0.0.1", 0))
print(one.getsockname()[1], flush=True)
signal.pause()' >port.txt & # held without a listener
holder=$!
until [ -s port.txt ]; do sleep 0.05; done
part() { # FOLDER TYPE: a process of the job, with the files of this folder
    env BELFRY_DATA_DIR="$work/$1" TF_CONFIG="{\"cluster\": {\"chief\": [\"127.0.0.1:$(cat port.txt)\"], \"ps\":
        [\"127.0.0.1:0\"], \"worker\": [\"127.0.0.1:0\"]}, \"task\": {\"type\": \"$2\", \"index\": 0}}" \
        timeout -k 5 "$patience" "$BUILD/tools/belfry" train "${follow[@]}" --train_steps 8 --follow_timeout 5 --model_dir apart \
        >"$2.txt" 2>"$2.err" </dev/null &
}
part a chief
chief=$!
part b worker
part a ps
code=0
wait "$chief" || code=$?
cp chief.err err.txt
equal "the code of a job with other rows" "$code" 3
check "the worker's rows are named" grep -q 'log.csv: expected the rows of 160 rows, .*, got others; hint: the hosts' err.txt
kill "$holder"
wait

# --- Defaults that do not follow from the number of rows of the description
run_ok belfry columns clicks-train.csv --label_column clicked
mv out.txt columns.yaml
run_ok belfry train --columns columns.yaml --train_files log.csv --follow --follow_timeout 0.1 --model_dir described
check "the defaults of a stream" grep -q 'defaults for a file that grows: --hidden_units 256,128 .*--dropout 0 --l2 0 .*--train_batch_size 128' err.txt

# --- What does not go with it
refused() { # CODE PARTS FLAG…
    run_fails "$1" "$2" belfry train "${flags[@]}" --follow --model_dir none "${@:3}"
}
cp clicks-train.csv log.csv
refused 2 'num_epochs does not go with --follow' --train_files log.csv --num_epochs 1
refused 2 'shuffle_buffer does not go with --follow' --train_files log.csv --shuffle_buffer 9
refused 2 'mode async does not go with --follow' --train_files log.csv --mode async
refused 2 'drop_remainder does not go with --follow' --train_files log.csv --drop_remainder
refused 2 'replicas_to_aggregate does not go with --follow' --train_files log.csv --num_workers 2 --replicas_to_aggregate 1
refused 2 'expected one file here' --train_files log.csv,all.csv
refused 2 'expected one file here' --train_files s3://bucket/log.csv
refused 3 'cannot open nothing.csv' --train_files nothing.csv
gzip -k log.csv
refused 2 'a packed file cannot be followed' --train_files log.csv.gz
: >empty.csv
refused 3 'expected a first line to follow' --train_files empty.csv
run_fails 2 'follow needs a description of the columns' belfry train --follow --train_files log.csv --model_dir none
run_fails 2 '--follow_timeout' belfry train "${flags[@]}" --train_files log.csv --follow_timeout 5 --model_dir none
run_fails 2 'does not go with --follow' belfry local train --distributed --job_dir none -- "${flags[@]}" \
    --train_files log.csv --follow --num_epochs 1
finish
