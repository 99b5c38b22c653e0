#!/usr/bin/env bash
# A cluster's processes give the bits of one process: with any number of workers, towers and shards, with
# messages delayed, repeated and reordered and streams broken, over unix sockets and over TCP.
# usage: cluster_bits.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# Dropout, Adam and clipping by global norm: everything that depends on replicas and shards.
plain=(--train_steps 30 --clip_global_norm 1 --save_checkpoints_steps 10 --eval_every_steps 15 --train_batch_size 8)
settings=("${plain[@]}" --dropout 0.2)

cluster() { # MODEL_DIR WORKERS TOWERS SHARDS [flags of local train]
    local model_dir=$1 workers=$2 towers=$3 shards=$4
    shift 4
    belfry local train --distributed --worker_count "$workers" --parameter_server_count "$shards" \
        --job_dir "$model_dir" "$@" -- "${digits[@]}" "${settings[@]}" --num_gpus "$towers"
}

declare -A alone
for replicas in 1 2 4 6 8; do # in one process, on one worker
    run_ok train "alone-$replicas" "${settings[@]}" --num_gpus "$replicas"
    alone[$replicas]=$(digest "alone-$replicas")
done

for shape in "1 1 1" "1 2 3" "2 1 1" "2 2 2" "2 1 3" "4 1 2" "4 2 1"; do # workers, towers, shards
    read -r workers towers shards <<<"$shape"
    name=$workers-$towers-$shards
    run_ok cluster "$name" "$workers" "$towers" "$shards"
    equal "digest of $name" "$(digest "$name")" "${alone[$((workers * towers))]}"
done

run_ok cluster none 2 2 0 # a shard in every worker
equal "digest without parameter servers" "$(digest none)" "${alone[4]}"
run_ok train none-alone "${settings[@]}" --num_workers 2 --num_gpus 2 --parameter_server_count 0
check "one process has the same number of shards" grep -q '2 workers, 4 replicas of batch 8, 2 shards' err.txt
equal "digest of the same in one process" "$(digest none-alone)" "${alone[4]}"
run_ok train accumulated "${settings[@]}" --num_workers 2 --accumulate_steps 3
equal "digest of accumulated gradients" "$(digest accumulated)" "${alone[6]}"
settings+=(--accumulate_steps 2)
run_ok cluster accumulating 2 2 1
equal "digest of a cluster that accumulates" "$(digest accumulating)" "${alone[8]}"
run_ok cluster planned 2 2 1 --dry_run
check "a plan counts the replicas" grep -q '8 replicas' out.txt
settings=("${settings[@]:0:${#settings[@]}-2}")
run_fails 2 "accumulate_steps is 2" train refused --accumulate_steps 2 --mode async
run_fails 2 "accumulate_steps is 2" train refused --accumulate_steps 2 --replicas_to_aggregate 2
run_ok cluster tcp 2 1 2 --tcp
equal "digest over TCP" "$(digest tcp)" "${alone[2]}"
run_ok belfry train_and_evaluate --config_file tcp/job.yaml --model_dir again
equal "job.yaml of a cluster in one process" "$(digest again)" "${alone[2]}"
run_fails 2 "another run trains in tcp" flock tcp/job.lock "$BUILD/tools/belfry" local train --quiet --distributed \
    --job_dir tcp -- "${digits[@]}" "${settings[@]}" --train_steps 40
run_ok cluster evaluator 2 1 1 --evaluator_count 1
equal "digest with an evaluator" "$(digest evaluator)" "${alone[2]}"
check "the evaluator's result is shown" grep -q "eval at step 30: loss" err.txt
grep -E '^(loss|batch_mean_loss|accuracy|examples) ' out.txt >evaluator.txt
run_ok belfry evaluate --model_dir evaluator --eval_files "$EVAL_CSV"
equal "and is the job's result" "$(cat evaluator.txt)" "$(grep -E '^(loss|batch_mean_loss|accuracy|examples) ' out.txt)"
capture belfry local train --distributed --quiet --job_dir missing --evaluator_count 1 -- "${digits[@]}" \
    --eval_files missing.csv --train_steps 1000000
check "unreadable data of the evaluator ends the job at once" test "$code" -ne 0
check "and is named" grep -q 'evaluator 0 .*: evaluation input: cannot open missing.csv' err.txt

