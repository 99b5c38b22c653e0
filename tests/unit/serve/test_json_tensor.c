// Tensors as JSON, read and written, and the paths of requests.
#include "serve/json_tensor.h"

#include <math.h>

#include "base/alloc.h"
#include "serve/route.h"
#include "support/bel_test.h"

// Reads `text` as a tensor of this type and shape into `memory`.
static bel_status *read_tensor(const char *text, bel_dtype dtype, bel_shape shape, void *memory)
{
    bel_json *json;
    BEL_TRY(bel_json_parse(text, strlen(text), "test", &json));
    const bel_tensor tensor = {.dtype = dtype, .shape = shape, .data = memory};
    bel_status *status =
        bel_json_tensor_read(bel_json_member(bel_json_root(json), "t"), "t", &tensor);
    bel_json_destroy(json);
    return status;
}

static void test_reads(void **state)
{
    (void)state;
    float f[6];
    BEL_ASSERT_OK(
        read_tensor("{\"t\":[[1,2.5,-3],[4,5,1e30]]}", BEL_DTYPE_F32, BEL_SHAPE(2, 3), f));
    assert_true(f[0] == 1 && f[1] == 2.5F && f[2] == -3 && f[5] == 1e30F);
    BEL_ASSERT_OK(read_tensor("{\"t\":[6,5,4,3,2,1]}", BEL_DTYPE_F32, BEL_SHAPE(2, 3), f));
    assert_true(f[0] == 6 && f[5] == 1);
    BEL_ASSERT_OK(read_tensor("{\"t\":7}", BEL_DTYPE_F32, bel_shape_scalar(), f));
    assert_true(f[0] == 7);
    int64_t i[2];
    BEL_ASSERT_OK(read_tensor("{\"t\":[9007199254740993,3.0]}", BEL_DTYPE_I64, BEL_SHAPE(2), i));
    assert_true(i[0] == INT64_C(9007199254740993) && i[1] == 3);
    uint8_t b[3];
    BEL_ASSERT_OK(read_tensor("{\"t\":[true,false,1]}", BEL_DTYPE_BOOL, BEL_SHAPE(3), b));
    assert_true(b[0] == 1 && b[1] == 0 && b[2] == 1);
    uint16_t h[1];
    BEL_ASSERT_OK(read_tensor("{\"t\":[1.5]}", BEL_DTYPE_F16, BEL_SHAPE(1), h));
    assert_int_equal(h[0], 0x3e00);
}

static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        bel_dtype dtype;
    } cases[] = {
        {"{\"t\":[[1,2],[3]]}", "of 1 at depth 1", BEL_DTYPE_F32},
        {"{\"t\":[[1,2],[3,4,5]]}", "of 3 at depth 1", BEL_DTYPE_F32},
        {"{\"t\":[[1,2]]}", "of 1 at depth 0", BEL_DTYPE_F32},
        {"{\"t\":[1,2,3]}", "expected 4 elements, got 3", BEL_DTYPE_F32},
        {"{\"t\":[1,2,3,4,5]}", "expected 4 elements, got more", BEL_DTYPE_F32},
        {"{\"t\":[[[1,2]],[[3,4]]]}", "depth", BEL_DTYPE_F32},
        {"{\"t\":[1,2,[3],4]}", "elements beside elements", BEL_DTYPE_F32},
        {"{\"t\":1}", "expected 4 elements, got 1", BEL_DTYPE_F32},
        {"{\"t\":[1,2,null,4]}", "element 2: expected a number of type f32, got null",
         BEL_DTYPE_F32},
        {"{\"t\":[1,2,true,4]}", "got true", BEL_DTYPE_F32},
        {"{\"t\":[1,2,3.5,4]}", "type i32, got 3.5", BEL_DTYPE_I32},
        {"{\"t\":[1,2,3,2147483648]}", "element 3", BEL_DTYPE_I32},
        {"{\"t\":[1,2,3,256]}", "element 3", BEL_DTYPE_U8},
        {"{\"t\":[1,2,3,-1]}", "element 3", BEL_DTYPE_U8},
        {"{\"t\":[1,0,2,0]}", "element 2", BEL_DTYPE_BOOL},
        {"{\"t\":[1,2,3,1e19]}", "element 3", BEL_DTYPE_I64},
        {"{\"x\":1}", "", BEL_DTYPE_F32},
    };
    int64_t memory[4];
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        BEL_ASSERT_FAILS(read_tensor(cases[k].text, cases[k].dtype, BEL_SHAPE(2, 2), memory),
                         BEL_INVALID_ARGUMENT, cases[k].part);
}

