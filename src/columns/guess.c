// All cells of a column decide its kind, so one text after a million numbers is seen. A rule that
// could be wrong explains its choice in a note. The user has the last word: by flags, or in the
// description, which is a text.
#include "columns/guess.h"

#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/index.h"
#include "base/log.h"
#include "base/str.h"
#include "columns/column_name.h"
#include "columns/guess_inner.h"

enum {
    MOST_NUMBER_CLASSES = 20, // a label of more distinct integers is a number
    MOST_CLASSES = 10000,
    NUMBER_TENTHS = 9,         // share of numbers among the cells; the others are then wrong
    TEXT_WORDS = 4,            // mean words per cell from which it is a text
    HASH_LEAST = 3,            // repetitions of a hashed value, in half of the cells
    CLIP_TO_LEARN_NUMBERS = 5, // in deviations, if the label is a number (else guess_fill.c)
};

bool bel_guess_needs_values(const bel_guess_column *column, bel_guess_use use)
{
    if (use == BEL_GUESS_LABEL || use == BEL_GUESS_CATEGORY) return true;
    const bel_column_statistics *s = column->statistics;
    if (use != BEL_GUESS_FREE) return false;
    if (bel_column_name_may_number(column->name)) return true;
    int64_t rest = s != NULL ? s->cells - s->missing : 0;
    if (rest > 0 && (s->month_dates == rest || s->day_dates == rest)) return false; // all are dates
    return s != NULL && (s->numbers < s->cells - s->missing || s->padded > 0 || s->longs > 0);
}

// --- A column ------------------------------------------------------------------------------------

// Whether there are more values than are counted: only a sample of them is kept.
static bool are_many(const bel_column_statistics *s)
{
    return s->values.level > 0;
}

// Whether all cells are dates in one of the two readings, but for a few markers.
static bool take_dates(bel_guess_state *g, bel_missing_texts *out_markers)
{
    const bel_column_statistics *s = g->s;
    int64_t dates = s->month_dates > s->day_dates ? s->month_dates : s->day_dates, others = 0;
    for (int i = 0; i < s->undated_count; i++)
        others += s->undated[i].count;
    return dates + others == g->rest &&
           bel_guess_take_markers(g, s->undated, s->undated_count, dates, "date", out_markers);
}

// A number with a letter after it is a name: 12a is the house next to 12.
static bool is_number_and_letter(const bel_value_count *text)
{
    size_t digits = 0;
    while (digits < text->length && text->text[digits] >= '0' && text->text[digits] <= '9')
        digits++;
    size_t space = digits < text->length && text->text[digits] == ' ';
    unsigned char last = digits == 0 ? '\0' : (unsigned char)text->text[text->length - 1];
    bool letter = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z');
    return letter && digits + space + 1 == text->length;
}

// Whether nearly all cells are numbers, and the others, with too many distinct texts for missing
// values, are no names like the numbers.
static bool are_wrong_numbers(const bel_guess_state *g)
{
    const bel_column_statistics *s = g->s;
    bool nearly_all = s->numbers > 0 && 10 * s->numbers >= NUMBER_TENTHS * g->rest;
    int names = 0;
    for (int i = 0; i < s->text_count; i++)
        names += is_number_and_letter(&s->texts[i]);
    return nearly_all && s->numbers < g->rest && 2 * names < s->text_count;
}

// Whether all cells are numbers with the same unit, or with commas between thousands, or with
// neither. A comma before three digits may be a decimal comma if no cell and no option decides it.
// *out_whole: the statistics of all of these numbers.
static bool are_dressed(const bel_guess_state *g, bel_column_statistics *out_whole)
{
    const bel_column_statistics *s = g->s;
    bool points = s->clearly_grouped > 0 || s->numbers > s->wholes || g->options->decimal == '.';
    if (s->dressed == 0 || s->numbers + s->dressed != g->rest || s->padded > 0) return false;
    if (s->united > 0 && (s->united != g->rest || s->unit.count != s->united)) return false;
    if (s->grouped > 0 && !points) return false;
    *out_whole = *s;
    out_whole->numbers += s->dressed;
    bel_moments_merge(&out_whole->values_of_numbers, &s->values_of_dressed);
    bel_moments_merge(&out_whole->logs, &s->logs_of_dressed);
    bel_range_merge(&out_whole->range, &s->dressed_range);
    return true;
}

