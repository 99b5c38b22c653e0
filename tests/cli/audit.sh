#!/usr/bin/env bash
# Audit of the input: every record is read exactly once in each epoch, over workers, kills, a run that resumes
# with other workers, and unreadable records. A missing note is reported.
# usage: audit.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
run=(--train_batch_size 75 --num_epochs 3 --no_report --audit_input) # 1,438 records, 20 batches an epoch

whole() { # MODEL_DIR RECORDS: three epochs, each complete
    run_ok belfry inspect --audit "$1"
    for epoch in 0 1 2; do
        check "epoch $epoch of $1" grep -qx "epoch $epoch: $2 records, each once" out.txt
    done
}

# --- One process, stopped and resumed with another assignment
run_ok train alone "${run[@]}" --num_gpus 4
whole alone 1438
run_ok belfry inspect --audit --json alone
check "as JSON" grep -q '"epochs":\[{"epoch":0,"records":1438,"whole":true}' out.txt
run_ok train parts "${run[@]}" --num_gpus 4 --train_steps 7
run_ok belfry inspect --audit parts
check "the second epoch is not complete" grep -qx 'epoch 1: 662 records, each once; not all of it' out.txt
run_ok train parts "${run[@]}" --num_workers 2 --towers_of_workers 3,1
whole parts 1438

# --- Processes that die: a worker, a shard (the job goes back), a master
for point in tower_compute#9@worker-1 shard_passes#9@ps-0 master_saves#2; do
    rm -rf killed
    run_ok env BELFRY_FAULT="crash:$point" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed \
        --worker_count 2 --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${run[@]}" --num_gpus 2 \
        --save_checkpoints_steps 4
    whole killed 1438
    check "a process died at $point" grep -q '^killed on purpose' killed/logs/*.log
done

# --- Missing notes
rm killed/audit/worker-1.0
run_fails 3 'no worker noted that block' belfry inspect --audit killed
run_ok train silent --train_steps 2
run_fails 3 'nothing was noted|--audit_input' belfry inspect --audit silent
run_fails 2 'audit_input says which records' train late "${run[@]}" --num_workers 2 --mode async
run_fails 2 'one of --audit, --digest and --rows, got 2' belfry inspect --audit --digest alone

# --- Unreadable records keep their positions
{
    cat "$TRAIN_CSV"
    echo "1,2,3"
} >bad.csv
bad=(--train_files bad.csv --label_column digit --feature_scale 0.0625 --hidden_units 8 --train_batch_size 75 --num_epochs 3
    --no_report)
run_fails 3 'bad.csv:1440:6: expected 65 fields, got 3' belfry train --model_dir bad "${bad[@]}"
run_ok belfry train --model_dir bad "${bad[@]}" --skip_bad_records 1 --audit_input
equal "it is named once" "$(grep -c 'bad record 1 of 1 at most, left out: bad.csv:1440:6' err.txt)" 1
whole bad 1439
finish
