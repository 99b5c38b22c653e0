// Operations along one axis that depend on the order of its elements: ArgMax, ArgMin, TopK, CumSum.
// Tiles are runs of lanes (order.h).
#include "ops/order.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"

// --- Shape rules ---------------------------------------------------------------------------------

bel_status *bel_infer_arg(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                          bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape;
    int32_t axis;
    BEL_TRY(bel_read_axis(attrs, 0, x->rank, &axis));
    bool keepdims = bel_attr_number(attrs, "keepdims", 0) != 0;
    bel_shape y = {.rank = 0};
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis || keepdims) y.dims[y.rank++] = d == axis ? 1 : x->dims[d];
    out_outputs[0] = (bel_spec){BEL_DTYPE_I64, y};
    return NULL;
}

bel_status *bel_infer_top_k(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                            bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_number(attrs, inputs, input_count, out_outputs));
    int32_t axis;
    BEL_TRY(bel_read_axis(attrs, -1, inputs[0].shape.rank, &axis));
    int64_t k = bel_attr_whole(attrs, "k", 1), size = inputs[0].shape.dims[axis];
    if (k < 1 || (size >= 0 && k > size)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "k must be from 1 to the %lld elements, got %lld",
                       (long long)size, (long long)k);
    }
    out_outputs[0].shape.dims[axis] = k;
    out_outputs[1] = (bel_spec){BEL_DTYPE_I64, out_outputs[0].shape};
    return NULL;
}

bel_status *bel_infer_cum_sum(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    int32_t axis;
    BEL_TRY(bel_infer_number(attrs, inputs, input_count, out_outputs));
    return bel_read_axis(attrs, 0, inputs[0].shape.rank, &axis);
}

// --- Lanes ---------------------------------------------------------------------------------------

// Sets up the lanes of x and the tiles.
static bel_lane_params make_lanes(const bel_prepare *prepare, bel_kernel_call *call,
                                  int64_t otherwise)
{
    const bel_shape *x = &call->inputs[0].shape;
    int32_t axis = 0;
    bel_status_ignore(
        bel_read_axis(prepare->attrs, otherwise, x->rank, &axis)); // by the shape rule
    bel_lane_params p = {.count = x->dims[axis], .inner = 1, .lanes = 1};
    for (int32_t d = 0; d < x->rank; d++) {
        if (d > axis) p.inner *= x->dims[d];
        if (d != axis) p.lanes *= x->dims[d];
    }
    int64_t per_tile = bel_tile_rows(p.count);
    call->tile_count = (p.lanes + per_tile - 1) / per_tile;
    return p;
}

static bool lane_flag(const bel_prepare *prepare, const char *name, double otherwise)
{
    return bel_attr_number(prepare->attrs, name, otherwise) != 0;
}

static int64_t last_lane(const bel_lane_params *p, int64_t tile)
{
    int64_t last = (tile + 1) * bel_tile_rows(p->count);
    return last < p->lanes ? last : p->lanes;
}

// Returns the first element of a lane in a tensor with `count` elements along the axis.
static int64_t lane_start(const bel_lane_params *p, int64_t lane, int64_t count)
{
    return lane / p->inner * count * p->inner + lane % p->inner;
}

// --- ArgMax, ArgMin ------------------------------------------------------------------------------

static void run_arg(const bel_kernel_call *call, int64_t tile)
{
    const bel_lane_params *p = call->params;
    const bel_tensor *x = &call->inputs[0];
    int64_t *y = call->outputs[0].data;
    for (int64_t lane = tile * bel_tile_rows(p->count); lane < last_lane(p, tile); lane++) {
        int64_t at = lane_start(p, lane, p->count);
        double best = p->count > 0 ? bel_element_get(x, at) : 0;
        y[lane] = 0;
        for (int64_t j = 1; j < p->count; j++) {
            double v = bel_element_get(x, at + j * p->inner);
            bool better = p->smallest ? v < best : v > best;
            if (!better && !(p->last_of_equals && v == best)) continue;
            best = v;
            y[lane] = j;
        }
    }
}

