// Moments of a grain come from sums of differences from its first number; those of grains are
// merged in order by the formula of Chan, Golub and LeVeque. Values are counted in a hash table
// with linear probing whose texts point into the file. When it exceeds its limit, half of the
// values, by a bit of their hash, are dropped from then on, and so on (Wegman's adaptive sampling;
// Flajolet, "On adaptive sampling", 1990). The remaining values do not depend on the order of the
// cells.
#include "columns/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/real.h"
#include "columns/date.h"

// --- Moments -------------------------------------------------------------------------------------

void bel_moments_merge(bel_moments *moments, const bel_moments *more)
{
    if (more->count == 0) return;
    if (moments->count == 0) {
        *moments = *more;
        return;
    }
    double a = (double)moments->count, b = (double)more->count, both = a + b;
    double apart = more->mean - moments->mean;
    moments->mean += apart * (b / both);
    moments->squares += more->squares + apart * apart * (a * (b / both));
    moments->count += more->count;
}

double bel_moments_deviation(const bel_moments *moments)
{
    if (moments->count == 0 || !(moments->squares > 0)) return 0;
    return sqrt(moments->squares / (double)moments->count);
}

static void sum_up(bel_sums *sums, double value)
{
    if (sums->count++ == 0) sums->first = value;
    double apart = value - sums->first;
    sums->sum += apart;
    sums->squares += apart * apart;
}

static bel_moments moments_of(const bel_sums *sums)
{
    if (sums->count == 0) return (bel_moments){0};
    double n = (double)sums->count, mean = sums->sum / n, rest = sums->squares - sums->sum * mean;
    return (bel_moments){
        .count = sums->count, .mean = sums->first + mean, .squares = rest > 0 ? rest : 0};
}

// --- Order ---------------------------------------------------------------------------------------

void bel_range_merge(bel_range *range, const bel_range *more)
{
    if (more->count == 0) return;
    if (range->count == 0) {
        *range = *more;
        return;
    }
    range->rises = range->rises && more->rises && more->first > range->last;
    range->falls = range->falls && more->falls && more->first < range->last;
    if (more->low < range->low) range->low_at = more->low_at;
    if (more->high > range->high) range->high_at = more->high_at;
    range->low = more->low < range->low ? more->low : range->low;
    range->high = more->high > range->high ? more->high : range->high;
    range->last = more->last;
    range->count += more->count;
}

static void take_in_order(bel_range *range, double value, int64_t place)
{
    if (range->count++ == 0) {
        *range = (bel_range){.count = 1,
                             .low = value,
                             .high = value,
                             .low_at = place,
                             .high_at = place,
                             .first = value,
                             .last = value,
                             .rises = true,
                             .falls = true};
        return;
    }
    if (value < range->low) range->low = value, range->low_at = place;
    if (value > range->high) range->high = value, range->high_at = place;
    range->rises = range->rises && value > range->last;
    range->falls = range->falls && value < range->last;
    range->last = value;
}

// --- Values --------------------------------------------------------------------------------------

// The hash of up to eight bytes is a bijection of them: for one length, each hash belongs to one
// text, so such texts are never compared (MurmurHash3's finalizer, public domain).
static uint64_t hash_of(const char *text, size_t length)
{
    if (length > 8) return bel_hash64(text, length);
    uint64_t hash = 0;
    for (size_t i = 0; i < length; i++)
        hash = hash << 8 | (unsigned char)text[i];
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    hash ^= hash >> 33;
    hash *= UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

static bel_value_count *find_place(const bel_value_counts *values, uint64_t hash, const char *text,
                                   size_t length)
{
    size_t mask = values->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        bel_value_count *place = &values->places[i];
        if (place->text == NULL) return place;
        bool same = place->hash == hash && place->length == length &&
                    (length <= 8 || memcmp(place->text, text, length) == 0);
        if (same) return place;
    }
}

static void statistics_grow(bel_value_counts *values)
{
    enum { FIRST = 16 };
    bel_value_counts old = *values;
    values->capacity = old.capacity == 0 ? FIRST : 2 * old.capacity;
    values->places = bel_xcalloc(values->capacity, sizeof *values->places);
    for (size_t i = 0; i < old.capacity; i++) {
        const bel_value_count *from = &old.places[i];
        if (from->text != NULL) *find_place(values, from->hash, from->text, from->length) = *from;
    }
    bel_free(old.places);
}

static bool is_in_sample(uint64_t hash, int level)
{
    return level == 0 || hash >> (64 - level) == 0;
}

