// Convolutions (ops/conv.c). Output and input gradient are one kernel, as on the CPU. Winograd's
// algorithm (ops/kernels/winograd.h), which fast_math allows on the CPU, is not used: the bits of
// the direct sum do not depend on it.
#include "cuda/device.h"
#include "cuda/images.h"
#include "cuda/kernels/conv.h"
#include "ops/kernels/conv.h"

// With fewer channels of a result, or fewer weights of a row of the window, most of a tile is
// empty.
enum { FEW_CHANNELS = 16, FEW_SUMS = 24 };

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bel_status *check_small(int64_t size)
{
    if (size <= INT32_MAX) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED, "there are too many channels for a GPU");
}

// --- Plain ---------------------------------------------------------------------------------------

static bel_status *prepare_plain(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    const bel_conv_shape *shape = call->params;
    bool takes_bias = call->op == BEL_OP_CONV || call->op == BEL_OP_CONV_TRANSPOSE;
    bel_cuda_conv_plain p = {.n = shape->n,
                             .groups = shape->groups,
                             .in = shape->in,
                             .out = shape->out,
                             .is_f64 = call->inputs[0].dtype == BEL_DTYPE_F64,
                             .has_bias = takes_bias && call->input_count > 2};
    BEL_TRY(bel_cuda_windows_of(&shape->window, p.window));
    const char *kernel = call->op == BEL_OP_CONV                ? "conv_plain_output"
                         : call->op == BEL_OP_CONV_GRAD_WEIGHTS ? "conv_plain_weights"
                                                                : "conv_plain_input";
    int64_t blocks = bel_cuda_blocks(bel_shape_elements(&call->outputs[0].shape));
    return bel_cuda_add(build, "conv_plain.cu", kernel, blocks, BEL_CUDA_BLOCK, &p, sizeof p);
}

// --- Output and input gradient -------------------------------------------------------------------

// The walk's params, except those that tiles need.
static bel_status *read_walk(const bel_conv_walk *walk, bel_cuda_conv *out)
{
    const bel_window *w = &walk->window;
    const int64_t *source = walk->input_gradient ? w->out : w->in;
    const int64_t *result = walk->input_gradient ? w->in : w->out;
    BEL_TRY(check_small(walk->groups));
    BEL_TRY(check_small(walk->width * w->kernel[1]));
    BEL_TRY(check_small(walk->padded.depth * w->kernel[1]));
    bel_cuda_conv p = {.n = walk->n,
                       .groups = (int32_t)walk->groups,
                       .width = (int32_t)walk->width,
                       .depth = (int32_t)walk->padded.depth,
                       .source = bel_cuda_steps_of(&walk->padded.steps),
                       .result = bel_cuda_steps_of(&walk->result),
                       .source_last = bel_cuda_is_last(&walk->padded.steps),
                       .result_last = bel_cuda_is_last(&walk->result),
                       .weights_group = walk->weights_group,
                       .weights_depth = walk->weights_depth,
                       .weights_width = walk->weights_width,
                       .gradient = walk->input_gradient,
                       .has_bias = walk->has_bias,
                       .relu = walk->relu};
    BEL_TRY(bel_cuda_windows_of(w, p.window));
    for (int d = 0; d < 2; d++) {
        p.source_size[d] = (int32_t)source[d];
        p.size[d] = (int32_t)result[d];
        p.phases[d] = !walk->input_gradient      ? 1
                      : w->stride[d] < result[d] ? (int32_t)w->stride[d]
                                                 : (int32_t)result[d];
    }
    *out = p;
    return NULL;
}

// Kernels count the elements of a tile's images, and weights, in 32 bits.
static bool fits_tile(const bel_cuda_conv *p, int64_t weights)
{
    int64_t plane = 1; // positions of an image and phase, or fewer
    for (int d = 0; d < 2; d++) {
        int64_t size = p->size[d] / (p->gradient ? p->window[d].stride : 1);
        plane *= size > 0 ? size : 1;
    }
    int64_t images = BEL_CUDA_CONV_SIDE / plane + 2;
    return p->source.image <= INT32_MAX / images && weights <= INT32_MAX;
}

static bel_status *prepare_walk(bel_cuda_build *build)
{
    bel_kernel_call *call = build->call;
    bel_cuda_conv p;
    BEL_TRY(read_walk(call->params, &p));
    int64_t weights = bel_shape_elements(&call->inputs[1].shape);
    if (p.width < FEW_CHANNELS || !fits_tile(&p, weights)) {
        int64_t blocks = bel_cuda_blocks(bel_shape_elements(&call->outputs[0].shape));
        return bel_cuda_add(build, "conv.cu", "conv_each", blocks, BEL_CUDA_BLOCK, &p, sizeof p);
    }
    // The first phase has the most positions; tiles of the others may stay empty.
    int64_t positions = p.n;
    for (int d = 0; d < 2; d++)
        positions *= divide_up(p.size[d], p.gradient ? p.window[d].stride : 1);
    int channels = p.width <= 32 ? 32 : 64;
    p.tiles = divide_up(positions, BEL_CUDA_CONV_SIDE);
    p.width_tiles = (int32_t)divide_up(p.width, channels);
    call->workspace_bytes = (size_t)weights * sizeof(float);
    BEL_TRY(bel_cuda_add(build, "conv.cu", "conv_pack", bel_cuda_blocks(weights), BEL_CUDA_BLOCK,
                         &p, sizeof p));
    int64_t blocks = p.tiles * p.width_tiles * p.groups * p.phases[0] * p.phases[1];
    return bel_cuda_add(build, "conv.cu", channels == 32 ? "conv_tiles_32" : "conv_tiles_64",
                        blocks, BEL_CUDA_CONV_THREADS, &p, sizeof p);
}

