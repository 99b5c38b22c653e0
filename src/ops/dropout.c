// Dropout. Word i mod 4 of Philox block i / 4 decides whether element i is kept, with the key
// (seed, "dropout", the operation's id) and the counter (step, replica). The mask is therefore
// independent of resuming, towers and threads (docs/determinism.md).
#include "base/rng.h"
#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/random.h"

bel_status *bel_infer_dropout(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    double ratio = bel_attr_number(attrs, "ratio", 0.5);
    if (!(ratio >= 0 && ratio < 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "ratio must be at least 0 and below 1, got %g", ratio);
    }
    out_outputs[1] = (bel_spec){BEL_DTYPE_BOOL, inputs[0].shape};
    return NULL;
}

bel_status *bel_infer_dropout_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                   int input_count, bel_spec *out_outputs)
{
    bel_spec y[2];
    BEL_TRY(bel_infer_dropout(attrs, inputs, input_count, y));
    out_outputs[0] = y[0];
    return bel_check_like("a mask", &inputs[1], &y[1]);
}

// y = kept ? x / (1 - ratio) : 0 for elements [begin, end).
static void scale_kept(const bel_kernel_call *call, const bel_tensor *kept, int64_t begin,
                       int64_t end)
{
    const bel_dropout_params *p = call->params;
    const uint8_t *mask = kept->data;
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    double scale = 1 / (1 - p->ratio);
    if (p->fast) {
        bel_cpu_kernels_get()->masked_scale((const float *)x->data + begin, mask + begin,
                                            (float)scale, (float *)y->data + begin, end - begin);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        bel_element_set(y, i, mask[i] ? bel_element_get(x, i) * scale : 0.0);
}

static void run_dropout(const bel_kernel_call *call, int64_t tile)
{
    const bel_dropout_params *p = call->params;
    const bel_run_context *context = call->context;
    uint8_t *kept = call->outputs[1].data;
    int64_t begin = bel_tile_begin(tile); // a multiple of 4
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_rng_key key = bel_rng_key_make(context->seed, BEL_PURPOSE_DROPOUT, call->random_id);
    uint64_t place = bel_run_place(context);
    float threshold = (float)p->ratio;
    for (int64_t i = begin; i < end; i += 4) {
        uint32_t words[4];
        bel_rng_block(key, place, (uint64_t)i / 4, words);
        for (int64_t j = 0; j < 4 && i + j < end; j++)
            kept[i + j] = bel_rng_unit(words[j]) >= threshold;
    }
    scale_kept(call, &call->outputs[1], begin, end);
}

static void run_dropout_grad(const bel_kernel_call *call, int64_t tile)
{
    int64_t elements = bel_shape_elements(&call->outputs[0].shape);
    scale_kept(call, &call->inputs[1], bel_tile_begin(tile), bel_tile_end(tile, elements));
}

static void prepare_masked(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_dropout_params p = {.ratio = bel_attr_number(prepare->attrs, "ratio", 0.5),
                            .fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32};
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

void bel_prepare_dropout(const bel_prepare *prepare, bel_kernel_call *call)
{
    call->run = run_dropout;
    prepare_masked(prepare, call);
}

void bel_prepare_dropout_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    call->run = run_dropout_grad;
    prepare_masked(prepare, call);
}
