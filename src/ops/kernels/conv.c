// Output and input gradient of convolutions. Both are the same loop: a padded source, channels-last
// (for the output: x; for the input gradient: dy), and for each position of the result a fixed list
// of segments of it, times packed weights.
//
// `before` packs the weights into blocks of up to 64 result channels, in the order of the sums;
// only once if they are constant. Each tile then has a run of images and pads them one after
// another into a separate slot in the workspace, unless they can be read in place. With strides the
// input gradient has several *phases*: positions whose distance is the stride read the same taps of
// the window, others read other taps.
#include "ops/kernels/conv.h"

#include <string.h>

#include "ops/kernels/cpu.h"

enum { LANES = BEL_PRODUCT_LANES, MOST_WIDTH = 4 * LANES, MAX_TILES = 16 };

// --- Padding -------------------------------------------------------------------------------------

int64_t bel_conv_padded_floats(const bel_conv_padded *p)
{
    if (p->steps.column == p->depth && p->columns == p->source[1]) return 0;
    return (p->source[0] * p->columns * p->depth + LANES - 1) / LANES * LANES;
}

void bel_conv_clear_border(const bel_conv_padded *p, float *room)
{
    int64_t left = p->pad * p->depth, inside = p->source[1] * p->depth;
    int64_t row = p->columns * p->depth;
    for (int64_t i = 0; i < p->source[0]; i++, room += row) {
        memset(room, 0, (size_t)left * sizeof *room);
        memset(room + left + inside, 0, (size_t)(row - left - inside) * sizeof *room);
    }
}

bel_conv_source bel_conv_source_of(const bel_conv_padded *p, const float *image, int64_t channel,
                                   float *room)
{
    return (bel_conv_source){.padded = p,
                             .image = image + channel * p->steps.channel,
                             .room = bel_conv_padded_floats(p) == 0 ? NULL : room};
}

void bel_conv_source_copy(bel_conv_source *source, int64_t end)
{
    const bel_conv_padded *p = source->padded;
    const bel_image_steps *steps = &p->steps;
    if (source->room == NULL) return;
    const bel_product_kernels *kernels = bel_product_kernels_get();
    end = bel_smaller(end, p->source[0]);
    for (; source->copied < end; source->copied++) {
        const float *from = source->image + source->copied * steps->row;
        float *to = source->room + (source->copied * p->columns + p->pad) * p->depth;
        if (steps->column == p->depth) { // one run of numbers
            memcpy(to, from, (size_t)(p->source[1] * p->depth) * sizeof *to);
        } else if (steps->column == 1) {
            kernels->transpose(from, steps->channel, p->depth, p->source[1], to, p->depth);
        } else {
            kernels->copy(from, steps->column, p->source[1], p->depth, to, p->depth);
        }
    }
}

// --- Walks ---------------------------------------------------------------------------------------

// Taps of one dimension that positions of one phase read, by rising place in the source.
typedef struct tap_list {
    int64_t count, positions; // positions of the result in this phase
    int64_t first;            // the first position
    int64_t step;             // step between positions
    int64_t source_step;      // step of the source between positions
    int64_t *taps, *places;   // places in the source for the first position; unpadded
} tap_list;

// Rows of the result that read the same taps; at the upper and lower edge some taps are outside.
typedef struct conv_band {
    int64_t first, end;
    const bel_product_segment *segments;
    int64_t segment_count;
} conv_band;

struct bel_conv_phase {
    tap_list lists[2];
    conv_band *bands;
    int64_t band_count, k;
    int64_t weights; // offset of its packed weights in a block
};

// Makes a list of taps. Forward, position i of dimension d reads places i · stride + tap · dilation
// - pad of x, for each tap: one phase. For the input gradient the roles are swapped: element j of x
// was read by the positions i of dy with i · stride = j + pad - tap · dilation. The matching taps
// depend only on j modulo the stride, the phase; within it the place in dy moves by 1 with each
// position.
static tap_list make_list(const bel_prepare *prepare, const bel_window *w, int d,
                          bool input_gradient, int64_t phase_index)
{
    size_t bytes = (size_t)w->kernel[d] * sizeof(int64_t);
    tap_list list = {.first = phase_index,
                     .step = input_gradient ? w->stride[d] : 1,
                     .source_step = input_gradient ? 1 : w->stride[d],
                     .taps = bel_arena_alloc(prepare->arena, bytes),
                     .places = bel_arena_alloc(prepare->arena, bytes)};
    int64_t size = input_gradient ? w->in[d] : w->out[d];
    list.positions = size > list.first ? (size - list.first + list.step - 1) / list.step : 0;
    for (int64_t i = 0; i < w->kernel[d]; i++) {
        int64_t tap = input_gradient ? w->kernel[d] - 1 - i : i;
        int64_t place = tap * w->dilation[d] - w->pad[d];
        if (input_gradient) {
            int64_t shifted = list.first - place; // = stride · place in dy
            if (shifted % w->stride[d] != 0) continue;
            place = shifted / w->stride[d];
        }
        list.taps[list.count] = tap;
        list.places[list.count++] = place;
    }
    return list;
}

