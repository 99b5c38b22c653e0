// Training on a GPU, the whole way (batches in memory, programs, aggregation, update), beside the
// same on the processor's cores; and large matrix products alone. A line for each, in JSON; rows
// have the names of gpu_torch.py's. usage: bench_gpu [ROUNDS]; exit code 3: there is no GPU.
// tools/gpu-check runs both and prints the ratios.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cuda/cuda.h"
#include "mlp.h"
#include "runtime/device.h"

enum { MOST_ROUNDS = 15 };

static const char *const maths[] = {"", " f32", " tf32", " bf16"}; // by bel_gpu_math

static bel_status *median_rate(const char *model, int64_t batch, int64_t steps, int rounds,
                               double *out_rate)
{
    double rates[MOST_ROUNDS], seconds;
    BEL_TRY(bench_train(model, batch, 0, 20, &seconds)); // kernels are compiled
    for (int i = 0; i < rounds; i++) {
        BEL_TRY(bench_train(model, batch, 0, steps, &seconds));
        rates[i] = (double)(steps * batch) / seconds;
    }
    *out_rate = bench_median(rates, rounds);
    return NULL;
}

static bel_status *train(const char *model, int64_t batch, int64_t steps, int rounds,
                         bel_gpu_math math)
{
    double card, cores = 0;
    bench_use(BEL_DEVICE_CUDA, math);
    BEL_TRY(median_rate(model, batch, steps, rounds, &card));
    printf("{\"row\":\"%s %lld%s\",\"unit\":\"examples/s\",\"value\":%.0f", model, (long long)batch,
           maths[math], card);
    bench_use(BEL_DEVICE_CPU, BEL_GPU_MATH_EXACT);
    bool beside = math == BEL_GPU_MATH_EXACT && steps >= 100; // else the cores take too long
    if (beside) BEL_TRY(median_rate(model, batch, steps / 10, 3, &cores));
    if (beside) printf(",\"over_cores\":%.2f", card / cores);
    printf("}\n");
    return NULL;
}

// `layers` products of [n × n] one after another, whose right sides stay on the card; the left one
// of the first is copied in, and a sum out.
static bel_status *multiply(bel_device *device, int64_t n, int layers, bel_gpu_math math,
                            double *out_seconds)
{
    enum { RUNS = 10 };
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(n, n);
    bel_program_output output = {
        .value = bel_reduce_sum(graph, bench_square_layers(graph, layers, n), NULL, 0, false)};
    bel_program_options options = {
        .device = device, .gpu_math = math, .fixed_variables = true, .threads = 1};
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
    BEL_TRY(bel_program_compile(graph, &shape, &output, 1, &options, &program));
    BEL_TRY(device->ops->allocate(device, bel_program_arena_bytes(program), "operands", &memory));
    BEL_TRY(bel_instance_create_on(program, &memory, &instance));
    float *zeros = bel_xcalloc((size_t)(n * n), sizeof *zeros);
    bel_instance_bind_input(instance, 0, zeros);
    for (int l = 0; l < layers; l++)
        bel_instance_bind_variable(instance, l, zeros);
    bel_run_context context = {.seed = 1};
    int64_t begun = 0;
    for (int run = -3; run < RUNS; run++) {
        if (run == 0) begun = bel_clock_ns();
        BEL_TRY(bel_instance_run(instance, NULL, &context, NULL, NULL));
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9 / RUNS;
    bel_free(zeros);
    bel_instance_destroy(instance);
    device->ops->release(device, &memory);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
    return NULL;
}

static bel_status *products(bel_device *device, int64_t n, bel_gpu_math math)
{
    enum { LAYERS = 16 };
    double seconds, flops = 2.0 * LAYERS * (double)n * (double)n * (double)n;
    BEL_TRY(multiply(device, n, LAYERS, math, &seconds));
    printf("{\"row\":\"%d products %lld%s\",\"unit\":\"TFLOP/s\",\"value\":%.3f}\n", LAYERS,
           (long long)n, maths[math], flops / seconds * 1e-12);
    return NULL;
}

static bel_status *run(int rounds)
{
    bel_device *device;
    BEL_TRY(bel_cuda_device_get(0, &device));
    BEL_TRY(train("dnn", 64, 1000, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(train("dnn", 1024, 300, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(train("cnn", 64, 300, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(train("resnet", 256, 20, rounds, BEL_GPU_MATH_EXACT));
    for (bel_gpu_math math = BEL_GPU_MATH_TF32; math <= BEL_GPU_MATH_BF16; math++) {
        BEL_TRY(train("dnn", 1024, 300, rounds, math));
        BEL_TRY(train("cnn", 64, 300, rounds, math));
        BEL_TRY(train("resnet", 256, 60, rounds, math));
    }
    for (bel_gpu_math math = BEL_GPU_MATH_EXACT; math <= BEL_GPU_MATH_BF16; math++)
        BEL_TRY(products(device, 4096, math));
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5, count;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = 5;
    bel_status *status = bel_cuda_count(&count);
    if (status != NULL) {
        (void)bench_end(status);
        return 3;
    }
    bench_fill();
    return bench_end(run(rounds));
}
