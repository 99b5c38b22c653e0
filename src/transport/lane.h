// Lanes: the two-way path between two members of a job.
//
// A lane moves frames: a small header and, beside it, a span of bytes that stays where its sender
// wrote it. Sending never blocks and never copies the span; the receiver takes frames on its own
// thread, in the order in which they were sent (unless a fault is asked for), and must treat every
// frame as one that may come twice or late.
//
// Implementations: inproc/ (both ends in one process), shm/ (between processes of one host), grpc/
// (between processes and hosts). tests/suite/test_lane.c runs one battery over all of them.
#ifndef BELFRY_TRANSPORT_LANE_H
#define BELFRY_TRANSPORT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// A frame's kinds are its users' own, 1 to BEL_FRAME_LAST_KIND (ps/frames/frames.h has those of
// training); a lane carries kind and fields unread.
enum { BEL_FRAME_LAST_KIND = 31, BEL_FRAME_FIELD_BYTES = 32 };

typedef struct bel_frame {
    uint32_t kind;
    uint32_t generation;  // rises when state goes back; others' frames are void
    uint32_t incarnation; // of the sender; rises when it is replaced
    int32_t sender;       // its number among those of its kind
    uint8_t fields[BEL_FRAME_FIELD_BYTES];
    const void *payload; // kept unchanged by the sender until its user knows that it was read
    size_t payload_bytes;
} bel_frame;

// Rung when a frame arrives for any lane end that belongs to it; a member waits on one doorbell.
// Ringing costs no system call while nobody sleeps. doorbell.h: ringing from other processes.
// Thread-safe.
typedef struct bel_doorbell bel_doorbell;
bel_doorbell *bel_doorbell_create(void);
void bel_doorbell_destroy(bel_doorbell *doorbell);
void bel_doorbell_ring(bel_doorbell *doorbell);
// Waits until it was rung since the last wait, or until deadline_ns (bel_clock_ns); false then.
bool bel_doorbell_wait(bel_doorbell *doorbell, int64_t deadline_ns);
// How often it was rung: a test counts rings.
uint64_t bel_doorbell_count(bel_doorbell *doorbell);

// One end of a lane. Any thread may send; one thread at a time receives.
typedef struct bel_lane bel_lane;
typedef struct bel_lane_ops {
    const char *name;   // "inproc", "shm", "grpc"
    bool shares_memory; // payloads stay where they are: the other end reads the sender's memory
    bool maps_memory;   // … after they have mapped it: it is another process's
    bel_status *(*send)(bel_lane *lane, const bel_frame *frame);
    bool (*receive)(bel_lane *lane, bel_frame *out_frame);
    struct bel_frame_queue *(*incoming)(const bel_lane *lane); // closed once the other end is gone
    bel_status *(*fault)(bel_lane *lane);                      // NULL: never
    void (*close)(bel_lane *lane);
} bel_lane_ops;
struct bel_lane {
    const bel_lane_ops *ops;
};

// Sends a frame. UNAVAILABLE: the lane is cut. RESOURCE_EXHAUSTED: the lane is full, as the peer
// has taken nothing for a while; more would be more than two reports in flight.
bel_status *bel_lane_send(bel_lane *lane, const bel_frame *frame) BEL_MUST_USE;

// Takes the next frame; false when there is none now.
bool bel_lane_receive(bel_lane *lane, bel_frame *out_frame);

// True when the other end is closed: a send fails, and frames may be left to take.
bool bel_lane_is_closed(const bel_lane *lane);

// True when the other end is closed and nothing is left to take.
bool bel_lane_is_cut(const bel_lane *lane);

// Why the lane is cut for good although its other end is there: a frame that came, here or there,
// was malformed, or the other end refuses the lane. INTERNAL, with the frame. OK where it is not
// cut, or where its other end has gone, as that one may come back.
bel_status *bel_lane_fault(bel_lane *lane) BEL_MUST_USE;

// Closes this end; the other end sees a cut after what was sent before. When this returns nothing
// of the lane's configuration is used any more, but spans that were sent may still be read. NULL is
// fine.
void bel_lane_close(bel_lane *lane);

// Closes these ends, some of which may be NULL, side by side, and sets them to NULL: an end whose
// peer's host is gone takes seconds.
void bel_lane_close_all(bel_lane **lanes, int count);

// Where a lane without shared memory puts the payload of a frame that is coming in. The receiver
// checks kind, fields and size here, before any memory is touched; NULL refuses the frame as
// malformed, and the lane is cut. Called on the lane's own thread. A frame that comes again goes to
// the same place with the same bytes.
typedef void *bel_frame_place(void *context, const bel_frame *frame);

// What a lane between processes is, as the end that opens it says: the first thing it tells.
typedef struct bel_lane_hello {
    int32_t kind;  // the caller's own: what the opening end is
    int32_t index; // which of them
    uint32_t generation, incarnation;
} bel_lane_hello;

// Finds the lane that was created for a hello (NULL: not yet, the other end will ask again; an
// error: never). Called on a thread of the transport.
typedef bel_status *bel_lane_find(void *context, const bel_lane_hello *hello, bel_lane **out_lane);

// For implementations: the errors of bel_lane_send.
bel_status *bel_lane_full_error(void) BEL_MUST_USE;
bel_status *bel_lane_cut_error(const char *why) BEL_MUST_USE;

#endif
