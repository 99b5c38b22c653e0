// The difference of neighbors over the difference of any two rows is von Neumann's ratio
// ("Distribution of the ratio of the mean square successive difference to the variance", 1941). The
// rows are sorted by a column: the ratio is 1 if the column tells nothing about the label, and 0 if
// it tells all. Classes differ if they are not equal. Rows of one key are in random order, so that
// the order of the file has no effect.
#include "columns/suspect.h"

#include <math.h>
#include <stdlib.h>

enum {
    LEAST = 20,      // values, or rows that are expected to differ
    HUNDREDTH = 100, // 1/100 of the values
    FAR = 1000,      // times the range of nearly all
    LEAST_MARKS = 5,
    LEAST_OTHERS = 5 // distinct numbers besides a mark
};

static const double most_of_classes = 0.02, most_of_numbers = 0.01; // limits of the ratio

static int by_key(const void *left, const void *right)
{
    const bel_suspect_row *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int by_label(const void *left, const void *right)
{
    const bel_suspect_row *a = left, *b = right;
    return a->label < b->label ? -1 : a->label > b->label;
}

// Expected number of rows whose class differs from that of a randomly drawn row.
static double expected_of_classes(bel_suspect_row *rows, int count)
{
    double same = 0;
    qsort(rows, (size_t)count, sizeof *rows, by_label);
    for (int i = 0, run = 0; i < count; i++) {
        run = i > 0 && rows[i].label == rows[i - 1].label ? run + 1 : 1;
        if (i + 1 == count || rows[i + 1].label != rows[i].label) same += (double)run * run;
    }
    return count - same / count;
}

static double expected_of_numbers(const bel_suspect_row *rows, int count)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < count; i++)
        mean += rows[i].label / count;
    for (int i = 0; i < count; i++)
        squares += (rows[i].label - mean) * (rows[i].label - mean);
    return 2 * squares;
}

bool bel_suspect_tells(bel_suspect_row *rows, int count, bool classes)
{
    if (count < LEAST) return false;
    double expected = classes ? expected_of_classes(rows, count) : expected_of_numbers(rows, count);
    double differ = 0, most = classes ? most_of_classes : most_of_numbers;
    if (classes && expected < LEAST) return false;
    qsort(rows, (size_t)count, sizeof *rows, by_key);
    for (int i = 1; i < count; i++) {
        double apart = rows[i].label - rows[i - 1].label;
        differ += classes ? apart != 0 : apart * apart;
    }
    return expected > 0 && isfinite(expected) && differ <= most * expected;
}

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

// View of sorted values, from the lowest or from the highest one.
typedef struct view {
    const double *values;
    int count;
    bool down;
} view;

static double view_at(const view *v, int i)
{
    return v->values[v->down ? v->count - 1 - i : i];
}

// Number of values equal to the first.
static int run_of(const view *v)
{
    int run = 1;
    while (run < v->count && view_at(v, run) == view_at(v, 0))
        run++;
    return run;
}

// Whether the first `run` values are a mark: the range of the others is smaller than their distance
// from it. A value in nearly all rows is the usual one, such as 0 in counts and pixels.
static bool is_mark(const view *v, int run, int trimmed)
{
    int last = v->count - 1 - trimmed; // one more cell may be far, too
    if (run < LEAST_MARKS || run * HUNDREDTH < v->count || run >= last) return false;
    if (run * 10 > v->count * 9) return false;
    double gap = fabs(view_at(v, run) - view_at(v, 0)),
           others = fabs(view_at(v, last) - view_at(v, run));
    int different = 1;
    for (int i = run + 1; i < v->count && different < LEAST_OTHERS; i++)
        different += view_at(v, i) != view_at(v, i - 1);
    return different == LEAST_OTHERS && gap > others;
}

bool bel_suspect_look(double *values, int count, bel_suspect_numbers *out_numbers)
{
    if (count < LEAST) return false;
    int trimmed = count / HUNDREDTH > 0 ? count / HUNDREDTH : 1;
    qsort(values, (size_t)count, sizeof *values, by_value);
    *out_numbers =
        (bel_suspect_numbers){.low = values[trimmed], .high = values[count - 1 - trimmed]};
    for (int down = 0; down <= 1 && !out_numbers->has_mark; down++) {
        const view v = {values, count, down == 1};
        int run = run_of(&v);
        out_numbers->has_mark = is_mark(&v, run, trimmed);
        out_numbers->mark = view_at(&v, 0);
        out_numbers->share = (double)run / count;
    }
    return true;
}

bool bel_suspect_is_far(const bel_suspect_numbers *numbers, double value)
{
    double width = numbers->high - numbers->low;
    return width > 0 && (numbers->low - value > FAR * width || value - numbers->high > FAR * width);
}
