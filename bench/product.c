// Matrix products of Belfry beside OpenBLAS's on one thread, in turns; medians of rounds, and
// quartiles of their ratios. OpenBLAS chooses its kernels when it is loaded, so each core type runs
// in a separate process, in turns with Belfry. For each shape the type counts that is the fastest
// by the median of its time over Belfry's in the same rounds: the processes run one after another,
// and other load may differ between them. Without OpenBLAS (Debian: libopenblas0-pthread) it prints
// that.
// usage: bench_product [ROUNDS]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/openblas.h"
#include "figures.h"
#include "ops/kernels/product.h"

typedef struct shape {
    int m, n, k;
    bool transpose_a, transpose_b;
} shape;

// A step of the dnn at two batch sizes; much smaller, thinner and larger shapes.
static const shape shapes[] = {
    {64, 512, 784, false, false}, {64, 512, 512, false, false},    {64, 10, 512, false, false},
    {64, 512, 512, false, true},  {512, 512, 64, true, false},     {784, 512, 64, true, false},
    {512, 10, 64, true, false},   {64, 512, 10, false, true},      {256, 512, 784, false, false},
    {256, 512, 512, false, true}, {784, 512, 256, true, false},    {16, 512, 512, false, false},
    {4, 512, 512, false, false},  {32, 100, 100, false, false},    {1, 512, 512, false, false},
    {1, 512, 512, false, true},   {512, 1, 512, false, false},     {512, 1, 512, true, false},
    {512, 4, 512, false, false},  {1024, 1024, 1024, false, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], MOST_ROUNDS = 999 };

// Allocates at the begin of a cache line, as tensors are.
static float *make(int64_t count)
{
    enum { LINE = 64 };
    size_t bytes = (size_t)count * sizeof(float);
    float *x = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (x == NULL) abort();
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((i + 1) * 7919 % 2003) / 1001.0f - 1.0f;
    return x;
}

static double time_of(bel_product_fn *run, const bel_product *product)
{
    int64_t begun = bel_clock_ns();
    run(product);
    return (double)(bel_clock_ns() - begun);
}

// Prints the median times of both, in ns, and the spread of OpenBLAS's over Belfry's.
static void measure(const shape *s, int rounds)
{
    float *a = make((int64_t)s->m * s->k), *b = make((int64_t)s->k * s->n);
    float *y = make((int64_t)s->m * s->n);
    const bel_product product = {.m = s->m,
                                 .n = s->n,
                                 .k = s->k,
                                 .a = a,
                                 .a_row = s->transpose_a ? 1 : s->k,
                                 .a_column = s->transpose_a ? s->m : 1,
                                 .b = b,
                                 .b_row = s->transpose_b ? 1 : s->n,
                                 .b_column = s->transpose_b ? s->k : 1,
                                 .y = y,
                                 .y_row = s->n};
    static double own[MOST_ROUNDS], library[MOST_ROUNDS];
    for (int r = -2; r < rounds; r++) { // two warm-up rounds, overwritten
        own[r < 0 ? 0 : r] = time_of(bel_product_run, &product);
        library[r < 0 ? 0 : r] = time_of(bel_product_run_openblas, &product);
    }
    bench_spread ratio = bench_ratio_of(library, own, rounds);
    printf("%.0f %.0f %.6f %.6f %.6f\n", bench_median(own, rounds), bench_median(library, rounds),
           ratio.low, ratio.median, ratio.high);
    free(a);
    free(b);
    free(y);
}

// Process of one core type: prints its name, and then the times of each shape.
static int play(int rounds)
{
    bel_status *status = bel_openblas_open();
    if (status != NULL) {
        printf("%s\n", bel_status_message(status));
        bel_status_destroy(status);
        return 1;
    }
    printf("%s\n", bel_openblas_text());
    for (int i = 0; i < SHAPES; i++)
        measure(&shapes[i], rounds);
    return 0;
}

typedef struct best {
    double own, library; // ns
    bench_spread ratio;
    char core[32];
} best;

// Runs that process. False: OpenBLAS is absent; a message says so.
static bool ask(const char *self, const char *core, int rounds, best results[SHAPES])
{
    char command[512], name[128], type[32] = "";
    snprintf(command, sizeof command, "OPENBLAS_CORETYPE=%s '%s' --play %d", core, self, rounds);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL || fgets(name, sizeof name, pipe) == NULL) return false;
    bool there = sscanf(name, "OpenBLAS %*s %31s", type) == 1;
    if (!there) fputs(name, stdout);
    for (int i = 0; i < SHAPES && there; i++) {
        best now = {.ratio = {.count = rounds}};
        bench_spread *ratio = &now.ratio;
        if (fscanf(pipe, "%lf %lf %lf %lf %lf", &now.own, &now.library, &ratio->low, &ratio->median,
                   &ratio->high) != 5) {
            printf("OpenBLAS for %s ended at shape %d\n", type, i);
            there = false;
        } else if (results[i].library == 0 || ratio->median < results[i].ratio.median) {
            memcpy(now.core, type, sizeof type);
            results[i] = now; // all from one process
        }
    }
    pclose(pipe);
    return there;
}

int main(int argc, char **argv)
{
    bool plays = argc > 2 && strcmp(argv[1], "--play") == 0;
    int rounds = argc > 1 ? atoi(argv[argc - 1]) : 101;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    if (plays) return play(rounds);
    static const char *const cores[] = {"Nehalem", "Haswell", "SkylakeX"};
    best results[SHAPES] = {{0}};
    bench_spread ratios[SHAPES];
    for (int i = 0; i < 3 && i <= (int)bel_isa_get(); i++)
        if (!ask(argv[0], cores[i], rounds, results)) return 0;
    printf("level %s\n", bel_isa_name(bel_isa_get()));
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        const best *r = &results[i];
        double operations = 2.0 * s->m * s->n * s->k;
        const char *a = s->transpose_a ? "T" : "N", *b = s->transpose_b ? "T" : "N";
        printf("%4d x %4d x %4d %s%s  %6.1f GFLOP/s, OpenBLAS %6.1f (%s), ratio %.2f [%.2f, "
               "%.2f]\n",
               s->m, s->n, s->k, a, b, operations / r->own, operations / r->library, r->core,
               r->ratio.median, r->ratio.low, r->ratio.high);
        if (s->transpose_a || s->transpose_b) {
            bench_figuref(&r->ratio, "product.%dx%dx%d.%s%s", s->m, s->n, s->k, a, b);
        } else {
            bench_figuref(&r->ratio, "product.%dx%dx%d", s->m, s->n, s->k);
        }
        ratios[i] = r->ratio;
    }
    bench_spread mean = bench_spread_mean(ratios, SHAPES);
    printf("geometric mean %.2f [%.2f, %.2f]\n", mean.median, mean.low, mean.high);
    bench_figure("product.mean", &mean);
    return 0;
}
