// Convolutions of the two image models, all three passes, beside oneDNN's in its blocked layout,
// which would also need a reorder of images at both ends. One thread, in turns; medians of rounds,
// and quartiles of their ratios. Belfry's images are channels-last except the first.
// Built without oneDNN (Debian: libdnnl-dev), it prints that.
// usage: bench_conv [ROUNDS]
#include <stdio.h>

#ifndef BENCH_DNNL
int main(void)
{
    printf("bench_conv: built without oneDNN\n");
    return 0;
}
#else
#include <dnnl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/isa.h"
#include "belfry/ops.h"
#include "figures.h"
#include "ops/op.h"

enum { BATCH = 64, PASSES = 3, MOST_ROUNDS = 999 };

typedef struct conv {
    int64_t in, out, size, kernel, stride; // channels; square images and windows, SAME padding
} conv;

static const conv convs[] = {{1, 32, 28, 5, 1},  {32, 64, 14, 5, 1}, // cnn
                             {3, 16, 32, 3, 1},  {16, 16, 32, 3, 1}, // resnet
                             {16, 32, 32, 3, 2}, {32, 32, 16, 3, 1},
                             {32, 64, 16, 3, 2}, {64, 64, 8, 3, 1}};
enum { CONVS = sizeof convs / sizeof convs[0] };

// --- oneDNN --------------------------------------------------------------------------------------

static void check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success) return;
    fprintf(stderr, "bench_conv: oneDNN: %s failed with %d\n", what, (int)status);
    exit(1);
}
#define DO(name, ...) check(name(__VA_ARGS__), #name)

typedef struct peer {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[3];
} peer;

static dnnl_memory_t peer_memory(dnnl_engine_t engine, const_dnnl_primitive_desc_t desc,
                                 dnnl_query_t what)
{
    dnnl_memory_t memory;
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, what, 0);
    DO(dnnl_memory_create, &memory, md, engine, DNNL_MEMORY_ALLOCATE);
    void *data;
    DO(dnnl_memory_get_data_handle, memory, &data);
    size_t count = dnnl_memory_desc_get_size(md) / sizeof(float);
    for (size_t i = 0; i < count; i++)
        ((float *)data)[i] = (float)(i % 97) / 97.0f;
    return memory;
}

