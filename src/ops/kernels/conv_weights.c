// Gradient of a convolution's weights: for each tap and input channel a row of output channels,
// summed over images and positions.
//
// The batch is divided into equal runs of images; only the shapes determine their number. Each part
// sums into separate memory, and `after` adds the parts in order. The sum's bits therefore depend
// only on shapes.
#include <string.h>

#include "ops/kernels/conv.h"

enum { LANES = BEL_PRODUCT_LANES, MOST_ROWS = 32 }; // rows of dy at once

// Packs dy of one group of an image as [position, blocks · LANES].
static void pack_dy(const bel_conv_weights_walk *w, const float *dy, float *out)
{
    const bel_window *window = &w->window;
    for (int64_t row = 0; row < window->out[0]; row++) {
        for (int64_t column = 0; column < window->out[1]; column++, out += w->blocks * LANES) {
            const float *from = dy + row * w->dy.row + column * w->dy.column;
            for (int64_t c = 0; c < w->out; c++)
                out[c] = from[c * w->dy.channel];
        }
    }
}

// An image and the gradient of its output; `b_step` is between neighbors in a row of dy.
typedef struct weights_image {
    bel_conv_source x;
    const float *dy;
    int64_t b_step;
    bel_conv_next next_x, next_dy;
} weights_image;

// Adds output rows [first, end) of one image to the sums of one group.
static void add_rows(const bel_conv_weights_walk *w, weights_image *image, int64_t first,
                     int64_t end, float *sums)
{
    const bel_product_kernels *kernels = bel_product_kernels_get();
    const bel_window *window = &w->window;
    int64_t depth = w->padded.depth, row_floats = w->row_floats;
    const float *x = bel_conv_source_first(&image->x);
    int64_t reach = (window->kernel[0] - 1) * window->dilation[0] - window->pad[0] + 1;
    bel_conv_source_copy(&image->x, (end - 1) * window->stride[0] + reach);
    // Taps of a row whose channels are adjacent are one run of rows of the sums.
    int64_t runs = window->dilation[1] == 1 ? 1 : window->kernel[1];
    int64_t length = window->kernel[1] / runs * depth;
    bel_product_segment segments[MOST_ROWS];
    bel_product_block block = {.segments = segments,
                               .k = window->out[1],
                               .a_step = window->stride[1] * depth,
                               .b_step = image->b_step};
    for (int64_t t = 0; t < window->kernel[0] * runs; t++) {
        int64_t column = t % runs * window->dilation[1];
        block.segment_count = 0;
        for (int64_t i = first; i < end; i++) {
            int64_t row = i * window->stride[0] + t / runs * window->dilation[0] - window->pad[0];
            if (row < 0 || row >= w->padded.source[0]) continue; // only zeros
            segments[block.segment_count++] = (bel_product_segment){
                (row * w->padded.columns + column) * depth, i * window->out[1] * image->b_step};
        }
        if (block.segment_count == 0) continue;
        for (int64_t c = 0; c < row_floats; c += block.columns) {
            int64_t units = bel_product_units(row_floats - c, kernels->width);
            block.columns = units * LANES;
            block.b = image->dy + c;
            for (int64_t i = 0; i < length; i += block.rows) {
                block.rows = bel_product_rows(length - i, kernels->rows_most[units]);
                bel_product_set_rows(&block, x + i, 1, row_floats);
                block.c = sums + (t * length + i) * row_floats + c;
                block.start = block.c;
                bel_conv_fetch(&image->next_x);
                bel_conv_fetch(&image->next_dy);
                kernels->run(&block);
            }
        }
    }
}

// A tile is a part: a run of images, whose sums [group, tap, channel, row_floats] begin its piece
// of the workspace, followed by its padded image and, unless dy is read in place, dy as rows.
static void run_parts(const bel_kernel_call *call, int64_t tile)
{
    const bel_conv_weights_walk *w = call->params;
    int64_t floats = w->sums_floats + w->padded_floats + w->dy_floats;
    float *sums = (float *)call->workspace + tile * floats;
    float *padded = sums + w->sums_floats, *packed = padded + w->padded_floats;
    memset(sums, 0, (size_t)w->sums_floats * sizeof *sums);
    memset(packed, 0, (size_t)w->dy_floats * sizeof *packed);
    if (w->padded_floats > 0) bel_conv_clear_border(&w->padded, padded);
    int64_t first = tile * w->images_per_part, end = first + w->images_per_part;
    if (end > w->n) end = w->n;
    const float *dy = call->inputs[0].data, *x = call->inputs[1].data;
    for (int64_t i = first; i < end; i++) {
        weights_image image = {
            .next_x = bel_conv_next_of(x, w->padded.steps.image, i, end),
            .next_dy = bel_conv_next_of(dy, w->dy.image, i, end),
        };
        for (int64_t g = 0; g < w->groups; g++) {
            image.x = bel_conv_source_of(&w->padded, x + i * w->padded.steps.image,
                                         g * w->padded.depth, padded);
            image.dy = dy + i * w->dy.image + g * w->out * w->dy.channel;
            image.b_step = w->dy.column;
            if (w->dy_floats > 0) {
                pack_dy(w, image.dy, packed);
                image.dy = packed;
                image.b_step = w->blocks * LANES;
            }
            for (int64_t row = 0; row < w->window.out[0]; row += w->row_run) {
                int64_t last = row + w->row_run;
                if (last > w->window.out[0]) last = w->window.out[0];
                add_rows(w, &image, row, last, sums + g * w->sums_floats / w->groups);
            }
        }
    }
}

