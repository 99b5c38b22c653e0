// Second look at some rows, at even distances, for likely mistakes. One column may be enough to
// predict the label, as a counter in a file that is sorted by the label. A number may be a mark of
// missing values, such as -999. A cell may be so far from all others that these would be scaled to
// nothing. A finding becomes the column's warning and is reported; it has no other effect.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "columns/date.h"
#include "columns/suspect.h"
#include "input/table/table_look.h"

enum { MOST_ROWS = 2048, LEAST_ROWS = 256, MOST_CELLS = 1 << 22 };

typedef struct sample {
    const bel_columns *description;
    double *keys; // [columns][rows]; NaN: the cell is missing
    int rows, width;
    bel_suspect_row *row_room; // [rows]
    double *value_room;
    uint64_t *orders; // [rows]
} sample;

// A cell's key: equal values have equal keys. NaN: the cell has none.
static double key_of(const bel_columns *d, const bel_column *c, bel_cell cell)
{
    double number = NAN;
    bel_date date;
    bool classes = c->kind == BEL_COLUMN_LABEL && c->label == BEL_LABEL_CLASSES;
    if (classes || c->kind == BEL_COLUMN_CATEGORY) {
        int value = bel_column_value(c, cell.text, cell.length);
        if (value >= 0) number = value;
        if (value >= 0 || classes) return number;
    }
    if (bel_column_is_missing(d, c, cell.text, cell.length)) return NAN;
    switch (c->kind) {
    case BEL_COLUMN_NUMBER:
    case BEL_COLUMN_LABEL:
        (void)bel_column_read_number(d, c, cell.text, cell.length, &number);
        return number;
    case BEL_COLUMN_DATE:
        if ((c->parts & BEL_DATE_TIME) != 0 &&
            bel_date_parse(cell.text, cell.length, c->day_first, &date))
            number = (double)date.seconds;
        return number;
    case BEL_COLUMN_HASH: return (double)bel_column_hash(c, cell.text, cell.length);
    default: return NAN;
    }
}

static void take_row(const bel_table_look *in, const sample *s, int i, bel_csv_spare *spare)
{
    const char *at;
    int64_t row = (int64_t)((double)in->set.row_count / s->rows * i);
    const bel_csv_file *file = bel_csv_set_find(&in->set, row, &at);
    const int *places = in->places[file - in->set.files];
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    s->orders[i] = bel_hash64(&row, sizeof row);
    for (int c = 0; c < s->width; c++)
        s->keys[(ptrdiff_t)c * s->rows + i] = NAN;
    for (int f = 0; f < file->column_count && stop == BEL_CSV_DELIMITER; f++) {
        bel_csv_field field;
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (places[f] < 0 || stop > BEL_CSV_ROW_END) continue;
        const bel_column *column = &s->description->items[places[f]];
        s->keys[(ptrdiff_t)places[f] * s->rows + i] =
            key_of(s->description, column, bel_csv_table_cell(&field, spare));
    }
}

static bool tells_label(const sample *s, const bel_column *label, const double *labels,
                        const double *keys)
{
    int count = 0;
    for (int i = 0; i < s->rows; i++)
        if (!isnan(labels[i]))
            s->row_room[count++] = (bel_suspect_row){.key = isnan(keys[i]) ? -INFINITY : keys[i],
                                                     .label = labels[i],
                                                     .order = s->orders[i]};
    return bel_suspect_tells(s->row_room, count, label->label == BEL_LABEL_CLASSES);
}

static void note_far(const bel_table_look *in, int c, const bel_suspect_numbers *numbers,
                     bel_str *out)
{
    bel_range all = in->totals[c].range, *range = &all;
    bel_range_merge(range, &in->totals[c].dressed_range);
    bool high = bel_suspect_is_far(numbers, range->high);
    if (!high && !bel_suspect_is_far(numbers, range->low)) return;
    bel_status *where = bel_table_look_cell(in, high ? range->high_at : range->low_at, c);
    bel_str_printf(out,
                   "%s%s is so far from nearly all others (%.6g to %.6g) that these are scaled to "
                   "nothing; hint: correct the cell, or --missing \"%.17g\"",
                   out->length > 0 ? "; " : "", bel_status_message(where), numbers->low,
                   numbers->high, high ? range->high : range->low);
    bel_status_ignore(where); // part of the warning
}

static void note_numbers(const bel_table_look *in, const sample *s, int c, bel_str *out)
{
    int count = 0;
    bel_suspect_numbers numbers;
    for (int i = 0; i < s->rows; i++) {
        double key = s->keys[(ptrdiff_t)c * s->rows + i];
        if (!isnan(key)) s->value_room[count++] = key;
    }
    if (!bel_suspect_look(s->value_room, count, &numbers)) return;
    if (numbers.has_mark) {
        bel_str_printf(out,
                       "%.17g is in %.2g %% of the rows and far from all others: does it stand for "
                       "a missing value? hint: --missing \"%.17g\"",
                       numbers.mark, 100 * numbers.share, numbers.mark);
    }
    note_far(in, c, &numbers, out);
}

static void suspect(bel_table_look *in, const sample *s)
{
    bel_columns *d = in->description;
    const bel_column *label =
        in->label >= 0 && in->options->label_count == 0 ? &d->items[in->label] : NULL;
    for (int c = 0; c < s->width; c++) {
        const bel_column *column = &d->items[c];
        bel_str text = {0};
        bool number = column->kind == BEL_COLUMN_NUMBER ||
                      (column->kind == BEL_COLUMN_LABEL && column->label == BEL_LABEL_NUMBER);
        bool learned = bel_column_is_feature(column) && label != NULL;
        if (learned && tells_label(s, label, s->keys + (ptrdiff_t)in->label * s->rows,
                                   s->keys + (ptrdiff_t)c * s->rows)) {
            bel_str_printf(&text,
                           "it predicts nearly all of \"%s\" without other columns; hint: "
                           "--ignore \"%s\" if it is not known before the label",
                           label->name, column->name);
        } else if (number) {
            note_numbers(in, s, c, &text);
        }
        if (text.length > 0) bel_columns_set_warning(d, c, text.text);
        bel_str_deinit(&text);
    }
}

void bel_table_look_suspect(bel_table_look *in)
{
    int64_t rows = in->set.row_count, most = MOST_CELLS / (in->count + 1);
    if (most > MOST_ROWS) most = MOST_ROWS;
    if (most < LEAST_ROWS) most = LEAST_ROWS;
    sample s = {.description = in->description,
                .rows = (int)(rows < most ? rows : most),
                .width = in->description->count};
    bel_csv_spare spare = {0};
    s.keys = bel_xcalloc((size_t)s.rows * (size_t)s.width + 1, sizeof *s.keys);
    s.row_room = bel_xcalloc((size_t)s.rows + 1, sizeof *s.row_room);
    s.value_room = bel_xcalloc((size_t)s.rows + 1, sizeof *s.value_room);
    s.orders = bel_xcalloc((size_t)s.rows + 1, sizeof *s.orders);
    for (int i = 0; i < s.rows; i++)
        take_row(in, &s, i, &spare);
    suspect(in, &s);
    bel_free(spare.text);
    bel_free(s.keys);
    bel_free(s.row_room);
    bel_free(s.value_room);
    bel_free(s.orders);
}
