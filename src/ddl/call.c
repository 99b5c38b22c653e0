// Pieces are not stored: each user iterates over the tensors again, which costs less than keeping a
// list and gives the same result on all ranks. A tensor's place in shared memory is part of the
// compared description, because others read it there.
#include "ddl/call.h"

#include "base/hash.h"
#include "base/number.h"

// --- Pieces --------------------------------------------------------------------------------------

bool bel_ddl_call_leaves_memory(const bel_ddl *ddl, const bel_tensor *tensor)
{
    size_t bytes = bel_tensor_bytes(tensor), member = (size_t)(ddl->place.rank - ddl->group.first);
    for (size_t i = 0; i < ddl->memory_count; i++) {
        const bel_ddl_memory *memory = &ddl->memories[i];
        uintptr_t own = (uintptr_t)(memory->base + member * memory->stride);
        uintptr_t at = (uintptr_t)tensor->data - own;
        if (memory->base != NULL && at < memory->bytes && bytes > memory->bytes - at) return true;
    }
    return false;
}

// Returns the memory with this rank's tensor; NULL: not in any.
static const bel_ddl_memory *memory_of(const bel_ddl *ddl, const bel_tensor *tensor)
{
    size_t bytes = bel_tensor_bytes(tensor), member = (size_t)(ddl->place.rank - ddl->group.first);
    for (size_t i = 0; i < ddl->memory_count; i++) {
        const bel_ddl_memory *memory = &ddl->memories[i];
        const char *own = memory->base + member * memory->stride;
        uintptr_t at = (uintptr_t)tensor->data - (uintptr_t)own;
        if (memory->base != NULL && at <= memory->bytes && bytes <= memory->bytes - at)
            return memory;
    }
    return NULL;
}

size_t bel_ddl_whole_lines(size_t bytes)
{
    return (bytes + BEL_DDL_LINE - 1) / BEL_DDL_LINE * BEL_DDL_LINE;
}

size_t bel_ddl_call_bytes(const bel_ddl_call *call)
{
    size_t bytes = 0;
    for (int i = 0; i < call->count; i++)
        bytes += bel_ddl_whole_lines(bel_tensor_bytes(&call->tensors[i]));
    return bytes;
}

// Finds the next piece of a round whose slots are filled up to *place. False: the round is full, or
// no tensors remain.
static bool next_piece(const bel_ddl_call *c, bel_ddl_cursor *at, size_t *place, bel_ddl_piece *out)
{
    for (; at->tensor < c->count; at->tensor++, at->offset = 0) {
        const bel_tensor *tensor = &c->tensors[at->tensor];
        size_t left = bel_tensor_bytes(tensor) - at->offset, room = c->ddl->chunk - *place;
        if (left == 0) continue;
        if (room == 0) return false;
        size_t bytes = left < room ? left : room;
        const bel_ddl_memory *memory = c->direct ? memory_of(c->ddl, tensor) : NULL;
        *out = (bel_ddl_piece){(char *)tensor->data + at->offset, tensor->dtype, bytes, *place,
                               memory};
        at->offset += bytes;
        *place += bel_ddl_whole_lines(bytes);
        return true;
    }
    return false;
}

bel_ddl_walk bel_ddl_walk_begin(const bel_ddl_call *call, const bel_ddl_round *round, size_t from,
                                size_t to)
{
    return (bel_ddl_walk){.call = call, .from = from, .to = to, .at = round->first};
}

bool bel_ddl_walk_next(bel_ddl_walk *walk, bel_ddl_piece *out)
{
    bel_ddl_piece p;
    while (walk->place < walk->to && next_piece(walk->call, &walk->at, &walk->place, &p)) {
        size_t begin = p.place > walk->from ? p.place : walk->from;
        size_t end = p.place + p.bytes < walk->to ? p.place + p.bytes : walk->to;
        if (begin >= end) continue;
        p.data += begin - p.place;
        p.bytes = end - begin;
        p.place = begin;
        *out = p;
        return true;
    }
    return false;
}

bel_ddl_cursor bel_ddl_round_begin(const bel_ddl_call *call, bel_ddl_cursor first,
                                   bel_ddl_round *out)
{
    bel_ddl_cursor at = first;
    size_t place = 0;
    bel_ddl_piece p;
    while (next_piece(call, &at, &place, &p)) {
    }
    *out = (bel_ddl_round){++call->ddl->rounds, first, place};
    return at;
}

bool bel_ddl_call_is_at_end(const bel_ddl_call *call, bel_ddl_cursor at)
{
    while (at.tensor < call->count && bel_tensor_bytes(&call->tensors[at.tensor]) == at.offset)
        at = (bel_ddl_cursor){at.tensor + 1, 0};
    return at.tensor == call->count;
}

// --- What is called ------------------------------------------------------------------------------

static uint64_t digest_of(const bel_ddl_call *c)
{
    uint64_t digest = bel_hash64(c->name, strlen(c->name));
    size_t member = (size_t)(c->ddl->place.rank - c->ddl->group.first);
    for (int i = 0; i < c->count; i++) {
        const bel_tensor *t = &c->tensors[i];
        const bel_ddl_memory *memory = memory_of(c->ddl, t);
        int64_t numbers[4 + BEL_MAX_RANK] = {(int64_t)t->dtype, t->shape.rank};
        if (memory != NULL) {
            numbers[2] = memory - c->ddl->memories + 1;
            numbers[3] = (const char *)t->data - (memory->base + member * memory->stride);
        }
        for (int32_t k = 0; k < t->shape.rank; k++)
            numbers[4 + k] = t->shape.dims[k];
        size_t used = (size_t)(4 + t->shape.rank) * sizeof numbers[0];
        digest = bel_hash64_more(digest, numbers, used);
    }
    return digest;
}

static void ddl_call_say(bel_ddl_call *c)
{
    char text[BEL_SHAPE_TEXT];
    bel_ddl_said *said = &c->said;
    said->number = c->ddl->calls;
    said->digest = digest_of(c);
    if (c->count == 0) {
        bel_snprintf(said->words, sizeof said->words, "%s", c->name);
        return;
    }
    bool shared = memory_of(c->ddl, &c->tensors[0]) != NULL;
    bel_snprintf(said->words, sizeof said->words, "%s of %d tensors, the first %s %s%s", c->name,
                 c->count, bel_dtype_name(c->tensors[0].dtype),
                 bel_shape_text(&c->tensors[0].shape, text), shared ? " in shared memory" : "");
}

bel_status *bel_ddl_call_begin(bel_ddl_call *call)
{
    bel_ddl *ddl = call->ddl;
    if (ddl->failed != BEL_OK) return BEL_ERR(ddl->failed, "%s", ddl->failure);
    call->members = call->mode.dims[0];
    call->member = ddl->place.rank % call->members;
    call->region = call->members > 1 ? ddl->region : NULL;
    if (call->region != NULL) BEL_TRY(bel_ddl_region_check(call->region));
    ddl->calls++;
    ddl_call_say(call);
    return NULL;
}

bel_status *bel_ddl_call_end(bel_ddl *ddl, bel_status *status)
{
    if (status == NULL || ddl->failed != BEL_OK) return status;
    if (ddl->region != NULL) status = bel_ddl_region_fail(ddl->region, status);
    if (ddl->net != NULL) bel_ddl_net_fail(ddl->net, status);
    ddl->failed = bel_status_code(status);
    bel_snprintf(ddl->failure, sizeof ddl->failure, "%s", bel_status_message(status));
    return status;
}
