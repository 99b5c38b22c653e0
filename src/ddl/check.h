// Check of sums: compares them with sums in double, added one rank after another
// (bel_ddl_options.check).
#ifndef BELFRY_DDL_CHECK_H
#define BELFRY_DDL_CHECK_H

#include "ddl/call.h"

typedef struct bel_ddl_copy bel_ddl_copy;

// Copies this rank's values before the sum. RESOURCE_EXHAUSTED.
bel_status *bel_ddl_copy_create(const bel_ddl_call *call, bel_ddl_copy **out_copy) BEL_MUST_USE;
void bel_ddl_copy_destroy(bel_ddl_copy *copy);

// Checks after the sum; all ranks call this. DATA_LOSS names rank, tensor, element and the largest
// error.
bel_status *bel_ddl_check_sums(const bel_ddl_call *call, const bel_ddl_copy *copy,
                               double tolerance) BEL_MUST_USE;

#endif
