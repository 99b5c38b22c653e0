// Making an estimator: defaults and checks. Limits stand in one table, so that the message is
// always the same; a NaN fails every comparison and is refused with the rest.
//
// Everything that depends on the number of workers is resolved in assign_towers, at creation and
// again when a cluster says how many there are (bel_estimator_place). Replicas follow from
// towers and from --replicas_to_aggregate above the number of workers; they are the only one of
// these numbers that the bits depend on. Texts of the settings are copied, as the caller's may be
// freed.
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/isa.h"
#include "base/openblas.h"
#include "base/thread.h"
#include "estimator/estimator_inner.h"

enum { MAX_WORKERS = 1024, MAX_TOWERS = 256, MAX_SHARDS = 1024, MAX_THREADS = 1024 };

void bel_run_config_init(bel_run_config *config)
{
    *config = (bel_run_config){.seed = 1,
                               .worker_count = 1,
                               .tower_count = 1,
                               .shard_count = 1,
                               .save_checkpoints_secs = 600,
                               .keep_checkpoint_max = 5,
                               .save_summary_steps = 100,
                               .log_step_count_steps = 100,
                               .report = true,
                               .averages = true,
                               .stall_timeout_secs = 600};
}

typedef struct limit {
    const char *name;
    double value, low, high;
} limit;

// The table, then what one setting asks of another.
static bel_status *check_limits(const bel_run_config *c)
{
    const double steps = 9e15;
    const limit limits[] = {
        {"worker_count", c->worker_count, 1, MAX_WORKERS},
        {"tower_count", c->tower_count, 1, MAX_TOWERS},
        {"shard_count", c->shard_count, 1, MAX_SHARDS},
        {"thread_count", c->thread_count, 0, MAX_THREADS},
        {"executor", (double)c->executor, BEL_EXECUTOR_SYNC, BEL_EXECUTOR_ASYNC},
        {"precision", (double)c->precision, BEL_PRECISION_F32, BEL_PRECISION_BF16},
        {"products", (double)c->products, BEL_PRODUCTS_BELFRY, BEL_PRODUCTS_OPENBLAS},
        {"average", (double)c->average, BEL_AVERAGE_EXAMPLES, BEL_AVERAGE_REPLICAS},
        {"activation_memory", (double)c->activation_memory, 0, 0x1p53},
        {"metrics_port", c->metrics_port, -1, 65535},
        {"save_checkpoints_steps", (double)c->save_checkpoints_steps, 0, steps},
        {"save_checkpoints_secs", c->save_checkpoints_secs, 0, 1e9},
        {"keep_checkpoint_max", c->keep_checkpoint_max, 0, INT_MAX},
        {"keep_checkpoint_every_n_hours", c->keep_checkpoint_every_n_hours, 0, 1e9},
        {"save_summary_steps", (double)c->save_summary_steps, 0, steps},
        {"log_step_count_steps", (double)c->log_step_count_steps, 0, steps},
        {"stall_timeout_secs", c->stall_timeout_secs, 0.001, 1e9},
        {"replicas_to_aggregate", c->replicas_to_aggregate, 0, MAX_WORKERS},
        {"max_staleness", c->max_staleness, 0, INT_MAX},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const limit *l = &limits[i];
        if (l->value >= l->low && l->value <= l->high) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be from %g to %g, got %g", l->name, l->low,
                       l->high, l->value);
    }
    if (c->activation_memory > 0 && c->executor == BEL_EXECUTOR_ASYNC) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "activation_memory needs the synchronous executor: the asynchronous one runs "
            "operations in no fixed order");
    }
    for (int w = 0; c->towers_of != NULL && w < c->worker_count; w++) {
        if (c->towers_of[w] >= 1 && c->towers_of[w] <= MAX_TOWERS) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "worker %d must have from 1 to %d towers, got %d", w,
                       MAX_TOWERS, c->towers_of[w]);
    }
    if (c->model_dir != NULL && c->model_dir[0] != '\0') return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "model_dir must name a folder, got %s",
                   c->model_dir == NULL ? "nothing" : "an empty text");
}

// sync stands for backups here: bel_counting_of makes it "all" where all workers are wanted.
static bel_counting counting_of(const bel_run_config *config)
{
    static const bel_counting_kind kinds[] = {[BEL_AGGREGATE_SYNC] = BEL_COUNTING_BACKUPS,
                                              [BEL_AGGREGATE_ASYNC] = BEL_COUNTING_ASYNC,
                                              [BEL_AGGREGATE_BOUNDED] = BEL_COUNTING_BOUNDED};
    return bel_counting_of(kinds[config->aggregation], config->replicas_to_aggregate,
                           config->worker_count, config->max_staleness);
}

// Resolves towers of workers and threads of towers; `towers_of` may be NULL.
static void assign_towers(bel_estimator *estimator, const int *towers_of)
{
    const bel_run_config *config = &estimator->config;
    int count = config->worker_count, towers = 0;
    int *list = bel_xcalloc((size_t)count, sizeof(int));
    int *replicas = bel_xcalloc((size_t)count, sizeof(int));
    bel_counting counting = counting_of(config);
    estimator->replica_count = 0;
    for (int w = 0; w < count; w++) {
        list[w] = towers_of != NULL ? towers_of[w] : config->tower_count;
        replicas[w] = list[w] * bel_counting_turns(&counting, count, w);
        towers += list[w];
        estimator->replica_count += replicas[w];
    }
    bel_free(estimator->towers_of);
    bel_free(estimator->replicas_of);
    estimator->config.towers_of = estimator->towers_of = list;
    estimator->replicas_of = replicas;
    estimator->thread_count = config->thread_count;
    if (estimator->thread_count > 0) return;
    int share = bel_available_cores() / towers;
    estimator->thread_count = share > 0 ? share : 1;
}

