// Blocked attention (attention.h). Sums of products use the blocks of product.h. Their right
// operands, panels of 16 columns, are packed, and padded with zeros to full panels.
//
// A block of keys is packed once, then queries are processed against it, QUERIES at a time. A tile
// is a run of queries of one matrix. A tile of the gradient is a run of keys, since their gradients
// are sums over the queries. Only the shape determines the division, and every sum has one order.
#include "ops/kernels/attention.h"

#include <math.h>
#include <string.h>

#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/product.h"
#include "ops/sequence.h"

// Sizes by measurement on Zen 3, with 32 KB and 512 KB of cache.
enum {
    LANES = BEL_PRODUCT_LANES,
    QUERIES = BEL_ATTENTION_QUERIES,
    MOST_QUERIES = 576,    // in a tile
    MOST_KEYS = 128,       // in a block
    STEP = MOST_KEYS + 16, // between rows of scores: no power of two, so columns share no cache
                           // lines
    KEY_FLOATS = 1 << 13,  // room for a block of keys or values
    QUERY_FLOATS = QUERIES * BEL_ATTENTION_MOST_WIDTH,
    SUM_FLOATS = 9 << 12, // for the sums of a tile of queries
    TILES = 16,           // at least, with enough queries
    PARTS = 8,            // the same in the gradient
};

static int64_t whole_panels(int64_t width)
{
    return (width + LANES - 1) / LANES * LANES;
}

static int64_t length_of(const bel_kernel_call *call, int64_t matrix)
{
    const bel_attention_shape *shape = &((const bel_attention_walk *)call->params)->shape;
    if (shape->lengths < 0) return shape->s;
    return bel_length_of(call, &call->inputs[shape->lengths], matrix / shape->heads, shape->s);
}

// Returns how many of `keys` keys from `key` on a query sees.
static int64_t seen_of(const bel_attention_walk *w, int64_t length, int64_t query, int64_t key,
                       int64_t keys)
{
    int64_t seen = bel_attention_seen(&w->shape, length, query) - key;
    return seen < 0 ? 0 : bel_smaller(seen, keys);
}

// --- Products ------------------------------------------------------------------------------------

// Packs the matrix [rows, width] to panels: panel p has columns 16 p … 16 p + 15 of all rows,
// [rows, 16]; the last one, of `rest` columns, is padded with zeros.
static void attention_pack(const float *from, int64_t rows, int64_t width, float *to)
{
    for (int64_t j = 0; j + LANES <= width; j += LANES, to += rows * LANES)
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * LANES, from + i * width + j, LANES * sizeof *to);
    int64_t rest = width % LANES;
    for (int64_t i = 0; i < rows && rest > 0; i++, to += LANES) {
        memset(to, 0, LANES * sizeof *to);
        memcpy(to, from + (i + 1) * width - rest, (size_t)rest * sizeof *to);
    }
}

// Packs the transpose of [rows, width] to panels: panel p has rows 16 p … 16 p + 15 as its columns.
// Columns after the last row are undefined; their results are never read.
static void pack_transposed(const float *from, int64_t rows, int64_t width, float *to)
{
    const bel_product_kernels *kernels = bel_product_kernels_get();
    for (int64_t i = 0; i < rows; i += LANES, to += width * LANES)
        kernels->transpose(from + i * width, width, bel_smaller(LANES, rows - i), width, to, LANES);
}

// y [m, n] = a [m, k] · panels, or adds that to y.
typedef struct panel_product {
    int64_t m, n, k;
    const float *a, *panels;
    int64_t a_row, a_column;
    int64_t panel_rows; // at least k
    bool adds;
    float *y;
    int64_t y_row;
} panel_product;

// Processes panel by panel, and in each the blocks of rows that fit the registers.
static void panel_product_multiply(const panel_product *x)
{
    static const bel_product_segment whole = {0, 0};
    const bel_product_kernels *kernels = bel_product_kernels_get();
    bel_product_block block = {
        .segments = &whole, .segment_count = 1, .k = x->k, .a_step = x->a_column, .b_step = LANES};
    for (int64_t j = 0; j < x->n; j += LANES) {
        block.b = x->panels + j * x->panel_rows;
        block.columns = bel_smaller(LANES, x->n - j);
        for (int64_t i = 0; i < x->m; i += block.rows) {
            block.rows = bel_product_rows(x->m - i, kernels->rows_most[1]);
            block.c = x->y + i * x->y_row + j;
            block.start = x->adds ? block.c : NULL;
            bel_product_set_rows(&block, x->a + i * x->a_row, x->a_row, x->y_row);
            kernels->run(&block);
        }
    }
}

