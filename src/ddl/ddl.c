// The calls of belfry/ddl.h: argument checks, choice of the way, and the life of a rank. Each call
// ends in bel_ddl_call_end, so any error is sent to the others and kept for later calls. A single
// rank only makes the checks.
#include "belfry/ddl.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/str.h"
#include "ddl/check.h"
#include "ddl/explore.h"
#include "ddl/rounds.h"

// --- Tensors -------------------------------------------------------------------------------------

typedef enum kinds { ALL, NUMBERS, FLOATS } kinds; // tensors that a call accepts

static bel_status *check_tensors(const bel_ddl_call *c, kinds takes)
{
    if (c->count < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "rank %d, %s: expected tensors, got %d of them",
                       c->ddl->place.rank, c->name, c->count);
    }
    for (int i = 0; i < c->count; i++) {
        const bel_tensor *t = &c->tensors[i];
        bool floats = t->dtype == BEL_DTYPE_F32 || t->dtype == BEL_DTYPE_F64;
        bool whole = t->dtype == BEL_DTYPE_I32 || t->dtype == BEL_DTYPE_I64;
        const char *expected = NULL;
        char text[BEL_SHAPE_TEXT];
        if (takes == FLOATS && !floats) {
            expected = "f32 or f64";
        } else if (takes == NUMBERS && !floats && !whole) {
            expected = "f32, f64, i32 or i64";
        } else if (t->dtype == BEL_DTYPE_STRING) {
            expected = "numbers";
        } else if (bel_shape_elements(&t->shape) < 0 || bel_tensor_bytes(t) > INT64_MAX) {
            expected = "a shape without open dimensions that fits into memory";
        } else if (t->data == NULL && bel_tensor_bytes(t) > 0) {
            expected = "data";
        } else if (bel_ddl_call_leaves_memory(c->ddl, t)) {
            expected = "one that ends within its memory of bel_ddl_alloc";
        }
        if (expected == NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "rank %d, %s, tensor %d of %d: expected %s, got %s %s",
                       c->ddl->place.rank, c->name, i, c->count, expected, bel_dtype_name(t->dtype),
                       bel_shape_text(&t->shape, text));
    }
    return NULL;
}

// --- Calls ---------------------------------------------------------------------------------------

static bool is_alone(const bel_ddl *ddl)
{
    return ddl->place.size == 1;
}

static bel_ddl_call make_call(bel_ddl *ddl, const char *name, const bel_tensor *tensors, int count)
{
    return (bel_ddl_call){.ddl = ddl,
                          .name = name,
                          .tensors = tensors,
                          .count = count,
                          .divisor = 1,
                          .mode = ddl->mode};
}

static bel_status *ddl_meet(bel_ddl *ddl, const char *name)
{
    bel_ddl_call call = make_call(ddl, name, NULL, 0);
    BEL_TRY(bel_ddl_call_begin(&call));
    return bel_ddl_rounds_meet(&call);
}

static bel_status *ddl_call_spread(bel_ddl_call *call)
{
    BEL_TRY(check_tensors(call, ALL));
    if (is_alone(call->ddl)) return NULL;
    BEL_TRY(bel_ddl_call_begin(call));
    return bel_ddl_rounds_spread(call);
}

bel_status *bel_ddl_bcast_from(bel_ddl *ddl, int root, const bel_tensor *tensors, int count)
{
    char name[32];
    bel_snprintf(name, sizeof name, "bcast from rank %d", root);
    bel_ddl_call call = make_call(ddl, root == 0 ? "bcast" : name, tensors, count);
    call.root = root;
    bel_status *status = NULL;
    if (root < 0 || root >= ddl->place.size) {
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "rank %d, bcast: expected a root from 0 to %d, got %d",
                    ddl->place.rank, ddl->place.size - 1, root);
    }
    return bel_ddl_call_end(ddl, status == NULL ? ddl_call_spread(&call) : status);
}

bel_status *bel_ddl_bcast(bel_ddl *ddl, const bel_tensor *tensors, int count)
{
    return bel_ddl_bcast_from(ddl, 0, tensors, count);
}

static bel_status *sum_by_mpi(bel_ddl_call *call)
{
    BEL_TRY(bel_ddl_rounds_meet(call));
    for (int i = 0; i < call->count; i++)
        BEL_TRY(bel_ddl_mpi_sum(call->ddl->mpi, &call->tensors[i], call->divisor));
    return NULL;
}

