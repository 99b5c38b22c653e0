// Interface between hub.c, which uses sockets, and shm_lane.c, which uses rings.
#ifndef BELFRY_TRANSPORT_SHM_SHM_INNER_H
#define BELFRY_TRANSPORT_SHM_SHM_INNER_H

#include <stdatomic.h>

#include "base/backoff.h"
#include "base/linux_shared.h"
#include "transport/shm/shm_lane.h"

// The only message each way of an introduction. It carries descriptors: the ring's, then the
// event's and the region's, as `holds` says. docs/protocol.md has the layout.
enum {
    BEL_SHM_VERSION = 3,
    BEL_SHM_SECRET_BYTES = 128,
    BEL_SHM_TEXT_BYTES = 256,
    BEL_SHM_NOT_YET = -1, // `code`: ask again later
    BEL_SHM_HOLDS_EVENT = 1,
    BEL_SHM_HOLDS_REGION = 2,
};

typedef struct bel_shm_message {
    char magic[4]; // "BELS"
    uint32_t version;
    int32_t code;         // an answer's: 0, BEL_SHM_NOT_YET, or a bel_code: refused for good
    bel_lane_hello hello; // the opening end's
    uint32_t slots;
    uint32_t holds;
    char secret[BEL_SHM_SECRET_BYTES]; // padded with zeros; empty in a refusal
    char text[BEL_SHM_TEXT_BYTES];     // reason of a refusal
} bel_shm_message;

// A connection that receives a message.
typedef struct bel_shm_talk {
    int socket; // -1: no socket
    size_t received;
    bel_shm_message message;
    int descriptors[BEL_LINUX_DESCRIPTORS];
    int descriptor_count;
} bel_shm_talk;

// The hub's state of a lane. Guarded by the hub's mutex.
typedef struct bel_shm_link bel_shm_link;
struct bel_shm_link {
    bel_shm_link *next;
    bel_lane *lane;
    char *address; // "unix:/path"; NULL: the waiting end
    bel_lane_hello hello;
    bel_shm_talk talk;     // its socket stays open after the introduction
    bool introduced, over; // over: the lane is cut, without further attempts
    int64_t try_at_ns;     // time of the opening end's next attempt
    bel_backoff backoff;
    int64_t patience_ns; // longest time of calls without an answer; 0: no bound
    int64_t unheard_ns;  // awake time of the first call since the last answer; 0: none
    atomic_bool unheard; // over for that reason
};

// Adds a lane to the hub.
void bel_shm_hub_add(bel_shm_hub *hub, bel_shm_link *link);
// Removes a lane; when this returns the hub no longer uses it. With `linger` (frames were sent) it
// waits a moment for an introduction that is under way.
void bel_shm_hub_remove(bel_shm_hub *hub, bel_shm_link *link, bool linger);

// Notifies the other end that the receiver has cut the lane.
void bel_shm_hub_drop(bel_shm_hub *hub, bel_shm_link *link);

// For the hub, with its mutex locked. Describes this end: sets slots, holds and descriptors, which
// the lane still owns.
void bel_shm_lane_describe(bel_lane *lane, bel_shm_message *message, int *descriptors, int *count);

// Attaches the other end from its message; takes its descriptors in any case. INVALID_ARGUMENT or
// RESOURCE_EXHAUSTED: the lane stays unchanged.
bel_status *bel_shm_lane_attach(bel_lane *lane, bel_shm_talk *talk) BEL_MUST_USE;

// Cuts the lane after the frames that have arrived.
void bel_shm_lane_cut(bel_lane *lane, const char *reason);

#endif
