#!/usr/bin/env bash
# Tables over processes: the bits of one process for every assignment, number of shards and lane, disturbed or
# not, in parts, with other optimizers. Evaluation and prediction see the trained rows.
# usage: cluster_tables.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 60 --save_checkpoints_steps 40 --eval_every_steps 25 --train_batch_size 16)
export XDG_RUNTIME_DIR=$work # sockets are below it
make_clicks

alone() { # MODEL [flags]
    run_ok belfry train_and_evaluate --model_dir "$1" "${clicks[@]}" "${settings[@]}" "${@:2}"
}

cluster() { # MODEL [cluster's flags] -- [flags]
    local model=$1 places=()
    shift
    while [ "$1" != -- ]; do
        places+=("$1")
        shift
    done
    run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --job_dir "$model" "${places[@]}" -- \
        "${clicks[@]}" "${settings[@]}" "${@:2}"
}

accuracy() { sed -n 's/^accuracy \(.*\)/\1/p' out.txt; }

# --- Every assignment and lane
alone one --num_gpus 4
one=$(digest one)
measured=$(accuracy)
check "it has learnt from ids: $measured" test "$(echo "$measured" | cut -c 1-4)" \> 0.89
for shape in "2 1" "4 3" "4 0" "2 2 --tcp" "2 0 --tcp"; do
    read -ra words <<<"$shape"
    towers=$((4 / words[0]))
    rm -rf many
    cluster many --worker_count "${words[0]}" --parameter_server_count "${words[1]}" "${words[@]:2}" -- \
        --num_gpus "$towers"
    equal "digest with $shape" "$(digest many)" "$one"
    equal "accuracy with $shape" "$(accuracy)" "$measured"
done

# --- Replicas in turns: several pulls in a step
rm -rf many
cluster many --worker_count 2 --parameter_server_count 2 -- --replicas_to_aggregate 4
equal "digest in turns" "$(digest many)" "$one"
rm -rf many
BELFRY_FAULT=crash:worker_rows_reported#87@worker-1 cluster many --worker_count 2 --parameter_server_count 2 -- \
    --replicas_to_aggregate 4
check "a worker was killed" grep -q "killed on purpose" many/logs/worker-1.0.log
equal "digest in turns, killed" "$(digest many)" "$one"

# --- Disturbed lanes
for shape in "" "--tcp"; do
    read -ra words <<<"$shape"
    fault=lane:delay+repeat+reorder
    [ -z "$shape" ] || fault+=+break
    rm -rf many
    BELFRY_FAULT=$fault cluster many --worker_count 2 --parameter_server_count 2 "${words[@]}" -- --num_gpus 2
    equal "digest, disturbed $shape" "$(digest many)" "$one"
done

