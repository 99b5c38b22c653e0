// Mode p: for each size of a call, the ways that are allowed are measured when it comes for the
// first time, and the fastest is kept, also on disk. Sizes go by powers of four.
#ifndef BELFRY_DDL_EXPLORE_H
#define BELFRY_DDL_EXPLORE_H

#include "ddl/call.h"

// All ranks call this together, when all that calls need is there. Reads what an earlier job of the
// same ranks kept: of the same hosts, processors, options and version. What it cannot read or write
// it measures again, and says so in the log.
bel_status *bel_ddl_choices_open(bel_ddl *ddl, bel_ddl_choices **out_choices) BEL_MUST_USE;
void bel_ddl_choices_close(bel_ddl_choices *choices); // NULL is fine

// The way for a sum that has not begun; all ranks call this together.
bel_status *bel_ddl_choose(const bel_ddl_call *call, bel_ddl_mode *out_mode) BEL_MUST_USE;

#endif
