// Time from the path of a model of 100 MB to its first answer: an ONNX file in the form of `belfry
// export`, with its values inside, 24 layers of 1024 by 1024, batch 1, one thread. One baseline
// reads the same bytes into new memory. The other reads them piece by piece into a small buffer,
// which is the lower bound. Warm page cache, in turns, medians and quartiles.
// usage: bench_load [ROUNDS [MODEL.onnx]] (another model, whose inputs are zeros)
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "belfry/predictor.h"
#include "figures.h"
#include "mlp.h"
#include "onnx/write.h"

enum { WIDTH = 1024, LAYERS = 24, MATRIX = WIDTH * WIDTH, MOST_ROUNDS = 99, MOST_INPUTS = 16 };

static void must(bel_status *status)
{
    if (bench_end(status) != 0) exit(1);
}

static void take(void *writer, const void *bytes, size_t count)
{
    bel_file_writer_write(writer, bytes, count);
}

static void write_model(const char *path)
{
    bel_graph *graph = bel_graph_create();
    bel_value *y = bench_square_layers(graph, LAYERS, WIDTH);
    float *elements = bel_xcalloc(MATRIX, sizeof *elements);
    const float *variables[LAYERS];
    for (size_t i = 0; i < MATRIX; i++)
        elements[i] = (float)((i * 2654435761u >> 8) % 2001) / 1000.0F / 32 - 1.0F / 32;
    for (int l = 0; l < LAYERS; l++)
        variables[l] = elements;
    const bel_onnx_result result = {"y", y};
    const bel_onnx_source source = {.graph = graph,
                                    .results = &result,
                                    .result_count = 1,
                                    .variables = variables,
                                    .opset = BEL_ONNX_OPSET_HIGHEST};
    bel_file_writer *writer;
    must(bel_file_writer_open(path, &writer));
    must(bel_onnx_write(&source, take, writer));
    must(bel_file_writer_finish(writer, NULL, NULL));
    bel_free(elements);
    bel_graph_destroy(graph);
}

static double answer(const char *path)
{
    int64_t begun = bel_clock_ns();
    bel_predictor *predictor;
    void *inputs[MOST_INPUTS] = {NULL};
    must(bel_predictor_load(path, NULL, &predictor));
    int count = bel_predictor_input_count(predictor);
    if (count > MOST_INPUTS) exit(1);
    for (int i = 0; i < count; i++) {
        bel_port port = bel_predictor_input_port(predictor, i);
        bel_tensor tensor = {.dtype = port.dtype, .shape = port.shape};
        for (int d = 0; d < tensor.shape.rank; d++)
            if (tensor.shape.dims[d] < 0) tensor.shape.dims[d] = 1;
        tensor.data = inputs[i] = bel_xcalloc(bel_tensor_bytes(&tensor) + 1, 1);
        must(bel_predictor_bind(predictor, i, &tensor));
    }
    must(bel_predictor_run(predictor));
    double ms = (double)(bel_clock_ns() - begun) * 1e-6;
    bel_predictor_destroy(predictor);
    for (int i = 0; i < count; i++)
        bel_free(inputs[i]);
    return ms;
}

static double read_all(const char *path, size_t *out_size)
{
    char *bytes;
    int64_t begun = bel_clock_ns();
    must(bel_file_read(path, &bytes, out_size));
    double ms = (double)(bel_clock_ns() - begun) * 1e-6;
    bel_free(bytes);
    return ms;
}

static double read_pieces(const char *path)
{
    static char piece[1 << 20];
    int64_t begun = bel_clock_ns();
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) exit(1);
    while (read(file, piece, sizeof piece) > 0)
        continue;
    close(file);
    return (double)(bel_clock_ns() - begun) * 1e-6;
}

int main(int argc, char **argv)
{
    static double answers[MOST_ROUNDS], reads[MOST_ROUNDS], pieces[MOST_ROUNDS];
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_load [ROUNDS [MODEL.onnx]], rounds from 1 to %d\n",
                MOST_ROUNDS);
        return 1;
    }
    char made[64];
    snprintf(made, sizeof made, "/tmp/bench-load-%ld.onnx", (long)getpid());
    const char *path = argc > 2 ? argv[2] : made;
    if (path == made) write_model(made);
    size_t size;
    for (int r = -1; r < rounds; r++) { // one warm-up round, overwritten
        int at = r < 0 ? 0 : r;
        answers[at] = answer(path);
        reads[at] = read_all(path, &size);
        pieces[at] = read_pieces(path);
    }
    if (path == made) (void)unlink(made);
    bench_spread whole = bench_ratio_of(answers, reads, rounds);
    bench_spread piecewise = bench_ratio_of(answers, pieces, rounds);
    printf("%.1f MB: first answer after %.2f ms; reading the bytes %.2f, in pieces %.2f\n",
           (double)size / 1e6, bench_median(answers, rounds), bench_median(reads, rounds),
           bench_median(pieces, rounds));
    printf("ratio to reading the bytes: %.3f [%.3f, %.3f]; in pieces: %.3f [%.3f, %.3f]\n",
           whole.median, whole.low, whole.high, piecewise.median, piecewise.low, piecewise.high);
    if (path != made) return 0; // figures are of the same model everywhere
    bench_figure("load.read", &whole);
    bench_figure("load.pieces", &piecewise);
    return 0;
}
