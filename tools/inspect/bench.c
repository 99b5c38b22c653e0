// Verb bench: speed of a model, optionally compared with another. A sample is several runs if one
// run is too short for the clock. With two models rounds alternate, so that other load on the
// machine affects both. The ratio is that of their medians. Inputs are filled from a seed: floats
// in [-1, 1), integers 0 or 1, which are in range if there are two of something.
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/str.h"
#include "command/results.h"
#include "command/stores.h"
#include "command/verbs.h"
#include "predictor/predictor.h"
#include "tensor/half.h"

enum { ROUND_MS = 100, MOST_SAMPLES = 1 << 20, SAMPLE_NS = 20000, WARM_RUNS = 20 };

typedef struct contender {
    const char *path;
    bel_predictor *predictor;
    void **inputs; // elements of the inputs
    double load_ms, first_ms;
    int64_t runs_per_sample, runs, spent_ns;
    float *samples; // µs of one run
    int64_t sample_count, seen;
} contender;

// --- Inputs --------------------------------------------------------------------------------------

static void bench_fill(const bel_tensor *tensor, bel_rng_key key)
{
    int64_t count = bel_shape_elements(&tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        double number = 2 * (double)bel_rng_unit(words[0]) - 1;
        switch (tensor->dtype) {
        case BEL_DTYPE_F32: ((float *)tensor->data)[i] = (float)number; break;
        case BEL_DTYPE_F64: ((double *)tensor->data)[i] = number; break;
        case BEL_DTYPE_F16: ((uint16_t *)tensor->data)[i] = bel_half_make(number); break;
        case BEL_DTYPE_BF16: ((uint16_t *)tensor->data)[i] = bel_bfloat_make(number); break;
        case BEL_DTYPE_I32: ((int32_t *)tensor->data)[i] = words[1] & 1; break;
        case BEL_DTYPE_I64: ((int64_t *)tensor->data)[i] = words[1] & 1; break;
        default: ((uint8_t *)tensor->data)[i] = words[1] & 1; break;
        }
    }
}

static bel_status *bind_inputs(contender *c, const bel_options *options)
{
    int count = bel_predictor_input_count(c->predictor);
    uint64_t seed = (uint64_t)bel_options_int(options, "seed");
    c->inputs = bel_xcalloc((size_t)count + 1, sizeof *c->inputs);
    for (int i = 0; i < count; i++) {
        bel_port port = bel_predictor_input_port(c->predictor, i);
        bel_tensor in = {.dtype = port.dtype, .shape = port.shape};
        for (int32_t d = 0; d < in.shape.rank; d++)
            if (in.shape.dims[d] < 0)
                in.shape.dims[d] = bel_options_int(
                    options, in.shape.dims[d] == BEL_DIM_BATCH ? "batch" : "length");
        size_t bytes = bel_tensor_bytes(&in);
        if (bytes > (size_t)1 << 40)
            return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "input \"%s\" would be too large", port.name);
        c->inputs[i] = in.data = bel_xmalloc(bytes + 1);
        bench_fill(&in, bel_rng_key_make(seed, "bench", (uint64_t)i));
        BEL_TRY(bel_predictor_bind(c->predictor, i, &in));
    }
    return NULL;
}

// --- Measuring -----------------------------------------------------------------------------------

// Loads the model and runs it until it is warm. The fastest run determines the runs of a sample.
static bel_status *contender_prepare(contender *c, const bel_options *options)
{
    const bel_predictor_options how = {.size = sizeof how,
                                       .threads = (int)bel_options_int(options, "threads"),
                                       .stage_memory =
                                           (size_t)bel_options_int(options, "stage_memory") << 20,
                                       .seed = (uint64_t)bel_options_int(options, "seed")};
    int64_t begun = bel_clock_ns(), fastest = INT64_MAX;
    BEL_TRY(bel_predictor_load(c->path, &how, &c->predictor));
    c->load_ms = (double)(bel_clock_ns() - begun) * 1e-6;
    BEL_TRY_CTX(bind_inputs(c, options), "%s", c->path);
    for (int i = 0; i <= WARM_RUNS; i++) {
        begun = bel_clock_ns();
        BEL_TRY_CTX(bel_predictor_run(c->predictor), "%s", c->path);
        int64_t spent = bel_clock_ns() - begun;
        if (i == 0) c->first_ms = (double)spent * 1e-6;
        if (spent < fastest) fastest = spent;
    }
    c->runs_per_sample = SAMPLE_NS / (fastest > 0 ? fastest : 1) + 1;
    c->samples = bel_xcalloc(MOST_SAMPLES, sizeof *c->samples);
    return NULL;
}

// When the sample buffer is full, new samples overwrite the oldest.
static bel_status *run_round(contender *c, int64_t length_ns)
{
    int64_t begun = bel_clock_ns(), now = begun;
    while (now - begun < length_ns) {
        for (int64_t i = 0; i < c->runs_per_sample; i++)
            BEL_TRY(bel_predictor_run(c->predictor));
        int64_t end = bel_clock_ns();
        double us = (double)(end - now) * 1e-3 / (double)c->runs_per_sample;
        c->samples[c->seen++ % MOST_SAMPLES] = (float)us;
        c->runs += c->runs_per_sample;
        now = end;
    }
    c->spent_ns += now - begun;
    c->sample_count = c->seen < MOST_SAMPLES ? c->seen : MOST_SAMPLES;
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static bel_status *contender_measure(contender *contenders, int count, const bel_options *options)
{
    for (int i = 0; i < count; i++)
        BEL_TRY(contender_prepare(&contenders[i], options));
    int64_t all_ns = (int64_t)(bel_options_double(options, "seconds") * 1e9);
    int64_t round_ns = ROUND_MS * INT64_C(1000000);
    if (round_ns * count > all_ns) round_ns = all_ns / count;
    int64_t rounds = all_ns / (round_ns * count);
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < count; i++)
            BEL_TRY(run_round(&contenders[i], round_ns));
    for (int i = 0; i < count; i++)
        qsort(contenders[i].samples, (size_t)contenders[i].sample_count, sizeof(float), by_value);
    return NULL;
}

