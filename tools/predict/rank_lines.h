// Output lines of ranks (belfry/ddl.h), printed by the first rank in the order of ranks.
#ifndef BELFRY_TOOLS_PREDICT_RANK_LINES_H
#define BELFRY_TOOLS_PREDICT_RANK_LINES_H

#include "belfry/status.h"

typedef struct bel_rank_lines bel_rank_lines;

// Waits until all ranks have joined; errors of bel_ddl_init.
bel_status *bel_rank_lines_create(bel_rank_lines **out_lines) BEL_MUST_USE;

// Writes the first rank's text to stdout at once, another rank's text to a file without a name.
bel_status *bel_rank_lines_write(bel_rank_lines *lines, const char *text) BEL_MUST_USE;

// Sends the other ranks' lines to the first one's stdout. All ranks call it after their last line.
// Errors: those of writing; a rank that does not join, by name.
bel_status *bel_rank_lines_finish(bel_rank_lines *lines) BEL_MUST_USE;

// `why`: an error that ends all ranks; NULL: success. Accepts NULL lines.
void bel_rank_lines_destroy(bel_rank_lines *lines, const bel_status *why);

#endif
