#!/usr/bin/env bash
# Deltas of tables (--full_checkpoint_every): every checkpoint has the digest of a full one, whatever process is
# killed while one is saved, and every way to read one finds its base: other numbers of shards,
# exports, an object store (hosts that do not see the folder: hosts.sh).
# usage: cluster_deltas.sh BUILD_FOLDER
# shellcheck disable=SC2317 # functions are called through run_ok and check
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"

export XDG_RUNTIME_DIR=$work # sockets are below it
make_clicks
flags=("${clicks[@]}" --train_batch_size 16 --save_checkpoints_steps 5 --keep_checkpoint_max 0
    --table_admit_after 2 --table_expire_after 8 --train_steps 40)
deltas=("${flags[@]}" --full_checkpoint_every 4)

alone() { # MODEL FLAG…
    run_ok belfry train_and_evaluate --model_dir "$@"
}
cluster() { # MODEL [cluster's flags] -- FLAG…
    run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 --job_dir "$@"
}
same_checkpoints() { # TEXT MODEL: recomputes the digest of each
    local checkpoint
    for checkpoint in "$2"/ckpt-*; do
        equal "$1, ${checkpoint##*/}" "$(digest "$checkpoint")" "${expected[${checkpoint##*/}]}"
    done
}
kind() { belfry inspect "$1" | grep -c '^base step' || true; } # 1: a delta

