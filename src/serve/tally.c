// The numbers of /metrics. Counters are atomic and are never reset, so a request adds to them
// without a lock, and a scrape may see one of two that belong together before the other. Those of a
// version are in the version: they end with it, and it is held while they are written.
#include "serve/tally.h"

#include "base/alloc.h"
#include "base/json.h"

struct bel_tally {
    int model_count;
    bel_counts *items;               // by model, then of requests without one
    bel_times (*stages)[BEL_STAGES]; // by model
};

static const char *const stage_names[BEL_STAGES] = {"read", "queue", "run", "write"};

bel_tally *bel_tally_create(int model_count)
{
    bel_tally *tally = bel_xcalloc(1, sizeof *tally);
    tally->model_count = model_count;
    tally->items = bel_xcalloc((size_t)model_count + 1, sizeof *tally->items);
    tally->stages = bel_xcalloc((size_t)model_count + 1, sizeof *tally->stages);
    return tally;
}

void bel_tally_destroy(bel_tally *tally)
{
    if (tally == NULL) return;
    bel_free(tally->items);
    bel_free(tally->stages);
    bel_free(tally);
}

void bel_tally_add(bel_tally *tally, int model, int code, bool is_inference, int64_t spent_ns)
{
    bel_counts *c = &tally->items[model >= 0 ? model : tally->model_count];
    bel_counts_add(c, code, is_inference, spent_ns);
}

void bel_tally_add_stages(bel_tally *tally, int model, const int64_t spent_ns[BEL_STAGES])
{
    for (int s = 0; s < BEL_STAGES; s++)
        bel_times_add(&tally->stages[model][s], spent_ns[s]);
}

static void put_head(bel_str *out, const char *name, const char *kind, const char *help)
{
    bel_str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

// Writes samples of each model with its name as the label.
static void put_models(const bel_tally *tally, const bel_models *models, const char *name,
                       void (*write)(const bel_counts *counts, const char *name, const char *labels,
                                     bel_str *out),
                       bel_str *out)
{
    for (int m = 0; m < tally->model_count; m++) {
        char *labels = bel_strf("model=\"%s\"", bel_model_name(bel_models_at(models, m)));
        write(&tally->items[m], name, labels, out);
        bel_free(labels);
    }
}

// The same of each loaded version. Those of an unloaded one are forgotten.
static void put_versions(const bel_models *models, const char *name,
                         void (*write)(const bel_served *version, const char *name,
                                       const char *labels, bel_str *out),
                         bel_str *out)
{
    for (int m = 0; m < bel_models_count(models); m++) {
        bel_model *model = bel_models_at(models, m);
        int count;
        int64_t *numbers = bel_model_versions(model, &count);
        for (int i = 0; i < count; i++) {
            bel_served *version = bel_model_acquire(model, numbers[i]);
            if (version == NULL) continue; // unloaded meanwhile
            char *labels = bel_strf("model=\"%s\",version=\"%lld\"", bel_model_name(model),
                                    (long long)numbers[i]);
            write(version, name, labels, out);
            bel_free(labels);
            bel_model_release(model, version);
        }
        bel_free(numbers);
    }
}

static void put_stages(const bel_tally *tally, const bel_models *models, bel_str *out)
{
    static const char name[] = "belfry_serve_stage_seconds";
    put_head(
        out, name, "histogram",
        "Stages of an inference: its inputs are read, it waits for a run, is computed (perhaps "
        "with others), and its answer is written.");
    for (int m = 0; m < tally->model_count; m++) {
        for (int s = 0; s < BEL_STAGES; s++) {
            char *labels = bel_strf("model=\"%s\",stage=\"%s\"",
                                    bel_model_name(bel_models_at(models, m)), stage_names[s]);
            bel_times_write(&tally->stages[m][s], name, labels, out);
            bel_free(labels);
        }
    }
}

// Writes a label's value in the text format.
static void put_label(bel_str *out, const char *text)
{
    bel_str_puts(out, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') bel_str_puts(out, "\\");
        if (*text == '\n') {
            bel_str_puts(out, "\\n");
        } else {
            bel_str_append(out, text, 1);
        }
    }
    bel_str_puts(out, "\"");
}

static void put_unknown(const bel_served *version, const char *name, const char *labels,
                        bel_str *out)
{
    for (int i = 0; i < version->input_count; i++) {
        const bel_served_input *input = &version->inputs[i];
        if (input->column == NULL || input->column->value_count == 0) continue;
        bel_str_printf(out, "%s{%s,column=", name, labels);
        put_label(out, input->column->name);
        bel_str_printf(out, "} %llu\n", (unsigned long long)input->unknown);
    }
}

static void put_requests(const bel_served *version, const char *name, const char *labels,
                         bel_str *out)
{
    bel_counts_write_requests(&version->counts, name, labels, out);
}

static void put_times(const bel_served *version, const char *name, const char *labels, bel_str *out)
{
    bel_counts_write_times(&version->counts, name, labels, out);
}

static void put_loaded(const bel_served *version, const char *name, const char *labels,
                       bel_str *out)
{
    (void)version;
    bel_str_printf(out, "%s{%s} 1\n", name, labels);
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
    static const char requests[] = "belfry_serve_requests_total";
    static const char of_versions[] = "belfry_serve_version_requests_total";
    put_head(out, requests, "counter", "Answers by model (empty: none) and code.");
    put_models(tally, models, requests, bel_counts_write_requests, out);
    bel_counts_write_requests(&tally->items[tally->model_count], requests, "model=\"\"", out);
    put_head(out, "belfry_serve_seconds", "histogram",
             "Time of an inference, from its whole request to its answer's text.");
    put_models(tally, models, "belfry_serve_seconds", bel_counts_write_times, out);
    put_stages(tally, models, out);
    put_head(out, "belfry_serve_version", "gauge", "1 for each version that is loaded.");
    put_versions(models, "belfry_serve_version", put_loaded, out);
    put_head(out, of_versions, "counter", "Inferences by loaded version and code.");
    put_versions(models, of_versions, put_requests, out);
    put_head(out, "belfry_serve_version_seconds", "histogram",
             "Time of an inference by loaded version.");
    put_versions(models, "belfry_serve_version_seconds", put_times, out);
    put_head(out, "belfry_serve_unknown_values_total", "counter",
             "Values of categories that the training did not distinguish, by loaded version.");
    put_versions(models, "belfry_serve_unknown_values_total", put_unknown, out);
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
