// Steps of parameters on GPUs. A step queues all work of one GPU after another before it waits. For
// each GPU it copies in the numbers of the step and the other GPUs' gradients of the range that
// this one updates. One launch updates the range, and the new values are copied to the other GPUs.
// With one replica on each GPU, these copies do the work of a reduce-scatter and an all-gather,
// without NCCL. NCCL's order of addition depends on the GPUs and their links; here it is the tree
// of replicas, on any GPUs.
//
// Each GPU hashes all values for comparison. GPUs have the same bits, as these are copied; a
// different bit gives a different hash, except by chance (1 in 2^64).
#include <string.h>

#include "base/number.h"
#include "cuda/updater_inner.h"

bel_status *bel_cuda_updater_finish(bel_cuda_updater *u, bel_status *status)
{
    for (int i = 0; i < u->place_count; i++) {
        const bel_cuda_place *p = &u->places[i];
        if (p->done == NULL) continue;                          // it was not created
        if (bel_status_code(status) == BEL_DEADLINE_EXCEEDED) { // all have had that time
            bel_cuda_lose(p->device, status);
            continue;
        }
        bel_status *finished = bel_cuda_enter(p->device);
        if (finished == NULL)
            finished = bel_cuda_await_stream(p->device, p->stream, p->done, "update parameters");
        if (finished != NULL)
            finished = bel_status_wrap(finished, __FILE__, __LINE__, "%s", p->device->device.name);
        if (status != NULL) bel_status_ignore(finished); // the first error is the cause
        if (status == NULL) status = finished;
    }
    return status;
}

// --- Steps ---------------------------------------------------------------------------------------

static void stage(bel_cuda_updater *u, const bel_update_step *step)
{
    bel_cuda_update_step numbers = {.counts = step->counts,
                                    .scale = step->scale,
                                    .of_gradient = step->of_gradient,
                                    .average_rest = step->average_rest};
    while ((step->counts >> numbers.first & 1) == 0)
        numbers.first++;
    memcpy(numbers.joins, step->joins, 2 * sizeof(float) * (size_t)(u->replica_count - 1));
    char *at = u->staged;
    memcpy(at, &numbers, sizeof numbers);
    at += sizeof numbers;
    for (int g = 0; g < u->plan.groups->count; g++, at += sizeof(bel_rule_step))
        memcpy(at, &u->plan.groups->items[g].numbers, sizeof(bel_rule_step));
    if (step->factors != NULL)
        memcpy(at, step->factors, (size_t)u->plan.variable_count * sizeof(float));
}

static bel_status *send_numbers(const bel_cuda_updater *u, const bel_cuda_place *p)
{
    return bel_cuda_status(
        u->api->copy_in(bel_cuda_address_of(&p->numbers, 0), u->staged, u->staged_bytes, p->stream),
        "copy to the GPU");
}

// Copies `elements` from one GPU to another, at the same offset of an array each; on `to`'s stream,
// or `from`'s.
static bel_status *copy_between(const bel_cuda_updater *u, const bel_cuda_place *to, uint64_t there,
                                const bel_cuda_place *from, uint64_t here, int64_t elements,
                                void *stream)
{
    return bel_cuda_status(u->api->copy_between(there, to->device->context, here,
                                                from->device->context,
                                                bel_cuda_float_bytes(elements), stream),
                           "copy from GPU to GPU");
}

// Copies the other GPUs' gradients of the range, for the replicas that count.
static bel_status *updater_step_gather(const bel_cuda_updater *u, const bel_cuda_place *p,
                                       uint64_t counts)
{
    int64_t others = 0;
    for (int r = 0; r < u->replica_count; r++) {
        const bel_cuda_place *from = &u->places[u->replicas[r].place];
        if (from == p) continue;
        if ((counts >> r & 1) != 0)
            BEL_TRY(copy_between(
                u, p, bel_cuda_address_of(&p->gathered, others * bel_cuda_stride_of(p)), from,
                bel_cuda_address_of(&u->replicas[r].gradients, p->first), p->elements, p->stream));
        others++;
    }
    return NULL;
}

static bel_status *updater_step_launch(const bel_cuda_updater *u, bel_cuda_place *p, void *kernel)
{
    void *arguments[2] = {&p->operands, &p->params};
    return bel_cuda_status(u->api->launch(kernel, (unsigned)p->piece_count, 1, 1, BEL_CUDA_BLOCK, 1,
                                          1, 0, p->stream, arguments, NULL),
                           "launch a kernel");
}

static bel_status *updater_step_scatter(const bel_cuda_updater *u, const bel_cuda_place *p)
{
    for (int i = 0; i < u->place_count; i++) {
        const bel_cuda_place *to = &u->places[i];
        if (to == p) continue;
        BEL_TRY(copy_between(u, to, bel_cuda_address_of(&to->values, p->first), p,
                             bel_cuda_address_of(&p->values, p->first), p->elements, p->stream));
    }
    return NULL;
}

// Part of a step for one GPU.
typedef bel_status *part_fn(const bel_cuda_updater *u, bel_cuda_place *p,
                            const bel_update_step *step);

static bel_status *update_part(const bel_cuda_updater *u, bel_cuda_place *p,
                               const bel_update_step *step)
{
    BEL_TRY(send_numbers(u, p));
    BEL_TRY(updater_step_gather(u, p, step->counts));
    BEL_TRY(updater_step_launch(u, p, p->kernel_update));
    return updater_step_scatter(u, p);
}

