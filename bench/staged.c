// A model that is read while it runs: 24 layers of 1024 by 1024 in a file of 96 MB (warm page
// cache), 16 MB of memory for weights. The baseline is the lower bound of a run: the longer of
// computing with all weights in memory and of reading them, from the same mapped file into memory
// by one thread. Interleaved, medians of rounds and quartiles. The medians decide which of the two
// is the longer: per round, noise would lengthen the bound. usage: bench_staged [ROUNDS [BATCH]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_memory.h"
#include "base/mapping.h"
#include "figures.h"
#include "mlp.h"
#include "predictor/forward.h"

enum { WIDTH = 1024, LAYERS = 24, MATRIX = WIDTH * WIDTH, MEMORY = 16 << 20, MOST_ROUNDS = 99 };

static bel_staged_source sources[LAYERS];
static char *room; // buffer of the baseline's reading

// Writes small weights of both signs, so that no layer dies or overflows.
static bel_status *write_weights(const char *path)
{
    float *weights = bel_xcalloc((size_t)LAYERS * MATRIX, sizeof *weights);
    for (size_t i = 0; i < (size_t)LAYERS * MATRIX; i++)
        weights[i] = (float)((i * 2654435761u >> 8) % 2001) / 1000.0F / 32 - 1.0F / 32;
    bel_status *status =
        bel_file_write_atomic(path, weights, (size_t)LAYERS * MATRIX * sizeof *weights);
    bel_free(weights);
    return status;
}

static double read_all(void)
{
    int64_t begun = bel_clock_ns();
    for (int l = 0; l < LAYERS; l++) {
        memcpy(room + (size_t)(l % 2) * MEMORY / 2, sources[l].elements, sources[l].size_bytes);
        bel_linux_drop_pages(sources[l].elements, sources[l].size_bytes);
    }
    return (double)(bel_clock_ns() - begun) * 1e-6;
}

static double run(bel_forward *forward)
{
    int64_t begun = bel_clock_ns();
    if (bench_end(bel_forward_run(forward, 0)) != 0) exit(1);
    return (double)(bel_clock_ns() - begun) * 1e-6;
}

static bel_forward *open_forward(const bel_forward_config *config, bel_value *y, float *x,
                                 int64_t batch)
{
    const bel_program_output output = {.value = y};
    const bel_tensor field = {BEL_DTYPE_F32, BEL_SHAPE(batch, WIDTH), x};
    bel_forward *forward;
    if (bench_end(bel_forward_create(config, &output, 1, &forward)) != 0) exit(1);
    if (bench_end(bel_forward_bind(forward, &field)) != 0) exit(1);
    return forward;
}

static double whole[MOST_ROUNDS], reading[MOST_ROUNDS], staged[MOST_ROUNDS]; // ms of each round

static void report(int64_t batch, int stages, int rounds)
{
    bench_spread over_whole = bench_ratio_of(staged, whole, rounds);
    bench_spread over_reading = bench_ratio_of(staged, reading, rounds);
    double compute = bench_median(whole, rounds), read = bench_median(reading, rounds);
    const bench_spread *ratio = compute > read ? &over_whole : &over_reading;
    printf("batch %lld, %d stages: %.2f ms; only computing %.2f, only reading %.2f\n",
           (long long)batch, stages, bench_median(staged, rounds), compute, read);
    printf("ratio to the longer of the two: %.3f [%.3f, %.3f]\n", ratio->median, ratio->low,
           ratio->high);
    bench_figuref(ratio, "staged.%lld", (long long)batch);
}

static int compare(int rounds, int64_t batch, const char *path)
{
    static const int fields[] = {0};
    bel_mapping file;
    if (bench_end(write_weights(path)) != 0 || bench_end(bel_mapping_open(path, &file)) != 0)
        return 1;
    for (int l = 0; l < LAYERS; l++)
        sources[l] = (bel_staged_source){.elements = (const float *)(const void *)file.data +
                                                     (size_t)l * MATRIX,
                                         .size_bytes = MATRIX * sizeof(float),
                                         .mapped = true};
    bel_graph *graph = bel_graph_create();
    bel_value *y = bench_square_layers(graph, LAYERS, WIDTH);
    float *x = bel_xcalloc((size_t)(batch * WIDTH), sizeof *x);
    for (int64_t i = 0; i < batch * WIDTH; i++)
        x[i] = (float)(i % 97) / 97.0F;
    bel_forward_config large = {.graph = graph,
                                .fields = fields,
                                .staged = {.sources = sources, .count = LAYERS},
                                .stage_memory = (size_t)1 << 30,
                                .program = {.threads = 1}};
    bel_forward_config small = large;
    small.stage_memory = MEMORY;
    room = bel_xcalloc(MEMORY, 1);
    bel_forward *one = open_forward(&large, y, x, batch), *many = open_forward(&small, y, x, batch);
    (void)run(one), (void)run(many), (void)read_all();
    for (int r = 0; r < rounds; r++) {
        whole[r] = run(one);
        reading[r] = read_all();
        (void)run(many); // clears the caches of the rounds between
        staged[r] = run(many);
    }
    report(batch, bel_staging_count(bel_forward_staging(many)), rounds);
    bel_forward_destroy(one);
    bel_forward_destroy(many);
    bel_graph_destroy(graph);
    bel_mapping_close(&file);
    bel_free(x);
    bel_free(room);
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    int64_t batch = argc > 2 ? atoi(argv[2]) : 16;
    char path[] = "/tmp/belfry-staged-XXXXXX";
    if (rounds < 1 || rounds > MOST_ROUNDS || batch < 1) {
        fprintf(stderr, "usage: bench_staged [ROUNDS up to %d [BATCH]]\n", MOST_ROUNDS);
        return 2;
    }
    int descriptor = mkstemp(path);
    if (descriptor < 0) return 1;
    int code = compare(rounds, batch, path);
    (void)remove(path);
    return code;
}
