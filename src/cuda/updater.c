// GPU updater: memory of the parameters, the plan of the ranges that GPUs update, and copies from
// and to the process for checkpoints. updater_step.c makes the steps. Each GPU has one stream for
// all of it.
//
// Streams of different GPUs need no events between them: programs and updates take turns, and a
// thread that queues either has waited for the other (bel_cuda_await_stream).
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cuda/texts.h"
#include "cuda/updater_inner.h"
#include "tensor/grain.h"

_Static_assert((int)BEL_CUDA_UPDATE_REPLICAS == (int)BEL_UPDATER_REPLICAS &&
                   (int)BEL_CUDA_UPDATE_SLOTS == (int)BEL_RULE_MAX_SLOTS &&
                   (int)BEL_CUDA_UPDATE_GRAIN == (int)BEL_GRAIN,
               "arguments of kernels");
_Static_assert(sizeof(bel_cuda_piece) == sizeof(bel_update_piece), "pieces are copied as they are");

static float *floats_of(const bel_device_memory *memory)
{
    return memory->address;
}

// --- Memory --------------------------------------------------------------------------------------

// Allocates zeroed memory, as padding between variables is read as well. The caller waits for the
// stream.
static bel_status *updater_make(const bel_cuda_place *p, size_t bytes, const char *what,
                                bel_device_memory *memory)
{
    bel_device *device = &p->device->device;
    BEL_TRY(device->ops->allocate(device, bytes, what, memory));
    if (bytes == 0) return NULL;
    return bel_cuda_status(
        p->device->api->fill((uint64_t)(uintptr_t)memory->address, 0, bytes, p->stream),
        "fill memory");
}

static void updater_drop(const bel_cuda_place *p, bel_device_memory *memory)
{
    p->device->device.ops->release(&p->device->device, memory);
}

// --- Creation ------------------------------------------------------------------------------------

