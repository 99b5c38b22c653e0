// Predictors of ONNX files on one thread, against baselines of the same run. Rounds in turns;
// medians of the times, and median and quartiles of the rounds' ratios. Outputs are compared with
// the baseline's.
//
//   products  20 products of [1, 8] with [8, 8]: against plain C of the processor's level with one
//             chain of fused multiply-adds an element (bare.h), and against the same four chains by
//             hand, to the bit; both after one call and with nothing around them
//   others    (tests/support/onnx_models.h) against onnxruntime by its C API and the same file, if
//             ORT_DIR is set (ort.h)
//
// usage: [ORT_DIR=…] bench_infer [ROUNDS [MODEL]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "belfry/predictor.h"
#include "figures.h"
#include "mlp.h"
#include "ort.h"
#include "support/onnx_models.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUND_NS = 20000000, MOST_IO = 1 << 18, MOST_ROUNDS = 99 };

static float x[MOST_IO], other_y[MOST_IO];

// --- The chain in C ------------------------------------------------------------------------------

enum { LAYERS = 20, WIDTH = BENCH_CHAIN_WIDTH };

static float chain_weights[LAYERS][WIDTH][WIDTH];

#if defined(__x86_64__)
__attribute__((target("avx2,fma"), noinline)) static void chain_by_hand(const float *from,
                                                                        float *to)
{
    float now[WIDTH];
    memcpy(now, from, sizeof now);
    for (int l = 0; l < LAYERS; l++) {
        __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                         _mm256_setzero_ps()};
        for (int k = 0; k < WIDTH; k++)
            sum[k % 4] = _mm256_fmadd_ps(_mm256_broadcast_ss(&now[k]),
                                         _mm256_loadu_ps(chain_weights[l][k]), sum[k % 4]);
        sum[0] = _mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3]));
        _mm256_storeu_ps(now, sum[0]);
    }
    memcpy(to, now, sizeof now);
}
#else
static void chain_by_hand(const float *from, float *to)
{
    float now[WIDTH];
    memcpy(now, from, sizeof now);
    for (int l = 0; l < LAYERS; l++) {
        float sum[4][WIDTH] = {{0}};
        for (int k = 0; k < WIDTH; k++)
            for (int j = 0; j < WIDTH; j++)
                sum[k % 4][j] = __builtin_fmaf(now[k], chain_weights[l][k][j], sum[k % 4][j]);
        for (int j = 0; j < WIDTH; j++)
            now[j] = (sum[0][j] + sum[1][j]) + (sum[2][j] + sum[3][j]);
    }
    memcpy(to, now, sizeof now);
}
#endif

