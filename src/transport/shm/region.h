// Regions: memory that one process writes and others read in place.
//
// A region is a memfd that its owner sizes, maps and then seals (F_SEAL_SHRINK, GROW, FUTURE_WRITE,
// SEAL). So a process that gets its descriptor can map it only for reading, and its size never
// changes. A mapping cannot be revoked: readers drop theirs before they deal with a successor.
// Untouched pages cost no memory. A region belongs to one incarnation of one writer, except a kept
// one: a writer's successor continues with it. Its size is sealed, too, and peers get a descriptor
// that was opened for reading.
#ifndef BELFRY_TRANSPORT_SHM_REGION_H
#define BELFRY_TRANSPORT_SHM_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

typedef struct bel_shm_region bel_shm_region;

// Creates a region of `bytes` (rounded up to pages), zeroed, with huge pages if available. `name`
// shows in /proc/PID/maps. RESOURCE_EXHAUSTED; UNIMPLEMENTED: the kernel has no such seals;
// INVALID_ARGUMENT: `bytes` is 0.
bel_status *bel_shm_region_create(const char *name, size_t bytes,
                                  bel_shm_region **out_region) BEL_MUST_USE;

// Makes a region of memory that this process was given (bel_linux_shared_open), zeroed unless a
// predecessor has used it. Takes ownership of the descriptor, also on failure. Errors: as above;
// INVALID_ARGUMENT: the predecessor used another size.
bel_status *bel_shm_region_keep(int descriptor, size_t bytes,
                                bel_shm_region **out_region) BEL_MUST_USE;

// Opens the reader's view of a region whose descriptor came from its writer. Takes ownership of the
// descriptor, also on failure. INVALID_ARGUMENT: it is no memfd, its size is not sealed, or it is
// smaller than `least_bytes`.
bel_status *bel_shm_region_open(int descriptor, size_t least_bytes,
                                bel_shm_region **out_region) BEL_MUST_USE;

void bel_shm_region_destroy(bel_shm_region *region); // NULL is allowed

void *bel_shm_region_memory(const bel_shm_region *region); // a reader must not write to it
size_t bel_shm_region_bytes(const bel_shm_region *region);
int bel_shm_region_descriptor(const bel_shm_region *region); // the region owns it

// Allocates every page of a part, so that later accesses do not fault; keeps the content. Only for
// the owner, and before others write to the part.
void bel_shm_region_touch(bel_shm_region *region, size_t offset, size_t bytes);

// Maps a part for reading at `at`, which the caller has reserved (bel_linux_map_pages or similar).
// RESOURCE_EXHAUSTED; INVALID_ARGUMENT: outside the region, or offset, bytes and address are not
// multiples of the page size.
bel_status *bel_shm_region_map(const bel_shm_region *region, size_t offset, size_t bytes,
                               void *at) BEL_MUST_USE;

#endif