// Grains are numbered in the order of pieces, so those of a GPU's range are consecutive.
static bel_status *fetch_squares(const bel_cuda_updater *u, const bel_cuda_place *p)
{
    size_t bytes = (size_t)p->grain_count * sizeof(double), all = bel_cuda_square_count(&u->plan);
    for (size_t first = (size_t)p->first_grain; first < all; first += (size_t)u->plan.grain_count)
        BEL_TRY(bel_cuda_status(
            u->api->copy_out(u->squares + first,
                             bel_cuda_address_of(&p->squares, 0) + first * sizeof(double), bytes,
                             p->stream),
            "copy from the GPU"));
    return NULL;
}

static bel_status *direct_part(const bel_cuda_updater *u, bel_cuda_place *p,
                               const bel_update_step *step)
{
    BEL_TRY(send_numbers(u, p));
    BEL_TRY(updater_step_gather(u, p, step->counts));
    BEL_TRY(updater_step_launch(u, p, p->kernel_direct));
    return fetch_squares(u, p);
}

static bel_status *follow_part(const bel_cuda_updater *u, bel_cuda_place *p,
                               const bel_update_step *step)
{
    (void)step;
    BEL_TRY(send_numbers(u, p)); // has the factors
    BEL_TRY(updater_step_launch(u, p, p->kernel_follow));
    return updater_step_scatter(u, p);
}

static bel_status *updater_step_run(bel_cuda_updater *u, const bel_update_step *step, part_fn *part)
{
    bel_status *status = NULL;
    if (step->counts == 0) return NULL; // nothing changes
    stage(u, step);
    for (int i = 0; i < u->place_count && status == NULL; i++) {
        bel_cuda_place *p = &u->places[i];
        if (p->piece_count == 0) continue;
        status = bel_cuda_enter(p->device);
        if (status == NULL) status = part(u, p, step);
    }
    return bel_cuda_updater_finish(u, status);
}

bel_status *bel_cuda_updater_update(bel_updater *updater, const bel_update_step *step)
{
    return updater_step_run(bel_cuda_updater_of(updater), step, update_part);
}

bel_status *bel_cuda_updater_direct(bel_updater *updater, const bel_update_step *step,
                                    double *out_squares)
{
    bel_cuda_updater *u = bel_cuda_updater_of(updater);
    size_t bytes = bel_cuda_square_count(&u->plan) * sizeof *out_squares;
    memset(u->squares, 0, bytes);
    BEL_TRY(updater_step_run(u, step, direct_part));
    memcpy(out_squares, u->squares, bytes);
    return NULL;
}

bel_status *bel_cuda_updater_follow(bel_updater *updater, const bel_update_step *step)
{
    return updater_step_run(bel_cuda_updater_of(updater), step, follow_part);
}

// --- Comparing -----------------------------------------------------------------------------------

static bel_status *hash_place(const bel_cuda_updater *u, int number)
{
    const bel_cuda_place *p = &u->places[number];
    bel_cuda_operands operands = {.in = {p->values.address}, .out = {p->hashes.address}};
    bel_cuda_hash_values params = {.elements = u->elements};
    void *arguments[2] = {&operands, &params};
    BEL_TRY(bel_cuda_enter(p->device));
    BEL_TRY(
        bel_cuda_status(u->api->launch(p->kernel_hash, BEL_CUDA_HASH_BLOCKS, 1, 1,
                                       BEL_CUDA_HASH_THREADS, 1, 1, 0, p->stream, arguments, NULL),
                        "launch a kernel"));
    size_t bytes = BEL_CUDA_HASH_BLOCKS * sizeof(uint64_t);
    return bel_cuda_status(u->api->copy_out(u->hashes + (size_t)number * BEL_CUDA_HASH_BLOCKS,
                                            bel_cuda_address_of(&p->hashes, 0), bytes, p->stream),
                           "copy from the GPU");
}

static uint64_t hash_of(const bel_cuda_updater *u, int number)
{
    uint64_t sum = 0;
    for (int b = 0; b < BEL_CUDA_HASH_BLOCKS; b++)
        sum += u->hashes[(size_t)number * BEL_CUDA_HASH_BLOCKS + (size_t)b];
    return sum;
}

static int count_like(const bel_cuda_updater *u, uint64_t hash)
{
    int count = 0;
    for (int i = 0; i < u->place_count; i++)
        count += hash_of(u, i) == hash;
    return count;
}

// The value of the majority of GPUs counts as right; of two GPUs, the first one's.
bel_status *bel_cuda_updater_compare(bel_updater *updater)
{
    bel_cuda_updater *u = bel_cuda_updater_of(updater);
    bel_status *status = NULL;
    for (int i = 0; i < u->place_count && status == NULL; i++)
        status = hash_place(u, i);
    BEL_TRY(bel_cuda_updater_finish(u, status));
    int right = 0, wrong = 0;
    for (int i = 1; i < u->place_count; i++)
        if (count_like(u, hash_of(u, i)) > count_like(u, hash_of(u, right))) right = i;
    while (wrong < u->place_count && hash_of(u, wrong) == hash_of(u, right))
        wrong++;
    if (wrong == u->place_count) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s has other parameters than %s: their hash is %016llx, expected %016llx",
                   u->places[wrong].device->device.name, u->places[right].device->device.name,
                   (unsigned long long)hash_of(u, wrong), (unsigned long long)hash_of(u, right));
}
