// Forward pass of GRU and LSTM, and functions shared by both passes. Stages:
//
//   before  tile 0 sorts the rows by length; the others pack the weights of a group of gates into
//           panels [inputs, 16], with the bias as the row of an input that is always 1
//   run     a tile is one direction of some rows. Step by step: input rows [x, 1, h] times the
//           panels, then the gates' functions, which put the new h into the input row
//
// Equations: ONNX GRU and LSTM, opset 17; Cho et al. 2014, eq. 5-8; Hochreiter & Schmidhuber 1997
// in the form of Gers et al. 2000 (forget gate).
#include "ops/kernels/recurrent.h"

#include <string.h>

#include "base/isa.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/product.h"

enum { LANES = BEL_RECURRENT_LANES };

const bel_recurrent_kernels *bel_recurrent_kernels_get(void)
{
    static const bel_recurrent_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_recurrent_kernels)};
    return tables[bel_isa_get()];
}

// --- Offsets -------------------------------------------------------------------------------------

static int64_t *numbers_of(const bel_kernel_call *call)
{
    return call->workspace;
}

float *bel_recurrent_floats(const bel_kernel_call *call, const bel_recurrent_walk *w)
{
    return (float *)(numbers_of(call) + w->numbers);
}

// --- Rows by length ------------------------------------------------------------------------------

int64_t bel_recurrent_length(const bel_kernel_call *call, int input, int64_t t, int64_t row)
{
    if (input < 0) return t;
    const bel_tensor *lengths = &call->inputs[input];
    int64_t length = lengths->dtype == BEL_DTYPE_I64 ? ((const int64_t *)lengths->data)[row]
                                                     : ((const int32_t *)lengths->data)[row];
    if (length >= 0 && length <= t) return length;
    bel_kernel_report(call, length, t + 1);
    return 0;
}

// Counting sort, stable: rows of equal length stay in order.
void bel_recurrent_sort_rows(const bel_kernel_call *call, const bel_recurrent_walk *w)
{
    int64_t n = w->shape.n, t = w->shape.t;
    int64_t *lengths = numbers_of(call), *order = lengths + n, *places = order + n;
    memset(places, 0, (size_t)(t + 2) * sizeof *places);
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = bel_recurrent_length(call, w->operands.lengths, t, i);
        places[t - lengths[i] + 1]++; // the longest first
    }
    for (int64_t i = 0; i < t; i++)
        places[i + 1] += places[i];
    for (int64_t i = 0; i < n; i++)
        order[places[t - lengths[i]]++] = i;
}

bel_recurrent_rows bel_recurrent_rows_of(const bel_kernel_call *call, const bel_recurrent_walk *w,
                                         int64_t tile)
{
    const int64_t *lengths = numbers_of(call);
    int64_t first = tile % w->row_tiles, left = w->shape.n - first;
    return (bel_recurrent_rows){.lengths = lengths,
                                .order = lengths + w->shape.n + first,
                                .count = (left + w->row_tiles - 1) / w->row_tiles,
                                .step = w->row_tiles};
}

// --- Products ------------------------------------------------------------------------------------

void bel_recurrent_multiply(const float *a, int64_t a_stride, int64_t rows, int64_t k,
                            const float *b, const float *start, float *c, int64_t c_stride)
{
    static const bel_product_segment whole = {0, 0};
    const bel_product_kernels *kernels = bel_product_kernels_get();
    int64_t most = kernels->rows_most[1];
    bel_product_block block = {.columns = LANES,
                               .b = b,
                               .segments = &whole,
                               .segment_count = 1,
                               .k = k,
                               .a_step = 1,
                               .b_step = LANES};
    for (int64_t i = 0; i < rows; i += block.rows) {
        block.rows = bel_product_rows(rows - i, most);
        bel_product_set_rows(&block, a + i * a_stride, a_stride, c_stride);
        block.c = c + i * c_stride;
        block.start = start == NULL ? NULL : start + i * c_stride;
        kernels->run(&block);
    }
}

// Panels of the groups of one direction, one after another; each [inputs, LANES].
static int64_t packed_at(const bel_recurrent_walk *w, int64_t d, int64_t group, int64_t panel)
{
    return ((d * w->group_count + group) * w->panels + panel) * w->inputs * LANES;
}

