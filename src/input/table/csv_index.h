// Indexing of the rows of a CSV file with a given number of threads and size of parts, for tests.
// bel_csv_file_index (csv_file.h) chooses both.
#ifndef BELFRY_INPUT_TABLE_CSV_INDEX_H
#define BELFRY_INPUT_TABLE_CSV_INDEX_H

#include "input/table/csv_file.h"

// Like bel_csv_file_index, in parts of `part_bytes`. The result does not depend on `part_bytes` and
// `threads`.
bel_status *bel_csv_file_index_parts(bel_csv_file *file, const bel_csv_label *label, bool keep_bad,
                                     size_t part_bytes, int threads) BEL_MUST_USE;

// Like bel_csv_file_index, for the rows from `row` on, which follow the indexed ones.
bel_status *bel_csv_file_index_from(bel_csv_file *file, const char *row, const bel_csv_label *label,
                                    bool keep_bad) BEL_MUST_USE;

#endif