static bel_status *ddl_call_sum(bel_ddl_call *call)
{
    bel_ddl *ddl = call->ddl;
    if (ddl->choices != NULL) BEL_TRY(bel_ddl_choose(call, &call->mode));
    BEL_TRY(bel_ddl_call_begin(call));
    return call->mode.letter == 'm' ? sum_by_mpi(call) : bel_ddl_rounds_sum(call);
}

// Ranks with correct sums learn of a rank with wrong ones before they continue.
static bel_status *sum_checked(bel_ddl_call *call, double tolerance)
{
    bel_ddl_copy *copy;
    BEL_TRY(bel_ddl_copy_create(call, &copy));
    bel_status *status = ddl_call_sum(call);
    if (status == NULL) status = bel_ddl_check_sums(call, copy, tolerance);
    if (status == NULL) status = ddl_meet(call->ddl, "check");
    bel_ddl_copy_destroy(copy);
    return status;
}

static bel_status *ddl_call_reduce(bel_ddl_call *call, bel_ddl_op op)
{
    double tolerance = call->ddl->settings.options.check;
    BEL_TRY(check_tensors(call, op == BEL_DDL_SUM ? NUMBERS : FLOATS));
    if (is_alone(call->ddl)) return NULL;
    return tolerance > 0 ? sum_checked(call, tolerance) : ddl_call_sum(call);
}

bel_status *bel_ddl_all_reduce_n(bel_ddl *ddl, bel_ddl_op op, const bel_tensor *tensors, int count)
{
    if (op != BEL_DDL_SUM && op != BEL_DDL_AVG) {
        return bel_ddl_call_end(ddl, BEL_ERR(BEL_INVALID_ARGUMENT,
                                             "rank %d, all_reduce_n: expected BEL_DDL_SUM or "
                                             "BEL_DDL_AVG, got %d",
                                             ddl->place.rank, (int)op));
    }
    bool sums = op == BEL_DDL_SUM;
    const char *name = sums ? "all_reduce_n (sum)" : "all_reduce_n (avg)";
    bel_ddl_call call = make_call(ddl, name, tensors, count);
    call.divisor = sums ? 1 : ddl->place.size;
    return bel_ddl_call_end(ddl, ddl_call_reduce(&call, op));
}

bel_status *bel_ddl_barrier(bel_ddl *ddl)
{
    return is_alone(ddl) ? NULL : bel_ddl_call_end(ddl, ddl_meet(ddl, "barrier"));
}

// --- Memory --------------------------------------------------------------------------------------

// All ranks have agreed on the size; the group's first rank has created the memory by then.
static bel_status *share_memory(bel_ddl *ddl, const char *name, size_t bytes, bel_ddl_memory *out)
{
    bel_ddl_region *region = ddl->region;
    uint64_t number = ddl->memory_count;
    bool first = ddl->place.rank == ddl->group.first;
    if (first) BEL_TRY(bel_ddl_region_make_memory(region, number, bytes, out));
    bel_status *status = ddl_meet(ddl, name);
    if (status == NULL && !first) status = bel_ddl_region_open_memory(region, number, bytes, out);
    if (status == NULL) status = ddl_meet(ddl, name); // all have opened it
    if (first) bel_ddl_region_forget_name(region, number, out);
    if (status != NULL) bel_ddl_region_unmap(region, out);
    return status;
}

// No other rank reads it in place.
static bel_status *own_memory(bel_ddl *ddl, const char *name, size_t bytes, bel_ddl_memory *out)
{
    void *base;
    BEL_TRY(bel_pages_create(bytes, true, "tensors", &base));
    *out = (bel_ddl_memory){.base = base, .bytes = bytes};
    return is_alone(ddl) ? NULL : ddl_meet(ddl, name);
}

static bel_status *alloc(bel_ddl *ddl, size_t bytes, bel_ddl_memory *out)
{
    char name[64];
    bel_snprintf(name, sizeof name, "alloc of %zu bytes", bytes);
    if (bytes == 0 || bytes > SIZE_MAX / 2 / (size_t)ddl->place.size) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "rank %d, %s: expected bytes above 0 that fit into memory", ddl->place.rank,
                       name);
    }
    return ddl->region == NULL ? own_memory(ddl, name, bytes, out)
                               : share_memory(ddl, name, bytes, out);
}

static size_t member_of(const bel_ddl *ddl)
{
    return (size_t)(ddl->place.rank - ddl->group.first);
}

static void give_back(bel_ddl *ddl, bel_ddl_memory *memory)
{
    if (ddl->region != NULL) bel_ddl_region_unmap(ddl->region, memory);
    if (ddl->region == NULL) bel_pages_destroy(memory->base, memory->bytes);
    memory->base = NULL;
}

