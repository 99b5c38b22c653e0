// Calls in rounds. A round takes as much of the tensors as fits into a rank's slot, each tensor's
// piece at an offset of whole cache lines; all ranks walk the same pieces, so none is described.
//
// An all-reduce in one round of little bytes: every rank packs its pieces, waits for all, and adds
// everything itself, so one wait is enough. Else each rank adds one share of the round's lines, of
// which it reads its own part where it is: the tensors move through the slots once, and none of
// their parts that a rank adds itself. Sums lie in a slot, from where the others take them. While
// one round's shares are being added the next one is packed:
//
//   pack(k), come to k      the others may read what this rank has packed
//   await all at k
//   add own share of k      done with k
//   pack(k + 1), come to k + 1
//   await all done with k
//   take the other shares of k
//
// Tensors that all have mapped (bel_ddl_alloc) go through the same rounds without being packed:
// their place in the slots stays empty.
//
// Slots are used again three rounds later. pack(k + 3) follows the wait for all at k + 2; who has
// come there has taken its shares of k.
#include "belfry/ddl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/str.h"
#include "ddl/add.h"
#include "ddl/region.h"

enum {
    LINE = 64,             // bytes: ranks do not write into one cache line
    SMALL_BYTES = 8 << 10, // of all ranks, up to which every rank adds them itself
};

struct bel_ddl {
    bel_ddl_place place;
    bel_ddl_region *region;   // NULL: alone
    uint64_t calls, rounds;   // begun so far
    void *scratch;            // of bel_ddl_add
    bel_ddl_memory *memories; // in the order of bel_ddl_alloc
    size_t memory_count, memory_capacity;
};

// --- Pieces --------------------------------------------------------------------------------------

// A place in a call's tensors: what lies before it is in earlier rounds.
typedef struct cursor {
    int tensor;
    size_t offset; // bytes
} cursor;

typedef struct call {
    bel_ddl *ddl;
    const char *name;
    const bel_tensor *tensors;
    int count;
    double divisor; // of sums
    bool direct;    // tensors in memory of bel_ddl_alloc are read where they lie
} call;

// A part of one tensor, and its place in the slots, which stays empty where there is a memory.
typedef struct piece {
    char *data;
    bel_dtype dtype;
    size_t bytes, place;
    const bel_ddl_memory *memory; // in which all ranks have it; NULL: each has it for itself
} piece;

