// Functions of one input with number attributes (LeakyRelu, Elu, HardSigmoid, Clip), and gradients
// that read x. kernels/elementwise.def defines the functions. The plain kernel computes in double
// for any float type and is the oracle. The fast one is only for f32 and gets the two numbers
// rounded to f32. Operands have one shape: there is no broadcasting.
#include <math.h>

#include "base/real.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/vector.h"

// --- Curves --------------------------------------------------------------------------------------

#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain)                                \
    static double id##_plain(double p, double q, double s, double t)                               \
    {                                                                                              \
        (void)q, (void)t;                                                                          \
        return plain;                                                                              \
    }
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain)                           \
    CURVE(id, s_name, s_default, t_name, t_default, f32, plain)
#include "ops/kernels/elementwise.def"

static double (*const curve_plain[BEL_OP_COUNT])(double p, double q, double s, double t) = {
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain) [BEL_OP_##id] = id##_plain,
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain) [BEL_OP_##id] = id##_plain,
#include "ops/kernels/elementwise.def"
};

typedef struct curve_params {
    bel_vector_kernel kernel; // when fast
    double s, t;
} curve_params;

static void run_curve_reference(const bel_kernel_call *call, int64_t tile)
{
    const curve_params *params = call->params;
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        double p = bel_element_get(&call->inputs[0], i);
        double q = call->input_count > 1 ? bel_element_get(&call->inputs[1], i) : 0;
        double y = curve_plain[call->op](p, q, params->s, params->t);
        bel_element_set(&call->outputs[0], i, y);
    }
}

static void run_curve(const bel_kernel_call *call, int64_t tile)
{
    const curve_params *params = call->params;
    int64_t begin = bel_tile_begin(tile);
    int64_t n = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape)) - begin;
    const float *first = (const float *)call->inputs[0].data + begin;
    float *y = (float *)call->outputs[0].data + begin, s = (float)params->s, t = (float)params->t;
    if (params->kernel.curve != NULL) {
        params->kernel.curve(first, s, t, y, n);
    } else {
        params->kernel.curve_grad(first, (const float *)call->inputs[1].data + begin, s, t, y, n);
    }
}

void bel_prepare_curve(const bel_prepare *prepare, bel_kernel_call *call)
{
    curve_params params = {.s = 0};
    bel_curve_numbers(call->op, prepare->attrs, &params.s, &params.t);
    bool fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32 &&
                bel_vector_kernel_of(call->op, &params.kernel);
    call->run = fast ? run_curve : run_curve_reference;
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
    call->params = bel_arena_copy(prepare->arena, &params, sizeof params);
}
