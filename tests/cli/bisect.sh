#!/usr/bin/env bash
# bisect: the first step and tensor at which two trainings differ. Equal ones with other shards, settings
# that changed on the way, one parameter that came to a worker with another sign, tables as deltas, curves
# between checkpoints, steps that are missing or damaged, an object store.
# usage: bisect.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"

export XDG_RUNTIME_DIR=$work # sockets are below it
saving=(--save_checkpoints_steps 5 --keep_checkpoint_max 0 --save_summary_steps 1)

# --- Equal trainings
run_ok train way --train_steps 20 --num_gpus 2 "${saving[@]}"
run_ok train shards --train_steps 20 --num_gpus 2 --parameter_server_count 3 --num_threads 2 "${saving[@]}"
run_ok belfry bisect way shards
equal "equal, with other shards" "$(head -n 2 out.txt)" "equal
equal up to step 20"
check "with equal curves" grep -qE '^[1-9][0-9]* points of curves are equal$' out.txt
run_ok belfry bisect way/ckpt-00000010 shards
equal "a checkpoint, and that of its step" "$(cat out.txt)" equal
capture belfry bisect way/ckpt-00000010 shards/ckpt-00000020
equal "exit code of two steps" "$code" 1
check "both steps are named" grep -qE '^steps 10 and 20: .* differs at element ' out.txt
capture belfry bisect way/ckpt-00000010 shards/ckpt-00000020 --json
check "also as JSON" grep -qE '"step":null,.*"step_a":10,"step_b":20,.*"shape":\[32\],"indices":\[[0-9]+\]' out.txt
mkdir few && cp -r way/ckpt-00000005 few
run_fails 3 'few has no checkpoint of step 10, which way/ckpt-00000010 is; it has 5' belfry bisect way/ckpt-00000010 few

# --- Settings that changed on the way
run_ok train parting --train_steps 10 --num_gpus 2 "${saving[@]}"
run_ok train parting --train_steps 20 --num_gpus 2 "${saving[@]}" --learning_rate 0.01 --allow_changes
capture belfry bisect way parting
equal "exit code of trainings that differ" "$code" 1
check "settings come first" sh -c "head -n 1 out.txt | grep -qx 'settings: learning_rate was 0.001 and is 0.01'"
check "the newest equal step" grep -qx 'equal up to step 10' out.txt
check "the step, the tensor and both values" \
    grep -qE '^step 15: dense_0/bias differs at element [0-9]+: [-0-9.e]+ and [-0-9.e]+$' out.txt
check "a slot" grep -qE '^  dense_0/kernel/adam/m +[0-9]+ of 2048 elements, at most [0-9.e-]+ apart \([0-9]+ ulps\)$' out.txt
check "the curve parts before" grep -qE '^curve learning_rate: equal up to step 10, differs at step 11: 0.001' out.txt
check "and the advice is about that step" grep -q '^next: the step from version 10 to 11 differs' out.txt
capture belfry bisect way parting --json
check "the same as JSON" grep -qE '"step":15,"equal_step":10,"settings":"learning_rate' out.txt
check "with a curve" grep -qE '"curve":\{"tag":"learning_rate","equal_step":10,"step":11,' out.txt
rm parting/events.out.*
capture belfry bisect way parting
check "without curves between checkpoints" grep -q '^next: to find the step from 10 to 15, copy ckpt-00000010' out.txt
run_ok belfry bisect way/ckpt-00000010 parting/ckpt-00000010
capture belfry bisect way/ckpt-00000015 parting/ckpt-00000015
equal "exit code of checkpoints that differ" "$code" 1
check "checkpoints have no advice" test "$(grep -c '^next' out.txt)" -eq 0

run_ok train seeded --train_steps 5 --seed 2 --num_gpus 2 "${saving[@]}"
capture belfry bisect way seeded
check "the seed is named" grep -q '^settings: seed was 1 and is 2; ' out.txt
check "they differ from the beginning" grep -qE '^step 0: dense_0/kernel differs at element 0 \[0, 0\]: ' out.txt
check "which the advice says" grep -qx 'next: they begin with other values: another seed, initializer or warm start' out.txt

# --- A fault of one process
cluster() { # MODEL FLAG…
    run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --job_dir "$1" -- "${digits[@]}" --lane grpc --train_steps 20 "${saving[@]}" "${@:2}"
}
awk -F, -v OFS=, 'NR > 1 { $1 = 7 } 1' "$TRAIN_CSV" >bright.csv # the weights of pixel 0 have an effect
run_ok train bright --train_files bright.csv --train_steps 20 --num_gpus 2 "${saving[@]}"
BELFRY_FAULT=flip#7@worker-1 cluster flipped --train_files bright.csv
capture belfry bisect bright flipped
equal "exit code after a flip" "$code" 1
check "no settings" test "$(grep -c '^settings' out.txt)" -eq 0
check "the newest equal step before it" grep -qx 'equal up to step 5' out.txt
check "and the first that differs" grep -qE '^step 10: ' out.txt
check "the loss narrows it down" grep -qE '^curve loss: equal up to step [67], differs at step [78]: ' out.txt
check "advice goes up to that step" grep -qE '^next: to find the step from 5 to [78], copy ckpt-00000005 ' out.txt

