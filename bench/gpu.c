// Training on a GPU in full (batches in memory, programs, aggregation, update), beside the same on
// the processor's cores; and single large matrix products, attention, and updates of many
// parameters.
// Prints a line in JSON for each; rows have the names of gpu_torch.py's. usage: bench_gpu [ROUNDS
// [ROW]]; exit code 3: there is no GPU. tools/gpu-check runs both and prints the ratios.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "cuda/device.h"
#include "cuda/updater.h"
#include "figures.h"
#include "mlp.h"
#include "runtime/device.h"
#include "tensor/grain.h"

enum { MOST_ROUNDS = 15 };

static const char *const maths[] = {"", " f32", " tf32", " bf16"}; // indexed by bel_gpu_math

static const char *wanted = ""; // part of the names of the rows to run
static char row_figure[64];     // the row's name with dots

// Returns true if a row is to be measured; then it begins the row's line.
static bool begin_row(const char *unit, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool begin_row(const char *unit, const char *format, ...)
{
    char name[64];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (strstr(name, wanted) == NULL) return false;
    (void)snprintf(row_figure, sizeof row_figure, "%s", name);
    for (char *at; (at = strchr(row_figure, ' ')) != NULL;)
        *at = '.';
    printf("{\"row\":\"%s\",\"unit\":\"%s\",", name, unit);
    return true;
}

// Measures examples/s in the time that `steps` steps add to a run of the first ones, which compile
// kernels, pin memory and make graphs.
static bel_status *rate_of(const char *model, int64_t batch, int64_t steps, double *out_rate)
{
    enum { FIRST = 20 };
    double begin, all;
    BEL_TRY(bench_train(model, batch, 0, FIRST, &begin));
    BEL_TRY(bench_train(model, batch, 0, FIRST + steps, &all));
    *out_rate = (double)(steps * batch) / (all - begin);
    return NULL;
}

// Completes a row's line with a ratio. `name` is also the end of the figure's name.
static void end_row(const char *name, const bench_spread *ratio)
{
    printf(",\"%s\":%.3f,\"%s_quartiles\":[%.3f,%.3f]}\n", name, ratio->median, name, ratio->low,
           ratio->high);
    bench_figuref(ratio, "gpu.%s.%s", row_figure, name);
}

static bel_status *train(const char *model, int64_t batch, int64_t steps, int rounds,
                         bel_gpu_math math)
{
    double gpu[MOST_ROUNDS], cores[MOST_ROUNDS];
    bool beside = math == BEL_GPU_MATH_EXACT && steps >= 100; // otherwise the cores take too long
    if (!begin_row("examples/s", "%s %lld%s", model, (long long)batch, maths[math])) return NULL;
    for (int i = -1; i < rounds; i++) { // one warm-up round, overwritten
        int at = i < 0 ? 0 : i;
        bench_use(BEL_DEVICE_CUDA, math, 1);
        BEL_TRY(rate_of(model, batch, steps, &gpu[at]));
        bench_use(BEL_DEVICE_CPU, BEL_GPU_MATH_EXACT, 1);
        if (beside) BEL_TRY(rate_of(model, batch, steps / 20, &cores[at]));
    }
    bench_spread ratio = {.count = 0};
    if (beside) ratio = bench_ratio_of(gpu, cores, rounds);
    printf("\"value\":%.0f", bench_median(gpu, rounds));
    if (beside) {
        end_row("over_cores", &ratio);
    } else {
        printf("}\n");
    }
    return NULL;
}

// Compares two towers that share the GPU with one that has the examples of both.
static bel_status *share(const char *model, int64_t batch, int64_t steps, int rounds,
                         bel_gpu_math math)
{
    double one[MOST_ROUNDS], two[MOST_ROUNDS];
    if (!begin_row("examples/s", "%s 2x%lld%s", model, (long long)batch, maths[math])) return NULL;
    for (int i = -1; i < rounds; i++) { // one warm-up round, overwritten
        int at = i < 0 ? 0 : i;
        bench_use(BEL_DEVICE_CUDA, math, 1);
        BEL_TRY(rate_of(model, 2 * batch, steps, &one[at]));
        bench_use(BEL_DEVICE_CUDA, math, 2);
        BEL_TRY(rate_of(model, batch, steps, &two[at]));
        two[at] *= 2; // examples of a step
    }
    bench_spread ratio = bench_ratio_of(two, one, rounds);
    printf("\"value\":%.0f", bench_median(two, rounds));
    end_row("over_one", &ratio);
    return NULL;
}

// Fills a matrix of [n × n] so that repeated products neither grow nor vanish.
static void fill(float *matrix, int64_t n)
{
    bel_rng_key key = bel_rng_key_make(1, "operand", 0);
    for (int64_t i = 0; i < n * n; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        for (int j = 0; j < 4; j++)
            matrix[i + j] = (bel_rng_unit(words[j]) - 0.5f) * 5.0f / sqrtf((float)n);
    }
}

// Runs `layers` products of [n × n] one after another, whose right sides stay on the GPU. The left
// side of the first is copied in while the run before computes, and a sum out.
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
    // Not zeros: a GPU is faster on them.
    float *operand = bel_xcalloc((size_t)(n * n), sizeof *operand);
    fill(operand, n);
    bel_device_pin(device, operand, (size_t)(n * n) * sizeof *operand, true);
    bel_instance_bind_input(instance, 0, operand);
    for (int l = 0; l < layers; l++)
        bel_instance_bind_variable(instance, l, operand);
    bel_run_context context = {.seed = 1};
    int64_t begun = 0;
    for (int run = -3; run < RUNS; run++) {
        if (run == 0) begun = bel_clock_ns();
        bel_instance_announce_input(instance, 0, operand);
        BEL_TRY(bel_instance_run(instance, NULL, &context, NULL, NULL));
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9 / RUNS;
    bel_device_pin(device, operand, (size_t)(n * n) * sizeof *operand, false);
    bel_free(operand);
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
    if (!begin_row("TFLOP/s", "%d products %lld%s", LAYERS, (long long)n, maths[math])) return NULL;
    BEL_TRY(multiply(device, n, LAYERS, math, &seconds));
    printf("\"value\":%.3f}\n", flops / seconds * 1e-12);
    return NULL;
}

static bel_status *copy_in(bel_cuda_device *device, const bel_device_memory *to, const void *from,
                           size_t bytes)
{
    const bel_cuda_api *api = device->api;
    void *stream;
    BEL_TRY(bel_cuda_enter(device));
    BEL_TRY(bel_cuda_status(api->stream_create(&stream, BEL_CUDA_STREAM_NON_BLOCKING), "stream"));
    BEL_TRY(bel_cuda_status(api->copy_in((uint64_t)(uintptr_t)to->address, from, bytes, stream),
                            "copy"));
    BEL_TRY(bel_cuda_status(api->stream_finish(stream), "copy"));
    api->stream_destroy(stream);
    return NULL;
}

// Runs causal attention of 64 matrices of [t × 64] that stay on the GPU, forward and backward; sums
// of the gradients are copied out.
static bel_status *attend(bel_device *device, int64_t t, bel_gpu_math math, double *out_seconds)
{
    enum { RUNS = 10, N = 8, HEADS = 8, WIDTH = 64, OPERANDS = 3 };
    static const char *const names[OPERANDS] = {"query", "key", "value"};
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(N, HEADS, t, WIDTH);
    int64_t count = bel_shape_elements(&shape);
    bel_value *x[OPERANDS], *gradients[OPERANDS];
    for (int i = 0; i < OPERANDS; i++)
        x[i] = bel_variable(graph, names[i], &shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                            BEL_VARIABLE_TRAINABLE);
    bel_value *y = bel_attention(graph, x[0], x[1], x[2], NULL, NULL, true, 0);
    bel_program_output outputs[1 + OPERANDS] = {
        {.value = bel_reduce_sum_square(graph, y, NULL, 0, false)}};
    bel_gradients(graph, outputs[0].value, x, OPERANDS, gradients);
    for (int i = 0; i < OPERANDS; i++)
        outputs[1 + i].value = bel_reduce_sum(graph, gradients[i], NULL, 0, false);
    BEL_TRY(bel_graph_check(graph));
    bel_program_options options = {
        .device = device, .gpu_math = math, .on_device = true, .threads = 1};
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory, there;
    BEL_TRY(bel_program_compile(graph, NULL, outputs, 1 + OPERANDS, &options, &program));
    BEL_TRY(device->ops->allocate(device, bel_program_arena_bytes(program), "operands", &memory));
    BEL_TRY(bel_instance_create_on(program, &memory, &instance));
    size_t bytes = (size_t)count * sizeof(float);
    float *operand = bel_xmalloc(bytes);
    for (int64_t i = 0; i < count; i++)
        operand[i] = (float)(i * 7919 % 2003) / 1000.0f - 1.0f;
    BEL_TRY(device->ops->allocate(device, bytes, "operands", &there));
    BEL_TRY(copy_in((bel_cuda_device *)device, &there, operand, bytes));
    for (int i = 0; i < OPERANDS; i++)
        bel_instance_bind_variable(instance, i, there.address);
    bel_run_context context = {.seed = 1};
    int64_t begun = 0;
    for (int run = -3; run < RUNS; run++) {
        if (run == 0) begun = bel_clock_ns();
        BEL_TRY(bel_instance_run(instance, NULL, &context, NULL, NULL));
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9 / RUNS;
    bel_free(operand);
    bel_instance_destroy(instance);
    device->ops->release(device, &memory);
    device->ops->release(device, &there);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
    return NULL;
}

// Counts two products forward and five backward; half of that with causality.
static bel_status *attention(bel_device *device, int64_t t, bel_gpu_math math)
{
    double seconds, flops = 7.0 * 64 * (double)t * (double)t * 64;
    if (!begin_row("TFLOP/s", "attention %lld%s", (long long)t, maths[math])) return NULL;
    BEL_TRY(attend(device, t, math, &seconds));
    printf("\"value\":%.3f}\n", flops / seconds * 1e-12);
    return NULL;
}

// Measures the memory bandwidth of a GPU in a copy within it, in bytes a second; read and written
// bytes both count.
static bel_status *copy_rate(bel_cuda_device *device, size_t bytes, double *out_rate)
{
    enum { RUNS = 10 };
    const bel_cuda_api *api = device->api;
    bel_device_memory memory[2];
    void *stream, *done;
    int64_t begun = 0;
    for (int i = 0; i < 2; i++)
        BEL_TRY(device->device.ops->allocate(&device->device, bytes, "a copy", &memory[i]));
    BEL_TRY(bel_cuda_enter(device));
    BEL_TRY(bel_cuda_status(api->stream_create(&stream, BEL_CUDA_STREAM_NON_BLOCKING), "stream"));
    BEL_TRY(bel_cuda_status(api->event_create(&done, BEL_CUDA_EVENT_NO_TIMING), "event"));
    uint64_t from = (uint64_t)(uintptr_t)memory[0].address,
             to = (uint64_t)(uintptr_t)memory[1].address;
    BEL_TRY(bel_cuda_status(api->fill(from, 0, bytes, stream), "fill"));
    for (int run = -2; run < RUNS; run++) {
        if (run == 0) begun = bel_clock_ns();
        BEL_TRY(bel_cuda_status(api->copy_within(to, from, bytes, stream), "copy"));
        BEL_TRY(bel_cuda_await_stream(device, stream, done, "copy"));
    }
    *out_rate = 2.0 * (double)bytes * RUNS / ((double)(bel_clock_ns() - begun) * 1e-9);
    api->event_destroy(done);
    api->stream_destroy(stream);
    for (int i = 0; i < 2; i++)
        device->device.ops->release(&device->device, &memory[i]);
    return NULL;
}

// Runs Adam over `elements` parameters of one variable, with the same step's numbers repeatedly: a
// gradient, a value and two slots are read, and all but the first written.
static bel_status *update_rate(bel_device *device, int64_t elements, double *out_rate)
{
    enum { RUNS = 10, TOUCHED = 7 };
    const bel_optimizer adam = {.size = sizeof adam,
                                .kind = BEL_OPTIMIZER_ADAM,
                                .learning_rate = 1e-3,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .epsilon = 1e-8};
    bel_rule_group group = {.optimizer = &adam, .rule = bel_rule_get(&adam)};
    group.numbers = bel_rule_begin(&adam, 0);
    const bel_rule_groups groups = {.items = &group, .count = 1};
    int64_t grains = (elements + BEL_GRAIN - 1) / BEL_GRAIN, begun = 0;
    bel_update_piece *pieces = bel_xcalloc((size_t)grains, sizeof *pieces);
    for (int64_t g = 0; g < grains; g++) {
        int64_t left = elements - g * BEL_GRAIN;
        pieces[g] = (bel_update_piece){.offset = g * BEL_GRAIN,
                                       .grain = g,
                                       .count = (int32_t)(left < BEL_GRAIN ? left : BEL_GRAIN)};
    }
    bel_update_plan plan = {.pieces = pieces,
                            .piece_count = (int)grains,
                            .groups = &groups,
                            .variable_count = 1,
                            .grain_count = grains,
                            .slot_count = 2};
    void *host; // the host copy for a checkpoint
    BEL_TRY(bel_pages_create((size_t)elements * sizeof(float), false, "a checkpoint", &host));
    plan.values = plan.slots[0] = plan.slots[1] = host;
    bel_updater *updater;
    BEL_TRY(bel_cuda_updater_create(&device, 1, 1, elements, &updater));
    BEL_TRY(updater->ops->plan(updater, &plan));
    const float joins[2] = {1, 1};
    const bel_update_step step = {.counts = 1, .joins = joins, .scale = 1, .of_gradient = 1};
    for (int run = -2; run < RUNS; run++) {
        if (run == 0) begun = bel_clock_ns();
        BEL_TRY(updater->ops->update(updater, &step));
    }
    *out_rate = TOUCHED * sizeof(float) * (double)elements * RUNS /
                ((double)(bel_clock_ns() - begun) * 1e-9);
    updater->ops->destroy(updater);
    bel_pages_destroy(host, (size_t)elements * sizeof(float));
    bel_free(pieces);
    return NULL;
}

static bel_status *update(bel_device *device, int64_t millions, int rounds)
{
    double copied[MOST_ROUNDS], updated[MOST_ROUNDS];
    int64_t elements = millions * 1000000;
    if (!begin_row("GB/s", "update %lldM adam", (long long)millions)) return NULL;
    for (int i = 0; i < rounds; i++) {
        BEL_TRY(copy_rate((bel_cuda_device *)device, (size_t)elements * sizeof(float), &copied[i]));
        BEL_TRY(update_rate(device, elements, &updated[i]));
    }
    bench_spread ratio = bench_ratio_of(updated, copied, rounds);
    printf("\"value\":%.1f", bench_median(updated, rounds) * 1e-9);
    end_row("over_copy", &ratio);
    return NULL;
}

static bel_status *run(int rounds)
{
    bel_device *device;
    BEL_TRY(bel_cuda_device_get(0, &device));
    BEL_TRY(train("dnn", 64, 2000, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(train("dnn", 1024, 1000, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(train("cnn", 64, 500, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(train("resnet", 256, 20, rounds, BEL_GPU_MATH_EXACT));
    for (bel_gpu_math math = BEL_GPU_MATH_TF32; math <= BEL_GPU_MATH_BF16; math++) {
        BEL_TRY(train("dnn", 1024, 1000, rounds, math));
        BEL_TRY(train("cnn", 64, 500, rounds, math));
        BEL_TRY(train("resnet", 256, 60, rounds, math));
    }
    for (bel_gpu_math math = BEL_GPU_MATH_TF32; math <= BEL_GPU_MATH_BF16; math++)
        BEL_TRY(train("wide", 16384, 40, rounds, math));
    BEL_TRY(share("dnn", 1024, 1000, rounds, BEL_GPU_MATH_EXACT));
    BEL_TRY(share("resnet", 256, 60, rounds, BEL_GPU_MATH_BF16));
    BEL_TRY(update(device, 100, rounds));
    for (bel_gpu_math math = BEL_GPU_MATH_EXACT; math <= BEL_GPU_MATH_BF16; math++)
        BEL_TRY(products(device, 4096, math));
    for (bel_gpu_math math = BEL_GPU_MATH_EXACT; math <= BEL_GPU_MATH_BF16; math++)
        for (int64_t t = 128; t <= 2048; t *= 4)
            BEL_TRY(attention(device, t, math));
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5, count;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = 5;
    if (argc > 2) wanted = argv[2];
    bel_status *status = bel_cuda_count(&count);
    if (status != NULL) {
        (void)bench_end(status);
        return 3;
    }
    bench_fill();
    (void)setvbuf(stdout, NULL, _IOLBF, 0); // rows appear as soon as they are ready
    return bench_end(run(rounds));
}
