// Call of all ranks: its tensors, cut into rounds that fit into a rank's slot. Each tensor's piece
// of a round is at an offset of whole cache lines. All ranks derive the same pieces, so no rank
// describes them to another.
#ifndef BELFRY_DDL_CALL_H
#define BELFRY_DDL_CALL_H

#include <string.h>

#include "ddl/add.h"
#include "ddl/mpi.h"
#include "ddl/net.h"
#include "ddl/region.h"
#include "ddl/settings.h"

enum {
    BEL_DDL_LINE = 64,           // bytes; ranks do not write into the same cache line
    BEL_DDL_CHUNK = 256 << 10,   // bytes of a slot: a rank's slots fit into its core's cache
    BEL_DDL_NET_CHUNK = 1 << 20, // larger if each round waits for other hosts
};

typedef struct bel_ddl_choices bel_ddl_choices; // explore.h

struct bel_ddl {
    bel_ddl_place place;
    bel_ddl_settings settings;
    bel_ddl_mode mode;      // default of calls, unless they are explored
    bel_ddl_group group;    // this rank's
    bel_ddl_region *region; // NULL: this rank shares memory with no other
    bel_ddl_net *net;       // NULL: all ranks share memory
    bel_ddl_mpi *mpi;       // NULL: unused
    bel_ddl_choices *choices;
    size_t chunk;             // bytes of a round
    uint64_t calls;           // number of the last call
    uint64_t rounds;          // begun so far
    void *scratch;            // for bel_ddl_add
    char *share;              // with net: a chunk in transit between groups
    char *parts;              // with net: other groups' values, a chunk for each
    bel_ddl_memory *memories; // in the order of bel_ddl_alloc
    size_t memory_count, memory_capacity;
    bel_code failed; // BEL_OK: no call has failed
    char failure[512];
};

// A position in a call's tensors; everything before it is in earlier rounds.
typedef struct bel_ddl_cursor {
    int tensor;
    size_t offset; // bytes
} bel_ddl_cursor;

typedef struct bel_ddl_call {
    bel_ddl *ddl;
    const char *name;
    const bel_tensor *tensors;
    int count;
    double divisor; // for sums
    int root;       // rank whose values are broadcast
    bool direct;    // tensors in bel_ddl_alloc's memory are read in place
    bel_ddl_mode mode;
    // From the mode: the ranks that share memory, and this rank's index among them.
    bel_ddl_region *region; // NULL: no other ranks share memory
    int member, members;
    bel_ddl_said said;
    bool told[BEL_DDL_DIMS]; // by dimension: ranks have compared their calls
} bel_ddl_call;

// A part of one tensor, and its place in the slots. The place stays empty if there is a memory.
typedef struct bel_ddl_piece {
    char *data;
    bel_dtype dtype;
    size_t bytes, place;
    const bel_ddl_memory *memory; // all members have mapped it; NULL: each has separate memory
} bel_ddl_piece;

typedef struct bel_ddl_round {
    uint64_t number;
    bel_ddl_cursor first;
    size_t used; // bytes of the slots, a multiple of BEL_DDL_LINE
} bel_ddl_round;

// Iterator over the pieces of a round within [from, to) of the slots. Set these fields, zero the
// others, and call until it returns false.
typedef struct bel_ddl_walk {
    const bel_ddl_call *call;
    size_t from, to;
    bel_ddl_cursor at;
    size_t place;
} bel_ddl_walk;

bel_ddl_walk bel_ddl_walk_begin(const bel_ddl_call *call, const bel_ddl_round *round, size_t from,
                                size_t to);
bool bel_ddl_walk_next(bel_ddl_walk *walk, bel_ddl_piece *out_piece);

// Begins the round at `first`; returns the beginning of the next round.
bel_ddl_cursor bel_ddl_round_begin(const bel_ddl_call *call, bel_ddl_cursor first,
                                   bel_ddl_round *out_round);
bool bel_ddl_call_is_at_end(const bel_ddl_call *call, bel_ddl_cursor at);

// True if a tensor begins in bel_ddl_alloc's memory and ends after it.
bool bel_ddl_call_leaves_memory(const bel_ddl *ddl, const bel_tensor *tensor);

size_t bel_ddl_whole_lines(size_t bytes);
size_t bel_ddl_call_bytes(const bel_ddl_call *call); // a multiple of BEL_DDL_LINE

// Numbers and describes the call. Returns the error of an earlier call.
bel_status *bel_ddl_call_begin(bel_ddl_call *call) BEL_MUST_USE;
// Ends a call: sends an error to the other ranks, and keeps it for later calls.
bel_status *bel_ddl_call_end(bel_ddl *ddl, bel_status *status) BEL_MUST_USE;

#endif
