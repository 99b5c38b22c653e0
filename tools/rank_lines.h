// Lines that ranks write (belfry/ddl.h), printed by the first one in the order of ranks.
#ifndef BELFRY_TOOLS_RANK_LINES_H
#define BELFRY_TOOLS_RANK_LINES_H

#include "belfry/status.h"

typedef struct bel_rank_lines bel_rank_lines;

// Waits until all ranks are there; errors as of bel_ddl_init.
bel_status *bel_rank_lines_create(bel_rank_lines **out_lines) BEL_MUST_USE;

// What the first rank writes goes to stdout at once; what others write, to a file without a name.
bel_status *bel_rank_lines_write(bel_rank_lines *lines, const char *text) BEL_MUST_USE;

// All ranks call this when they have written their last line: the others' lines go to the first
// one's stdout. Errors are those of writing, and a rank that does not come, named.
bel_status *bel_rank_lines_finish(bel_rank_lines *lines) BEL_MUST_USE;

// `why`: an error that ends all ranks; NULL: it has finished. NULL lines are fine.
void bel_rank_lines_destroy(bel_rank_lines *lines, const bel_status *why);

#endif
