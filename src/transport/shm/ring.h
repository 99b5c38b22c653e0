// One end's ring: frames under way to the other end, in a region of the sender, which the other end
// maps for reading. docs/protocol.md has the layout. Data from a peer's ring is copied and checked
// before it is trusted.
#ifndef BELFRY_TRANSPORT_SHM_RING_H
#define BELFRY_TRANSPORT_SHM_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "transport/lane.h"
#include "transport/shm/region.h"
#include "transport/shm/shm_lane.h"

enum { BEL_SHM_MOST_SLOTS = 1 << 20 };

// Location of a payload.
typedef enum bel_shm_place {
    BEL_SHM_PLACE_NONE,
    BEL_SHM_PLACE_SLOT,   // after the slot's header
    BEL_SHM_PLACE_REGION, // at `offset` of the sender's region
} bel_shm_place;

typedef struct bel_shm_slot {
    uint64_t number; // the frame's, from 1
    uint32_t kind, generation, incarnation;
    int32_t sender;
    uint32_t place, zero;
    uint64_t offset, bytes; // the payload's
    uint8_t fields[BEL_FRAME_FIELD_BYTES];
    uint8_t small[BEL_SHM_SMALL_BYTES];
} bel_shm_slot;

// Each cache line has separate writers: senders, the receiver, the doorbell.
typedef struct bel_shm_ring {
    _Alignas(64) _Atomic uint64_t sent;   // frames so far
    _Atomic uint64_t rings;               // number of them that ring the other end's bell
    _Alignas(64) _Atomic uint64_t taken;  // frames of the other end's ring that this end has taken
    _Alignas(64) _Atomic uint32_t asleep; // 1: the thread that receives at this end sleeps
    _Alignas(64) bel_shm_slot slots[];
} bel_shm_ring;

size_t bel_shm_ring_bytes(size_t slot_count);

// Checks a slot of a peer, copied from its ring, against the peer's region (NULL: no region) and
// converts it to a frame. Sets a payload in the region; leaves one in the slot to the caller.
// INVALID_ARGUMENT: malformed, with the reason.
bel_status *bel_shm_slot_read(const bel_shm_slot *slot, uint64_t number,
                              const bel_shm_region *region, bel_frame *out_frame) BEL_MUST_USE;

// Writes a frame into a slot of this end's ring. INVALID_ARGUMENT: the payload is neither small nor
// in the region (NULL: no region) at a multiple of 8.
bel_status *bel_shm_slot_write(const bel_frame *frame, uint64_t number,
                               const bel_shm_region *region, bel_shm_slot *slot) BEL_MUST_USE;

#endif
