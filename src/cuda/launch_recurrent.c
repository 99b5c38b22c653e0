// GRU, LSTM and their gradients: see kernels/recurrent_forward.h and recurrent_back.h.
#include "ops/recurrent.h"

#include <string.h>

#include "cuda/device.h"
#include "cuda/kernels/recurrent.h"

enum { SIDE = BEL_CUDA_RECURRENT_SIDE, ROWS = BEL_CUDA_RECURRENT_ROWS };

static bel_cuda_recurrent recurrent_read(const bel_kernel_call *call)
{
    const bel_recurrent_plain *plain = call->params; // or a struct that starts like it
    bel_cuda_recurrent p = {.s = plain->shape, .o = plain->operands};
    p.units = p.s.gates * p.s.hidden;
    p.kept = p.units + (p.s.reset_last ? p.s.hidden : 0);
    p.lengths_i64 = p.o.lengths >= 0 && call->inputs[p.o.lengths].dtype == BEL_DTYPE_I64;
    p.padded = !p.s.plain && p.s.hidden % BEL_RECURRENT_LANES != 0;
    for (int g = 0; g < (int)p.s.gates; g++)
        p.x_gates[g] = g;
    if (p.s.plain) return p;
    const bel_recurrent_walk *walk = call->params;
    p.row_tiles = walk->row_tiles;
    for (int g = 0, at = 0; g < (int)walk->group_count; g++)
        if (walk->groups[g].x_gate >= 0) p.x_gates[at++] = walk->groups[g].x_gate;
    return p;
}

static bel_status *recurrent_add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                                 const bel_cuda_recurrent *p)
{
    const char *source = p->s.plain ? "recurrent_f64.cu" : "recurrent_f32.cu";
    return bel_cuda_add(build, source, kernel, blocks, BEL_CUDA_BLOCK, p, sizeof *p);
}

static int64_t recurrent_take(int64_t *end, int64_t numbers)
{
    int64_t at = *end;
    *end += (numbers + 31) / 32 * 32;
    return at;
}

static int64_t tiles(int64_t count)
{
    return (count + SIDE - 1) / SIDE;
}

static bel_status *check_type(const bel_kernel_call *call, const bel_cuda_recurrent *p)
{
    bool fits = call->inputs[0].dtype == (p->s.plain ? BEL_DTYPE_F64 : BEL_DTYPE_F32);
    return fits ? NULL : BEL_ERR(BEL_UNIMPLEMENTED, "GPUs have only f32 and f64");
}

static int64_t row_blocks(const bel_cuda_recurrent *p)
{
    return p->s.directions * ((p->s.n + ROWS - 1) / ROWS);
}

bel_status *bel_cuda_prepare_recurrent(bel_cuda_build *build)
{
    bel_cuda_recurrent p = recurrent_read(build->call);
    int64_t rows = p.s.directions * p.s.n, end = 0;
    BEL_TRY(check_type(build->call, &p));
    p.turned = recurrent_take(&end, p.s.directions * p.units * p.s.hidden);
    p.pre = recurrent_take(&end, rows * p.s.t * p.units);
    p.h = recurrent_take(&end, rows * p.s.hidden);
    p.c = recurrent_take(&end, rows * p.s.hidden);
    p.reset_h = recurrent_take(&end, rows * p.s.hidden);
    p.gates = recurrent_take(&end, rows * p.kept);
    build->call->workspace_bytes = (size_t)end * bel_dtype_size(build->call->inputs[0].dtype);
    BEL_TRY(recurrent_add(build, "recurrent_turn",
                          bel_cuda_blocks(p.s.directions * p.units * p.s.hidden), &p));
    BEL_TRY(recurrent_add(build, "recurrent_inputs",
                          p.s.directions * tiles(p.s.n * p.s.t) * tiles(p.units), &p));
    return recurrent_add(build, "recurrent_steps", row_blocks(&p), &p);
}

bel_status *bel_cuda_prepare_recurrent_grad(bel_cuda_build *build)
{
    bel_cuda_recurrent p = recurrent_read(build->call);
    int64_t rows = p.s.directions * p.s.n, steps = p.s.n * p.s.t, end = 0;
    int64_t size = (int64_t)bel_dtype_size(build->call->inputs[0].dtype);
    BEL_TRY(check_type(build->call, &p));
    recurrent_take(&end, p.s.n); // for lengths
    p.ranks = recurrent_take(&end, p.s.n);
    p.order = recurrent_take(&end, p.s.n);
    p.total = recurrent_take(&end, 1);
    p.places = recurrent_take(&end, steps);
    p.list = recurrent_take(&end, steps);
    end *= (int64_t)sizeof(int64_t) / size;
    p.h = recurrent_take(&end, rows * p.s.hidden);
    p.c = recurrent_take(&end, rows * p.s.hidden);
    p.reset_h = recurrent_take(&end, rows * p.s.t * p.s.hidden);
    p.gates = recurrent_take(&end, rows * p.s.t * p.kept);
    build->call->workspace_bytes = (size_t)(end * size);
    int64_t columns = (p.s.in + SIDE) / SIDE + (p.s.hidden + SIDE) / SIDE; // each with a bias
    BEL_TRY(recurrent_add(build, "recurrent_ranks", bel_cuda_blocks(p.s.n), &p));
    BEL_TRY(recurrent_add(build, "recurrent_places", bel_cuda_blocks(steps), &p));
    BEL_TRY(recurrent_add(build, "recurrent_back", row_blocks(&p), &p));
    BEL_TRY(recurrent_add(build, "recurrent_weights",
                          p.s.directions * p.s.gates * tiles(p.s.hidden) * columns, &p));
    return p.o.dx ? recurrent_add(build, "recurrent_dx", tiles(steps) * tiles(p.s.in), &p) : NULL;
}
