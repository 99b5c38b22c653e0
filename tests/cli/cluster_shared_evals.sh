#!/usr/bin/env bash
# Workers that run batches of evaluations: the results of one process, to the last bit, if a worker is slow,
# killed, stuck, or does not see the checkpoint.
# usage: cluster_shared_evals.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_RUNTIME_DIR=$work # sockets are below it

# Three evaluations of 180 batches; two of rows of tables, moving averages and an area under a curve.
make_clicks
digits=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit --train_batch_size 32 --train_steps 60
    --save_checkpoints_steps 20 --eval_batch_size 2 --no_report --model dnn --hidden_units 16 --json)
rows=("${clicks[@]}" --eval_files "$work/clicks-eval.csv" --train_batch_size 16 --train_steps 40 --save_checkpoints_steps 20
    --eval_batch_size 3 --eval_steps 150 --no_report --moving_average_decay 0.9 --json)
clusters=(--parameter_server_count 2)

# Prints the lines of each evaluation, and the last one with all digits.
results() {
    grep '^eval at step' err.txt || true
    grep -o '"loss".*"examples":[0-9]*' out.txt || true
}
alone() { # NAME FLAGS…
    run_ok belfry train_and_evaluate --model_dir "$1" "${@:2}" --num_workers 2
    results >"$1.txt"
    check "$1 was evaluated" grep -q '^eval at step 40' "$1.txt"
    check "$1 has all digits" grep -q '"loss"' "$1.txt"
}
survives() { # NAME FAULT FLAGS…
    rm -rf cluster
    run_ok env BELFRY_FAULT="$2" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --job_dir cluster \
        --distributed --worker_count 2 "${clusters[@]}" -- "${@:3}" --evaluate_on_workers --log_level debug
    results >got.txt
    check "results with $2 ${clusters[*]}" cmp got.txt "$1.txt"
    equal "digest with $2" "$(digest cluster)" "$(digest "$1")"
}
helped() { # BATCHES, at least, in some evaluation
    local most
    most=$(sed -n 's/.*workers ran \([0-9]*\) batches.*/\1/p' err.txt | sort -n | tail -1)
    check "workers ran $1 batches, got ${most:-none}" test "${most:-0}" -ge "$1"
}
killed() { check "a process was killed" grep -q 'killed on purpose at evaluates' cluster/logs/*.log; }

alone digits "${digits[@]}"
alone rows "${rows[@]}"

# --- The master is slow, so workers run most batches
survives digits slow:evaluates#5@master-0 "${digits[@]}"
helped 100
survives rows slow:evaluates#5@master-0 "${rows[@]}"
helped 50
clusters=(--parameter_server_count 1 --tcp)
survives digits slow:evaluates#5@master-0 "${digits[@]}"
helped 100
clusters=(--parameter_server_count 0)
survives digits slow:evaluates#5@master-0 "${digits[@]}"
helped 100

# --- A worker is slow, slower than the evaluation
clusters=(--parameter_server_count 1)
survives digits slow:evaluates#200@worker-1 "${digits[@]}"

# --- A worker is killed in the middle of its batches, or the master is, or both
survives digits slow:evaluates#5@master-0,crash:evaluates#9@worker-0 "${digits[@]}"
killed
helped 50
survives digits crash:evaluates#30@master-0 "${digits[@]}"
killed
survives rows crash:evaluates#2@worker-1,crash:evaluates#40@master-0 "${rows[@]}"
killed

# --- A worker that cannot help is named, once, and the others help
cat >moody.c <<'END'
#include <belfry/belfry.h>
static bel_status *model_fn(bel_model_context *c, bel_estimator_spec *s)
{
    bel_graph *g = bel_context_graph(c);
    if (bel_context_mode(c) == BEL_MODE_EVAL && bel_estimator_role(bel_context_estimator(c)) == BEL_ROLE_WORKER &&
        bel_estimator_rank(bel_context_estimator(c)) == 1)
        return BEL_ERR(BEL_UNAVAILABLE, "not today");
    bel_value *logits = bel_dense(g, bel_context_only_feature(c), 10, "d");
    bel_loss_set(s, bel_mean(g, bel_softmax_cross_entropy(g, logits, bel_context_labels(c))));
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.05};
    bel_optimizer_use(s, NULL, &sgd);
    return NULL;
}
BEL_PACKAGE(.name = "moody", .description = "", .model_fn = model_fn)
END
"${CC:-cc}" -shared -fPIC -I"$SOURCE/include" moody.c -o moody.so
moody=(--package ./moody.so --train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit --train_batch_size 32
    --train_steps 60 --save_checkpoints_steps 20 --eval_batch_size 2 --no_report --json)
alone moody "${moody[@]}"
survives moody slow:evaluates#5@master-0 "${moody[@]}"
helped 100
equal "warnings" "$(grep -c 'worker 1 does not help with evaluations: .*not today' err.txt)" 1

# --- A worker that is stuck in a batch delays no other
survives digits slow:evaluates#5@master-0,hang:evaluates#3@worker-1 "${digits[@]}"
check "it says so" grep -q 'an evaluation does not end: leaving without it' cluster/logs/worker-1.*
finish
