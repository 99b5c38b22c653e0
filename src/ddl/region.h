// Memory that the ranks of a host share, how they find it, and how they wait for each other in it.
//
// Rank 0 makes a file in memory and gives it a name that follows from the job; the others open it.
// When all are there the name is removed, so nothing is left whoever is killed then. Each rank
// holds a lock on a byte of the file, which the kernel takes back when its process ends: so the
// others see that it is gone, also from another container.
//
// Each rank has a line: a count of the rounds to which it has come (`arrived`) and of those whose
// share it has done (`done`). Only its owner writes it, with release; who waits for a count reads
// it with acquire and then sees all that its owner has written before.
#ifndef BELFRY_DDL_REGION_H
#define BELFRY_DDL_REGION_H

#include <stdatomic.h>

#include "base/launcher.h"
#include "belfry/ddl.h"

enum {
    BEL_DDL_SLOTS = 3, // of a rank
    BEL_DDL_SAID_TEXT = 160,
};

// What a rank calls: two ranks whose digests differ make different calls.
typedef struct bel_ddl_said {
    uint64_t number; // of the call
    uint64_t digest;
    char words[BEL_DDL_SAID_TEXT];
} bel_ddl_said;

// FAILED_PRECONDITION: two ranks call different things.
bel_status *bel_ddl_said_compare(int rank, const bel_ddl_said *said, int other_rank,
                                 const bel_ddl_said *other) BEL_MUST_USE;

// Ranks that share memory: `size` of them from `first` on, of `all`.
typedef struct bel_ddl_group {
    int first, size, all;
} bel_ddl_group;

typedef struct bel_ddl_line {
    _Alignas(128) _Atomic uint64_t arrived;
    _Atomic uint64_t done;
    _Atomic uint32_t joined;
    // By the call's parity; written before the rank comes to the call's first round. Nobody is two
    // calls ahead of another, so one that is being compared is not written.
    _Alignas(128) bel_ddl_said calls[2];
} bel_ddl_line;

typedef struct bel_ddl_region bel_ddl_region;

// Asked in waits, for `doing`: an error where ranks of other groups have failed, or have ended.
typedef bel_status *bel_ddl_look(void *context, const char *doing);

// Joins the others of the group within `timeout_secs`; each has slots of `chunk` bytes, whole
// pages. `look`: NULL: there are no other groups. Errors as of bel_ddl_init, and the look's. In
// what follows, `rank` counts within the group.
bel_status *bel_ddl_region_join(const bel_launch *launch, bel_ddl_group group, size_t chunk,
                                double timeout_secs, bel_ddl_look *look, void *context,
                                bel_ddl_region **out_region) BEL_MUST_USE;
void bel_ddl_region_leave(bel_ddl_region *region);

bel_ddl_line *bel_ddl_region_line(const bel_ddl_region *region, int rank);
// A rank's room for a round: BEL_DDL_SLOTS rounds later it is used again.
void *bel_ddl_region_slot(const bel_ddl_region *region, int rank, uint64_t round);

// Memory of as many bytes for each rank, which all have mapped: rank r's begins at base + r ×
// stride.
typedef struct bel_ddl_memory {
    char *base; // NULL: given back
    size_t stride, bytes;
    int file; // while it has a name, at rank 0
} bel_ddl_memory;

// Rank 0 makes it under a name with this number, and takes the name away when the others have
// opened it. RESOURCE_EXHAUSTED.
bel_status *bel_ddl_region_make_memory(const bel_ddl_region *region, uint64_t number, size_t bytes,
                                       bel_ddl_memory *out_memory) BEL_MUST_USE;
bel_status *bel_ddl_region_open_memory(const bel_ddl_region *region, uint64_t number, size_t bytes,
                                       bel_ddl_memory *out_memory) BEL_MUST_USE;
void bel_ddl_region_forget_name(const bel_ddl_region *region, uint64_t number,
                                const bel_ddl_memory *memory);
void bel_ddl_region_unmap(const bel_ddl_region *region, bel_ddl_memory *memory);

typedef enum bel_ddl_count { BEL_DDL_ARRIVED, BEL_DDL_DONE } bel_ddl_count;

// This rank has come to the round, or has done its shared part.
void bel_ddl_region_tell(bel_ddl_region *region, bel_ddl_count count, uint64_t round);
// Waits until all others have. `doing` says in messages what for, and `late_secs` how much later
// than other waits this one ends: whoever is waited for can say first whom it waits for itself.
bel_status *bel_ddl_region_await(bel_ddl_region *region, bel_ddl_count count, uint64_t round,
                                 const char *doing, double late_secs) BEL_MUST_USE;

// Ends the calls of all ranks with this error, or with the one that was there before; the result is
// that one. Takes the status.
bel_status *bel_ddl_region_fail(bel_ddl_region *region, bel_status *status) BEL_MUST_USE;
// The error that ends all calls; NULL: none.
bel_status *bel_ddl_region_check(const bel_ddl_region *region) BEL_MUST_USE;

#endif
