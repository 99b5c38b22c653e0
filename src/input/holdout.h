// Which rows of CSV files are held out of a training (bel_holdout), in every process the same.
#ifndef BELFRY_INPUT_HOLDOUT_H
#define BELFRY_INPUT_HOLDOUT_H

#include "base/str.h"
#include "belfry/dataset.h"
#include "input/csv_set.h"

// INVALID_ARGUMENT: a share, a fold or a count that is none.
bel_status *bel_holdout_check(const bel_holdout *holdout) BEL_MUST_USE;

// Keeps the rows of an indexed set that the holdout asks for; all where it is zero. `label_fields`:
// of each file, which field the label is, -1 where there is none. INVALID_ARGUMENT: no row would be
// held out, or none be left. RESOURCE_EXHAUSTED: memory, threads.
bel_status *bel_holdout_apply(const bel_holdout *holdout, bel_csv_set *set,
                              const int *label_fields) BEL_MUST_USE;

// The numbers of the rows that the holdout of `csv` asks for, among all rows of its files,
// ascending from 0 on; free with bel_free. Of `csv` paths, delimiter, no_header and holdout count;
// `label` names the label's column, NULL: there is none. Errors: those of opening and of the above.
bel_status *bel_holdout_list(const bel_csv_options *csv, const char *label,
                             int64_t **out_rows) BEL_MUST_USE;

// So many of `rows` rows are kept.
int64_t bel_holdout_rows(const bel_holdout *holdout, int64_t rows);

bool bel_holdout_equal(const bel_holdout *a, const bel_holdout *b);

// For a fingerprint; adds nothing where all rows are read.
void bel_holdout_describe(const bel_holdout *holdout, bel_str *out_text);

#endif