// y [count, keys] = x [count, width] · panels of keys or values; rows of y have room for full
// panels.
static void attention_score(const float *x, const float *panels, int64_t count, int64_t keys,
                            int64_t width, float *y)
{
    panel_product_multiply(&(panel_product){.m = count,
                                            .n = whole_panels(keys),
                                            .k = width,
                                            .a = x,
                                            .a_row = width,
                                            .a_column = 1,
                                            .panels = panels,
                                            .panel_rows = width,
                                            .y = y,
                                            .y_row = STEP});
}

// --- Forward -------------------------------------------------------------------------------------

// Memory of a tile: a block of keys as panels [d, keys], its values [keys, e], the scores [queries,
// STEP] of QUERIES queries, and for every query of the tile its sums [queries, e], largest score
// and total of powers.
typedef struct forward_room {
    float keys[KEY_FLOATS], values[KEY_FLOATS], scores[QUERIES * STEP], sums[SUM_FLOATS];
    float most[MOST_QUERIES], totals[MOST_QUERIES];
} forward_room;

typedef struct forward {
    const bel_attention_walk *walk;
    int64_t length, first, count; // queries of the tile
    const float *q, *k, *v;       // q: the first query's
    forward_room *room;
} forward;

// Replaces the scores [count, keys] of the tile's queries, from `at` on, by powers e^(score -
// most), where `most` is the query's largest score so far. If this block raises it by delta,
// earlier sums refer to the old value: the total and sums [count, e] are multiplied by e^-delta
// (`factors`). If a query has only scores of -infinity, the shift is 0, as -infinity less itself
// would be NaN.
static void forward_weigh(const forward *f, int64_t at, int64_t count, int64_t key, int64_t keys)
{
    const bel_attention_walk *w = f->walk;
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    float *most = f->room->most + at, *totals = f->room->totals + at;
    int64_t e = w->shape.e;
    float scale = (float)w->shape.scale, added[QUERIES], factors[QUERIES];
    for (int64_t i = 0; i < count; i++) {
        float *scores = f->room->scores + i * STEP;
        int64_t seen = seen_of(w, f->length, f->first + at + i, key, keys);
        added[i] = factors[i] = 0;
        if (seen > 0) {
            float now = cpu->max(scores, seen) * scale;
            if (!(now > most[i])) now = most[i]; // not fmaxf, whose result for zeros C leaves open
            float shift = now == -INFINITY ? 0 : now;
            added[i] = cpu->powers(scores, scale, shift, seen);
            factors[i] = most[i] - shift;
            most[i] = now;
        }
        memset(scores + seen, 0, (size_t)(keys - seen) * sizeof *scores);
    }
    cpu->unary[BEL_CPU_EXP](factors, factors, count);
    for (int64_t i = 0; i < count; i++) {
        float *sums = f->room->sums + (at + i) * e;
        totals[i] = totals[i] * factors[i] + added[i];
        if (key > 0 && factors[i] != 1) {
            cpu->binary_scalar[BEL_CPU_MUL](sums, &factors[i], sums, e);
        }
    }
}

// Processes `keys` keys from `key` on, with the queries that see some of them.
static void run_keys(const forward *f, int64_t key, int64_t keys)
{
    const bel_attention_walk *w = f->walk;
    int64_t d = w->shape.d, e = w->shape.e, begin = 0;
    pack_transposed(f->k + key * d, keys, d, f->room->keys);
    attention_pack(f->v + key * e, keys, e, f->room->values);
    if (w->shape.causal && key > f->first) begin = (key - f->first) / QUERIES * QUERIES;
    for (int64_t at = begin; at < f->count; at += QUERIES) {
        int64_t count = bel_smaller(QUERIES, f->count - at);
        int64_t seen = seen_of(w, f->length, f->first + at + count - 1, key, keys);
        attention_score(f->q + at * d, f->room->keys, count, seen, d, f->room->scores);
        forward_weigh(f, at, count, key, seen);
        panel_product_multiply(&(panel_product){.m = count,
                                                .n = e,
                                                .k = seen,
                                                .a = f->room->scores,
                                                .a_row = STEP,
                                                .a_column = 1,
                                                .panels = f->room->values,
                                                .panel_rows = keys,
                                                .adds = key > 0,
                                                .y = f->room->sums + at * e,
                                                .y_row = e});
    }
}