# Every kind of model: convolutions, statistics of batches, sequences; with one thread and with two.
for model in "cnn --filters 4,6 --window 3 --dense_units 16" "resnet --blocks 1 --width 4" \
    "gru --recurrent_units 12 --sequence_width 8" "lstm --recurrent_units 12 --sequence_width 8"; do
    read -ra flags <<<"--model $model"
    digits_for "${flags[1]}"
    [ "${flags[1]}" != cnn ] || flags+=(--dropout 0.2)
    run_ok train "${flags[1]}" "${plain[@]}" "${flags[@]}" --num_gpus 4
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 \
        --job_dir "cluster-${flags[1]}" -- "${digits[@]}" "${plain[@]}" "${flags[@]}" --num_gpus 2 \
        --num_threads 2
    equal "digest of ${flags[1]}" "$(digest "cluster-${flags[1]}")" "$(digest "${flags[1]}")"
done

digits_for dnn
# A master that trains; the cluster file of the Quantiphi article, with three workers beside one.
echo "{master: {trains: true}, workers: {count: 1}, parameter_servers: {count: 0}}" >trains.yaml
cat >article.yaml <<'YAML'
scaleTier: CUSTOM
masterType: standard_p100
workerType: standard_p100
parameterServerType: complex_model_m
workerCount: 3
parameterServerCount: 1
YAML
from_file() { # FILE MODEL_DIR [training flags]
    local file=$1 model_dir=$2
    shift 2
    belfry local train --config "$file" --job_dir "$model_dir" -- "${digits[@]}" "${settings[@]}" "$@"
}
run_ok from_file trains.yaml trains
equal "digest of a master that trains" "$(digest trains)" "${alone[2]}"
run_ok from_file article.yaml article --num_gpus 1 --num_workers 3
equal "digest of the article's cluster" "$(digest article)" "${alone[4]}"

# TF_CONFIG: a chief, a worker, a ps and an evaluator, as another launcher starts them.
tensorflow() { # TYPE
    TF_CONFIG='{"cluster": {"chief": ["unix:'$work'/c"], "worker": ["unix:'$work'/w"], "ps": ["unix:'$work'/p"]},
        "task": {"type": "'$1'", "index": 0}}' train tf "${settings[@]}"
}
tensorflow worker >worker.txt 2>&1 &
tensorflow ps >ps.txt 2>&1 &
tensorflow evaluator >evaluator.txt 2>&1 &
run_ok tensorflow chief
wait
equal "digest of TF_CONFIG's cluster" "$(digest tf)" "${alone[2]}"
equal "the evaluator's last evaluation" "$(grep -E '^(global_step|loss|accuracy) ' evaluator.txt)" \
    "$(grep -E '^(global_step|loss|accuracy) ' out.txt)"
for writer in eval evaluator; do
    equal "event files of tf/$writer" "$(find "tf/$writer" -name 'events.out.tfevents.*' | wc -l)" 1
done

for fault in delay repeat reorder delay+repeat+reorder+break; do
    export BELFRY_FAULT=lane:$fault
    run_ok cluster "fault-$fault" 2 2 2
    unset BELFRY_FAULT
    equal "digest with lane:$fault" "$(digest "fault-$fault")" "${alone[4]}"
done

# Optimizers that parameter servers need more than numbers for, or that pass twice.
told() { # NAME [flags]: in one process and as a cluster of 2 workers and 2 shards
    local name=$1
    shift
    run_ok train "$name-alone" "${settings[@]}" --num_gpus 2 "$@"
    grep '^loss ' out.txt >alone.txt
    for what in "evaluation of $name" "$name, evaluated once more"; do # the second run trains nothing
        run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 \
            --job_dir "$name" -- "${digits[@]}" "${settings[@]}" "$@"
        equal "digest of $name" "$(digest "$name")" "$(digest "$name-alone")"
        equal "$what" "$(grep '^loss ' out.txt)" "$(cat alone.txt)"
    done
}
told words --schedule piecewise --boundaries 5,12 --rates 0.01,0.003,0.001 \
    --weight_decay 0.01 --lr_mult 'dense_0/*=0.1' --decay_mult '*/bias=0' --moving_average_decay 0.9
told restarts --schedule cosine_restarts --decay_steps 3 --t_mul 1.5 --m_mul 0.75
told formula --schedule formula --schedule_formula 'min(1, (step + 1) / 3) * 0.9 ^ step'
told lamb --optimizer lamb --clip_global_norm 0 --weight_decay 0.01 --learning_rate 0.01
told lars --optimizer lars --clip_global_norm 0 --lars_trust 0.01 --learning_rate 1

# The test can fail: sums in the order of arrival, and dividing twice, have other bits. With three replicas on
# each worker both make a difference.
run_ok cluster whole 2 3 2
equal "digest of 2 × 3 replicas" "$(digest whole)" "${alone[6]}"
for fault in sum_sequential divide; do
    export BELFRY_FAULT=$fault
    run_ok cluster "broken-$fault" 2 3 2
    unset BELFRY_FAULT
    check "BELFRY_FAULT=$fault goes unnoticed" test "$(digest "broken-$fault")" != "${alone[6]}"
done

finish
