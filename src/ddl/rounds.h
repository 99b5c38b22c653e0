// Runs calls as rounds through the shared memory of a group, and between groups.
#ifndef BELFRY_DDL_ROUNDS_H
#define BELFRY_DDL_ROUNDS_H

#include "ddl/call.h"

// Each needs a call that has begun (bel_ddl_call_begin).
bel_status *bel_ddl_rounds_meet(bel_ddl_call *call) BEL_MUST_USE;
bel_status *bel_ddl_rounds_sum(bel_ddl_call *call) BEL_MUST_USE;
bel_status *bel_ddl_rounds_spread(bel_ddl_call *call) BEL_MUST_USE;

#endif
