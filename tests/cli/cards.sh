#!/usr/bin/env bash
# Towers on GPUs, which a stand-in for CUDA plays (tests/support/cuda_double). The bits are the processor's,
# whatever the order of streams. Other cases: too little memory, a lost GPU, and requests that cannot be met.
# usage: cards.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export BELFRY_CUDA_PATH=$BUILD/tests/cuda_double XDG_CACHE_HOME=${BELFRY_TEST_CACHE:-$BUILD/tests/cuda_double/cache}
settings=(--train_steps 12 --train_batch_size 16)

capture train none "${settings[@]}" --device cuda
if grep -q "BELFRY_CUDA=OFF" err.txt; then
    run_fails 3 "built without CUDA" train none "${settings[@]}" --device cuda
    run_ok train cpu "${settings[@]}" --num_gpus 2
    check "it says so" grep -q "no GPU is used.*built without CUDA" err.txt
    finish
    exit 77
fi
run_ok train cpu "${settings[@]}"
run_ok train one "${settings[@]}" --num_gpus 1
equal "one GPU, and the processor" "$(digest one)" "$(digest cpu)"
for way in "4 cpu" "8 cuda" "12 cpu"; do # from one to the other and back
    read -r steps device <<<"$way"
    run_ok train moved "${settings[@]}" --train_steps "$steps" --num_gpus 1 --device "$device"
done
equal "a training that moves" "$(digest moved)" "$(digest one)"
run_ok train cpus "${settings[@]}" --num_gpus 2 --device cpu
bits=$(digest cpus)
for seed in 2 3; do
    run_ok env CUDA_DOUBLE_SEED=$seed "$BUILD/tools/belfry" train_and_evaluate "${digits[@]}" "${settings[@]}" \
        --num_gpus 2 --model_dir "two-$seed"
    equal "two GPUs, order $seed" "$(digest "two-$seed")" "$bits"
done
run_ok train shared "${settings[@]}" --num_gpus 2 --gpus 1 --virtual_devices
equal "two towers that share a GPU" "$(digest shared)" "$bits"
run_ok train mixed "${settings[@]}" --num_workers 2 --device cuda
equal "two workers of one GPU each" "$(digest mixed)" "$bits"
run_fails 1 "need at least|but may take only 1.0 MiB" train tight "${settings[@]}" --num_gpus 1 --hidden_units 1024 \
    --train_batch_size 512 --activation_memory 1
run_ok train limited "${settings[@]}" --num_gpus 2 --hidden_units 256,256 --activation_memory 1
run_ok train unlimited "${settings[@]}" --num_gpus 2 --device cpu --hidden_units 256,256
equal "with a limit of memory" "$(digest limited)" "$(digest unlimited)"

# Evaluations and predictions: the same numbers, the same lines.
asked=(--eval_files "$EVAL_CSV" --feature_scale 0.0625 --hidden_units 32 --model_dir one)
for device in cpu cuda; do
    run_ok belfry evaluate "${asked[@]}" --device $device
    cp out.txt "evaluated-$device"
    run_ok belfry predict "${asked[@]}" --device $device
    cp out.txt "predicted-$device"
done
check "evaluations" cmp <(grep -v seconds evaluated-cpu) <(grep -v seconds evaluated-cuda)
check "predictions" cmp predicted-cpu predicted-cuda

# Parameters are stored on the GPUs where possible. The bits are the same with every kind of pass, with
# checkpoints between, and after a move to the process and back.
run_ok train said "${settings[@]}" --num_gpus 2
check "that is the default" grep -q "parameters are on 2 GPUs and are updated there" err.txt
run_ok train reported "${settings[@]}" --num_gpus 2 --report
check "the report has them" grep -q '<td>cuda:1</td><td class="n">worker 0</td><td class="n">1</td>' reported/report.html
export CUDA_DOUBLE_CHECKS=0
passes=("--optimizer momentum --clip_value 0.01" "--optimizer adam --clip_global_norm 0.1 --moving_average_decay 0.9"
    "--optimizer lamb --weight_decay 0.01" "--optimizer ftrl --learning_rate 0.1 --ftrl_l1 0.01 --accumulate_steps 3")
