// Hostile manifests: the checksum is right and the content is wrong. No manifest may cause a crash
// or an overflow, name a file outside the folder, or make the reader take more memory than the
// file's size justifies.
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "checkpoint/manifest.h"
#include "unit/checkpoint/test_fixture.h"

// Valid manifest of two files and three tensors, without its last member.
static const char good[] =
    "{\n"
    "  \"format\": \"belfry-checkpoint\",\n"
    "  \"format_version\": 1,\n"
    "  \"step\": 3,\n"
    "  \"generation\": 0,\n"
    "  \"seed\": \"18446744073709551615\",\n"
    "  \"digest\": \"00000000000000000000000000000000\",\n"
    "  \"segments\": [{\"first_step\": 1, \"first_block\": 2, \"replica_count\": 3}],\n"
    "  \"settings\": {\"model\": \"mlp\"},\n"
    "  \"files\": [{\"name\": \"shard-0\", \"size\": 1, \"crc32c\": \"0123abcd\"},\n"
    "            {\"name\": \"shard-1\", \"size\": 2, \"crc32c\": \"00000000\"}],\n"
    "  \"tensors\": [\n"
    "    {\"name\": \"a\", \"dtype\": \"f32\", \"shape\": [2, 4096], \"pieces\": [[0, 0, 4096], "
    "[1, 4096, 4096]]},\n"
    "    {\"name\": \"b\", \"dtype\": \"i64\", \"shape\": [], \"pieces\": [[1, 0, 1]]},\n"
    "    {\"name\": \"c\", \"dtype\": \"u8\", \"shape\": [0], \"pieces\": [[0, 0, 0]]}\n"
    "  ],\n";

static bel_status *parse_sealed(const char *body, size_t length, bel_arena *arena)
{
    bel_manifest manifest;
    bel_str text = {0};
    bel_str_append(&text, body, length);
    bel_str_printf(&text, "  \"crc32c\": \"%08x\"\n}\n", bel_crc32c(0, body, length));
    bel_status *status = bel_manifest_parse(text.text, text.length, "M", arena, &manifest);
    bel_str_deinit(&text);
    return status;
}

static void test_the_good_one_is_good(void **state)
{
    (void)state;
    bel_arena *arena = bel_arena_create();
    BEL_ASSERT_OK(parse_sealed(good, sizeof good - 1, arena));
    bel_arena_destroy(arena);
}