static bel_column *guess_add(bel_guess_state *g, const char *name, bel_column_kind kind)
{
    g->column = bel_columns_add(g->description, name, kind);
    return g->column;
}

// Whether values are frequent enough to learn from: half of the cells have a value that comes
// HASH_LEAST times.
static bool come_again(const bel_column_statistics *s)
{
    int64_t cells = 0, often = 0;
    for (size_t i = 0; i < s->values.capacity; i++) {
        const bel_value_count *value = &s->values.places[i];
        cells += value->count;
        if (value->count >= HASH_LEAST) often += value->count;
    }
    return 2 * often >= cells;
}

static void note_dress(bel_guess_state *g, const char *name)
{
    static const char *const dresses[BEL_DRESSES] = {[BEL_DRESS_COMMA] = "decimal commas",
                                                     [BEL_DRESS_THOUSAND] =
                                                         "commas between thousands",
                                                     [BEL_DRESS_PERCENT] = "percent signs",
                                                     [BEL_DRESS_CURRENCY] = "currencies"};
    bel_cell_dress dress = bel_value_counts_dress(&g->s->values, g->description->decimal);
    if (dress == BEL_DRESS_NONE) return;
    bel_str_printf(&g->note, "%sthese look like numbers with %s", g->note.length > 0 ? "; " : "",
                   dresses[dress]);
    const char *hint = dress == BEL_DRESS_COMMA ? "--decimal ,"
                       : dress == BEL_DRESS_THOUSAND
                           ? "--decimal . reads them so"
                           : "they are read where all cells have the same one";
    bel_log_write(BEL_LOG_WARN,
                  "%s: column \"%s\" is no number column: its texts look like numbers with %s; "
                  "hint: %s",
                  g->source, name, dresses[dress], hint);
}

static void guess_texts(bel_guess_state *g, const char *name)
{
    const bel_column_statistics *s = g->s;
    const bool many = are_many(s);
    const double distinct = (double)s->values.count, rows = (double)g->rest;
    bool wordy = s->words >= TEXT_WORDS * g->rest && (many || 2 * distinct > rows);
    bool rare = many ? !come_again(s) : g->rest >= BEL_GUESS_FEW_ROWS && distinct > 0.9 * rows;
    if (wordy) {
        guess_add(g, name, BEL_COLUMN_TEXT)->most = 64;
        bel_str_printf(&g->note, "%.1f words each", (double)s->words / (double)g->rest);
        bel_guess_note_missing(g);
    } else if (rare) {
        guess_add(g, name, BEL_COLUMN_IGNORE);
        if (many) {
            bel_str_printf(&g->note, "more than %d values, of which few come %d times",
                           BEL_STATISTICS_MOST_VALUES, HASH_LEAST);
        } else {
            bel_str_puts(&g->note, "nearly every row has another text");
        }
    } else if (many) {
        guess_add(g, name, BEL_COLUMN_HASH);
        bel_str_printf(&g->note, "more than %d values", BEL_STATISTICS_MOST_VALUES);
        bel_guess_note_missing(g);
    } else {
        guess_add(g, name, BEL_COLUMN_CATEGORY);
        bel_guess_fill_category(g);
    }
    if (s->padded == 0 && s->longs == 0) note_dress(g, name);
}

static bool are_wholes(const bel_guess_state *g)
{
    const bel_column_statistics *s = g->s;
    return s->numbers == g->rest && s->wholes == g->rest && s->missing == 0;
}

// Whether the column holds rising or falling integers. Gaps are allowed: they are rows that were
// left out, as by a split of the file.
static bool count_rows(const bel_guess_state *g)
{
    const bel_range *range = &g->s->range;
    return are_wholes(g) && g->rest >= BEL_GUESS_FEW_ROWS && (range->rises || range->falls);
}