// Columns of a group's panels are its gate's hidden units, 16 a panel; rows are inputs in the order
// of an input row [x, 1, h]. W [gates · hidden, in] and R [gates · hidden, hidden] are transposed.
// Both biases are added to the row of the input that is 1. Rows of a part that the gate does not
// read stay zero.
static void pack_group(const bel_kernel_call *call, const bel_recurrent_walk *w, int64_t d,
                       int64_t group)
{
    const bel_recurrent_shape *s = &w->shape;
    const bel_recurrent_group *g = &w->groups[group];
    const bel_recurrent_operands *o = &w->operands;
    int64_t units = s->gates * s->hidden;
    const float *x_weights = (const float *)call->inputs[o->w].data + d * units * s->in;
    const float *h_weights = (const float *)call->inputs[o->r].data + d * units * s->hidden;
    const float *bias = o->b < 0 ? NULL : (const float *)call->inputs[o->b].data + d * 2 * units;
    float *out = bel_recurrent_floats(call, w) + packed_at(w, d, group, 0);
    memset(out, 0, (size_t)(w->panels * w->inputs * LANES) * sizeof *out);
    for (int64_t c = 0; c < s->hidden; c++) {
        float *column = out + c / LANES * w->inputs * LANES + c % LANES;
        float *one = column + s->in * LANES;
        if (g->x_gate >= 0) {
            int64_t unit = g->x_gate * s->hidden + c;
            for (int64_t i = 0; i < s->in; i++)
                column[i * LANES] = x_weights[unit * s->in + i];
            if (bias != NULL) *one += bias[unit];
        }
        if (g->h_gate >= 0) {
            int64_t unit = g->h_gate * s->hidden + c;
            for (int64_t i = 0; i < s->hidden; i++)
                one[(1 + i) * LANES] = h_weights[unit * s->hidden + i];
            if (bias != NULL) *one += bias[units + unit];
        }
    }
}

// Tile 0 sorts; tile 1 + d · groups + g packs group g of direction d.
static void run_before(const bel_kernel_call *call, int64_t tile)
{
    const bel_recurrent_walk *w = call->params;
    if (tile == 0) {
        bel_recurrent_sort_rows(call, w);
    } else {
        pack_group(call, w, (tile - 1) / w->group_count, (tile - 1) % w->group_count);
    }
}

// --- Forward -------------------------------------------------------------------------------------

// Memory of one tile: input rows [rows, inputs], pre-activations [rows, groups · width], states
// [rows, hidden] (the cell; or h if reset comes first and r · h replaces it), a row.
typedef struct forward {
    const bel_recurrent_walk *w;
    int64_t d;
    float *inputs, *gates, *states, *row;
} forward;

// Pre-activations of groups [first, end): gates [rows, group · width + panel · 16]. A group reads
// only the columns [first, end) of the input rows, where its weights are not zero.
static void multiply_groups(const forward *f, const float *packed, int64_t first, int64_t end,
                            int64_t rows)
{
    const bel_recurrent_walk *w = f->w;
    int64_t stride = w->group_count * w->width;
    for (int64_t g = first; g < end; g++) {
        const bel_recurrent_group *group = &w->groups[g];
        for (int64_t p = 0; p < w->panels; p++) {
            const float *b = packed + packed_at(w, f->d, g, p) + group->first * LANES;
            bel_recurrent_multiply(f->inputs + group->first, w->inputs, rows,
                                   group->end - group->first, b, NULL,
                                   f->gates + g * w->width + p * LANES, stride);
        }
    }
}

static void copy_parts(float *to, const float *from, int64_t parts, const bel_recurrent_walk *w)
{
    for (int64_t p = 0; p < parts; p++)
        memcpy(to + p * w->shape.hidden, from + p * w->width, (size_t)w->shape.hidden * sizeof *to);
}

// Gates [n, z, r, n'] or, if reset comes first, [z, r, n].
static void gru_step(const forward *f, float *gates, float *h, float *state, float *saved)
{
    const bel_recurrent_walk *w = f->w;
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    const bel_recurrent_kernels *kernels = bel_recurrent_kernels_get();
    int64_t width = w->width, n = w->shape.hidden;
    bool reset_last = w->shape.reset_last;
    float *candidate = gates + (reset_last ? 0 : 2 * width), *z = gates + (reset_last ? width : 0);
    if (reset_last) {
        cpu->unary[BEL_CPU_SIGMOID](z, z, 2 * width);
        kernels->add_product(candidate, z + width, gates + 3 * width, n);
    } else {
        memcpy(h, state, (size_t)n * sizeof *h);
    }
    cpu->unary[BEL_CPU_TANH](candidate, candidate, n);
    kernels->gru_state(candidate, z, h, n);
    if (!reset_last) memcpy(state, h, (size_t)n * sizeof *h);
    copy_parts(saved, gates, w->shape.saved_parts, w);
}

