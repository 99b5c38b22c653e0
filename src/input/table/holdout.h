// Selection of the rows of CSV files that are held out of a training (bel_holdout). It is the same
// in every process.
#ifndef BELFRY_INPUT_TABLE_HOLDOUT_H
#define BELFRY_INPUT_TABLE_HOLDOUT_H

#include "belfry/dataset.h"
#include "input/table/csv_set.h"

typedef struct bel_str bel_str; // base/str.h

// INVALID_ARGUMENT: an invalid share, fold or count.
bel_status *bel_holdout_check(const bel_holdout *holdout) BEL_MUST_USE;

// Keeps the rows of an indexed set that the holdout asks for; all rows if it is zero.
// `label_fields`: per file, the number of the label's field; -1: no label. INVALID_ARGUMENT: no row
// would be held out, or no row would be left. RESOURCE_EXHAUSTED: memory, threads.
bel_status *bel_holdout_apply(const bel_holdout *holdout, bel_csv_set *set,
                              const int *label_fields) BEL_MUST_USE;

// Lists the rows that the holdout of `csv` asks for, as ascending numbers among all rows of its
// files, from 0 on. Free the list with bel_free. Only the paths, delimiter, no_header and holdout
// of `csv` are used. `label` is the name of the label's column; NULL: no label. Errors: those of
// opening and of bel_holdout_apply.
bel_status *bel_holdout_list(const bel_csv_options *csv, const char *label,
                             int64_t **out_rows) BEL_MUST_USE;

// Number of rows that the holdout keeps of `rows` rows.
int64_t bel_holdout_rows(const bel_holdout *holdout, int64_t rows);

bool bel_holdout_equal(const bel_holdout *a, const bel_holdout *b);

// Appends the holdout for a fingerprint, or nothing if all rows are read.
void bel_holdout_describe(const bel_holdout *holdout, bel_str *out_text);

#endif
