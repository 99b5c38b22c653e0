// Safetensors container: its bytes, its alignment, files with false headers, and checksums.
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "checkpoint/safetensors.h"
#include "support/bel_test.h"

// --- Writing ------------------------------------------------------------------------------------

static void test_bytes_are_the_documented_ones(void **state)
{
    (void)state;
    static const float x[] = {1.0f, -2.0f};
    static const uint8_t flag[] = {1};
    const bel_safetensors_text metadata = {"producer", "belfry"};
    const bel_safetensors_input tensors[] = {
        {.name = "flag", .dtype = BEL_DTYPE_BOOL, .data = flag},
        {.name = "x", .dtype = BEL_DTYPE_F32, .shape = {2, {1, 2}}, .data = x},
    };
    static const char header[] =
        "{\"__metadata__\":{\"producer\":\"belfry\"},"
        "\"x\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"flag\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[8,9]}}";
    char *path = bel_path_join(bel_test_own_folder(), "x.safetensors"), *data;
    uint64_t size;
    size_t read_size;
    uint32_t crc;
    BEL_ASSERT_OK(bel_safetensors_write(path, &metadata, 1, tensors, 2, &size, &crc));
    BEL_ASSERT_OK(bel_file_read(path, &data, &read_size));
    assert_int_equal(size, 192 + 9); // the header is padded to the next multiple of 64
    assert_int_equal(read_size, size);
    assert_memory_equal(data, "\xb8\0\0\0\0\0\0\0", 8);
    assert_memory_equal(data + 8, header, sizeof header - 1);
    for (size_t i = 8 + sizeof header - 1; i < 192; i++)
        assert_int_equal(data[i], ' ');
    assert_memory_equal(data + 192, "\0\0\x80\x3f\0\0\0\xc0\1", 9);
    bel_free(data);
    bel_free(path);
}

static void test_tensors_are_aligned(void **state)
{
    (void)state;
    static const double data[64];
    static const int64_t counts[] = {1, 3, 16, 5, 8, 2, 32, 7, 0, 4};
    enum { COUNT = sizeof counts / sizeof counts[0] };
    static const bel_dtype dtypes[] = {BEL_DTYPE_U8, BEL_DTYPE_F32, BEL_DTYPE_F64, BEL_DTYPE_BOOL,
                                       BEL_DTYPE_I64};
    bel_safetensors_input tensors[COUNT], reversed[COUNT];
    char names[COUNT][2];
    for (int i = 0; i < COUNT; i++) {
        names[i][0] = (char)('a' + i);
        names[i][1] = '\0';
        tensors[i] = (bel_safetensors_input){
            .name = names[i], .dtype = dtypes[i % 5], .shape = BEL_SHAPE(counts[i]), .data = data};
        reversed[COUNT - 1 - i] = tensors[i];
    }
    char *path = bel_path_join(bel_test_own_folder(), "x.safetensors");
    bel_disk_file file;
    bel_safetensors_list list;
    bel_arena *arena = bel_arena_create();
    uint32_t crc, reversed_crc;
    BEL_ASSERT_OK(bel_safetensors_write(path, NULL, 0, reversed, COUNT, NULL, &reversed_crc));
    BEL_ASSERT_OK(bel_safetensors_write(path, NULL, 0, tensors, COUNT, NULL, &crc));
    assert_int_equal(crc, reversed_crc); // the caller's order does not matter
    BEL_ASSERT_OK(bel_disk_file_open(path, &file));
    BEL_ASSERT_OK(bel_safetensors_read_header(&file, arena, &list));
    assert_int_equal(list.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const bel_safetensors_entry *entry = bel_safetensors_find(&list, names[i]);
        assert_non_null(entry);
        assert_int_equal(entry->dtype, dtypes[i % 5]);
        assert_int_equal(entry->offset % bel_dtype_size(entry->dtype), 0);
        if (entry->size_bytes % 64 == 0) assert_int_equal(entry->offset % 64, 0);
    }
    assert_null(bel_safetensors_find(&list, "z"));
    bel_disk_file_close(&file);
    bel_arena_destroy(arena);
    bel_free(path);
}