// Computes z and r of rows, and replaces h by r · h.
static void gru_reset(const forward *f, int64_t rows)
{
    const bel_recurrent_walk *w = f->w;
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    for (int64_t i = 0; i < rows; i++) {
        float *z = f->gates + i * w->group_count * w->width;
        float *h = f->inputs + i * w->inputs + w->shape.in + 1;
        cpu->unary[BEL_CPU_SIGMOID](z, z, 2 * w->width);
        cpu->binary[BEL_CPU_MUL](h, z + w->width, h, w->shape.hidden);
    }
}

// Gates [i, o, f, c], `width` apart. c' = f c + i · tanh(candidate); h = o · tanh(c'). Saves for
// the gradient: the four activations and the cell.
static void lstm_step(const forward *f, float *gates, float *h, float *cell, float *saved)
{
    const bel_recurrent_walk *w = f->w;
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    int64_t width = w->width, n = w->shape.hidden;
    cpu->unary[BEL_CPU_SIGMOID](gates, gates, 3 * width);
    cpu->unary[BEL_CPU_TANH](gates + 3 * width, gates + 3 * width, n);
    bel_recurrent_kernels_get()->lstm_cell(gates, width, cell, n);
    cpu->unary[BEL_CPU_TANH](cell, f->row, n);
    cpu->binary[BEL_CPU_MUL](gates + width, f->row, h, n);
    copy_parts(saved, gates, 4, w);
    memcpy(saved + 4 * n, cell, (size_t)n * sizeof *cell);
}

// One step of the first `active` rows.
static void run_step(const bel_kernel_call *call, const forward *f, const bel_recurrent_rows *rows,
                     int64_t active, int64_t step)
{
    const bel_recurrent_walk *w = f->w;
    const bel_recurrent_shape *s = &w->shape;
    const float *x = call->inputs[w->operands.x].data, *packed = bel_recurrent_floats(call, w);
    float *y = call->outputs[w->operands.out_y].data;
    float *saved = call->outputs[w->operands.out_saved].data;
    for (int64_t i = 0; i < active; i++) {
        int64_t time = bel_recurrent_time(s, f->d, bel_recurrent_row_length(rows, i), step);
        memcpy(f->inputs + i * w->inputs,
               x + bel_recurrent_x_at(s, bel_recurrent_row(rows, i), time),
               (size_t)s->in * sizeof *x);
    }
    bool reset_first = !s->lstm && !s->reset_last;
    multiply_groups(f, packed, 0, reset_first ? 2 : w->group_count, active);
    if (reset_first) {
        gru_reset(f, active);
        multiply_groups(f, packed, 2, 3, active);
    }
    for (int64_t i = 0; i < active; i++) {
        int64_t row = bel_recurrent_row(rows, i);
        int64_t time = bel_recurrent_time(s, f->d, rows->lengths[row], step);
        float *gates = f->gates + i * w->group_count * w->width;
        float *h = f->inputs + i * w->inputs + s->in + 1, *state = f->states + i * s->hidden;
        float *save = saved + bel_recurrent_saved_at(s, f->d, row, time);
        if (s->lstm) {
            lstm_step(f, gates, h, state, save);
        } else {
            gru_step(f, gates, h, state, save);
        }
        memcpy(y + bel_recurrent_y_at(s, f->d, row, time), h, (size_t)s->hidden * sizeof *h);
    }
}

// Writes the last states, and zeros after each row's length.
static void finish_rows(const bel_kernel_call *call, const forward *f,
                        const bel_recurrent_rows *rows)
{
    const bel_recurrent_walk *w = f->w;
    const bel_recurrent_shape *s = &w->shape;
    const bel_recurrent_operands *o = &w->operands;
    size_t bytes = (size_t)s->hidden * sizeof(float);
    for (int64_t i = 0; i < rows->count; i++) {
        int64_t row = bel_recurrent_row(rows, i), at = bel_recurrent_state_at(s, f->d, row);
        memcpy((float *)call->outputs[o->out_state[0]].data + at,
               f->inputs + i * w->inputs + s->in + 1, bytes);
        if (s->lstm) {
            memcpy((float *)call->outputs[o->out_state[1]].data + at, f->states + i * s->hidden,
                   bytes);
        }
        for (int64_t time = rows->lengths[row]; time < s->t; time++) {
            float *y = call->outputs[o->out_y].data, *saved = call->outputs[o->out_saved].data;
            memset(y + bel_recurrent_y_at(s, f->d, row, time), 0, bytes);
            memset(saved + bel_recurrent_saved_at(s, f->d, row, time), 0,
                   bytes * (size_t)s->saved_parts);
        }
    }
}

