// Lanes: the two-way path between two members of a job.
//
// A lane moves frames: a small header and a span of bytes that stays where its sender wrote it.
// Sending never blocks and never copies the span. The receiver's thread takes frames, in
// the order of sending (unless a fault is injected), and must expect every frame to be repeated or
// late.
//
// An end is closed when its owner closes it. A lane is cut when the other end is closed, lost or
// faulty and no frames are left to take: it carries no more frames.
//
// Implementations: inproc/ (both ends in one process), shm/ (between processes of one host), grpc/
// (between processes and hosts). tests/suite/test_lane.c runs the same tests over all of them.
#ifndef BELFRY_TRANSPORT_LANE_H
#define BELFRY_TRANSPORT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// The users of lanes define the kinds 1 to BEL_FRAME_LAST_KIND (for training in
// ps/frames/frames.h); a lane carries kind and fields unread.
enum { BEL_FRAME_LAST_KIND = 31, BEL_FRAME_FIELD_BYTES = 32 };

typedef struct bel_frame {
    uint32_t kind;
    uint32_t generation;  // rises when state goes back; frames of others are invalid
    uint32_t incarnation; // the sender's; rises when it is replaced
    int32_t sender;       // its number in its role
    uint8_t fields[BEL_FRAME_FIELD_BYTES];
    const void *payload; // the sender keeps it unchanged until its user knows that it was read
    size_t payload_bytes;
} bel_frame;

// Doorbell of a member: rung when a frame arrives for any of its lane ends; a member waits on one
// doorbell. Ringing costs no system call while no thread sleeps. doorbell.h: ringing from other
// processes. Thread-safe.
typedef struct bel_doorbell bel_doorbell;
bel_doorbell *bel_doorbell_create(void);
void bel_doorbell_destroy(bel_doorbell *doorbell);
void bel_doorbell_ring(bel_doorbell *doorbell);
// Waits until it was rung since the last wait, or until deadline_ns (bel_clock_ns); then returns
// false.
bool bel_doorbell_wait(bel_doorbell *doorbell, int64_t deadline_ns);
// Returns the number of rings, for tests.
uint64_t bel_doorbell_count(bel_doorbell *doorbell);

// One end of a lane. Any thread may send; one thread at a time receives.
typedef struct bel_lane bel_lane;
typedef struct bel_lane_ops {
    bool shares_memory; // payloads stay in place: the other end reads the sender's memory
    bool maps_memory;   // … after it has mapped the other process's memory
    bel_status *(*send)(bel_lane *lane, const bel_frame *frame);
    void (*flush)(bel_lane *lane); // NULL: no frame ever waits
    bool (*receive)(bel_lane *lane, bel_frame *out_frame);
    struct bel_frame_queue *(*incoming)(const bel_lane *lane); // closed after the other end
    bel_status *(*fault)(bel_lane *lane);                      // NULL: never
    void (*close)(bel_lane *lane);
} bel_lane_ops;
struct bel_lane {
    const bel_lane_ops *ops;
};

// Sends a frame. UNAVAILABLE: the lane is cut. RESOURCE_EXHAUSTED: the lane is full, as the peer
// has taken no frames for a while; another one would make more than two reports under way.
bel_status *bel_lane_send(bel_lane *lane, const bel_frame *frame) BEL_MUST_USE;

// Sends frames that wait for the frame that follows them, as none may follow for a while.
void bel_lane_flush(bel_lane *lane);

// Takes the next frame; false if no frame waits.
bool bel_lane_receive(bel_lane *lane, bel_frame *out_frame);

// True if the other end is closed: a send fails, but frames may be left to take.
bool bel_lane_is_closed(const bel_lane *lane);

// True if the other end is closed and no frame is left to take.
bool bel_lane_is_cut(const bel_lane *lane);

// Returns INTERNAL, with the frame, if the lane is cut for good although its other end exists: a
// malformed frame arrived at either end, or the other end refuses the lane. OK if it is not cut, or
// if its other end is gone, as that one may return.
bel_status *bel_lane_fault(bel_lane *lane) BEL_MUST_USE;

// Closes this end; the other end sees a cut after the frames that were sent before. When this
// returns the lane no longer uses its configuration, but the peer may still read spans. NULL is
// allowed.
void bel_lane_close(bel_lane *lane);

// Closes these ends in parallel and sets them to NULL; some may be NULL. Closing an end whose
// peer's host is gone takes seconds.
void bel_lane_close_all(bel_lane **lanes, int count);

// Returns where a lane without shared memory puts the payload of an incoming frame. The receiver
// checks kind, fields and size here, before any memory is touched; NULL refuses the frame as
// malformed, and the lane is cut. Called on the lane's thread. A repeated frame goes to the same
// place with the same bytes.
typedef void *bel_frame_place(void *context, const bel_frame *frame);

// First data on a lane between processes: the opening end's identity.
typedef struct bel_lane_hello {
    int32_t kind;  // the caller's numbering: kind of the opening end
    int32_t index; // index in its kind
    uint32_t generation, incarnation;
} bel_lane_hello;

// Finds the lane that was created for a hello (NULL: not yet, the other end will ask again; an
// error: never). Called on a thread of the transport.
typedef bel_status *bel_lane_find(void *context, const bel_lane_hello *hello, bel_lane **out_lane);

// For implementations: the errors of bel_lane_send.
bel_status *bel_lane_full_error(void) BEL_MUST_USE;
bel_status *bel_lane_cut_error(const char *why) BEL_MUST_USE;

#endif
