// Between hub.c, which knows sockets, and shm_lane.c, which knows rings.
#ifndef BELFRY_TRANSPORT_SHM_SHM_INNER_H
#define BELFRY_TRANSPORT_SHM_SHM_INNER_H

#include "base/linux_shared.h"
#include "transport/shm/shm_lane.h"

// The one message each way of an introduction; descriptors go with it: of the ring, then of the
// event and of the region, as `holds` says. docs/protocol.md has the layout.
enum {
    BEL_SHM_VERSION = 3,
    BEL_SHM_SECRET_BYTES = 128,
    BEL_SHM_TEXT_BYTES = 256,
    BEL_SHM_NOT_YET = -1, // `code`: ask again
    BEL_SHM_HOLDS_EVENT = 1,
    BEL_SHM_HOLDS_REGION = 2,
};

typedef struct bel_shm_message {
    char magic[4]; // "BELS"
    uint32_t version;
    int32_t code;         // of an answer: 0, BEL_SHM_NOT_YET, or a bel_code: refused for good
    bel_lane_hello hello; // of the end that opens
    uint32_t slots;
    uint32_t holds;
    char secret[BEL_SHM_SECRET_BYTES]; // zeros behind it; none in an answer that says no
    char text[BEL_SHM_TEXT_BYTES];     // why not
} bel_shm_message;

// A connection on which a message comes in.
typedef struct bel_shm_talk {
    int socket; // -1: there is none
    size_t received;
    bel_shm_message message;
    int descriptors[BEL_LINUX_DESCRIPTORS];
    int descriptor_count;
} bel_shm_talk;

// What the hub knows of a lane. Guarded by the hub's mutex.
typedef struct bel_shm_link bel_shm_link;
struct bel_shm_link {
    bel_shm_link *next;
    bel_lane *lane;
    char *address; // "unix:/path"; NULL: the end that waits
    bel_lane_hello hello;
    bel_shm_talk talk;     // its socket stays open after the introduction
    bool introduced, over; // over: the lane is cut, nothing more is tried
    int64_t try_at_ns;     // when the end that opens calls again
};

// The hub begins, or ceases, to know a lane. Nothing of it is touched after the second has
// returned. With `linger` (frames were sent) it waits a moment for an introduction that is under
// way.
void bel_shm_hub_add(bel_shm_hub *hub, bel_shm_link *link);
void bel_shm_hub_remove(bel_shm_hub *hub, bel_shm_link *link, bool linger);

// The lane was cut by its receiver: lets the other end know.
void bel_shm_hub_drop(bel_shm_hub *hub, bel_shm_link *link);

// For the hub, with its mutex locked. What this end tells: fills slots, holds, and descriptors,
// which stay the lane's.
void bel_shm_lane_describe(bel_lane *lane, bel_shm_message *message, int *descriptors, int *count);

// Takes what the other end has told, and its descriptors in any case. INVALID_ARGUMENT or
// RESOURCE_EXHAUSTED: the lane stays as it was.
bel_status *bel_shm_lane_attach(bel_lane *lane, bel_shm_talk *talk) BEL_MUST_USE;

// Cuts the lane behind the frames that have come.
void bel_shm_lane_cut(bel_lane *lane, const char *reason);

#endif