bel_status *bel_ddl_alloc(bel_ddl *ddl, size_t bytes, void **out_memory)
{
    *out_memory = NULL;
    bel_ddl_memory memory = {0};
    bel_status *status = bel_ddl_call_end(ddl, alloc(ddl, bytes, &memory));
    if (status != NULL) {
        if (memory.base != NULL) give_back(ddl, &memory);
        return status;
    }
    ddl->memories = bel_xgrow(ddl->memories, &ddl->memory_capacity, ddl->memory_count + 1,
                              sizeof *ddl->memories);
    ddl->memories[ddl->memory_count++] = memory;
    *out_memory = memory.base + member_of(ddl) * memory.stride;
    return NULL;
}

void bel_ddl_free(bel_ddl *ddl, void *memory)
{
    for (size_t i = 0; i < ddl->memory_count && memory != NULL; i++) {
        bel_ddl_memory *m = &ddl->memories[i];
        if (m->base != NULL && m->base + member_of(ddl) * m->stride == (char *)memory)
            give_back(ddl, m);
    }
}

// --- Life ----------------------------------------------------------------------------------------

// When `belfry local ranks` is killed, its ranks are killed too; a program that one of them has
// started is not.
static void end_with_starter(void)
{
    const char *text = getenv("BELFRY_DDL_STARTER");
    int64_t starter;
    if (text != NULL && bel_parse_i64(text, strlen(text), &starter) && starter == getppid())
        bel_linux_signal_at_parents_end(starter, SIGKILL);
}

