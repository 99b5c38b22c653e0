// Verb columns: description of the columns of CSV files. It is printed as a table for people on
// stderr and as a description for --columns, which users can edit, on stdout. With --json the table
// is on stdout, one object a line. If no flag names the label and no column can be one, the
// description is printed without a label.
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "setup/tables.h"

static bel_status *columns_look(const bel_options *options, const char *const *paths, int count,
                                bel_columns **out_columns)
{
    bel_status *status = bel_table_infer(options, paths, count, true, out_columns);
    size_t named;
    bel_options_list(options, "label_columns", &named);
    bool guessed = bel_options_string(options, "label_column") == NULL && named == 0;
    if (status == NULL || !guessed || bel_status_code(status) != BEL_INVALID_ARGUMENT)
        return status;
    bel_status *again = bel_table_infer(options, paths, count, false, out_columns);
    if (again == NULL)
        bel_log_write(BEL_LOG_WARN, "there is no label: %s", bel_status_message(status));
    bel_status_ignore(again == NULL ? status : again); // logged; the first error says more
    return again == NULL ? NULL : status;
}

bel_status *bel_verb_columns(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    size_t count;
    const char *const *paths = bel_options_arguments(options, &count);
    if (count == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "columns: expected a CSV file, got none");
    bel_columns *columns;
    BEL_TRY(columns_look(options, paths, (int)count, &columns));
    bel_str table = {0};
    if (bel_options_bool(options, "json")) {
        bel_table_print_json(columns, &table);
        bel_status *written = bel_results_write(table.text);
        bel_str_deinit(&table);
        bel_columns_destroy(columns);
        return written;
    }
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