// Drops the values that are not in the sample of a level.
static void thin_out(bel_value_counts *values, int level)
{
    bel_value_counts old = *values;
    *values = (bel_value_counts){.capacity = old.capacity, .level = level};
    if (old.capacity == 0) return;
    values->places = bel_xcalloc(old.capacity, sizeof *values->places);
    for (size_t i = 0; i < old.capacity; i++) {
        const bel_value_count *from = &old.places[i];
        if (from->text == NULL || !is_in_sample(from->hash, level)) continue;
        *find_place(values, from->hash, from->text, from->length) = *from;
        values->count++;
    }
    bel_free(old.places);
}

static void count_value(bel_value_counts *values, const bel_value_count *value)
{
    if (!is_in_sample(value->hash, values->level)) return;
    if (2 * (values->count + 1) > values->capacity) statistics_grow(values);
    bel_value_count *place = find_place(values, value->hash, value->text, value->length);
    if (place->text != NULL) {
        place->count += value->count;
        return;
    }
    *place = *value;
    values->count++;
    while (values->count > BEL_STATISTICS_MOST_VALUES)
        thin_out(values, values->level + 1);
}

// Counts a text in a list of distinct ones; false: it is absent.
static bool count_noted(bel_value_count *noted, int count, const bel_value_count *text)
{
    for (int i = 0; i < count; i++) {
        bool same =
            noted[i].length == text->length && memcmp(noted[i].text, text->text, text->length) == 0;
        if (!same) continue;
        noted[i].count += text->count;
        return true;
    }
    return false;
}

void bel_value_counts_raise(bel_value_counts *values, int level)
{
    if (level > values->level) thin_out(values, level);
}

void bel_value_counts_merge(bel_value_counts *values, const bel_value_counts *more)
{
    bel_value_counts_raise(values, more->level);
    for (size_t i = 0; i < more->capacity; i++)
        if (more->places[i].text != NULL) count_value(values, &more->places[i]);
}

// Adds a text to a list of distinct ones. A full list drops it: it already says that there are too
// many.
static void statistics_note(bel_value_count *noted, int *count, const bel_value_count *text)
{
    if (*count == BEL_STATISTICS_TEXTS || count_noted(noted, *count, text)) return;
    noted[(*count)++] = *text;
}

static int compare_counts(const void *left, const void *right)
{
    const bel_value_count *a = left, *b = right;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, common);
    if (order != 0) return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

// Merges two equal numbers into one, with the shorter text.
static void statistics_join(bel_value_count *value, const bel_value_count *more)
{
    bool shorter = more->length != value->length
                       ? more->length < value->length
                       : memcmp(more->text, value->text, more->length) < 0;
    int64_t count = value->count + more->count;
    if (shorter) *value = *more;
    value->count = count;
}

// Merges equal numbers; returns the new number of values.
static size_t join_numbers(bel_value_count *list, size_t count, char decimal)
{
    char(*keys)[BEL_CELL_NUMBER_ROOM] = bel_xcalloc(count + 1, sizeof *keys);
    bel_index index = {0};
    size_t kept = 0;
    bool all = true;
    for (size_t i = 0; i < count && all; i++)
        all = bel_cell_number_key(decimal, list[i].text, list[i].length, keys[0]) > 0;
    for (size_t i = 0; i < count; i++) {
        char *key = keys[kept];
        size_t length = bel_cell_number_key(decimal, list[i].text, list[i].length, key), at = 0;
        key[length] = '\0';
        if (!all && strstr(key, "e-") != NULL) *key = '\0';
        int found = -1;
        while (*key != '\0' && (found = bel_index_next_text(&index, key, &at)) >= 0)
            if (strcmp(keys[found], key) == 0) break;
        if (found >= 0) {
            statistics_join(&list[found], &list[i]);
            continue;
        }
        if (*key != '\0') bel_index_put_text(&index, key, (int)kept);
        list[kept++] = list[i];
    }
    bel_index_deinit(&index);
    bel_free(keys);
    return kept;
}

bel_value_count *bel_value_counts_sorted(const bel_value_counts *values, char decimal,
                                         size_t *out_count)
{
    bel_value_count *list = bel_xcalloc(values->count + 1, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < values->capacity; i++)
        if (values->places[i].text != NULL) list[count++] = values->places[i];
    *out_count = join_numbers(list, count, decimal);
    qsort(list, *out_count, sizeof *list, compare_counts);
    return list;
}

