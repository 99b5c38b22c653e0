#!/usr/bin/env bash
# Users' programs as jobs: in this process, in many, submitted; with the bits, restarts, errors and crashes of
# belfry's training.
# usage: program.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_STATE_HOME=$work/state
program=$BUILD/tests/own_program
make_data=$SOURCE/examples/clicks/make_data
"$make_data" 4000 1 >train.csv
"$make_data" 1000 2 >eval.csv
printed_digest() { sed -nE 's/.*digest ([0-9a-f]+)$/\1/p' out.txt; }

# --- In one process, and in several
run_ok "$program" train.csv eval.csv 3 --model_dir alone
first=$(printed_digest)
check "it prints a digest" test "${#first}" -eq 32
run_fails 2 'model_dir must name a folder|BELFRY_MODEL_DIR' "$program" train.csv eval.csv
run_ok belfry local train --job_dir here -- "$program" train.csv eval.csv 3
equal "the folder comes from --job_dir" "$(printed_digest)" "$first"
run_ok belfry local train --distributed --job_dir many -- "$program" train.csv eval.csv 3
equal "the same bits from processes" "$(printed_digest)" "$first"
check "logs are kept" test -s many/logs/master-0.0.log
cp "$program" own-name
PATH=$PATH:$work run_ok belfry local train --distributed --job_dir path -- own-name train.csv eval.csv 1
BELFRY_FAULT=crash:worker_sends_stats#9@worker-1 \
    run_ok belfry local train --distributed --job_dir killed -- "$program" train.csv eval.csv 3
equal "the same bits when a worker is killed" "$(printed_digest)" "$first"
check "it was killed" grep -q 'worker 1 (pid .*it is started again' err.txt

# --- Settings that a program cannot get
run_fails 2 '--job_dir is needed: the folder' belfry local train --distributed -- "$program" train.csv eval.csv
run_fails 2 "the job's folder is many, but the program's model_dir is elsewhere" \
    belfry local train --distributed --job_dir many -- "$program" train.csv eval.csv 3 --model_dir elsewhere
run_fails 2 '--trace is for belfry|bel_run_config' belfry local train --job_dir d --trace t -- "$program" a b
run_fails 2 '--quiet does not reach the program' belfry local train --job_dir d --quiet -- "$program" a b
run_fails 2 '--package_path builds a package for belfry' belfry local train --job_dir d --package_path p -- "$program"
run_fails 2 'after --: expected training flags|train.csv is no executable file' \
    belfry local train --job_dir d -- ./train.csv
run_fails 3 'nothing.csv' belfry local train --distributed --job_dir bad -- "$program" nothing.csv eval.csv
run_fails 3 'nothing.csv' belfry local train --job_dir bad -- "$program" nothing.csv eval.csv
run_ok belfry local train --distributed --job_dir d --dry_run -- "$program" train.csv eval.csv
check "a plan lists the processes" grep -q '^worker 1 ' out.txt
check "and makes nothing" test ! -e d

# --- Submitted
printf 'workers: {count: 2}\nparameter_servers: {count: 1}\n' >cluster.yaml
run_ok belfry jobs submit training own --config cluster.yaml --job_dir sent --stream_logs -- "$program" train.csv eval.csv 3
run_ok belfry jobs describe own
check "it has succeeded" grep -q '^state SUCCEEDED$' out.txt
check "the program is shown" grep -qE '^program /.*/own_program$' out.txt
check "and its arguments" grep -q '^arguments train.csv eval.csv 3$' out.txt
cp "$(sed -n 's/^folder //p' out.txt)/output.txt" out.txt
equal "the same bits from a job" "$(printed_digest)" "$first"

# --- A repeated crash: in the model function, and in the input, which reads ahead
crashing() { # NAME STATEMENT-OF-MODEL STATEMENT-OF-MAP
    cat >"$1.c" <<END
#include <stdlib.h>
#include <string.h>
#include <belfry/belfry.h>
static bel_status *model_fn(bel_model_context *c, bel_estimator_spec *s)
{
    bel_graph *g = bel_context_graph(c);
    $2;
    bel_value *logits = bel_dense(g, bel_context_feature(c, "x"), 10, "logits");
    bel_loss_set(s, bel_mean(g, bel_softmax_cross_entropy(g, logits, bel_context_labels(c))));
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
    bel_optimizer_use(s, NULL, &sgd);
    return NULL;
}
static bel_status *map(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)out_skip;
    $3;
    return NULL;
}
static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode, bel_dataset **out)
{
    (void)user, (void)mode;
    const char *path = bel_estimator_param(estimator, "train_files", "");
    int64_t size;
    BEL_TRY(bel_estimator_param_int(estimator, "train_batch_size", 1, &size));
    const bel_csv_options csv = {.size = sizeof csv, .paths = &path, .path_count = 1, .label_column = "digit"};
    *out = bel_dataset_from_csv(&csv);
    bel_dataset_repeat(*out, BEL_REPEAT_FOREVER);
    bel_dataset_map(*out, map, NULL, NULL);
    bel_dataset_batch(*out, size);
    return NULL;
}
BEL_PACKAGE(.name = "crashing", .description = "", .model_fn = model_fn, .input_fn = input_fn)
END
    ${CC:-cc} -shared -fPIC -I"$SOURCE/include" "$1.c" -o "$1.so"
}
# Blocks of 8 of the two workers in turn: record 100 is in block 12, which is worker 0's.
crashing maps '(void)0' 'if (strstr(bel_record_origin(record), ":102") != NULL) abort()'
run_fails 134 'worker 0 (pid|signal 6|in block 12 of the input, as 2 times before|package|maps.so was in use' \
    belfry local train --distributed --job_dir maps -- --package maps.so --train_files "$TRAIN_CSV" \
    --train_batch_size 8 --train_steps 100
equal "and was started again twice" "$(grep -c 'it is started again' err.txt)" 2
# A trainer knows its place among all workers, and among its host's; here both are the same.
told='const bel_estimator *e = bel_context_estimator(c);
    int rank = bel_estimator_rank(e), workers = bel_estimator_role(e) == BEL_ROLE_WORKER;
    if (bel_estimator_local_rank(e) != rank || bel_estimator_local_size(e) != 3 || (rank >= 0) != workers) abort()'
crashing places "$told" '(void)record'
run_ok belfry local train --distributed --worker_count 3 --parameter_server_count 0 --job_dir places -- --package places.so \
    --train_files "$TRAIN_CSV" --train_batch_size 8 --train_steps 5
crashing builds 'if (bel_estimator_rank(bel_context_estimator(c)) == 1) abort()' '(void)record'
run_fails 134 'worker 1 (pid|before its first step, as 2 times before' \
    belfry local train --distributed --job_dir builds -- --package builds.so --train_files "$TRAIN_CSV" \
    --train_batch_size 8 --train_steps 100

finish
