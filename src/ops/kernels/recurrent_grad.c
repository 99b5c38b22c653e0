// Backward pass of GRU and LSTM, in three stages:
//
//   before  tile 0 sorts the rows by length; the others pack R and W into panels [gate units, 16]
//   run     a tile is one direction of some rows, as in the forward pass. Step by step from the
//           last one on: gradients before the gates' functions, then their product with R, which
//           goes to the previous step. Keeps for `after`, packed without padding, input rows and
//           gradients
//   after   gradients of weights and bias: a tile is some gate units of one group, summed over all
//           steps in the order of tiles; then dx: a tile is the rows of a tile of `run`
#include <string.h>

#include "ops/kernels/cpu.h"
#include "ops/kernels/product.h"
#include "ops/kernels/recurrent.h"

enum {
    LANES = BEL_RECURRENT_LANES,
    QUAD = 4,              // panels of gate units in a tile of `after`
    STEPS_AT_A_TIME = 128, // summed at once: their panel stays in the first-level cache
};

typedef struct gradient_walk {
    bel_recurrent_walk w;                   // first: GPUs read only this member
    int64_t first_h, end_h, first_x, end_x; // groups with a gate of R, of W
    int64_t x_panels;                       // panels of dx
    int64_t columns;                 // columns of a kept input row: inputs, then r · h if it is
                                     // used
    int64_t r_packed, x_packed;      // floats per direction
    int64_t panel_rows;              // rows of kept gradients: all steps of a tile, and one more
    int64_t kept_inputs, kept_gates; // floats in a tile, followed by its other memory
    int64_t quads;                   // per group
    int64_t sums_at;                 // after all tiles
} gradient_walk;

// Packs gate units of the groups from `first` on times 16 columns of W or R, in panels.
static void pack_units(const gradient_walk *g, const float *weights, int64_t columns, bool of_r,
                       float *out)
{
    const bel_recurrent_walk *w = &g->w;
    int64_t first = of_r ? g->first_h : g->first_x, end = of_r ? g->end_h : g->end_x;
    for (int64_t from = 0; from < columns; from += LANES) {
        int64_t lanes = columns - from < LANES ? columns - from : LANES;
        for (int64_t group = first; group < end; group++) {
            int gate = of_r ? w->groups[group].h_gate : w->groups[group].x_gate;
            for (int64_t c = 0; c < w->width; c++, out += LANES) {
                memset(out, 0, LANES * sizeof *out);
                if (c >= w->shape.hidden) continue;
                memcpy(out, weights + (gate * w->shape.hidden + c) * columns + from,
                       (size_t)lanes * sizeof *out);
            }
        }
    }
}

// Tile 0 sorts the rows; tiles 1 + 2 d and 2 + 2 d pack R and W of direction d.
static void run_before(const bel_kernel_call *call, int64_t tile)
{
    const gradient_walk *g = call->params;
    const bel_recurrent_shape *s = &g->w.shape;
    float *packed = bel_recurrent_floats(call, &g->w);
    if (tile == 0) {
        bel_recurrent_sort_rows(call, &g->w);
        return;
    }
    int64_t d = (tile - 1) / 2, units = s->gates * s->hidden;
    bool of_r = (tile - 1) % 2 == 0;
    if (!of_r && !g->w.operands.dx) return;
    packed += d * (g->r_packed + g->x_packed) + (of_r ? 0 : g->r_packed);
    int64_t columns = of_r ? s->hidden : s->in;
    const float *weights = call->inputs[of_r ? g->w.operands.r : g->w.operands.w].data;
    pack_units(g, weights + d * units * columns, columns, of_r, packed);
}

// --- Steps ---------------------------------------------------------------------------------------

// Memory of one tile. `gates` [rows, groups · width]: gradients of one step; `dh` and `dp` [rows,
// width], `dc` [rows, hidden].
typedef struct backward {
    const bel_kernel_call *call;
    const gradient_walk *g;
    int64_t d;
    bel_recurrent_rows rows;
    float *inputs, *kept; // [steps, columns]; [groups · panels][panel_rows, 16]
    float *gates, *dh, *dp, *dc, *row;
} backward;