// Sets the initial states: zeros, as the memory is, or inputs. h is in the input rows and, if reset
// comes first, also separate.
static void begin_rows(const bel_kernel_call *call, const forward *f,
                       const bel_recurrent_rows *rows)
{
    const bel_recurrent_walk *w = f->w;
    const bel_recurrent_shape *s = &w->shape;
    const int *first = w->operands.first;
    size_t bytes = (size_t)s->hidden * sizeof(float);
    for (int64_t i = 0; i < rows->count; i++) {
        float *row = f->inputs + i * w->inputs, *state = f->states + i * s->hidden;
        int64_t at = bel_recurrent_state_at(s, f->d, bel_recurrent_row(rows, i));
        row[s->in] = 1.0f;
        if (first[0] >= 0)
            memcpy(row + s->in + 1, (const float *)call->inputs[first[0]].data + at, bytes);
        if (!s->lstm) memcpy(state, row + s->in + 1, bytes);
        if (first[1] >= 0) memcpy(state, (const float *)call->inputs[first[1]].data + at, bytes);
    }
}

// A tile is one direction of every row_tiles-th of the rows by length, so tiles have equal work.
// The longest come first, so the rows that are active at a step are the first `active` of them.
static void run_forward(const bel_kernel_call *call, int64_t tile)
{
    const bel_recurrent_walk *w = call->params;
    const bel_recurrent_shape *s = &w->shape;
    bel_recurrent_rows rows = bel_recurrent_rows_of(call, w, tile);
    float *memory = bel_recurrent_floats(call, w) + w->packed + tile * w->tile;
    forward f = {.w = w, .d = tile / w->row_tiles, .inputs = memory};
    f.gates = f.inputs + w->tile_rows * w->inputs;
    f.states = f.gates + w->tile_rows * w->group_count * w->width;
    f.row = f.states + w->tile_rows * s->hidden;
    memset(memory, 0, (size_t)w->tile * sizeof *memory);
    begin_rows(call, &f, &rows);
    int64_t active = rows.count;
    for (int64_t step = 0; step < s->t; step++) {
        while (active > 0 && bel_recurrent_row_length(&rows, active - 1) <= step)
            active--;
        if (active == 0) break;
        run_step(call, &f, &rows, active, step);
    }
    finish_rows(call, &f, &rows);
}

// --- Choice --------------------------------------------------------------------------------------

// Divides rows into an even number of tiles of at most MOST, so that two threads have equal work.
static void choose_tiles(bel_recurrent_walk *w)
{
    enum { MOST = 16, LEAST = 4 };
    int64_t n = w->shape.n, tiles = (n + MOST - 1) / MOST;
    if (tiles % 2 == 1 && n >= 2 * LEAST) tiles++;
    w->row_tiles = tiles < 1 ? 1 : tiles;
    w->tile_rows = (n + w->row_tiles - 1) / w->row_tiles;
}

void bel_recurrent_walk_init(bel_recurrent_walk *w, const bel_recurrent_shape *shape,
                             const bel_recurrent_operands *operands)
{
    int64_t one = shape->in, end = shape->in + 1 + shape->hidden;
    *w = (bel_recurrent_walk){.shape = *shape, .operands = *operands, .inputs = end};
    if (!shape->lstm && shape->reset_last) {
        const bel_recurrent_group groups[] = {
            {2, -1, 0, one + 1}, {0, 0, 0, end}, {1, 1, 0, end}, {-1, 2, one, end}};
        memcpy(w->groups, groups, sizeof groups);
        w->group_count = 4;
    } else {
        w->group_count = shape->gates;
        for (int g = 0; g < (int)shape->gates; g++)
            w->groups[g] = (bel_recurrent_group){g, g, 0, end};
    }
    w->panels = (shape->hidden + LANES - 1) / LANES;
    w->width = w->panels * LANES;
    choose_tiles(w);
    w->numbers = (2 * shape->n + shape->t + 2 + 7) / 8 * 8;
}

void bel_recurrent_prepare_forward(const bel_prepare *prepare, bel_kernel_call *call,
                                   const bel_recurrent_shape *shape,
                                   const bel_recurrent_operands *operands)
{
    bel_recurrent_walk w;
    bel_recurrent_walk_init(&w, shape, operands);
    w.packed = packed_at(&w, shape->directions, 0, 0);
    w.tile = w.tile_rows * (w.inputs + w.group_count * w.width + shape->hidden) + w.width;
    w.tile = (w.tile + LANES - 1) / LANES * LANES;
    call->before = run_before;
    call->before_tiles = 1 + shape->directions * w.group_count;
    call->run = run_forward;
    call->tile_count = shape->directions * w.row_tiles;
    call->work =
        shape->n * shape->t * shape->directions * shape->gates * shape->hidden * w.inputs / 8;
    call->workspace_bytes = (size_t)w.numbers * sizeof(int64_t) +
                            (size_t)(w.packed + call->tile_count * w.tile) * sizeof(float);
    call->params = bel_arena_copy(prepare->arena, &w, sizeof w);
}
