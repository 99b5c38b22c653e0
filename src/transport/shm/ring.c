// The layout of rings, and the checks of slots. The assertions compare the structures with the
// layout in docs/protocol.md. A slot is checked in the receiver's copy, so that a peer's later
// writes cannot change checked data. Bytes are compared with the region before the offset, so no
// sum overflows. A region's span begins at a multiple of 8, as floats and keys are read in place.
#include "transport/shm/ring.h"

#include <string.h>

enum { ALIGNMENT = 8 };

_Static_assert(offsetof(bel_shm_slot, small) == 80, "a slot's header has 80 bytes");
_Static_assert(sizeof(bel_shm_slot) % 64 == 0, "slots stay aligned");
_Static_assert(offsetof(bel_shm_ring, slots) == 192, "a ring's head has 192 bytes");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "no locks in a ring");

size_t bel_shm_ring_bytes(size_t slot_count)
{
    return sizeof(bel_shm_ring) + slot_count * sizeof(bel_shm_slot);
}

static bel_status *ring_malformed(const char *what, uint64_t value)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed frame: %s %llu", what,
                   (unsigned long long)value);
}

// Checks a payload in the region: bytes first, so that `most - bytes` below cannot wrap.
static bel_status *check_span(const bel_shm_slot *slot, const bel_shm_region *region)
{
    size_t most = region != NULL ? bel_shm_region_bytes(region) : 0;
    if (slot->bytes > most) return ring_malformed("more bytes than the region has:", slot->bytes);
    if (slot->offset > most - slot->bytes) {
        return ring_malformed("it ends outside the region, offset", slot->offset);
    }
    if (slot->offset % ALIGNMENT != 0)
        return ring_malformed("its offset is no multiple of 8:", slot->offset);
    return NULL;
}

bel_status *bel_shm_slot_read(const bel_shm_slot *slot, uint64_t number,
                              const bel_shm_region *region, bel_frame *out_frame)
{
    if (slot->number != number) return ring_malformed("its number is", slot->number);
    if (slot->kind == 0 || slot->kind > BEL_FRAME_LAST_KIND) {
        return ring_malformed("its kind is", slot->kind);
    }
    const void *payload = NULL;
    switch (slot->place) {
    case BEL_SHM_PLACE_NONE:
        if (slot->bytes != 0) return ring_malformed("no place for bytes:", slot->bytes);
        break;
    case BEL_SHM_PLACE_SLOT:
        if (slot->bytes > BEL_SHM_SMALL_BYTES)
            return ring_malformed("too many bytes:", slot->bytes);
        break;
    case BEL_SHM_PLACE_REGION:
        BEL_TRY(check_span(slot, region));
        if (region != NULL) payload = (uint8_t *)bel_shm_region_memory(region) + slot->offset;
        break;
    default: return ring_malformed("its place is", slot->place);
    }
    *out_frame = (bel_frame){.kind = slot->kind,
                             .generation = slot->generation,
                             .incarnation = slot->incarnation,
                             .sender = slot->sender,
                             .payload = payload,
                             .payload_bytes = (size_t)slot->bytes};
    memcpy(out_frame->fields, slot->fields, sizeof slot->fields);
    return NULL;
}

// Finds a payload in this end's region; the order of the comparisons avoids wrapping.
static bel_status *find_offset(const bel_frame *frame, const bel_shm_region *region,
                               uint64_t *out_offset)
{
    uintptr_t payload = (uintptr_t)frame->payload, begin = 0;
    size_t bytes = 0;
    if (region != NULL) {
        begin = (uintptr_t)bel_shm_region_memory(region);
        bytes = bel_shm_region_bytes(region);
    }
    bool inside = payload >= begin && payload - begin <= bytes &&
                  frame->payload_bytes <= bytes - (payload - begin);
    if (!inside || (payload - begin) % ALIGNMENT != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "a payload of %zu bytes is not in the lane's region at a multiple of %d, "
                       "and larger than %d bytes",
                       frame->payload_bytes, ALIGNMENT, BEL_SHM_SMALL_BYTES);
    }
    *out_offset = payload - begin;
    return NULL;
}

bel_status *bel_shm_slot_write(const bel_frame *frame, uint64_t number,
                               const bel_shm_region *region, bel_shm_slot *slot)
{
    bel_shm_place place = BEL_SHM_PLACE_NONE;
    uint64_t offset = 0;
    if (frame->payload_bytes > BEL_SHM_SMALL_BYTES) {
        BEL_TRY(find_offset(frame, region, &offset));
        place = BEL_SHM_PLACE_REGION;
    } else if (frame->payload_bytes > 0) {
        memcpy(slot->small, frame->payload, frame->payload_bytes);
        place = BEL_SHM_PLACE_SLOT;
    }
    slot->number = number;
    slot->kind = frame->kind;
    slot->generation = frame->generation;
    slot->incarnation = frame->incarnation;
    slot->sender = frame->sender;
    memcpy(slot->fields, frame->fields, sizeof slot->fields);
    slot->zero = 0;
    slot->place = place;
    slot->offset = offset;
    slot->bytes = frame->payload_bytes;
    return NULL;
}
