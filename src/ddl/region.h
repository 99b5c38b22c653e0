// Shared memory of a host's ranks: how they find it, and how they wait for each other in it.
//
// Rank 0 creates a memory file and names it after the job; the others open it. When all have
// joined, the name is removed, so a later kill leaves nothing. Each rank locks one byte of the
// file. The kernel releases the lock when the process exits, so the others notice the exit, even
// from another container.
//
// Each rank has a line with two counters: the rounds at which it has arrived (`arrived`), and those
// of which it has finished its share (`done`). Only the owner writes it, with release. A rank that
// waits for a counter reads it with acquire, and then sees all earlier writes of the owner.
#ifndef BELFRY_DDL_REGION_H
#define BELFRY_DDL_REGION_H

#include <stdatomic.h>

#include "base/launcher.h"
#include "belfry/ddl.h"

enum {
    BEL_DDL_SLOTS = 3, // per rank
    BEL_DDL_SAID_TEXT = 160,
};

// Description of a rank's call: two ranks with different digests make different calls.
typedef struct bel_ddl_said {
    uint64_t number; // the call's
    uint64_t digest;
    char words[BEL_DDL_SAID_TEXT];
} bel_ddl_said;

// FAILED_PRECONDITION: the two ranks' calls differ.
bel_status *bel_ddl_said_compare(int rank, const bel_ddl_said *said, int other_rank,
                                 const bel_ddl_said *other) BEL_MUST_USE;

// Ranks that share memory: `size` of `all` ranks, starting with `first`.
typedef struct bel_ddl_group {
    int first, size, all;
} bel_ddl_group;

typedef struct bel_ddl_line {
    _Alignas(128) _Atomic uint64_t arrived;
    _Atomic uint64_t done;
    _Atomic uint32_t joined;
    // By the call's parity; written before the rank arrives at the call's first round. No rank is
    // two calls ahead of another, so none is written while it is compared.
    _Alignas(128) bel_ddl_said calls[2];
} bel_ddl_line;

typedef struct bel_ddl_region bel_ddl_region;

// Called in waits, for `doing`; returns an error if ranks of other groups have failed or exited.
typedef bel_status *bel_ddl_look(void *context, const char *doing);

// Joins the others of the group within `timeout_secs`; each has slots of `chunk` bytes, a multiple
// of the page size. `look` is NULL if there are no other groups. Errors as of bel_ddl_init, and the
// look's. Below, `rank` counts within the group.
bel_status *bel_ddl_region_join(const bel_launch *launch, bel_ddl_group group, size_t chunk,
                                double timeout_secs, bel_ddl_look *look, void *context,
                                bel_ddl_region **out_region) BEL_MUST_USE;
void bel_ddl_region_leave(bel_ddl_region *region);

bel_ddl_line *bel_ddl_region_line(const bel_ddl_region *region, int rank);
// Returns a rank's slot for a round; it is reused BEL_DDL_SLOTS rounds later.
void *bel_ddl_region_slot(const bel_ddl_region *region, int rank, uint64_t round);

// Memory of the same size for each rank, mapped by all. Rank r's begins at base + r × stride.
typedef struct bel_ddl_memory {
    char *base; // NULL: freed
    size_t stride, bytes;
    int file; // at rank 0, while it has a name
} bel_ddl_memory;

// Creates it, on rank 0, under a name with this number; rank 0 removes the name when the others
// have opened it. RESOURCE_EXHAUSTED.
bel_status *bel_ddl_region_make_memory(const bel_ddl_region *region, uint64_t number, size_t bytes,
                                       bel_ddl_memory *out_memory) BEL_MUST_USE;
bel_status *bel_ddl_region_open_memory(const bel_ddl_region *region, uint64_t number, size_t bytes,
                                       bel_ddl_memory *out_memory) BEL_MUST_USE;
void bel_ddl_region_forget_name(const bel_ddl_region *region, uint64_t number,
                                const bel_ddl_memory *memory);
void bel_ddl_region_unmap(const bel_ddl_region *region, bel_ddl_memory *memory);

typedef enum bel_ddl_count { BEL_DDL_ARRIVED, BEL_DDL_DONE } bel_ddl_count;

// Publishes that this rank has arrived at the round, or has finished its share.
void bel_ddl_region_tell(bel_ddl_region *region, bel_ddl_count count, uint64_t round);
// Waits until all others have. `doing` names the purpose in messages. `late_secs` makes this wait
// end later than others, so that the awaited rank can first report which rank it waits for itself.
bel_status *bel_ddl_region_await(bel_ddl_region *region, bel_ddl_count count, uint64_t round,
                                 const char *doing, double late_secs) BEL_MUST_USE;

// Ends the calls of all ranks with this error, or with an earlier one if it exists; returns that
// error. Takes ownership of the status.
bel_status *bel_ddl_region_fail(bel_ddl_region *region, bel_status *status) BEL_MUST_USE;
// Returns the error that ends all calls; NULL: no error.
bel_status *bel_ddl_region_check(const bel_ddl_region *region) BEL_MUST_USE;

#endif
