#!/usr/bin/env bash
# Tables that are larger than their memory (--table_disk): the bits of tables in memory, in one process and in
# clusters, killed or not, with rows that come and go, deltas, resumes and a warm start. And what is refused.
# usage: table_disk.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
make_clicks
mkdir rows
# 600 rows of 4 KiB in 1 MiB, and all rows of the other table in theirs.
flags=("${clicks[@]}" --embedding_width 512 --train_batch_size 16 --train_steps 40 --save_checkpoints_steps 15)
disk=(--table_memory 1 --table_disk rows)

alone() { # MODEL FLAG…
    run_ok belfry train_and_evaluate --model_dir "$1" "${flags[@]}" "${@:2}"
}
cluster() { # MODEL [cluster's flags] -- FLAG…
    local model=$1 places=()
    shift
    while [ "$1" != -- ]; do
        places+=("$1")
        shift
    done
    run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --job_dir "$model" --worker_count 2 \
        "${places[@]}" -- "${flags[@]}" "${@:2}"
}
result() { sed -n 's/^\(accuracy\|loss\) //p' out.txt; }
in_file='table "deep" on shard 0 at step 40: of 600 rows 3[5-9][0-9] are in a file of [1-9][0-9.]* MB in rows'

# --- The same bits
alone memory --num_gpus 4
expected=$(digest memory)
measured=$(result)
alone disk --num_gpus 4 "${disk[@]}"
equal "digest with rows on disk" "$(digest disk)" "$expected"
equal "evaluation" "$(result)" "$measured"
check "most rows are on disk" grep -q "$in_file" err.txt
check "the evaluation loads none" grep -q 'ckpt-00000015: 1156 rows are read in place, as the training has table_disk' err.txt
equal "files that stay" "$(find rows -type f | wc -l)" 0
for shape in "--parameter_server_count 1" "--parameter_server_count 2 --tcp"; do
    rm -rf many
    # shellcheck disable=SC2086 # several flags
    BELFRY_FAULT=crash:shard_passes#70@ps-0 cluster many $shape -- --num_gpus 2 "${disk[@]}"
    check "a server was killed, $shape" grep -q "killed on purpose" many/logs/ps-0.0.log
    equal "digest of a cluster, $shape" "$(digest many)" "$expected"
done
check "a server says it, too" grep -q "on shard 0 at step 40: of [0-9]* rows [1-9][0-9]* are in a file" many/logs/ps-0.*.log

# --- Rows that come and go, and deltas
life=(--table_admit_after 2 --table_expire_after 8 --table_expire_below 0.5 --full_checkpoint_every 2)
alone live --num_gpus 4 "${life[@]}"
alone live-disk --num_gpus 4 "${life[@]}" "${disk[@]}"
check "rows expired" grep -q 'table "deep" on shard 0 at step 40: .* [1-9][0-9]* have expired' err.txt
equal "digest of a life" "$(digest live-disk)" "$(digest live)"
for checkpoint in live/ckpt-*; do
    equal "digest of ${checkpoint##*/}" "$(digest "live-disk/${checkpoint##*/}")" "$(digest "$checkpoint")"
    for model in live live-disk; do
        run_ok belfry predict --checkpoint "$model/${checkpoint##*/}" --eval_files clicks-eval.csv
        mv out.txt $model.csv
        mv err.txt $model.err
    done
    check "predictions of ${checkpoint##*/} from the disk" cmp live.csv live-disk.csv
done
equal "loaded rows" "$(grep -c 'in place' live.err || true)" 0
check "rows in place" grep -q 'rows are read in place' live-disk.err

# --- In two parts, from the disk to memory and back
flags+=(--train_steps 25)
alone parts --num_gpus 4 "${disk[@]}"
alone parts2 --num_gpus 4
flags+=(--train_steps 40)
alone parts --num_gpus 4
alone parts2 --num_gpus 4 "${disk[@]}"
equal "digest from disk to memory" "$(digest parts)" "$expected"
equal "digest from memory to disk" "$(digest parts2)" "$expected"
alone warm --warm_start memory --train_steps 10
alone warm-disk --warm_start memory --train_steps 10 "${disk[@]}"
equal "digest of a warm start" "$(digest warm-disk)" "$(digest warm)"

# --- Many rows of a step, which a server's threads update and read together
awk 'BEGIN { print "user,item,clicked"; for (i = 0; i < 20000; i++) print "u" i * 7919 % 20011 ",i" i % 50 "," i % 3 % 2 }' \
    >many.csv
large=(--train_files many.csv --model wide_deep --id_columns "user,item" --class_count 2 --hidden_units 8
    --embedding_width 16 --optimizer adagrad --no_report --train_batch_size 5000 --num_epochs 2 --seed 5)
run_ok belfry train --model_dir large "${large[@]}" --num_threads 1
run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --job_dir large2 --worker_count 1 \
    --parameter_server_count 1 -- "${large[@]}" "${disk[@]}"
equal "digest of large steps" "$(digest large2)" "$(digest large)"
check "most rows are on disk" grep -q 'on shard 0 at step 8: of 20050 rows [1-9][0-9]* are in a file' large2/logs/ps-0.*.log

# --- Refused
run_fails 2 'table_disk needs table_memory|beyond which they are in rows' belfry train_and_evaluate --model_dir bad "${flags[@]}" \
    --table_disk rows
digits_for cnn
run_fails 2 '--table_disk has no effect without --model linear or dnn or wide_deep, and that is cnn' belfry train_and_evaluate --model_dir bad \
    "${digits[@]}" --model cnn --table_disk rows
digits_for dnn
run_fails 2 'table_disk . is for the rows of tables, and the model has no table' train bad --table_memory 1 --table_disk .
run_ok train dense --train_steps 5 --table_memory 1 --table_admit_after 2 --table_expire_after 9
for name in memory admit_after expire_after; do
    check "table_$name: there is no table" grep -q "table_$name has no effect here: it counts only for tables" err.txt
done
run_fails 3 'cannot create a file of rows (table_disk) in none: No such file' belfry train_and_evaluate --model_dir bad "${flags[@]}" \
    --table_memory 1 --table_disk none
finish
