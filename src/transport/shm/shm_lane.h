// Lanes between processes of one host over shared memory: payloads stay where they are, in the
// sender's region, and the receiver reads them there. Nothing is copied, and a frame costs no
// system call; a bell costs one, and only when the other end sleeps.
//
// Each end has a ring of frame headers in memory of its own, which the other end maps for reading,
// and says there how far it has read the other's. A unix socket introduces the two: hello and
// secret, then descriptors of region, ring and bell (SCM_RIGHTS). It stays open: its end is the
// end of the peer, and cuts the lane. A lane that is cut stays cut.
#ifndef BELFRY_TRANSPORT_SHM_SHM_LANE_H
#define BELFRY_TRANSPORT_SHM_SHM_LANE_H

#include "transport/lane.h"
#include "transport/shm/region.h"

// What a process needs once for all its lanes: where others can reach it, and a thread that
// introduces and watches peers.
typedef struct bel_shm_hub bel_shm_hub;

typedef struct bel_shm_hub_config {
    const char *listen_path; // of the unix socket, in a folder only for this user; NULL: none
    const char *secret;  // what both sides must show, up to 128 bytes; compared in constant time
    bel_lane_find *find; // finds a lane for a peer's hello, as bel_grpc_lane_accept does
    void *context;
} bel_shm_hub_config;

// Errors: those of the socket, with its path (INVALID_ARGUMENT: too long; UNAVAILABLE: somebody
// listens there); INVALID_ARGUMENT: the secret is too long. Lanes must be closed before the hub is
// destroyed, which removes the socket file.
bel_status *bel_shm_hub_create(const bel_shm_hub_config *config,
                               bel_shm_hub **out_hub) BEL_MUST_USE;
void bel_shm_hub_destroy(bel_shm_hub *hub); // NULL is fine

typedef struct bel_shm_lane_config {
    size_t capacity;        // frames that may be under way each way; the peer's must not be larger
    bel_doorbell *bell;     // rung when a frame arrives or the lane is cut; NULL: nobody waits
    uint32_t quiet;         // bit set of kinds that this end sends without ringing the other's bell
    bel_shm_region *region; // where payloads of this end lie; NULL: it sends none but small ones
    size_t peer_bytes;      // what the peer's region must have at least; 0: it may have none
} bel_shm_lane_config;

// Payloads up to this size may lie anywhere: they travel in the ring, and the receiver has them in
// memory of the lane until `capacity` more frames were taken. Larger ones are refused
// (INVALID_ARGUMENT) unless they lie in the region, at a multiple of 8 bytes.
enum { BEL_SHM_SMALL_BYTES = 496 };

// The end that opens. The path is asked again and again until the lane is closed or refused for
// good (another user or secret, the find callback's error, a region that is not as expected);
// frames sent before are kept. Doorbell and region stay the caller's and outlive the lane; so on
// either end. A lane for which there is no memory is cut from the beginning, with that reason.
bel_lane *bel_shm_lane_connect(bel_shm_hub *hub, const char *path, const bel_lane_hello *hello,
                               const bel_shm_lane_config *config);

// The end that waits, which the hub finds for a peer.
bel_lane *bel_shm_lane_create(bel_shm_hub *hub, const bel_shm_lane_config *config);

// The peer's region, mapped for reading; NULL until the peer is there, and when it has none. Valid
// until the lane is closed.
const bel_shm_region *bel_shm_lane_peer(bel_lane *lane);

// How often this end has rung the other's bell (system calls); a test counts them.
uint64_t bel_shm_lane_rings(bel_lane *lane);

#endif
