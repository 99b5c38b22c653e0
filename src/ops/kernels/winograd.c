// Winograd convolution (winograd.h). An image is divided into patches, each of which gives 2 × 2
// results, and patches into strips of some rows of them. A strip's patches are transformed, [point,
// patch, channel]. Each point is a matrix product with the same point of the transformed weights.
// The results, [point, patch, result channel], are transformed back. A strip stays in the
// second-level cache.
//
// Tiles are runs of strips, at most MAX_TILES of them, determined by shapes only. Weights are
// transformed once, in double, and rounded once. A strip's pixels are copied with a border of
// zeros.
#include "ops/kernels/winograd.h"

#include <string.h>

#include "base/isa.h"
#include "ops/kernels/conv.h"

enum {
    SIDE = 4, // side of a patch
    STEP = 2, // distance of patches
    WINDOW = 3,
    LANES = BEL_PRODUCT_LANES,
    STRIP_PATCHES = 16, // at least, if the image has enough
    MAX_TILES = 16,
};

typedef struct walk {
    int64_t n, in, out; // channels
    int64_t pad[2];
    int64_t size[2], result_size[2];
    int64_t patches[2];             // rows and columns of patches
    int64_t rows_per_strip, strips; // per image
    int64_t strips_per_tile;        // over all images
    int64_t strip_patches;          // maximum
    int64_t pixel_floats;           // for a strip with its border
    int64_t slot_floats;            // for a tile
    bool has_bias, relu;
} walk;

static const bel_winograd_kernels *kernels_get(void)
{
    static const bel_winograd_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_winograd_kernels)};
    return tables[bel_isa_get()];
}

// --- Weights -------------------------------------------------------------------------------------

// G g: rows (1 0 0), (1 1 1) / 2, (1 -1 1) / 2, (0 0 1).
static void turn_taps(const double g[WINDOW], double out[SIDE])
{
    out[0] = g[0];
    out[1] = (g[0] + g[1] + g[2]) / 2;
    out[2] = (g[0] - g[1] + g[2]) / 2;
    out[3] = g[2];
}

// A tile is an input channel of w [out, in, 3, 3]: its weights go to [point, in, out]. The bias
// follows all of them.
static void run_pack(const bel_kernel_call *call, int64_t tile)
{
    const walk *k = call->params;
    const float *weights = call->inputs[1].data;
    float *to = call->workspace;
    for (int64_t o = 0; o < k->out; o++) {
        const float *taps = weights + (o * k->in + tile) * WINDOW * WINDOW;
        double half[SIDE][WINDOW], whole[SIDE][SIDE];
        for (int j = 0; j < WINDOW; j++) {
            double column[WINDOW] = {(double)taps[j], (double)taps[WINDOW + j],
                                     (double)taps[2 * WINDOW + j]};
            double turned[SIDE];
            turn_taps(column, turned);
            for (int i = 0; i < SIDE; i++)
                half[i][j] = turned[i];
        }
        for (int i = 0; i < SIDE; i++) {
            turn_taps(half[i], whole[i]);
            for (int j = 0; j < SIDE; j++)
                to[((i * SIDE + j) * k->in + tile) * k->out + o] = (float)whole[i][j];
        }
    }
    if (tile > 0 || !k->has_bias) return;
    memcpy(to + BEL_WINOGRAD_POINTS * k->in * k->out, call->inputs[2].data,
           (size_t)k->out * sizeof *to);
}

// --- Strips --------------------------------------------------------------------------------------

typedef struct strip {
    const float *image;
    float *result;
    int64_t first, rows, patches;      // rows of patches
    float *pixels, *turned, *products; // in the tile's slot
} strip;

// Returns the step between points of a strip's patches: a cache line more than their size, as 16
// lines a power of two apart would evict each other from the first level.
static int64_t point_step(const strip *s, int64_t channels)
{
    return s->patches * channels + LANES;
}

static int64_t strip_columns(const walk *k)
{
    return STEP * k->patches[1] + SIDE - STEP;
}

// Copies all rows of pixels that its patches read. Borders to the left and right are zeros from the
// start.
static void copy_pixels(const walk *k, const strip *s)
{
    int64_t row_floats = strip_columns(k) * k->in, border = k->pad[1] * k->in;
    float *to = s->pixels;
    for (int64_t i = 0; i < STEP * s->rows + SIDE - STEP; i++, to += row_floats) {
        int64_t row = s->first * STEP - k->pad[0] + i;
        if (row < 0 || row >= k->size[0]) {
            memset(to, 0, (size_t)row_floats * sizeof *to);
        } else {
            memcpy(to + border, s->image + row * k->size[1] * k->in,
                   (size_t)(k->size[1] * k->in) * sizeof *to);
        }
    }
}

static void turn_patches(const walk *k, const strip *s)
{
    const bel_winograd_kernels *kernels = kernels_get();
    int64_t row_floats = strip_columns(k) * k->in;
    for (int64_t r = 0; r < s->rows; r++)
        kernels->patches(s->pixels + r * STEP * row_floats, row_floats, k->in, k->patches[1],
                         s->turned + r * k->patches[1] * k->in, point_step(s, k->in));
}

