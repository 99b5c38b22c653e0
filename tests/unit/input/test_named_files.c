// Files that records name: the base of relative paths. Other file sizes make the data different,
// also for a cache.
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "unit/input/test_fixture.h"

// Writes a CSV file in the test's folder whose rows name a.bin and b.bin.
static char *write_rows(void)
{
    static const char rows[] = "path,y\na.bin,1\nb.bin,0\n";
    return bel_test_file(bel_test_own_folder(), "rows.csv", rows, sizeof rows - 1);
}

static void write_file(const char *name, const char *content)
{
    bel_free(bel_test_file(bel_test_own_folder(), name, content, strlen(content)));
}

static bel_dataset *rows_of(const char *path)
{
    return bel_dataset_from_csv(&(bel_csv_options){
        .size = sizeof(bel_csv_options),
        .paths = &path,
        .path_count = 1,
        .label_column = "y",
        .columns = (const bel_csv_column[]){{"path", BEL_DTYPE_STRING}},
        .column_count = 1,
    });
}

// Adds the size of the file.
static bel_status *measure(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const char *path = bel_record_path(record, "path", user);
    if (path == NULL) return BEL_ERR(BEL_DATA_LOSS, "no path");
    char *content;
    size_t size;
    BEL_TRY(bel_file_read(path, &content, &size));
    bel_free(content);
    bel_shape scalar = bel_shape_scalar();
    *(int64_t *)bel_record_add(record, "size", BEL_DTYPE_I64, &scalar) = (int64_t)size;
    return NULL;
}

static uint64_t fingerprint_of(const char *rows, const char *folder, bool told, const char *cache)
{
    static const char *const drop[] = {"path", NULL};
    char *own = folder == NULL ? NULL : bel_xstrdup(folder);
    bel_dataset *dataset = rows_of(rows);
    if (told) bel_dataset_named_files(dataset, "path", folder);
    bel_dataset_map(dataset, measure, own, drop);
    if (cache != NULL) bel_dataset_cache(dataset, cache, 0);
    bel_dataset_batch(dataset, 2);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const int64_t *sizes = batch_field(input, batch, "size")->data;
    for (int i = 0; i < 2; i++) {
        char *path = bel_path_join(bel_test_own_folder(), i == 0 ? "a.bin" : "b.bin");
        char *content;
        size_t size;
        BEL_ASSERT_OK(bel_file_read(path, &content, &size));
        assert_int_equal(sizes[i], size);
        bel_free(content);
        bel_free(path);
    }
    uint64_t fingerprint = bel_input_fingerprint(input);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(own);
    return fingerprint;
}

static void test_sizes_are_compared(void **state)
{
    (void)state;
    char *rows = write_rows();
    write_file("a.bin", "12345");
    write_file("b.bin", "123");
    uint64_t before = fingerprint_of(rows, NULL, true, NULL);
    uint64_t untold = fingerprint_of(rows, NULL, false, NULL);
    assert_int_not_equal(before, untold);
    assert_int_equal(fingerprint_of(rows, bel_test_own_folder(), true, NULL), before);
    write_file("b.bin", "321"); // same size
    assert_int_equal(fingerprint_of(rows, NULL, true, NULL), before);
    write_file("b.bin", "3210");
    assert_int_not_equal(fingerprint_of(rows, NULL, true, NULL), before);
    assert_int_equal(fingerprint_of(rows, NULL, false, NULL), untold);
    bel_free(rows);
}

static void test_a_cache_is_made_anew(void **state)
{
    (void)state;
    char *rows = write_rows(), *cache = bel_path_join(bel_test_own_folder(), "sizes.cache");
    write_file("a.bin", "12345");
    write_file("b.bin", "123");
    (void)fingerprint_of(rows, NULL, true, cache);
    write_file("a.bin", "1234567"); // an old cache would give 5
    (void)fingerprint_of(rows, NULL, true, cache);
    bel_free(cache);
    bel_free(rows);
}

static bel_status *note_paths(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    static const char *const folders[] = {NULL, "", "over/there", "/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *path = bel_record_path(record, "path", folders[i]);
        bel_str_printf(user, "%s ", path == NULL ? "none" : path);
    }
    bel_str_printf(user, "%s\n", bel_record_path(record, "y", NULL) == NULL ? "none" : "some");
    return NULL;
}

static void test_paths(void **state)
{
    (void)state;
    static const char rows[] = "path,y\n/a,1\nb/c,0\n,0\n";
    assert_int_equal(chdir(bel_test_own_folder()), 0);
    bel_free(bel_test_file(bel_test_own_folder(), "rows.csv", rows, sizeof rows - 1));
    static const char *const drop[] = {"path", NULL};
    static const char *const files[] = {"rows.csv", "./rows.csv"};
    static const char *const expected[] = {
        "/a /a /a /a none\nb/c b/c over/there/b/c /b/c none\nnone none none none none\n",
        "/a /a /a /a none\n./b/c b/c over/there/b/c /b/c none\nnone none none none none\n",
    };
    for (int i = 0; i < 2; i++) {
        bel_str noted = {0};
        bel_dataset *dataset = rows_of(files[i]);
        bel_dataset_map(dataset, note_paths, &noted, drop);
        bel_dataset_batch(dataset, 3);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        bel_str_deinit(&noted);
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        assert_string_equal(noted.text, expected[i]);
        bel_str_deinit(&noted);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_sizes_are_compared),
        BEL_TEST_IN_FOLDER(test_a_cache_is_made_anew),
        BEL_TEST_IN_FOLDER(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