// Writes the results of the tile's queries, and the logarithms of their sums of powers; zeros if a
// query sees no key.
static void forward_finish(const forward *f, float *y, float *log_totals)
{
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    int64_t e = f->walk->shape.e;
    if (f->length == 0) {
        memset(y, 0, (size_t)(f->count * e) * sizeof *y);
        memset(log_totals, 0, (size_t)f->count * sizeof *log_totals);
        return;
    }
    for (int64_t i = 0; i < f->count; i++) {
        float factor = 1 / f->room->totals[i];
        cpu->binary_scalar[BEL_CPU_MUL](f->room->sums + i * e, &factor, y + i * e, e);
    }
    cpu->unary[BEL_CPU_LOG](f->room->totals, log_totals, f->count);
    cpu->binary[BEL_CPU_ADD](log_totals, f->room->most, log_totals, f->count);
}

// A tile is a run of `queries` queries of one matrix, with number tile / tiles. q, y and the totals
// are [matrices, t, …], so its first row is matrix · t + first, and keys and values of its matrix
// begin at matrix · s. Only keys that its last query sees are visited.
static void run_forward(const bel_kernel_call *call, int64_t tile)
{
    const bel_attention_walk *w = call->params;
    const bel_attention_shape *shape = &w->shape;
    _Alignas(64) forward_room room;
    int64_t matrix = tile / w->tiles, first = tile % w->tiles * w->queries;
    int64_t row = matrix * shape->t + first;
    forward f = {.walk = w,
                 .length = length_of(call, matrix),
                 .first = first,
                 .count = bel_smaller(w->queries, shape->t - first),
                 .q = (const float *)call->inputs[0].data + row * shape->d,
                 .k = (const float *)call->inputs[1].data + matrix * shape->s * shape->d,
                 .v = (const float *)call->inputs[2].data + matrix * shape->s * shape->e,
                 .room = &room};
    for (int64_t i = 0; i < f.count; i++) {
        room.most[i] = -INFINITY;
        room.totals[i] = 0;
    }
    int64_t end = bel_attention_seen(shape, f.length, first + f.count - 1);
    for (int64_t key = 0; key < end; key += w->keys)
        run_keys(&f, key, bel_smaller(w->keys, end - key));
    forward_finish(&f, (float *)call->outputs[0].data + row * shape->e,
                   (float *)call->outputs[1].data + row);
}

// --- Gradient ------------------------------------------------------------------------------------

typedef struct backward_room {
    float keys[KEY_FLOATS], keys_transposed[KEY_FLOATS], values_transposed[KEY_FLOATS];
    float scores[QUERIES * STEP], slopes[QUERIES * STEP]; // become p, and their gradients
    float queries[QUERY_FLOATS];
} backward_room;

typedef struct backward { // one matrix
    const bel_attention_walk *walk;
    int64_t length;
    const float *dy, *q, *k, *v, *log_totals, *inner; // inner: dy · y of each query
    float *dq, *dk, *dv;
    backward_room *room;
} backward;

// Computes weights of `count` queries and the gradients of their scores.
static void slope(const backward *b, int64_t query, int64_t count, int64_t key, int64_t keys)
{
    const bel_attention_walk *w = b->walk;
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    for (int64_t i = 0; i < count; i++) {
        float *scores = b->room->scores + i * STEP, *slopes = b->room->slopes + i * STEP;
        int64_t seen = seen_of(w, b->length, query + i, key, keys);
        size_t hidden = (size_t)(keys - seen) * sizeof *scores;
        cpu->powers_grad(scores, slopes, (float)w->shape.scale, b->log_totals[query + i],
                         b->inner[query + i], seen);
        memset(scores + seen, 0, hidden);
        memset(slopes + seen, 0, hidden);
    }
}

