// Operations that depend on the position in a run: random numbers and the step itself. As with
// dropout, a number is a function of (seed, kind of numbers, the operation's id), (step, replica)
// and the element's place (docs/determinism.md), independent of resuming, towers and threads. The
// input gives only the shape. Every element is computed in double and rounded to its type.
#include <math.h>

#include "base/rng.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/random.h"

bel_status *bel_infer_random(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    double low = bel_attr_number(attrs, "low", 0), high = bel_attr_number(attrs, "high", 1);
    double scale = bel_attr_number(attrs, "scale", 1), mean = bel_attr_number(attrs, "mean", 0);
    if (!(low < high) || !isfinite(high - low)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "low must be below high, got %g and %g", low, high);
    }
    if (isfinite(mean) && isfinite(scale) && scale >= 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "mean must be finite and the deviation at least 0, got %g and %g", mean, scale);
}

static void run_uniform(const bel_kernel_call *call, int64_t tile)
{
    const bel_random_params *p = call->params;
    const bel_tensor *y = &call->outputs[0];
    bel_rng_key key = bel_rng_key_make(call->context->seed, BEL_PURPOSE_UNIFORM, call->random_id);
    int64_t begin = bel_tile_begin(tile); // a multiple of 4
    int64_t end = bel_tile_end(tile, bel_shape_elements(&y->shape));
    for (int64_t i = begin; i < end; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, bel_run_place(call->context), (uint64_t)i / 4, words);
        for (int64_t j = 0; j < 4 && i + j < end; j++)
            bel_element_set(y, i + j, p->first + p->factor * (double)bel_rng_unit(words[j]));
    }
}

static void run_normal(const bel_kernel_call *call, int64_t tile)
{
    const bel_random_params *p = call->params;
    const bel_tensor *y = &call->outputs[0];
    bel_rng_key key = bel_rng_key_make(call->context->seed, BEL_PURPOSE_NORMAL, call->random_id);
    int64_t begin = bel_tile_begin(tile);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&y->shape));
    for (int64_t i = begin; i < end; i += 2) {
        double normal[2];
        bel_rng_normal_pair(key, bel_run_place(call->context), (uint64_t)i / 2, normal);
        for (int64_t j = 0; j < 2 && i + j < end; j++)
            bel_element_set(y, i + j, p->first + p->factor * normal[j]);
    }
}

static void random_prepare(const bel_prepare *prepare, bel_kernel_call *call, double first,
                           double factor)
{
    bel_random_params p = {.first = first, .factor = factor};
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

void bel_prepare_random_uniform(const bel_prepare *request, bel_kernel_call *call)
{
    double low = bel_attr_number(request->attrs, "low", 0);
    call->run = run_uniform;
    random_prepare(request, call, low, bel_attr_number(request->attrs, "high", 1) - low);
}

void bel_prepare_random_normal(const bel_prepare *request, bel_kernel_call *call)
{
    call->run = run_normal;
    random_prepare(request, call, bel_attr_number(request->attrs, "mean", 0),
                   bel_attr_number(request->attrs, "scale", 1));
}

// --- The step ------------------------------------------------------------------------------------

bel_status *bel_infer_global_step(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)inputs, (void)input_count;
    out_outputs[0] = (bel_spec){BEL_DTYPE_I64, bel_shape_scalar()};
    return NULL;
}

static void run_global_step(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    *(int64_t *)call->outputs[0].data = call->context->step;
}

void bel_prepare_global_step(const bel_prepare *request, bel_kernel_call *call)
{
    (void)request;
    call->run = run_global_step;
    call->tile_count = 1;
}