// The memory that this rank's tensor lies in; NULL: in none.
static const bel_ddl_memory *memory_of(const bel_ddl *ddl, const bel_tensor *tensor)
{
    size_t bytes = bel_tensor_bytes(tensor);
    for (size_t i = 0; i < ddl->memory_count; i++) {
        const bel_ddl_memory *memory = &ddl->memories[i];
        const char *own = memory->base + (size_t)ddl->place.rank * memory->stride;
        uintptr_t at = (uintptr_t)tensor->data - (uintptr_t)own;
        if (memory->base != NULL && at <= memory->bytes && bytes <= memory->bytes - at)
            return memory;
    }
    return NULL;
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

// The next piece of a round whose slots are filled up to *place. False: the round is full, or no
// tensors are left.
static bool next_piece(const call *c, cursor *at, size_t *place, piece *out)
{
    for (; at->tensor < c->count; at->tensor++, at->offset = 0) {
        const bel_tensor *tensor = &c->tensors[at->tensor];
        size_t left = bel_tensor_bytes(tensor) - at->offset, room = BEL_DDL_CHUNK - *place;
        if (left == 0) continue;
        if (room == 0) return false;
        size_t bytes = left < room ? left : room;
        const bel_ddl_memory *memory = c->direct ? memory_of(c->ddl, tensor) : NULL;
        *out = (piece){(char *)tensor->data + at->offset, tensor->dtype, bytes, *place, memory};
        at->offset += bytes;
        *place += whole_lines(bytes);
        return true;
    }
    return false;
}

// The part of a piece that lies in [from, to) of the slots; false: none does.
static bool clip(piece *p, size_t from, size_t to)
{
    size_t begin = p->place > from ? p->place : from;
    size_t end = p->place + p->bytes < to ? p->place + p->bytes : to;
    if (begin >= end) return false;
    p->data += begin - p->place;
    p->bytes = end - begin;
    p->place = begin;
    return true;
}

// Where a rank's share of `used` bytes begins; that of the next rank is where it ends.
static size_t share_begin(const call *c, size_t used, int rank)
{
    size_t lines = used / LINE;
    return lines * (size_t)rank / (size_t)c->ddl->place.size * LINE;
}

// --- A round -------------------------------------------------------------------------------------

typedef struct round {
    uint64_t number;
    cursor first;
    size_t used; // bytes of the slots, whole lines
} round;

static char *slot_of(const call *c, const round *r, int rank)
{
    return bel_ddl_region_slot(c->ddl->region, rank, r->number);
}

// Where rank `rank` has the piece in memory that all have mapped.
static char *part_of(const call *c, const piece *p, int rank)
{
    return p->data + ((ptrdiff_t)rank - c->ddl->place.rank) * (ptrdiff_t)p->memory->stride;
}

// Where a rank's values of the piece are read.
static char *values_of(const call *c, const round *r, const piece *p, int rank)
{
    if (rank == c->ddl->place.rank) return p->data;
    return p->memory != NULL ? part_of(c, p, rank) : slot_of(c, r, rank) + p->place;
}

// Where the sums of a rank's share are: in its tensor where all see it; else in the slot of the
// next one, over what that has packed there. So lines go to and fro between processors with what is
// written in them, and a rank that packs finds its own.
static char *sums_of(const call *c, const round *r, const piece *p, int rank)
{
    if (p->memory != NULL) return part_of(c, p, rank);
    return slot_of(c, r, (rank + 1) % c->ddl->place.size) + p->place;
}

// Packs what lies in [from, to) of the round.
static void pack(const call *c, const round *r, size_t from, size_t to)
{
    char *slot = slot_of(c, r, c->ddl->place.rank);
    cursor at = r->first;
    size_t place = 0;
    for (piece p; place < to && next_piece(c, &at, &place, &p);)
        if (p.memory == NULL && clip(&p, from, to)) memcpy(slot + p.place, p.data, p.bytes);
}

// The next round begins where the one before ended.
static cursor begin_round(const call *c, cursor first, round *out)
{
    cursor at = first;
    size_t place = 0;
    piece p;
    while (next_piece(c, &at, &place, &p)) {
    }
    *out = (round){++c->ddl->rounds, first, place};
    return at;
}

static bool is_at_end(const call *c, cursor at)
{
    while (at.tensor < c->count && bel_tensor_bytes(&c->tensors[at.tensor]) == at.offset)
        at = (cursor){at.tensor + 1, 0};
    return at.tensor == c->count;
}

static void tell(const call *c, bel_ddl_count count, const round *r)
{
    bel_ddl_region_tell(c->ddl->region, count, r->number);
}

static bel_status *await(const call *c, bel_ddl_count count, const round *r)
{
    return bel_ddl_region_await(c->ddl->region, count, r->number, c->name);
}

// This rank's share; its own values are those of its tensors, where the sums go as well.
static void add_share(const call *c, const round *r)
{
    int rank = c->ddl->place.rank, size = c->ddl->place.size;
    size_t from = share_begin(c, r->used, rank), to = share_begin(c, r->used, rank + 1);
    cursor at = r->first;
    size_t place = 0;
    for (piece p; place < to && next_piece(c, &at, &place, &p);) {
        if (!clip(&p, from, to)) continue;
        const void *values[BEL_DDL_MAX_RANKS];
        for (int i = 0; i < size; i++)
            values[i] = values_of(c, r, &p, i);
        char *sums = sums_of(c, r, &p, rank);
        bel_ddl_add(p.dtype, values, size, p.bytes, c->divisor, p.data,
                    sums == p.data ? NULL : sums, c->ddl->scratch);
    }
}

// All of the round, from the slots: nobody writes there.
static void add_everything(const call *c, const round *r)
{
    int size = c->ddl->place.size;
    cursor at = r->first;
    size_t place = 0;
    for (piece p; next_piece(c, &at, &place, &p);) {
        const void *values[BEL_DDL_MAX_RANKS];
        for (int i = 0; i < size; i++)
            values[i] = slot_of(c, r, i) + p.place;
        bel_ddl_add(p.dtype, values, size, p.bytes, c->divisor, p.data, NULL, c->ddl->scratch);
    }
}

// What other ranks add of the round.
static void give_others(const call *c, const round *r)
{
    int rank = c->ddl->place.rank;
    pack(c, r, 0, share_begin(c, r->used, rank));
    pack(c, r, share_begin(c, r->used, rank + 1), r->used);
}

static void take_share(const call *c, const round *r, int rank)
{
    size_t from = share_begin(c, r->used, rank), to = share_begin(c, r->used, rank + 1);
    cursor at = r->first;
    size_t place = 0;
    for (piece p; place < to && next_piece(c, &at, &place, &p);)
        if (clip(&p, from, to)) memcpy(p.data, sums_of(c, r, &p, rank), p.bytes);
}

static void take_others(const call *c, const round *r)
{
    int size = c->ddl->place.size;
    for (int i = 1; i < size; i++)
        take_share(c, r, (c->ddl->place.rank + i) % size);
}

static void take_all(const call *c, const round *r)
{
    cursor at = r->first;
    size_t place = 0;
    for (piece p; next_piece(c, &at, &place, &p);)
        memcpy(p.data, values_of(c, r, &p, 0), p.bytes);
}

// --- Calls ---------------------------------------------------------------------------------------

static bel_status *fail(const call *c, bel_status *status)
{
    return c->ddl->region == NULL ? status : bel_ddl_region_fail(c->ddl->region, status);
}

typedef enum kinds { ALL, NUMBERS, FLOATS } kinds; // of tensors that a call takes

static bel_status *check_tensors(const call *c, kinds takes)
{
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
        }
        if (expected == NULL) continue;
        return fail(c, BEL_ERR(BEL_INVALID_ARGUMENT,
                               "rank %d, %s, tensor %d of %d: expected %s, got %s %s",
                               c->ddl->place.rank, c->name, i, c->count, expected,
                               bel_dtype_name(t->dtype), bel_shape_text(&t->shape, text)));
    }
    return NULL;
}