for pass in "${!passes[@]}"; do
    [ "$pass" -eq 1 ] || ! spares "$pass" || continue
    read -r -a words <<<"${passes[$pass]}"
    for where in cpu cuda; do
        run_ok train "$where-$pass" "${settings[@]}" --hidden_units 90,70 --num_gpus 2 --save_checkpoints_steps 5 \
            "${words[@]}" --update_device "$where"
        grep "^loss" out.txt >"$where-evaluated"
    done
    equal "${passes[$pass]}" "$(digest "cuda-$pass")" "$(digest "cpu-$pass")"
    check "${passes[$pass]}, evaluated" cmp cpu-evaluated cuda-evaluated
done
for way in "5 cuda" "7 cpu" "12 cuda"; do
    read -r steps where <<<"$way"
    run_ok train between "${settings[@]}" --hidden_units 90,70 --num_gpus 2 --train_steps "$steps" \
        --optimizer adam --clip_global_norm 0.1 --moving_average_decay 0.9 --update_device "$where"
done
equal "parameters that move" "$(digest between)" "$(digest cpu-1)"
unset CUDA_DOUBLE_CHECKS
asked=(--update_device cuda)
run_fails 2 "update_device is cuda|there are several workers" train refused "${settings[@]}" --num_workers 2 \
    --device cuda "${asked[@]}"
run_fails 2 "update_device is cuda|there are several shards" train refused "${settings[@]}" --num_gpus 1 \
    --parameter_server_count 2 "${asked[@]}"
run_fails 2 "update_device is cuda|towers run on the processor" train refused "${settings[@]}" "${asked[@]}"
run_fails 2 "update_device|auto" train refused "${settings[@]}" --update_device gpu
run_fails 2 "update_device is cuda|in a job shards update them" "$BUILD/tools/belfry" local train --distributed \
    --worker_count 2 --job_dir refused -- "${digits[@]}" "${settings[@]}" --num_gpus 1 "${asked[@]}"

# Processes of a job: each worker has a separate GPU, and a killed one is replaced.
run_ok env BELFRY_FAULT=crash:tower_step#5@worker-1 "$BUILD/tools/belfry" local train --distributed \
    --worker_count 2 --parameter_server_count 1 --job_dir job -- "${digits[@]}" "${settings[@]}" --num_gpus 1
equal "a job of two workers, one of them killed" "$(digest job)" "$bits"
check "it was killed" grep -q "killed on purpose" job/logs/worker-1.0.log

# The machine's GPUs.
run_ok belfry doctor
check "both GPUs are there" test "$(grep -c '^ok *gpu .*CUDA double [01], 256.0 MiB, compute capability 9.0' out.txt)" -eq 2
check "and the libraries" grep -q '^ok *gpu_math .*cuBLASLt 13.0, cuDNN 9.1' out.txt
run_ok env CUDA_DOUBLE_DEVICES=0 "$BUILD/tools/belfry" doctor
check "having none is not an error" grep -q '^ok *gpu .*none: the CUDA driver finds no GPU' out.txt
run_ok belfry version
check "the build's GPU support" grep -q '^GPUs by CUDA' out.txt

# Other models: convolutions and moving statistics, exchanges of all replicas, recurrent layers, random
# numbers, bf16.
export CUDA_DOUBLE_CHECKS=0
few=(--train_steps 4 --train_batch_size 16 --num_gpus 2)
models=("cnn --filters 20,16 --window 3 --dense_units 24 --dropout 0.3" "resnet --blocks 1 --width 8 --batch_norm sync"
    "gru --recurrent_units 12 --sequence_width 8" "lstm --recurrent_units 12 --sequence_width 8 --precision bf16")
for number in "${!models[@]}"; do
    ! spares "$number" || continue
    model=${models[number]}
    read -r -a words <<<"$model"
    for device in cpu cuda; do
        digits=("${any_digits[@]}" --model "${words[@]}")
        run_ok train "$device-${words[0]}" "${few[@]}" --device $device
    done
    equal "$model" "$(digest "cuda-${words[0]}")" "$(digest "cpu-${words[0]}")"
