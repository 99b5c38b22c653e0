// How a column's description follows from its statistics, once its kind is known: numbers, dates,
// categories and classes. Values and classes are ordered by frequency or by their bytes, never by
// rows, so that the description depends neither on the order of the rows nor on threads.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/real.h"
#include "base/str.h"
#include "columns/cell_number.h"
#include "columns/guess_inner.h"

enum {
    MOST_ONE_HOT = 128,
    WEEKDAY_ROWS = 210, // minimum number of rows to learn weekdays: 30 of each
    MOST_MARKERS = 3,   // distinct texts among numbers that mean missing ones
    MANY_ROWS = 1000,   // from here on a value needs LEAST_OFTEN cells
    LEAST_OFTEN = 5,
    MANY_VALUES = 32, // with fewer rows and more values, a value needs two cells
    MOST_CLIP = 10,   // in deviations, to each side
};

_Static_assert((int)MOST_MARKERS < (int)BEL_STATISTICS_TEXTS, "one more than markers is counted");

static const char *copy_value(const bel_guess_state *g, const bel_value_count *value)
{
    char *text = bel_arena_alloc(g->description->arena, value->length + 1);
    memcpy(text, value->text, value->length);
    return text;
}

void bel_guess_note_missing(bel_guess_state *g)
{
    if (g->s->missing > 0) bel_str_printf(&g->note, ", %lld missing", (long long)g->s->missing);
}

bool bel_guess_take_markers(bel_guess_state *g, const bel_value_count *markers, int count,
                            int64_t good, const char *what, bel_missing_texts *out_markers)
{
    if (count > MOST_MARKERS || good == 0 || 2 * good < g->rest) return false;
    const char **texts =
        bel_arena_alloc(g->description->arena, (size_t)(count + 1) * sizeof *texts);
    for (int i = 0; i < count; i++) {
        texts[i] = copy_value(g, &markers[i]);
        bel_str_printf(&g->note, "\"%s\" stands for a missing %s; ", texts[i], what);
    }
    *out_markers = (bel_missing_texts){.texts = texts, .count = count};
    return true;
}

// --- Numbers -------------------------------------------------------------------------------------

// Limit of a scaled number: a little above the largest in training, as nothing is known of a model
// beyond it, and few rows say less about it. Outliers count only up to MOST_CLIP (and less
// if the label is a number, see guess.c). No other number in training changes.
static double clip_of(const bel_column *column, const bel_range *range)
{
    const double ends[] = {range->low, range->high}, more = 1 + 3 / sqrt((double)range->count + 1);
    double most = 0;
    for (int i = 0; i < 2; i++) {
        double v = ends[i];
        if (column->scale == BEL_SCALE_LOG) v = copysign(bel_real_log(1 + fabs(v)), v);
        most = fmax(most, fabs(v - column->mean) / column->deviation);
    }
    most = ceil(most * more * 100) / 100;
    return most < MOST_CLIP ? most : MOST_CLIP;
}

void bel_guess_fill_number(bel_guess_state *g)
{
    bel_column *c = g->column;
    const bel_column_statistics *s = g->s;
    const bel_moments *m = c->scale == BEL_SCALE_LOG ? &s->logs : &s->values_of_numbers;
    double deviation = bel_moments_deviation(m);
    c->mean = m->mean;
    c->deviation = deviation > 0 ? deviation : 1;
    c->low = s->range.low;
    c->high = s->range.high;
    c->fill = s->values_of_numbers.mean;
    c->indicator = s->missing > 0;
    c->clip = clip_of(c, &s->range);
    bel_str_printf(&g->note, "%.6g to %.6g, mean %.6g", s->range.low, s->range.high,
                   s->values_of_numbers.mean);
    bel_guess_note_missing(g);
}

void bel_guess_fill_dressed(bel_guess_state *g, const bel_column_statistics *whole)
{
    const bel_column_statistics *s = g->s;
    if (s->united > 0) {
        g->column->unit = copy_value(g, &s->unit);
        bel_str_printf(&g->note, "in \"%s\"; ", g->column->unit);
    }
    if (s->grouped > 0) {
        g->column->thousands = ',';
        bel_str_puts(&g->note, "commas between thousands; ");
    }
    g->s = whole;
    bel_guess_fill_number(g);
    g->s = s;
}

// --- Dates ---------------------------------------------------------------------------------------