// sum [keys, width] += weights' · x of `count` queries, x [count, width].
static void add_queries(const backward *b, const float *weights, const float *x, int64_t count,
                        int64_t keys, int64_t width, float *sum)
{
    attention_pack(x, count, width, b->room->queries);
    panel_product_multiply(&(panel_product){.m = keys,
                                            .n = width,
                                            .k = count,
                                            .a = weights,
                                            .a_row = 1,
                                            .a_column = STEP,
                                            .panels = b->room->queries,
                                            .panel_rows = count,
                                            .adds = true,
                                            .y = sum,
                                            .y_row = width});
}

// With p the weights and s the scores: dv += pᵀ dy, dp = dy vᵀ, ds = p (dp - inner) · scale, dk +=
// dsᵀ q, dq += ds k, all over the keys that the last of these queries sees.
static void run_queries(const backward *b, int64_t query, int64_t count, int64_t key, int64_t keys)
{
    const bel_attention_walk *w = b->walk;
    backward_room *room = b->room;
    int64_t d = w->shape.d, e = w->shape.e;
    int64_t seen = seen_of(w, b->length, query + count - 1, key, keys);
    attention_score(b->q + query * d, room->keys_transposed, count, seen, d, room->scores);
    attention_score(b->dy + query * e, room->values_transposed, count, seen, e, room->slopes);
    slope(b, query, count, key, seen);
    add_queries(b, room->scores, b->dy + query * e, count, seen, e, b->dv + key * e);
    add_queries(b, room->slopes, b->q + query * d, count, seen, d, b->dk + key * d);
    panel_product_multiply(&(panel_product){.m = count,
                                            .n = d,
                                            .k = seen,
                                            .a = room->slopes,
                                            .a_row = STEP,
                                            .a_column = 1,
                                            .panels = room->keys,
                                            .panel_rows = keys,
                                            .adds = true,
                                            .y = b->dq + query * d,
                                            .y_row = d});
}

// A causal query sees keys up to its index, so queries before `key` do not see these keys; `begin`
// is rounded down to a multiple of QUERIES, so that the blocks of queries are the same for all
// keys.
static void run_keys_backward(const backward *b, int64_t key, int64_t keys)
{
    const bel_attention_walk *w = b->walk;
    backward_room *room = b->room;
    int64_t d = w->shape.d, e = w->shape.e;
    int64_t begin = w->shape.causal ? key / QUERIES * QUERIES : 0;
    attention_pack(b->k + key * d, keys, d, room->keys);
    pack_transposed(b->k + key * d, keys, d, room->keys_transposed);
    pack_transposed(b->v + key * e, keys, e, room->values_transposed);
    for (int64_t at = begin; at < w->shape.t; at += QUERIES)
        run_queries(b, at, bel_smaller(QUERIES, w->shape.t - at), key, keys);
}

// Processes a part of the keys of a matrix. With several parts each has separate gradients of
// queries.
static void run_backward(const bel_kernel_call *call, int64_t tile)
{
    const bel_attention_walk *w = call->params;
    const bel_attention_shape *shape = &w->shape;
    _Alignas(64) backward_room room;
    int64_t part = tile / w->matrices, matrix = tile % w->matrices;
    int64_t t = shape->t, d = shape->d, e = shape->e, row = matrix * t, key = matrix * shape->s;
    float *inner = (float *)call->workspace + tile * t;
    float *parts = (float *)call->workspace + w->parts * w->matrices * t;
    const float *y = (const float *)call->inputs[4].data + row * e;
    backward b = {.walk = w,
                  .length = length_of(call, matrix),
                  .dy = (const float *)call->inputs[0].data + row * e,
                  .q = (const float *)call->inputs[1].data + row * d,
                  .k = (const float *)call->inputs[2].data + key * d,
                  .v = (const float *)call->inputs[3].data + key * e,
                  .log_totals = (const float *)call->inputs[5].data + row,
                  .inner = inner,
                  .dq = w->parts > 1 ? parts + tile * t * d
                                     : (float *)call->outputs[0].data + row * d,
                  .dk = (float *)call->outputs[1].data + key * d,
                  .dv = (float *)call->outputs[2].data + key * e,
                  .room = &room};
    for (int64_t i = 0; i < t; i++)
        inner[i] = bel_cpu_kernels_get()->dot(b.dy + i * e, y + i * e, e);
    int64_t begin = part * w->part_keys, end = bel_smaller(begin + w->part_keys, shape->s);
    memset(b.dq, 0, (size_t)(t * d) * sizeof *b.dq);
    memset(b.dk + begin * d, 0, (size_t)((end - begin) * d) * sizeof *b.dk);
    memset(b.dv + begin * e, 0, (size_t)((end - begin) * e) * sizeof *b.dv);
    end = bel_smaller(end, b.length);
    for (int64_t at = begin; at < end; at += w->keys)
        run_keys_backward(&b, at, bel_smaller(w->keys, end - at));
}