static void test_a_failed_write_leaves_no_file(void **state)
{
    (void)state;
    static const float x[] = {1.0f, -2.0f};
    const bel_safetensors_input tensor = {
        .name = "x", .dtype = BEL_DTYPE_F32, .shape = {1, {2}}, .data = x};
    char *path = bel_path_join(bel_test_own_folder(), "failed.safetensors");
    for (int i = 1; i <= 3; i++) { // length, header, data
        char fault[32];
        snprintf(fault, sizeof fault, "write:%d", i);
        bel_fault_set(fault);
        BEL_ASSERT_FAILS(bel_safetensors_write(path, NULL, 0, &tensor, 1, NULL, NULL),
                         BEL_RESOURCE_EXHAUSTED, path);
        assert_false(bel_file_exists(path));
    }
    bel_fault_set("");
    BEL_ASSERT_OK(bel_safetensors_write(path, NULL, 0, &tensor, 1, NULL, NULL));
    assert_true(bel_file_exists(path));
    bel_free(path);
}

// --- Reading ------------------------------------------------------------------------------------

// Reads the header of a file with these bytes. Errors begin with the file's path.
static bel_status *read_bytes(const char *bytes, size_t size, int *out_count)
{
    char *path = bel_path_join(bel_test_own_folder(), "hostile.safetensors");
    FILE *stream = fopen(path, "wb"); // without a sync: the test writes many files
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
    bel_disk_file file;
    bel_safetensors_list list = {0};
    bel_arena *arena = bel_arena_create();
    BEL_ASSERT_OK(bel_disk_file_open(path, &file));
    bel_status *status = bel_safetensors_read_header(&file, arena, &list);
    *out_count = list.count;
    for (int i = 0; i < list.count && status == NULL; i++) { // every accepted entry can be read
        const bel_safetensors_entry *entry = &list.entries[i];
        char *data = bel_xmalloc((size_t)entry->size_bytes);
        BEL_ASSERT_OK(bel_disk_file_read(&file, entry->offset, data, (size_t)entry->size_bytes));
        bel_free(data);
    }
    bel_disk_file_close(&file);
    bel_arena_destroy(arena);
    bel_free(path);
    return status;
}

// Reads a header followed by `data_bytes` zero bytes.
static bel_status *read_header_text(const char *header, size_t data_bytes, int *out_count)
{
    size_t length = strlen(header);
    uint64_t length_field = length;
    char *bytes = bel_xcalloc(1, 8 + length + data_bytes);
    memcpy(bytes, &length_field, 8);
    memcpy(bytes + 8, header, length);
    bel_status *status = read_bytes(bytes, 8 + length + data_bytes, out_count);
    bel_free(bytes);
    return status;
}

#define X(dtype, shape, offsets)                                                                   \
    "{\"x\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_headers_of_other_writers_are_read(void **state)
{
    (void)state;
    int count;
    BEL_ASSERT_OK(read_header_text("{}", 0, &count));
    assert_int_equal(count, 0);
    BEL_ASSERT_OK(read_header_text(X("F32", "[2]", "[0,8]") "   ", 8, &count));
    assert_int_equal(count, 1);
    BEL_ASSERT_OK(
        read_header_text("{\"z\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]},"
                         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                         "\"e\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[2,2]}}",
                         5, &count));
    assert_int_equal(count, 3);
}

