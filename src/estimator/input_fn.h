// Opening what an input function gives. Every role that reads data does it here, so that an error
// says which of the three inputs it is about, and the columns are those of the model.
#ifndef BELFRY_ESTIMATOR_INPUT_FN_H
#define BELFRY_ESTIMATOR_INPUT_FN_H

#include "belfry/estimator.h"
#include "input/input.h"

// Calls `input_fn` for the estimator and opens its dataset. `like`: the columns that it must have,
// as in bel_input_open; NULL: its own. Errors: the function's and those of bel_input_open, with the
// mode's name before them; INVALID_ARGUMENT: it gave no dataset. Close with bel_input_destroy.
bel_status *bel_input_fn_open(bel_input_fn *input_fn, void *user, const bel_estimator *estimator,
                              bel_mode mode, const bel_column_names *like,
                              bel_input **out_input) BEL_MUST_USE;

// The same with columns as a checkpoint's setting BEL_SETTING_COLUMNS has them; NULL: it has none.
bel_status *bel_input_fn_open_like(bel_input_fn *input_fn, void *user,
                                   const bel_estimator *estimator, bel_mode mode,
                                   const char *columns, bel_input **out_input) BEL_MUST_USE;

#endif