static const float *input_at(const backward *b, int operand, int64_t at)
{
    return operand < 0 ? NULL : (const float *)b->call->inputs[operand].data + at;
}

static float *tile_memory(const bel_kernel_call *call, const gradient_walk *g, int64_t tile)
{
    return bel_recurrent_floats(call, &g->w) + g->w.packed + tile * g->w.tile;
}

static void add_vector(const float *x, float *sum, int64_t n)
{
    if (x != NULL) bel_cpu_kernels_get()->binary[BEL_CPU_ADD](sum, x, sum, n);
}

// A row's kept input [x, 1, h, r · h]; returns h, that of the step before.
static const float *keep_inputs(const backward *b, int64_t row, int64_t step, const float *saved,
                                float *out)
{
    const bel_recurrent_shape *s = &b->g->w.shape;
    const bel_recurrent_operands *o = &b->g->w.operands;
    int64_t length = b->rows.lengths[row], n = s->hidden;
    int64_t time = bel_recurrent_time(s, b->d, length, step);
    memcpy(out, input_at(b, o->x, bel_recurrent_x_at(s, row, time)), (size_t)s->in * sizeof *out);
    float *h = out + s->in + 1;
    out[s->in] = 1.0f;
    if (step == 0) {
        memset(h, 0, (size_t)n * sizeof *h);
    } else {
        time = bel_recurrent_time(s, b->d, length, step - 1);
        memcpy(h, input_at(b, o->y, bel_recurrent_y_at(s, b->d, row, time)), (size_t)n * sizeof *h);
    }
    if (!s->lstm && !s->reset_last) {
        bel_cpu_kernels_get()->binary[BEL_CPU_MUL](saved + n, h, h + n, n); // [z, r, n]
    }
    return h;
}

// Computes gradients of the gates of one row at one step, into gates [group, width]; dh [width]
// keeps the direct part for the previous state, through z.
static void gru_row(const backward *b, int64_t i, const float *saved, const float *h)
{
    const bel_recurrent_walk *w = &b->g->w;
    const bel_recurrent_kernels *kernels = bel_recurrent_kernels_get();
    int64_t n = w->shape.hidden, width = w->width;
    float *gates = b->gates + i * w->group_count * width, *dh = b->dh + i * width;
    if (w->shape.reset_last) { // [n, z, r, n']
        kernels->gru_grad(saved, saved + n, h, dh, gates, gates + width, n);
        kernels->gru_reset_grad(gates, saved + 2 * n, saved + 3 * n, gates + 2 * width,
                                gates + 3 * width, n);
    } else { // [z, r, n]; r follows when the gradient of r · h is known
        kernels->gru_grad(saved + 2 * n, saved, h, dh, gates + 2 * width, gates, n);
    }
}

// The same for LSTM. All of dh passes through the gates, so it becomes zero; dc [hidden] passes to
// the previous cell. Saved: [i, o, f, c, cell], each [hidden].
static void lstm_row(const backward *b, int64_t i, int64_t row, int64_t step, const float *saved)
{
    const bel_recurrent_walk *w = &b->g->w;
    const bel_recurrent_shape *s = &w->shape;
    int64_t n = s->hidden;
    const float *cell_before = b->row + n; // zeros
    if (step > 0) {
        int64_t time = bel_recurrent_time(s, b->d, b->rows.lengths[row], step - 1);
        int64_t at = bel_recurrent_saved_at(s, b->d, row, time) + 4 * n;
        cell_before = input_at(b, w->operands.saved, at);
    }
    bel_cpu_kernels_get()->unary[BEL_CPU_TANH](saved + 4 * n, b->row, n);
    bel_recurrent_kernels_get()->lstm_grad(saved, n, cell_before, b->row, b->dh + i * w->width,
                                           b->dc + i * n, b->gates + i * w->group_count * w->width,
                                           w->width, n);
    memset(b->dh + i * w->width, 0, (size_t)n * sizeof(float));
}

