// Kernel calls for the normalization of rows, f32.
//
// Forward, a tile has a run of rows. Backward, rows are divided into at most MAX_PARTS parts, only
// by shape. Each part writes its rows of dx and sums dscale and dbias over them, and `after` adds
// the parts in order. With a separate scale for each element, a part sums FEW_ROWS rows in f32
// before it adds them in double.
#include "ops/kernels/row_norm.h"

#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "ops/kernels/elements.h"

enum { MAX_PARTS = 16, FEW_ROWS = 64 };

static const bel_row_norm_kernels *kernels_get(void)
{
    static const bel_row_norm_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_row_norm_kernels)};
    return tables[bel_isa_get()];
}

static void tile_rows(const bel_row_norm_params *p, int64_t tile, int64_t *out_first,
                      int64_t *out_end)
{
    *out_first = tile * p->rows_per_tile;
    *out_end = *out_first + p->rows_per_tile;
    if (*out_end > p->norm.rows) *out_end = p->norm.rows;
}

// Returns the first scale of a row.
static int64_t scale_of(const bel_row_norm *n, int64_t row)
{
    return row % n->period * n->scales;
}

// --- Forward -------------------------------------------------------------------------------------

// Returns the map to a row's x'. It includes the mean of the distances, since a float may be too
// coarse for the mean.
static bel_row_norm_map row_norm_normalize(const float *x, const bel_row_norm *n, float *out_mean)
{
    const bel_row_norm_kernels *kernels = kernels_get();
    double count = n->columns > 0 ? (double)n->columns : 1;
    float shift = (float)(kernels->sum(x, n->columns) / count);
    double rest = kernels->sum_distances(x, shift, n->columns) / count;
    double variance = kernels->sum_squares(x, shift, n->columns) / count - rest * rest;
    double inverse = 1 / sqrt((variance < 0 ? 0 : variance) + n->epsilon);
    *out_mean = (float)((double)shift + rest);
    return (bel_row_norm_map){shift, (float)inverse, (float)(-rest * inverse)};
}

// Normalizes rows [first, end) of the tile. With run 1 each element has a separate scale; else a
// row is `scales` runs of equal scale (channels of an image).
static void run_forward(const bel_kernel_call *call, int64_t tile)
{
    const bel_row_norm_params *p = call->params;
    const bel_row_norm *n = &p->norm;
    const bel_row_norm_kernels *kernels = kernels_get();
    const float *bias = call->input_count > 2 ? call->inputs[2].data : NULL;
    float *mean = call->outputs[1].data, *inverse = call->outputs[2].data;
    int64_t first, end;
    tile_rows(p, tile, &first, &end);
    for (int64_t row = first; row < end; row++) {
        const float *x = (const float *)call->inputs[0].data + row * n->columns;
        const float *scale = (const float *)call->inputs[1].data + scale_of(n, row);
        const float *offset = bias == NULL ? NULL : bias + scale_of(n, row);
        float *y = (float *)call->outputs[0].data + row * n->columns;
        bel_row_norm_map map = row_norm_normalize(x, n, &mean[row]);
        inverse[row] = map.factor;
        if (n->run == 1) {
            kernels->scale_each(x, map, scale, offset, y, n->columns);
            continue;
        }
        for (int64_t c = 0; c < n->scales; c++)
            kernels->scale_all(x + c * n->run, map, scale[c], offset == NULL ? 0 : offset[c],
                               y + c * n->run, n->run);
    }
}