done
unset CUDA_DOUBLE_CHECKS
make_clicks
for device in cpu cuda; do
    run_ok belfry train_and_evaluate "${clicks[@]}" --train_batch_size 32 "${few[@]:0:2}" --num_gpus 2 --device $device \
        --model_dir "clicks-$device"
done
equal "tables" "$(digest clicks-cuda)" "$(digest clicks-cpu)"

# Fast arithmetic: the same bits each time and for any assignment, near the processor's. All processes of a
# training must share the setting, and it always needs a GPU.
export CUDA_DOUBLE_CHECKS=0
digits=("${any_digits[@]}" --model cnn --filters "20,16" --window 3 --dense_units 24)
loss() {
    awk '$1 == "loss" { print $2 }' out.txt
}
is_near() { # LOSS LOSS
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 0.02 && b - a < 0.02) }'
}
run_ok train exact "${few[@]}" --device cpu
exact=$(loss)
maths=(tf32 f32 bf16)
for number in "${!maths[@]}"; do
    ! spares "$number" || continue
    math=${maths[number]}
    run_ok train "$math" "${few[@]}" --gpu_math "$math"
    check "$math: $(loss) is near $exact" is_near "$(loss)" "$exact"
    run_ok train "$math-again" "${few[@]:0:4}" --num_workers 2 --gpu_math "$math"
    equal "$math twice" "$(digest "$math-again")" "$(digest "$math")"
    check "$math has other bits" test "$(digest "$math")" != "$(digest exact)"
done
run_fails 2 "gpu_math was tf32 and is not set" train tf32 "${few[@]}" --train_steps 6
run_fails 2 "gpu_math was tf32 and is bf16" train tf32 "${few[@]}" --train_steps 6 --gpu_math bf16
run_ok train tf32 "${few[@]}" --train_steps 6 --allow_changes --device cpu
run_fails 2 "gpu_math|device is cpu" train refused "${few[@]}" --gpu_math tf32 --device cpu
run_fails 2 "gpu_math|exact" train refused "${few[@]}" --gpu_math fp8
run_fails 3 "finds no GPU" env CUDA_DOUBLE_DEVICES=0 "$BUILD/tools/belfry" train_and_evaluate "${digits[@]}" "${few[@]}" \
    --gpu_math tf32 --model_dir refused
run_fails 2 "cuBLASLt 8|cuDNN 8|12.0 and 9.0 or newer" env CUDA_DOUBLE_OLD_LIBRARIES=1 "$BUILD/tools/belfry" \
    train_and_evaluate "${digits[@]}" "${few[@]}" --gpu_math tf32 --model_dir refused
digits_for dnn
unset CUDA_DOUBLE_CHECKS

# Too few GPUs, no GPU, and invalid lists.
run_fails 1 "there are 2, for 3 towers|virtual_devices" train refused "${settings[@]}" --num_gpus 3
run_fails 1 "there are 1, for 2 towers" train refused "${settings[@]}" --num_gpus 2 --gpus 1
run_fails 1 "there are 2, for 1 tower, after 2 of other workers" env CUDA_VISIBLE_DEVICES=0,1 "$BUILD/tools/belfry" \
    train_and_evaluate "${digits[@]}" "${settings[@]}" --num_gpus 1 --num_workers 3 --model_dir refused
run_fails 2 "gpus says which GPUs|hint: num_gpus" train refused "${settings[@]}" --gpus 0
run_fails 2 "virtual_devices says which GPUs|hint: num_gpus" train refused "${settings[@]}" --virtual_devices
run_fails 2 "0,2|0,x" train refused "${settings[@]}" --num_gpus 1 --gpus 0,x
run_fails 1 "GPU 5|there are 2" train refused "${settings[@]}" --num_gpus 1 --gpus 5
run_fails 2 "device|auto" train refused "${settings[@]}" --device tpu
run_fails 2 "cuda:0|synchronous" train refused "${settings[@]}" --num_gpus 1 --executor async
export CUDA_DOUBLE_DEVICES=0
run_fails 3 "finds no GPU" train refused "${settings[@]}" --device cuda
run_ok train without "${settings[@]}" --num_gpus 2
check "it says so" grep -q "no GPU is used, as the CUDA driver finds no GPU: " err.txt
equal "without GPUs" "$(digest without)" "$bits"
run_ok belfry local train --distributed --job_dir without-job -- "${digits[@]}" "${settings[@]}" --num_gpus 1
check "the same in a job" grep -q "^no GPU is used, as the CUDA driver finds no GPU: " err.txt
equal "without GPUs in a job" "$(digest without-job)" "$bits"
unset CUDA_DOUBLE_DEVICES