// dh += gradients of groups [first, end) · R
static void multiply_r(const backward *b, int64_t first, int64_t end, int64_t active, bool add,
                       float *out)
{
    const gradient_walk *g = b->g;
    const bel_recurrent_walk *w = &g->w;
    int64_t all = (g->end_h - g->first_h) * w->width, stride = w->group_count * w->width;
    const float *packed = bel_recurrent_floats(b->call, w) + b->d * (g->r_packed + g->x_packed);
    for (int64_t p = 0; p < w->panels; p++) {
        const float *panel = packed + (p * all + (first - g->first_h) * w->width) * LANES;
        float *c = out + p * LANES;
        bel_recurrent_multiply(b->gates + first * w->width, stride, active,
                               (end - first) * w->width, panel, add ? c : NULL, c, w->width);
    }
}

// Computes dr and, through r · h, dh of the rows if reset comes first.
static void gru_reset_rows(const backward *b, int64_t active, int64_t step, int64_t first_kept)
{
    const bel_recurrent_walk *w = &b->g->w;
    const bel_recurrent_shape *s = &w->shape;
    int64_t n = s->hidden;
    multiply_r(b, 2, 3, active, false, b->dp);
    for (int64_t i = 0; i < active; i++) {
        const float *kept = b->inputs + (first_kept + i) * b->g->columns;
        const float *h = kept + s->in + 1;
        int64_t row = bel_recurrent_row(&b->rows, i);
        int64_t time = bel_recurrent_time(s, b->d, b->rows.lengths[row], step);
        int64_t saved = bel_recurrent_saved_at(s, b->d, row, time);
        const float *r = input_at(b, w->operands.saved, saved + n);
        float *gates = b->gates + i * w->group_count * w->width, *dp = b->dp + i * w->width;
        bel_recurrent_kernels_get()->gru_reset_grad(dp, r, h, gates + w->width, b->row, n);
        add_vector(b->row, b->dh + i * w->width, n);
    }
}

// One step of the first `active` rows, whose kept rows begin at `first_kept`.
static void run_step(const backward *b, int64_t active, int64_t step, int64_t first_kept)
{
    const gradient_walk *g = b->g;
    const bel_recurrent_walk *w = &g->w;
    const bel_recurrent_shape *s = &w->shape;
    const bel_recurrent_operands *o = &w->operands;
    for (int64_t i = 0; i < active; i++) {
        int64_t row = bel_recurrent_row(&b->rows, i), length = b->rows.lengths[row];
        int64_t time = bel_recurrent_time(s, b->d, length, step);
        int64_t state = bel_recurrent_state_at(s, b->d, row);
        const float *saved = input_at(b, o->saved, bel_recurrent_saved_at(s, b->d, row, time));
        if (step == length - 1) {
            add_vector(input_at(b, o->dy_state[0], state), b->dh + i * w->width, s->hidden);
            add_vector(input_at(b, o->dy_state[1], state), b->dc + i * s->hidden, s->hidden);
        }
        add_vector(input_at(b, o->dy, bel_recurrent_y_at(s, b->d, row, time)), b->dh + i * w->width,
                   s->hidden);
        const float *h =
            keep_inputs(b, row, step, saved, b->inputs + (first_kept + i) * g->columns);
        if (s->lstm) {
            lstm_row(b, i, row, step, saved);
        } else {
            gru_row(b, i, saved, h);
        }
    }
    if (!s->lstm && !s->reset_last) {
        gru_reset_rows(b, active, step, first_kept);
        multiply_r(b, 0, 2, active, true, b->dh);
    } else {
        multiply_r(b, g->first_h, g->end_h, active, true, b->dh);
    }
    for (int64_t i = 0; i < active; i++)
        for (int64_t p = 0; p < w->group_count * w->panels; p++)
            memcpy(b->kept + (p * g->panel_rows + first_kept + i) * LANES,
                   b->gates + (i * w->group_count * w->panels + p) * LANES,
                   LANES * sizeof *b->kept);
}

static int64_t steps_of(const bel_recurrent_rows *rows)
{
    int64_t steps = 0;
    for (int64_t i = 0; i < rows->count; i++)
        steps += bel_recurrent_row_length(rows, i);
    return steps;
}