// Widens the source's rows for a phase.
static void conv_padded_widen(bel_conv_padded *padded, const tap_list *list)
{
    if (list->count == 0 || list->positions == 0) return;
    int64_t low = list->places[0];
    int64_t high = list->places[list->count - 1] + (list->positions - 1) * list->source_step;
    if (-low > padded->pad) padded->pad = -low;
    if (high + 1 > padded->columns) padded->columns = high + 1; // without the border on the left
}

// Returns true if the taps' channels are adjacent in the padded source: one long run of products.
static bool are_neighbors(const tap_list *list)
{
    for (int64_t i = 1; i < list->count; i++)
        if (list->places[i] != list->places[i - 1] + 1) return false;
    return true;
}

// Makes the band of rows of the result, from `first` on, that have the same taps inside the source.
static conv_band make_band(const bel_conv_walk *walk, const bel_conv_phase *phase, int64_t first,
                           const bel_product_segment *segments, int64_t per_row)
{
    const tap_list *rows = &phase->lists[0];
    conv_band band = {.first = first, .end = first};
    int64_t tap = 0, end = 0;
    do {
        int64_t moved = band.end * rows->source_step;
        int64_t low = 0, high = rows->count;
        while (low < high && rows->places[low] + moved < 0)
            low++;
        while (high > low && rows->places[high - 1] + moved >= walk->padded.source[0])
            high--;
        if (band.end == first) tap = low, end = high;
        if (low != tap || high != end) break;
        band.end++;
    } while (band.end < rows->positions);
    band.segments = segments + tap * per_row;
    band.segment_count = (end - tap) * per_row;
    return band;
}

// Makes segments of the padded source; neighbors along a row are one segment.
static void make_segments(const bel_prepare *prepare, const bel_conv_walk *walk,
                          bel_conv_phase *phase)
{
    const tap_list *rows = &phase->lists[0], *columns = &phase->lists[1];
    const bel_conv_padded *p = &walk->padded;
    bool joined = are_neighbors(columns);
    int64_t per_row = columns->count == 0 ? 0 : joined ? 1 : columns->count, b = 0;
    int64_t count = rows->count * per_row;
    phase->k = joined ? columns->count * p->depth : p->depth;
    bel_product_segment *segments =
        bel_arena_alloc(prepare->arena, (size_t)(count + 1) * sizeof *segments);
    for (int64_t s = 0; s < count; s++, b += phase->k * walk->block_width) {
        int64_t row = rows->places[s / per_row], column = columns->places[s % per_row] + p->pad;
        segments[s] =
            (bel_product_segment){(row * p->columns + column) * p->depth, phase->weights + b};
    }
    phase->bands =
        bel_arena_alloc(prepare->arena, (size_t)(rows->positions + 1) * sizeof *phase->bands);
    for (int64_t row = 0; row < rows->positions; row = phase->bands[phase->band_count++].end)
        phase->bands[phase->band_count] = make_band(walk, phase, row, segments, per_row);
}

// Makes lists first, as the padded source must be wide enough for all phases; then segments, which
// are places in it. A phase with an empty list in one dimension reads nothing and writes zeros (or
// the bias).
static void make_phases(const bel_prepare *prepare, bel_conv_walk *walk, const bel_window *w,
                        bool input_gradient)
{
    int64_t phases[2] = {1, 1};
    for (int d = 0; d < 2 && input_gradient; d++)
        phases[d] = w->stride[d] < w->in[d] ? w->stride[d] : w->in[d];
    walk->phase_count = (int)(phases[0] * phases[1]);
    walk->phases =
        bel_arena_alloc(prepare->arena, (size_t)walk->phase_count * sizeof *walk->phases);
    bel_conv_padded *padded = &walk->padded;
    padded->columns = padded->source[1];
    for (int i = 0; i < walk->phase_count; i++) {
        bel_conv_phase *phase = &walk->phases[i];
        for (int d = 0; d < 2; d++) {
            int64_t index = d == 0 ? i / phases[1] : i % phases[1];
            phase->lists[d] = make_list(prepare, w, d, input_gradient, index);
        }
        conv_padded_widen(padded, &phase->lists[1]);
        phase->weights = walk->block_floats;
        walk->block_floats +=
            phase->lists[0].count * phase->lists[1].count * padded->depth * walk->block_width;
    }
    padded->columns += padded->pad;
    for (int i = 0; i < walk->phase_count; i++)
        make_segments(prepare, walk, &walk->phases[i]);
    walk->block_floats += walk->block_width;
}

