// Tests of damaged models. Whatever is cut off or changed, reading and building end with an error
// or with a well-formed graph. Nothing runs but computations of the build.
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "graph/graph.h"
#include "onnx/onnx_case.h"
#include "support/bel_test.h"

static const char *const models[] = {
    "node/test_argmax_keepdims_example_select_last_index",
    "node/test_averagepool_2d_precomputed_pads_count_include_pad",
    "node/test_batchnorm_epsilon_training_mode",
    "node/test_celu_expanded",
    "node/test_constant",
    "node/test_constantofshape_float_ones",
    "node/test_conv_with_strides_and_asymmetric_padding",
    "node/test_eyelike_populate_off_main_diagonal",
    "node/test_gathernd_example_int32_batch_dim1",
    "node/test_hannwindow_expanded",
    "node/test_layer_normalization_2d_axis0_expanded",
    "node/test_lrn",
    "node/test_lstm_batchwise",
    "node/test_nllloss_NCd1d2_with_weight_reduction_mean_expanded",
    "node/test_onehot_negative_indices",
    "node/test_reduce_sum_negative_axes_keepdims_random",
    "node/test_scatter_elements_with_axis",
    "node/test_slice_neg_steps",
    "node/test_split_variable_parts_2d",
    "node/test_tile",
    "node/test_top_k",
    "node/test_triu_neg",
    "pytorch-operator/test_operator_repeat_dim_overflow",
    "pytorch-operator/test_operator_pad",
};

// Reads and builds; returns true if both succeeded.
static bool try_model(const char *bytes, size_t size, const bel_onnx_binding *bindings, int count)
{
    bel_onnx_model *model;
    bel_status *status = bel_onnx_read(bytes, size, &model);
    if (status != NULL) {
        assert_true(strlen(bel_status_message(status)) > 0);
        bel_status_destroy(status);
        return false;
    }
    // Bindings whose inputs were renamed by the damage are left out.
    bel_onnx_binding *kept = bel_xcalloc((size_t)count + 1, sizeof *kept);
    bel_onnx_options options = {.bindings = kept, .variables = size % 2 == 0};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < bel_onnx_input_count(model); k++)
            if (strcmp(bel_onnx_input(model, k)->name, bindings[i].name) == 0)
                kept[options.binding_count++] = bindings[i];
    bel_graph *graph = bel_graph_create();
    bel_value **outputs =
        bel_xcalloc((size_t)bel_onnx_output_count(model) + 1, sizeof(bel_value *));
    status = bel_onnx_build(model, graph, &options, outputs);
    bool built = status == NULL;
    if (built) BEL_ASSERT_OK(bel_graph_verify(graph));
    for (int i = 0; built && i < bel_onnx_output_count(model); i++)
        assert_non_null(outputs[i]);
    if (!built) {
        assert_int_not_equal(bel_status_code(status), BEL_INTERNAL);
        bel_status_destroy(status);
    }
    bel_free(outputs);
    bel_free(kept);
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
    return built;
}

typedef struct damaged {
    char *bytes;
    size_t size;
    onnx_case opened;
    bel_onnx_binding bindings[ONNX_CASE_TENSORS];
} damaged;

static bool try_damaged(const damaged *d, const char *bytes, size_t size)
{
    return try_model(bytes, size, d->bindings, d->opened.inputs.count);
}

static bool open_damaged(const char *name, damaged *d)
{
    char *folder = bel_strf("%s/%s", ONNX_DATA, name), *path = bel_path_join(folder, "model.onnx");
    bool there = bel_file_exists(path);
    if (there) {
        BEL_ASSERT_OK(bel_file_read(path, &d->bytes, &d->size));
        BEL_ASSERT_OK(onnx_case_open(folder, 0, &d->opened));
        for (int i = 0; i < d->opened.inputs.count; i++) {
            d->bindings[i] = (bel_onnx_binding){.name = bel_onnx_input(d->opened.model, i)->name,
                                                .elements = &d->opened.inputs.items[i]};
        }
    }
    bel_free(path);
    bel_free(folder);
    return there;
}

static void close_damaged(damaged *d)
{
    onnx_case_close(&d->opened);
    bel_free(d->bytes);
}

// Long models are damaged at every second, third … place.
static size_t step_of(const damaged *d)
{
    return 1 + d->size / 1000;
}

// Each length gets separate memory, so that a read after the end is seen.
static void cut(const damaged *d)
{
    for (size_t size = 0; size < d->size; size += step_of(d)) {
        char *bytes = bel_xmalloc(size + (size == 0));
        memcpy(bytes, d->bytes, size);
        try_damaged(d, bytes, size);
        bel_free(bytes);
    }
}

static void change(const damaged *d)
{
    static const unsigned char masks[] = {0x01, 0x10, 0x80, 0xff};
    for (size_t i = 0; i < d->size; i += step_of(d)) {
        for (size_t m = 0; m < sizeof masks; m++) {
            d->bytes[i] = (char)(d->bytes[i] ^ masks[m]);
            try_damaged(d, d->bytes, d->size);
            d->bytes[i] = (char)(d->bytes[i] ^ masks[m]);
        }
    }
}

// Replaces a few adjacent bytes with any content.
static void scramble(const damaged *d)
{
    char *bytes = bel_xmalloc(d->size);
    for (uint32_t round = 0; round < 200; round++) {
        uint64_t dice = bel_hash64(&round, sizeof round);
        size_t count = 2 + dice % 5, at = (dice >> 24) % (d->size - count);
        uint64_t content = bel_hash64(&dice, sizeof dice);
        memcpy(bytes, d->bytes, d->size);
        memcpy(bytes + at, &content, count);
        try_damaged(d, bytes, d->size);
    }
    bel_free(bytes);
}

static void test_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        damaged d;
        if (!open_damaged(models[i], &d)) fail_msg("%s is missing: tools/install-deps", models[i]);
        cut(&d);
        change(&d);
        scramble(&d);
        close_damaged(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