static void run_backward(const bel_kernel_call *call, int64_t tile)
{
    const gradient_walk *g = call->params;
    const bel_recurrent_walk *w = &g->w;
    float *memory = tile_memory(call, g, tile);
    backward b = {.call = call,
                  .g = g,
                  .d = tile / w->row_tiles,
                  .rows = bel_recurrent_rows_of(call, w, tile),
                  .inputs = memory,
                  .kept = memory + g->kept_inputs};
    b.gates = b.kept + g->kept_gates;
    b.dh = b.gates + w->tile_rows * w->group_count * w->width;
    b.dp = b.dh + w->tile_rows * w->width;
    b.dc = b.dp + w->tile_rows * w->width;
    b.row = b.dc + w->tile_rows * w->shape.hidden;
    memset(b.gates, 0, (size_t)(memory + w->tile - b.gates) * sizeof *b.gates);
    int64_t active = 0, left = steps_of(&b.rows);
    for (int64_t step = w->shape.t; step-- > 0;) {
        while (active < b.rows.count && bel_recurrent_row_length(&b.rows, active) > step)
            active++;
        if (active == 0) continue;
        left -= active;
        run_step(&b, active, step, left);
    }
}

// --- Gradients of weights and bias ---------------------------------------------------------------

// Adds to sums [inputs, LANES] the products of a chunk of kept steps.
static void add_steps(const gradient_walk *g, const bel_recurrent_group *group, bool reset_h,
                      const float *inputs, const float *gates, int64_t steps, float *sums)
{
    static const bel_product_segment whole = {0, 0};
    const bel_product_kernels *kernels = bel_product_kernels_get();
    int64_t most = kernels->rows_most[1], in = g->w.shape.in;
    bel_product_block block = {.columns = LANES,
                               .b = gates,
                               .segments = &whole,
                               .segment_count = 1,
                               .k = steps,
                               .a_step = g->columns,
                               .b_step = LANES};
    // A block does not cross the 1 after x: r · h is stored separately, and rows are neighbors.
    for (int64_t u = group->first; u < group->end; u += block.rows) {
        bool behind_x = u > in;
        int64_t end = behind_x || group->end <= in + 1 ? group->end : in + 1;
        block.rows = bel_product_rows(end - u, most);
        int64_t column = reset_h && behind_x ? u + g->w.shape.hidden : u;
        bel_product_set_rows(&block, inputs + column, 1, LANES);
        block.start = block.c = sums + u * LANES;
        kernels->run(&block);
    }
}

// Sums of one panel to dw, dr and db.
static void write_panel(const bel_kernel_call *call, const gradient_walk *g, int64_t d,
                        const bel_recurrent_group *group, int64_t panel, const float *sums)
{
    const bel_recurrent_shape *s = &g->w.shape;
    int64_t units = s->gates * s->hidden, left = s->hidden - panel * LANES;
    for (int64_t l = 0; l < (left < LANES ? left : LANES); l++) {
        float one = sums[s->in * LANES + l], *db = call->outputs[3].data;
        db += d * 2 * units;
        if (group->x_gate >= 0) {
            int64_t unit = group->x_gate * s->hidden + panel * LANES + l;
            float *dw = (float *)call->outputs[1].data + (d * units + unit) * s->in;
            for (int64_t i = 0; i < s->in; i++)
                dw[i] = sums[i * LANES + l];
            db[unit] = one;
        }
        if (group->h_gate >= 0) {
            int64_t unit = group->h_gate * s->hidden + panel * LANES + l;
            float *dr = (float *)call->outputs[2].data + (d * units + unit) * s->hidden;
            for (int64_t i = 0; i < s->hidden; i++)
                dr[i] = sums[(s->in + 1 + i) * LANES + l];
            db[units + unit] = one;
        }
    }
}

