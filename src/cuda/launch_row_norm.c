// Normalization of rows (ops/row_norm.c, ops/kernels/row_norm.c): layers, instances and groups.
#include "cuda/device.h"
#include "cuda/kernels/row_norm.h"
#include "ops/kernels/row_norm.h"

enum { THREADS = BEL_CUDA_ROW_TEAMS * BEL_CUDA_ROW_LANES };

static bel_status *row_norm_add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                                const bel_cuda_row_norm *p)
{
    return bel_cuda_add(build, "row_norm.cu", kernel, blocks, THREADS, p, sizeof *p);
}

static bel_status *add_plain(bel_cuda_build *build, const char *kernel, int64_t count,
                             const bel_cuda_row_norm *p)
{
    return bel_cuda_add(build, "row_norm_plain.cu", kernel, bel_cuda_blocks(count), BEL_CUDA_BLOCK,
                        p, sizeof *p);
}

// One team for each run, or one block if runs are long.
static int64_t blocks_of(int64_t runs, int64_t elements)
{
    if (elements > BEL_CUDA_ROW_ELEMENTS) return runs;
    return (runs + BEL_CUDA_ROW_TEAMS - 1) / BEL_CUDA_ROW_TEAMS;
}

static bel_status *row_norm_read(const bel_cuda_build *build, bool plain, bel_cuda_row_norm *out)
{
    const bel_kernel_call *call = build->call;
    const bel_row_norm *n = call->params;
    if (n->columns > INT32_MAX)
        return BEL_ERR(BEL_UNIMPLEMENTED, "the rows are too long for a GPU");
    *out = (bel_cuda_row_norm){.rows = n->rows,
                               .columns = n->columns,
                               .scales = n->scales,
                               .run = n->run,
                               .period = n->period,
                               .epsilon = n->epsilon,
                               .has_bias = call->input_count > 2,
                               .is_f64 = call->inputs[0].dtype == BEL_DTYPE_F64};
    if (plain) return NULL;
    out->rows_per_part = ((const bel_row_norm_params *)call->params)->rows_per_tile;
    out->parts = (n->rows + out->rows_per_part - 1) / out->rows_per_part;
    return NULL;
}

bel_status *bel_cuda_prepare_row_norm(bel_cuda_build *build)
{
    bel_cuda_row_norm p;
    bool plain = bel_prepares_plain(build->prepare, build->call);
    BEL_TRY(row_norm_read(build, plain, &p));
    if (plain) return add_plain(build, "row_norm_plain_forward", p.rows, &p);
    return row_norm_add(build, "row_norm_forward", blocks_of(p.rows, p.columns), &p);
}

// The workspace has the sums of runs, then two floats for each row.
static bel_status *prepare_runs(bel_cuda_build *build, bel_cuda_row_norm *p)
{
    int64_t runs = p->rows * p->scales;
    p->slopes = runs * 2 * (int64_t)sizeof(double);
    build->call->workspace_bytes = (size_t)p->slopes + (size_t)p->rows * 2 * sizeof(float);
    BEL_TRY(row_norm_add(build, "row_norm_run_sums", blocks_of(runs, p->run), p));
    BEL_TRY(row_norm_add(build, "row_norm_run_slopes", bel_cuda_blocks(p->rows), p));
    BEL_TRY(row_norm_add(build, "row_norm_run_apply", bel_cuda_blocks(p->rows * p->columns), p));
    return row_norm_add(build, "row_norm_run_scales", bel_cuda_blocks(p->period * p->scales), p);
}

bel_status *bel_cuda_prepare_row_norm_grad(bel_cuda_build *build)
{
    bel_cuda_row_norm p;
    bool plain = bel_prepares_plain(build->prepare, build->call);
    BEL_TRY(row_norm_read(build, plain, &p));
    int64_t scales = p.period * p.scales;
    if (plain) {
        BEL_TRY(add_plain(build, "row_norm_plain_grad", p.rows, &p));
        return add_plain(build, "row_norm_plain_scales", scales, &p);
    }
    if (p.run > 1) return prepare_runs(build, &p);
    build->call->workspace_bytes = (size_t)(p.parts * 2 * scales) * sizeof(double);
    BEL_TRY(row_norm_add(build, "row_norm_grad_each", blocks_of(p.rows, p.columns), &p));
    BEL_TRY(row_norm_add(build, "row_norm_part_sums", bel_cuda_blocks(p.parts * scales), &p));
    return row_norm_add(build, "row_norm_add_parts", bel_cuda_blocks(2 * scales), &p);
}