// Whether the column holds distinct integers, in any order; an index may have few gaps.
static bool number_rows(const bel_guess_state *g, const char *name)
{
    const bel_column_statistics *s = g->s;
    if (!bel_column_name_may_number(name) || !are_wholes(g)) return false;
    for (size_t i = 0; i < s->values.capacity; i++)
        if (s->values.places[i].count > 1) return false;
    if (s->values.count == 0) return false;
    if (bel_column_name_is_id(name) && g->rest < BEL_GUESS_FEW_ROWS) return false;
    if (!bel_column_name_is_index(name)) return true;
    return s->range.high - s->range.low + 1 <= 2 * (double)s->numbers;
}

static bel_status *guess_free(bel_guess_state *g, const char *name, bool *out_wrong)
{
    const bel_column_statistics *s = g->s;
    bool numbers = s->numbers == g->rest;
    bel_missing_texts markers = {0};
    bel_column_statistics whole;
    if (g->rest == 0) {
        guess_add(g, name, BEL_COLUMN_IGNORE);
        bel_str_puts(&g->note, "there is no value in any row");
    } else if (s->missing == 0 && ((numbers && s->longs == 0 && s->range.low == s->range.high) ||
                                   (s->longs > 0 && s->values.count == 1) ||
                                   (s->numbers == 0 && s->text_count == 1))) {
        guess_add(g, name, BEL_COLUMN_IGNORE);
        bel_str_puts(&g->note, "all rows have the same value");
    } else if (count_rows(g)) {
        guess_add(g, name, BEL_COLUMN_IGNORE);
        bel_str_puts(&g->note, "it counts the rows");
    } else if (number_rows(g, name)) {
        guess_add(g, name, BEL_COLUMN_IGNORE);
        bel_str_puts(&g->note, "its name says that it numbers the rows");
    } else if (s->padded > 0) {
        bel_str_puts(&g->note, "numbers with zeros in front; ");
        guess_texts(g, name);
    } else if (s->longs > 0) {
        bel_str_puts(&g->note, "integers with more digits than a double holds; ");
        guess_texts(g, name);
    } else if (are_dressed(g, &whole)) {
        guess_add(g, name, BEL_COLUMN_NUMBER);
        bel_guess_fill_dressed(g, &whole);
    } else if (numbers ||
               bel_guess_take_markers(g, s->texts, s->text_count, s->numbers, "number", &markers)) {
        guess_add(g, name, BEL_COLUMN_NUMBER);
        bel_guess_fill_number(g);
        g->column->indicator = g->column->indicator || !numbers;
        g->column->absent = markers;
    } else if (take_dates(g, &markers)) {
        guess_add(g, name, BEL_COLUMN_DATE)->absent = markers;
        bel_guess_fill_date(g);
    } else if (are_wrong_numbers(g)) {
        guess_add(g, name, BEL_COLUMN_NUMBER);
        *out_wrong = true;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" holds numbers in nearly all rows",
                       g->source, name);
    } else {
        guess_texts(g, name);
    }
    return NULL;
}

// --- Label ---------------------------------------------------------------------------------------

// Whether the label is one of `count` classes.
static bool are_classes(const bel_guess_state *g, size_t count)
{
    const bel_column_statistics *s = g->s;
    bel_label_kind wanted =
        g->options->label_count > 0 ? BEL_LABEL_CLASSES : g->options->label_kind;
    bool numbers = s->numbers == g->rest, few = !are_many(s) && count <= MOST_NUMBER_CLASSES;
    if (wanted != BEL_LABEL_NONE) return wanted == BEL_LABEL_CLASSES;
    bel_column_statistics whole;
    if (are_dressed(g, &whole)) return few;
    if (numbers) return s->longs > 0 || (s->wholes == g->rest && few);
    // With many distinct numbers and a few texts, the texts are errors.
    return 10 * s->numbers < NUMBER_TENTHS * g->rest || few;
}

