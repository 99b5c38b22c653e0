// What the towers of an estimator run on: the options of their programs, which cards they ask for,
// whether these update the parameters, and how a process ends whose card is lost. Workers of a host
// take cards one after another, so that each process finds its own without asking the others;
// evaluations share them, as they run beside training. What is asked for follows from the settings
// and the place in the job alone.
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "cuda/cuda.h"
#include "cuda/updater.h"
#include "estimator/trainable_inner.h"
#include "runtime/device.h"

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
    if (t->estimator->in_job) return "in a job shards update them";
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

// The devices of worker 0's towers, as it will choose them: they follow from the settings. Free
// with bel_free.
static bel_status *choose_devices(const bel_trainable *t, bel_device ***out_devices)
{
    int towers = bel_estimator_towers(t->estimator, 0);
    const bel_card_choice cards = bel_estimator_cards(t->estimator, 0);
    bel_device **devices = bel_xcalloc((size_t)towers, sizeof(bel_device *));
    bel_status *status = bel_cards_choose(&cards, towers, devices);
    *out_devices = status == NULL ? devices : NULL;
    if (status != NULL) bel_free(devices);
    return status;
}

bel_status *bel_trainable_create_updater(const bel_trainable *t, bel_updater **out_updater)
{
    bel_device_choice where = t->estimator->config.update_device;
    int towers = bel_estimator_towers(t->estimator, 0), on_cards = 0;
    bel_device **devices;
    *out_updater = NULL;
    if (where == BEL_DEVICE_CPU || hindrance_of(t) != NULL) return NULL;
    BEL_TRY(choose_devices(t, &devices));
    while (on_cards < towers && devices[on_cards] != NULL)
        on_cards++;
    bel_status *status = NULL;
    if (on_cards == towers) {
        status = bel_cuda_updater_create(devices, towers, t->estimator->replica_count,
                                         t->layout->size, out_updater);
    } else if (where == BEL_DEVICE_CUDA) {
        status = refuse("towers run on the processor");
    }
    bel_free(devices);
    return status;
}

// `towers` of the training are on the card.
static bel_status *check_room_of(const bel_trainable *t, bel_device *device, int towers)
{
    bel_program_options options = bel_estimator_program_options(t->estimator);
    bel_device_use use;
    int64_t step;
    options.device = device;
    options.on_device = true;
    BEL_TRY(bel_trainable_arena_bytes(t, &options, &step));
    if (!device->ops->look(device, &use)) return NULL; // nobody knows
    size_t limit = atomic_load(&device->memory_limit), room = use.free;
    if (limit > 0) {
        size_t left = limit > use.taken ? limit - use.taken : 0;
        room = left < room ? left : room;
    }
    size_t parameters = (size_t)t->layout->size * sizeof(float);
    size_t needed = (size_t)towers * (2 * (size_t)step + parameters);
    if (needed <= room) return NULL;
    char needed_text[32], room_text[32];
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%s: with them there the programs of steps and evaluations may need %s, but %s "
                   "are free",
                   device->name, bel_bytes_text(needed, needed_text),
                   bel_bytes_text(room, room_text));
}

bel_status *bel_trainable_check_room(const bel_trainable *t)
{
    int towers = bel_estimator_towers(t->estimator, 0);
    bel_device **devices;
    bel_status *status = NULL;
    BEL_TRY(choose_devices(t, &devices));
    for (int i = 0; i < towers && status == NULL; i++) {
        int same = 0, before = 0; // towers on this card, and those of them that come before
        for (int j = 0; j < towers; j++) {
            same += devices[j] == devices[i];
            before += j < i && devices[j] == devices[i];
        }
        if (before == 0) status = check_room_of(t, devices[i], same);
    }
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
