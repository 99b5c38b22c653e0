// Attention (ops/attention.c). With fast arithmetic, a library makes its products where it can
// (library_attention.c). Otherwise the forward pass is one launch. The gradient takes two: queries
// by keys, and keys by queries. So one thread makes each sum, in the CPU's order: the CPU's prepare
// function decides how keys are cut into blocks and parts. Heads that do not fit its blocks are
// plain loops, as on the CPU.
#include "cuda/device.h"
#include "cuda/kernels/attention.h"
#include "ops/kernels/attention.h"

enum { ROWS = BEL_CUDA_ATTENTION_ROWS };

_Static_assert(BEL_ATTENTION_QUERIES % ROWS == 0, "queries of a block are processed together");
_Static_assert((int)BEL_ATTENTION_MOST_WIDTH == (int)BEL_CUDA_ATTENTION_MOST_WIDTH, "widths");

static bel_cuda_attention attention_read(const bel_kernel_call *call, int q)
{
    const bel_attention_shape *shape = call->params;
    return (bel_cuda_attention){.matrices = shape->n * shape->heads,
                                .heads = shape->heads,
                                .t = shape->t,
                                .s = shape->s,
                                .d = shape->d,
                                .e = shape->e,
                                .queries = BEL_ATTENTION_QUERIES,
                                .q = q,
                                .lengths = shape->lengths,
                                .scale = shape->scale,
                                .causal = shape->causal,
                                .is_f64 = call->inputs[0].dtype == BEL_DTYPE_F64};
}

static bool is_plain(const bel_cuda_build *build)
{
    return bel_prepares_plain(build->prepare, build->call) ||
           !bel_attention_fits(build->call->params);
}

// The other params; the CPU decides the blocks and parts.
static bel_status *read_walk(const bel_kernel_call *call, bel_cuda_attention *p)
{
    const bel_attention_walk *walk = call->params;
    p->keys = walk->keys;
    p->parts = walk->parts;
    p->part_keys = walk->part_keys;
    if (p->keys <= BEL_CUDA_ATTENTION_MOST_KEYS && p->keys % ROWS == 0) return NULL;
    return BEL_ERR(BEL_INTERNAL, "blocks of %lld keys", (long long)p->keys);
}

static bel_status *add_plain(bel_cuda_build *build, const char *kernel, int64_t count,
                             const bel_cuda_attention *p)
{
    return bel_cuda_add(build, "attention_plain.cu", kernel, bel_cuda_blocks(count), BEL_CUDA_BLOCK,
                        p, sizeof *p);
}

static bel_status *attention_add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                                 const bel_cuda_attention *p)
{
    return bel_cuda_add(build, "attention.cu", kernel, blocks, BEL_CUDA_ATTENTION_THREADS, p,
                        sizeof *p);
}

static int64_t blocks_of(int64_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

bel_status *bel_cuda_prepare_attention(bel_cuda_build *build)
{
    bel_cuda_attention p = attention_read(build->call, 0);
    bool taken;
    BEL_TRY(bel_cuda_try_attention(build, &p, &taken));
    if (taken) return NULL;
    if (is_plain(build)) return add_plain(build, "attention_plain_forward", p.matrices * p.t, &p);
    BEL_TRY(read_walk(build->call, &p));
    return attention_add(build, "attention_forward", p.matrices * blocks_of(p.t), &p);
}

bel_status *bel_cuda_prepare_attention_grad(bel_cuda_build *build)
{
    bel_cuda_attention p = attention_read(build->call, 1);
    bool taken;
    BEL_TRY(bel_cuda_try_attention(build, &p, &taken));
    if (taken) return NULL;
    if (is_plain(build)) {
        BEL_TRY(add_plain(build, "attention_plain_grad_queries", p.matrices * p.t, &p));
        return add_plain(build, "attention_plain_grad_keys", p.matrices * p.s, &p);
    }
    BEL_TRY(read_walk(build->call, &p));
    int64_t queries = p.matrices * p.t, parts = p.parts > 1 ? p.parts * p.d : 0;
    build->call->workspace_bytes = (size_t)(queries * (1 + parts)) * sizeof(float);
    BEL_TRY(attention_add(build, "attention_inner", blocks_of(queries), &p));
    BEL_TRY(attention_add(build, "attention_grad_keys", p.matrices * blocks_of(p.s), &p));
    BEL_TRY(
        attention_add(build, "attention_grad_queries", p.parts * p.matrices * blocks_of(p.t), &p));
    if (p.parts <= 1) return NULL;
    return attention_add(build, "attention_add_parts", bel_cuda_blocks(queries * p.d), &p);
}