# --- In parts: another number of shards, and an evaluator that reads checkpoints
settings=(--train_steps 30 --train_batch_size 16)
rm -rf many
cluster many --worker_count 2 --parameter_server_count 3 -- --num_gpus 2
settings=(--train_steps 60 --train_batch_size 16)
cluster many --worker_count 4 --parameter_server_count 2 --evaluator_count 1 --
equal "digest in two parts" "$(digest many)" "$one"
check "the evaluator saw the rows" grep -q "accuracy = ${measured:0:6}" many/logs/*.log
run_ok belfry evaluate --model_dir many --eval_files clicks-eval.csv
equal "accuracy of the checkpoint" "$(accuracy)" "$measured"
run_ok belfry predict --model_dir many --eval_files clicks-eval.csv --label_column clicked
equal "predictions" "$(wc -l <out.txt)" 500

# --- The mean over the contributors to a row
alone mean-one --num_gpus 4 --table_mean contributors
check "it is another mean" test "$(digest mean-one)" != "$one"
for shape in "2 3" "2 0 --tcp"; do
    read -ra words <<<"$shape"
    rm -rf many
    cluster many --worker_count "${words[0]}" --parameter_server_count "${words[1]}" "${words[@]:2}" -- \
        --num_gpus "$((4 / words[0]))" --table_mean contributors
    equal "digest with contributors' means, $shape" "$(digest many)" "$(digest mean-one)"
done
run_fails 2 "table_mean was contributors" belfry train_and_evaluate --model_dir mean-one "${clicks[@]}" --train_steps 90 \
    --train_batch_size 16 --num_gpus 4

# --- A warm start: rows of another run's tables, only their values
alone warm-one --num_gpus 4 --warm_start one --initial_accumulator 0.5
check "it begins better" grep -q "warm start: [0-9]* of [0-9]* variables and 2 of 2 tables from one/" err.txt
check "and has rows from the beginning" test "$(belfry inspect warm-one/ckpt-00000000 | grep -c ' 600 rows')" = 2
rm -rf many
cluster many --worker_count 2 --parameter_server_count 3 -- --num_gpus 2 --warm_start one \
    --initial_accumulator 0.5
equal "digest of a warm start" "$(digest many)" "$(digest warm-one)"
equal "and of its first checkpoint" "$(digest many/ckpt-00000000)" "$(digest warm-one/ckpt-00000000)"
run_fails 3 'warm start|table "deep": expected width 4' belfry train_and_evaluate --model_dir bad "${clicks[@]}" \
    --embedding_width 4 --warm_start one --warm_start_variables deep

# --- A separate optimizer for one of the tables
wide=(--wide_optimizer ftrl --wide_learning_rate 0.05)
alone wide-one --num_gpus 4 "${wide[@]}"
check "other bits" test "$(digest wide-one)" != "$one"
for shape in "4 3" "2 0 --tcp"; do
    read -ra words <<<"$shape"
    rm -rf many
    cluster many --worker_count "${words[0]}" --parameter_server_count "${words[1]}" "${words[@]:2}" -- \
        --num_gpus "$((4 / words[0]))" "${wide[@]}"
    equal "digest with two optimizers, $shape" "$(digest many)" "$(digest wide-one)"
done

# --- Modes of aggregation: rows are read and updated in turns
settings=(--train_steps 240 --save_checkpoints_steps 80 --eval_every_steps 60 --train_batch_size 16)
has_learnt() { # WHAT
    check "$1: accuracy $(accuracy)" test "$(accuracy)" \> 0.8
}
for mode in "--mode async" "--mode bounded --max_staleness 1" "--replicas_to_aggregate 2"; do
    read -ra flags <<<"$mode"
    rm -rf many
    alone many --num_workers 3 --parameter_server_count 2 "${flags[@]}"
    has_learnt "$mode"
    for shape in "0" "2 --tcp"; do
        read -ra words <<<"$shape"
        rm -rf many
        BELFRY_FAULT=lane:delay+repeat+reorder cluster many --worker_count 3 --parameter_server_count "${words[@]}" -- "${flags[@]}"
        has_learnt "$mode, $shape, disturbed"
    done
    rm -rf many
    faults="worker-1=crash:worker_rows_reported#80 worker-2=crash:tower_step#23 ps-1=crash:shard_passes#90"
    FAULTS=$faults run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --job_dir many \
        --worker_count 3 --parameter_server_count 2 -- "$SOURCE/tests/support/with_faults" "$BUILD/tools/belfry" \
        train_and_evaluate --model_dir many "${clicks[@]}" "${settings[@]}" "${flags[@]}"
    has_learnt "$mode, killed"
    check "$mode: all were killed" killed_all many/logs "$faults"
done

# --- Rows that come and go, with kills, in two parts
settings=(--train_steps 60 --save_checkpoints_steps 20 --train_batch_size 16)
life=(--table_admit_after 2 --table_expire_after 8)
alone live-longer --num_gpus 4 "${life[@]}"
life+=(--table_expire_below 0.5)
state() { belfry inspect "$1" | sed -n '/^tables/,$p'; }
alone live-one --num_gpus 4 "${life[@]}"
state live-one >one.txt
equal "tables of the checkpoint" "$(awk 'NF > 1 { print $1 }' one.txt | tr '\n' ' ')" \
    "deep deep/age deep/uses deep/uses/age wide wide/age wide/uses wide/uses/age "
check "small rows went before" test "$(digest live-one)" != "$(digest live-longer)"
check "rows expired, and keys wait" grep -q 'table "deep" on shard 0 at step 60: [1-9][0-9]* rows, [1-9][0-9]* keys wait .* [1-9][0-9]* have expired' err.txt
for shape in "4 1 crash:shard_passes#90@ps-0" "2 3 crash:worker_rows_reported#40@worker-1 --tcp" "2 0 crash:shard_passed#70@worker-0"; do
    read -ra words <<<"$shape"
    rm -rf many
    BELFRY_FAULT=${words[2]} cluster many --worker_count "${words[0]}" --parameter_server_count "${words[1]}" "${words[@]:3}" -- \
        --num_gpus "$((4 / words[0]))" "${life[@]}"
    check "one was killed, $shape" grep -q "killed on purpose" many/logs/*.0.log
    equal "rows as the job says, $shape" \
        "$(sed -nE 's/.*table "(deep|wide)" at step 60: ([0-9]+) rows on all shards.*/\1 \2/p' err.txt)" \
        "$(awk '$1 == "deep" || $1 == "wide" { print $1, $2 }' one.txt)"
    equal "digest of a life, $shape" "$(digest many)" "$(digest live-one)"
    state many >many.txt
    check "the same tables, $shape" cmp many.txt one.txt