// Rows of a block are the same patches at consecutive points.
static void walk_multiply(const walk *k, const strip *s, const float *weights)
{
    const bel_product_kernels *kernels = bel_product_kernels_get();
    const bel_product_segment all = {0, 0};
    int64_t units = bel_product_units(k->out, kernels->width);
    int64_t a_step = point_step(s, k->in), c_step = point_step(s, k->out);
    bel_product_block block = {
        .segments = &all, .segment_count = 1, .k = k->in, .a_step = 1, .b_step = k->out};
    for (int64_t p = 0; p < s->patches; p += block.rows) {
        block.rows = bel_product_rows(s->patches - p, kernels->rows_most[units]);
        bel_product_set_rows(&block, s->turned + p * k->in, k->in, k->out);
        float *c = s->products + p * k->out;
        const float *b = weights;
        for (int e = 0; e < BEL_WINOGRAD_POINTS; e++, c += c_step, b += k->in * k->out) {
            for (int64_t o = 0; o < k->out; o += block.columns) {
                block.columns = bel_product_units(k->out - o, units) * LANES;
                block.b = b + o;
                block.c = c + o;
                kernels->run(&block);
            }
            for (int64_t i = 0; 2 * i < block.rows; i++)
                block.a[i] += a_step;
        }
    }
}

static void turn_back(const walk *k, const strip *s, const float *bias)
{
    const bel_winograd_kernels *kernels = kernels_get();
    int64_t row_floats = k->result_size[1] * k->out;
    for (int64_t r = 0; r < s->rows; r++) {
        int64_t row = (s->first + r) * STEP;
        float *upper = s->result + row * row_floats;
        float *lower = row + 1 < k->result_size[0] ? upper + row_floats : NULL;
        kernels->results(s->products + r * k->patches[1] * k->out, point_step(s, k->out), k->out,
                         k->patches[1], bias, k->relu, k->result_size[1], upper, lower);
    }
}

// A slot of the workspace has pixels with their border, transformed patches, products.
static void run_walk(const bel_kernel_call *call, int64_t tile)
{
    const walk *k = call->params;
    const float *weights = call->inputs[call->input_count - 1].data;
    const float *bias = k->has_bias ? weights + BEL_WINOGRAD_POINTS * k->in * k->out : NULL;
    strip s = {.pixels = (float *)call->workspace + tile * k->slot_floats};
    s.turned = s.pixels + k->pixel_floats;
    s.products = s.turned + BEL_WINOGRAD_POINTS * (k->strip_patches * k->in + LANES);
    memset(s.pixels, 0, (size_t)k->pixel_floats * sizeof *s.pixels);
    int64_t end = (tile + 1) * k->strips_per_tile, count = k->n * k->strips;
    for (int64_t i = tile * k->strips_per_tile; i < end && i < count; i++) {
        int64_t image = i / k->strips;
        s.image = (const float *)call->inputs[0].data + image * k->size[0] * k->size[1] * k->in;
        s.result =
            (float *)call->outputs[0].data + image * k->result_size[0] * k->result_size[1] * k->out;
        s.first = i % k->strips * k->rows_per_strip;
        s.rows = k->patches[0] - s.first;
        if (s.rows > k->rows_per_strip) s.rows = k->rows_per_strip;
        s.patches = s.rows * k->patches[1];
        copy_pixels(k, &s);
        turn_patches(k, &s);
        walk_multiply(k, &s, weights);
        turn_back(k, &s, bias);
    }
}

// --- Choice --------------------------------------------------------------------------------------

bool bel_winograd_fits(const bel_prepare *prepare, const bel_kernel_call *call,
                       const bel_conv_shape *shape)
{
    const bel_window *w = &shape->window;
    bool window = true;
    for (int d = 0; d < 2; d++)
        window = window && w->kernel[d] == WINDOW && w->stride[d] == 1 && w->dilation[d] == 1;
    unsigned packed = call->input_count > 2 ? 1u << 1 | 1u << 2 : 1u << 1;
    return prepare->fast_math && window && shape->groups == 1 && shape->in % LANES == 0 &&
           shape->out % LANES == 0 && call->inputs_last[0] && call->outputs_last[0] &&
           (prepare->fixed & packed) == packed;
}

void bel_winograd_prepare(const bel_prepare *prepare, bel_kernel_call *call,
                          const bel_conv_shape *shape)
{
    const bel_window *w = &shape->window;
    walk k = {.n = shape->n,
              .in = shape->in,
              .out = shape->out,
              .has_bias = call->input_count > 2,
              .relu = bel_attr_flag(prepare->attrs, BEL_ATTR_RELU)};
    for (int d = 0; d < 2; d++) {
        k.pad[d] = w->pad[d];
        k.size[d] = w->in[d];
        k.result_size[d] = w->out[d];
        k.patches[d] = (w->out[d] + STEP - 1) / STEP;
    }
    k.rows_per_strip = (STRIP_PATCHES + k.patches[1] - 1) / k.patches[1];
    if (k.rows_per_strip > k.patches[0]) k.rows_per_strip = k.patches[0];
    k.strips = (k.patches[0] + k.rows_per_strip - 1) / k.rows_per_strip;
    k.strip_patches = k.rows_per_strip * k.patches[1];
    int64_t count = k.n * k.strips, tiles = count < MAX_TILES ? count : MAX_TILES;
    k.strips_per_tile = tiles > 0 ? (count + tiles - 1) / tiles : 1;
    k.pixel_floats = (STEP * k.rows_per_strip + SIDE - STEP) * strip_columns(&k) * k.in;
    k.slot_floats =
        k.pixel_floats + BEL_WINOGRAD_POINTS * (k.strip_patches * (k.in + k.out) + 2 * LANES);
    call->before = run_pack;
    call->before_tiles = k.in;
    call->packed_bytes = (size_t)(BEL_WINOGRAD_POINTS * k.in * k.out + k.out) * sizeof(float);
    call->run = run_walk;
    call->tile_count = (count + k.strips_per_tile - 1) / k.strips_per_tile;
    call->workspace_bytes = (size_t)(call->tile_count * k.slot_floats) * sizeof(float);
    call->work = k.n * k.patches[0] * k.patches[1] * BEL_WINOGRAD_POINTS * k.in * k.out / 8;
    call->params = bel_arena_copy(prepare->arena, &k, sizeof k);
}
