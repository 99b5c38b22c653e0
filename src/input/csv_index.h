// The index of the rows of a CSV file, made by several threads; bel_csv_file_index of csv_file.h
// chooses them.
#ifndef BELFRY_INPUT_CSV_INDEX_H
#define BELFRY_INPUT_CSV_INDEX_H

#include "input/csv_file.h"

// As bel_csv_file_index, in parts of so many bytes. The result depends on neither number.
bel_status *bel_csv_file_index_parts(bel_csv_file *file, const bel_csv_label *label, bool keep_bad,
                                     size_t part_bytes, int threads) BEL_MUST_USE;

#endif