# --- Missing and damaged checkpoints
mkdir apart && cp -r way/ckpt-00000010 way/ckpt-00000020 apart
mkdir other && cp -r parting/ckpt-00000005 parting/ckpt-00000015 other
run_fails 3 'no step of which both have a checkpoint: |apart has 10, 20|other has 5, 15' belfry bisect apart other
cp bright/events.out.* apart
cp flipped/events.out.* other
capture belfry bisect apart other
equal "curves tell more" "$code" 1
check "the curve that differs" grep -qE '^curve loss: (equal up to step [0-9]+, )?differs at step [0-9]+: ' out.txt
rm apart/events.out.*
rm -r other && mkdir other && cp -r way/ckpt-00000005 way/ckpt-00000010 other
run_ok belfry bisect apart other
check "the rest is named" grep -qx 'the newest checkpoints are of steps 20 and 10' out.txt
mkdir again back # equal checkpoints after curves that differ
cp -r way/ckpt-* bright/events.out.* again
cp -r way/ckpt-* flipped/events.out.* back
capture belfry bisect again back
equal "exit code of curves that differ" "$code" 1
check "equal again" grep -qx 'equal up to step 5, and again at step 20' out.txt
check "advice from before the curve" grep -qE '^next: to find the step from 5 to [78], copy ckpt-00000005 ' out.txt
mkdir loose && cp -r way/ckpt-00000010 loose
run_ok train loose --train_steps 15 --num_gpus 2 "${saving[@]}" --mode async --allow_changes
mkdir loose.other && cp -r loose/ckpt-* flipped/events.out.* loose.other
capture belfry bisect loose loose.other
check "a mode explains a curve" grep -qx 'next: in mode async the bits depend on timing (docs/modes.md)' out.txt
cp -r parting hurt
truncate -s -1 hurt/ckpt-00000010/manifest.json
capture belfry bisect way hurt
equal "exit code beside a damaged manifest" "$code" 1
check "a damaged step is left out" grep -q 'step 10 is left out: .*hurt/ckpt-00000010/manifest.json' err.txt
check "the others tell" grep -qx 'equal up to step 5' out.txt
printf 'x' | dd of="$(echo hurt/ckpt-00000015/shard-00000-*)" bs=1 seek=3000 conv=notrunc status=none
capture belfry bisect way hurt
equal "exit code with a damaged shard" "$code" 1
check "the last equal step stays" grep -qx 'equal up to step 5' out.txt
check "so does the step that was left out" grep -qx 'step 10 cannot be read and is left out' out.txt
check "the damage is named" \
    grep -qE '^step 15: the values cannot be compared: .*hurt/ckpt-00000015/shard-00000-' out.txt
check "so do the settings" grep -q '^settings: learning_rate was' out.txt
check "and the advice" grep -q '^next: to find the step from 5 to 15, copy ckpt-00000005' out.txt
capture belfry bisect way hurt --json
check "the same as JSON" grep -qE '"left_out":1,"step":15,"equal_step":5,.*"unread":".*shard-00000-' out.txt
run_fails 3 'there is no folder gone' belfry bisect way gone
mkdir hollow
run_fails 3 'hollow holds no checkpoint' belfry bisect hollow way
run_fails 2 'expected two folders' belfry bisect way

# --- Tables: full beside deltas, another number of shards, another row
make_clicks
rows=("${clicks[@]}" --train_batch_size 16 --train_steps 15 "${saving[@]}" --num_gpus 2)
run_ok belfry train_and_evaluate --model_dir full "${rows[@]}"
run_ok belfry train_and_evaluate --model_dir deltas "${rows[@]}" --full_checkpoint_every 3 --parameter_server_count 2
run_ok belfry bisect full deltas
equal "deltas" "$(head -n 1 out.txt)" equal
sed '200s/,.*,/,i9999,0.5,/' clicks-train.csv >other.csv
run_ok belfry train_and_evaluate --model_dir rows "${rows[@]}" --train_files other.csv
capture belfry bisect deltas rows
equal "exit code of tables" "$code" 1
check "the data differ" grep -q '^settings: input (the data' out.txt

# --- In an object store
mkdir -p store/runs && cp -r bright flipped store/runs
capture belfry bisect bright flipped
cp out.txt here.txt
store_begin
capture belfry bisect s3://runs/bright s3://runs/flipped
equal "exit code in a store" "$code" 1
check "the same is found there" cmp -s out.txt here.txt
run_ok belfry bisect s3://runs/bright/ckpt-00000005 s3://runs/flipped
finish