static uint64_t digest_of(const call *c)
{
    uint64_t digest = bel_hash64(c->name, strlen(c->name));
    for (int i = 0; i < c->count; i++) {
        const bel_tensor *t = &c->tensors[i];
        const bel_ddl_memory *memory = memory_of(c->ddl, t);
        int64_t numbers[4 + BEL_MAX_RANK] = {(int64_t)t->dtype, t->shape.rank};
        if (memory != NULL) {
            const char *own = memory->base + (size_t)c->ddl->place.rank * memory->stride;
            numbers[2] = memory - c->ddl->memories + 1;
            numbers[3] = (const char *)t->data - own;
        }
        for (int32_t k = 0; k < t->shape.rank; k++)
            numbers[4 + k] = t->shape.dims[k];
        size_t used = (size_t)(4 + t->shape.rank) * sizeof numbers[0];
        digest = bel_hash64_more(digest, numbers, used);
    }
    return digest;
}

// Before the call's first round.
static void say_call(const call *c)
{
    bel_ddl *ddl = c->ddl;
    bel_ddl_line *own = bel_ddl_region_line(ddl->region, ddl->place.rank);
    bel_ddl_call *said = &own->calls[ddl->calls & 1];
    said->digest = digest_of(c);
    char text[BEL_SHAPE_TEXT];
    if (c->count == 0) {
        bel_snprintf(said->words, sizeof said->words, "%s", c->name);
    } else {
        bool shared = memory_of(c->ddl, &c->tensors[0]) != NULL;
        bel_snprintf(said->words, sizeof said->words, "%s of %d tensors, the first %s %s%s",
                     c->name, c->count, bel_dtype_name(c->tensors[0].dtype),
                     bel_shape_text(&c->tensors[0].shape, text), shared ? " in shared memory" : "");
    }
}

// All have come to the call's first round.
static bel_status *compare_calls(const call *c)
{
    bel_ddl *ddl = c->ddl;
    const bel_ddl_call *first = &bel_ddl_region_line(ddl->region, 0)->calls[ddl->calls & 1];
    for (int i = 1; i < ddl->place.size; i++) {
        const bel_ddl_call *other = &bel_ddl_region_line(ddl->region, i)->calls[ddl->calls & 1];
        if (other->digest == first->digest) continue;
        bool same = strcmp(first->words, other->words) == 0;
        return bel_ddl_region_fail(
            ddl->region,
            BEL_ERR(BEL_FAILED_PRECONDITION, "call %llu differs: rank 0 calls %s, rank %d %s%s",
                    (unsigned long long)ddl->calls, first->words, i, other->words,
                    same ? "; some have other types, shapes or places" : ""));
    }
    return NULL;
}

// A call begins with a round that all come to, having packed it; `give`: NULL, this rank has
// nothing to pack.
static bel_status *begin_call(const call *c, void (*give)(const call *, const round *), round *now,
                              cursor *next)
{
    BEL_TRY(bel_ddl_region_check(c->ddl->region));
    c->ddl->calls++;
    say_call(c);
    *next = begin_round(c, (cursor){0}, now);
    if (give != NULL) give(c, now);
    tell(c, BEL_DDL_ARRIVED, now);
    BEL_TRY(await(c, BEL_DDL_ARRIVED, now));
    return compare_calls(c);
}

