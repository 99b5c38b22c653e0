// Predictions of a model that was trained with a description of columns.
#ifndef BELFRY_TOOLS_PREDICT_TABLE_H
#define BELFRY_TOOLS_PREDICT_TABLE_H

#include "rank_lines.h"
#include "setup.h"

// Predicts --eval_files; where that is "-", the rows that come on standard input, each as soon as
// it is there. `rows`: the numbers of held out rows, which are told; NULL: of others. Lines go to
// `ranks` (NULL: to standard output). Errors: those of bel_predict; DATA_LOSS names a row's place;
// INVALID_ARGUMENT: a part of standard input, or outputs by name.
bel_status *bel_predict_table(const bel_options *options, const bel_setup *setup,
                              const int64_t *rows, bel_rank_lines *ranks) BEL_MUST_USE;

#endif