// A tile is (direction, group, four panels): dw, dr and db of these units, summed over all row
// tiles and kept steps, in the order in which they were kept. If reset comes first, the candidate
// (group 2) was computed from r · h, which is kept after h.
static void sum_weights(const bel_kernel_call *call, const gradient_walk *g, int64_t tile)
{
    const bel_recurrent_walk *w = &g->w;
    int64_t quad = tile % g->quads, group = tile / g->quads % w->group_count;
    int64_t d = tile / g->quads / w->group_count, floats = w->inputs * LANES;
    int64_t first = quad * QUAD, end = first + QUAD < w->panels ? first + QUAD : w->panels;
    float *sums = bel_recurrent_floats(call, w) + g->sums_at + tile * QUAD * floats;
    bool reset_h = !w->shape.lstm && !w->shape.reset_last && group == 2;
    memset(sums, 0, (size_t)(QUAD * floats) * sizeof *sums);
    for (int64_t t = d * w->row_tiles; t < (d + 1) * w->row_tiles; t++) {
        bel_recurrent_rows rows = bel_recurrent_rows_of(call, w, t);
        const float *inputs = tile_memory(call, g, t), *kept = inputs + g->kept_inputs;
        int64_t steps = steps_of(&rows);
        for (int64_t at = 0; at < steps; at += STEPS_AT_A_TIME) {
            int64_t count = steps - at < STEPS_AT_A_TIME ? steps - at : STEPS_AT_A_TIME;
            for (int64_t p = first; p < end; p++) {
                const float *gates = kept + ((group * w->panels + p) * g->panel_rows + at) * LANES;
                add_steps(g, &w->groups[group], reset_h, inputs + at * g->columns, gates, count,
                          sums + (p - first) * floats);
            }
        }
    }
    for (int64_t p = first; p < end; p++)
        write_panel(call, g, d, &w->groups[group], p, sums + (p - first) * floats);
}

// --- dx ------------------------------------------------------------------------------------------

// 16 columns of dx of some kept steps: gradients, one panel after another, times W.
static void multiply_w(const gradient_walk *g, const float *gates, int64_t rows, const float *w,
                       float *out)
{
    enum { MOST = 32 }; // panels at once
    const bel_product_kernels *kernels = bel_product_kernels_get();
    bel_product_segment segments[MOST];
    bel_product_block block = {
        .columns = LANES, .segments = segments, .k = LANES, .a_step = 1, .b_step = LANES, .c = out};
    int64_t panels = (g->end_x - g->first_x) * g->w.panels;
    for (int64_t p = 0; p < panels; p += block.segment_count) {
        block.segment_count = panels - p < MOST ? panels - p : MOST;
        for (int64_t i = 0; i < block.segment_count; i++)
            segments[i] =
                (bel_product_segment){(p + i) * g->panel_rows * LANES, (p + i) * LANES * LANES};
        block.b = w;
        block.start = p == 0 ? NULL : out;
        block.rows = rows;
        bel_product_set_rows(&block, gates, LANES, LANES);
        kernels->run(&block);
    }
}

// dx of rows [first, first + count) of a tile at one step.
static void put_inputs(const bel_kernel_call *call, const gradient_walk *g, int64_t tile,
                       int64_t step, int64_t first, int64_t count, int64_t kept_at)
{
    const bel_recurrent_walk *w = &g->w;
    const bel_recurrent_shape *s = &w->shape;
    int64_t d = tile / w->row_tiles, units = (g->end_x - g->first_x) * w->width;
    bel_recurrent_rows rows = bel_recurrent_rows_of(call, w, tile);
    const float *gates = tile_memory(call, g, tile) + g->kept_inputs;
    gates += (g->first_x * w->panels * g->panel_rows + kept_at) * LANES;
    const float *packed = bel_recurrent_floats(call, w) + d * (g->r_packed + g->x_packed);
    packed += g->r_packed;
    for (int64_t p = 0; p < g->x_panels; p++) {
        float out[BEL_PRODUCT_ROWS * LANES];
        multiply_w(g, gates, count, packed + p * units * LANES, out);
        int64_t left = s->in - p * LANES, lanes = left < LANES ? left : LANES;
        for (int64_t i = 0; i < count; i++) {
            int64_t row = bel_recurrent_row(&rows, first + i);
            int64_t time = bel_recurrent_time(s, d, rows.lengths[row], step);
            float *dx = (float *)call->outputs[0].data + bel_recurrent_x_at(s, row, time);
            add_vector(out + i * LANES, dx + p * LANES, lanes);
        }
    }
}