// Adds the parts of the queries' gradients, in order.
static void run_add_parts(const bel_kernel_call *call, int64_t tile)
{
    const bel_attention_walk *w = call->params;
    int64_t elements = w->matrices * w->shape.t * w->shape.d, begin = bel_tile_begin(tile);
    int64_t count = bel_tile_end(tile, elements) - begin;
    const float *parts = (const float *)call->workspace + w->parts * w->matrices * w->shape.t;
    float *dq = (float *)call->outputs[0].data + begin;
    bel_cpu_kernels_get()->sum_rows(parts + begin, w->parts, elements, dq, count);
}

// --- Choice --------------------------------------------------------------------------------------

// Computes the largest blocks of keys that fit, in full panels of the wider of keys and values.
static bel_attention_walk make_walk(const bel_attention_shape *shape)
{
    int64_t widest = whole_panels(shape->d > shape->e ? shape->d : shape->e);
    bel_attention_walk w = {.shape = *shape,
                            .matrices = shape->n * shape->heads,
                            .keys = bel_smaller(MOST_KEYS, KEY_FLOATS / widest / LANES * LANES)};
    return w;
}

// Returns the vector operations of `products` sums of products over all pairs of queries and keys.
static int64_t work_of(const bel_attention_walk *w, int64_t products)
{
    enum { VECTOR = 8 };
    int64_t pairs = w->matrices * w->shape.t * w->shape.s / (w->shape.causal ? 2 : 1);
    return pairs * products * (whole_panels(w->shape.d) + whole_panels(w->shape.e)) / 2 / VECTOR;
}

void bel_attention_prepare(const bel_prepare *prepare, bel_kernel_call *call,
                           const bel_attention_shape *shape)
{
    bel_attention_walk w = make_walk(shape);
    w.queries = SUM_FLOATS / (shape->e > 0 ? shape->e : 1) / QUERIES * QUERIES;
    w.queries = bel_smaller(w.queries, MOST_QUERIES);
    while (w.queries > QUERIES && w.matrices * ((shape->t + w.queries - 1) / w.queries) < TILES)
        w.queries = w.queries / 2 / QUERIES * QUERIES;
    w.tiles = (shape->t + w.queries - 1) / w.queries;
    call->run = run_forward;
    call->tile_count = w.matrices * w.tiles;
    call->work = work_of(&w, 2);
    call->params = bel_arena_copy(prepare->arena, &w, sizeof w);
}

void bel_attention_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                    const bel_attention_shape *shape)
{
    bel_attention_walk w = make_walk(shape);
    int64_t blocks = (shape->s + w.keys - 1) / w.keys, part_blocks = blocks > 0 ? blocks : 1;
    while (part_blocks > 1 && w.matrices * ((blocks + part_blocks - 1) / part_blocks) < PARTS)
        part_blocks = (part_blocks + 1) / 2;
    w.part_keys = part_blocks * w.keys;
    w.parts = blocks > 0 ? (blocks + part_blocks - 1) / part_blocks : 1;
    int64_t floats = w.parts * w.matrices * shape->t;
    call->run = run_backward;
    call->tile_count = w.parts * w.matrices;
    if (w.parts > 1) {
        floats *= 1 + shape->d;
        call->run_writes = true;
        call->after = run_add_parts;
        call->after_tiles = bel_tiles_of(w.matrices * shape->t * shape->d);
    }
    call->work = work_of(&w, 5);
    call->workspace_bytes = (size_t)(floats + 1) * sizeof(float); // not empty, even without queries
    call->params = bel_arena_copy(prepare->arena, &w, sizeof w);
}
