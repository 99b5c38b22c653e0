// Tests of normalization by channel on a GPU, with its calls built by hand. The bits are the CPU's,
// whatever the layout of the images. Images in bfloat16 give the bits of the f32 kernels on the
// same numbers, rounded if the result is bfloat16. Sizes cross chains, parts, and a thread's
// elements. label: native, label: thorough
#include "cuda/device.h"
#include "op/op_case.h"
#include "support/cards.h"
#include "tensor/half.h"

// Inputs: x images, v vectors of the channels, 2 and 3 matrices with that number of rows.
typedef struct norm_row {
    const char *name;
    bel_op op;
    const char *inputs, *attrs;
} norm_row;

static const norm_row rows[] = {
    {"channel_sum", BEL_OP_CHANNEL_SUM, "x", ""},
    {"batch_norm", BEL_OP_BATCH_NORM, "xvvvv", "training_mode=1"},
    {"batch_norm_fixed", BEL_OP_BATCH_NORM, "xvvvv", ""},
    {"batch_norm_grad", BEL_OP_BATCH_NORM_GRAD, "xxvvv", "training_mode=1"},
    {"batch_moments", BEL_OP_BATCH_MOMENTS, "x", ""},
    {"moments_norm", BEL_OP_MOMENTS_NORM, "xvv3", ""},
    {"moments_norm_sums", BEL_OP_MOMENTS_NORM_SUMS, "xx3", ""},
    {"moments_norm_grad", BEL_OP_MOMENTS_NORM_GRAD, "xx3v2", ""},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const bel_shape shapes[] = {
    {.rank = 4, .dims = {20, 8, 9, 11}}, // chains cross images; one part is shorter
    {.rank = 4, .dims = {9, 36, 4, 6}},  // more channels than a tile
    {.rank = 4, .dims = {3, 5, 5, 7}},   // no multiple of four
    {.rank = 2, .dims = {70, 12}},       // in both layouts at once
    {.rank = 4, .dims = {16, 4, 33, 40}} // many chains in a part
};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

enum { U = 1, V = 2, Y = 4, ALL = 8 }; // sets of images: U and V inputs, Y the result

static bel_device *card;

// --- Calls ---------------------------------------------------------------------------------------

// A call and its operands in host memory. Images in bfloat16 take half the room.
typedef struct norm_call {
    bel_kernel_call call;
    bel_attr_list attrs;
    bel_prepare prepare;
    bool is_image[BEL_OP_MAX_INPUTS], gives_image;
} norm_call;

static size_t bytes_of(const bel_tensor *x, bool bf16)
{
    return bel_tensor_bytes(x) / (bf16 ? 2 : 1);
}

static bel_tensor make(const bel_spec *spec)
{
    bel_tensor x = {.dtype = spec->dtype, .shape = spec->shape};
    x.data = bel_xcalloc(bel_tensor_bytes(&x) + 1, 1);
    return x;
}

static void build(norm_call *n, const norm_row *row, const bel_shape *shape, int last, int bf16)
{
    bel_spec specs[BEL_OP_MAX_INPUTS], made[BEL_OP_MAX_OUTPUTS];
    *n = (norm_call){.attrs = op_parse_attrs(row->attrs)};
    n->prepare = (bel_prepare){.attrs = &n->attrs, .arena = bel_arena_create()};
    bel_kernel_call *call = &n->call;
    call->op = row->op;
    for (const char *at = row->inputs; *at != '\0'; at++) {
        int i = call->input_count++;
        n->is_image[i] = *at == 'x';
        bel_shape its = *at == 'x'   ? *shape
                        : *at == 'v' ? BEL_SHAPE(shape->dims[1])
                                     : BEL_SHAPE(*at - '0', shape->dims[1]);
        specs[i] = (bel_spec){BEL_DTYPE_F32, its};
        call->inputs[i] = make(&specs[i]);
        call->inputs_last[i] = n->is_image[i] && (last >> i & 1) != 0;
        call->inputs_bf16[i] = n->is_image[i] && (bf16 >> i & 1) != 0;
        op_input input = {'f', its, n->is_image[i] ? -2 : 0.5, 2};
        for (int64_t k = 0; k < bel_shape_elements(&its); k++) {
            double value = op_input_element(&input, i, k);
            if (n->is_image[i]) value = bel_bfloat_get(bel_bfloat_make(value));
            if (call->inputs_bf16[i]) {
                ((uint16_t *)call->inputs[i].data)[k] = bel_bfloat_make(value);
            } else {
                ((float *)call->inputs[i].data)[k] = (float)value;
            }
        }
    }
    const bel_op_def *info = bel_op_get(row->op);
    BEL_ASSERT_OK(info->infer(&n->attrs, specs, call->input_count, made));
    call->output_count = info->output_count;
    for (int o = 0; o < call->output_count; o++)
        call->outputs[o] = make(&made[o]);
    n->gives_image = bel_shape_equal(&made[0].shape, shape);
    call->outputs_last[0] = n->gives_image && (last & Y) != 0;
    call->outputs_bf16[0] = n->gives_image && (bf16 & Y) != 0;
}

static void destroy(norm_call *n)
{
    for (int i = 0; i < n->call.input_count; i++)
        bel_free(n->call.inputs[i].data);
    for (int o = 0; o < n->call.output_count; o++)
        bel_free(n->call.outputs[o].data);
    bel_arena_destroy(n->prepare.arena);
}

static void run_cpu(norm_call *n)
{
    bel_kernel_call *call = &n->call;
    bel_op_get(call->op)->prepare(&n->prepare, call);
    // NULL if there is no workspace, which kernels check.
    call->workspace = call->workspace_bytes > 0 ? bel_xcalloc(call->workspace_bytes, 1) : NULL;
    for (int64_t t = 0; call->before != NULL && t < call->before_tiles; t++)
        call->before(call, t);
    for (int64_t t = 0; t < call->tile_count; t++)
        call->run(call, t);
    for (int64_t t = 0; call->after != NULL && t < call->after_tiles; t++)
        call->after(call, t);
    bel_free(call->workspace);
}

// Each operand has separate memory, so that accesses beyond its end are found.
static void run_card(norm_call *n)
{
    bel_cuda_device *device = (bel_cuda_device *)card;
    const bel_cuda_api *api = device->api;
    bel_kernel_call *call = &n->call;
    bel_device_memory in[BEL_OP_MAX_INPUTS], out[BEL_OP_MAX_OUTPUTS], work;
    bel_cuda_operands operands = {.call = 0};
    void *stream, *done;
    BEL_ASSERT_OK(bel_cuda_prepare(card, &n->prepare, call));
    BEL_ASSERT_OK(bel_cuda_enter(device));
    assert_int_equal(api->stream_create(&stream, BEL_CUDA_STREAM_NON_BLOCKING), 0);
    assert_int_equal(api->event_create(&done, BEL_CUDA_EVENT_NO_TIMING), 0);
    for (int i = 0; i < call->input_count; i++) {
        size_t bytes = bytes_of(&call->inputs[i], call->inputs_bf16[i]);
        BEL_ASSERT_OK(card->ops->allocate(card, bytes, "test", &in[i]));
        operands.in[i] = in[i].address;
        assert_int_equal(
            api->copy_in((uint64_t)(uintptr_t)in[i].address, call->inputs[i].data, bytes, stream),
            0);
    }
    for (int o = 0; o < call->output_count; o++) {
        size_t bytes = bytes_of(&call->outputs[o], call->outputs_bf16[o]);
        BEL_ASSERT_OK(card->ops->allocate(card, bytes, "test", &out[o]));
        operands.out[o] = out[o].address;
    }
    BEL_ASSERT_OK(card->ops->allocate(card, call->workspace_bytes, "test", &work));
    operands.work = work.address;
    const bel_cuda_call *made = call->params;
    for (int l = 0; l < made->count; l++) {
        const bel_cuda_launch *its = &made->launches[l];
        union {
            const void *read;
            void *argument;
        } params = {.read = its->params};
        void *arguments[2] = {&operands, params.argument};
        assert_int_equal(api->launch(its->function, its->blocks, 1, 1, its->threads, 1, 1, 0,
                                     stream, arguments, NULL),
                         0);
    }
    for (int o = 0; o < call->output_count; o++)
        assert_int_equal(api->copy_out(call->outputs[o].data, (uint64_t)(uintptr_t)out[o].address,
                                       bytes_of(&call->outputs[o], call->outputs_bf16[o]), stream),
                         0);
    BEL_ASSERT_OK(bel_cuda_await_stream(device, stream, done, "run"));
    api->event_destroy(done);
    api->stream_destroy(stream);
    for (int i = 0; i < call->input_count; i++)
        card->ops->release(card, &in[i]);
    for (int o = 0; o < call->output_count; o++)
        card->ops->release(card, &out[o]);
    card->ops->release(card, &work);
}

// --- Comparing -----------------------------------------------------------------------------------

// `got` is the GPU's result; `expected` is all f32.
static void check_same(const norm_row *row, const norm_call *got, const norm_call *expected,
                       int last, int bf16)
{
    for (int o = 0; o < got->call.output_count; o++) {
        const bel_tensor *g = &got->call.outputs[o], *e = &expected->call.outputs[o];
        for (int64_t i = 0; i < bel_shape_elements(&g->shape); i++) {
            float wanted = ((const float *)e->data)[i], found = ((const float *)g->data)[i];
            if (got->call.outputs_bf16[o]) {
                wanted = (float)bel_bfloat_get(bel_bfloat_make((double)wanted));
                found = (float)bel_bfloat_get(((const uint16_t *)g->data)[i]);
            }
            if (memcmp(&wanted, &found, sizeof found) == 0) continue;
            char text[BEL_SHAPE_TEXT];
            fail_msg("%s %s, last %d, bf16 %d: output %d, element %lld: %.9g for %.9g", row->name,
                     bel_shape_text(&expected->call.inputs[0].shape, text), last, bf16, o,
                     (long long)i, (double)found, (double)wanted);
        }
    }
}

// Every set of a row's images. For large ones only none, all, and all but one, as they take long.
static bool is_tried(const bel_shape *shape, int images, int set)
{
    enum { LARGE = 4000 };
    if ((set & ~images) != 0) return false;
    return bel_shape_elements(shape) < LARGE || set == 0 || set == images || set == (images & ~U);
}

// Tests every layout of the images, and every choice of those in bfloat16.
static void test_row(void **state)
{
    const norm_row *row = *state;
    for (int s = 0; s < SHAPE_COUNT; s++) {
        for (int last = 0; last < ALL; last++) {
            norm_call on_cpu, on_card;
            build(&on_cpu, row, &shapes[s], last, 0);
            int images = U | (row->inputs[1] == 'x' ? V : 0) | (on_cpu.gives_image ? Y : 0);
            bool tried = is_tried(&shapes[s], images, last);
            if (tried) run_cpu(&on_cpu);
            for (int bf16 = 0; bf16 < ALL && tried; bf16++) {
                if (!is_tried(&shapes[s], images, bf16)) continue;
                build(&on_card, row, &shapes[s], last, bf16);
                run_card(&on_card);
                check_same(row, &on_card, &on_cpu, last, bf16);
                destroy(&on_card);
            }
            destroy(&on_cpu);
        }
    }
}

int main(void)
{
    static struct CMUnitTest tests[ROW_COUNT];
    static norm_row copies[ROW_COUNT];
    int count = 0;
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    for (int i = 0; i < ROW_COUNT; i++) {
        copies[i] = rows[i];
        tests[count++] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = &copies[i]};
    }
    return _cmocka_run_group_tests("norms on a GPU", tests, (size_t)count, NULL, NULL) != 0;
}
