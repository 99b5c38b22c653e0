// The start values do not matter to a benchmark, but drawing them takes time: so all draw the same.
#include "rows.h"

#include "figures.h"

bel_table *bench_rows_make(bel_table_config config)
{
    bel_table *table;
    config.name = "deep";
    config.start = BEL_TABLE_NORMAL;
    config.scale = 0.01f;
    bench_check(bel_table_create(&config, &table));
    return table;
}
