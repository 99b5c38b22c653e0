#!/usr/bin/env bash
# BELFRY_FAULT is refused unless faults are enabled. Then it counts in all processes of a job. All points are
# known and documented.
# usage: faults.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
unset BELFRY_ENABLE_FAULTS
settings=(--train_steps 12 --train_batch_size 8 --num_workers 2)
cluster() { # MODEL_DIR [flags of local train]
    local model_dir=$1
    shift
    belfry local train --distributed --parameter_server_count 1 --job_dir "$model_dir" "$@" -- \
        "${digits[@]}" --train_steps 12 --train_batch_size 8
}
run_ok train whole "${settings[@]}"

# Without the switch nothing runs or changes.
export BELFRY_FAULT=sum_sequential
run_fails 2 "BELFRY_FAULT=sum_sequential|--enable_faults" train forgotten "${settings[@]}"
run_fails 2 "--enable_faults" cluster forgotten
run_fails 2 "--enable_faults" env BELFRY_ENABLE_FAULTS=0 "$BUILD/tools/belfry" inspect whole
check "nothing was made" test ! -e forgotten
unset BELFRY_FAULT
run_ok train plain "${settings[@]}" --enable_faults
equal "enabled, without a fault" "$(digest plain)" "$(digest whole)"

# With the switch: by the flag, by a settings file, by the environment; in children as well.
export BELFRY_FAULT=crash:tower_step#5@worker-1
run_ok cluster flag --enable_faults
check "a child was killed" grep -q "killed on purpose at tower_step" flag/logs/worker-1.0.log
run_ok env BELFRY_ENABLE_FAULTS=1 "$BUILD/tools/belfry" local train --distributed --job_dir variable -- \
    "${digits[@]}" --train_steps 12 --train_batch_size 8
check "here, too" grep -q "killed on purpose at tower_step" variable/logs/worker-1.0.log
for name in flag variable; do
    equal "bits of $name" "$(BELFRY_FAULT='' digest $name)" "$(BELFRY_FAULT='' digest whole)"
done
echo "enable_faults: true" >settings.yaml
export BELFRY_FAULT=write:2
run_fails 1 "No space left" train file "${settings[@]}" --config_file settings.yaml

# A misspelt fault is named.
for wrong in sum_sequentially crash:tower_stop slow:disk#5 lane:lose; do
    export BELFRY_FAULT=$wrong
    run_fails 2 "BELFRY_FAULT=$wrong|no fault and no point" train wrong --enable_faults
done

# Slow disks change only the time.
export BELFRY_FAULT=slow:file_writes#1,slow:file_syncs#5,slow:input_reads#1
run_ok train slow "${settings[@]}" --enable_faults --save_checkpoints_steps 6
equal "bits on a slow disk" "$(BELFRY_FAULT='' digest slow)" "$(BELFRY_FAULT='' digest whole)"

# Every point in the source is known and documented.
grep -rhoE 'bel_fault_point\("[a-z_]+"\)' "$SOURCE/src" | cut -d'"' -f2 | sort -u >points.txt
check "there are points" test "$(wc -l <points.txt)" -gt 10
while IFS= read -r point; do
    export BELFRY_FAULT=slow:$point#1
    run_ok belfry version --enable_faults
    check "$point is documented" grep -q "\`$point\`" "$SOURCE/docs/operations.md"
done <points.txt
finish