bel_cell_dress bel_value_counts_dress(const bel_value_counts *values, char decimal)
{
    int64_t counts[BEL_DRESSES] = {0}, cells = 0;
    bel_cell_dress likely = BEL_DRESS_NONE;
    double number;
    for (size_t i = 0; i < values->capacity; i++) {
        const bel_value_count *value = &values->places[i];
        if (value->text == NULL) continue;
        bool bare = bel_cell_number_read(decimal, value->text, value->length, &number);
        cells += value->count;
        if (!bare) counts[bel_cell_number_dress(value->text, value->length)] += value->count;
    }
    for (int d = BEL_DRESS_NONE + 1; d < BEL_DRESSES; d++)
        if (counts[d] > 0 && (likely == BEL_DRESS_NONE || counts[d] > counts[likely]))
            likely = (bel_cell_dress)d;
    return 10 * (cells - counts[BEL_DRESS_NONE]) >= 9 * cells ? likely : BEL_DRESS_NONE;
}

// --- Grains --------------------------------------------------------------------------------------

void bel_column_gatherer_begin(bel_column_gatherer *gatherer, bool counts_values, bool takes_logs,
                               char decimal)
{
    *gatherer = (bel_column_gatherer){.takes_logs = takes_logs, .decimal = decimal};
    gatherer->statistics.counts_values = counts_values;
}

// All doubles above 2^53 are integers.
static bool is_whole(double value)
{
    return fabs(value) >= 0x1p53 || (double)(int64_t)value == value;
}

void bel_column_gatherer_take_number(bel_column_gatherer *gatherer, double value, int64_t place)
{
    bel_column_statistics *s = &gatherer->statistics;
    take_in_order(&s->range, value, place);
    s->numbers++;
    s->wholes += is_whole(value);
    sum_up(&gatherer->numbers, value);
    if (gatherer->takes_logs)
        sum_up(&gatherer->logs, copysign(bel_real_log(1 + fabs(value)), value));
}

static int64_t count_words(const char *text, size_t length)
{
    int64_t words = 0;
    bool inside = false;
    for (size_t i = 0; i < length; i++) {
        words += text[i] != ' ' && !inside;
        inside = text[i] != ' ';
    }
    return words;
}

// A column with more other texts than missing values may have is no column of dates, so counting
// ends.
static void take_date(bel_column_gatherer *gatherer, const bel_value_count *text, int64_t place)
{
    bel_column_statistics *s = &gatherer->statistics;
    if (s->undated_count == BEL_STATISTICS_TEXTS) return;
    if (count_noted(s->undated, s->undated_count, text)) return;
    bel_date date, other;
    bool month = bel_date_parse(text->text, text->length, false, &date);
    bool day = bel_date_parse(text->text, text->length, true, &other);
    if (!month && !day) statistics_note(s->undated, &s->undated_count, text);
    s->month_dates += month;
    s->day_dates += day;
    s->timed_dates += month ? date.timed : day && other.timed;
    if (month) {
        sum_up(&gatherer->month_seconds, (double)date.seconds);
        take_in_order(&s->month_range, (double)date.seconds, place);
    }
    if (day) {
        sum_up(&gatherer->day_seconds, (double)other.seconds);
        take_in_order(&s->day_range, (double)other.seconds, place);
    }
}

static void add_unit(bel_value_count *unit, const bel_value_count *more)
{
    if (more->text == NULL) return;
    if (unit->text == NULL) {
        *unit = *more;
    } else if (unit->length == more->length && memcmp(unit->text, more->text, more->length) == 0) {
        unit->count += more->count;
    }
}

static void take_dressed(bel_column_gatherer *gatherer, const char *text, size_t length,
                         int64_t place)
{
    bel_column_statistics *s = &gatherer->statistics;
    bel_cell_dressed number;
    if (!bel_cell_number_undress(gatherer->decimal, text, length, &number)) return;
    s->dressed++;
    s->grouped += number.commas;
    s->clearly_grouped += number.clear;
    sum_up(&gatherer->dressed, number.value);
    take_in_order(&s->dressed_range, number.value, place);
    if (gatherer->takes_logs)
        sum_up(&gatherer->logs_of_dressed,
               copysign(bel_real_log(1 + fabs(number.value)), number.value));
    if (number.unit == NULL) return;
    s->united++;
    add_unit(&s->unit,
             &(bel_value_count){.text = number.unit, .length = number.unit_length, .count = 1});
}