static bel_status *check_classes(const bel_guess_state *g, const char *name, size_t count)
{
    bool many = are_many(g->s) || count > MOST_CLASSES;
    if (many || (g->rest >= BEL_GUESS_FEW_ROWS && 2 * (int64_t)count > g->rest)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the label \"%s\" has nearly as many different values as rows, which "
                       "are no classes; hint: --label_column says which column is the label",
                       g->source, name);
    }
    if (count >= 2) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: the label \"%s\" has the same value in all rows: there is nothing to learn",
                   g->source, name);
}

static bel_status *check_given_classes(const bel_columns_options *options, const char *name)
{
    enum { FEWEST = 2 };
    bel_index texts = {0};
    bel_status *status = NULL;
    if (options->classes == NULL || options->class_count < FEWEST)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "classes of \"%s\": expected a list of two or more, got %lld", name,
                       (long long)(options->classes != NULL ? options->class_count : 0));
    for (int i = 0; i < (int)options->class_count && status == NULL; i++) {
        const char *text = options->classes[i];
        size_t at = 0;
        for (int found; (found = bel_index_next_text(&texts, text, &at)) >= 0 && status == NULL;) {
            if (strcmp(options->classes[found], text) != 0) continue;
            status = BEL_ERR(BEL_INVALID_ARGUMENT, "classes of \"%s\": \"%s\" is given twice", name,
                             text);
        }
        bel_index_put_text(&texts, text, i);
    }
    bel_index_deinit(&texts);
    return status;
}

// Makes the given classes those of the label; `values` are the rows'.
static bel_status *take_classes(bel_guess_state *g, const char *name, const bel_value_count *values,
                                size_t value_count)
{
    const bel_columns_options *o = g->options;
    BEL_TRY(check_given_classes(o, name));
    const size_t count = (size_t)o->class_count;
    bel_value_count *classes = bel_xcalloc(count + 1, sizeof *classes);
    int64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        classes[i] = (bel_value_count){.text = o->classes[i], .length = strlen(o->classes[i])};
        for (size_t v = 0; v < value_count; v++) {
            bool same = values[v].length == classes[i].length &&
                        memcmp(values[v].text, classes[i].text, classes[i].length) == 0;
            if (same) found += classes[i].count = values[v].count;
        }
    }
    bel_guess_set_classes(g, classes, count);
    bel_free(classes);
    if (found == g->rest) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: the label \"%s\" has values beside the given classes",
                   g->source, name);
}

static bel_status *guess_label(bel_guess_state *g, const char *name, bool *out_wrong)
{
    const bel_column_statistics *s = g->s;
    guess_add(g, name, BEL_COLUMN_LABEL);
    if (g->rest == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the label \"%s\" has no value in any row",
                       g->source, name);
    }
    size_t count;
    bel_column_statistics whole;
    bel_value_count *values = bel_value_counts_sorted(&s->values, g->description->decimal, &count);
    if (g->options->class_count > 0) {
        bel_status *status = take_classes(g, name, values, count);
        bel_free(values);
        return status;
    }
    if (are_classes(g, count)) {
        bel_status *status = check_classes(g, name, count);
        if (status != NULL) {
            bel_free(values);
            return status;
        }
        bel_guess_fill_classes(g, values, count);
        bel_guess_note_missing(g);
        return NULL;
    }
    bel_free(values);
    bool dressed = are_dressed(g, &whole);
    if (s->numbers < g->rest && !dressed) {
        *out_wrong = true;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the label \"%s\" is to be a number", g->source,
                       name);
    }
    g->column->label = BEL_LABEL_NUMBER;
    g->column->scale = BEL_SCALE_STANDARD;
    if (dressed) {
        bel_guess_fill_dressed(g, &whole);
    } else {
        bel_guess_fill_number(g);
    }
    g->column->indicator = false;
    return NULL;
}

// --- All columns ---------------------------------------------------------------------------------

static bel_status *guess_weight(bel_guess_state *g, const char *name, bool *out_wrong)
{
    const bel_column_statistics *s = g->s;
    guess_add(g, name, BEL_COLUMN_WEIGHT);
    *out_wrong = s->numbers < g->rest;
    if (*out_wrong) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the weights \"%s\" are to be numbers", g->source,
                       name);
    }
    if (g->rest == 0 || s->range.low < 0 || s->range.high > FLT_MAX ||
        !(s->values_of_numbers.mean > 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the weights \"%s\" are to be 0 or more, some above it, and to fit f32; "
                       "they are from %.6g to %.6g",
                       g->source, name, g->rest > 0 ? s->range.low : 0,
                       g->rest > 0 ? s->range.high : 0);
    }
    g->column->mean = s->values_of_numbers.mean;
    return NULL;
}