// --- Calls ---------------------------------------------------------------------------------------

// Returns the result channels of a block.
static int64_t lanes_of(const bel_conv_walk *walk, int64_t block)
{
    int64_t left = walk->width - block * walk->block_width;
    return left < walk->block_width ? left : walk->block_width;
}

// Packs one block of one group.
static void run_pack(const bel_kernel_call *call, int64_t tile)
{
    const bel_conv_walk *walk = call->params;
    int64_t group = tile / walk->blocks, first = tile % walk->blocks * walk->block_width;
    int64_t lanes = lanes_of(walk, tile % walk->blocks);
    const float *weights = call->inputs[1].data;
    weights += group * walk->weights_group + first * walk->weights_width;
    float *to = (float *)call->workspace + tile * walk->block_floats;
    memset(to, 0, (size_t)walk->block_floats * sizeof *to);
    for (int i = 0; i < walk->phase_count; i++) {
        const tap_list *rows = &walk->phases[i].lists[0], *columns = &walk->phases[i].lists[1];
        for (int64_t t = 0; t < rows->count * columns->count; t++) {
            const float *from = weights + rows->taps[t / columns->count] * walk->window_columns +
                                columns->taps[t % columns->count];
            for (int64_t d = 0; d < walk->padded.depth; d++, to += walk->block_width)
                for (int64_t l = 0; l < lanes; l++)
                    to[l] = from[d * walk->weights_depth + l * walk->weights_width];
        }
    }
    if (!walk->has_bias) return;
    const float *bias = (const float *)call->inputs[2].data + group * walk->width + first;
    memcpy(to, bias, (size_t)lanes * sizeof *to);
}

// One block of result channels of one image: `result` is the first of them.
typedef struct walk_block {
    int64_t lanes;
    bel_conv_source *source;
    const float *weights, *bias; // bias NULL: 0
    float *result;
    bel_conv_next *next;
} walk_block;

// Copies sums, MOST_WIDTH a row, to channels that are not adjacent. Rows 2 i and 2 i + 1 go to
// places[i] and `row` later.
static void conv_scatter(const bel_product_block *block, const float *sums, int64_t step,
                         float *result, const int64_t *places, int64_t row)
{
    for (int64_t r = 0; r < block->rows; r++)
        for (int64_t l = 0; l < block->columns; l++)
            result[places[r / 2] + r % 2 * row + l * step] = sums[r * MOST_WIDTH + l];
}

// Returns the positions of the next block when the phase has `left` more and the next one is
// `column` of its row of the result. They may continue in the next row, but each pair of them is in
// one row.
static int64_t rows_of_block(int64_t row_length, int64_t column, int64_t left, int64_t most)
{
    if (row_length % 2 != 0) return bel_product_rows(row_length - column, most);
    int64_t rows = bel_product_rows(left, most);
    return rows > 1 ? rows - rows % 2 : rows;
}