alone one --num_workers 2 "${flags[@]}"
declare -A expected
for checkpoint in one/ckpt-*; do expected[${checkpoint##*/}]=$(digest "$checkpoint"); done
equal "checkpoints" "${#expected[@]}" 9

# --- One process, and a cluster with kills
alone four --num_workers 2 "${deltas[@]}"
same_checkpoints "one process" four
for step in 05 10 15 20 25 30 35 40; do kinds+=$(kind four/ckpt-000000$step); done
equal "one of four is full, and the last" "$kinds" 01110110
run_ok belfry inspect four/ckpt-00000015
check "the base is named" grep -q "^base step 5, digest ${expected[ckpt-00000005]}\$" out.txt
check "and the delta's rows" grep -q 'deep .* rows of 8: .*; [1-9][0-9]* rows and [1-9][0-9]* removed keys here' out.txt
cluster many --parameter_server_count 2 -- "${deltas[@]}"
same_checkpoints "a cluster" many
equal "deltas of a cluster" "$(kind many/ckpt-00000035)" 1
for fault in checkpoint_shard_written#1@ps-0 checkpoint_shard_written#2@ps-1 file_writes#40@ps-0 shard_snapshot#3@ps-1 \
    master_saves#4 checkpoint_before_rename#3@master-0 checkpoint_after_rename#4@master-0 shard_passes#130@ps-0; do
    rm -rf killed
    BELFRY_FAULT=crash:$fault cluster killed --parameter_server_count 2 -- "${deltas[@]}"
    check "one was killed, $fault" grep -q "killed on purpose" killed/logs/*.log
    same_checkpoints "$fault" killed
    check "some are deltas, $fault" grep -q '"base"' killed/ckpt-*/manifest.json
    check "nothing is left, $fault" test "$(find killed -maxdepth 1 -name 'ckpt-*.*' | wc -l)" = 0
done

# --- Continuing from a delta, with other shards
for shape in "1 3" "2 0" "2 4"; do
    read -ra words <<<"$shape"
    rm -rf parts
    cp -r many parts
    rm -r parts/ckpt-00000040
    equal "the newest is a delta" "$(kind parts)" 1
    cluster parts --parameter_server_count "${words[1]}" --worker_count "${words[0]}" -- "${deltas[@]}" \
        --num_gpus "$((2 / words[0]))"
    equal "digest with shards $shape" "$(digest parts)" "${expected[ckpt-00000040]}"
done
rm -rf parts
cp -r many parts
rm -r parts/ckpt-00000040
alone parts --num_workers 2 "${flags[@]}"
equal "digest in one process" "$(digest parts)" "${expected[ckpt-00000040]}"

# --- Readers
run_ok belfry export --checkpoint one/ckpt-00000035 --model_dir one --export_dir one.export
run_ok belfry export --checkpoint many/ckpt-00000035 --model_dir many --export_dir many.export
check "exports are equal" cmp one.export/model.onnx many.export/model.onnx
run_ok belfry evaluate --checkpoint one/ckpt-00000035 --model_dir one --eval_files clicks-eval.csv
cp out.txt one.txt
run_ok belfry evaluate --checkpoint many/ckpt-00000035 --model_dir many --eval_files clicks-eval.csv
check "evaluations are equal" cmp one.txt out.txt
alone kept --num_workers 2 "${deltas[@]}" --eval_every_steps 5 --export latest --keep_checkpoint_max 1
check "the base is said to stay" grep -q 'the checkpoint of step 5 stays beyond keep_checkpoint_max, as that of step 10 is a delta' err.txt
equal "once for a base" "$(grep -c 'of step 5 stays beyond' err.txt)" 1
equal "the last needs none" "$(cd kept && echo ckpt-*)" ckpt-00000040
equal "an export has its base" "$(kind kept/export/latest/35)" 1
equal "and its digest" "$(digest kept/export/latest/35)" "${expected[ckpt-00000035]}"

# --- Without its base
cp -r many broken
mv broken/ckpt-00000025 elsewhere
rm -r broken/ckpt-00000040
run_fails 3 "ckpt-00000035 is a delta on the checkpoint of step 25|hint: keep, copy and move a delta with its base" \
    belfry evaluate --checkpoint broken/ckpt-00000035 --model_dir broken --eval_files clicks-eval.csv
alone broken --num_workers 2 "${deltas[@]}"
check "the delta is skipped" grep -q 'ckpt-00000035 in broken is skipped: .*ckpt-00000025' err.txt
equal "digest after an older one" "$(digest broken)" "${expected[ckpt-00000040]}"

# --- An object store
mkdir -p store/runs first second third
store_begin
run_ok on first belfry train_and_evaluate --model_dir s3://runs/d --num_workers 2 "${deltas[@]}"
equal "digest of a delta in a store" "$(on second digest s3://runs/d/ckpt-00000015)" "${expected[ckpt-00000015]}"
equal "it came with its base, and the newest" "$(find second -name 'ckpt-*' | wc -l)" 3
control '{"refuse": "AccessDenied", "only": "^(PUT|DELETE).*ckpt-00000005"}'
run_fails 1 "s3://runs/x lacks files" \
    on first timeout 100 "$BUILD/tools/belfry" train_and_evaluate --model_dir s3://runs/x --num_workers 2 "${deltas[@]}"
check "it names the delta" grep -q 'ckpt-00000010 is not sent yet, as its base, the checkpoint of step 5, was not' err.txt
equal "only deltas on a base that was sent" "$(cd store/runs/x && echo ckpt-*/manifest.json | tr -d 'a-z/.-')" \
    "00000000 00000025 00000030 00000035 00000040"
control '{"reset": true}'
run_ok on second belfry train_and_evaluate --model_dir s3://runs/x "${deltas[@]}" --train_steps 45 --num_workers 2
run_ok on first belfry train_and_evaluate --model_dir s3://runs/x "${deltas[@]}" --train_steps 50 --num_workers 2
aside=$(echo first/belfry-folders-*/x-*.unsent/ckpt-00000015-*)
equal "a delta is set aside with its base" "$(digest "$aside")" "${expected[ckpt-00000015]}"
kill "$server"
rm -r store/runs/d/ckpt-00000040 store/runs/d/ckpt-00000025/manifest.json
store_begin
equal "deltas without their base are left out" "$(on third digest s3://runs/d)" "${expected[ckpt-00000020]}"

# --- Settings
run_fails 2 "full_checkpoint_every|an integer in [1, 1e6]" belfry train_and_evaluate --model_dir bad "${flags[@]}" --full_checkpoint_every 0
run_ok train dense --train_steps 5 --full_checkpoint_every 3
check "without tables" grep -q 'full_checkpoint_every has no effect here: it counts only for tables, and dense parameters' err.txt
finish
