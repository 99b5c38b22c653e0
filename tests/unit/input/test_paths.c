// Patterns in paths: their matches and the order of those, paths without a pattern, and errors when
// no file matches.
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "input/dataset/description.h"
#include "input/files/paths.h"
#include "unit/input/test_fixture.h"

static char *in_folder(const char *name)
{
    return bel_path_join(bel_test_own_folder(), name);
}

static void make_file(const char *name, const char *text)
{
    bel_free(bel_test_file(bel_test_own_folder(), name, text, strlen(text)));
}

// Checks that `patterns` expand to `expected`, all in the test's folder; NULL ends both.
static void assert_expands(const char *const *patterns, const char *const *expected)
{
    enum { MOST = 8 };
    char *paths[MOST];
    int asked = 0, count = 0;
    for (; patterns[asked] != NULL; asked++)
        paths[asked] = in_folder(patterns[asked]);
    bel_arena *arena = bel_arena_create();
    const char *const *found;
    BEL_ASSERT_OK(bel_paths_expand(arena, (const char *const *)paths, asked, &found, &count));
    for (int i = 0; i < count; i++) {
        assert_non_null(expected[i]);
        char *path = in_folder(expected[i]);
        assert_string_equal(found[i], path);
        bel_free(path);
    }
    assert_null(expected[count]);
    bel_arena_destroy(arena);
    for (int i = 0; i < asked; i++)
        bel_free(paths[i]);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_matches_come_sorted_by_bytes(void **state)
{
    (void)state;
    const char *const names[] = {"b.csv", "a.csv", "B.csv", "a10.csv", "a9.csv", "\xC3\xA4.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        make_file(names[i], "x\n1\n");
    make_file("other.txt", "");
    make_file(".hidden.csv", "");
    assert_expands(NAMES("*.csv"),
                   NAMES("B.csv", "a.csv", "a10.csv", "a9.csv", "b.csv", "\xC3\xA4.csv"));
    assert_expands(NAMES("a?.csv"), NAMES("a9.csv"));
    assert_expands(NAMES("[bB].csv"), NAMES("B.csv", "b.csv"));
    // The matches of a pattern keep its place among the other paths.
    assert_expands(NAMES("b.csv", "a*.csv", "b*"),
                   NAMES("b.csv", "a.csv", "a10.csv", "a9.csv", "b.csv"));
}

// Two stars are any folders, also none; neither hidden ones nor links, which may lead in circles.
static void test_two_stars_are_any_folders(void **state)
{
    (void)state;
    static const char *const folders[] = {"t", "t/a", "t/a/b[1]", "t/.git", "t/c"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *folder = in_folder(folders[i]);
        BEL_ASSERT_OK(bel_dir_create(folder));
        bel_free(folder);
    }
    static const char *const files[] = {"t/x.c", "t/a/y.c", "t/a/b[1]/z.c", "t/.git/w.c",
                                        "t/c/v.h"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(files[i], "");
    char *link = in_folder("t/a/up");
    assert_int_equal(symlink("..", link), 0);
    bel_free(link);
    assert_expands(NAMES("t/**/*.c"), NAMES("t/a/b[1]/z.c", "t/a/y.c", "t/x.c"));
    assert_expands(NAMES("t/**/**/z.c"), NAMES("t/a/b[1]/z.c"));
    assert_expands(NAMES("*/**/*.h"), NAMES("t/c/v.h"));
    assert_expands(NAMES("t/**/b*/*.c"), NAMES("t/a/b[1]/z.c"));
}

static void test_the_name_of_a_file_is_no_pattern(void **state)
{
    (void)state;
    make_file("a[1].csv", "x\n1\n");
    make_file("a1.csv", "x\n1\n");
    assert_expands(NAMES("a[1].csv"), NAMES("a[1].csv"));
    assert_expands(NAMES("missing.csv"), NAMES("missing.csv")); // opening it gives the error
}

static void test_what_matches_nothing_is_named(void **state)
{
    (void)state;
    make_file("a.csv", "x\n1\n");
    char *none = in_folder("b*.csv"), *nowhere = in_folder("no/*.csv");
    bel_arena *arena = bel_arena_create();
    const char *const *found;
    int count;
    const char *const both[] = {none, nowhere};
    for (int i = 0; i < 2; i++) {
        BEL_ASSERT_FAILS(bel_paths_expand(arena, &both[i], 1, &found, &count), BEL_NOT_FOUND,
                         both[i]);
    }
    bel_arena_destroy(arena);
    bel_free(none);
    bel_free(nowhere);
}

// A source reads the records of all matching files, numbered in the files' order.
static void test_a_source_reads_what_matches(void **state)
{
    (void)state;
    make_file("part-1.csv", "x\n1\n2\n");
    make_file("part-0.csv", "x\n0\n");
    char *pattern = in_folder("part-*.csv");
    bel_dataset *dataset = bel_dataset_from_csv(&(bel_csv_options){
        .size = sizeof(bel_csv_options), .paths = NAMES(pattern), .path_count = 1});
    bel_dataset_batch(dataset, 4);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_int_equal(batch->example_count, 3);
    assert_memory_equal(batch_field(input, batch, "x")->data, ((float[]){0, 1, 2}), 12);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(pattern);

    char *nothing = in_folder("path-*.csv");
    dataset = bel_dataset_from_csv(&(bel_csv_options){
        .size = sizeof(bel_csv_options), .paths = NAMES(nothing), .path_count = 1});
    bel_dataset_batch(dataset, 4);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_NOT_FOUND, nothing);
    bel_free(nothing);
}

static void test_idx_takes_one_file(void **state)
{
    (void)state;
    const char images[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};
    const char *folder = bel_test_own_folder();
    bel_free(bel_test_file(folder, "images-1", images, sizeof images));
    char *pattern = in_folder("images-*");
    bel_dataset *dataset = bel_dataset_from_idx(pattern, NULL, 0, 0);
    bel_dataset_batch(dataset, 4);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    assert_int_equal(bel_input_epoch_records(input), 2);
    bel_input_destroy(input);

    bel_free(bel_test_file(folder, "images-2", images, sizeof images));
    dataset = bel_dataset_from_idx(pattern, NULL, 0, 0);
    bel_dataset_batch(dataset, 4);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "expected one file");
    bel_free(pattern);
}

static bel_dataset *lines_of(const char *path)
{
    return bel_dataset_from_text(&path, 1);
}

static bool is_elsewhere(bel_dataset *dataset)
{
    const bel_description *description;
    bel_dataset_batch(dataset, 4);
    BEL_ASSERT_OK(bel_dataset_describe(dataset, &description));
    bool elsewhere = bel_description_is_elsewhere(description);
    bel_dataset_destroy(dataset);
    return elsewhere;
}

// A chief without the data asks this before it waits for a worker's description.
static void test_files_that_are_on_other_hosts(void **state)
{
    (void)state;
    make_file("part-0.txt", "a\n");
    make_file("labels", "");
    char *here = in_folder("part-*.txt"), *missing = in_folder("missing.txt");
    char *nothing = in_folder("none-*.txt"), *labels = in_folder("labels");
    assert_false(is_elsewhere(lines_of(here)));
    assert_true(is_elsewhere(lines_of(missing)));
    assert_true(is_elsewhere(lines_of(nothing)));
    assert_true(is_elsewhere(lines_of(bel_test_own_folder()))); // no regular file
    assert_false(is_elsewhere(bel_dataset_from_idx(labels, labels, 0, 10)));
    assert_true(is_elsewhere(bel_dataset_from_idx(labels, missing, 0, 10)));
    bel_dataset *const mixed[] = {lines_of(here), lines_of(missing)};
    assert_true(is_elsewhere(bel_dataset_zip(mixed, 2)));
    bel_free(here);
    bel_free(missing);
    bel_free(nothing);
    bel_free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_matches_come_sorted_by_bytes),
        BEL_TEST_IN_FOLDER(test_two_stars_are_any_folders),
        BEL_TEST_IN_FOLDER(test_the_name_of_a_file_is_no_pattern),
        BEL_TEST_IN_FOLDER(test_what_matches_nothing_is_named),
        BEL_TEST_IN_FOLDER(test_a_source_reads_what_matches),
        BEL_TEST_IN_FOLDER(test_idx_takes_one_file),
        BEL_TEST_IN_FOLDER(test_files_that_are_on_other_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