done
rm -rf parts
settings=(--train_steps 31 --train_batch_size 16)
cluster parts --worker_count 2 --parameter_server_count 3 -- --num_gpus 2 "${life[@]}"
settings=(--train_steps 60 --train_batch_size 16)
alone parts --num_gpus 4 "${life[@]}"
equal "digest of a life in two parts" "$(digest parts)" "$(digest live-one)"
run_ok belfry evaluate --model_dir parts --eval_files clicks-eval.csv
run_ok belfry export --model_dir parts --export_dir parts.export
equal "tables of the model" "$(grep -ac 'deep/uses' parts.export/model.onnx || true)" 0
settings=(--train_steps 90 --train_batch_size 16)
run_fails 2 "table_expire_after was 8|allow_changes" belfry train_and_evaluate --model_dir parts "${clicks[@]}" \
    "${settings[@]}" --num_gpus 4 --table_admit_after 2
alone parts --num_gpus 4 --allow_changes
equal "tables that live forever" "$(state parts | awk 'NF > 1 { print $1 }' | tr '\n' ' ')" "deep wide "
rm -rf many
cluster many --worker_count 3 --parameter_server_count 2 -- --mode async "${life[@]}"
check "async: $(grep -h 'have expired' many/logs/*.log | tail -n 1)" grep -q '[1-9][0-9]* have expired' many/logs/ps-0.0.log

settings=(--train_steps 20 --train_batch_size 16)
alone rowless --num_gpus 4 --table_admit_after 1000
check "a table without a row is said" \
    grep -q 'table "deep" has no row at step 20; no key was used 1000 times' err.txt

# --- Full tables: a block of 512 wide rows for 600 keys, on one shard
settings=(--train_steps 60 --save_checkpoints_steps 20 --train_batch_size 16)
full=(--embedding_width 512 --table_memory 5)
rows_of() { belfry inspect "$1" | grep -c "^ *deep .* $2 rows" || true; } # MODEL COUNT
alone full-one --num_gpus 4 "${full[@]}"
equal "one warning" "$(grep -c 'table "deep" is full on shard 0 at step .*: 512 rows take .* of 5242880 bytes (table_memory)' err.txt)" 1
equal "rows of the full table" "$(rows_of full-one 512)" 1
alone full-one --num_gpus 4 "${full[@]}" # the same command again: nothing to do
for shape in "4" "2 --tcp"; do
    read -ra words <<<"$shape"
    rm -rf many
    BELFRY_FAULT=crash:shard_passes#90@ps-0 cluster many --worker_count "${words[0]}" --parameter_server_count 1 \
        "${words[@]:1}" -- --num_gpus "$((4 / words[0]))" "${full[@]}"
    check "a server was killed" grep -q "killed on purpose" many/logs/ps-0.0.log
    equal "digest of a full table, $shape" "$(digest many)" "$(digest full-one)"
done
rm -rf parts
settings=(--train_steps 40 --train_batch_size 16)
alone parts --num_workers 2 --num_gpus 2 "${full[@]}"
settings=(--train_steps 60 --train_batch_size 16)
alone parts --num_gpus 4 "${full[@]}"
equal "digest of a full table in two parts" "$(digest parts)" "$(digest full-one)"
rm -rf many
cluster many --worker_count 2 --parameter_server_count 2 -- --num_gpus 2 "${full[@]}"
equal "two shards hold all rows" "$(rows_of many 600)" 1
check "and have other bits" test "$(digest many)" != "$(digest full-one)"
run_fails 1 'rows in|at most 5242880 bytes|hint: raise table_memory' belfry train_and_evaluate --model_dir many \
    "${clicks[@]}" --train_steps 90 --train_batch_size 16 --num_gpus 4 --parameter_server_count 1 "${full[@]}"

# --- Impossible settings
run_fails 1 'limit of 1048576 bytes holds no row|table_memory' belfry train_and_evaluate --model_dir small "${clicks[@]}" "${settings[@]}" \
    --table_memory 1
run_fails 1 'limit of 1048576 bytes holds no row|table_memory' belfry local train --distributed --job_dir smaller -- "${clicks[@]}" "${settings[@]}" \
    --table_memory 1
run_fails 2 "column|users|user" belfry train_and_evaluate --model_dir bad "${clicks[@]}" --id_columns users,item
run_fails 2 "no feature \"ids\"" belfry train_and_evaluate --model_dir bad "${digits[@]}" --model wide_deep
few=(--train_files clicks-train.csv --eval_files clicks-eval.csv --model wide_deep --id_columns "user,item"
    --class_count 2)
run_fails 2 "momentum|table" belfry train_and_evaluate --model_dir bad "${few[@]}" --optimizer momentum
finish
