// Pairwise sums in place. Only trainable variables take part in the sum over all variables, so that
// others do not shift its order. The sums overwrite their inputs, so the only memory is one number
// for each variable.
#include "ps/layout/norms.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// First grain of a segment among all grains.
static int64_t grain_of(const bel_layout *layout, const bel_segment *segment)
{
    return layout->variables[segment->variable].first_grain + segment->first / BEL_GRAIN;
}

void bel_norms_take(const bel_layout *layout, const bel_segment *segment, const float *array,
                    double *squares)
{
    int64_t grain = grain_of(layout, segment);
    for (int64_t at = 0; at < segment->count; at += BEL_GRAIN, grain++) {
        int64_t left = segment->count - at;
        int64_t n = left < BEL_GRAIN ? left : BEL_GRAIN;
        squares[grain] = array != NULL ? bel_rule_sum_square(array + segment->offset + at, n) : 0;
    }
}

// Calls `act` for each run of grains that the shard holds, with its place in the list.
static size_t each_run(const bel_layout *layout, int shard,
                       void (*act)(void *context, int64_t grain, size_t place, size_t count),
                       void *context)
{
    size_t place = 0;
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        for (int s = 0; chunk->shard == shard && s < chunk->segment_count; s++) {
            const bel_segment *segment = &layout->segments[chunk->first_segment + s];
            size_t count = (size_t)bel_grains_of(segment->count);
            if (act != NULL) act(context, grain_of(layout, segment), place, count);
            place += count;
        }
    }
    return place;
}

size_t bel_norms_count(const bel_layout *layout, int shard)
{
    return each_run(layout, shard, NULL, NULL);
}

// One plane of sums, by grain and as a list.
typedef struct norms_plane {
    const double *from;
    double *to;
} norms_plane;

static void pack_run(void *context, int64_t grain, size_t place, size_t count)
{
    const norms_plane *plane = context;
    memcpy(plane->to + place, plane->from + grain, count * sizeof(double));
}

static void unpack_run(void *context, int64_t grain, size_t place, size_t count)
{
    const norms_plane *plane = context;
    memcpy(plane->to + grain, plane->from + place, count * sizeof(double));
}

void bel_norms_pack(const bel_layout *layout, int shard, int planes, const double *squares,
                    double *out_list)
{
    norms_plane plane = {squares, out_list};
    for (int i = 0; i < planes; i++) {
        plane.to += each_run(layout, shard, pack_run, &plane);
        plane.from += layout->grain_count;
    }
}

void bel_norms_unpack(const bel_layout *layout, int shard, int planes, const double *list,
                      double *squares)
{
    norms_plane plane = {list, squares};
    for (int i = 0; i < planes; i++) {
        plane.from += each_run(layout, shard, unpack_run, &plane);
        plane.to += layout->grain_count;
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