static void assert_written(const bel_tensor *tensor, bool flat, const char *expected)
{
    bel_str text = {0};
    bel_json_tensor_write(&text, tensor, flat);
    assert_string_equal(text.text, expected);
    bel_str_deinit(&text);
}

static void test_writes(void **state)
{
    (void)state;
    float f[] = {0.1F, -2, NAN, INFINITY, 1e-45F, 16777216};
    const bel_tensor a = {BEL_DTYPE_F32, BEL_SHAPE(2, 3), f};
    assert_written(&a, false, "[[0.100000001,-2,null],[null,1.40129846e-45,16777216]]");
    assert_written(&a, true, "[0.100000001,-2,null,null,1.40129846e-45,16777216]");
    int64_t i[] = {INT64_MIN, 9007199254740993};
    const bel_tensor b = {BEL_DTYPE_I64, BEL_SHAPE(2, 1), i};
    assert_written(&b, false, "[[-9223372036854775808],[9007199254740993]]");
    int32_t j[] = {INT32_MAX};
    const bel_tensor c = {BEL_DTYPE_I32, bel_shape_scalar(), j};
    assert_written(&c, false, "2147483647");
    uint8_t flags[] = {1, 0};
    const bel_tensor d = {BEL_DTYPE_BOOL, BEL_SHAPE(2), flags};
    assert_written(&d, false, "[true,false]");
    const bel_tensor e = {BEL_DTYPE_F32, BEL_SHAPE(2, 0), NULL};
    assert_written(&e, false, "[[],[]]");
}

static void test_shapes(void **state)
{
    (void)state;
    bel_json *json;
    const char text[] = "[[[1,2]],[[3,4]],[[5,6]]]";
    BEL_ASSERT_OK(bel_json_parse(text, sizeof text - 1, "test", &json));
    bel_shape shape;
    const bel_shape expected = BEL_SHAPE(3, 1, 2);
    BEL_ASSERT_OK(bel_json_tensor_shape(bel_json_root(json), "t", &shape));
    assert_true(bel_shape_equal(&shape, &expected));
    bel_json_destroy(json);
    const char deep[] = "[[[[[[[[[1]]]]]]]]]";
    BEL_ASSERT_OK(bel_json_parse(deep, sizeof deep - 1, "test", &json));
    BEL_ASSERT_FAILS(bel_json_tensor_shape(bel_json_root(json), "t", &shape), BEL_INVALID_ARGUMENT,
                     "at most 8 dimensions");
    bel_json_destroy(json);
}

static void test_routes(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bel_route_kind kind;
        const char *model;
        int64_t version;
    } cases[] = {
        {"/", BEL_ROUTE_PAGE, NULL, -1},
        {"/v2/health/ready", BEL_ROUTE_READY, NULL, -1},
        {"/v2/models/a", BEL_ROUTE_V2_METADATA, "a", -1},
        {"/v2/models/a.b-c/versions/12/infer", BEL_ROUTE_V2_INFER, "a.b-c", 12},
        {"/v2/models/a/versions/x/infer", BEL_ROUTE_V2_INFER, "a", -2},
        {"/v2/models/a/versions/-1/ready", BEL_ROUTE_V2_READY, "a", -2},
        {"/v2/models/a/versions/", BEL_ROUTE_V2_METADATA, "a", -2},
        {"/v1/models/a:predict", BEL_ROUTE_V1_PREDICT, "a", -1},
        {"/v1/models/a/versions/3:predict", BEL_ROUTE_V1_PREDICT, "a", 3},
        {"/v1/models/a/metadata", BEL_ROUTE_V1_METADATA, "a", -1},
        {"/v1/models/a", BEL_ROUTE_V1_STATUS, "a", -1},
        {"/v1/models/a/infer", BEL_ROUTE_NONE, NULL, 0},
        {"/v2/models/a:predict", BEL_ROUTE_NONE, NULL, 0},
        {"/v2/models", BEL_ROUTE_NONE, NULL, 0},
        {"/v3/models/a", BEL_ROUTE_NONE, NULL, 0},
        {"", BEL_ROUTE_NONE, NULL, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        bel_route route = bel_route_find(cases[k].path);
        assert_int_equal(route.kind, cases[k].kind);
        assert_int_equal(route.version, cases[k].version);
        if (cases[k].model == NULL) continue;
        assert_int_equal(route.model_length, strlen(cases[k].model));
        assert_memory_equal(route.model, cases[k].model, route.model_length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),  cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_writes), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