void bel_row_norm_prepare(const bel_prepare *prepare, bel_kernel_call *call, const bel_row_norm *n)
{
    bel_row_norm_params p = {.norm = *n, .rows_per_tile = bel_tile_rows(n->columns)};
    call->run = run_forward;
    call->tile_count = (n->rows + p.rows_per_tile - 1) / p.rows_per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- Gradient ------------------------------------------------------------------------------------

// With g = dy · scale: dx = (g - mean of g - x' · mean of g x') / deviation.
typedef struct row_gradient {
    const float *dy, *x, *scale;
    bel_row_norm_map map;
    float *dx;
    double *dscale, *dbias;      // sums over the part
    float *few_scale, *few_bias; // sums over few rows
} row_gradient;

// One row with a scale for each element.
static void row_each(const bel_row_norm *n, const row_gradient *r)
{
    const bel_row_norm_kernels *kernels = kernels_get();
    double factor = (double)r->map.factor / (double)n->columns;
    double total = kernels->dot(r->dy, r->scale, n->columns);
    double product = kernels->dot_scaled(r->x, r->map, r->dy, r->scale, n->columns);
    kernels->add_scales(r->dy, r->x, r->map, r->few_scale, r->few_bias, n->columns);
    kernels->apply_each(r->dy, r->x, r->map, r->scale, (float)(product * factor),
                        (float)(total * factor), r->dx, n->columns);
}

// One row of runs: the sums of a run are multiplied by its scale once.
static void row_all(const bel_row_norm *n, const row_gradient *r)
{
    const bel_row_norm_kernels *kernels = kernels_get();
    double total = 0, product = 0, factor = (double)r->map.factor / (double)n->columns;
    for (int64_t c = 0; c < n->scales; c++) {
        double sum = kernels->sum(r->dy + c * n->run, n->run);
        double dot = kernels->dot_mapped(r->x + c * n->run, r->map, r->dy + c * n->run, n->run);
        r->dbias[c] += sum;
        r->dscale[c] += dot;
        total += sum * (double)r->scale[c];
        product += dot * (double)r->scale[c];
    }
    for (int64_t c = 0; c < n->scales; c++)
        kernels->apply_all(r->dy + c * n->run, r->x + c * n->run, r->map, r->scale[c],
                           (float)(product * factor), (float)(total * factor), r->dx + c * n->run,
                           n->run);
}

// Returns the number of scales, over all rows of a period.
static int64_t scale_count(const bel_row_norm *n)
{
    return n->period * n->scales;
}

static void row_norm_flush(double *sums, float *few, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sums[i] += (double)few[i];
    memset(few, 0, (size_t)count * sizeof *few);
}

// The workspace has dscale and dbias of each part in double, followed by sums over few rows of each
// part.
static void run_gradient(const bel_kernel_call *call, int64_t tile)
{
    const bel_row_norm_params *p = call->params;
    const bel_row_norm *n = &p->norm;
    int64_t count = 2 * scale_count(n), first, end;
    if (count == 0) return; // rows without elements, and no workspace
    double *sums = (double *)call->workspace + tile * count;
    float *few = (float *)((double *)call->workspace + call->tile_count * count) + tile * count;
    memset(sums, 0, (size_t)count * sizeof *sums);
    memset(few, 0, (size_t)count * sizeof *few);
    const float *mean = call->inputs[3].data, *inverse = call->inputs[4].data;
    tile_rows(p, tile, &first, &end);
    for (int64_t row = first; row < end; row++) {
        int64_t scale = scale_of(n, row), at = row * n->columns;
        row_gradient r = {.dy = (const float *)call->inputs[0].data + at,
                          .x = (const float *)call->inputs[1].data + at,
                          .scale = (const float *)call->inputs[2].data + scale,
                          .map = {mean[row], inverse[row], 0},
                          .dx = (float *)call->outputs[0].data + at,
                          .dscale = sums + scale,
                          .dbias = sums + count / 2 + scale,
                          .few_scale = few + scale,
                          .few_bias = few + count / 2 + scale};
        if (n->run > 1) {
            row_all(n, &r);
            continue;
        }
        row_each(n, &r);
        if ((row - first) % FEW_ROWS == FEW_ROWS - 1) row_norm_flush(sums, few, count);
    }
    if (n->run == 1) row_norm_flush(sums, few, count);
}

// Output 1 is dscale, output 2 dbias; part p has both, 2 · count numbers, one after the other.
static void run_add_parts(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_row_norm_params *p = call->params;
    int64_t count = scale_count(&p->norm);
    int64_t parts = (p->norm.rows + p->rows_per_tile - 1) / p->rows_per_tile;
    for (int64_t i = 0; i < 2 * count; i++) {
        double sum = 0;
        for (int64_t part = 0; part < parts; part++)
            sum += ((const double *)call->workspace)[part * 2 * count + i];
        bel_element_set(&call->outputs[1 + i / count], i % count, sum);
    }
}

void bel_row_norm_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                   const bel_row_norm *n)
{
    bel_row_norm_params p = {.norm = *n, .rows_per_tile = (n->rows + MAX_PARTS - 1) / MAX_PARTS};
    int64_t least = bel_tile_rows(n->columns);
    if (p.rows_per_tile < least) p.rows_per_tile = least;
    call->run = run_gradient;
    call->run_writes = true;
    call->tile_count = (n->rows + p.rows_per_tile - 1) / p.rows_per_tile;
    call->after = run_add_parts;
    call->after_tiles = 1;
    call->workspace_bytes =
        (size_t)(call->tile_count * 2 * scale_count(n)) * (sizeof(double) + sizeof(float));
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
