// Lanes between processes of one host over shared memory: payloads stay in the sender's region,
// where the receiver reads them. Nothing is copied, and a frame costs no system call; a bell costs
// one, and only when the other end sleeps.
//
// Each end has a ring of frame headers in its memory, which the other end maps for reading, and
// publishes there how far it has read the other's ring. A unix socket introduces the two: hello and
// secret, then descriptors of region, ring and bell (SCM_RIGHTS). It stays open: when it ends, the
// peer is gone, and the lane is cut. A cut lane stays cut.
#ifndef BELFRY_TRANSPORT_SHM_SHM_LANE_H
#define BELFRY_TRANSPORT_SHM_SHM_LANE_H

#include "transport/lane.h"
#include "transport/shm/region.h"

// Hub for all lanes of a process: its listening socket, and a thread that introduces and watches
// peers.
typedef struct bel_shm_hub bel_shm_hub;

typedef struct bel_shm_hub_config {
    const char *listen_path; // the unix socket's, in a folder only for this user; NULL: none
    const char *secret;      // both sides must show it, up to 128 bytes; compared in constant time
    bel_lane_find *find;     // finds a lane for a peer's hello, as in bel_stream_lane_accept
    void *context;
} bel_shm_hub_config;

// Errors: those of the socket, with its path (INVALID_ARGUMENT: too long; UNAVAILABLE: another
// process listens there); INVALID_ARGUMENT: the secret is too long. Lanes must be closed before the
// hub is destroyed, which removes the socket file.
bel_status *bel_shm_hub_create(const bel_shm_hub_config *config,
                               bel_shm_hub **out_hub) BEL_MUST_USE;
void bel_shm_hub_destroy(bel_shm_hub *hub); // NULL is allowed

typedef struct bel_shm_lane_config {
    size_t capacity; // maximum number of frames under way each way; the peer's must not be larger
    bel_doorbell *bell;     // rung when a frame arrives or the lane is cut; NULL: no bell
    uint32_t quiet;         // bit set of kinds that this end sends without ringing the other's bell
    bel_shm_region *region; // holds this end's payloads; NULL: only small ones
    size_t peer_bytes;      // minimum size of the peer's region; 0: it may have none
    double patience_secs;   // calls without any answer for so long end the opening end; 0: no bound
} bel_shm_lane_config;

// Payloads up to this size may be anywhere. They travel in the ring, and the receiver gets them in
// the lane's memory, valid until it has taken `capacity` more frames. Larger ones are refused
// (INVALID_ARGUMENT) unless they are in the region, at a multiple of 8 bytes.
enum { BEL_SHM_SMALL_BYTES = 496 };

// Creates the end that opens. It retries the path until the lane is closed, unheard, or refused for
// good (another user or secret, the find callback's error, an unexpected region). Earlier frames
// are kept. At both ends the caller owns doorbell and region, which must outlive the lane. A lane
// without memory is cut from the beginning, with that reason.
bel_lane *bel_shm_lane_connect(bel_shm_hub *hub, const char *path, const bel_lane_hello *hello,
                               const bel_shm_lane_config *config);

// Creates the end that waits, which the hub finds for a peer.
bel_lane *bel_shm_lane_create(bel_shm_hub *hub, const bel_shm_lane_config *config);

// Returns the peer's region, mapped for reading; NULL before the introduction, or if the peer has
// no region. Valid until the lane is closed.
const bel_shm_region *bel_shm_lane_peer(bel_lane *lane);

// Returns whether patience_secs ended the lane: its peer's socket cannot be reached, or passes no
// descriptors.
bool bel_shm_lane_is_unheard(bel_lane *lane);

// Returns how often this end has rung the other's bell (system calls), for tests.
uint64_t bel_shm_lane_rings(bel_lane *lane);

#endif
