// Tests of column sums, pools and convolutions on a GPU with f32 operands stored as bfloat16
// (bel_kernel_call.inputs_bf16). The result has the bits of the same numbers in f32, rounded if it
// is stored as bfloat16. label: native
#include "cuda/device.h"
#include "op/op_case.h"
#include "support/cards.h"
#include "tensor/half.h"

typedef struct bf16_row {
    const char *name;
    bel_op op;
    const char *inputs, *attrs;
    unsigned bf16; // bits 1 << operand; the result comes after the inputs
    bool last;     // all are channels-last
} bf16_row;

// Bit in `bf16` for fast arithmetic, of bfloat16. Numbers are then small integers, so that products
// and sums are exact in any order.
enum { FAST = 1 << 30 };

static const bf16_row rows[] = {
    {"sum_to", BEL_OP_SUM_TO, "f[300,70] f[70]", "", 1, false},
    {"sum_to_group", BEL_OP_SUM_TO, "f[64,33] f[33]", "", 1, false},
    {"sum_to_few", BEL_OP_SUM_TO, "f[3,33] f[33]", "", 1, false},
    {"fast_sum", BEL_OP_SUM_TO, "q[1000,68] f[68]", "", 1 | FAST, false},
    {"fast_sum_f32", BEL_OP_SUM_TO, "q[4097,20] f[20]", "", FAST, false},
    {"fast_sum_odd", BEL_OP_SUM_TO, "q[290,70] f[70]", "", 1 | FAST, false},
    {"fast_sum_odd_f32", BEL_OP_SUM_TO, "q[290,71] f[71]", "", FAST, false},
    {"fast_mean", BEL_OP_REDUCE_MEAN, "q[512,3,8]", "axes=[0]", 1 | FAST, false},
    {"max_pool", BEL_OP_MAX_POOL, "f[3,5,8,6]", "kernel_shape=[3,2] strides=[2,2] pads=[1,0,1,0]",
     3, false},
    {"max_pool_x", BEL_OP_MAX_POOL, "f[3,5,8,6]", "kernel_shape=[2,2]", 1, true},
    {"max_grad_tiled", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,3] q[3,5,8,6] q[3,5,4,3]:3:3",
     "kernel_shape=[2,2] strides=[2,2]", 15, false},
    {"max_grad_tiled_x", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,2] q[3,5,8,6] q[3,5,4,2]:3:3",
     "kernel_shape=[2,3] strides=[2,3]", 10, true},
    {"average_grad_apart", BEL_OP_AVERAGE_POOL_GRAD, "f[3,5,3,2] f[3,5,9,7]",
     "kernel_shape=[2,3] strides=[3,3]", 7, true},
    {"average_grad_apart_dy", BEL_OP_AVERAGE_POOL_GRAD, "f[3,5,3,2] f[3,5,9,7]",
     "kernel_shape=[2,3] strides=[3,3]", 1, false},
    {"average", BEL_OP_AVERAGE_POOL, "f[3,5,8,6]", "kernel_shape=[3,3] strides=[2,3]", 3, true},
    {"average_y", BEL_OP_AVERAGE_POOL, "f[3,5,8,6]", "kernel_shape=[2,2]", 2, false},
    {"global_average", BEL_OP_GLOBAL_AVERAGE_POOL, "f[3,65,8,6]", "", 1, true},
    {"global_average_y", BEL_OP_GLOBAL_AVERAGE_POOL, "f[3,65,8,6]", "", 3, false},
    {"max_grad", BEL_OP_MAX_POOL_GRAD, "f[3,5,6,4] q[3,5,8,6] q[3,5,6,4]:3:3", "kernel_shape=[3,3]",
     15, false},
    {"max_grad_dy", BEL_OP_MAX_POOL_GRAD, "f[3,5,6,4] q[3,5,8,6] q[3,5,6,4]:3:3",
     "kernel_shape=[3,3]", 1, true},
    {"max_grad_x", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,3] q[3,5,8,6] q[3,5,4,3]:3:3",
     "kernel_shape=[2,2] strides=[2,2]", 6, true},
    {"max_grad_dx", BEL_OP_MAX_POOL_GRAD, "f[3,5,6,4] q[3,5,8,6] q[3,5,6,4]:3:3",
     "kernel_shape=[3,3]", 8, true},
    {"average_grad", BEL_OP_AVERAGE_POOL_GRAD, "f[3,65,5,4] f[3,65,9,7]",
     "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", 7, true},
    {"average_grad_dx", BEL_OP_AVERAGE_POOL_GRAD, "f[3,65,5,4] f[3,65,9,7]",
     "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]", 4, false},
    // Copies to cuDNN's layouts and back: with margins or without, by four channels or one, with
    // transposed weights
    {"conv_margins", BEL_OP_CONV, "q[2,8,7,5] q[12,8,3,3] q[12]", "pads=[1,0,2,1] strides=[2,1]",
     9 | FAST, true},
    {"conv_margins_f32", BEL_OP_CONV, "q[2,8,7,5] q[4,8,3,2]", "pads=[0,2,1,0]", FAST, true},
    {"conv_odd", BEL_OP_CONV, "q[2,5,7,5] q[6,5,3,3] q[6]", "pads=[1,0,2,1]", 9 | FAST, true},
    {"conv_planes", BEL_OP_CONV, "q[2,17,4,5] q[33,17,3,3] q[33]", "pads=[1,0,2,1]", 1 | FAST,
     false},
    {"conv_many", BEL_OP_CONV, "q[2,130,3,4] q[20,130,2,3]", "", 4 | FAST, false},
    {"conv_grad_input", BEL_OP_CONV_GRAD_INPUT, "q[2,12,4,2] q[12,8,3,3] q[2,8,7,5]",
     "pads=[1,0,2,1] strides=[2,2]", 1 | FAST, true},
    {"conv_grad_input_half", BEL_OP_CONV_GRAD_INPUT, "q[2,12,4,2] q[12,8,3,3] q[2,8,7,5]",
     "pads=[1,0,2,1] strides=[2,2]", 9 | FAST, true},
    {"conv_grad_weights", BEL_OP_CONV_GRAD_WEIGHTS, "q[2,12,4,2] q[2,68,7,5] q[12,68,3,3]",
     "pads=[1,0,2,1] strides=[2,2]", 3 | FAST, true},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0], OPERANDS = BEL_OP_MAX_INPUTS + 1 };