// Chooses the parts of a date to learn from. If dates are in the order of the rows, no part may
// tell a row's position: the time does, and so does a part that hardly repeats.
static int date_parts(const bel_guess_state *g, const bel_range *range)
{
    static const double day = 86400;
    const struct {
        int part;
        double seconds; // period
        bool wanted;
    } round[] = {{BEL_DATE_SEASON, 365 * day, true},
                 {BEL_DATE_WEEKDAY, 7 * day, g->rest >= WEEKDAY_ROWS},
                 {BEL_DATE_HOUR, day, g->s->timed_dates > 0}};
    bool counts = g->rest >= BEL_GUESS_FEW_ROWS && (range->rises || range->falls);
    int parts = counts ? 0 : BEL_DATE_TIME;
    for (size_t i = 0; i < sizeof round / sizeof round[0]; i++)
        if (round[i].wanted && (!counts || range->high - range->low >= 2 * round[i].seconds))
            parts |= round[i].part;
    return parts;
}

void bel_guess_fill_date(bel_guess_state *g)
{
    const bel_column_statistics *s = g->s;
    bel_column *c = g->column;
    c->day_first = s->month_dates < s->day_dates;
    c->parts = date_parts(g, c->day_first ? &s->day_range : &s->month_range);
    if ((c->parts & BEL_DATE_TIME) == 0) {
        bel_str_puts(&g->note, "in the order of the rows, so its time counts them");
        if (c->parts == 0) c->kind = BEL_COLUMN_IGNORE;
        if (c->parts == 0) return;
        bel_str_puts(&g->note, "; ");
    }
    const bel_moments *seconds = c->day_first ? &s->day_seconds : &s->month_seconds;
    double deviation = bel_moments_deviation(seconds);
    c->mean = seconds->mean;
    c->deviation = deviation > 0 ? deviation : 1;
    c->indicator = s->missing > 0 || c->absent.count > 0;
    c->clip = MOST_CLIP; // later dates are expected
    bel_str_puts(&g->note, c->day_first ? "the day before the month" : "dates");
    bel_guess_note_missing(g);
}

// --- Categories and classes ----------------------------------------------------------------------

void bel_guess_fill_category(bel_guess_state *g)
{
    bel_column *c = g->column;
    size_t count = 0, total;
    bel_value_count *values =
        bel_value_counts_sorted(&g->s->values, g->description->decimal, &total);
    int64_t least = g->rest >= MANY_ROWS ? LEAST_OFTEN : total > MANY_VALUES ? 2 : 1;
    while (count < total && count < BEL_COLUMN_MOST_VALUES && values[count].count >= least)
        count++;
    const char **texts = bel_arena_alloc(g->description->arena, (count + 1) * sizeof *texts);
    for (size_t i = 0; i < count; i++)
        texts[i] = copy_value(g, &values[i]);
    bel_free(values);
    c->values = texts;
    c->value_count = (int)count;
    c->missing_value = g->s->missing > 0;
    c->embedded = count > MOST_ONE_HOT;
    if (count == 0 && !c->missing_value) {
        c->kind = BEL_COLUMN_IGNORE;
        bel_str_printf(&g->note, "each of its %zu values comes fewer than %lld times", total,
                       (long long)least);
        return;
    }
    bel_str_printf(&g->note, "%zu values", total);
    if (count < total)
        bel_str_printf(&g->note,
                       ", the %zu that come %lld times or more are told "
                       "apart",
                       count, (long long)least);
    bel_guess_note_missing(g);
}

static int compare_texts(const void *left, const void *right)
{
    const bel_value_count *a = left, *b = right;
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, common);
    if (order != 0) return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

// Reads a number with a decimal point or comma: a table uses only one of them.
static double number_of(const bel_value_count *value)
{
    double number = 0;
    if (!bel_cell_number_read('.', value->text, value->length, &number))
        (void)bel_cell_number_read(',', value->text, value->length, &number);
    return number;
}

static int compare_numbers(const void *left, const void *right)
{
    const bel_value_count *a = left, *b = right;
    double x = number_of(a), y = number_of(b);
    return x < y ? -1 : x > y ? 1 : compare_texts(left, right);
}

void bel_guess_set_classes(bel_guess_state *g, const bel_value_count *values, size_t count)
{
    const char **texts = bel_arena_alloc(g->description->arena, (count + 1) * sizeof *texts);
    double *rows = bel_arena_alloc(g->description->arena, (count + 1) * sizeof *rows);
    for (size_t i = 0; i < count; i++) {
        texts[i] = copy_value(g, &values[i]);
        rows[i] = (double)values[i].count;
    }
    g->column->rows = rows;
    g->column->row_count = (int)count;
    g->column->label = BEL_LABEL_CLASSES;
    g->column->values = texts;
    g->column->value_count = (int)count;
    bel_str_printf(&g->note, "%zu classes", count);
}

void bel_guess_fill_classes(bel_guess_state *g, bel_value_count *values, size_t count)
{
    bool numbers = g->s->numbers == g->rest;
    qsort(values, count, sizeof *values, numbers ? compare_numbers : compare_texts);
    bel_guess_set_classes(g, values, count);
    bel_free(values);
}
