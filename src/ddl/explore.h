// Mode p: measures the allowed ways for each size class of calls at its first call, and keeps the
// fastest, also on disk. Size classes are powers of four.
#ifndef BELFRY_DDL_EXPLORE_H
#define BELFRY_DDL_EXPLORE_H

#include "ddl/call.h"

// All ranks call this together, when everything that calls need exists. Reads the file of an
// earlier job of the same ranks: same hosts, processors, options and version. If it cannot read or
// write the file, it logs that and measures again.
bel_status *bel_ddl_choices_open(bel_ddl *ddl, bel_ddl_choices **out_choices) BEL_MUST_USE;
void bel_ddl_choices_close(bel_ddl_choices *choices); // NULL is fine

// Chooses the way of a sum before it begins; all ranks call this together.
bel_status *bel_ddl_choose(const bel_ddl_call *call, bel_ddl_mode *out_mode) BEL_MUST_USE;

#endif