# Parameters on several GPUs are compared. A bit that flips between two GPUs is found if it belongs to a
# parameter. (A flipped gradient goes into an update that both have.)
compared=(train_and_evaluate "${digits[@]}" "${settings[@]}" --num_gpus 2 --save_checkpoints_steps 1)
for number in 4 5; do
    flip=(env "CUDA_DOUBLE_FLIP=1:$number" CUDA_DOUBLE_CHECKS=0 "$BUILD/tools/belfry" "${compared[@]}")
    capture "${flip[@]}" --check_replicas 1 --model_dir "flipped-$number"
    echo "$code" >"code-$number"
    cp err.txt "err-$number"
    run_ok "${flip[@]}" --model_dir "passed-$number"
done
check "it is found" grep -q "step 3: cuda:1 has other parameters than cuda:0: their hash is .*, expected " err-[45]
equal "it is found once, with an exit code" "$(sort code-4 code-5 | tr '\n' ' ')" "0 3 "
found=flipped-$(grep -l "has other parameters" err-4 err-5 | sed 's/err-//')
saved=("$found"/ckpt-*)
check "nothing is saved after it" test "$((10#${saved[-1]##*-}))" -le 3
# Steps of two passes, which include statistics, are compared only once.
words=(--model resnet --blocks 1 --width 8 --clip_global_norm 0.1 --train_steps 4 --num_gpus 2)
run_ok belfry train --train_files "$TRAIN_CSV" --feature_scale 0.0625 --train_batch_size 8 --num_threads 1 --no_report \
    "${words[@]}" --check_replicas 1 --model_dir compared
check "on the GPUs" grep -q "parameters are on 2 GPUs" err.txt

# Concurrent trainings get successive GPUs, also as processes of jobs. If there are more trainings, they
# share.
study=(belfry cross_validate "${digits[@]:0:2}" --feature_scale 0.0625 --hidden_units 32 "${settings[@]}" --folds 3 --json)
run_ok "${study[@]}" --model_dir folds-cpu
cp out.txt folds.txt
export CUDA_DOUBLE_DEVICES=4 CUDA_DOUBLE_CHECKS=0
run_ok "${study[@]}" --model_dir folds --device cuda --parallel 2
check "GPUs change no fold" cmp out.txt folds.txt
check "the first begins with the first" grep -q "place 0 of 2 .*cuda:0 on" folds/fold-0/log.txt
check "the second begins after it" grep -q "place 1 of 2 .*cuda:2 on" folds/fold-1/log.txt
check "the third reuses a free place" grep -qE "place (0 of 2 .*cuda:0|1 of 2 .*cuda:2) on" folds/fold-2/log.txt
echo 'workers: {count: 2}' >two.yaml
CUDA_DOUBLE_DEVICES=3 run_ok "${study[@]}" --model_dir folds-jobs --config two.yaml --num_gpus 1 --parallel 2
check "so do jobs" grep -rq "place 1 of 2 .*cuda:1 on" folds-jobs/fold-1
CUDA_DOUBLE_DEVICES=2 run_ok "${study[@]}" --model_dir folds-turns --config two.yaml --num_gpus 1
check "by default they take turns" test -z "$(cat folds-turns/*/log.txt | grep "side by side")"
CUDA_DOUBLE_DEVICES=1 run_ok "${study[@]}" --model_dir folds-shared --device cuda --parallel 3
check "they share one" grep -q "place 2 of 3 .*cuda:0 on" folds-shared/fold-2/log.txt
check "shared GPUs change no fold" cmp out.txt folds.txt
CUDA_DOUBLE_DEVICES=1 run_ok "${study[@]}" --model_dir folds-single --device cuda
check "it trains on the GPU" grep -q "parameters are on 1 GPU" folds-single/fold-2/log.txt
check "by default each has a separate one" test -z "$(cat folds-single/*/log.txt | grep "side by side")"
CUDA_DOUBLE_DEVICES=2 run_ok belfry tune "${digits[@]}" "${settings[@]}" --trials 2 --try "num_gpus=2|2" --model_dir tuned
check "each has as many as it may take" test -z "$(cat tuned/*/log.txt | grep "side by side")"
run_ok "${study[@]}" --model_dir folds-single --device cpu --gpus "" # that changes no model
check "finished ones report the same again" cmp out.txt folds.txt
unset CUDA_DOUBLE_DEVICES CUDA_DOUBLE_CHECKS