// Computes a band of one phase for a block's result channels. Levels whose registers cannot hold an
// entire block compute it in pieces.
static void walk_band(const bel_conv_walk *walk, const bel_conv_phase *phase, const conv_band *band,
                      const walk_block *at)
{
    const tap_list *rows = &phase->lists[0], *columns = &phase->lists[1];
    const bel_image_steps *steps = &walk->result;
    const bel_product_kernels *kernels = bel_product_kernels_get();
    int64_t units = bel_product_units(at->lanes, kernels->width);
    int64_t most = kernels->rows_most[units];
    // Steps between positions, in the source and in the result, and to the next row's first one. A
    // single column is processed like a row.
    int64_t depth = walk->padded.depth, length = columns->positions;
    int64_t from_step = columns->source_step * depth, to_step = columns->step * steps->column;
    int64_t from_row = rows->source_step * walk->padded.columns * depth;
    int64_t to_row = rows->step * steps->row;
    int64_t left = (band->end - band->first) * length, column = 0, row = band->first;
    const float *from = bel_conv_source_first(at->source) + band->first * from_row;
    int64_t to = (rows->first + band->first * rows->step) * steps->row;
    to += columns->first * steps->column;
    int64_t reach = rows->count > 0 ? rows->places[rows->count - 1] + 1 : 0; // from a row on
    if (length == 1) {
        bel_conv_source_copy(at->source, walk->padded.source[0]);
        length = left;
        from_step = from_row;
        to_step = to_row;
    }
    int64_t from_next = from_row - length * from_step, to_next = to_row - length * to_step;
    bool direct = steps->channel == 1;
    float sums[BEL_PRODUCT_ROWS * MOST_WIDTH];
    bel_product_block block = {.segments = band->segments,
                               .segment_count = band->segment_count,
                               .k = phase->k,
                               .a_row = from_step,
                               .c_row = direct ? to_step : MOST_WIDTH,
                               .a_step = 1,
                               .b_step = walk->block_width,
                               .start_is_row = true};
    int64_t scattered[BEL_PRODUCT_PAIRS], *places = direct ? block.c_rows : scattered;
    for (int64_t i = 0; i < BEL_PRODUCT_PAIRS; i++)
        block.c_rows[i] = 2 * i * MOST_WIDTH;
    for (; left > 0; left -= block.rows) {
        block.rows = rows_of_block(length, column, left, most);
        for (int64_t i = 0; 2 * i < block.rows; i++) {
            int64_t count = bel_smaller(block.rows - 2 * i, 2);
            block.a[i] = from;
            places[i] = to;
            from += count * from_step;
            to += count * to_step;
            __asm__("" : "+r"(from), "+r"(to)); // no vectors: see product_isa.c
            column += count;
            if (column < length) continue;
            column = 0;
            row++;
            from += from_next;
            to += to_next;
        }
        bel_conv_source_copy(at->source, row * rows->source_step + reach);
        for (int64_t l = 0; l < at->lanes; l += block.columns) {
            block.columns = bel_product_units(at->lanes - l, units) * LANES;
            if (block.columns > at->lanes - l) block.columns = at->lanes - l;
            block.b = at->weights + l;
            block.c = direct ? at->result + l : sums;
            block.start = at->bias == NULL ? NULL : at->bias + l;
            bel_conv_fetch(at->next);
            kernels->run(&block);
            if (!direct)
                conv_scatter(&block, sums, steps->channel, at->result + l * steps->channel, places,
                             to_step);
        }
    }
}

static void walk_phase(const bel_conv_walk *walk, const bel_conv_phase *phase, const walk_block *at)
{
    for (int64_t b = 0; b < phase->band_count; b++)
        walk_band(walk, phase, &phase->bands[b], at);
}

// A tile is a run of images. Its slot of the workspace, [rows, columns, depth] after all packed
// weights, holds one padded group of one image after another. Its border stays zero, since
// bel_conv_source_copy writes only the inside.
static void run_walk(const bel_kernel_call *call, int64_t tile)
{
    const bel_conv_walk *walk = call->params;
    const float *packed = call->workspace;
    float *slot = call->workspace;
    if (walk->packs_once) {
        packed = call->inputs[call->input_count - 1].data;
    } else {
        slot += walk->groups * walk->blocks * walk->block_floats;
    }
    if (walk->slot_floats > 0) {
        slot += tile * walk->slot_floats;
        bel_conv_clear_border(&walk->padded, slot);
    }
    int64_t first = tile * walk->images_per_tile, end = first + walk->images_per_tile;
    if (end > walk->n) end = walk->n;
    int64_t from_image = walk->padded.steps.image;
    for (int64_t image = first; image < end; image++) {
        const float *images = call->inputs[0].data, *source = images + image * from_image;
        bel_conv_next next = bel_conv_next_of(images, from_image, image, end);
        float *result = (float *)call->outputs[0].data + image * walk->result.image;
        for (int64_t g = 0; g < walk->groups; g++) {
            bel_conv_source group =
                bel_conv_source_of(&walk->padded, source, g * walk->padded.depth, slot);
            for (int64_t b = 0; b < walk->blocks; b++) {
                const float *weights = packed + (g * walk->blocks + b) * walk->block_floats;
                const float *bias = weights + walk->block_floats - walk->block_width;
                int64_t channel = g * walk->width + b * walk->block_width;
                const walk_block at = {.lanes = lanes_of(walk, b),
                                       .source = &group,
                                       .weights = weights,
                                       .bias = walk->has_bias ? bias : NULL,
                                       .result = result + channel * walk->result.channel,
                                       .next = &next};
                for (int i = 0; i < walk->phase_count; i++)
                    walk_phase(walk, &walk->phases[i], &at);
            }
        }
        if (walk->relu)
            bel_cpu_kernels_get()->unary[BEL_CPU_RELU](result, result, walk->result.image);
    }
}

