// Both directions between a store's model folder and this host's folder of it.
#ifndef BELFRY_LAUNCH_FOLDER_STORED_SYNC_H
#define BELFRY_LAUNCH_FOLDER_STORED_SYNC_H

#include <stdbool.h>

#include "launch/folder/stored.h"
#include "launch/folder/stored_state.h"

// Sums of one direction.
typedef struct bel_stored_sums {
    int64_t files, bytes;
} bel_stored_sums;

// Sends the writer's files that are new or have changed, by the permission of this thread
// (bel_store_set_permission). The owner then removes the objects whose files are gone.
// *out_sums (NULL: not wanted) also counts before an error.
bel_status *bel_stored_push(bel_stored_state *state, bel_stored_writer writer,
                            bel_stored_sums *out_sums) BEL_MUST_USE;

// Makes this host's folder equal to the store's. A checkpoint without its manifest does not count.
// `continues`: this host had the folder last, so its files are the newest; then only fetches files
// that were here before and are gone, as after a cleanup of temporary files. Curves that have grown
// here stay. `which`: of bel_stored_pull. `lock`: descriptor of FOLDER.store/lock; if a process
// begins to own the folder, the next file is not fetched (ABORTED). -1: that is not looked at.
bel_status *bel_stored_fetch(bel_stored_state *state, bool continues, const char *which, int lock,
                             bel_stored_sums *out_sums) BEL_MUST_USE;

#endif
