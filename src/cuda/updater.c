// Parameters on cards. Each card has a stream for updates. A step goes card by card, and nothing is
// waited for before all is queued: the numbers of the step are copied in, the gradients that other
// cards have of the range that this one updates are copied here, one launch makes the pass, and the
// new values are copied to the other cards. With a replica on each card these copies carry what a
// reduce-scatter and an all-gather do, without NCCL: how that adds up depends on the cards and how
// they are linked, and here it is the tree of replicas, on any cards.
//
// Events of the driver order streams of different cards, but none is needed: programs and updates
// take turns, and who queues either has waited for the other (bel_cuda_await_stream).
#include "cuda/updater.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/kernels/update.h"
#include "cuda/texts.h"
#include "tensor/grain.h"

_Static_assert((int)BEL_CUDA_UPDATE_REPLICAS == (int)BEL_UPDATER_REPLICAS &&
                   (int)BEL_CUDA_UPDATE_SLOTS == (int)BEL_RULE_MAX_SLOTS &&
                   (int)BEL_CUDA_UPDATE_GRAIN == (int)BEL_GRAIN,
               "what kernels are told");
_Static_assert(sizeof(bel_cuda_piece) == sizeof(bel_update_piece), "pieces are copied as they are");

// A card, and the range of the space that it updates.
typedef struct place {
    bel_cuda_device *device;
    void *stream, *done;      // an event
    bel_device_memory values; // of the whole space
    int first_piece, piece_count;
    int64_t first, elements; // of the space, from its first piece to its last one's end
    int64_t first_grain, grain_count;
    bel_device_memory pieces, numbers, averages, directions, squares;
    bel_device_memory slots[BEL_RULE_MAX_SLOTS];
    bel_device_memory gathered; // gradients of other cards, one range after another
    void *kernel_update, *kernel_direct, *kernel_follow;
    bel_cuda_operands operands;
    bel_cuda_update params;
} place;

// A replica, and its gradients on its tower's card.
typedef struct replica {
    int place;
    bel_device_memory gradients;
} replica;

typedef struct cuda_updater {
    bel_updater updater; // first: a bel_updater is cast to this
    const bel_cuda_api *api;
    int64_t elements;
    place *places;
    int place_count;
    int *place_of; // by tower
    replica *replicas;
    int replica_count, tower_count;
    bel_update_plan plan; // its arrays and groups; pieces are on the cards
    bool planned;
    char *staged; // pinned: the numbers of a step, which cards copy from here …
    size_t staged_bytes;
    double *squares; // … and behind them the squares, as `direct` gives them, which they copy here
} cuda_updater;

static cuda_updater *of(bel_updater *updater)
{
    return (cuda_updater *)updater;
}

static size_t bytes_of(int64_t elements)
{
    return (size_t)elements * sizeof(float);
}

// From one gathered range of gradients to the next. Kernels take four elements at a time, and a
// card those at multiples of 16 bytes alone.
static int64_t stride_of(const place *p)
{
    return (p->elements + 3) / 4 * 4;
}

static uint64_t address_of(const bel_device_memory *memory, int64_t element)
{
    return (uint64_t)(uintptr_t)memory->address + bytes_of(element);
}

static float *floats_of(const bel_device_memory *memory)
{
    return memory->address;
}

// --- Memory --------------------------------------------------------------------------------------

// With zeros, as padding between variables is read as well. The stream is waited for by who calls.
static bel_status *make(const place *p, size_t bytes, const char *what, bel_device_memory *memory)
{
    bel_device *device = &p->device->device;
    BEL_TRY(device->ops->allocate(device, bytes, what, memory));
    if (bytes == 0) return NULL;
    return bel_cuda_status(
        p->device->api->fill((uint64_t)(uintptr_t)memory->address, 0, bytes, p->stream),
        "fill memory");
}

static void drop(const place *p, bel_device_memory *memory)
{
    p->device->device.ops->release(&p->device->device, memory);
}