// Adds the parts of LANES output channels of one group, into [out, depth, tap].
static void run_add_parts(const bel_kernel_call *call, int64_t tile)
{
    const bel_conv_weights_walk *w = call->params;
    int64_t floats = w->sums_floats + w->padded_floats + w->dy_floats;
    int64_t group = tile / w->blocks, channel = tile % w->blocks * LANES;
    int64_t lanes = w->out - channel < LANES ? w->out - channel : LANES;
    int64_t taps = w->window.kernel[0] * w->window.kernel[1], depth = w->padded.depth;
    const float *sums = call->workspace;
    if (w->parts > 0) sums += group * w->sums_floats / w->groups + channel; // else there is no part
    float *dw = (float *)call->outputs[0].data + (group * w->out + channel) * depth * taps;
    for (int64_t i = 0; i < taps * depth; i++) {
        float total[LANES] = {0};
        for (int64_t p = 0; p < w->parts; p++)
            for (int l = 0; l < LANES; l++)
                total[l] += sums[p * floats + i * w->row_floats + l];
        int64_t place = i % depth * taps + i / depth;
        for (int64_t l = 0; l < lanes; l++)
            dw[l * depth * taps + place] = total[l];
    }
}

// Returns eight parts, or up to 32 for a large batch. Many parts keep cores and GPUs busy, but each
// sum needs enough products to outweigh zeroing and adding it, and memory is limited. `positions`:
// of an image's result.
static int64_t images_per_part(int64_t images, int64_t positions, int64_t sums_floats)
{
    enum { LEAST_PARTS = 8, MOST_PARTS = 32, LEAST_IMAGES = 8, LEAST_PRODUCTS = 2048 };
    const int64_t most_floats = 8 << 20;
    int64_t parts = bel_smaller(images / LEAST_IMAGES, MOST_PARTS);
    parts = bel_smaller(parts, images * positions / LEAST_PRODUCTS);
    if (sums_floats > 0) parts = bel_smaller(parts, most_floats / sums_floats);
    if (parts < LEAST_PARTS) parts = LEAST_PARTS;
    return (images + parts - 1) / parts;
}

void bel_conv_prepare_weights(const bel_prepare *prepare, bel_kernel_call *call,
                              const bel_conv_shape *shape)
{
    // In floats: most of a small first-level cache, and a quarter of a small second-level cache.
    enum { FIRST_CACHE = 1 << 13, SECOND_CACHE = 1 << 15 };
    const bel_window *window = &shape->window;
    bel_conv_weights_walk w = {
        .window = *window,
        .dy = bel_image_steps_of(&shape->y, call->inputs_last[0]),
        .n = shape->n,
        .groups = shape->groups,
        .out = shape->out,
        .blocks = (shape->out + LANES - 1) / LANES,
        .padded = {.depth = shape->in,
                   .steps = bel_image_steps_of(&shape->x, call->inputs_last[1])}};
    int64_t reach = (window->out[1] - 1) * window->stride[1] +
                    (window->kernel[1] - 1) * window->dilation[1] + 1;
    w.padded.source[0] = window->in[0];
    w.padded.source[1] = window->in[1];
    w.padded.pad = window->pad[1];
    w.padded.columns = window->pad[1] + window->in[1];
    if (w.padded.columns < reach) w.padded.columns = reach;
    int64_t row = w.padded.columns * shape->in * window->stride[0] + window->out[1] * shape->out;
    w.row_floats = w.blocks * LANES;
    w.sums_floats = w.groups * window->kernel[0] * window->kernel[1] * shape->in * w.row_floats;
    // Many sums are in the second-level cache, too, and longer runs load and store them less often.
    bool many_sums = w.sums_floats / w.groups > FIRST_CACHE;
    w.row_run = (many_sums ? SECOND_CACHE : FIRST_CACHE) / (row > 0 ? row : 1);
    w.row_run = w.row_run < 1 ? 1 : w.row_run > MOST_ROWS ? MOST_ROWS : w.row_run;
    w.images_per_part = images_per_part(w.n, window->out[0] * window->out[1], w.sums_floats);
    w.parts = w.n == 0 ? 0 : (w.n + w.images_per_part - 1) / w.images_per_part;
    w.padded_floats = bel_conv_padded_floats(&w.padded);
    bool in_place = call->inputs_last[0] && shape->out % LANES == 0;
    w.dy_floats = in_place ? 0 : window->out[0] * window->out[1] * w.row_floats;
    call->run = run_parts;
    call->tile_count = w.parts;
    call->after = run_add_parts;
    call->after_tiles = w.groups * w.blocks;
    call->work =
        bel_shape_elements(&shape->y) * shape->in * window->kernel[0] * window->kernel[1] / 8;
    call->workspace_bytes =
        (size_t)(w.parts * (w.sums_floats + w.padded_floats + w.dy_floats)) * sizeof(float);
    if (w.groups == 1) {
        call->tile_elements = LANES * shape->in * window->kernel[0] * window->kernel[1];
    }
    call->params = bel_arena_copy(prepare->arena, &w, sizeof w);
}
