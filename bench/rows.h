// Tables of rows, as all benchmarks of them begin.
#ifndef BELFRY_BENCH_ROWS_H
#define BELFRY_BENCH_ROWS_H

#include "ps/table/table.h"

// Creates an empty table, whose start values are normal. `config` has its width, its optimizer, and
// the settings that are compared; name and start values are set here.
bel_table *bench_rows_make(bel_table_config config);

#endif