void bel_prepare_arg(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_lane_params p = make_lanes(prepare, call, 0);
    p.smallest = call->op == BEL_OP_ARG_MIN;
    p.last_of_equals = lane_flag(prepare, "select_last_index", 0);
    call->run = run_arg;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- TopK ----------------------------------------------------------------------------------------

// Keeps the best elements so far in order, and inserts: among equal elements the first comes first.
// Suits a small k; a lane takes up to count · k steps.
static void run_top_k(const bel_kernel_call *call, int64_t tile)
{
    const bel_lane_params *p = call->params;
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t *indices = call->outputs[1].data;
    for (int64_t lane = tile * bel_tile_rows(p->count); lane < last_lane(p, tile); lane++) {
        int64_t from = lane_start(p, lane, p->count), to = lane_start(p, lane, p->k);
        for (int64_t j = 0; j < p->count; j++) {
            double v = bel_element_get(x, from + j * p->inner);
            int64_t place = j < p->k ? j : p->k; // after those that are kept
            for (; place > 0; place--) {
                int64_t above = to + (place - 1) * p->inner;
                double w = bel_element_get(y, above);
                if (!(p->smallest ? v < w : v > w)) break;
                if (place == p->k) continue; // dropped
                bel_element_set(y, above + p->inner, w);
                indices[above + p->inner] = indices[above];
            }
            if (place == p->k) continue;
            bel_element_set(y, to + place * p->inner, v);
            indices[to + place * p->inner] = j;
        }
    }
}

void bel_prepare_top_k(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_lane_params p = make_lanes(prepare, call, -1);
    p.k = bel_attr_whole(prepare->attrs, "k", 1);
    p.smallest = !lane_flag(prepare, "largest", 1);
    call->run = run_top_k;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- CumSum --------------------------------------------------------------------------------------

// Sums several adjacent lanes, step by step. Sums are in double.
static void sum_lanes(const bel_lane_params *p, const float *x, float *y, int64_t n)
{
    enum { SIDE = 64 };
    for (int64_t first = 0; first < n; first += SIDE) {
        double sums[SIDE] = {0};
        int64_t lanes = n - first < SIDE ? n - first : SIDE;
        for (int64_t j = 0; j < p->count; j++) {
            int64_t at = (p->reverse ? p->count - 1 - j : j) * p->inner + first;
            for (int64_t i = 0; i < lanes; i++) {
                double before = sums[i];
                sums[i] += (double)x[at + i];
                y[at + i] = (float)(p->exclusive ? before : sums[i]);
            }
        }
    }
}

static void run_cum_sum_f32(const bel_kernel_call *call, int64_t tile)
{
    const bel_lane_params *p = call->params;
    int64_t lane = tile * bel_tile_rows(p->count), last = last_lane(p, tile);
    while (lane < last) {
        int64_t left = p->inner - lane % p->inner, n = left < last - lane ? left : last - lane;
        int64_t at = lane_start(p, lane, p->count);
        sum_lanes(p, (const float *)call->inputs[0].data + at, (float *)call->outputs[0].data + at,
                  n);
        lane += n;
    }
}

// Integers are summed exactly.
static void run_cum_sum(const bel_kernel_call *call, int64_t tile)
{
    const bel_lane_params *p = call->params;
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    bool whole = bel_element_is_whole(x->dtype);
    for (int64_t lane = tile * bel_tile_rows(p->count); lane < last_lane(p, tile); lane++) {
        double sum = 0, before;
        uint64_t whole_sum = 0, whole_before;
        for (int64_t j = 0; j < p->count; j++) {
            int64_t step = p->reverse ? p->count - 1 - j : j;
            int64_t at = lane_start(p, lane, p->count) + step * p->inner;
            if (whole) {
                whole_before = whole_sum;
                whole_sum += (uint64_t)bel_element_get_whole(x, at);
                bel_element_set_whole(y, at, (int64_t)(p->exclusive ? whole_before : whole_sum));
            } else {
                before = sum;
                sum += bel_element_get(x, at);
                bel_element_set(y, at, p->exclusive ? before : sum);
            }
        }
    }
}

void bel_prepare_cum_sum(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_lane_params p = make_lanes(prepare, call, 0);
    p.exclusive = lane_flag(prepare, "exclusive", 0);
    p.reverse = lane_flag(prepare, "reverse", 0);
    bool fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32;
    call->run = fast ? run_cum_sum_f32 : run_cum_sum;
    if (p.count == 0) call->tile_count = 0; // for any number of empty lanes
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