// Call it before any CUDA function, because CUDA reads the variable once.
static void order_devices(bool pci)
{
    if (pci) (void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
}

// True if this rank reaches some others only over connections.
static bool needs_net(const bel_ddl *ddl)
{
    int together = ddl->mode.dims[0] == 0 ? ddl->place.size : ddl->mode.dims[0];
    return ddl->place.local_size < ddl->place.size || together < ddl->place.size;
}

static bel_status *join_group(bel_ddl *ddl, const bel_launch *launch)
{
    int size = ddl->mode.dims[0], rank = ddl->place.rank;
    ddl->group = (bel_ddl_group){rank - rank % size, size, ddl->place.size};
    ddl->chunk = size < ddl->place.size ? BEL_DDL_NET_CHUNK : BEL_DDL_CHUNK;
    if (size == 1) return NULL;
    return bel_ddl_region_join(launch, ddl->group, ddl->chunk, ddl->settings.options.timeout_secs,
                               ddl->net == NULL ? NULL : bel_ddl_net_look, ddl->net, &ddl->region);
}

// Allocates room for other groups' values of a chunk: of all groups at once, or in parts.
static bel_status *make_room(bel_ddl *ddl)
{
    void *share, *parts;
    BEL_TRY(bel_pages_create(ddl->chunk, false, "a share", &share));
    ddl->share = share;
    BEL_TRY(bel_pages_create(ddl->chunk * (size_t)ddl->place.size, false, "shares", &parts));
    ddl->parts = parts;
    return NULL;
}

static bel_status *join_others(bel_ddl *ddl, const bel_launch *launch)
{
    const bel_ddl_options *options = &ddl->settings.options;
    int size = ddl->place.size;
    if (!needs_net(ddl)) {
        BEL_TRY(bel_ddl_mode_complete(&ddl->mode, size, size, options->order));
        return join_group(ddl, launch);
    }
    char settings[BEL_DDL_SETTINGS_TEXT];
    bel_ddl_meeting meeting;
    BEL_TRY(bel_ddl_meet(launch, bel_ddl_settings_text(&ddl->settings, settings),
                         options->timeout_secs, &meeting));
    bel_fault_point("ddl_met");
    ddl->net = bel_ddl_net_create(&meeting, &ddl->place, options->timeout_secs);
    BEL_TRY(bel_ddl_mode_complete(&ddl->mode, size, meeting.together, options->order));
    BEL_TRY(join_group(ddl, launch));
    bel_ddl_net_watch(ddl->net, ddl->region);
    return make_room(ddl);
}

// In mode p, Open MPI is one of the ways if all ranks have initialized it.
static bel_status *try_mpi(bel_ddl *ddl)
{
    bel_status *status = bel_ddl_mpi_open(&ddl->place, false, &ddl->mpi);
    int32_t with = status == NULL;
    bel_tensor count = {BEL_DTYPE_I32, bel_shape_scalar(), &with};
    bel_status_ignore(status); // then it is not a way
    bel_ddl_call call = make_call(ddl, "init", &count, 1);
    call.mode.letter = 's';
    BEL_TRY(bel_ddl_call_begin(&call));
    BEL_TRY(bel_ddl_rounds_sum(&call));
    if (with == ddl->place.size) return NULL;
    bel_ddl_mpi_close(ddl->mpi, true);
    ddl->mpi = NULL;
    return NULL;
}

// Compares the settings like a call that has them in its name.
static bel_status *compare_settings(bel_ddl *ddl)
{
    char settings[BEL_DDL_SETTINGS_TEXT], name[BEL_DDL_SETTINGS_TEXT + 16];
    bel_snprintf(name, sizeof name, "init with %s",
                 bel_ddl_settings_text(&ddl->settings, settings));
    return ddl_meet(ddl, name);
}

static bel_status *ddl_begin(bel_ddl *ddl, const bel_launch *launch)
{
    bel_ddl_order order = ddl->settings.options.order;
    char mode = ddl->mode.letter;
    if (is_alone(ddl)) return bel_ddl_mode_complete(&ddl->mode, 1, 1, order);
    BEL_TRY(join_others(ddl, launch));
    BEL_TRY(compare_settings(ddl));
    if (mode == 'm') BEL_TRY(bel_ddl_mpi_open(&ddl->place, true, &ddl->mpi));
    if (mode == 'p' && order == BEL_DDL_FAST) BEL_TRY(try_mpi(ddl));
    if (mode == 'p') BEL_TRY(bel_ddl_choices_open(ddl, &ddl->choices));
    return NULL;
}

static void ddl_destroy(bel_ddl *ddl)
{
    for (size_t i = 0; i < ddl->memory_count; i++)
        give_back(ddl, &ddl->memories[i]);
    bel_ddl_mpi_close(ddl->mpi, ddl->failed == BEL_OK);
    bel_ddl_choices_close(ddl->choices);
    bel_ddl_net_destroy(ddl->net);
    bel_ddl_region_leave(ddl->region);
    bel_pages_destroy(ddl->share, ddl->chunk);
    bel_pages_destroy(ddl->parts, ddl->chunk * (size_t)ddl->place.size);
    bel_free(ddl->memories);
    bel_free(ddl->scratch);
    bel_free(ddl);
}

bel_status *bel_ddl_init(const bel_ddl_options *options, bel_ddl **out_ddl)
{
    *out_ddl = NULL;
    bel_ddl_settings settings;
    bel_launch launch;
    BEL_TRY(bel_ddl_settings_read(options, &settings));
    end_with_starter();
    order_devices(settings.options.pci);
    bel_launch_claim();
    BEL_TRY(bel_launch_find(BEL_DDL_MAX_RANKS, &launch));
    bel_ddl *ddl = bel_xcalloc(1, sizeof *ddl);
    ddl->settings = settings;
    ddl->mode = settings.mode;
    ddl->calls = UINT64_MAX; // the call of init has the number 0
    ddl->place =
        (bel_ddl_place){launch.rank, launch.size, launch.local_rank, launch.local_size,
                        settings.options.device < 0 ? launch.local_rank : settings.options.device};
    ddl->scratch = bel_xcalloc((size_t)(launch.size + 1) / 2, BEL_DDL_ADD_BLOCK);
    bel_status *status = bel_ddl_call_end(ddl, ddl_begin(ddl, &launch));
    if (status != NULL) {
        ddl_destroy(ddl);
        return status;
    }
    *out_ddl = ddl;
    return NULL;
}

void bel_ddl_abort(bel_ddl *ddl, const char *why)
{
    if (ddl == NULL) return;
    bel_status *status = BEL_ERR(BEL_ABORTED, "rank %d of %d has given up: %s", ddl->place.rank,
                                 ddl->place.size, why);
    bel_status_ignore(bel_ddl_call_end(ddl, status)); // only the others need it
    ddl_destroy(ddl);
}

bel_ddl_place bel_ddl_place_of(const bel_ddl *ddl)
{
    return ddl->place;
}

bel_status *bel_ddl_finalize(bel_ddl *ddl)
{
    if (ddl == NULL) return NULL;
    if (ddl->net != NULL) bel_ddl_net_expect_end(ddl->net);
    bel_status *status = is_alone(ddl) ? NULL : bel_ddl_call_end(ddl, ddl_meet(ddl, "finalize"));
    ddl_destroy(ddl);
    return status;
}
