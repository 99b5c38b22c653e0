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

static bel_status *median_rate(const char *model, int64_t batch, int64_t steps, int rounds,
                               bel_device_choice device, double *out_rate)
{
    double rates[MOST_ROUNDS], seconds;
    bench_use(device);
    BEL_TRY(bench_train(model, batch, 0, 20, &seconds)); // kernels are compiled
    for (int i = 0; i < rounds; i++) {
        BEL_TRY(bench_train(model, batch, 0, steps, &seconds));
        rates[i] = (double)(steps * batch) / seconds;
    }
    *out_rate = bench_median(rates, rounds);
    return NULL;
}

static bel_status *train(const char *model, int64_t batch, int64_t steps, int rounds)
{
    double card, cores;
    BEL_TRY(median_rate(model, batch, steps, rounds, BEL_DEVICE_CUDA, &card));
    BEL_TRY(median_rate(model, batch, steps / 10, 3, BEL_DEVICE_CPU, &cores));
    printf("{\"row\":\"%s %lld\",\"unit\":\"examples/s\",\"value\":%.0f,\"over_cores\":%.2f}\n",
           model, (long long)batch, card, card / cores);
    return NULL;
}

// y = a b, n by n, `runs` times with one wait each.
static bel_status *multiply(bel_device *device, int64_t n, int runs, double *out_seconds)
{
    bel_graph *graph = bel_graph_create();
    bel_shape shapes[2] = {BEL_SHAPE(n, n), BEL_SHAPE(n, n)};
    bel_value *a = bel_input_value(graph, "a", BEL_DTYPE_F32, &shapes[0]);
    bel_value *b = bel_input_value(graph, "b", BEL_DTYPE_F32, &shapes[1]);
    // The sum of the product alone is copied back.
    bel_program_output output = {
        .value = bel_reduce_sum(graph, bel_matmul(graph, a, b), NULL, 0, false)};
    bel_program_options options = {.device = device, .threads = 1};
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
    BEL_TRY(bel_program_compile(graph, shapes, &output, 1, &options, &program));
    BEL_TRY(device->ops->allocate(device, bel_program_arena_bytes(program), "operands", &memory));
    BEL_TRY(bel_instance_create_on(program, &memory, &instance));
    float *zeros = bel_xcalloc((size_t)(n * n), sizeof *zeros);
    bel_instance_bind_input(instance, 0, zeros);
    bel_instance_bind_input(instance, 1, zeros);
    bel_run_context context = {.seed = 1};
    int64_t begun = 0;
    for (int run = -3; run < runs; run++) {
        if (run == 0) begun = bel_clock_ns();
        BEL_TRY(bel_instance_run(instance, NULL, &context, NULL, NULL));
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9 / runs;
    bel_free(zeros);
    bel_instance_destroy(instance);
    device->ops->release(device, &memory);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
    return NULL;
}

static bel_status *products(bel_device *device, int64_t n)
{
    double seconds;
    BEL_TRY(multiply(device, n, 20, &seconds));
    printf("{\"row\":\"product %lld with copies in\",\"unit\":\"TFLOP/s\",\"value\":%.3f}\n",
           (long long)n, 2.0 * (double)n * (double)n * (double)n / seconds * 1e-12);
    return NULL;
}

static bel_status *run(int rounds)
{
    bel_device *device;
    BEL_TRY(bel_cuda_device_get(0, &device));
    BEL_TRY(train("dnn", 64, 1000, rounds));
    BEL_TRY(train("dnn", 1024, 300, rounds));
    BEL_TRY(train("cnn", 64, 300, rounds));
    BEL_TRY(products(device, 1024));
    return products(device, 4096);
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
