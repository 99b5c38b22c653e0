// One end's ring: frames on their way to the other end, in a region of the sender, which the other
// end maps for reading. docs/protocol.md has the layout. Nothing that is read from a peer's ring is
// believed before it was copied and checked.
#ifndef BELFRY_TRANSPORT_SHM_RING_H
#define BELFRY_TRANSPORT_SHM_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "transport/lane.h"
#include "transport/shm/region.h"
#include "transport/shm/shm_lane.h"

enum { BEL_SHM_MOST_SLOTS = 1 << 20 };

// Where a payload lies.
typedef enum bel_shm_place {
    BEL_SHM_PLACE_NONE,
    BEL_SHM_PLACE_SLOT,   // behind the slot's header
    BEL_SHM_PLACE_REGION, // at `offset` of the sender's region
} bel_shm_place;

typedef struct bel_shm_slot {
    uint64_t number; // of the frame, from 1
    uint32_t kind, generation, incarnation;
    int32_t sender;
    uint32_t place, zero;
    uint64_t offset, bytes; // of the payload
    uint8_t fields[BEL_FRAME_FIELD_BYTES];
    uint8_t small[BEL_SHM_SMALL_BYTES];
} bel_shm_slot;

// Each cache line has its own writers: senders, the receiver, the doorbell.
typedef struct bel_shm_ring {
    _Alignas(64) _Atomic uint64_t sent;   // frames so far
    _Atomic uint64_t rings;               // frames among them that ring the other's bell
    _Alignas(64) _Atomic uint64_t taken;  // frames of the other's ring that this end has taken
    _Alignas(64) _Atomic uint32_t asleep; // 1: the thread that receives here sleeps
    _Alignas(64) bel_shm_slot slots[];
} bel_shm_ring;

size_t bel_shm_ring_bytes(size_t slot_count);

// Checks a slot of a peer, copied from its ring, against the peer's region (NULL: it has none) and
// makes a frame of it, with its payload in the region; one in the slot is left to the caller.
// INVALID_ARGUMENT: malformed; says what.
bel_status *bel_shm_slot_read(const bel_shm_slot *slot, uint64_t number,
                              const bel_shm_region *region, bel_frame *out_frame) BEL_MUST_USE;

// Writes a frame into a slot of one's own ring. INVALID_ARGUMENT: the payload is neither small nor
// in the region (NULL: there is none) at a multiple of 8.
bel_status *bel_shm_slot_write(const bel_frame *frame, uint64_t number,
                               const bel_shm_region *region, bel_shm_slot *slot) BEL_MUST_USE;

#endif