# A job is not scaled to more workers than there are GPUs.
export XDG_RUNTIME_DIR=$work XDG_STATE_HOME=$work/state
run_ok env BELFRY_FAULT=slow:tower_step#10 "$BUILD/tools/belfry" jobs submit training grows --config two.yaml \
    --job_dir grows -- "${digits[@]}" "${settings[@]}" --train_steps 3000 --num_gpus 1 --elastic_rescale
await_state grows RUNNING
run_fails 2 "job grows: 3 workers have 3 towers, and here are 2 GPUs for them" belfry jobs scale grows --worker_count 3
run_ok belfry jobs scale grows --worker_count 1
run_ok belfry jobs cancel grows
await_state grows "CANCELLED|SUCCEEDED"

# Too little memory is an error that names the memory's use; so is a lost GPU. Saved data stay.
export CUDA_DOUBLE_MEMORY=60000
run_fails 1 "largest values|activations need|free" train small "${settings[@]}" --num_gpus 1 --hidden_units 512
CUDA_DOUBLE_MEMORY=200000 run_ok train roomy "${settings[@]}" --num_gpus 1 --hidden_units 512
check "an evaluation without room runs on the processor" grep -q "this evaluates on the processor" err.txt
check "parameters do not stay on the GPU either" \
    grep -q "parameters stay in the memory of the process: .*cuda:0: .* need" err.txt
CUDA_DOUBLE_MEMORY=500000 run_ok train roomier "${settings[@]}" --num_gpus 1 --hidden_units 512
check "they leave room for programs" \
    grep -q "parameters stay in the memory of the process: cuda:0: with them there the programs .* may need" err.txt
equal "with little memory" "$(digest roomier)" "$(digest roomy)"
CUDA_DOUBLE_MEMORY=500000 run_fails 1 "update_device cpu|cuda:0" train tight-asked "${settings[@]}" --num_gpus 1 \
    --hidden_units 512 --train_batch_size 64 --update_device cuda
CUDA_DOUBLE_MEMORY=200000 run_fails 1 "fast arithmetic|free" train rough "${settings[@]}" --num_gpus 1 --hidden_units 512 \
    --gpu_math tf32
unset CUDA_DOUBLE_MEMORY

# A limit of memory for all towers on a GPU together. An evaluation that does not fit runs on the processor.
export CUDA_DOUBLE_CHECKS=0
wide=("${settings[@]:2}" --train_steps 2 --hidden_units 2048)
run_fails 1 "cuda:1: activations need|of 1.0 MiB, the memory_limit, 7|are taken|largest values are dense_1/" train within \
    "${wide[@]}" --num_gpus 2 --gpus 1 --virtual_devices --memory_limit 1
run_ok train within "${wide[@]}" --num_gpus 2 --memory_limit 1
check "an evaluation within the limit runs on the processor" \
    grep -q "but of 1.0 MiB, the memory_limit, .* are taken.*: this evaluates on the processor" err.txt
run_ok train without-limit "${wide[@]}" --num_gpus 2 --memory_limit 8
check "with more memory it runs on the GPU" test -z "$(grep "on the processor" err.txt)"
equal "within a limit" "$(digest within)" "$(digest without-limit)"
run_ok train within "${wide[@]}" --train_steps 3 --num_gpus 2 # a checkpoint does not store the limit
run_fails 2 "memory_limit|no tower is to be on one" train refused "${settings[@]}" --memory_limit 1
run_fails 2 "memory_limit|no tower is to be on one" train refused "${settings[@]}" --num_gpus 2 --device cpu --memory_limit 1
unset CUDA_DOUBLE_CHECKS
run_fails 1 "CUDA cannot" env CUDA_DOUBLE_LOSE=0:150 "$BUILD/tools/belfry" train_and_evaluate "${digits[@]}" \
    "${settings[@]}" --num_gpus 1 --save_checkpoints_steps 2 --model_dir lost