// dx of the rows of a tile, one direction after another.
static void sum_inputs(const bel_kernel_call *call, const gradient_walk *g, int64_t tile)
{
    const bel_recurrent_walk *w = &g->w;
    const bel_recurrent_shape *s = &w->shape;
    bel_recurrent_rows rows = bel_recurrent_rows_of(call, w, tile);
    int64_t most = bel_product_kernels_get()->rows_most[1];
    for (int64_t i = 0; i < rows.count; i++) {
        int64_t row = bel_recurrent_row(&rows, i);
        for (int64_t time = 0; time < s->t; time++)
            memset((float *)call->outputs[0].data + bel_recurrent_x_at(s, row, time), 0,
                   (size_t)s->in * sizeof(float));
    }
    for (int64_t d = 0; d < s->directions; d++) {
        int64_t active = rows.count, kept_at = 0;
        for (int64_t step = 0; step < s->t; step++) {
            while (active > 0 && bel_recurrent_row_length(&rows, active - 1) <= step)
                active--;
            for (int64_t i = 0; i < active; i += most) {
                int64_t count = active - i < most ? active - i : most;
                put_inputs(call, g, d * w->row_tiles + tile, step, i, count, kept_at + i);
            }
            kept_at += active;
        }
    }
}

// The first tiles sum weights, the others dx: a tile of rows each.
static void run_after(const bel_kernel_call *call, int64_t tile)
{
    const gradient_walk *g = call->params;
    int64_t sums = g->w.shape.directions * g->w.group_count * g->quads;
    if (tile < sums) {
        sum_weights(call, g, tile);
    } else {
        sum_inputs(call, g, tile - sums);
    }
}

// --- Choice --------------------------------------------------------------------------------------

// Computes the sizes of the workspace's parts: packed R and W of all directions; then, for each
// tile, the kept input rows [steps, columns], the kept gradients of gates as panels [group · panel,
// panel_rows, 16], and room for a step; then sums for the weights.
static void size_memory(gradient_walk *g)
{
    bel_recurrent_walk *w = &g->w;
    const bel_recurrent_shape *s = &w->shape;
    bool reset_first = !s->lstm && !s->reset_last;
    g->first_h = !s->lstm && s->reset_last ? 1 : 0;
    g->end_h = w->group_count;
    g->end_x = s->gates;
    g->x_panels = (s->in + LANES - 1) / LANES;
    g->columns = w->inputs + (reset_first ? s->hidden : 0);
    g->r_packed = w->panels * (g->end_h - g->first_h) * w->width * LANES;
    g->x_packed = g->x_panels * g->end_x * w->width * LANES;
    g->panel_rows = w->tile_rows * s->t + 1; // not a multiple of a page
    g->kept_inputs = (w->tile_rows * s->t * g->columns + LANES - 1) / LANES * LANES;
    g->kept_gates = w->group_count * w->panels * g->panel_rows * LANES;
    g->quads = (w->panels + QUAD - 1) / QUAD;
    w->packed = s->directions * (g->r_packed + g->x_packed);
    int64_t row = (w->group_count + 2) * w->width + s->hidden;
    w->tile = g->kept_inputs + g->kept_gates + w->tile_rows * row + 2 * w->width;
    w->tile = (w->tile + LANES - 1) / LANES * LANES;
    g->sums_at = w->packed + s->directions * w->row_tiles * w->tile;
}

void bel_recurrent_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                    const bel_recurrent_shape *shape,
                                    const bel_recurrent_operands *operands)
{
    gradient_walk g = {.first_x = 0};
    bel_recurrent_walk_init(&g.w, shape, operands);
    size_memory(&g);
    const bel_recurrent_walk *w = &g.w;
    int64_t sums = shape->directions * w->group_count * g.quads;
    call->before = run_before;
    call->before_tiles = 1 + 2 * shape->directions;
    call->run = run_backward;
    call->tile_count = shape->directions * w->row_tiles;
    call->after = run_after;
    call->after_tiles = sums + (operands->dx ? w->row_tiles : 0);
    call->work = shape->n * shape->t * shape->directions * shape->gates * shape->hidden *
                 (w->inputs + shape->hidden) / 8;
    call->workspace_bytes = (size_t)w->numbers * sizeof(int64_t) +
                            (size_t)(g.sums_at + sums * QUAD * w->inputs * LANES) * sizeof(float);
    call->params = bel_arena_copy(prepare->arena, &g, sizeof g);
}
