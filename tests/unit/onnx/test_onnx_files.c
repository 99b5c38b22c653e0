// Models read by path: large elements stay in the mapped file, elements in other files, and
// refusals of both.
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "onnx/onnx.h"
#include "support/bel_test.h"
#include "unit/onnx/onnx_bytes.h"

enum { FLOAT = 1, BOOL = 9, LARGE = 3000 };

static void put(bel_str *graph, int field, bel_str part)
{
    put_part(graph, field, &part);
}

// Reads a model with one initializer "w", which is its output.
static bel_status *read_one(bel_str tensor, bel_onnx_model **out_model)
{
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_INITIALIZER, tensor);
    put(&graph, GRAPH_OUTPUT, make_port("w", FLOAT, "2"));
    bel_str bytes = make_model(&graph, 17);
    char *path = bel_test_file(bel_test_own_folder(), "model.onnx", bytes.text, bytes.length);
    bel_str_deinit(&bytes);
    bel_status *status = bel_onnx_read_file(path, out_model);
    bel_free(path);
    return status;
}

static bel_str external(const char *location, const char *offset, const char *length)
{
    return make_external("w", FLOAT, (int64_t[]){2}, 1, location, offset, length);
}

static void write_weights(const char *name)
{
    static const float numbers[] = {1, 2, 3, 4, 5};
    bel_free(bel_test_file(bel_test_own_folder(), name, numbers, sizeof numbers));
}

// Every model gives the same elements by path and from memory, at addresses aligned for their type.
static void test_large_elements(void **state)
{
    (void)state;
    const char *path = "tests/golden/onnx/resnet18/model.onnx";
    char *bytes;
    size_t size;
    bel_onnx_model *by_path, *in_memory;
    BEL_ASSERT_OK(bel_file_read(path, &bytes, &size));
    BEL_ASSERT_OK(bel_onnx_read(bytes, size, &in_memory));
    BEL_ASSERT_OK(bel_onnx_read_file(path, &by_path));
    int count = bel_onnx_initializer_count(in_memory), large = 0;
    assert_int_equal(bel_onnx_initializer_count(by_path), count);
    for (int i = 0; i < count; i++) {
        bel_tensor a, b;
        const char *name = bel_onnx_initializer(in_memory, i, &a);
        assert_string_equal(bel_onnx_initializer(by_path, i, &b), name);
        assert_true(bel_shape_equal(&a.shape, &b.shape));
        assert_memory_equal(a.data, b.data, bel_tensor_bytes(&a));
        assert_int_equal((uintptr_t)b.data % bel_dtype_size(b.dtype), 0);
        large += bel_tensor_bytes(&a) >= 4096;
    }
    assert_true(large >= 3); // some are left out of the message
    bel_onnx_destroy(by_path);
    bel_onnx_destroy(in_memory);
    bel_free(bytes);
}

// Raw data at any place in the file, of a type that is copied and of one that is not.
static void test_places_and_types(void **state)
{
    (void)state;
    static char raw[4 * LARGE];
    for (int i = 0; i < 4 * LARGE; i++)
        raw[i] = (char)(i % 7);
    const int types[] = {FLOAT, BOOL};
    for (int t = 0; t < 2; t++) {
        for (int shift = 0; shift < 4; shift++) {
            char name[] = "wwww";
            name[shift + 1 < 4 ? shift + 1 : 4] = '\0'; // shifts the following fields
            size_t size = t == 0 ? sizeof raw : LARGE;
            bel_str graph = {.text = NULL};
            put(&graph, GRAPH_INITIALIZER,
                make_tensor(name, types[t], (int64_t[]){LARGE}, 1, raw, size));
            put(&graph, GRAPH_OUTPUT, make_port(name, types[t], ""));
            bel_str bytes = make_model(&graph, 17);
            char *path =
                bel_test_file(bel_test_own_folder(), "model.onnx", bytes.text, bytes.length);
            bel_str_deinit(&bytes);
            bel_onnx_model *model;
            BEL_ASSERT_OK(bel_onnx_read_file(path, &model));
            bel_free(path);
            bel_tensor w;
            bel_onnx_initializer(model, 0, &w);
            assert_int_equal((uintptr_t)w.data % bel_dtype_size(w.dtype), 0);
            if (t == 0) assert_memory_equal(w.data, raw, sizeof raw);
            for (int i = 0; i < LARGE && t == 1; i++)
                assert_int_equal(((const char *)w.data)[i], raw[i] != 0);
            bel_onnx_destroy(model);
        }
    }
}

