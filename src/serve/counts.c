// Codes are a fixed list, so that a client cannot make counters grow. Codes without one share the
// last, 0. Adding takes no lock, so a reader must not expect that two counters agree.
#include "serve/counts.h"

#include <stdatomic.h>

#include "base/json.h"

static const int codes[BEL_COUNT_CODES] = {200, 400, 401, 404, 405, 408, 413,
                                           429, 431, 500, 501, 503, 504, 0};
static const double bounds[BEL_COUNT_BOUNDS] = {50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3,
                                                5e-3,  10e-3,  25e-3,  50e-3,  0.1,  0.25,
                                                0.5,   1,      2.5,    10};

static void add(_Atomic uint64_t *to, uint64_t value)
{
    atomic_fetch_add_explicit(to, value, memory_order_relaxed);
}

static unsigned long long look(const _Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

void bel_times_add(bel_times *t, int64_t spent_ns)
{
    int b = 0;
    while (b < BEL_COUNT_BOUNDS && (double)spent_ns * 1e-9 > bounds[b])
        b++;
    add(&t->buckets[b], 1);
    add(&t->sum_ns, (uint64_t)spent_ns);
}

void bel_counts_add(bel_counts *c, int code, bool is_inference, int64_t spent_ns)
{
    int k = 0;
    while (k < BEL_COUNT_CODES - 1 && codes[k] != code)
        k++;
    add(&c->requests[k], 1);
    if (is_inference && code == 200) bel_times_add(&c->times, spent_ns);
}

void bel_counts_write_requests(const bel_counts *c, const char *name, const char *labels,
                               bel_str *out)
{
    for (int k = 0; k < BEL_COUNT_CODES; k++) {
        unsigned long long count = look(&c->requests[k]);
        if (count > 0)
            bel_str_printf(out, "%s{%s,code=\"%d\"} %llu\n", name, labels, codes[k], count);
    }
}

void bel_times_write(const bel_times *t, const char *name, const char *labels, bel_str *out)
{
    unsigned long long below = 0;
    for (int b = 0; b < BEL_COUNT_BOUNDS; b++) {
        below += look(&t->buckets[b]);
        bel_str_printf(out, "%s_bucket{%s,le=\"", name, labels);
        bel_json_write_number(out, bounds[b]);
        bel_str_printf(out, "\"} %llu\n", below);
    }
    below += look(&t->buckets[BEL_COUNT_BOUNDS]);
    bel_str_printf(out, "%s_bucket{%s,le=\"+Inf\"} %llu\n%s_sum{%s} ", name, labels, below, name,
                   labels);
    bel_json_write_number(out, (double)look(&t->sum_ns) * 1e-9);
    bel_str_printf(out, "\n%s_count{%s} %llu\n", name, labels, below);
}

void bel_counts_write_times(const bel_counts *c, const char *name, const char *labels, bel_str *out)
{
    bel_times_write(&c->times, name, labels, out);
}
