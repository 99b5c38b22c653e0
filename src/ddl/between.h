// Sums between groups of ranks that share memory: over connections, one dimension after another.
#ifndef BELFRY_DDL_BETWEEN_H
#define BELFRY_DDL_BETWEEN_H

#include "ddl/call.h"

// How much later than other waits those for what follows a sum between groups end, in seconds.
int bel_ddl_between_late_secs(const bel_ddl_call *call);

// All ranks along each dimension have come to the call, and call the same.
bel_status *bel_ddl_between_meet(bel_ddl_call *call) BEL_MUST_USE;

// The bytes [from, to) of a round, which `share` holds, one after another: adds up what this member
// of each group has there, divided at the end.
bel_status *bel_ddl_between_sum(bel_ddl_call *call, const bel_ddl_round *round, size_t from,
                                size_t to, char *share) BEL_MUST_USE;

// Gives `share` of the root to the others; of each group the member that is as the root in its own.
bel_status *bel_ddl_between_spread(bel_ddl_call *call, char *share, size_t bytes) BEL_MUST_USE;

#endif
