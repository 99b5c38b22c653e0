// Damage: opening a checkpoint finds a cut, flipped or missing byte in any file, and the error
// names the file.
#include "base/hash.h"
#include "base/str.h"
#include "unit/checkpoint/test_fixture.h"

typedef struct fixture {
    char *model_dir;
    char *folder;
    model saved;
} fixture;

static const char *const file_names[] = {
    "manifest.json",
    "shard-00000-of-00002.safetensors",
    "shard-00001-of-00002.safetensors",
};
enum { FILE_COUNT = sizeof file_names / sizeof file_names[0] };

static int setup(void **state)
{
    fixture *made = bel_xcalloc(1, sizeof *made);
    bel_hash128 digest;
    made->model_dir = bel_test_folder();
    made->folder = bel_path_join(made->model_dir, "ckpt-00000003");
    model_init(&made->saved, 0);
    BEL_ASSERT_OK(model_save(&made->saved, made->model_dir, 3, 2, &digest));
    *state = made;
    return 0;
}

static int teardown(void **state)
{
    fixture *used = *state;
    bel_test_remove_folder(used->model_dir);
    bel_free(used->folder);
    model_deinit(&used->saved);
    bel_free(used);
    return 0;
}

// Overwrites a file without the cost of a sync.
static void put(const char *folder, const char *name, const char *data, size_t size)
{
    char *path = bel_path_join(folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    bel_free(path);
}

static void get(const char *folder, const char *name, char **out_data, size_t *out_size)
{
    char *path = bel_path_join(folder, name);
    BEL_ASSERT_OK(bel_file_read(path, out_data, out_size));
    bel_free(path);
}

static void assert_whole(const fixture *used)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open(used->folder, &reader));
    assert_holds(reader, &used->saved, 3);
    bel_ckpt_close(reader);
}

static void test_any_shorter_file_is_found(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    for (int i = 0; i < FILE_COUNT; i++) {
        size_t size;
        char *data;
        get(used->folder, file_names[i], &data, &size);
        for (size_t cut = 0; cut < size; cut += cut < 100 || cut + 100 > size ? 1 : 97) {
            put(used->folder, file_names[i], data, cut);
            BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_DATA_LOSS, file_names[i]);
        }
        char *longer = bel_xcalloc(1, size + 1);
        memcpy(longer, data, size);
        put(used->folder, file_names[i], longer, size + 1);
        BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_DATA_LOSS, file_names[i]);
        put(used->folder, file_names[i], data, size);
        bel_free(longer);
        bel_free(data);
    }
    assert_whole(used);
}

static void test_any_flipped_bit_is_found(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    for (int i = 0; i < FILE_COUNT; i++) {
        size_t size;
        char *data;
        get(used->folder, file_names[i], &data, &size);
        for (size_t byte = 0; byte < size; byte += byte < 1000 ? 1 : 251) {
            char bit = (char)(1 << byte % 7);
            data[byte] ^= bit;
            put(used->folder, file_names[i], data, size);
            BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_DATA_LOSS, file_names[i]);
            data[byte] ^= bit;
        }
        put(used->folder, file_names[i], data, size);
        bel_free(data);
    }
    assert_whole(used);
}

static void test_any_missing_file_is_found(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    for (int i = 0; i < FILE_COUNT; i++) {
        size_t size;
        char *data;
        get(used->folder, file_names[i], &data, &size);
        char *path = bel_path_join(used->folder, file_names[i]);
        BEL_ASSERT_OK(bel_dir_remove(path));
        BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_NOT_FOUND, file_names[i]);
        BEL_ASSERT_OK(bel_dir_create(path)); // is neither waited for nor read
        BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_DATA_LOSS,
                         "expected a regular file");
        BEL_ASSERT_OK(bel_dir_remove(path));
        put(used->folder, file_names[i], data, size);
        bel_free(path);
        bel_free(data);
    }
    assert_whole(used);
}

static void test_swapped_shards_are_found(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    size_t size_0, size_1;
    char *data_0;
    get(used->folder, file_names[1], &data_0, &size_0);
    char *data_1;
    get(used->folder, file_names[2], &data_1, &size_1);
    put(used->folder, file_names[1], data_1, size_1);
    put(used->folder, file_names[2], data_0, size_0);
    BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_DATA_LOSS, file_names[1]);
    bel_free(data_0);
    bel_free(data_1);
}

static void test_a_garbage_manifest_is_refused(void **state)
{
    fixture *used = *state;
    static const char *const texts[] = {
        "", "{}", "null", "\"crc32c\": \"", "garbage", "{\"format\": \"belfry-checkpoint\"}\n",
    };
    bel_ckpt_reader *reader;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put(used->folder, "manifest.json", texts[i], strlen(texts[i]));
        BEL_ASSERT_FAILS(bel_ckpt_open(used->folder, &reader), BEL_DATA_LOSS, "manifest.json");
    }
}

// The checksums are right and the digest is wrong: only verification finds it.
static void test_verify_finds_a_wrong_digest(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    size_t size;
    char *text;
    get(used->folder, "manifest.json", &text, &size);
    const char *digest = strstr(text, "\"digest\": \"") + strlen("\"digest\": \"");
    const char *seal =
        // The files' "crc32c" members are not at the start of a line.
        strstr(text, "\n  \"crc32c\"") + 1;
    bel_str changed = {0};
    bel_str_append(&changed, text, (size_t)(seal - text));
    char *digit = changed.text + (digest - text);
    *digit = *digit == '0' ? '1' : '0';
    char *sealed = bel_strf("%s  \"crc32c\": \"%08x\"\n}\n", changed.text,
                            bel_crc32c(0, changed.text, changed.length));
    bel_str_deinit(&changed);
    put(used->folder, "manifest.json", sealed, strlen(sealed));
    BEL_ASSERT_OK(bel_ckpt_open(used->folder, &reader));
    assert_holds(reader, &used->saved, 3);
    BEL_ASSERT_FAILS(bel_ckpt_verify(reader), BEL_DATA_LOSS, "expected the digest");
    bel_ckpt_close(reader);
    bel_free(sealed);
    bel_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_shorter_file_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_flipped_bit_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_missing_file_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_swapped_shards_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_garbage_manifest_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verify_finds_a_wrong_digest, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