// The same at every level, as the workspace is.
static int64_t block_width(int64_t channels)
{
    return bel_product_units(channels, MOST_WIDTH / LANES) * LANES;
}

// Chooses tiles only by the number of images. The workspace: packed weights [group, block,
// block_floats], unless they are packed once, then a slot for each tile.
static void conv_choose(const bel_prepare *prepare, bel_kernel_call *call,
                        const bel_conv_shape *shape, bel_conv_walk *walk)
{
    int64_t tiles = walk->n < MAX_TILES ? walk->n : MAX_TILES;
    walk->groups = shape->groups;
    walk->window_columns = shape->window.kernel[1];
    walk->blocks = (walk->width + walk->block_width - 1) / walk->block_width;
    walk->images_per_tile = tiles > 0 ? (walk->n + tiles - 1) / tiles : 1;
    walk->slot_floats = bel_conv_padded_floats(&walk->padded);
    int64_t blocks = walk->groups * walk->blocks;
    unsigned packed_inputs = walk->has_bias ? 1u << 1 | 1u << 2 : 1u << 1;
    size_t packed_bytes = (size_t)(blocks * walk->block_floats) * sizeof(float);
    walk->packs_once = (prepare->fixed & packed_inputs) == packed_inputs;
    call->before = run_pack;
    call->before_tiles = blocks;
    call->run = run_walk;
    call->tile_count = (walk->n + walk->images_per_tile - 1) / walk->images_per_tile;
    call->work = bel_shape_elements(&shape->y) * shape->in * shape->window.kernel[0] *
                 shape->window.kernel[1] / 8;
    call->workspace_bytes = (size_t)(call->tile_count * walk->slot_floats) * sizeof(float);
    if (walk->packs_once) {
        call->packed_bytes = packed_bytes;
    } else {
        call->workspace_bytes += packed_bytes;
    }
    call->params = bel_arena_copy(prepare->arena, walk, sizeof *walk);
}

void bel_conv_prepare_output(const bel_prepare *prepare, bel_kernel_call *call,
                             const bel_conv_shape *shape)
{
    if (bel_winograd_fits(prepare, call, shape)) {
        bel_winograd_prepare(prepare, call, shape);
        return;
    }
    const bel_window *w = &shape->window;
    int64_t taps = w->kernel[0] * w->kernel[1];
    bel_conv_walk walk = {.padded = {.source = {w->in[0], w->in[1]},
                                     .depth = shape->in,
                                     .steps = bel_image_steps_of(&shape->x, call->inputs_last[0])},
                          .result = bel_image_steps_of(&shape->y, call->outputs_last[0]),
                          .n = shape->n,
                          .width = shape->out,
                          .block_width = block_width(shape->out),
                          .weights_group = shape->out * shape->in * taps,
                          .weights_depth = taps,
                          .weights_width = shape->in * taps,
                          .has_bias = call->input_count > 2,
                          .relu = bel_attr_flag(prepare->attrs, BEL_ATTR_RELU),
                          .window = *w};
    make_phases(prepare, &walk, w, false);
    conv_choose(prepare, call, shape, &walk);
}

void bel_conv_prepare_input(const bel_prepare *prepare, bel_kernel_call *call,
                            const bel_conv_shape *shape)
{
    const bel_window *w = &shape->window;
    int64_t taps = w->kernel[0] * w->kernel[1];
    bel_conv_walk walk = {.padded = {.source = {w->out[0], w->out[1]},
                                     .depth = shape->out,
                                     .steps = bel_image_steps_of(&shape->y, call->inputs_last[0])},
                          .result = bel_image_steps_of(&shape->x, call->outputs_last[0]),
                          .n = shape->n,
                          .width = shape->in,
                          .block_width = block_width(shape->in),
                          .weights_group = shape->out * shape->in * taps,
                          .weights_depth = shape->in * taps,
                          .weights_width = taps,
                          .has_bias = call->op == BEL_OP_CONV_TRANSPOSE && call->input_count > 2,
                          .window = *w,
                          .input_gradient = true};
    make_phases(prepare, &walk, w, true);
    conv_choose(prepare, call, shape, &walk);
}