// With a ledger all workers have equally many towers, as a lease taken back from one may go to any
// other.
bel_status *bel_estimator_counting(const bel_estimator *estimator, bel_counting *out_counting)
{
    const bel_run_config *c = &estimator->config;
    *out_counting = counting_of(c);
    if (!bel_counting_has_ledger(out_counting)) return NULL;
    if (c->audit_input) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "audit_input says which records every worker's steps have read, but here not "
            "every worker counts in each step");
    }
    int workers = out_counting->workers;
    if (workers > c->worker_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "replicas_to_aggregate is %d, but only %d worker%s can report before an "
                       "update",
                       workers, c->worker_count, c->worker_count == 1 ? "" : "s");
    }
    for (int w = 1; w < c->worker_count; w++) {
        if (estimator->towers_of[w] == estimator->towers_of[0]) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "worker %d has %d towers and worker 0 has %d: all must have as many when not "
            "every worker counts in a step",
            w, estimator->towers_of[w], estimator->towers_of[0]);
    }
    return NULL;
}

int bel_estimator_blocks_per_step(const bel_estimator *estimator, const bel_counting *counting)
{
    return bel_counting_replicas(counting, estimator->replicas_of, estimator->config.worker_count);
}

// Limits are checked again, since the cluster's numbers are new.
bel_status *bel_estimator_place(bel_estimator *estimator, int worker_count, const int *towers,
                                int shard_count, int thread_count)
{
    bel_run_config *config = &estimator->config;
    bool differs = worker_count != config->worker_count;
    if (towers == NULL && estimator->has_towers_of && differs) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "towers are given for %d workers, but the cluster has %d",
                       config->worker_count, worker_count);
    }
    config->worker_count = worker_count;
    config->shard_count = shard_count;
    if (config->thread_count == 0) config->thread_count = thread_count;
    if (towers == NULL && estimator->has_towers_of) towers = estimator->towers_of;
    assign_towers(estimator, towers);
    return check_limits(config);
}

bel_program_options bel_estimator_program_options(const bel_estimator *estimator)
{
    const bel_run_config *config = &estimator->config;
    return (bel_program_options){.threads = estimator->thread_count,
                                 .openblas = config->products == BEL_PRODUCTS_OPENBLAS,
                                 .asynchronous = config->executor == BEL_EXECUTOR_ASYNC,
                                 .memory_bytes = (size_t)config->activation_memory};
}

// The memory of a training step is not that of an evaluation, which keeps nothing for a backward
// pass.
bel_program_options bel_estimator_evaluation_options(const bel_estimator *estimator)
{
    bel_program_options options = bel_estimator_program_options(estimator);
    options.memory_bytes = 0;
    return options;
}

void bel_estimator_param_is_read(bel_estimator *estimator, const char *name)
{
    for (int i = 0; i < estimator->param_count; i++)
        if (strcmp(estimator->params[i].name, name) == 0) estimator->params_read[i] = true;
}

bel_status *bel_estimator_create(bel_model_fn *model_fn, const bel_run_config *config,
                                 const bel_param *params, int param_count,
                                 bel_estimator **out_estimator)
{
    BEL_TRY(bel_isa_check());
    BEL_TRY(check_limits(config));
    if (config->products == BEL_PRODUCTS_OPENBLAS) BEL_TRY(bel_openblas_open());
    bel_estimator *estimator = bel_xcalloc(1, sizeof *estimator);
    estimator->model_fn = model_fn;
    estimator->config = *config;
    estimator->config.model_dir = bel_xstrdup(config->model_dir);
    if (config->metrics_address != NULL) {
        estimator->config.metrics_address = bel_xstrdup(config->metrics_address);
    }
    if (config->job_file != NULL) estimator->config.job_file = bel_xstrdup(config->job_file);
    if (config->trace_file != NULL) {
        estimator->config.trace_file = bel_xstrdup(config->trace_file);
    }
    estimator->has_towers_of = config->towers_of != NULL;
    assign_towers(estimator, config->towers_of);
    estimator->params = bel_xcalloc((size_t)param_count, sizeof *params);
    estimator->params_read = bel_xcalloc((size_t)param_count, sizeof *estimator->params_read);
    for (int i = 0; i < param_count; i++) {
        estimator->params[estimator->param_count++] =
            (bel_param){bel_xstrdup(params[i].name), bel_xstrdup(params[i].value)};
    }
    *out_estimator = estimator;
    return NULL;
}

// Texts that the estimator owns are const in the public structs.
static void free_text(const char *text)
{
    union {
        const char *read;
        char *owned;
    } pointer = {.read = text};
    bel_free(pointer.owned);
}

void bel_estimator_destroy(bel_estimator *estimator)
{
    if (estimator == NULL) return;
    for (int i = 0; i < estimator->param_count; i++) {
        free_text(estimator->params[i].name);
        free_text(estimator->params[i].value);
    }
    bel_free(estimator->params);
    bel_free(estimator->params_read);
    bel_free(estimator->towers_of);
    bel_free(estimator->replicas_of);
    free_text(estimator->config.model_dir);
    free_text(estimator->config.trace_file);
    free_text(estimator->config.job_file);
    free_text(estimator->config.metrics_address);
    bel_free(estimator);
}