static bool has_intrinsics(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

// A plain loop, which the compiler vectorizes.
static void chain_in_c(const float *from, float *to)
{
    bench_bare_get()->chain(from, LAYERS, chain_weights[0][0], to);
}

// --- Rounds --------------------------------------------------------------------------------------

// The same model in onnxruntime.
typedef struct ort_pair {
    bench_ort_model model;
    bench_ort_values values;
} ort_pair;

typedef struct pair {
    bel_predictor *predictor;
    const ort_pair *other; // NULL: the chain, or no baseline
    void (*chain)(const float *from, float *to);
} pair;

static bool is_alone(const pair *p)
{
    return p->other == NULL && p->chain == NULL;
}

static bel_status *run_ours(pair *p, int64_t runs)
{
    for (int64_t i = 0; i < runs; i++)
        BEL_TRY(bel_predictor_run(p->predictor));
    return NULL;
}

static bel_status *run_other(pair *p, int64_t runs)
{
    const ort_pair *m = p->other;
    for (int64_t i = 0; i < runs && m == NULL; i++) {
        p->chain(x, other_y);
        __asm__ volatile("" ::: "memory");
    }
    for (int64_t i = 0; i < runs && m != NULL; i++)
        bench_ort_run(&m->model, &m->values);
    return NULL;
}

// Measures µs of a run in each round, for both sides.
static bel_status *measure(pair *p, int rounds, double us[2][MOST_ROUNDS])
{
    typedef bel_status *side_fn(pair *, int64_t);
    side_fn *const sides[2] = {run_ours, run_other};
    int64_t runs[2] = {1, 1};
    for (int s = 0; s < (is_alone(p) ? 1 : 2); s++) {
        for (int64_t spent = 0; spent < ROUND_NS / 2;) { // also warms up
            int64_t begun = bel_clock_ns();
            BEL_TRY(sides[s](p, runs[s]));
            spent = bel_clock_ns() - begun;
            if (spent < ROUND_NS / 2) runs[s] *= 2;
        }
    }
    for (int r = 0; r < rounds; r++)
        for (int s = 0; s < (is_alone(p) ? 1 : 2); s++) {
            int64_t begun = bel_clock_ns();
            BEL_TRY(sides[s](p, runs[s]));
            us[s][r] = (double)(bel_clock_ns() - begun) * 1e-3 / (double)runs[s];
        }
    return NULL;
}

// Returns the largest difference, relative to the largest number.
static double difference(const bel_tensor *y)
{
    double most = 0, largest = 1e-30;
    for (int64_t i = 0; i < bel_shape_elements(&y->shape); i++) {
        double ours = (double)((const float *)y->data)[i], other = (double)other_y[i];
        most = fabs(ours - other) > most ? fabs(ours - other) : most;
        largest = fabs(other) > largest ? fabs(other) : largest;
    }
    return most / largest;
}

static bel_status *report(pair *p, const char *name, int64_t batch, int rounds)
{
    double us[2][MOST_ROUNDS];
    BEL_TRY(measure(p, rounds, us));
    if (is_alone(p)) {
        printf("%-12s batch %2lld: %9.3f us\n", name, (long long)batch,
               bench_median(us[0], rounds));
        return NULL;
    }
    const bel_tensor y = bel_predictor_output(p->predictor, 0);
    bool of_belfry = p->chain != NULL; // else the ratio is onnxruntime's time over Belfry's
    bench_spread ratio = bench_ratio_of(us[of_belfry ? 0 : 1], us[of_belfry ? 1 : 0], rounds);
    const char *peer = p->chain == chain_in_c      ? "plain C"
                       : p->chain == chain_by_hand ? "intrinsics"
                                                   : "onnxruntime";
    printf("%-12s batch %2lld: %9.3f us, %s %9.3f us, ratio %.3f [%.3f, %.3f] (difference %.1e)\n",
           name, (long long)batch, bench_median(us[0], rounds), peer, bench_median(us[1], rounds),
           ratio.median, ratio.low, ratio.high, difference(&y));
    bench_figuref(&ratio, "infer.%s.%lld%s", name, (long long)batch,
                  p->chain == chain_in_c      ? ".c"
                  : p->chain == chain_by_hand ? ".intrinsics"
                                              : "");
    return NULL;
}

static bool with_ort; // onnxruntime is there

static bel_status *bench_batch(const char *name, const char *path, bel_predictor *predictor,
                               int64_t batch, int rounds)
{
    pair p = {.predictor = predictor};
    ort_pair other;
    bel_port port = bel_predictor_input_port(predictor, 0);
    bel_tensor in = {.dtype = port.dtype, .shape = port.shape, .data = x};
    if (in.shape.dims[0] < 0) in.shape.dims[0] = batch;
    if (in.shape.dims[0] != batch) return NULL; // a model with a batch of one example
    BEL_TRY(bel_predictor_bind(predictor, 0, &in));
    BEL_TRY(bel_predictor_run(predictor));
    if (with_ort) {
        bel_tensor out = bel_predictor_output(predictor, 0);
        out.data = other_y;
        other.model = bench_ort_load(path, port.name, bel_predictor_output_port(predictor, 0).name);
        other.values = bench_ort_bind(&in, &out);
        p.other = &other;
    }
    BEL_TRY(report(&p, name, batch, rounds));
    if (strcmp(name, "products") != 0) return NULL;
    p = (pair){.predictor = predictor, .chain = chain_in_c};
    BEL_TRY(report(&p, name, batch, rounds));
    if (!has_intrinsics()) return NULL;
    p.chain = chain_by_hand;
    return report(&p, name, batch, rounds);
}

// Takes the chain's weights from the model: its graph has no other constants.
static void take_chain(const bel_str *model)
{
    size_t bytes = sizeof chain_weights[0], layer = 0;
    for (size_t at = 0; at + bytes < model->length && layer < LAYERS; at++) {
        const unsigned char *tag = (const unsigned char *)model->text + at;
        if (tag[0] != 0x4a || tag[1] != 0x80 || tag[2] != 0x02) continue; // raw data of 256 bytes
        memcpy(chain_weights[layer++], tag + 3, bytes);
    }
}

static bel_status *bench_model(const char *name, const char *folder, int rounds)
{
    bel_str model = bel_onnx_model_make(name);
    char *path = bel_path_join(folder, name);
    bel_predictor *predictor = NULL;
    if (strcmp(name, "products") == 0) take_chain(&model);
    bel_status *status = bel_file_write_atomic(path, model.text, model.length);
    if (status == NULL) status = bel_predictor_load(path, NULL, &predictor);
    for (int64_t batch = 1; batch <= 32 && status == NULL; batch *= 32)
        status = bench_batch(name, path, predictor, batch, rounds);
    bel_predictor_destroy(predictor);
    bel_str_deinit(&model);
    bel_free(path);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const models[] = {"products", "chain",    "tiny_mlp",   "mlp",
                                         "lenet",    "resnet20", "transformer"};
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 21;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    bel_status *status = NULL;
    for (int i = 0; i < MOST_IO; i++) {
        uint32_t words[4];
        bel_rng_block(bel_rng_key_make(1, "bench", 0), 0, (uint64_t)i, words);
        x[i] = 2 * bel_rng_unit(words[0]) - 1;
    }
    with_ort = bench_ort_open();
    if (mkdtemp(folder) == NULL) return 1;
    for (size_t m = 0; m < sizeof models / sizeof models[0] && status == NULL; m++)
        if (argc < 3 || strcmp(argv[2], models[m]) == 0)
            status = bench_model(models[m], folder, rounds);
    bel_status_ignore(bel_dir_remove(folder)); // in /tmp
    return bench_end(status);
}