// The place of a device, which is created for its first tower.
static bel_status *place_for(bel_cuda_updater *u, bel_device *device, int *out_place)
{
    for (int i = 0; i < u->place_count; i++) {
        *out_place = i;
        if (&u->places[i].device->device == device) return NULL;
    }
    *out_place = u->place_count++;
    bel_cuda_place *p = &u->places[*out_place];
    p->device = (bel_cuda_device *)device;
    u->api = p->device->api;
    BEL_TRY(bel_cuda_enter(p->device));
    BEL_TRY(bel_cuda_status(u->api->stream_create(&p->stream, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
    BEL_TRY(
        bel_cuda_status(u->api->event_create(&p->done, BEL_CUDA_EVENT_NO_TIMING), "make an event"));
    return updater_make(p, bel_cuda_float_bytes(u->elements), "parameters", &p->values);
}

// If the driver can, GPUs copy from each other directly, not through the process.
static void open_ways(const bel_cuda_updater *u)
{
    for (int i = 0; i < u->place_count; i++) {
        u->api->context_set(u->places[i].device->context);
        for (int j = 0; j < u->place_count; j++) {
            int can = 0;
            if (i == j) continue;
            u->api->peer_possible(&can, u->places[i].device->number, u->places[j].device->number);
            if (can != 0) u->api->peer_enable(u->places[j].device->context, 0);
        }
    }
}

static void updater_destroy(bel_updater *updater);

static bel_status *make_all(bel_cuda_updater *u, bel_device *const *devices)
{
    for (int t = 0; t < u->tower_count; t++)
        BEL_TRY(place_for(u, devices[t], &u->place_of[t]));
    for (int r = 0; r < u->replica_count; r++) {
        bel_cuda_replica *its = &u->replicas[r];
        its->place = u->place_of[r % u->tower_count];
        BEL_TRY(bel_cuda_enter(u->places[its->place].device));
        BEL_TRY(updater_make(&u->places[its->place], bel_cuda_float_bytes(u->elements), "gradients",
                             &its->gradients));
    }
    open_ways(u);
    return NULL;
}

static const float *values(const bel_updater *updater, int tower)
{
    const bel_cuda_updater *u = (const bel_cuda_updater *)updater;
    return floats_of(&u->places[u->place_of[tower]].values);
}

static float *gradients(const bel_updater *updater, int r)
{
    return floats_of(&((const bel_cuda_updater *)updater)->replicas[r].gradients);
}

// --- Planning ------------------------------------------------------------------------------------

// Cuts the pieces into one run for each GPU, of about the same number of elements.
static void cuda_updater_cut(bel_cuda_updater *u, const bel_update_plan *plan)
{
    int64_t all = 0, before = 0;
    for (int i = 0; i < plan->piece_count; i++)
        all += plan->pieces[i].count;
    int next = 0;
    for (int k = 0; k < u->place_count; k++) {
        bel_cuda_place *p = &u->places[k];
        p->first_piece = next;
        while (next < plan->piece_count &&
               (k == u->place_count - 1 || before * u->place_count < all * (k + 1)))
            before += plan->pieces[next++].count;
        p->piece_count = next - p->first_piece;
        p->first = p->elements = 0;
        if (p->piece_count == 0) continue;
        const bel_update_piece *from = &plan->pieces[p->first_piece],
                               *last = &plan->pieces[next - 1];
        p->first = from->offset;
        p->elements = last->offset + last->count - p->first;
        p->first_grain = from->grain;
        p->grain_count = last->grain + 1 - from->grain;
    }
}

static bel_status *make_kernels(const bel_cuda_updater *u, bel_cuda_place *p)
{
    unsigned rules = 0;
    for (int g = 0; g < u->plan.groups->count; g++)
        rules |= 1u << u->plan.groups->items[g].optimizer->kind;
    char *text = bel_strf("#define REPLICAS %d\n#define RULES 0x%xu\n%s", u->replica_count, rules,
                          bel_cuda_text_of("cuda/kernels/update.cu"));
    static const char *const names[] = {"update", "direct", "follow", "hash_values"};
    void **const kernels[] = {&p->kernel_update, &p->kernel_direct, &p->kernel_follow,
                              &p->kernel_hash};
    bel_status *status = NULL;
    for (int i = 0; i < 4 && status == NULL; i++)
        status = bel_cuda_kernel(p->device, "update.cu", text, names[i], kernels[i]);
    bel_free(text);
    return status;
}

// Allocates a GPU's memory for its range.
static bel_status *make_range(const bel_cuda_updater *u, bel_cuda_place *p)
{
    const bel_update_plan *plan = &u->plan;
    size_t bytes = bel_cuda_float_bytes(p->elements);
    for (int k = 0; k < plan->slot_count; k++)
        BEL_TRY(updater_make(p, bytes, "optimizer slots", &p->slots[k]));
    if (plan->averages != NULL) BEL_TRY(updater_make(p, bytes, "moving averages", &p->averages));
    if (plan->norms) {
        BEL_TRY(updater_make(p, bytes, "summed gradients", &p->directions));
        BEL_TRY(
            updater_make(p, bel_cuda_square_count(plan) * sizeof(double), "norms", &p->squares));
    }
    BEL_TRY(updater_make(p, u->staged_bytes, "the numbers of a step", &p->numbers));
    BEL_TRY(updater_make(p, BEL_CUDA_HASH_BLOCKS * sizeof(uint64_t), "hashes", &p->hashes));
    int others = 0;
    for (int r = 0; r < u->replica_count; r++)
        others += &u->places[u->replicas[r].place] != p;
    return updater_make(p, bel_cuda_float_bytes(bel_cuda_stride_of(p)) * (size_t)others,
                        "gradients of other GPUs", &p->gathered);
}

// Sets the arguments of all launches of a GPU, which never change.
static void set_arguments(const bel_cuda_updater *u, bel_cuda_place *p)
{
    size_t groups = sizeof(bel_cuda_update_step),
           factors = groups + (size_t)u->plan.groups->count * sizeof(bel_rule_step);
    char *numbers = p->numbers.address;
    p->operands =
        (bel_cuda_operands){.in = {p->pieces.address, numbers, numbers + groups, numbers + factors},
                            .out = {p->values.address, p->averages.address, p->directions.address},
                            .work = p->squares.address};
    p->params = (bel_cuda_update){
        .first = p->first, .grain_count = u->plan.grain_count, .trusts = u->plan.trusts};
    for (int k = 0; k < u->plan.slot_count; k++)
        p->params.slots[k] = floats_of(&p->slots[k]);
    int64_t others = 0;
    for (int r = 0; r < u->replica_count; r++) {
        bool own = &u->places[u->replicas[r].place] == p;
        p->params.begins[r] = own ? 0 : p->first;
        p->params.gradients[r] = own ? floats_of(&u->replicas[r].gradients)
                                     : floats_of(&p->gathered) + others++ * bel_cuda_stride_of(p);
    }
}

static bel_status *plan_place(const bel_cuda_updater *u, bel_cuda_place *p,
                              const bel_update_piece *pieces)
{
    size_t bytes = (size_t)p->piece_count * sizeof *pieces;
    BEL_TRY(bel_cuda_enter(p->device));
    BEL_TRY(make_kernels(u, p));
    BEL_TRY(make_range(u, p));
    BEL_TRY(p->device->device.ops->allocate(&p->device->device, bytes, "a plan", &p->pieces));
    set_arguments(u, p);
    if (bytes == 0) return NULL;
    return bel_cuda_status(u->api->copy_in(bel_cuda_address_of(&p->pieces, 0),
                                           pieces + p->first_piece, bytes, p->stream),
                           "copy to the GPU");
}

// Checkpoints are copied from and to the host arrays, fastest if they are pinned.
static void pin_host(const bel_cuda_updater *u, bool pins)
{
    const bel_update_plan *plan = &u->plan;
    const float *arrays[2 + BEL_RULE_MAX_SLOTS] = {plan->values, plan->averages};
    for (int k = 0; k < plan->slot_count; k++)
        arrays[2 + k] = plan->slots[k];
    for (int i = 0; i < 2 + plan->slot_count; i++)
        if (arrays[i] != NULL)
            bel_device_pin(&u->places[0].device->device, arrays[i],
                           bel_cuda_float_bytes(u->elements), pins);
}

static bel_status *updater_plan(bel_updater *updater, const bel_update_plan *plan)
{
    bel_cuda_updater *u = bel_cuda_updater_of(updater);
    u->plan = *plan;
    u->plan.pieces = NULL; // the caller's
    u->planned = true;
    u->staged_bytes = sizeof(bel_cuda_update_step) +
                      (size_t)plan->groups->count * sizeof(bel_rule_step) +
                      (size_t)plan->variable_count * sizeof(float);
    u->staged_bytes = (u->staged_bytes + 7) / 8 * 8;
    size_t squares = bel_cuda_square_count(plan),
           hashes = (size_t)u->place_count * BEL_CUDA_HASH_BLOCKS,
           bytes = u->staged_bytes + squares * sizeof(double) + hashes * sizeof(uint64_t);
    void *staged;
    BEL_TRY(bel_cuda_enter(u->places[0].device));
    BEL_TRY(bel_cuda_status(u->api->host_allocate(&staged, bytes, BEL_CUDA_HOST_PORTABLE),
                            "allocate memory of the process"));
    u->staged = staged;
    memset(staged, 0, bytes);
    u->squares = (double *)(void *)(u->staged + u->staged_bytes);
    u->hashes = (uint64_t *)(void *)(u->squares + squares);
    pin_host(u, true);
    cuda_updater_cut(u, plan);
    bel_status *status = NULL;
    for (int i = 0; i < u->place_count && status == NULL; i++)
        status = plan_place(u, &u->places[i], plan->pieces);
    return bel_cuda_updater_finish(u, status);
}

static void updater_forget(bel_updater *updater)
{
    bel_cuda_updater *u = bel_cuda_updater_of(updater);
    if (!u->planned) return;
    for (int i = 0; i < u->place_count; i++) {
        bel_cuda_place *p = &u->places[i];
        for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
            updater_drop(p, &p->slots[k]);
        updater_drop(p, &p->averages);
        updater_drop(p, &p->directions);
        updater_drop(p, &p->squares);
        updater_drop(p, &p->numbers);
        updater_drop(p, &p->hashes);
        updater_drop(p, &p->gathered);
        updater_drop(p, &p->pieces);
    }
    pin_host(u, false);
    u->api->context_set(u->places[0].device->context);
    if (!bel_cuda_has_lost_card() && u->staged != NULL) u->api->host_release(u->staged);
    u->staged = NULL;
    u->planned = false;
}

static void updater_destroy(bel_updater *updater)
{
    bel_cuda_updater *u = bel_cuda_updater_of(updater);
    updater_forget(updater);
    for (int r = 0; r < u->replica_count; r++)
        if (u->replicas[r].gradients.address != NULL)
            updater_drop(&u->places[u->replicas[r].place], &u->replicas[r].gradients);
    for (int i = 0; i < u->place_count; i++) {
        bel_cuda_place *p = &u->places[i];
        updater_drop(p, &p->values);
        if (bel_cuda_has_lost_card()) continue; // the driver may wait for it
        u->api->context_set(p->device->context);
        if (p->done != NULL) u->api->event_destroy(p->done);
        if (p->stream != NULL) u->api->stream_destroy(p->stream);
    }
    bel_free(u->replicas);
    bel_free(u->place_of);
    bel_free(u->places);
    bel_free(u);
}

// --- Checkpoints ---------------------------------------------------------------------------------

static bel_status *copy_array(const bel_cuda_updater *u, const bel_cuda_place *p, uint64_t there,
                              float *here, int64_t elements, bool in)
{
    if (elements == 0) return NULL;
    size_t bytes = bel_cuda_float_bytes(elements);
    return bel_cuda_status(in ? u->api->copy_in(there, here, bytes, p->stream)
                              : u->api->copy_out(here, there, bytes, p->stream),
                           in ? "copy to the GPU" : "copy from the GPU");
}

// Copies slots and averages of a GPU's range. Out: also the range's values; in: all values.
static bel_status *copy_place(const bel_cuda_updater *u, const bel_cuda_place *p, bool in)
{
    const bel_update_plan *plan = &u->plan;
    int64_t first = p->first, count = p->elements;
    BEL_TRY(bel_cuda_enter(p->device));
    int64_t from = in ? 0 : first, values = in ? u->elements : count;
    BEL_TRY(
        copy_array(u, p, bel_cuda_address_of(&p->values, from), plan->values + from, values, in));
    for (int k = 0; k < plan->slot_count; k++)
        BEL_TRY(copy_array(u, p, bel_cuda_address_of(&p->slots[k], 0), plan->slots[k] + first,
                           count, in));
    if (plan->averages == NULL) return NULL;
    return copy_array(u, p, bel_cuda_address_of(&p->averages, 0), plan->averages + first, count,
                      in);
}

static bel_status *copy_all(bel_cuda_updater *u, bool in)
{
    bel_status *status = NULL;
    for (int i = 0; i < u->place_count && status == NULL; i++)
        status = copy_place(u, &u->places[i], in);
    return bel_cuda_updater_finish(u, status);
}

static bel_status *updater_load(bel_updater *updater)
{
    return copy_all(bel_cuda_updater_of(updater), true);
}

// Elements in no piece never change, so the host's arrays have them as loaded.
static bel_status *updater_save(bel_updater *updater)
{
    return copy_all(bel_cuda_updater_of(updater), false);
}

static const bel_updater_ops ops = {.values = values,
                                    .gradients = gradients,
                                    .plan = updater_plan,
                                    .forget = updater_forget,
                                    .load = updater_load,
                                    .save = updater_save,
                                    .update = bel_cuda_updater_update,
                                    .direct = bel_cuda_updater_direct,
                                    .follow = bel_cuda_updater_follow,
                                    .compare = bel_cuda_updater_compare,
                                    .destroy = updater_destroy};

bel_status *bel_cuda_updater_create(bel_device *const *devices, int towers, int replicas,
                                    int64_t elements, bel_updater **out_updater)
{
    if (replicas > BEL_UPDATER_REPLICAS)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d replicas: at most %d", replicas,
                       BEL_UPDATER_REPLICAS);
    bel_cuda_updater *u = bel_xcalloc(1, sizeof *u);
    *u = (bel_cuda_updater){.updater = {.ops = &ops},
                            .elements = elements,
                            .places = bel_xcalloc((size_t)towers, sizeof *u->places),
                            .place_of = bel_xcalloc((size_t)towers, sizeof *u->place_of),
                            .replicas = bel_xcalloc((size_t)replicas, sizeof *u->replicas),
                            .replica_count = replicas,
                            .tower_count = towers};
    bel_status *status = bel_cuda_updater_finish(u, make_all(u, devices));
    if (status != NULL) {
        updater_destroy(&u->updater);
        return status;
    }
    u->updater.device_count = u->place_count;
    *out_updater = &u->updater;
    return NULL;
}
