// Predictions of a model that was trained on described columns.
#ifndef BELFRY_TOOLS_PREDICT_PREDICT_TABLE_H
#define BELFRY_TOOLS_PREDICT_PREDICT_TABLE_H

#include "predict/rank_lines.h"
#include "setup/setup.h"

// Predicts the rows of --eval_files, or of standard input if that is "-", each as soon as it
// arrives. `rows`: numbers of held out rows, to write with each prediction; NULL: no numbers. Lines
// go to `ranks`; NULL: standard output. Errors: those of bel_predict; DATA_LOSS names a row's
// place; INVALID_ARGUMENT: --part of standard input, --outputs, or a column name that --json
// reserves.
bel_status *bel_predict_table(const bel_options *options, const bel_setup *setup,
                              const int64_t *rows, bel_rank_lines *ranks) BEL_MUST_USE;

#endif
