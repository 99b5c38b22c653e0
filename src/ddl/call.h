// A call of all ranks: its tensors, cut into rounds of as much as fits into a rank's slot. Each
// tensor's piece of a round has an offset of whole cache lines; all ranks walk the same pieces, so
// none is described to another.
#ifndef BELFRY_DDL_CALL_H
#define BELFRY_DDL_CALL_H

#include <string.h>

#include "ddl/add.h"
#include "ddl/mpi.h"
#include "ddl/net.h"
#include "ddl/region.h"
#include "ddl/settings.h"

enum {
    BEL_DDL_LINE = 64,           // bytes: ranks do not write into one cache line
    BEL_DDL_CHUNK = 256 << 10,   // of a slot: a rank's stay in a core's cache
    BEL_DDL_NET_CHUNK = 1 << 20, // where hosts are waited for at each round
};

typedef struct bel_ddl_choices bel_ddl_choices; // explore.h

struct bel_ddl {
    bel_ddl_place place;
    bel_ddl_settings settings;
    bel_ddl_mode mode;      // that calls have, unless they are explored
    bel_ddl_group group;    // this rank's
    bel_ddl_region *region; // NULL: this rank shares memory with nobody
    bel_ddl_net *net;       // NULL: all share memory
    bel_ddl_mpi *mpi;       // NULL: it is not used
    bel_ddl_choices *choices;
    size_t chunk;             // bytes of a round
    uint64_t calls;           // number of the last one
    uint64_t rounds;          // begun so far
    void *scratch;            // of bel_ddl_add
    char *share;              // with net: a chunk on its way between groups
    char *parts;              // with net: what other groups have, a chunk for each
    bel_ddl_memory *memories; // in the order of bel_ddl_alloc
    size_t memory_count, memory_capacity;
    bel_code failed; // BEL_OK: no call has
    char failure[512];
};

// A place in a call's tensors: what lies before it is in earlier rounds.
typedef struct bel_ddl_cursor {
    int tensor;
    size_t offset; // bytes
} bel_ddl_cursor;

typedef struct bel_ddl_call {
    bel_ddl *ddl;
    const char *name;
    const bel_tensor *tensors;
    int count;
    double divisor; // of sums
    int root;       // whose values are spread
    bool direct;    // tensors in memory of bel_ddl_alloc are read where they lie
    bel_ddl_mode mode;
    // Follows from the mode: ranks that share memory, and which of them this one is.
    bel_ddl_region *region; // NULL: there are no others
    int member, members;
    bel_ddl_said said;
    bool told[BEL_DDL_DIMS]; // by dimension: ranks have compared what they call
} bel_ddl_call;

// A part of one tensor, and its place in the slots, which stays empty where there is a memory.
typedef struct bel_ddl_piece {
    char *data;
    bel_dtype dtype;
    size_t bytes, place;
    const bel_ddl_memory *memory; // in which all members have it; NULL: each has it for itself
} bel_ddl_piece;

typedef struct bel_ddl_round {
    uint64_t number;
    bel_ddl_cursor first;
    size_t used; // bytes of the slots, whole lines
} bel_ddl_round;

// The pieces of a round that lie in [from, to) of the slots, one after another: zero-initialise but
// for these, and ask until it is false.
typedef struct bel_ddl_walk {
    const bel_ddl_call *call;
    size_t from, to;
    bel_ddl_cursor at;
    size_t place;
} bel_ddl_walk;

bel_ddl_walk bel_ddl_walk_begin(const bel_ddl_call *call, const bel_ddl_round *round, size_t from,
                                size_t to);
bool bel_ddl_walk_next(bel_ddl_walk *walk, bel_ddl_piece *out_piece);

// The round that begins at `first`; returns where the next one begins.
bel_ddl_cursor bel_ddl_round_begin(const bel_ddl_call *call, bel_ddl_cursor first,
                                   bel_ddl_round *out_round);
bool bel_ddl_call_is_at_end(const bel_ddl_call *call, bel_ddl_cursor at);

// Whether a tensor begins in memory of bel_ddl_alloc and ends behind it.
bool bel_ddl_call_leaves_memory(const bel_ddl *ddl, const bel_tensor *tensor);

size_t bel_ddl_whole_lines(size_t bytes);
size_t bel_ddl_call_bytes(const bel_ddl_call *call); // whole lines

// Gives the call its number, and says what it is. The error is that of an earlier call.
bel_status *bel_ddl_call_begin(bel_ddl_call *call) BEL_MUST_USE;
// Calls end with this: an error is told to the other ranks, and kept for the calls that follow.
bel_status *bel_ddl_call_end(bel_ddl *ddl, bel_status *status) BEL_MUST_USE;

#endif