static void test_hostile_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        const char *part;
    } rows[] = {
        {"", "begins with"},
        {"[]", "begins with"},
        {" {}", "begins with"},
        {"{", "not valid JSON"},
        {"{}x", "not valid JSON"},
        {"{\"x\":5}", "tensor \"x\": expected dtype"},
        {"{\"__metadata__\":{\"a\":5}}", "__metadata__ \"a\": expected a text"},
        {X("F8", "[2]", "[0,8]"), "got F8"},
        {X("F32", "2", "[0,8]"), "does not take the 8 bytes"},
        {X("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "at most 8 dimensions, got 9"},
        {X("F32", "[-2]", "[0,8]"), "dimension 0"},
        {X("F32", "[2.0]", "[0,8]"), "dimension 0"},
        {X("F32", "[3]", "[0,8]"), "F32 [3] does not take the 8 bytes"},
        {X("F32", "[2]", "[0]"), "expected data_offsets"},
        {X("F32", "[2]", "[0,8,8]"), "expected data_offsets"},
        {X("F32", "[2]", "[8,0]"), "expected data_offsets"},
        {X("F32", "[2]", "[-8,0]"), "expected data_offsets"},
        {X("F32", "[2]", "{}"), "expected data_offsets"},
        {X("F32", "[2]", "[8,16]"), "expected to begin at byte"},
        {X("F32", "[2]", "[9223372036854775799,9223372036854775807]"), "expected to begin at byte"},
        {X("F32", "[1]", "[0,4]"), "describes only"},
        {X("F32", "[4]", "[0,16]"), "describes at least"},
        {X("U8", "[9223372036854775807]", "[0,9223372036854775807]"), "describes at least"},
        {X("F32", "[4611686018427387905]", "[0,4]"), "does not take"}, // × 4 wraps to 4
        {X("F32", "[4294967296,4294967296]", "[0,0]"), "does not take"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
         "duplicate"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
         "tensor \"y\": expected to begin"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         "tensor \"y\": expected to begin"},
    };
    int count;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        BEL_ASSERT_FAILS(read_header_text(rows[i].header, 8, &count), BEL_DATA_LOSS, rows[i].part);
    BEL_ASSERT_FAILS(read_header_text("{", 8, &count), BEL_DATA_LOSS, "hostile.safetensors:1:");
}

static void test_header_length_is_bounded_by_the_file(void **state)
{
    (void)state;
    int count;
    BEL_ASSERT_FAILS(read_bytes("", 0, &count), BEL_DATA_LOSS, "the file has 0");
    BEL_ASSERT_FAILS(read_bytes("\2\0\0\0\0\0\0", 7, &count), BEL_DATA_LOSS, "the file has 7");
    BEL_ASSERT_FAILS(read_bytes("\3\0\0\0\0\0\0\0{}", 10, &count), BEL_DATA_LOSS,
                     "expected a header of at most 2 bytes, got 3");
    BEL_ASSERT_FAILS(read_bytes("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, &count), BEL_DATA_LOSS,
                     "got 18446744073709551615");
    BEL_ASSERT_FAILS(read_bytes("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10, &count), BEL_DATA_LOSS,
                     "at most 2 bytes");
}

// Any bytes give a list or an error. Under the address sanitizer this is a small fuzzer.
static void test_random_changes_never_crash(void **state)
{
    (void)state;
    static const char header[] =
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"flag\":{\"dtype\":\"BOOL\",\"shape\":[4,2],\"data_offsets\":[8,16]},\"__metadata__\":{}"
        "}";
    static const char alphabet[] = "0123456789-.eE\"{}[],: \\\n\xff#abf";
    enum { ROUNDS = 3000, HEADER = sizeof header - 1, LENGTH = 8 + HEADER + 16 };
    char bytes[LENGTH];
    uint64_t header_length = HEADER;
    uint32_t random = 1;
    int count, refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        memset(bytes, 0, LENGTH);
        memcpy(bytes, &header_length, 8);
        memcpy(bytes + 8, header, HEADER);
        for (int change = 0; change < i % 4; change++) {
            random = random * 1664525u + 1013904223u;
            bytes[(random >> 8) % LENGTH] = alphabet[(random >> 24) % (sizeof alphabet - 1)];
        }
        bel_status *status = read_bytes(bytes, LENGTH, &count);
        if (i == 0) BEL_ASSERT_OK(status);
        refused += status != NULL;
        if (i > 0) bel_status_destroy(status);
    }
    assert_true(refused > ROUNDS / 4);
}

// The checksum of a file of several parts, which threads read, is that of its bytes in order.
static void test_checksum_of_a_long_file(void **state)
{
    (void)state;
    enum { SIZE = (17 << 20) + 3 };
    char *data = bel_xmalloc(SIZE);
    for (uint32_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 2654435761u >> 15);
    char *path = bel_test_file(bel_test_own_folder(), "long", data, SIZE);
    bel_disk_file file = {0};
    BEL_ASSERT_OK(bel_disk_file_open(path, &file));
    uint32_t crc;
    BEL_ASSERT_OK(bel_disk_file_crc32c(&file, &crc));
    assert_int_equal(crc, bel_crc32c(0, data, SIZE));
    assert_int_equal(truncate(path, 6 << 20), 0);
    BEL_ASSERT_FAILS(bel_disk_file_crc32c(&file, &crc), BEL_DATA_LOSS, "has become shorter");
    bel_disk_file_close(&file);
    bel_free(path);
    bel_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_the_documented_ones),
        cmocka_unit_test(test_tensors_are_aligned),
        cmocka_unit_test(test_a_failed_write_leaves_no_file),
        cmocka_unit_test(test_headers_of_other_writers_are_read),
        cmocka_unit_test(test_hostile_headers_are_refused),
        cmocka_unit_test(test_header_length_is_bounded_by_the_file),
        cmocka_unit_test(test_random_changes_never_crash),
        cmocka_unit_test(test_checksum_of_a_long_file),
    };
    return cmocka_run_group_tests(tests, bel_test_enter_folder, bel_test_leave_folder);
}
