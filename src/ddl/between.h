// All-reduce between groups of ranks that share memory: over connections, one dimension after
// another.
#ifndef BELFRY_DDL_BETWEEN_H
#define BELFRY_DDL_BETWEEN_H

#include "ddl/call.h"

// Returns how many seconds later than other waits a wait ends that follows a sum between groups.
int bel_ddl_between_late_secs(const bel_ddl_call *call);

// Waits until all ranks along each dimension have entered the same call.
bel_status *bel_ddl_between_meet(bel_ddl_call *call) BEL_MUST_USE;

// Adds the bytes [from, to) of a round, contiguous in `share`, over this rank's counterparts in
// each group, divided at the end.
bel_status *bel_ddl_between_sum(bel_ddl_call *call, const bel_ddl_round *round, size_t from,
                                size_t to, char *share) BEL_MUST_USE;

// Broadcasts the root's `share`, between the counterparts of the root in each group.
bel_status *bel_ddl_between_spread(bel_ddl_call *call, char *share, size_t bytes) BEL_MUST_USE;

#endif
