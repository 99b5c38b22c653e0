#!/usr/bin/env bash
# Collectives inside a step across processes: the bits of one process, with and without shared memory, over
# disturbed lanes. A worker that dies between two exchanges of a step is replaced, and the step continues. If
# programs differ, the error names the place.
# usage: cluster_exchanges.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_RUNTIME_DIR=$work # sockets are below it

# Normalizes by mean and deviation of the batches of all replicas: three exchanges forward, three backward.
# Before that each replica subtracts a moving mean of its batches.
cat >exchanging.c <<'END'
#include <belfry/belfry.h>
static bel_value *whole(bel_graph *g, bel_value *x)
{
    static const int64_t batch[] = {0};
    bel_value *sum = bel_all_reduce(g, bel_reduce_sum(g, x, batch, 1, false), BEL_REDUCE_SUM);
    bel_value *ones = bel_reduce_mean(g, bel_add(g, bel_mul(g, x, bel_scalar(g, BEL_DTYPE_F32, 0)),
                                                 bel_scalar(g, BEL_DTYPE_F32, 1)), (int64_t[]){1}, 1, false);
    return bel_div(g, sum, bel_all_reduce(g, bel_reduce_sum(g, ones, NULL, 0, false), BEL_REDUCE_SUM));
}
static bel_status *model_fn(bel_model_context *c, bel_estimator_spec *s)
{
    bel_graph *g = bel_context_graph(c);
    const bel_estimator *e = bel_context_estimator(c);
    bel_value *h = bel_tanh(g, bel_dense(g, bel_context_only_feature(c), 24, "hidden"));
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *own = bel_variable(g, "own", &BEL_SHAPE(24), zeros, BEL_VARIABLE_REPLICA_MEAN);
    bel_value *mean = bel_reduce_mean(g, h, (int64_t[]){0}, 1, false), *tenth = bel_scalar(g, BEL_DTYPE_F32, 0.1);
    bel_assign_state(g, own, bel_add(g, own, bel_mul(g, bel_sub(g, mean, own), tenth)));
    h = bel_sub(g, h, own);
    if (bel_context_mode(c) == BEL_MODE_TRAIN) {
        bool other = bel_estimator_rank(e) == 1 && bel_estimator_param(e, "other", NULL) != NULL;
        bel_value *apart = bel_sub(g, h, whole(g, h));
        bel_value *square = whole(g, bel_mul(g, apart, apart));
        if (other) square = bel_all_reduce(g, square, BEL_REDUCE_MAX);
        h = bel_div(g, apart, bel_sqrt(g, bel_add(g, square, bel_scalar(g, BEL_DTYPE_F32, 1e-3))));
        if (!other) h = bel_mul(g, h, bel_all_reduce(g, bel_mean(g, bel_mul(g, h, h)), BEL_REDUCE_MEAN));
    }
    bel_value *logits = bel_dense(g, h, 10, "logits"), *labels = bel_context_labels(c);
    bel_predictions_set(s, bel_softmax(g, logits));
    if (labels != NULL) bel_loss_set(s, bel_mean(g, bel_softmax_cross_entropy(g, logits, labels)));
    const bel_optimizer momentum = {
        .size = sizeof momentum, .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.05, .momentum = 0.9};
    bel_optimizer_use(s, NULL, &momentum);
    return NULL;
}
BEL_PACKAGE(.name = "exchanging", .description = "", .model_fn = model_fn)
END
"${CC:-cc}" -shared -fPIC -I"$SOURCE/include" exchanging.c -o exchanging.so

# 1,438 records in batches of 16: in the last step some replicas have few examples, others none.
training=(--package ./exchanging.so --train_files "$TRAIN_CSV" --label_column digit --train_batch_size 16
    --num_epochs 1 --train_steps 40 --save_checkpoints_steps 10 --no_report
    --min_shard_bytes 0)
run_ok belfry train --model_dir alone "${training[@]}" --num_gpus 4
whole=$(digest alone)
run_ok belfry train --model_dir threads "${training[@]}" --num_workers 2 --num_gpus 2
equal "two workers of a process" "$(digest threads)" "$whole"

declare -A hit
survives() { # FAULT [flags]
    local point
    rm -rf cluster
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --job_dir cluster "${@:2}" -- "${training[@]}" --num_gpus 2
    equal "digest with $*" "$(digest cluster)" "$whole"
    while read -r point; do
        hit[$point]=$((${hit[$point]:-0} + 1))
    done < <(sed -n 's/^killed on purpose at //p' cluster/logs/*.log)
}
survives '' --parameter_server_count 1
survives '' --parameter_server_count 2 --tcp
survives '' --parameter_server_count 0
for words in delay repeat reorder delay+repeat+reorder; do
    survives "lane:$words" --parameter_server_count 1
    survives "lane:$words" --parameter_server_count 1 --tcp
done
survives lane:break --parameter_server_count 1 --tcp

# --- Kills between the exchanges of a step, and around them
for point in worker_exchanges@worker-0 worker_exchanges#5@worker-1 worker_exchanges#47@worker-0 worker_exchanges#48@worker-1 \
    worker_exchanges#131@worker-1 worker_exchanges#50 worker_sends_stats#12@worker-1 tower_step#15@worker-0 \
    shard_passes#20@ps-0; do
    survives "crash:$point" --parameter_server_count 2
    survives "crash:$point" --parameter_server_count 2 --tcp
done
check "workers died between exchanges" [ "${hit[worker_exchanges]:-0}" -ge 12 ]

# --- A worker is lost for good between two exchanges: the other plays its replicas, without an exchange
printf 'workers: {count: 2}\nlimits: {restarts: 0, min_workers: 1}\n' >once.yaml
for flags in --distributed --tcp; do
    rm -rf lost
    run_ok env BELFRY_FAULT=crash:worker_exchanges#62@worker-1 timeout -k 5 "$patience" "$BUILD/tools/belfry" local train \
        --config once.yaml "$flags" --job_dir lost -- "${training[@]}" --num_gpus 2
    check "the other continues" grep -q 'continues with 1 worker' err.txt
    equal "digest without worker 1 ($flags)" "$(digest lost)" "$whole"
done

# --- Programs that differ
run_fails 2 'worker 1 on|collective 4 is AllReduce of f32 [24]|called at exchanging.c:|there and AllReduce of f32 [] |the same order' \
    belfry local train --distributed --worker_count 2 --job_dir different -- "${training[@]}" --param other=1
finish
