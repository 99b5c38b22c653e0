#!/usr/bin/env bash
# The memory of hooks in a cluster: each checkpoint has the hook's counts at its version, no step more and no
# step less. A run with killed processes ends with the same counts.
# usage: hooks.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

cat >counting.c <<'END'
#include <belfry/belfry.h>
static struct counts {
    int64_t steps, sum, evaluations;
} counts;
static bel_status *after_step(void *user, bel_hook_context *context, const bel_step_report *step)
{
    (void)user, (void)context;
    counts.steps++;
    counts.sum += step->step;
    return NULL;
}
static bel_status *after_evaluation(void *user, bel_hook_context *context, const char *name,
                                    const struct bel_result *result)
{
    (void)user, (void)context, (void)name, (void)result;
    counts.evaluations++;
    return NULL;
}
static const bel_hook hook = {.size = sizeof hook, .name = "counting", .after_step = after_step,
                              .after_evaluation = after_evaluation, .state = &counts,
                              .state_bytes = sizeof counts};
static const bel_hook *const hooks[] = {&hook};
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *graph = bel_context_graph(context);
    bel_value *logits = bel_dense(graph, bel_context_only_feature(context), 10, "logits");
    bel_value *labels = bel_context_labels(context);
    if (labels != NULL) bel_loss_set(spec, bel_mean(graph, bel_softmax_cross_entropy(graph, logits, labels)));
    bel_predictions_set(spec, bel_softmax(graph, logits));
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.01};
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}
BEL_PACKAGE(.name = "counting", .description = "", .model_fn = model_fn, .hooks = hooks, .hook_count = 1)
END
"${CC:-cc}" -shared -fPIC -I"$SOURCE/include" counting.c -o counting.so

steps=400
training=(--package ./counting.so --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit
    --train_batch_size 16 --train_steps "$steps" --save_checkpoints_steps 40 --keep_checkpoint_max 100
    --eval_every_steps 40 --no_report --min_shard_bytes 0)
# Checks every checkpoint of a folder: its steps and their sum, and in an undisturbed run an evaluation per 40
# steps.
counts_fit() { # FOLDER [BYTES]
    local folder step got expected
    for folder in "$1"/ckpt-*; do
        step=$((10#${folder##*-}))
        got=$(od -An -v -t d8 -N "${2:-24}" -w24 "$folder/hook-counting" | xargs)
        expected="$step $((step * (step + 1) / 2))"
        [ $# -eq 2 ] || expected="$expected $((step / 40))"
        equal "counts of $folder" "$got" "$expected"
    done
}
run_ok belfry train_and_evaluate --model_dir alone "${training[@]}"
counts_fit alone
for lane in shm grpc; do
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir "$lane" -- \
        "${training[@]}" --lane "$lane"
    counts_fit "$lane"
done
killed() { # NAME FAULT
    run_ok env BELFRY_FAULT="$2" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count 2 --job_dir "$1" -- "${training[@]}"
    check "$1: a process was killed" grep -q 'it is started again' err.txt
    counts_fit "$1" 16
}
killed worker crash:tower_step#170@worker-1
killed shard crash:shard_passes#250@ps-0
killed other-shard crash:shard_snapshot#5@ps-1
killed master crash:master_saves#5@master-0
killed master-behind crash:checkpoint_after_rename#7@master-0
finish
