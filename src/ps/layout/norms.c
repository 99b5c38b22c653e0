// Pairwise sums in place. Only trainable variables take part in the sum over all variables, so that
// others do not shift its order. The sums overwrite their inputs, so the only memory is one number
// for each variable.
#include "ps/layout/norms.h"

#include <math.h>

#include "base/alloc.h"

void bel_norms_take(const bel_layout *layout, const bel_segment *segment, const float *array,
                    double *squares)
{
    const bel_layout_variable *variable = &layout->variables[segment->variable];
    int64_t grain = variable->first_grain + segment->first / BEL_GRAIN;
    for (int64_t at = 0; at < segment->count; at += BEL_GRAIN, grain++) {
        int64_t left = segment->count - at;
        squares[grain] =
            bel_rule_sum_square(array + segment->offset + at, left < BEL_GRAIN ? left : BEL_GRAIN);
    }
}

// Adds neighbors first, then sums of 2, 4, …; a sum without a partner waits for the next round.
static double add_pairwise(double *values, int64_t n)
{
    for (int64_t stride = 1; stride < n; stride *= 2)
        for (int64_t i = 0; i + stride < n; i += 2 * stride)
            values[i] += values[i + stride];
    return n > 0 ? values[0] : 0;
}

// Factor that scales a norm down to its limit; 1 if the norm is within it.
static float factor_of(double square, double limit)
{
    double norm = sqrt(square);
    return norm > limit ? (float)(limit / norm) : 1.0f;
}

double bel_norms_combine(const bel_layout *layout, double *squares,
                         bel_norms_use (*use_of)(const void *context, int variable),
                         const void *context, float *out_factors)
{
    double *totals = bel_xcalloc((size_t)layout->variable_count, sizeof *totals);
    int count = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        const bel_norms_use use = use_of(context, v);
        if (!use.updates) continue;
        int64_t grains = bel_grains_of(variable->elements);
        double square = add_pairwise(squares + variable->first_grain, grains);
        totals[count++] = square;
        out_factors[v] = use.clip_norm > 0 ? factor_of(square, use.clip_norm) : 1;
        if (use.trust == NULL) continue;
        double *of_values = squares + layout->grain_count + variable->first_grain;
        out_factors[v] = bel_rule_trust(use.trust, add_pairwise(of_values, grains), square);
    }
    double all = add_pairwise(totals, count);
    bel_free(totals);
    return all;
}

void bel_norms_limit(const bel_layout *layout, double square, double limit, float *factors)
{
    for (int v = 0; limit > 0 && v < layout->variable_count; v++)
        factors[v] = factor_of(square, limit);
}
