// Verb columns: what the columns of CSV files are, as a table for people on stderr and as the
// description on stdout, to be edited and given as --columns.
#include <string.h>

#include "base/log.h"
#include "results.h"
#include "tables.h"
#include "verbs.h"

bel_status *bel_verb_columns(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // 0
    size_t count;
    const char *const *paths = bel_options_arguments(options, &count);
    if (count == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "columns: expected a CSV file, got none");
    bel_columns *columns;
    BEL_TRY(bel_table_infer(options, paths, (int)count, &columns));
    bel_str table = {0};
    bel_table_print(columns, &table);
    for (char *line = table.text, *end; line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        bel_log_write(BEL_LOG_INFO, "%s", line);
    }
    bel_str_deinit(&table);
    bel_status *status = bel_results_write(bel_columns_text(columns));
    bel_columns_destroy(columns);
    return status;
}