// --- Results -------------------------------------------------------------------------------------

static double percentile(const contender *c, int of_hundred)
{
    return (double)c->samples[(c->sample_count - 1) * of_hundred / 100];
}

typedef struct figure {
    const char *name, *unit;
    double value;
    int digits; // significant digits
} figure;

enum { FIGURES = 11 };

static void list_figures(const contender *c, int64_t batch, figure out[FIGURES])
{
    bel_predictor_sizes sizes = bel_predictor_measure(c->predictor);
    double rate = (double)(c->runs * batch) / ((double)c->spent_ns * 1e-9);
    const figure figures[FIGURES] = {
        {"min", "us", (double)c->samples[0], 3},
        {"p50", "us", percentile(c, 50), 3},
        {"p90", "us", percentile(c, 90), 3},
        {"p99", "us", percentile(c, 99), 3},
        {"examples_per_second", "", rate, 0},
        {"runs", "", (double)c->runs, 0},
        {"runs_per_sample", "", (double)c->runs_per_sample, 0},
        {"load", "ms", c->load_ms, 3},
        {"first_run", "ms", c->first_ms, 3},
        {"weights", "bytes", (double)sizes.weight_bytes, 0},
        {"arena", "bytes", (double)sizes.arena_bytes, 0},
    };
    memcpy(out, figures, sizeof figures);
}

static double peak_rss(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : 0;
}

// Integers, such as bytes, have no exponent.
static void put_number(double value, int digits, bel_str *out)
{
    if (digits > 0) {
        bel_json_write_number(out, value);
    } else {
        bel_str_printf(out, "%.0f", value);
    }
}

static void put_contender(const contender *c, int64_t batch, bool json, bel_str *out)
{
    figure figures[FIGURES];
    list_figures(c, batch, figures);
    bel_str_puts(out, json ? "{\"model\":" : "model ");
    if (json) {
        bel_json_write_string(out, c->path);
    } else {
        bel_str_printf(out, "%s\n", c->path);
    }
    for (int i = 0; i < FIGURES; i++) {
        const figure *f = &figures[i];
        const char *between = f->unit[0] != '\0' ? "_" : "";
        if (json) {
            bel_str_printf(out, ",\"%s%s%s\":", f->name, between, f->unit);
            put_number(f->value, f->digits, out);
        } else {
            bel_str_printf(out, "%s%s%s %.*f\n", f->name, between, f->unit, f->digits, f->value);
        }
    }
    if (json) bel_str_puts(out, "}");
}

static bel_status *contender_print(const contender *contenders, int count,
                                   const bel_options *options)
{
    bool json = bel_options_bool(options, "json");
    int64_t batch = bel_options_int(options, "batch");
    bel_str out = {0};
    if (json) bel_str_puts(&out, "{\"models\":[");
    for (int i = 0; i < count; i++) {
        if (i > 0) bel_str_puts(&out, json ? "," : "\n");
        put_contender(&contenders[i], batch, json, &out);
    }
    if (json) bel_str_puts(&out, "]");
    if (count > 1) {
        double ratio = percentile(&contenders[1], 50) / percentile(&contenders[0], 50);
        bel_str_puts(&out, json ? ",\"ratio\":" : "\nratio ");
        if (json) {
            bel_json_write_number(&out, ratio);
        } else {
            bel_str_printf(&out, "%.3f\n", ratio);
        }
    }
    if (json) {
        bel_str_printf(&out, ",\"peak_rss_bytes\":%.0f}\n", peak_rss());
    } else {
        bel_str_printf(&out, "peak_rss_bytes %.0f\n", peak_rss());
    }
    bel_status *status = bel_results_write(out.text);
    bel_str_deinit(&out);
    return status;
}

static void contender_end(contender *c)
{
    int inputs = c->predictor == NULL ? 0 : bel_predictor_input_count(c->predictor);
    for (int i = 0; c->inputs != NULL && i < inputs; i++)
        bel_free(c->inputs[i]);
    bel_free(c->inputs);
    bel_free(c->samples);
    bel_predictor_destroy(c->predictor);
}

bel_status *bel_verb_bench(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // 0
    size_t given;
    const char *const *paths = bel_options_arguments(options, &given);
    if (given != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "bench: expected one model (an ONNX file or an exported folder), got %zu",
                       given);
    }
    char *path;
    BEL_TRY(bel_store_path_to_read(paths[0], true, &path));
    contender contenders[2] = {{.path = path}, {.path = bel_options_string(options, "against")}};
    int count = contenders[1].path != NULL ? 2 : 1;
    bel_status *status = contender_measure(contenders, count, options);
    if (status == NULL) status = contender_print(contenders, count, options);
    for (int i = 0; i < count; i++)
        contender_end(&contenders[i]);
    bel_free(path);
    return status;
}
