// Opens the dataset of an input function. Every role that reads data uses it, so that errors name
// the input (one of three), and the columns are the model's.
#ifndef BELFRY_ESTIMATOR_INPUT_FN_H
#define BELFRY_ESTIMATOR_INPUT_FN_H

#include "base/str.h"
#include "belfry/estimator.h"
#include "input/batch/input.h"

// Calls `input_fn` for the estimator and opens its dataset. `like`: the columns that it must have,
// as for bel_input_open; NULL: the dataset's. Errors: the function's and those of bel_input_open,
// after the mode's name; INVALID_ARGUMENT: it gave no dataset. Close with bel_input_destroy.
bel_status *bel_input_fn_open(bel_input_fn *input_fn, void *user, const bel_estimator *estimator,
                              bel_mode mode, const bel_column_names *like,
                              bel_input **out_input) BEL_MUST_USE;

// The same with columns from a checkpoint's setting BEL_SETTING_COLUMNS; NULL: unset.
bel_status *bel_input_fn_open_like(bel_input_fn *input_fn, void *user,
                                   const bel_estimator *estimator, bel_mode mode,
                                   const char *columns, bel_input **out_input) BEL_MUST_USE;

// Whether the data of its training is on other hosts: the function or its dataset gives NOT_FOUND,
// whose message is appended to *out_error, or the dataset has a file that is not here
// (bel_description_is_elsewhere). Opens nothing.
bool bel_input_fn_is_elsewhere(bel_input_fn *input_fn, void *user, const bel_estimator *estimator,
                               bel_str *out_error);

#endif