// Makes oneDNN's passes in Belfry's order: output, gradient of the input, gradient of the weights.
static void make_peers(dnnl_engine_t engine, const conv *c, int64_t out_size, const int64_t pad[2],
                       peer peers[PASSES])
{
    dnnl_dims_t x_dims = {BATCH, c->in, c->size, c->size};
    dnnl_dims_t w_dims = {c->out, c->in, c->kernel, c->kernel};
    dnnl_dims_t y_dims = {BATCH, c->out, out_size, out_size};
    dnnl_dims_t strides = {c->stride, c->stride}, low = {pad[0], pad[0]}, high = {pad[1], pad[1]};
    dnnl_memory_desc_t x, w, y;
    DO(dnnl_memory_desc_init_by_tag, &x, 4, x_dims, dnnl_f32, dnnl_format_tag_any);
    DO(dnnl_memory_desc_init_by_tag, &w, 4, w_dims, dnnl_f32, dnnl_format_tag_any);
    DO(dnnl_memory_desc_init_by_tag, &y, 4, y_dims, dnnl_f32, dnnl_format_tag_any);
    dnnl_convolution_desc_t forward, input, weights;
    DO(dnnl_convolution_forward_desc_init, &forward, dnnl_forward_training, dnnl_convolution_direct,
       &x, &w, NULL, &y, strides, low, high);
    DO(dnnl_convolution_backward_data_desc_init, &input, dnnl_convolution_direct, &x, &w, &y,
       strides, low, high);
    DO(dnnl_convolution_backward_weights_desc_init, &weights, dnnl_convolution_direct, &x, &w, NULL,
       &y, strides, low, high);
    dnnl_primitive_desc_t descs[PASSES];
    DO(dnnl_primitive_desc_create, &descs[0], &forward, NULL, engine, NULL);
    DO(dnnl_primitive_desc_create, &descs[1], &input, NULL, engine, descs[0]);
    DO(dnnl_primitive_desc_create, &descs[2], &weights, NULL, engine, descs[0]);
    static const struct {
        int arg;
        dnnl_query_t what;
    } args[PASSES][3] = {{{DNNL_ARG_SRC, dnnl_query_src_md},
                          {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                          {DNNL_ARG_DST, dnnl_query_dst_md}},
                         {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                          {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                          {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md}},
                         {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                          {DNNL_ARG_SRC, dnnl_query_src_md},
                          {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md}}};
    for (int p = 0; p < PASSES; p++) {
        for (int i = 0; i < 3; i++)
            peers[p].args[i] =
                (dnnl_exec_arg_t){args[p][i].arg, peer_memory(engine, descs[p], args[p][i].what)};
        DO(dnnl_primitive_create, &peers[p].primitive, descs[p]);
        DO(dnnl_primitive_desc_destroy, descs[p]);
    }
}

static void destroy_peers(peer peers[PASSES])
{
    for (int p = 0; p < PASSES; p++) {
        DO(dnnl_primitive_destroy, peers[p].primitive);
        for (int i = 0; i < 3; i++)
            DO(dnnl_memory_destroy, peers[p].args[i].memory);
    }
}

// --- Belfry -------------------------------------------------------------------------------------

static bel_tensor make_tensor(bel_arena *arena, int64_t a, int64_t b, int64_t c, int64_t d)
{
    bel_tensor t = {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(a, b, c, d)};
    t.data = bel_arena_alloc(arena, bel_tensor_bytes(&t));
    for (int64_t i = 0; i < bel_shape_elements(&t.shape); i++)
        ((float *)t.data)[i] = (float)(i % 97) / 97.0f;
    return t;
}

static void make_calls(bel_arena *arena, const conv *c, int64_t out_size,
                       bel_kernel_call calls[PASSES])
{
    bel_tensor x = make_tensor(arena, BATCH, c->in, c->size, c->size);
    bel_tensor w = make_tensor(arena, c->out, c->in, c->kernel, c->kernel);
    bel_tensor y = make_tensor(arena, BATCH, c->out, out_size, out_size);
    bool last = c->in > 3; // the first convolution reads images in their layout
    calls[0] = (bel_kernel_call){.op = BEL_OP_CONV, .input_count = 2, .inputs = {x, w}};
    calls[0].inputs_last[0] = last;
    calls[1] =
        (bel_kernel_call){.op = BEL_OP_CONV_GRAD_INPUT, .input_count = 3, .inputs = {y, w, x}};
    calls[1].inputs_last[0] = calls[1].inputs_last[2] = true;
    calls[2] =
        (bel_kernel_call){.op = BEL_OP_CONV_GRAD_WEIGHTS, .input_count = 3, .inputs = {y, x, w}};
    calls[2].inputs_last[0] = true;
    calls[2].inputs_last[1] = last;
    const bel_attr_list attrs = {2,
                                 {{.name = "auto_pad", .number = BEL_PAD_SAME_UPPER},
                                  {.name = "strides", .ints = BEL_SHAPE(c->stride, c->stride)}}};
    for (int p = 0; p < PASSES; p++) {
        calls[p].output_count = 1;
        calls[p].outputs[0] = p == 0 ? y : p == 1 ? x : w;
        calls[p].outputs_last[0] = p < 2;
        bel_prepare prepare = {.attrs = &attrs, .arena = arena, .threads = 1};
        bel_op_get(calls[p].op)->prepare(&prepare, &calls[p]);
        uintptr_t room = (uintptr_t)bel_arena_alloc(arena, calls[p].workspace_bytes + 64);
        calls[p].workspace = (void *)((room + 63) / 64 * 64);
    }
}

static void run_stage(const bel_kernel_call *call, bel_kernel_fn *run, int64_t tiles)
{
    for (int64_t tile = 0; run != NULL && tile < tiles; tile++)
        run(call, tile);
}

static void run_call(const bel_kernel_call *call)
{
    run_stage(call, call->before, call->before_tiles);
    run_stage(call, call->run, call->tile_count);
    run_stage(call, call->after, call->after_tiles);
}

// --- Both ----------------------------------------------------------------------------------------

// Measures one pass in turns; returns the spread of oneDNN's time over Belfry's.
static bench_spread measure_pass(const bel_kernel_call *call, const peer *p, dnnl_stream_t stream,
                                 int rounds, double out_ms[2])
{
    static double own[MOST_ROUNDS], library[MOST_ROUNDS];
    for (int r = -2; r < rounds; r++) { // two warm-up rounds, overwritten
        int at = r < 0 ? 0 : r;
        int64_t begun = bel_clock_ns();
        run_call(call);
        int64_t between = bel_clock_ns();
        DO(dnnl_primitive_execute, p->primitive, stream, 3, p->args);
        DO(dnnl_stream_wait, stream);
        own[at] = (double)(between - begun) * 1e-6;
        library[at] = (double)(bel_clock_ns() - between) * 1e-6;
    }
    bench_spread ratio = bench_ratio_of(library, own, rounds);
    out_ms[0] = bench_median(own, rounds);
    out_ms[1] = bench_median(library, rounds);
    return ratio;
}

// Measures a convolution's passes; returns their number.
static int measure(dnnl_engine_t engine, dnnl_stream_t stream, const conv *c, int rounds,
                   bench_spread ratios[PASSES])
{
    static const char *const names[PASSES] = {"output", "input gradient", "weights gradient"};
    static const char *const figures[PASSES] = {"output", "input", "weights"};
    bel_arena *arena = bel_arena_create();
    int64_t out_size = (c->size + c->stride - 1) / c->stride;
    int64_t padding = (out_size - 1) * c->stride + c->kernel - c->size;
    if (padding < 0) padding = 0;
    int64_t pad[2] = {padding / 2, padding - padding / 2};
    bel_kernel_call calls[PASSES];
    peer peers[PASSES];
    int count = 0, kernel = (int)c->kernel, in = (int)c->in, out = (int)c->out;
    make_calls(arena, c, out_size, calls);
    make_peers(engine, c, out_size, pad, peers);
    for (int p = 0; p < PASSES; p++) {
        if (p == 1 && c->in <= 3) continue; // the images' gradient is not needed
        double ms[2];
        bench_spread ratio = measure_pass(&calls[p], &peers[p], stream, rounds, ms);
        printf("%2d -> %2d, %d x %d, %2d x %2d, stride %d, %-16s  %6.2f ms, oneDNN %6.2f, ratio "
               "%.2f [%.2f, %.2f]\n",
               in, out, kernel, kernel, (int)c->size, (int)c->size, (int)c->stride, names[p], ms[0],
               ms[1], ratio.median, ratio.low, ratio.high);
        bench_figuref(&ratio, "conv.%dx%dx%d_%d.%s", kernel, kernel, in, out, figures[p]);
        ratios[count++] = ratio;
    }
    destroy_peers(peers);
    bel_arena_destroy(arena);
    return count;
}

int main(int argc, char **argv)
{
    if (getenv("OMP_NUM_THREADS") == NULL) { // oneDNN reads it before main
        setenv("OMP_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
    }
    printf("level %s\n", bel_isa_name(bel_isa_get()));
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    DO(dnnl_engine_create, &engine, dnnl_cpu, 0);
    DO(dnnl_stream_create, &stream, engine, dnnl_stream_default_flags);
    bench_spread ratios[CONVS * PASSES];
    int count = 0, rounds = argc > 1 ? atoi(argv[1]) : 31;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    for (int i = 0; i < CONVS; i++)
        count += measure(engine, stream, &convs[i], rounds, ratios + count);
    bench_spread mean = bench_spread_mean(ratios, count);
    printf("geometric mean %.2f [%.2f, %.2f]\n", mean.median, mean.low, mean.high);
    bench_figure("conv.mean", &mean);
    return 0;
}
#endif