static void test_external_data(void **state)
{
    (void)state;
    char *folder = bel_path_join(bel_test_own_folder(), "parts");
    BEL_ASSERT_OK(bel_dir_create(folder));
    bel_free(folder);
    write_weights("weights.bin");
    write_weights("parts/more.bin");
    const char *const locations[] = {"weights.bin", "./weights.bin", "parts/more.bin"};
    const char *const lengths[] = {"8", NULL};
    for (int i = 0; i < 6; i++) {
        bel_onnx_model *model;
        bel_tensor w;
        BEL_ASSERT_OK(read_one(external(locations[i % 3], "4", lengths[i / 3]), &model));
        bel_onnx_initializer(model, 0, &w);
        assert_float_equal(((const float *)w.data)[0], 2, 0);
        assert_float_equal(((const float *)w.data)[1], 3, 0);
        bel_onnx_destroy(model);
    }
}

static void test_refused_locations(void **state)
{
    (void)state;
    write_weights("weights.bin");
    static const struct {
        const char *location, *offset, *length;
        bel_code code;
        const char *part;
    } wrong[] = {
        {"../weights.bin", "0", "8", BEL_DATA_LOSS, "inside the model's folder"},
        {"parts/../../weights.bin", "0", "8", BEL_DATA_LOSS, "inside the model's folder"},
        {"..", "0", "8", BEL_DATA_LOSS, "inside the model's folder"},
        {"/etc/passwd", "0", "8", BEL_DATA_LOSS, "inside the model's folder"},
        {"", "0", "8", BEL_DATA_LOSS, "inside the model's folder"},
        {NULL, "0", "8", BEL_DATA_LOSS, "inside the model's folder"},
        {".", "0", "8", BEL_INVALID_ARGUMENT, "no regular file"},
        {"missing.bin", "0", "8", BEL_NOT_FOUND, "missing.bin"},
        {"weights.bin", "16", "8", BEL_DATA_LOSS, "which has 20 bytes"},
        {"weights.bin", "-4", "8", BEL_DATA_LOSS, "which has 20 bytes"},
        {"weights.bin", "9223372036854775807", "8", BEL_DATA_LOSS, "which has 20 bytes"},
        {"weights.bin", "0", "12", BEL_DATA_LOSS, "needs 2 elements, got 12 bytes"},
        {"weights.bin", "0", "-8", BEL_DATA_LOSS, "-8 bytes"},
        {"weights.bin", "four", "8", BEL_DATA_LOSS, "offset of its external data is \"four\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bel_onnx_model *model;
        bel_str tensor = external(wrong[i].location, wrong[i].offset, wrong[i].length);
        BEL_ASSERT_FAILS(read_one(tensor, &model), wrong[i].code, wrong[i].part);
    }
}

static void test_refused_files(void **state)
{
    (void)state;
    bel_onnx_model *model;
    BEL_ASSERT_FAILS(bel_onnx_read_file("/no/such.onnx", &model), BEL_NOT_FOUND, "/no/such.onnx");
    BEL_ASSERT_FAILS(bel_onnx_read_file(bel_test_own_folder(), &model), BEL_INVALID_ARGUMENT,
                     "no regular file");
    BEL_ASSERT_FAILS(bel_onnx_read_file("/dev/null", &model), BEL_INVALID_ARGUMENT,
                     "no regular file");
    const char *const contents[] = {"", "no model", "\x3a\x7f"};
    for (int i = 0; i < 3; i++) {
        char *path =
            bel_test_file(bel_test_own_folder(), "bad.onnx", contents[i], strlen(contents[i]));
        BEL_ASSERT_FAILS(bel_onnx_read_file(path, &model), BEL_DATA_LOSS, "bad.onnx");
        bel_free(path);
    }
    bel_str tensor = external("weights.bin", "0", "8"), graph = {.text = NULL};
    put(&graph, GRAPH_INITIALIZER, tensor);
    put(&graph, GRAPH_NODE, make_node("Identity", "w", "y", NULL));
    bel_str bytes = make_model(&graph, 17);
    BEL_ASSERT_FAILS(bel_onnx_read(bytes.text, bytes.length, &model), BEL_UNIMPLEMENTED,
                     "not read by its path");
    bel_str_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_elements), BEL_TEST_IN_FOLDER(test_places_and_types),
        BEL_TEST_IN_FOLDER(test_external_data), BEL_TEST_IN_FOLDER(test_refused_locations),
        BEL_TEST_IN_FOLDER(test_refused_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
