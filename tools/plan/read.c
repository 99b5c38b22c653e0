// Numbers of workers, bandwidths and latencies as they are typed.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/cluster/cluster_file.h"
#include "plan/plan.h"

enum { MOST_DOUBLINGS = 64 };

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static bool read_count(const char *text, size_t length, int *out_count)
{
    int64_t count;
    bool good = length > 0 && strspn(text, "0123456789") >= length &&
                bel_parse_i64(text, length, &count) && count >= 1 && count <= BEL_CLUSTER_MOST;
    if (good) *out_count = (int)count;
    return good;
}

// Reads "N" or "FIRST..LAST".
static bool read_range(const char *word, int *out_first, int *out_last)
{
    const char *dots = strstr(word, "..");
    if (dots == NULL) {
        bool good = read_count(word, strlen(word), out_first);
        *out_last = *out_first;
        return good;
    }
    return read_count(word, (size_t)(dots - word), out_first) &&
           read_count(dots + 2, strlen(dots + 2), out_last) && *out_first <= *out_last;
}

bel_status *bel_plan_read_workers(const char *const *words, size_t word_count, int **out_list,
                                  int *out_count)
{
    int *list = bel_xcalloc(word_count * MOST_DOUBLINGS + 1, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < word_count; i++) {
        int first = 0, last = 0;
        if (!read_range(words[i], &first, &last)) {
            bel_free(list);
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "--workers: expected numbers in [1, %d] or FIRST..LAST, got \"%s\"",
                           BEL_CLUSTER_MOST, words[i]);
        }
        for (; first < last; first *= 2)
            list[count++] = first;
        list[count++] = last;
    }
    qsort(list, count, sizeof *list, ascending);
    int kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || list[kept - 1] != list[i]) list[kept++] = list[i];
    *out_list = list;
    *out_count = kept;
    return NULL;
}

typedef struct unit {
    const char *name;
    double factor;
} unit;

// Reads a number with one of two units after it.
static bool read_with_unit(const char *text, const unit units[2], double *out_value)
{
    size_t digits = text != NULL ? strspn(text, "0123456789.") : 0;
    double number;
    if (digits == 0 || !bel_parse_f64(text, digits, &number)) return false;
    for (int i = 0; i < 2; i++) {
        *out_value = number * units[i].factor;
        if (strcmp(text + digits, units[i].name) == 0) return true;
    }
    return false;
}

bel_status *bel_plan_read_bandwidth(const char *text, double *out_byte_ns)
{
    static const unit units[2] = {{"Mb", 1e6}, {"Gb", 1e9}};
    double bits = 0;
    if (!read_with_unit(text, units, &bits) || bits <= 0)
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "--bandwidth: expected bits a second above 0 with the unit Mb or Gb, such as "
            "10Gb, got \"%s\"",
            text != NULL ? text : "");
    *out_byte_ns = 8e9 / bits;
    return NULL;
}

bel_status *bel_plan_read_latency(const char *text, double *out_ns)
{
    static const unit units[2] = {{"us", 1e3}, {"ms", 1e6}};
    if (read_with_unit(text, units, out_ns)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--latency: expected a time one way with the unit us or ms, such as 50us, got "
                   "\"%s\"",
                   text != NULL ? text : "");
}