static void pack_all(const call *c, const round *r)
{
    pack(c, r, 0, r->used);
}

// Everything packed so that the one round is enough.
static bool is_small(const call *c)
{
    size_t bytes = 0, most = SMALL_BYTES / (size_t)c->ddl->place.size;
    for (int i = 0; i < c->count && bytes <= most; i++)
        bytes += whole_lines(bel_tensor_bytes(&c->tensors[i]));
    return bytes <= most;
}

// Where others have read this rank's tensors, they must have done so before it writes there again.
static bel_status *end_call(const call *c)
{
    if (!c->direct) return NULL;
    round last = {.number = ++c->ddl->rounds};
    tell(c, BEL_DDL_ARRIVED, &last);
    return await(c, BEL_DDL_ARRIVED, &last);
}

static bel_status *reduce_small(const call *c)
{
    round now;
    cursor next;
    BEL_TRY(begin_call(c, pack_all, &now, &next));
    add_everything(c, &now);
    return NULL;
}

static bel_status *reduce_shares(const call *c)
{
    round now, following;
    cursor next;
    BEL_TRY(begin_call(c, give_others, &now, &next));
    for (;;) {
        add_share(c, &now);
        tell(c, BEL_DDL_DONE, &now);
        bool more = !is_at_end(c, next);
        if (more) {
            next = begin_round(c, next, &following);
            give_others(c, &following);
            tell(c, BEL_DDL_ARRIVED, &following);
        }
        BEL_TRY(await(c, BEL_DDL_DONE, &now));
        take_others(c, &now);
        if (!more) return end_call(c);
        now = following;
        BEL_TRY(await(c, BEL_DDL_ARRIVED, &now));
    }
}

static bel_status *spread(const call *c)
{
    bool root = c->ddl->place.rank == 0;
    round now;
    cursor next;
    BEL_TRY(begin_call(c, root ? pack_all : NULL, &now, &next));
    for (;;) {
        if (!root) take_all(c, &now);
        if (is_at_end(c, next)) return end_call(c);
        next = begin_round(c, next, &now);
        if (root) pack_all(c, &now);
        tell(c, BEL_DDL_ARRIVED, &now);
        BEL_TRY(await(c, BEL_DDL_ARRIVED, &now));
    }
}

bel_status *bel_ddl_bcast(bel_ddl *ddl, const bel_tensor *tensors, int count)
{
    call c = {.ddl = ddl, .name = "bcast", .tensors = tensors, .count = count};
    c.direct = ddl->memory_count > 0;
    BEL_TRY(check_tensors(&c, ALL));
    return ddl->region == NULL ? NULL : spread(&c);
}

bel_status *bel_ddl_all_reduce_n(bel_ddl *ddl, bel_ddl_op op, const bel_tensor *tensors, int count)
{
    bool sum = op == BEL_DDL_SUM;
    call c = {.ddl = ddl,
              .name = sum ? "all_reduce_n (sum)" : "all_reduce_n (avg)",
              .tensors = tensors,
              .count = count,
              .divisor = sum ? 1 : ddl->place.size};
    BEL_TRY(check_tensors(&c, sum ? NUMBERS : FLOATS));
    if (ddl->region == NULL) return NULL;
    c.direct = !is_small(&c) && ddl->memory_count > 0;
    return is_small(&c) ? reduce_small(&c) : reduce_shares(&c);
}

bel_status *bel_ddl_barrier(bel_ddl *ddl)
{
    call c = {.ddl = ddl, .name = "barrier"};
    return ddl->region == NULL ? NULL : spread(&c);
}

// --- Memory --------------------------------------------------------------------------------------

// All have said how much; rank 0 has made it by then.
static bel_status *share_memory(const call *c, uint64_t number, size_t bytes, bel_ddl_memory *out)
{
    bel_ddl_region *region = c->ddl->region;
    bool root = c->ddl->place.rank == 0;
    bel_status *status = root ? bel_ddl_region_make_memory(region, number, bytes, out) : NULL;
    if (status != NULL) return bel_ddl_region_fail(region, status);
    status = spread(c);
    if (status == NULL && !root) {
        status = bel_ddl_region_open_memory(region, number, bytes, out);
        if (status != NULL) status = bel_ddl_region_fail(region, status);
    }
    if (status == NULL) status = spread(c); // nobody opens it any more
    if (root) bel_ddl_region_forget_name(region, number, out);
    if (status != NULL) bel_ddl_region_unmap(region, out);
    return status;
}