check "a checkpoint is there" test -e lost/ckpt-00000002
run_ok train lost "${settings[@]}" --num_gpus 1
equal "resumed after it" "$(digest lost)" "$(digest one)"
# A process of a job ends with its GPU. Another one replaces it, as often as that happens.
run_ok env CUDA_DOUBLE_LOSE=1:150 "$BUILD/tools/belfry" local train --distributed --worker_count 2 --job_dir replaced -- \
    "${digits[@]}" "${settings[@]}" --num_gpus 1 --save_checkpoints_steps 2
check "it is started again" grep -q 'worker 1 .*ended with exit code 134.*cuda:1.*started again' err.txt
equal "with a replacement" "$(digest replaced)" "$bits"
run_ok env CUDA_DOUBLE_LOSE=0:60 "$BUILD/tools/belfry" local train --distributed --worker_count 2 --job_dir evaluates -- \
    "${digits[@]}" "${settings[@]}" --num_gpus 1 --save_checkpoints_steps 2
check "so is the evaluating process" grep -q 'master .*ended with exit code 134.*cuda:0.*started again' err.txt
equal "with a replaced evaluator" "$(digest evaluates)" "$bits"
run_ok env CUDA_DOUBLE_DEVICES=3 CUDA_DOUBLE_LOSE=2:120 "$BUILD/tools/belfry" local train --distributed \
    --worker_count 3 --min_workers 1 --restarts 0 --job_dir spared -- "${digits[@]}" "${settings[@]}" --num_gpus 1
check "or the job continues without it" grep -q 'worker 2 is not waited for' err.txt
# A GPU that hangs counts as lost after a quarter of the stall timeout.
run_fails 1 "cuda:0: the GPU has not done its work within 1 s" env CUDA_DOUBLE_HANG=0:100 "$BUILD/tools/belfry" \
    train_and_evaluate "${digits[@]}" "${settings[@]}" --num_gpus 1 --stall_timeout 4 --model_dir hangs
for hang in 0:106 1:134 1:190; do # its copies access the other's memory
    for where in cpu cuda; do
        run_fails 1 "cuda:${hang%:*}: |the GPU has not done its work within 1 s" env CUDA_DOUBLE_HANG=$hang \
            CUDA_DOUBLE_CHECKS=0 "$BUILD/tools/belfry" train_and_evaluate "${digits[@]}" "${settings[@]}" --num_gpus 2 \
            --hidden_units 90,70 --clip_global_norm 0.1 --stall_timeout 4 --update_device $where --model_dir "hangs-$where"
    done
done
run_ok env CUDA_DOUBLE_HANG=1:150 "$BUILD/tools/belfry" local train --distributed --worker_count 2 --job_dir unhung -- \
    "${digits[@]}" "${settings[@]}" --num_gpus 1 --save_checkpoints_steps 2 --stall_timeout 16
check "a hanging one is replaced" grep -q 'worker 1 .*ended with exit code 134.*cuda:1.*started again' err.txt
equal "with a replacement of a hanging one" "$(digest unhung)" "$bits"

# A file in the cache of kernels that is torn, or of another kernel, is made again.
export XDG_CACHE_HOME=$PWD/cache
run_ok train first "${settings[@]}" --num_gpus 1
for file in cache/belfry/cuda/*; do
    truncate -s -7 "$file"
done
run_ok train again "${settings[@]}" --num_gpus 1
equal "kernels made again" "$(digest again)" "$(digest one)"
kernels=(cache/belfry/cuda/*)
for file in "${kernels[@]:1}"; do
    cp "${kernels[0]}" "$file"
done
run_ok train other "${settings[@]}" --num_gpus 1
equal "kernels of other names" "$(digest other)" "$(digest one)"
finish
