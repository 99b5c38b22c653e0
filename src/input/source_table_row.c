// A row of a table: each cell goes to its elements by columns/transform.h alone, whoever asks: the
// look at all cells, training, evaluation and prediction. A bare number is read without being split
// off first; it must come to the same as one in quotes.
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "input/table_source.h"

static bel_status *cell_error(const bel_csv_file *file, const bel_csv_field *field,
                              const bel_column *column, const char *expected)
{
    char *got = bel_csv_quote(field);
    bel_status *status = bel_csv_file_error(file, field->text, "%s \"%s\": expected %s, got %s",
                                            column->kind == BEL_COLUMN_LABEL ? "label" : "column",
                                            column->name, expected, got);
    bel_free(got);
    return status;
}

static bel_label_state judge_label(const bel_table_source *source, const bel_column *column,
                                   bel_csv_cell cell)
{
    bool classes = column->label == BEL_LABEL_CLASSES;
    if (classes && bel_column_value(column, cell.text, cell.length) >= 0)
        return (bel_label_state){BEL_FOUND_GOOD, -1};
    int missing = bel_missing_texts_find(&source->columns->missing, source->columns->decimal,
                                         cell.text, cell.length);
    return (bel_label_state){missing >= 0 ? BEL_FOUND_MISSING
                             : classes    ? BEL_FOUND_UNKNOWN
                                          : BEL_FOUND_GOOD,
                             missing};
}

bel_label_state bel_table_source_find_label(const bel_table_source *source,
                                            const bel_csv_file *file, const char *at,
                                            bel_table_scratch *s)
{
    const int *places = source->places[file - source->set.files];
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    bel_label_state state = {BEL_FOUND_GOOD, -1};
    for (int i = 0; i < file->column_count && stop == BEL_CSV_DELIMITER; i++) {
        bel_csv_field field;
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        const bel_column *column = places[i] < 0 ? NULL : &source->columns->items[places[i]];
        if (column == NULL || column->kind != BEL_COLUMN_LABEL || stop > BEL_CSV_ROW_END) continue;
        bel_label_state one = judge_label(source, column, bel_csv_table_cell(&field, &s->spare));
        if (one.kind == BEL_FOUND_MISSING || state.kind == BEL_FOUND_GOOD) state = one;
        if (one.kind == BEL_FOUND_MISSING) break;
    }
    return state;
}

// Keeps the first cell that was counted as unknown.
static void note_unknown(bel_table_scratch *s, const bel_csv_file *file, const bel_csv_field *field,
                         int column, const bel_columns_row *row)
{
    if (row->seen[column].unknown == 0 || s->unknown[column].file != NULL) return;
    s->unknown[column] = (bel_unknown_cell){file, *field};
}

bel_status *bel_table_source_read_row(const bel_table_source *source, const bel_csv_file *file,
                                      const char *at, const bel_columns_row *row,
                                      bel_table_scratch *s, bel_label_state *out_label)
{
    const bel_columns *columns = source->columns;
    const int *places = source->places[file - source->set.files];
    const char *begin = at;
    bel_columns_row_begin(columns, row);
    for (int i = 0; i < file->column_count; i++) {
        const bel_column *column = places[i] < 0 ? NULL : &columns->items[places[i]];
        double value;
        const char *stop = NULL;
        if (column != NULL && column->kind == BEL_COLUMN_NUMBER)
            stop = bel_decimal_parse(at, file->end, &value);
        bool bare = stop != NULL && stop < file->end && *stop == file->delimiter &&
                    !bel_csv_table_may_be_other(columns, at, stop) &&
                    !bel_column_is_missing_number(columns, column, at, (size_t)(stop - at));
        if (bare && bel_columns_row_put_number(column, value, row)) {
            at = stop + 1;
            continue;
        }
        bel_csv_field field;
        bel_csv_stop end = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (end > BEL_CSV_ROW_END) { // only when the file was changed behind our back
            return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(end));
        }
        if (column == NULL) continue;
        char expected[BEL_COLUMN_EXPECTED];
        bel_csv_cell cell = bel_csv_table_cell(&field, &s->spare);
        if (bel_columns_row_put(columns, column, cell.text, cell.length, row, expected)) {
            if (s->unknown != NULL) note_unknown(s, file, &field, places[i], row);
            continue;
        }
        if (out_label != NULL) *out_label = bel_table_source_find_label(source, file, begin, s);
        if (out_label != NULL && out_label->kind == BEL_FOUND_UNKNOWN &&
            column->kind != BEL_COLUMN_LABEL)
            out_label->kind = BEL_FOUND_GOOD;
        return cell_error(file, &field, column, expected);
    }
    bel_columns_row_end(columns, row);
    return NULL;
}