static bel_status *alone_memory(size_t bytes, bel_ddl_memory *out)
{
    void *base;
    BEL_TRY(bel_pages_create(bytes, true, "tensors", &base));
    *out = (bel_ddl_memory){.base = base, .bytes = bytes};
    return NULL;
}

bel_status *bel_ddl_alloc(bel_ddl *ddl, size_t bytes, void **out_memory)
{
    *out_memory = NULL;
    char name[64];
    bel_snprintf(name, sizeof name, "alloc of %zu bytes", bytes);
    call c = {.ddl = ddl, .name = name};
    bel_ddl_memory memory = {0};
    if (bytes == 0 || bytes > SIZE_MAX / 2 / (size_t)ddl->place.size)
        return fail(&c, BEL_ERR(BEL_INVALID_ARGUMENT,
                                "rank %d, %s: expected bytes above 0 that fit "
                                "into memory",
                                ddl->place.rank, name));
    BEL_TRY(ddl->region == NULL ? alone_memory(bytes, &memory)
                                : share_memory(&c, ddl->memory_count, bytes, &memory));
    ddl->memories = bel_xgrow(ddl->memories, &ddl->memory_capacity, ddl->memory_count + 1,
                              sizeof *ddl->memories);
    ddl->memories[ddl->memory_count++] = memory;
    *out_memory = memory.base + (size_t)ddl->place.rank * memory.stride;
    return NULL;
}

static void give_back(bel_ddl *ddl, bel_ddl_memory *memory)
{
    if (ddl->region != NULL) bel_ddl_region_unmap(ddl->region, memory);
    if (ddl->region == NULL) bel_pages_destroy(memory->base, memory->bytes);
    memory->base = NULL;
}

void bel_ddl_free(bel_ddl *ddl, void *memory)
{
    for (size_t i = 0; i < ddl->memory_count && memory != NULL; i++) {
        bel_ddl_memory *m = &ddl->memories[i];
        if (m->base != NULL && m->base + (size_t)ddl->place.rank * m->stride == (char *)memory)
            give_back(ddl, m);
    }
}

// --- Life ----------------------------------------------------------------------------------------

// `belfry local ranks` that is killed takes its ranks along; not the program that one of them has
// started.
static void end_with_starter(void)
{
    const char *text = getenv("BELFRY_DDL_STARTER");
    int64_t starter;
    if (text != NULL && bel_parse_i64(text, strlen(text), &starter) && starter == getppid())
        bel_linux_signal_at_parents_end(starter, SIGKILL);
}

bel_status *bel_ddl_init(const bel_ddl_options *options, bel_ddl **out_ddl)
{
    *out_ddl = NULL;
    const bel_ddl_options defaults = {.device = -1};
    if (options == NULL) options = &defaults;
    double timeout = options->timeout_secs == 0 ? 600 : options->timeout_secs;
    if (!(timeout > 0 && timeout < 1e9)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "timeout_secs: expected seconds above 0, got %g",
                       options->timeout_secs);
    }
    bel_ddl_launch launch;
    end_with_starter();
    BEL_TRY(bel_ddl_find_launch(&launch));
    bel_ddl_region *region = NULL;
    if (launch.place.size > 1) BEL_TRY(bel_ddl_region_join(&launch, timeout, &region));
    bel_ddl *ddl = bel_xcalloc(1, sizeof *ddl);
    ddl->region = region;
    ddl->place = launch.place;
    ddl->place.device = options->device < 0 ? launch.place.local_rank : options->device;
    ddl->scratch = bel_xcalloc((size_t)(launch.place.size + 1) / 2, BEL_DDL_ADD_BLOCK);
    *out_ddl = ddl;
    return NULL;
}

bel_ddl_place bel_ddl_place_of(const bel_ddl *ddl)
{
    return ddl->place;
}

bel_status *bel_ddl_finalize(bel_ddl *ddl)
{
    if (ddl == NULL) return NULL;
    call c = {.ddl = ddl, .name = "finalize"};
    bel_status *status = ddl->region == NULL ? NULL : spread(&c);
    for (size_t i = 0; i < ddl->memory_count; i++)
        give_back(ddl, &ddl->memories[i]);
    bel_ddl_region_leave(ddl->region);
    bel_free(ddl->memories);
    bel_free(ddl->scratch);
    bel_free(ddl);
    return status;
}
