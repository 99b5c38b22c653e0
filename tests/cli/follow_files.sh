#!/usr/bin/env bash
# Training on files and objects that appear with rising names (--follow with a pattern): each row once, in the order of
# the names, over interruptions and kills, with the digest of a training on all files.
# usage: follow_files.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"

unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY "${!AWS_@}" "${!GS_@}" STORAGE_EMULATOR_HOST
export XDG_RUNTIME_DIR=$work HOME=$work AWS_EC2_METADATA_DISABLED=true
make_clicks
mkdir -p all in store/data
run_ok belfry columns clicks-train.csv --label_column clicked
mv out.txt columns.yaml
# 20 files of 200 rows, of which two are packed.
head -n 1 clicks-train.csv >header
tail -n +2 clicks-train.csv | split -l 200 -d -a 3 - rows.
for number in $(seq -w 0 19); do
    cat header "rows.0$number" >"all/$number.csv"
done
gzip all/03.csv all/17.csv
flags=(--columns columns.yaml --wide_numbers=true --dropout 0 --l2 0 --hidden_units 8 --embedding_width 8
    --optimizer adagrad --learning_rate 0.1 --schedule constant --num_threads 1 --train_batch_size 16 --no_report)
follow=("${flags[@]}" --follow --audit_input --save_checkpoints_steps 10 --keep_checkpoint_max 0 --full_checkpoint_every 3)

put() { # NUMBER…: files appear, each whole
    local number file
    for number in "$@"; do
        for file in all/"$number".csv*; do
            cp "$file" in/.new
            mv in/.new "in/${file#all/}"
        done
    done
}
begin() { # FOLDER PATTERN FLAG…: starts a training
    "$BUILD/tools/belfry" train "${follow[@]}" --train_files "$2" "${@:3}" --model_dir "$1" >out.txt 2>err.txt </dev/null &
    trainer=$!
}
mapfile -t numbers < <(seq -w 0 19)

for workers in 1 2; do
    run_ok belfry train "${flags[@]}" --train_files 'all/*' --shuffle_buffer 1 --num_epochs 1 --num_workers $workers \
        --model_dir batch$workers
done

# --- One process: a kill, and an end after a while without a file
put 00
begin one 'in/*'
put "${numbers[@]:1:6}"
check "it saves" appears one/ckpt-00000080
kill -KILL "$trainer"
wait "$trainer" 2>/dev/null || true
put "${numbers[@]:7:5}"
begin one 'in/*' --follow_timeout 1
put "${numbers[@]:12}"
code=0
wait "$trainer" || code=$?
equal "the code" "$code" 0
check "it ends without new files" grep -q 'no record was appended for 1 s: training ends at step 250$' err.txt
equal "the digest of all files" "$(digest one)" "$(digest batch1)"
run_ok belfry inspect --audit one
check "each row once" grep -q '^epoch 0: 4000 records, each once' out.txt

# --- Files before those of the last row may go, and that one stays
continues() { belfry train "${follow[@]}" --train_files 'in/*' --follow_timeout 0.2 --model_dir one; }
rm in/02.csv in/03.csv.gz
run_ok continues
equal "the digest without old files" "$(digest one)" "$(digest batch1)"
cp in/00.csv in/02a.csv
cp in/00.csv in/03a.csv
cp in/00.csv in/04a.csv
run_fails 3 'in/*: 20 files are before in/19.csv, and training has read 19 of them' continues
rm in/0[234]a.csv
mv in/19.csv away.csv
run_fails 3 'in/*: no file 19.csv, with the last of 4000 rows' continues
head -n 201 clicks-eval.csv >in/19.csv
run_fails 3 'in/19.csv: expected the rows of 4000 rows, |, got others' continues

# --- A cluster, of which a parameter server is killed
rm -r in
mkdir in
put 00
code=0
BELFRY_FAULT=crash:shard_passes#60@ps-0 timeout --foreground -k 5 100 "$BUILD/tools/belfry" local train --distributed \
    --worker_count 2 --parameter_server_count 2 --job_dir many -- "${follow[@]}" --train_files 'in/*' --train_steps 125 \
    >out.txt 2>err.txt </dev/null &
job=$!
for number in "${numbers[@]:1}"; do
    sleep 0.05
    put "$number"
done
wait "$job" || code=$?
equal "the code of the job" "$code" 0
check "one was killed" grep -q "killed on purpose" many/logs/*.log
equal "the digest of the job" "$(digest many)" "$(digest batch2)"
run_ok belfry inspect --audit many
check "each row of the job once" grep -q '^epoch 0: 4000 records, each once' out.txt

# --- What files must not do
ends_with() { # TEXT COMMAND…: the command in the folder ends the training with this message
    rm -rf in bad
    mkdir in
    put 05 06
    begin bad 'in/*.csv'
    check "it begins, $1" appears bad/ckpt-00000010
    "${@:2}"
    code=0
    wait "$trainer" || code=$?
    equal "the code, $1" "$code" 3
    check "$1" grep -q "^belfry: .*$1" err.txt
}
ends_with 'appeared.* after in/0[56].csv was read.*; expected files with rising names' put 04
ends_with 'in/06.csv: it was removed while it was followed' rm in/06.csv
ends_with 'in/06.csv: it had [0-9]* bytes when it was read, and has [0-9]* now' sh -c 'tail -n 3 rows.007 >>in/06.csv'
ends_with 'in/06.csv: it was replaced after it was read' sh -c 'cp all/06.csv in/.new; mv in/.new in/06.csv'
ends_with 'in/07.csv: expected the first line that the files before it have' sh -c 'echo "user,item,clicked" >in/.new; mv in/.new in/07.csv'
ends_with 'in/07.csv:3:.*expected' sh -c '{ cat header; echo "u1,i1,0.5,1"; echo "u1,i1,0.5"; } >in/.new; mv in/.new in/07.csv'

# --- Objects
store_begin
tool() { timeout -k 5 "$patience" "$BUILD/tests/store_tool" "$@"; }
run_ok tool write s3://data/in/00.csv all/00.csv
begin objects 's3://data/in/*' --follow_timeout 3
for number in "${numbers[@]:1}"; do
    for file in all/"$number".csv*; do
        run_ok_quietly() { tool write "s3://data/in/${file#all/}" "$file" >tool.txt 2>&1; }
        check "object $number" run_ok_quietly
    done
done
code=0
wait "$trainer" || code=$?
equal "the code with objects" "$code" 0
equal "the digest of all objects" "$(digest objects)" "$(digest batch1)"
finish
