// Reductions: see kernels/reduce.cu. The CPU's prepare function decides the order of addition (rows
// in lanes, rows of a column, runs of a slice). Here that becomes dimensions that are kept and
// dimensions that are reduced, each with its steps.
#include "cuda/device.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/rows.h"
#include "ops/reduce.h"

static int32_t kind_of(bel_op op)
{
    if (op == BEL_OP_REDUCE_MAX) return BEL_CUDA_REDUCE_MAX;
    return op == BEL_OP_REDUCE_SUM_SQUARE ? BEL_CUDA_REDUCE_SUM_SQUARE : BEL_CUDA_REDUCE_SUM;
}

// Adds a kept dimension of x: its results are `place` apart.
static void cuda_reduce_keep(bel_cuda_reduce *p, int64_t size, int64_t step, int64_t place)
{
    int d = p->kept_rank++;
    p->kept_dims[d] = size;
    p->kept_steps[d] = step;
    p->kept_places[d] = place;
}

static void cuda_reduce_lose(bel_cuda_reduce *p, int64_t size, int64_t step)
{
    int d = p->gone_rank++;
    p->gone_dims[d] = size;
    p->gone_steps[d] = step;
}

static bel_status *reduce_add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                              const bel_cuda_reduce *p)
{
    return bel_cuda_add(build, "reduce.cu", kernel, blocks, BEL_CUDA_BLOCK, p, sizeof *p);
}

// Runs long enough for 16 lanes, or of few results, are first added side by side.
static bel_status *launch_slices(bel_cuda_build *build, bel_cuda_reduce *p)
{
    enum { LONG_RUN = 16, FEW_RESULTS = 1 << 12 };
    int64_t results = p->slices * p->results;
    p->parts = 1;
    for (int32_t d = 0; d < p->gone_rank; d++)
        p->parts *= p->gone_dims[d];
    if (p->run == 1 || p->parts == 0 || (p->run < LONG_RUN && results > FEW_RESULTS))
        return reduce_add(build, "reduce_slices", bel_cuda_blocks(results), p);
    int64_t runs = results * p->parts;
    build->call->workspace_bytes = (size_t)runs * sizeof(float);
    BEL_TRY(reduce_add(build, "reduce_slice_runs", (runs + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS, p));
    return reduce_add(build, "reduce_slice_totals", bel_cuda_blocks(results), p);
}

static bel_status *add_slices(bel_cuda_build *build, const bel_reduce_slices *slices)
{
    const bel_walk *walk = &slices->walk;
    bel_cuda_reduce p = {.op = kind_of(build->call->op),
                         .slices = slices->slices,
                         .elements = slices->elements,
                         .results = slices->results,
                         .run = 1,
                         .start = slices->start,
                         .float_scale = slices->scale};
    int64_t steps[BEL_MAX_RANK], step = 1;
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        steps[d] = step;
        step *= walk->dims[d];
    }
    for (int32_t d = 0; d < walk->rank; d++) {
        bool last = d == walk->rank - 1, gone = walk->steps[0][d] == 0;
        if (!gone) cuda_reduce_keep(&p, walk->dims[d], steps[d], walk->steps[0][d]);
        if (gone && last) p.run = walk->dims[d];
        if (gone && !last) cuda_reduce_lose(&p, walk->dims[d], steps[d]);
    }
    if (p.elements == 0) cuda_reduce_lose(&p, 0, 0); // results are the initial values
    return launch_slices(build, &p);
}

static bel_status *add_plain(bel_cuda_build *build, const bel_reduce_box *box)
{
    const bel_shape *x = &build->call->inputs[0].shape;
    bel_cuda_reduce p = {.op = kind_of(build->call->op), .results = 1, .scale = box->scale};
    int64_t steps[BEL_MAX_RANK], places[BEL_MAX_RANK], step = 1;
    if (build->call->outputs[0].dtype != BEL_DTYPE_F64)
        return BEL_ERR(BEL_UNIMPLEMENTED, "GPUs reduce only f32 and f64");
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        steps[d] = step;
        places[d] = p.results;
        step *= x->dims[d];
        if (!box->reduced[d]) p.results *= x->dims[d];
    }
    for (int32_t d = 0; d < x->rank; d++) {
        if (box->reduced[d]) {
            cuda_reduce_lose(&p, x->dims[d], steps[d]);
        } else {
            cuda_reduce_keep(&p, x->dims[d], steps[d], places[d]);
        }
    }
    return reduce_add(build, "reduce_f64", bel_cuda_blocks(p.results), &p);
}

