// What the towers of an estimator run on: the options of their programs, which cards they ask for,
// whether these update the parameters, and how a process ends whose card is lost. Workers of a host
// take cards one after another, so that each process finds its own without asking the others;
// evaluations share them, as they run beside training. What is asked for follows from the settings
// and the place in the job alone.
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cuda/cuda.h"
#include "cuda/updater.h"
#include "estimator/trainable.h"

bool bel_estimator_wants_cards(const bel_run_config *c)
{
    bool asks = c->gpu_count > 0 || c->gpu_math != BEL_GPU_MATH_EXACT;
    return c->device == BEL_DEVICE_CUDA || (c->device == BEL_DEVICE_AUTO && asks);
}

bel_program_options bel_estimator_program_options(const bel_estimator *estimator)
{
    const bel_run_config *config = &estimator->config;
    return (bel_program_options){.threads = estimator->thread_count,
                                 .openblas = config->products == BEL_PRODUCTS_OPENBLAS,
                                 .gpu_math = config->gpu_math,
                                 .asynchronous = config->executor == BEL_EXECUTOR_ASYNC,
                                 .memory_bytes = (size_t)config->activation_memory};
}

// Towers of this host that take their cards before those of worker `worker` do. In a job of several
// hosts, whose workers are not known by host here, they have as many each.
static int towers_before(const bel_estimator *estimator, int worker)
{
    int towers = 0, rank = estimator->local_rank;
    bool all_here = !estimator->in_job || estimator->local_size == estimator->config.worker_count;
    if (!all_here) return rank > 0 ? rank * bel_estimator_towers(estimator, worker) : 0;
    for (int w = 0; w < worker; w++)
        towers += bel_estimator_towers(estimator, w);
    return towers;
}

bel_card_choice bel_estimator_cards(const bel_estimator *estimator, int worker)
{
    const bel_run_config *config = &estimator->config;
    bool evaluates = worker < 0, cuda = config->device == BEL_DEVICE_CUDA;
    bool fast = config->gpu_math != BEL_GPU_MATH_EXACT;
    if (evaluates && estimator->in_job) worker = estimator->rank;
    return (bel_card_choice){
        .wanted = bel_estimator_wants_cards(config),
        .needed =
            (cuda || fast) && (!evaluates || !estimator->in_job), // a master's host may have none
        .math = config->gpu_math,
        .shared = config->virtual_devices || evaluates,
        .list = config->gpus,
        .memory_limit = (size_t)config->memory_limit,
        // A job can start another process before it counts as stalled itself.
        .patience_secs = config->stall_timeout_secs / 4,
        .before = worker < 0 ? 0 : towers_before(estimator, worker)};
}

// Why cards cannot update the parameters of a training; NULL: they can, if all towers are on some.
static const char *hindrance_of(const bel_trainable *t)
{
    const bel_run_config *config = &t->estimator->config;
    const bel_layout *layout = t->layout;
    if (t->estimator->in_job) return "in a job of several processes shards update them";
    if (config->worker_count > 1) return "there are several workers";
    if (layout->shard_count > 1) return "there are several shards";
    if (bel_counting_has_ledger(&t->counting)) return "not every replica counts in a step";
    if (t->built->function_count > 1) return "there are several step functions";
    if (layout->table_count > 0) return "the model has tables";
    if (t->estimator->replica_count > BEL_UPDATER_REPLICAS)
        return "there are more than 64 replicas";
    for (int v = 0; v < layout->variable_count; v++)
        if (layout->variables[v].own_elements > 0) return "replicas have values of their own";
    return NULL;
}

static bel_status *refuse(const char *why)
{
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "update_device is cuda, but GPUs cannot update the parameters: %s", why);
}

bel_status *bel_trainable_check_updates(const bel_trainable *t)
{
    const char *hindrance = hindrance_of(t);
    bool asked = t->estimator->config.update_device == BEL_DEVICE_CUDA;
    return asked && hindrance != NULL ? refuse(hindrance) : NULL;
}

// The towers' devices are those that the worker will choose, as they follow from the settings.
static bel_status *make_updater(const bel_trainable *t, bel_device **devices,
                                bel_updater **out_updater)
{
    const bel_run_config *config = &t->estimator->config;
    int towers = bel_estimator_towers(t->estimator, 0);
    bel_card_choice cards = bel_estimator_cards(t->estimator, 0);
    BEL_TRY(bel_cards_choose(&cards, towers, devices));
    for (int i = 0; i < towers; i++) {
        if (devices[i] != NULL) continue;
        return config->update_device == BEL_DEVICE_CUDA ? refuse("towers run on the processor")
                                                        : NULL;
    }
    return bel_cuda_updater_create(devices, towers, t->estimator->replica_count, t->layout->size,
                                   out_updater);
}

bel_status *bel_trainable_create_updater(const bel_trainable *t, bel_updater **out_updater)
{
    bel_device_choice where = t->estimator->config.update_device;
    *out_updater = NULL;
    if (where == BEL_DEVICE_CPU || hindrance_of(t) != NULL) return NULL;
    bel_device **devices =
        bel_xcalloc((size_t)bel_estimator_towers(t->estimator, 0), sizeof(bel_device *));
    bel_status *status = make_updater(t, devices, out_updater);
    bel_free(devices);
    return status;
}

void bel_estimator_leave_if_lost(const bel_status *failure)
{
    enum { AS_ABORTED = 128 + 6 };
    if (failure == NULL || !bel_cuda_has_lost_card()) return;
    bel_log_failure(failure); // the supervisor says it when it starts another, or ends the job
    _exit(AS_ABORTED);
}

// The memory of a training step is not that of an evaluation, which keeps nothing for a backward
// pass.
int bel_estimator_evaluation_towers(const bel_estimator *estimator)
{
    int towers = estimator->towers_of[0];
    for (int w = 1; w < estimator->config.worker_count && !estimator->in_job; w++)
        towers += estimator->towers_of[w];
    return towers;
}

bel_program_options bel_estimator_evaluation_options(const bel_estimator *estimator)
{
    bel_program_options options = bel_estimator_program_options(estimator);
    options.memory_bytes = 0;
    return options;
}