// Each row changes the valid manifest in one place; `part` is a part of the error.
static const struct {
    const char *from, *to, *part;
} rows[] = {
    {"belfry-checkpoint", "other", "\"format\": expected belfry-checkpoint"},
    {"\"format_version\": 1", "\"format_version\": 0", "expected at least 1, got 0"},
    {"\"step\": 3", "\"step\": -3", "\"step\": expected at least 0, got -3"},
    {"\"step\": 3", "\"step\": 3.5", "\"step\": expected an integer"},
    {"\"step\": 3", "\"step\": 99999999999999999999", "not valid JSON"},
    {"\"step\": 3", "\"step\": 3, \"step\": 4", "duplicate"},
    {"\"step\": 3", "\"stop\": 3", "\"step\": expected an integer"},
    {"\"generation\": 0", "\"generation\": null", "\"generation\""},
    {"18446744073709551615", "18446744073709551616", "\"seed\": expected"},
    {"18446744073709551615", "", "\"seed\": expected"},
    {"18446744073709551615", "-1", "\"seed\": expected"},
    {"\"00000000000000000000000000000000\"", "\"0000\"", "\"digest\": expected 32"},
    {"\"00000000000000000000000000000000\"", "\"0000000000000000000000000000000G\"", "\"digest\""},
    {"\"segments\"", "\"sogments\"", "\"segments\": expected a list"},
    {"\"replica_count\": 3", "\"replica_count\": 0", "expected at least 1, got 0"},
    {"\"first_block\": 2", "\"first_block\": -9223372036854775808", "\"first_block\""},
    {"{\"first_step\": 1,", "7, {\"first_step\": 1,", "\"first_step\""},
    {"\"settings\": {\"model\": \"mlp\"}", "\"settings\": {\"model\": 5}", "\"model\""},
    {"\"model\": \"mlp\"", "\"model\": \"mlp\", \"model\": \"x\"", "duplicate"},
    {"\"model\": \"mlp\"", "\"model\": \"a\\u0000b\"", "not valid JSON"},
    {"\"settings\"", "\"sottings\"", "\"settings\": expected an object"},
    {"\"shard-1\"", "\"shard-0\"", "names in ascending order, none twice"},
    {"\"shard-1\"", "\"../shard-1\"", "expected a plain file name"},
    {"\"shard-1\"", "\"/etc/passwd\"", "expected a plain file name"},
    {"\"shard-1\"", "\"..\"", "expected a plain file name"},
    {"\"shard-1\"", "\"\"", "expected a plain file name"},
    {"\"size\": 2", "\"size\": -2", "\"size\""},
    {"0123abcd", "0123ABCD", "\"crc32c\": expected 8"},
    {"0123abcd", "0123abcd0", "\"crc32c\": expected 8"},
    {"\"files\"", "\"folders\"", "\"files\": expected a list"},
    {"\"tensors\"", "\"tonsors\"", "\"tensors\": expected a list"},
    {"\"name\": \"b\"", "\"name\": \"a\"", "names in ascending order, none twice"},
    {"\"name\": \"b\"", "\"name\": \"\"", "a name without"},
    {"\"name\": \"b\"", "\"name\": \"b#0\"", "a name without"},
    {"\"i64\"", "\"string\"", "\"dtype\": expected"},
    {"\"i64\"", "\"\"", "\"dtype\": expected"},
    {"\"shape\": []", "\"shape\": [1,1,1,1,1,1,1,1,1]", "at most 8 dimensions"},
    {"\"shape\": []", "\"shape\": [-1]", "integers from 0 up"},
    {"\"shape\": []", "\"shape\": [1099511627776, 1099511627776]", "less than 2^63 bytes"},
    {"\"shape\": []", "\"shape\": [9223372036854775807, 0]", "less than 2^63 bytes"},
    {"\"shape\": []", "\"shape\": [1000000000000000]", "with all 1000000000000000 elements"},
    {"\"shape\": []", "\"shope\": []", "\"shape\""},
    {"[[1, 0, 1]]", "[]", "expected pieces with all 1 elements, got 0"},
    {"[[1, 0, 1]]", "7", "expected pieces with all 1 elements, got 0"},
    {"[[1, 0, 1]]", "[[1, 0]]", "three integers each"},
    {"[[1, 0, 1]]", "[[2, 0, 1]]", "the number of a file that is listed"},
    {"[[1, 0, 1]]", "[[-1, 0, 1]]", "the number of a file that is listed"},
    {"[[1, 0, 1]]", "[[4294967296, 0, 1]]", "the number of a file that is listed"},
    {"[[1, 0, 1]]", "[[1, 0, 2]]", "expected some of the 1 elements"},
    {"[[1, 0, 1]]", "[[1, 0, 9223372036854775807]]", "expected some of the 1 elements"},
    {"[[1, 0, 1]]", "[[1, 0, -1]]", "expected some of the 1 elements"},
    {"[[1, 0, 1]]", "[[1, 0, 1], [1, 1, 0]]", "expected some of the 1 elements"},
    {"[1, 4096, 4096]]", "[1, 0, 4096]]", "from 4096 on"},
    {"[1, 4096, 4096]]", "[1, 8192, 4096]]", "from 4096 on"},
    {"[0, 0, 4096], ", "[0, 0, 4095], ", "cut at a multiple of 4096"},
    {"[1, 4096, 4096]]", "[1, 4096, 4095]]", "expected pieces with all 8192 elements, got 8191"},
    {"[[0, 0, 0]]", "[]", "expected pieces with all 0 elements"},
    {"[[0, 0, 0]]", "[[0, 0, 0], [0, 0, 0]]", "expected some of the 0 elements"},
};

static void test_every_wrong_value_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *place = strstr(good, rows[i].from);
        assert_non_null(place);
        bel_arena *arena = bel_arena_create();
        bel_str text = {0};
        bel_str_append(&text, good, (size_t)(place - good));
        bel_str_puts(&text, rows[i].to);
        bel_str_puts(&text, place + strlen(rows[i].from));
        BEL_ASSERT_FAILS(parse_sealed(text.text, text.length, arena), BEL_DATA_LOSS, rows[i].part);
        bel_str_deinit(&text);
        bel_arena_destroy(arena);
    }
}