// Whatever `status` has come of queueing: waits for what was queued, on all cards. The first error
// is told. Where one card has not ended in time the others count as lost with it.
static bel_status *finish(cuda_updater *u, bel_status *status)
{
    for (int i = 0; i < u->place_count; i++) {
        const place *p = &u->places[i];
        if (p->done == NULL) continue;                          // it could not be made
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

// --- Life ----------------------------------------------------------------------------------------

// The place of a device, made if it is the first tower's there.
static bel_status *place_for(cuda_updater *u, bel_device *device, int *out_place)
{
    for (int i = 0; i < u->place_count; i++) {
        *out_place = i;
        if (&u->places[i].device->device == device) return NULL;
    }
    *out_place = u->place_count++;
    place *p = &u->places[*out_place];
    p->device = (bel_cuda_device *)device;
    u->api = p->device->api;
    BEL_TRY(bel_cuda_enter(p->device));
    BEL_TRY(bel_cuda_status(u->api->stream_create(&p->stream, BEL_CUDA_STREAM_NON_BLOCKING),
                            "make a stream"));
    BEL_TRY(
        bel_cuda_status(u->api->event_create(&p->done, BEL_CUDA_EVENT_NO_TIMING), "make an event"));
    return make(p, bytes_of(u->elements), "parameters", &p->values);
}

// Where the driver can, cards copy from each other without a way around through the process.
static void open_ways(const cuda_updater *u)
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

static void destroy(bel_updater *updater);

static bel_status *make_all(cuda_updater *u, bel_device *const *devices)
{
    for (int t = 0; t < u->tower_count; t++)
        BEL_TRY(place_for(u, devices[t], &u->place_of[t]));
    for (int r = 0; r < u->replica_count; r++) {
        replica *its = &u->replicas[r];
        its->place = u->place_of[r % u->tower_count];
        BEL_TRY(bel_cuda_enter(u->places[its->place].device));
        BEL_TRY(make(&u->places[its->place], bytes_of(u->elements), "gradients", &its->gradients));
    }
    open_ways(u);
    return NULL;
}

static const float *values(const bel_updater *updater, int tower)
{
    const cuda_updater *u = (const cuda_updater *)updater;
    return floats_of(&u->places[u->place_of[tower]].values);
}

static float *gradients(const bel_updater *updater, int r)
{
    return floats_of(&((const cuda_updater *)updater)->replicas[r].gradients);
}

// --- Planning ------------------------------------------------------------------------------------

// Cuts the pieces into as many runs as there are cards, of about as many elements.
static void cut(cuda_updater *u, const bel_update_plan *plan)
{
    int64_t all = 0, before = 0;
    for (int i = 0; i < plan->piece_count; i++)
        all += plan->pieces[i].count;
    int next = 0;
    for (int k = 0; k < u->place_count; k++) {
        place *p = &u->places[k];
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

static bel_status *make_kernels(const cuda_updater *u, place *p)
{
    unsigned rules = 0;
    for (int g = 0; g < u->plan.groups->count; g++)
        rules |= 1u << u->plan.groups->items[g].optimizer->kind;
    char *text = bel_strf("#define REPLICAS %d\n#define RULES 0x%xu\n%s", u->replica_count, rules,
                          bel_cuda_text_of("cuda/kernels/update.cu"));
    static const char *const names[] = {"update", "direct", "follow"};
    void **const kernels[] = {&p->kernel_update, &p->kernel_direct, &p->kernel_follow};
    bel_status *status = NULL;
    for (int i = 0; i < 3 && status == NULL; i++)
        status = bel_cuda_kernel(p->device, "update.cu", text, names[i], kernels[i]);
    bel_free(text);
    return status;
}

static size_t square_count(const bel_update_plan *plan)
{
    if (!plan->norms) return 0;
    return (size_t)(plan->trusts ? 2 : 1) * (size_t)plan->grain_count;
}

// What a card has of its own range.
static bel_status *make_range(const cuda_updater *u, place *p)
{
    const bel_update_plan *plan = &u->plan;
    size_t bytes = bytes_of(p->elements);
    for (int k = 0; k < plan->slot_count; k++)
        BEL_TRY(make(p, bytes, "optimizer slots", &p->slots[k]));
    if (plan->averages != NULL) BEL_TRY(make(p, bytes, "moving averages", &p->averages));
    if (plan->norms) {
        BEL_TRY(make(p, bytes, "summed gradients", &p->directions));
        BEL_TRY(make(p, square_count(plan) * sizeof(double), "norms", &p->squares));
    }
    BEL_TRY(make(p, u->staged_bytes, "the numbers of a step", &p->numbers));
    int others = 0;
    for (int r = 0; r < u->replica_count; r++)
        others += &u->places[u->replicas[r].place] != p;
    return make(p, bytes_of(stride_of(p)) * (size_t)others, "gradients of other GPUs",
                &p->gathered);
}

// The arguments of all launches of a card, which never change.
static void set_arguments(const cuda_updater *u, place *p)
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
                                     : floats_of(&p->gathered) + others++ * stride_of(p);
    }
}

static bel_status *plan_place(const cuda_updater *u, place *p, const bel_update_piece *pieces)
{
    size_t bytes = (size_t)p->piece_count * sizeof *pieces;
    BEL_TRY(bel_cuda_enter(p->device));
    BEL_TRY(make_kernels(u, p));
    BEL_TRY(make_range(u, p));
    BEL_TRY(p->device->device.ops->allocate(&p->device->device, bytes, "a plan", &p->pieces));
    set_arguments(u, p);
    if (bytes == 0) return NULL;
    return bel_cuda_status(
        u->api->copy_in(address_of(&p->pieces, 0), pieces + p->first_piece, bytes, p->stream),
        "copy to the card");
}

// Checkpoints are copied from and to the host arrays: fastest where they are pinned.
static void pin_host(const cuda_updater *u, bool pins)
{
    const bel_update_plan *plan = &u->plan;
    const float *arrays[2 + BEL_RULE_MAX_SLOTS] = {plan->values, plan->averages};
    for (int k = 0; k < plan->slot_count; k++)
        arrays[2 + k] = plan->slots[k];
    for (int i = 0; i < 2 + plan->slot_count; i++)
        if (arrays[i] != NULL)
            bel_device_pin(&u->places[0].device->device, arrays[i], bytes_of(u->elements), pins);
}

static bel_status *plan(bel_updater *updater, const bel_update_plan *plan)
{
    cuda_updater *u = of(updater);
    u->plan = *plan;
    u->plan.pieces = NULL; // the caller's
    u->planned = true;
    u->staged_bytes = sizeof(bel_cuda_update_step) +
                      (size_t)plan->groups->count * sizeof(bel_rule_step) +
                      (size_t)plan->variable_count * sizeof(float);
    u->staged_bytes = (u->staged_bytes + 7) / 8 * 8;
    size_t bytes = u->staged_bytes + square_count(plan) * sizeof(double);
    void *staged;
    BEL_TRY(bel_cuda_enter(u->places[0].device));
    BEL_TRY(bel_cuda_status(u->api->host_allocate(&staged, bytes, BEL_CUDA_HOST_PORTABLE),
                            "allocate memory of the process"));
    u->staged = staged;
    memset(staged, 0, bytes);
    u->squares = (double *)(void *)(u->staged + u->staged_bytes);
    pin_host(u, true);
    cut(u, plan);
    bel_status *status = NULL;
    for (int i = 0; i < u->place_count && status == NULL; i++)
        status = plan_place(u, &u->places[i], plan->pieces);
    return finish(u, status);
}

static void forget(bel_updater *updater)
{
    cuda_updater *u = of(updater);
    if (!u->planned) return;
    for (int i = 0; i < u->place_count; i++) {
        place *p = &u->places[i];
        for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
            drop(p, &p->slots[k]);
        drop(p, &p->averages);
        drop(p, &p->directions);
        drop(p, &p->squares);
        drop(p, &p->numbers);
        drop(p, &p->gathered);
        drop(p, &p->pieces);
    }
    pin_host(u, false);
    u->api->context_set(u->places[0].device->context);
    if (!bel_cuda_has_lost_card() && u->staged != NULL) u->api->host_release(u->staged);
    u->staged = NULL;
    u->planned = false;
}

static void destroy(bel_updater *updater)
{
    cuda_updater *u = of(updater);
    forget(updater);
    for (int r = 0; r < u->replica_count; r++)
        if (u->replicas[r].gradients.address != NULL)
            drop(&u->places[u->replicas[r].place], &u->replicas[r].gradients);
    for (int i = 0; i < u->place_count; i++) {
        place *p = &u->places[i];
        drop(p, &p->values);
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

static bel_status *copy_array(const cuda_updater *u, const place *p, uint64_t there, float *here,
                              int64_t elements, bool in)
{
    if (elements == 0) return NULL;
    size_t bytes = bytes_of(elements);
    return bel_cuda_status(in ? u->api->copy_in(there, here, bytes, p->stream)
                              : u->api->copy_out(here, there, bytes, p->stream),
                           in ? "copy to the card" : "copy from the card");
}

// Slots and averages of a card's range; with them its values, or coming in all of them.
static bel_status *copy_place(const cuda_updater *u, const place *p, bool in)
{
    const bel_update_plan *plan = &u->plan;
    int64_t first = p->first, count = p->elements;
    BEL_TRY(bel_cuda_enter(p->device));
    int64_t from = in ? 0 : first, values = in ? u->elements : count;
    BEL_TRY(copy_array(u, p, address_of(&p->values, from), plan->values + from, values, in));
    for (int k = 0; k < plan->slot_count; k++)
        BEL_TRY(copy_array(u, p, address_of(&p->slots[k], 0), plan->slots[k] + first, count, in));
    if (plan->averages == NULL) return NULL;
    return copy_array(u, p, address_of(&p->averages, 0), plan->averages + first, count, in);
}

static bel_status *copy_all(cuda_updater *u, bool in)
{
    bel_status *status = NULL;
    for (int i = 0; i < u->place_count && status == NULL; i++)
        status = copy_place(u, &u->places[i], in);
    return finish(u, status);
}

static bel_status *load(bel_updater *updater)
{
    return copy_all(of(updater), true);
}

// What is in no piece never changes, so it is in the host's arrays as it was loaded.
static bel_status *save(bel_updater *updater)
{
    return copy_all(of(updater), false);
}

// --- Steps ---------------------------------------------------------------------------------------

static void stage(cuda_updater *u, const bel_update_step *step)
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

static bel_status *send_numbers(const cuda_updater *u, const place *p)
{
    return bel_cuda_status(
        u->api->copy_in(address_of(&p->numbers, 0), u->staged, u->staged_bytes, p->stream),
        "copy to the card");
}

// From one card to another, `elements` at the same place of an array each; on `to`'s stream, or
// `from`'s.
static bel_status *copy_between(const cuda_updater *u, const place *to, uint64_t there,
                                const place *from, uint64_t here, int64_t elements, void *stream)
{
    return bel_cuda_status(u->api->copy_between(there, to->device->context, here,
                                                from->device->context, bytes_of(elements), stream),
                           "copy from GPU to GPU");
}

// Gradients of the range that other cards have, of the replicas that count.
static bel_status *gather(const cuda_updater *u, const place *p, uint64_t counts)
{
    int64_t others = 0;
    for (int r = 0; r < u->replica_count; r++) {
        const place *from = &u->places[u->replicas[r].place];
        if (from == p) continue;
        if ((counts >> r & 1) != 0)
            BEL_TRY(copy_between(u, p, address_of(&p->gathered, others * stride_of(p)), from,
                                 address_of(&u->replicas[r].gradients, p->first), p->elements,
                                 p->stream));
        others++;
    }
    return NULL;
}

static bel_status *launch(const cuda_updater *u, place *p, void *kernel)
{
    void *arguments[2] = {&p->operands, &p->params};
    return bel_cuda_status(u->api->launch(kernel, (unsigned)p->piece_count, 1, 1, BEL_CUDA_BLOCK, 1,
                                          1, 0, p->stream, arguments, NULL),
                           "launch a kernel");
}

static bel_status *scatter(const cuda_updater *u, const place *p)
{
    for (int i = 0; i < u->place_count; i++) {
        const place *to = &u->places[i];
        if (to == p) continue;
        BEL_TRY(copy_between(u, to, address_of(&to->values, p->first), p,
                             address_of(&p->values, p->first), p->elements, p->stream));
    }
    return NULL;
}

// One card's part of a step.
typedef bel_status *part_fn(const cuda_updater *u, place *p, const bel_update_step *step);

static bel_status *update_part(const cuda_updater *u, place *p, const bel_update_step *step)
{
    BEL_TRY(send_numbers(u, p));
    BEL_TRY(gather(u, p, step->counts));
    BEL_TRY(launch(u, p, p->kernel_update));
    return scatter(u, p);
}

// Grains have numbers in the order of pieces, so those of a card's range follow each other.
static bel_status *fetch_squares(const cuda_updater *u, const place *p)
{
    size_t bytes = (size_t)p->grain_count * sizeof(double), all = square_count(&u->plan);
    for (size_t first = (size_t)p->first_grain; first < all; first += (size_t)u->plan.grain_count)
        BEL_TRY(bel_cuda_status(
            u->api->copy_out(u->squares + first,
                             address_of(&p->squares, 0) + first * sizeof(double), bytes, p->stream),
            "copy from the card"));
    return NULL;
}

static bel_status *direct_part(const cuda_updater *u, place *p, const bel_update_step *step)
{
    BEL_TRY(send_numbers(u, p));
    BEL_TRY(gather(u, p, step->counts));
    BEL_TRY(launch(u, p, p->kernel_direct));
    return fetch_squares(u, p);
}

static bel_status *follow_part(const cuda_updater *u, place *p, const bel_update_step *step)
{
    (void)step;
    BEL_TRY(send_numbers(u, p)); // the factors are among them
    BEL_TRY(launch(u, p, p->kernel_follow));
    return scatter(u, p);
}

static bel_status *run(cuda_updater *u, const bel_update_step *step, part_fn *part)
{
    bel_status *status = NULL;
    if (step->counts == 0) return NULL; // nothing changes
    stage(u, step);
    for (int i = 0; i < u->place_count && status == NULL; i++) {
        place *p = &u->places[i];
        if (p->piece_count == 0) continue;
        status = bel_cuda_enter(p->device);
        if (status == NULL) status = part(u, p, step);
    }
    return finish(u, status);
}

static bel_status *update(bel_updater *updater, const bel_update_step *step)
{
    return run(of(updater), step, update_part);
}

static bel_status *direct(bel_updater *updater, const bel_update_step *step, double *out_squares)
{
    cuda_updater *u = of(updater);
    size_t bytes = square_count(&u->plan) * sizeof *out_squares;
    memset(u->squares, 0, bytes);
    BEL_TRY(run(u, step, direct_part));
    memcpy(out_squares, u->squares, bytes);
    return NULL;
}

static bel_status *follow(bel_updater *updater, const bel_update_step *step)
{
    return run(of(updater), step, follow_part);
}

static const bel_updater_ops ops = {.values = values,
                                    .gradients = gradients,
                                    .plan = plan,
                                    .forget = forget,
                                    .load = load,
                                    .save = save,
                                    .update = update,
                                    .direct = direct,
                                    .follow = follow,
                                    .destroy = destroy};

bel_status *bel_cuda_updater_create(bel_device *const *devices, int towers, int replicas,
                                    int64_t elements, bel_updater **out_updater)
{
    if (replicas > BEL_UPDATER_REPLICAS)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d replicas: at most %d", replicas,
                       BEL_UPDATER_REPLICAS);
    cuda_updater *u = bel_xcalloc(1, sizeof *u);
    *u = (cuda_updater){.updater = {.ops = &ops},
                        .elements = elements,
                        .places = bel_xcalloc((size_t)towers, sizeof *u->places),
                        .place_of = bel_xcalloc((size_t)towers, sizeof *u->place_of),
                        .replicas = bel_xcalloc((size_t)replicas, sizeof *u->replicas),
                        .replica_count = replicas,
                        .tower_count = towers};
    bel_status *status = finish(u, make_all(u, devices));
    if (status != NULL) {
        destroy(&u->updater);
        return status;
    }
    u->updater.device_count = u->place_count;
    *out_updater = &u->updater;
    return NULL;
}
