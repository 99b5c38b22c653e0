#include "serve/tally.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/json.h"

// The last stands for all others.
static const int codes[] = {200, 400, 401, 404, 405, 408, 413, 429, 431, 500, 501, 503, 504, 0};
static const double bounds[] = {50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3,
                                25e-3, 50e-3,  0.1,    0.25,   0.5,  1,      2.5,  10};
enum { CODES = sizeof codes / sizeof codes[0], BOUNDS = sizeof bounds / sizeof bounds[0] };

typedef struct counts {
    _Atomic uint64_t requests[CODES];
    _Atomic uint64_t buckets[BOUNDS + 1]; // each without the ones before
    _Atomic uint64_t sum_ns;
} counts;

struct bel_tally {
    int model_count;
    counts *items; // by model, then of requests without one
};

bel_tally *bel_tally_create(int model_count)
{
    bel_tally *tally = bel_xcalloc(1, sizeof *tally);
    tally->model_count = model_count;
    tally->items = bel_xcalloc((size_t)model_count + 1, sizeof *tally->items);
    return tally;
}

void bel_tally_destroy(bel_tally *tally)
{
    if (tally == NULL) return;
    bel_free(tally->items);
    bel_free(tally);
}

void bel_tally_add(bel_tally *tally, int model, int code, bool is_inference, int64_t spent_ns)
{
    counts *c = &tally->items[model >= 0 ? model : tally->model_count];
    int k = 0, b = 0;
    while (k < CODES - 1 && codes[k] != code)
        k++;
    atomic_fetch_add_explicit(&c->requests[k], 1, memory_order_relaxed);
    if (!is_inference || code != 200) return;
    while (b < BOUNDS && (double)spent_ns * 1e-9 > bounds[b])
        b++;
    atomic_fetch_add_explicit(&c->buckets[b], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->sum_ns, (uint64_t)spent_ns, memory_order_relaxed);
}

static void put_head(bel_str *out, const char *name, const char *kind, const char *help)
{
    bel_str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void put_requests(const counts *c, const char *model, bel_str *out)
{
    for (int k = 0; k < CODES; k++) {
        uint64_t count = atomic_load_explicit(&c->requests[k], memory_order_relaxed);
        if (count == 0) continue;
        bel_str_printf(out, "belfry_serve_requests_total{model=\"%s\",code=\"%d\"} %llu\n", model,
                       codes[k], (unsigned long long)count);
    }
}

static void put_histogram(const counts *c, const char *model, bel_str *out)
{
    uint64_t below = 0;
    for (int b = 0; b < BOUNDS; b++) {
        below += atomic_load_explicit(&c->buckets[b], memory_order_relaxed);
        bel_str_printf(out, "belfry_serve_seconds_bucket{model=\"%s\",le=\"", model);
        bel_json_write_number(out, bounds[b]);
        bel_str_printf(out, "\"} %llu\n", (unsigned long long)below);
    }
    below += atomic_load_explicit(&c->buckets[BOUNDS], memory_order_relaxed);
    bel_str_printf(out,
                   "belfry_serve_seconds_bucket{model=\"%s\",le=\"+Inf\"} %llu\n"
                   "belfry_serve_seconds_sum{model=\"%s\"} ",
                   model, (unsigned long long)below, model);
    bel_json_write_number(out,
                          (double)atomic_load_explicit(&c->sum_ns, memory_order_relaxed) * 1e-9);
    bel_str_printf(out, "\nbelfry_serve_seconds_count{model=\"%s\"} %llu\n", model,
                   (unsigned long long)below);
}

static void put_deltas(const bel_tally *tally, const bel_models *models, bel_str *out)
{
    static const struct {
        const char *name, *help;
    } counters[] = {{"belfry_serve_deltas_total", "Deltas that were loaded over rows in memory."},
                    {"belfry_serve_delta_rows_total", "Their rows."},
                    {"belfry_serve_delta_removed_total", "Keys that lost their row in them."},
                    {"belfry_serve_delta_seconds_total", "Time to load them."}};
    for (int c = 0; c < 4; c++) {
        put_head(out, counters[c].name, "counter", counters[c].help);
        for (int m = 0; m < tally->model_count; m++) {
            bel_model *model = bel_models_at(models, m);
            const bel_model_deltas d = bel_model_count_deltas(model);
            const double values[] = {(double)d.count, (double)d.rows, (double)d.removed, d.seconds};
            bel_str_printf(out, "%s{model=\"%s\"} ", counters[c].name, bel_model_name(model));
            bel_json_write_number(out, values[c]);
            bel_str_puts(out, "\n");
        }
    }
}

void bel_tally_write(const bel_tally *tally, const bel_models *models, bel_gate *gate, bel_str *out)
{
    put_head(out, "belfry_serve_requests_total", "counter",
             "Answers by model (empty: none) and code.");
    for (int m = 0; m < tally->model_count; m++)
        put_requests(&tally->items[m], bel_model_name(bel_models_at(models, m)), out);
    put_requests(&tally->items[tally->model_count], "", out);
    put_head(out, "belfry_serve_seconds", "histogram",
             "Time of an inference, from its whole request to its answer's text.");
    for (int m = 0; m < tally->model_count; m++)
        put_histogram(&tally->items[m], bel_model_name(bel_models_at(models, m)), out);
    put_head(out, "belfry_serve_version", "gauge", "1 for each version that is loaded.");
    for (int m = 0; m < tally->model_count; m++) {
        bel_model *model = bel_models_at(models, m);
        int count;
        int64_t *numbers = bel_model_versions(model, &count);
        for (int i = 0; i < count; i++)
            bel_str_printf(out, "belfry_serve_version{model=\"%s\",version=\"%lld\"} 1\n",
                           bel_model_name(model), (long long)numbers[i]);
        bel_free(numbers);
    }
    put_deltas(tally, models, out);
    const bel_gate_numbers numbers = bel_gate_look(gate);
    put_head(out, "belfry_serve_busy", "gauge", "Runs that are computed.");
    bel_str_printf(out, "belfry_serve_busy %d\n", numbers.busy);
    put_head(out, "belfry_serve_waiting", "gauge",
             "Requests that are read, written, or wait for a run.");
    bel_str_printf(out, "belfry_serve_waiting %d\n", numbers.waiting);
    put_head(out, "belfry_serve_runs_total", "counter", "Runs of models.");
    bel_str_printf(out, "belfry_serve_runs_total %llu\n", (unsigned long long)numbers.runs);
    put_head(out, "belfry_serve_run_requests_total", "counter", "Requests of these runs.");
    bel_str_printf(out, "belfry_serve_run_requests_total %llu\n",
                   (unsigned long long)numbers.requests);
}