static bel_status *guess_used(bel_guess_state *g, const char *name, bel_guess_use use,
                              bool *out_wrong)
{
    bel_column_statistics whole;
    switch (use) {
    case BEL_GUESS_LABEL: return guess_label(g, name, out_wrong);
    case BEL_GUESS_WEIGHT: return guess_weight(g, name, out_wrong);
    case BEL_GUESS_IGNORED: guess_add(g, name, BEL_COLUMN_IGNORE); return NULL;
    case BEL_GUESS_KEY: guess_add(g, name, BEL_COLUMN_KEY); return NULL;
    case BEL_GUESS_CATEGORY:
        guess_add(g, name, are_many(g->s) ? BEL_COLUMN_HASH : BEL_COLUMN_CATEGORY);
        if (!are_many(g->s)) bel_guess_fill_category(g);
        return NULL;
    case BEL_GUESS_NUMBER:
    case BEL_GUESS_LOG:
        guess_add(g, name, BEL_COLUMN_NUMBER);
        if (use == BEL_GUESS_LOG) g->column->scale = BEL_SCALE_LOG;
        if (are_dressed(g, &whole)) {
            bel_guess_fill_dressed(g, &whole);
            return NULL;
        }
        bel_guess_fill_number(g);
        *out_wrong = g->s->numbers < g->rest;
        if (!*out_wrong) return NULL;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is to be a number", g->source,
                       name);
    case BEL_GUESS_TEXT:
        if (g->rest == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the text \"%s\" has no value in any row",
                           g->source, name);
        }
        guess_add(g, name, BEL_COLUMN_TOKENS)->most = (int)g->options->text_most;
        return NULL;
    case BEL_GUESS_FREE: break;
    }
    if (g->options->text != NULL) {
        guess_add(g, name, BEL_COLUMN_IGNORE);
        bel_str_printf(&g->note, "only \"%s\" is learned from", g->options->text);
        return NULL;
    }
    return guess_free(g, name, out_wrong);
}

// Clips numbers earlier if the label is a number. The gradient of a squared error grows with the
// error, and that of a class does not. So a few rows far outside would decide the weights, and
// similar new rows would have errors larger than all others.
static void clip_to_learn_numbers(bel_columns *description)
{
    bool learns_numbers = false;
    for (int i = 0; i < description->count; i++) {
        const bel_column *c = &description->items[i];
        learns_numbers |= c->kind == BEL_COLUMN_LABEL && c->label == BEL_LABEL_NUMBER;
    }
    for (int i = 0; i < description->count && learns_numbers; i++) {
        bel_column *c = &description->items[i];
        if (c->kind == BEL_COLUMN_NUMBER && c->clip > CLIP_TO_LEARN_NUMBERS)
            c->clip = CLIP_TO_LEARN_NUMBERS;
    }
}

bel_status *bel_guess(const bel_guess_column *columns, const bel_guess_use *uses, int count,
                      const bel_columns_options *options, const char *source,
                      bel_columns *description, int *out_wrong)
{
    *out_wrong = -1;
    for (int i = 0; i < count; i++) {
        const bel_column_statistics *s = columns[i].statistics;
        bel_guess_state g = {.s = s,
                             .options = options,
                             .source = source,
                             .description = description,
                             .rest = s->cells - s->missing};
        bool wrong = false;
        bel_status *status = guess_used(&g, columns[i].name, uses[i], &wrong);
        if (g.note.length > 0) g.column->note = bel_arena_strdup(description->arena, g.note.text);
        bel_str_deinit(&g.note);
        if (wrong) *out_wrong = i;
        if (status != NULL) return status;
    }
    clip_to_learn_numbers(description);
    return NULL;
}
