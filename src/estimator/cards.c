// Devices of an estimator's towers: the options of their programs, the GPUs that they request, and
// the exit of a process whose GPU is lost. Workers of a host take GPUs one after another, so that
// each process finds its GPUs without communication. Evaluations share them, as they run beside
// training. The request follows only from the settings and the place in the job.
#include <unistd.h>

#include "base/log.h"
#include "cuda/cuda.h"
#include "estimator/estimator_inner.h"
#include "launch/supervise/trials.h"

bool bel_estimator_wants_cards(const bel_run_config *c)
{
    bool asks = c->num_gpus > 0 || c->gpu_math != BEL_GPU_MATH_EXACT;
    return c->device == BEL_DEVICE_CUDA || (c->device == BEL_DEVICE_AUTO && asks);
}

bool bel_estimator_needs_cards(const bel_run_config *c)
{
    return c->device == BEL_DEVICE_CUDA || c->gpu_math != BEL_GPU_MATH_EXACT;
}

bel_status *bel_run_config_check_cards(const bel_run_config *c)
{
    bool wants = bel_estimator_wants_cards(c), cpu = c->device == BEL_DEVICE_CPU;
    if (c->gpu_math != BEL_GPU_MATH_EXACT && cpu)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "gpu_math is how GPUs multiply, and device is cpu");
    bool lists = c->gpus != NULL && c->gpus[0] != '\0';
    if (lists) BEL_TRY(bel_cards_check_list(c->gpus));
    const char *name = lists ? "gpus" : c->virtual_devices ? "virtual_devices" : NULL;
    if (name != NULL && !wants && !cpu) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s says which GPUs towers take, and none is to be on one; hint: num_gpus, "
                       "or device cuda",
                       name);
    }
    if (c->memory_limit > 0 && !wants) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "memory_limit is of the memory of GPUs, and no tower is to be on one; hint: "
                       "num_gpus, or device cuda; activation_memory is for the processor as well");
    }
    return NULL;
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

// Counts the towers of this host that take their GPUs before those of worker `worker`. In a job of
// several hosts, whose workers per host are unknown here, all have the same number.
static int towers_before(const bel_estimator *estimator, int worker)
{
    int towers = 0, rank = estimator->local_rank;
    bool all_here = !estimator->in_job || estimator->local_size == estimator->config.num_workers;
    if (!all_here) return rank > 0 ? rank * bel_estimator_towers(estimator, worker) : 0;
    for (int w = 0; w < worker; w++)
        towers += bel_estimator_towers(estimator, w);
    return towers;
}

bel_card_choice bel_estimator_cards(const bel_estimator *estimator, int worker)
{
    const bel_run_config *config = &estimator->config;
    bool evaluates = worker < 0;
    bool optional = evaluates && estimator->in_job; // a master's host may lack GPUs
    if (optional) worker = estimator->rank;
    int place, places;
    bel_trials_place(&place, &places);
    return (bel_card_choice){.wanted = bel_estimator_wants_cards(config),
                             .needed = bel_estimator_needs_cards(config) && !optional,
                             .optional = optional,
                             .math = config->gpu_math,
                             .shared = config->virtual_devices || evaluates,
                             .list = config->gpus,
                             .memory_limit = (size_t)config->memory_limit,
                             // A job can start another process before the process itself counts as
                             // stalled.
                             .patience_secs = config->stall_timeout / 4,
                             .own = estimator->has_launcher, // may have given each process GPUs
                             .before = worker < 0 ? 0 : towers_before(estimator, worker),
                             .place = place,
                             .places = places};
}

void bel_estimator_say_cards(const bel_estimator *estimator)
{
    const bel_run_config *config = &estimator->config;
    bool all_here = estimator->in_job && estimator->local_size == config->num_workers;
    if (!all_here || bel_estimator_needs_cards(config))
        return; // workers or other hosts report missing GPUs
    const bel_card_choice choice = bel_estimator_cards(estimator, -1);
    bel_cards_say_whether(&choice);
}

bool bel_estimator_shares_evaluations(const bel_estimator *estimator)
{
    if (estimator->config.gpu_math == BEL_GPU_MATH_EXACT) return true;
    const bel_card_choice choice = bel_estimator_cards(estimator, -1);
    bel_device *device;
    bel_status *status = bel_cards_choose(&choice, 1, &device);
    if (status == NULL) return device != NULL;
    bel_status_ignore(status); // the evaluation reports it
    return false;
}

void bel_estimator_leave_if_lost(const bel_status *failure, bool refused_cards)
{
    enum { AS_ABORTED = 128 + 6 };
    bool lost = bel_cuda_has_lost_card() || (refused_cards && bel_cards_were_refused());
    if (failure == NULL || !lost) return;
    bel_log_failure(failure); // the supervisor reports its restart, or the job's end
    _exit(AS_ABORTED);
}

// The memory limit of a training step does not apply to an evaluation, which keeps nothing for a
// backward pass.
int bel_estimator_evaluation_towers(const bel_estimator *estimator)
{
    int towers = estimator->towers_of[0];
    for (int w = 1; w < estimator->config.num_workers && !estimator->in_job; w++)
        towers += estimator->towers_of[w];
    return towers;
}

bel_program_options bel_estimator_evaluation_options(const bel_estimator *estimator)
{
    bel_program_options options = bel_estimator_program_options(estimator);
    options.memory_bytes = 0;
    return options;
}
