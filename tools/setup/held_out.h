// --held_out: reads again the rows that a training held out.
#ifndef BELFRY_TOOLS_SETUP_HELD_OUT_H
#define BELFRY_TOOLS_SETUP_HELD_OUT_H

#include "setup/setup.h"

// Reads the flags of the training in a folder, which held rows out; free with bel_options_destroy.
// NOT_FOUND: the folder does not have them (job.yaml). FAILED_PRECONDITION: no rows were held out.
bel_status *bel_held_out_options(const char *model_dir, bel_options **out_training) BEL_MUST_USE;

// Returns the numbers of the held out rows among all rows of the files, from 0 on, ascending; free
// with bel_free. Errors: those of the files.
bel_status *bel_held_out_rows(const bel_setup *setup, int64_t **out_rows) BEL_MUST_USE;

#endif