static bel_cuda_device *card;

// Returns an operand's bytes as stored. `numbers` are f32.
static void *lay(const float *numbers, int64_t count, bool bf16)
{
    uint16_t *made = bel_xmalloc((size_t)count * (bf16 ? sizeof *made : sizeof *numbers));
    if (!bf16) return memcpy(made, numbers, (size_t)count * sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        made[i] = bel_bfloat_make((double)numbers[i]);
    return made;
}

// Weights have the CPU's layout.
static bool is_image(bel_op op, int operand)
{
    if (op == BEL_OP_CONV || op == BEL_OP_CONV_GRAD_INPUT) return operand != 1;
    return op != BEL_OP_CONV_GRAD_WEIGHTS || operand < 2;
}

static bel_kernel_call call_of(const bf16_row *row, const op_input *inputs, int count,
                               const bel_attr_list *attrs)
{
    bel_kernel_call call = {.op = row->op, .input_count = count, .output_count = 1};
    bel_spec specs[BEL_OP_MAX_INPUTS], result[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < count; i++) {
        specs[i] = (bel_spec){BEL_DTYPE_F32, inputs[i].shape};
        call.inputs[i] = (bel_tensor){.dtype = BEL_DTYPE_F32, .shape = inputs[i].shape};
        call.inputs_last[i] = row->last && is_image(row->op, i);
    }
    BEL_ASSERT_OK(bel_op_get(row->op)->infer(attrs, specs, count, result));
    call.outputs[0] = (bel_tensor){.dtype = BEL_DTYPE_F32, .shape = result[0].shape};
    call.outputs_last[0] = row->last && is_image(row->op, count);
    return call;
}

// Returns the call's result as stored. Free it.
static void *run(bel_kernel_call *call, const bel_attr_list *attrs, float *const *numbers,
                 bool fast)
{
    bel_prepare prepare = {.attrs = attrs,
                           .arena = bel_arena_create(),
                           .threads = 1,
                           .gpu_math = fast ? BEL_GPU_MATH_BF16 : BEL_GPU_MATH_EXACT};
    BEL_ASSERT_OK(bel_cuda_prepare(&card->device, &prepare, call));
    assert_true(!fast || call->workspace_bytes > 0);
    void *stream, *bytes;
    uint64_t addresses[OPERANDS];
    assert_int_equal(card->api->stream_create(&stream, 1), 0);
    bel_cuda_operands operands = {.call = 0};
    for (int i = 0; i < call->input_count; i++) {
        int64_t count = bel_shape_elements(&call->inputs[i].shape);
        size_t size = (size_t)count * (call->inputs_bf16[i] ? 2 : 4);
        bytes = lay(numbers[i], count, call->inputs_bf16[i]);
        assert_int_equal(card->api->allocate(&addresses[i], size), 0);
        assert_int_equal(card->api->copy_in(addresses[i], bytes, size, stream), 0);
        assert_int_equal(card->api->stream_finish(stream), 0);
        bel_free(bytes);
        operands.in[i] = (const void *)(uintptr_t)addresses[i];
    }
    size_t size = call->outputs_bf16[0] ? 2 : 4;
    size *= (size_t)bel_shape_elements(&call->outputs[0].shape);
    uint64_t result, work = 0;
    if (call->workspace_bytes > 0)
        assert_int_equal(card->api->allocate(&work, call->workspace_bytes), 0);
    operands.work = (void *)(uintptr_t)work;
    assert_int_equal(card->api->allocate(&result, size), 0);
    operands.out[0] = (void *)(uintptr_t)result;
    const bel_cuda_call *made = call->params;
    for (int i = 0; i < made->count; i++) {
        union {
            const void *read;
            void *argument;
        } params = {.read = made->launches[i].params};
        void *arguments[2] = {&operands, params.argument};
        if (made->launches[i].library != NULL) {
            BEL_ASSERT_OK(made->launches[i].library(card, stream, &operands, params.read));
            continue;
        }
        assert_int_equal(card->api->launch(made->launches[i].function, made->launches[i].blocks, 1,
                                           1, made->launches[i].threads, 1, 1, 0, stream, arguments,
                                           NULL),
                         0);
    }
    bytes = bel_xmalloc(size);
    assert_int_equal(card->api->copy_out(bytes, result, size, stream), 0);
    assert_int_equal(card->api->stream_finish(stream), 0);
    for (int i = 0; i < call->input_count; i++)
        assert_int_equal(card->api->release(addresses[i]), 0);
    assert_int_equal(card->api->release(result), 0);
    if (work != 0) assert_int_equal(card->api->release(work), 0);
    bel_cuda_forget_stream(card, stream);
    assert_int_equal(card->api->stream_destroy(stream), 0);
    bel_arena_destroy(prepare.arena);
    return bytes;
}

static void test_row(void **state)
{
    const bf16_row *row = *state;
    op_input inputs[BEL_OP_MAX_INPUTS];
    float *numbers[BEL_OP_MAX_INPUTS];
    int count = op_parse_inputs(row->inputs, inputs);
    bel_attr_list attrs = op_parse_attrs(row->attrs);
    for (int i = 0; i < count; i++) { // rounds all of them to bfloat16, also those stored as f32
        bel_tensor made = op_make_input(&inputs[i], i, BEL_DTYPE_F32);
        numbers[i] = made.data;
        for (int64_t k = 0; k < bel_shape_elements(&inputs[i].shape); k++)
            numbers[i][k] = (float)bel_bfloat_get(bel_bfloat_make((double)numbers[i][k]));
    }
    bel_kernel_call plain = call_of(row, inputs, count, &attrs), stored = plain;
    for (int i = 0; i < count; i++)
        stored.inputs_bf16[i] = (row->bf16 >> i & 1) != 0;
    stored.outputs_bf16[0] = (row->bf16 >> count & 1) != 0;
    int64_t elements = bel_shape_elements(&plain.outputs[0].shape);
    float *result = run(&plain, &attrs, numbers, false);
    void *got = run(&stored, &attrs, numbers, (row->bf16 & FAST) != 0);
    void *expected = lay(result, elements, stored.outputs_bf16[0]);
    size_t size = stored.outputs_bf16[0] ? 2 : 4;
    for (int64_t i = 0; i < elements; i++) {
        const char *g = (const char *)got + (size_t)i * size;
        if (memcmp(g, (const char *)expected + (size_t)i * size, size) == 0) continue;
        fail_msg("%s: element %lld is not that of f32, %.9g", row->name, (long long)i,
                 (double)result[i]);
    }
    bel_free(result);
    bel_free(got);
    bel_free(expected);
    for (int i = 0; i < count; i++)
        bel_free(numbers[i]);
}

int main(void)
{
    static struct CMUnitTest tests[ROW_COUNT];
    static bf16_row copies[ROW_COUNT];
    bel_device *device;
    bel_use_cards();
    if (!bel_cards_open(&device)) return 77;
    card = (bel_cuda_device *)device;
    BEL_ASSERT_OK(bel_cuda_enter(card));
    for (int i = 0; i < ROW_COUNT; i++) {
        copies[i] = rows[i];
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = &copies[i]};
    }
    return cmocka_run_group_tests_name("operands of bfloat16", tests, NULL, NULL) != 0;
}