// --- Gradient of the weights ---------------------------------------------------------------------

// Kernels count the products of a sum, and the elements of a part's images, in 32 bits.
static bool fits_tiles(const bel_cuda_conv_weights *p)
{
    int64_t most = p->parts == 0 ? 0 : INT32_MAX / 2 / p->images_per_part;
    return p->x.image <= most && p->dy.image <= most;
}

// Adds the kernel whose tiles are least empty. `row`: taps and channels of a row of the window.
static bel_status *add_weights(bel_cuda_build *build, int64_t row, bel_cuda_conv_weights *p)
{
    static const struct tile {
        const char *kernel;
        int rows, columns, threads;
    } few = {"conv_weights_few", 8, 32, 256}, small = {"conv_weights_32", 32, 32, 64},
      large = {"conv_weights_64", 64, 64, 128};
    const struct tile *tile = row <= few.rows                             ? &few
                              : row <= small.rows || p->out <= small.rows ? &small
                                                                          : &large;
    bool each = row * p->out < FEW_SUMS || !fits_tiles(p);
    p->row_tiles = (int32_t)divide_up(row, tile->rows);
    p->column_tiles = (int32_t)divide_up(p->out, tile->columns);
    int64_t blocks = p->parts * p->groups * p->window[0].kernel * p->row_tiles * p->column_tiles;
    if (each || blocks > INT32_MAX) {
        int64_t sums = p->parts * p->groups * p->window[0].kernel * row * p->out;
        return bel_cuda_add(build, "conv_weights.cu", "conv_weights_each", bel_cuda_blocks(sums),
                            BEL_CUDA_BLOCK, p, sizeof *p);
    }
    return bel_cuda_add(build, "conv_weights.cu", tile->kernel, blocks, tile->threads, p,
                        sizeof *p);
}

static bel_status *prepare_weights(bel_cuda_build *build)
{
    bel_kernel_call *call = build->call;
    const bel_conv_weights_walk *walk = call->params;
    const bel_window *w = &walk->window;
    BEL_TRY(check_small(walk->groups));
    BEL_TRY(check_small(walk->out));
    BEL_TRY(check_small(walk->padded.depth * w->kernel[1]));
    bel_cuda_conv_weights p = {.n = walk->n,
                               .images_per_part = walk->images_per_part,
                               .parts = walk->parts,
                               .groups = (int32_t)walk->groups,
                               .depth = (int32_t)walk->padded.depth,
                               .out = (int32_t)walk->out,
                               .x = bel_cuda_steps_of(&walk->padded.steps),
                               .dy = bel_cuda_steps_of(&walk->dy),
                               .x_last = bel_cuda_is_last(&walk->padded.steps),
                               .dy_last = bel_cuda_is_last(&walk->dy)};
    BEL_TRY(bel_cuda_windows_of(w, p.window));
    int64_t weights = bel_shape_elements(&call->outputs[0].shape);
    BEL_TRY(check_small(weights));
    call->workspace_bytes = (size_t)(p.parts * weights) * sizeof(float);
    BEL_TRY(add_weights(build, p.depth * w->kernel[1], &p));
    return bel_cuda_add(build, "conv_weights.cu", "conv_weights_add", bel_cuda_blocks(weights),
                        BEL_CUDA_BLOCK, &p, sizeof p);
}

bel_status *bel_cuda_prepare_conv(bel_cuda_build *build)
{
    bel_kernel_call *call = build->call;
    if (build->prepare->fast_math) {
        bel_prepare exact = *build->prepare;
        exact.fast_math = false;
        bel_op_get(call->op)->prepare(&exact, call);
        call->before = call->after = NULL;
        call->tile_elements = 0;
        call->workspace_bytes = call->packed_bytes = 0;
    }
    bool taken;
    BEL_TRY(bel_cuda_try_cudnn(build, &taken));
    if (taken) return NULL;
    BEL_TRY(bel_cuda_refuse_bf16(call));
    if (bel_prepares_plain(build->prepare, call)) return prepare_plain(build);
    return call->op == BEL_OP_CONV_GRAD_WEIGHTS ? prepare_weights(build) : prepare_walk(build);
}
