// Lease of a store's model folder: an object that its one owner renews.
#ifndef BELFRY_LAUNCH_FOLDER_STORED_LEASE_H
#define BELFRY_LAUNCH_FOLDER_STORED_LEASE_H

#include "launch/folder/stored_state.h"
#include "store/store.h"

// Takes the lease. FAILED_PRECONDITION: another owner has it.
bel_status *bel_stored_lease_take(const bel_stored_state *state,
                                  bel_store_info *out_lease) BEL_MUST_USE;

// Writes the lease again. *out_lost, which is also set on failure: another owner took it; the error
// is ABORTED then.
bel_status *bel_stored_lease_renew(const bel_stored_state *state, bel_store_info *lease,
                                   bool *out_lost) BEL_MUST_USE;

// Writes that the folder is free. The name of its last owner stays.
bel_status *bel_stored_lease_release(const bel_stored_state *state,
                                     bel_store_info *lease) BEL_MUST_USE;

// The host of another owner that has the lease now; NULL: there is no such owner. Free with
// bel_free.
bel_status *bel_stored_lease_owner(const bel_stored_state *state, char **out_host) BEL_MUST_USE;

// True if this host has the lease, or had it last.
bel_status *bel_stored_lease_is_mine(const bel_stored_state *state, bool *out_mine) BEL_MUST_USE;

#endif