// Counts numbers with a decimal comma, which are no numbers in a table with decimal points.
static void take_comma(bel_column_statistics *s, const char *text, size_t length)
{
    char pointed[BEL_CELL_NUMBER_ROOM];
    if (memchr(text, ',', length) == NULL) return;
    s->commas += bel_cell_number_pointed(text, length, pointed) > 0;
    s->clear_commas += bel_cell_number_has_comma(text, length);
}

void bel_column_gatherer_take(bel_column_gatherer *gatherer, const char *text, size_t length,
                              int64_t place)
{
    bel_column_statistics *s = &gatherer->statistics;
    const bel_value_count cell = {.text = text, .length = length, .count = 1};
    double value;
    if (bel_cell_number_read(gatherer->decimal, text, length, &value)) {
        bel_column_gatherer_take_number(gatherer, value, place);
        s->padded += bel_column_is_padded(text, length);
        s->longs += bel_cell_number_is_long(text, length);
        if (s->counts_values) statistics_note(s->undated, &s->undated_count, &cell);
    } else {
        if (s->other_count < BEL_STATISTICS_PLACES) s->others[s->other_count++] = place;
        statistics_note(s->texts, &s->text_count, &cell);
        s->words += count_words(text, length);
        s->bytes += (int64_t)length;
        if (gatherer->decimal == '.') take_comma(s, text, length);
        take_date(gatherer, &cell, place);
        take_dressed(gatherer, text, length, place);
    }
    if (!s->counts_values) return;
    count_value(&s->values,
                &(bel_value_count){
                    .hash = hash_of(text, length), .text = text, .length = length, .count = 1});
}

void bel_column_gatherer_end(bel_column_gatherer *gatherer)
{
    bel_column_statistics *s = &gatherer->statistics;
    s->values_of_numbers = moments_of(&gatherer->numbers);
    s->logs = moments_of(&gatherer->logs);
    s->values_of_dressed = moments_of(&gatherer->dressed);
    s->logs_of_dressed = moments_of(&gatherer->logs_of_dressed);
    s->month_seconds = moments_of(&gatherer->month_seconds);
    s->day_seconds = moments_of(&gatherer->day_seconds);
}

// --- Merging grains ------------------------------------------------------------------------------

void bel_column_statistics_merge(bel_column_statistics *statistics,
                                 const bel_column_statistics *more)
{
    bel_column_statistics *s = statistics;
    bel_range_merge(&s->range, &more->range);
    bel_range_merge(&s->dressed_range, &more->dressed_range);
    bel_range_merge(&s->month_range, &more->month_range);
    bel_range_merge(&s->day_range, &more->day_range);
    s->counts_values = s->counts_values || more->counts_values;
    s->cells += more->cells;
    s->missing += more->missing;
    s->numbers += more->numbers;
    s->wholes += more->wholes;
    s->padded += more->padded;
    s->longs += more->longs;
    s->dressed += more->dressed;
    s->united += more->united;
    s->grouped += more->grouped;
    s->clearly_grouped += more->clearly_grouped;
    add_unit(&s->unit, &more->unit);
    s->commas += more->commas;
    s->clear_commas += more->clear_commas;
    s->month_dates += more->month_dates;
    s->day_dates += more->day_dates;
    s->timed_dates += more->timed_dates;
    s->words += more->words;
    s->bytes += more->bytes;
    bel_moments_merge(&s->values_of_numbers, &more->values_of_numbers);
    bel_moments_merge(&s->logs, &more->logs);
    bel_moments_merge(&s->values_of_dressed, &more->values_of_dressed);
    bel_moments_merge(&s->logs_of_dressed, &more->logs_of_dressed);
    bel_moments_merge(&s->month_seconds, &more->month_seconds);
    bel_moments_merge(&s->day_seconds, &more->day_seconds);
    for (int i = 0; i < more->other_count && s->other_count < BEL_STATISTICS_PLACES; i++)
        s->others[s->other_count++] = more->others[i];
    for (int i = 0; i < more->text_count; i++)
        statistics_note(s->texts, &s->text_count, &more->texts[i]);
    for (int i = 0; i < more->undated_count; i++)
        statistics_note(s->undated, &s->undated_count, &more->undated[i]);
    bel_value_counts_merge(&s->values, &more->values);
}

void bel_column_statistics_deinit(bel_column_statistics *statistics)
{
    bel_free(statistics->values.places);
    statistics->values = (bel_value_counts){0};
}