// A column is one chain, which takes long for many rows while most of a GPU is idle. So if the
// order is free, columns are cut into parts. There are enough threads, of four columns each, to
// fill a GPU; no part is so short that its sum is not worth storing.
static bel_status *add_columns(bel_cuda_build *build, bel_cuda_reduce *p)
{
    enum { MANY_ROWS = 256, LEAST_ROWS = 32, ALL_THREADS = 1 << 16, THREADS = 128, SMALL = 32 };
    enum { MOST_BLOCKS = 1 << 18, COLUMNS = BEL_CUDA_REDUCE_COLUMNS };
    p->bf16 = build->call->inputs_bf16[0];
    int64_t fours = (p->inner + 3) / 4, most_parts = ALL_THREADS / (fours > 0 ? fours : 1);
    if (!bel_cuda_is_fast(build) || p->count < MANY_ROWS || most_parts < 2) {
        int64_t blocks = (p->inner + SMALL - 1) / SMALL;
        return bel_cuda_add(build, "reduce.cu", "reduce_columns",
                            blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, SMALL, p, sizeof *p);
    }
    p->part = (p->count + most_parts - 1) / most_parts;
    p->part = p->part < LEAST_ROWS ? LEAST_ROWS : (p->part + 15) / 16 * 16; // whole groups
    p->parts = (p->count + p->part - 1) / p->part;
    build->call->workspace_bytes = (size_t)(p->parts * p->inner) * sizeof(float);
    BEL_TRY(bel_cuda_add(build, "reduce.cu", "reduce_column_parts",
                         (p->parts * fours + THREADS - 1) / THREADS, THREADS, p, sizeof *p));
    return bel_cuda_add(build, "reduce.cu", "reduce_column_totals",
                        (p->inner + COLUMNS - 1) / COLUMNS, BEL_CUDA_REDUCE_THREADS, p, sizeof *p);
}

bool bel_cuda_reduces_columns(const bel_kernel_call *call)
{
    return ((const bel_reduce_box *)call->params)->way == BEL_REDUCE_COLUMNS;
}

// Rows of one block each take one launch. So do rows in such number that they keep a GPU busy while
// their blocks are processed one by one.
static bel_status *add_rows(bel_cuda_build *build, bel_cuda_reduce *p)
{
    enum { MANY_ROWS = 4096 };
    bool largest = p->op == BEL_CUDA_REDUCE_MAX;
    if (p->count <= p->block || p->outer >= MANY_ROWS)
        return reduce_add(build, "reduce_rows", (p->outer + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS, p);
    p->parts = (p->count + p->block - 1) / p->block;
    int64_t all = p->outer * p->parts, numbers = all * (largest ? BEL_CUDA_LANES : 1);
    build->call->workspace_bytes = (size_t)numbers * sizeof(float);
    BEL_TRY(reduce_add(build, "reduce_row_parts", (all + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS, p));
    return bel_cuda_add(build, "reduce.cu", largest ? "reduce_row_maxima" : "reduce_row_sums",
                        p->outer, BEL_CUDA_REDUCE_THREADS, p, sizeof *p);
}

bel_status *bel_cuda_prepare_reduce(bel_cuda_build *build)
{
    const bel_reduce_box *box = build->call->params; // or slices: `way` is first in both
    if (box->way == BEL_REDUCE_SLICES) return add_slices(build, build->call->params);
    if (box->way == BEL_REDUCE_PLAIN) return add_plain(build, box);
    bel_cuda_reduce p = {.op = kind_of(build->call->op),
                         .outer = box->outer,
                         .count = box->count,
                         .inner = box->inner,
                         .block = BEL_REDUCE_BLOCK,
                         .scale = box->scale};
    if (box->way == BEL_REDUCE_COLUMNS) return add_columns(build, &p);
    return add_rows(build, &p);
}
