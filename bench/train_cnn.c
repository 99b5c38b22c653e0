// The model cnn (LeNet: convolutions 5×5×32 and 5×5×64 with pools, dense 512) with SGD momentum on
// synthetic images: examples per second of the whole training path, and the step's time over the
// time of only its convolutions and products. usage: bench_train_cnn BATCH THREADS [ROUNDS]
// bench/train runs it beside PyTorch and prints the ratio.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "belfry/ops.h"
#include "mlp.h"
#include "ops/op.h"

enum { STEPS = 25 };

// Shapes of the step: images, weights and results; 0 for the batch, up to the first -1.
typedef enum shape_name { X1, W1, Y1, X2, W2, Y2, X3, W3, Y3, W4, Y4 } shape_name;
static const int64_t shapes[][4] = {
    [X1] = {0, 1, 28, 28}, [W1] = {32, 1, 5, 5},   [Y1] = {0, 32, 28, 28}, [X2] = {0, 32, 14, 14},
    [W2] = {64, 32, 5, 5}, [Y2] = {0, 64, 14, 14}, [X3] = {0, 3136, -1},   [W3] = {3136, 512, -1},
    [Y3] = {0, 512, -1},   [W4] = {512, 10, -1},   [Y4] = {0, 10, -1}};

// A call of the step, with images in the step's layout.
typedef struct work {
    bel_op op;
    shape_name inputs[3], output;
    bool inputs_last[3], output_last;
    bool transpose_a, transpose_b;
} work;

static const work works[] = {
    {BEL_OP_CONV, {X1, W1}, Y1, {false}, true, false, false},
    {BEL_OP_CONV, {X2, W2}, Y2, {true}, true, false, false},
    {BEL_OP_GEMM, {X3, W3}, Y3, {false}, false, false, false},
    {BEL_OP_GEMM, {Y3, W4}, Y4, {false}, false, false, false},
    {BEL_OP_GEMM, {Y3, Y4}, W4, {false}, false, true, false},
    {BEL_OP_GEMM, {Y4, W4}, Y3, {false}, false, false, true},
    {BEL_OP_GEMM, {X3, Y3}, W3, {false}, false, true, false},
    {BEL_OP_GEMM, {Y3, W3}, X3, {false}, false, false, true},
    {BEL_OP_CONV_GRAD_WEIGHTS, {Y2, X2, W2}, W2, {true, true}, false, false, false},
    {BEL_OP_CONV_GRAD_INPUT, {Y2, W2, X2}, X2, {true, false, true}, true, false, false},
    {BEL_OP_CONV_GRAD_WEIGHTS, {Y1, X1, W1}, W1, {true, false}, false, false, false},
};
enum { WORKS = sizeof works / sizeof works[0] };

static bel_tensor make_tensor(bel_arena *arena, shape_name name, int64_t batch)
{
    const int64_t *dims = shapes[name];
    bel_tensor tensor = {.dtype = BEL_DTYPE_F32};
    for (int i = 0; i < 4 && dims[i] >= 0; i++)
        tensor.shape.dims[tensor.shape.rank++] = dims[i] == 0 ? batch : dims[i];
    tensor.data = bel_arena_alloc(arena, bel_tensor_bytes(&tensor));
    float *data = tensor.data;
    for (int64_t i = 0; i < bel_shape_elements(&tensor.shape); i++)
        data[i] = bench_images()[i % 4096];
    return tensor;
}

static void make_call(bel_arena *arena, const work *w, int64_t batch, bel_kernel_call *call)
{
    bool product = w->op == BEL_OP_GEMM;
    *call = (bel_kernel_call){.op = w->op, .output_count = 1};
    call->input_count = w->op == BEL_OP_CONV || product ? 2 : 3;
    for (int i = 0; i < call->input_count; i++) {
        call->inputs[i] = make_tensor(arena, w->inputs[i], batch);
        call->inputs_last[i] = w->inputs_last[i];
    }
    call->outputs[0] = make_tensor(arena, w->output, batch);
    call->outputs_last[0] = w->output_last;
    const bel_attr_list images = {1, {{.name = "auto_pad", .number = BEL_PAD_SAME_UPPER}}};
    const bel_attr_list flags = {2,
                                 {{.name = "transA", .number = w->transpose_a},
                                  {.name = "transB", .number = w->transpose_b}}};
    bel_prepare prepare = {.attrs = product ? &flags : &images, .arena = arena, .threads = 1};
    bel_op_get(w->op)->prepare(&prepare, call);
    call->workspace = bel_arena_alloc(arena, call->workspace_bytes + 64);
    call->workspace = (char *)call->workspace + 64 - (uintptr_t)call->workspace % 64;
}

typedef struct stage {
    const bel_kernel_call *call;
    bel_kernel_fn *run;
} stage;

static void run_tile(void *argument, int64_t tile)
{
    const stage *s = argument;
    s->run(s->call, tile);
}

static void run_stage(bel_team *team, const bel_kernel_call *call, bel_kernel_fn *run,
                      int64_t tiles)
{
    stage s = {call, run};
    if (run != NULL) bel_team_run(team, run_tile, &s, tiles);
}

// Measures seconds of STEPS times the step's convolutions and products, by the same kernels and
// tiles.
static bel_status *alone(int64_t batch, int threads, double *out_seconds)
{
    bel_arena *arena = bel_arena_create();
    bel_kernel_call calls[WORKS];
    bel_team *team;
    BEL_TRY(bel_team_create(threads, &team));
    for (int i = 0; i < WORKS; i++)
        make_call(arena, &works[i], batch, &calls[i]);
    int64_t begun = 0;
    for (int step = -3; step < STEPS; step++) {
        if (step == 0) begun = bel_clock_ns();
        for (int i = 0; i < WORKS; i++) {
            run_stage(team, &calls[i], calls[i].before, calls[i].before_tiles);
            run_stage(team, &calls[i], calls[i].run, calls[i].tile_count);
            run_stage(team, &calls[i], calls[i].after, calls[i].after_tiles);
        }
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    bel_team_destroy(team);
    bel_arena_destroy(arena);
    return NULL;
}

int main(int argc, char **argv)
{
    return bench_beside(argc, argv, "train_cnn", "cnn", STEPS, alone);
}