// Any text gives a manifest or an error. Under the address sanitizer this is a small fuzzer.
static void test_random_changes_never_crash(void **state)
{
    (void)state;
    enum { ROUNDS = 20000, LENGTH = sizeof good - 1 };
    static const char alphabet[] = "0123456789-.eE\"{}[],: \\\n\xff#abf";
    char text[LENGTH];
    uint32_t random = 1;
    int refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(text, good, LENGTH);
        for (int change = 0; change < 1 + i % 3; change++) {
            random = random * 1664525u + 1013904223u;
            text[(random >> 8) % LENGTH] = alphabet[(random >> 24) % (sizeof alphabet - 1)];
        }
        bel_arena *arena = bel_arena_create();
        bel_status *status =
            parse_sealed(text, LENGTH - (size_t)(i % 5 == 0) * (random % LENGTH), arena);
        refused += status != NULL;
        bel_status_destroy(status);
        bel_arena_destroy(arena);
    }
    assert_true(refused > ROUNDS / 2);
}

// --- A manifest and files that disagree ---------------------------------------------------------

static bel_status *open_with(const char *body, const bel_ckpt_piece *pieces, int piece_count)
{
    char *folder = bel_test_folder();
    bel_ckpt_shard *shard;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 1, pieces, piece_count, &shard));
    bel_ckpt_shard_destroy(shard);
    char *path = bel_path_join(folder, "shard-00000-of-00001.safetensors"), *data;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    bel_str text = {0};
    bel_str_printf(&text,
                   "{\"format\": \"belfry-checkpoint\", \"format_version\": 1, \"step\": 0, "
                   "\"generation\": 0, \"seed\": \"0\", \"segments\": [], \"settings\": {}, "
                   "\"digest\": \"00000000000000000000000000000000\", \"files\": [{\"name\": "
                   "\"shard-00000-of-00001.safetensors\", \"size\": %zu, \"crc32c\": \"%08x\"}], "
                   "\"tensors\": [%s],\n",
                   size, bel_crc32c(0, data, size), body);
    bel_str_printf(&text, "  \"crc32c\": \"%08x\"\n}\n", bel_crc32c(0, text.text, text.length));
    bel_free(bel_test_file(folder, "manifest.json", text.text, text.length));
    bel_status *status = bel_ckpt_open(folder, &reader);
    if (status == NULL) bel_ckpt_close(reader);
    bel_str_deinit(&text);
    bel_free(data);
    bel_free(path);
    bel_test_remove_folder(folder);
    return status;
}

static void test_files_must_hold_what_the_manifest_says(void **state)
{
    (void)state;
    static const float data[2 * BEL_GRAIN];
    const bel_ckpt_piece pieces[] = {
        {"a", BEL_DTYPE_F32, BEL_SHAPE(2, 3), 0, 6, data},
        {"b", BEL_DTYPE_F32, BEL_SHAPE(8192), 4096, 4096, data},
    };
    static const char a[] =
        "{\"name\": \"a\", \"dtype\": \"f32\", \"shape\": [2, 3], \"pieces\": [[0, 0, 6]]}";
    BEL_ASSERT_OK(open_with(a, pieces, 1));
    BEL_ASSERT_FAILS(open_with(a, pieces, 0), BEL_DATA_LOSS, "expected a tensor \"a\"");
    BEL_ASSERT_FAILS(open_with(a, pieces, 2), BEL_DATA_LOSS, "expected 1 tensors, got 2");
    BEL_ASSERT_FAILS(open_with("", pieces, 1), BEL_DATA_LOSS, "expected 0 tensors, got 1");
    BEL_ASSERT_FAILS(open_with("{\"name\": \"a\", \"dtype\": \"f32\", \"shape\": [6], \"pieces\": "
                               "[[0, 0, 6]]}",
                               pieces, 1),
                     BEL_DATA_LOSS, "expected f32 [6], got f32 [2, 3]");
    BEL_ASSERT_FAILS(open_with("{\"name\": \"a\", \"dtype\": \"i32\", \"shape\": [2, 3], "
                               "\"pieces\": [[0, 0, 6]]}",
                               pieces, 1),
                     BEL_DATA_LOSS, "expected i32 [2, 3], got f32 [2, 3]");
    BEL_ASSERT_FAILS(open_with("{\"name\": \"b\", \"dtype\": \"f32\", \"shape\": [8192], "
                               "\"pieces\": [[0, 0, 4096], [0, 4096, 4096]]}",
                               pieces, 2),
                     BEL_DATA_LOSS, "expected a tensor \"b#0\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_good_one_is_good),
        cmocka_unit_test(test_every_wrong_value_is_named),
        cmocka_unit_test(test_random_changes_never_crash),
        cmocka_unit_test(test_files_must_hold_what_the_manifest_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
