// Lines of text: line ends, several files, packed files, any order, and errors for missing lines.
#include <unistd.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "input/files/file_view.h"
#include "unit/input/test_fixture.h"

// Lines that a map saw, each followed by '|', and the origin of the last one.
typedef struct seen {
    bel_str text;
    char origin[512];
} seen;

// Notes a line and adds its length, as text cannot be in a batch.
static bel_status *note(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    seen *to = user;
    const bel_tensor *text = bel_record_get(record, BEL_TEXT_FIELD);
    bel_str_append(&to->text, text->data, (size_t)text->shape.dims[0]);
    bel_str_puts(&to->text, "|");
    snprintf(to->origin, sizeof to->origin, "%s", bel_record_origin(record));
    int64_t *length = bel_record_add(record, "id", BEL_DTYPE_I64, &(bel_shape){0});
    *length = text->shape.dims[0];
    return NULL;
}

static bel_dataset *lines_of(const char *const *paths, int count, seen *to, int64_t batch_size)
{
    bel_dataset *dataset = bel_dataset_from_text(paths, count);
    bel_dataset_map(dataset, note, to, (const char *const[]){BEL_TEXT_FIELD, NULL});
    bel_dataset_batch(dataset, batch_size);
    return dataset;
}

// Checks the lines of one block with everything.
static void assert_lines(const char *const *paths, int count, const char *expected)
{
    seen lines = {0};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lines_of(paths, count, &lines, 100), &input));
    bel_str_deinit(&lines.text); // lines read to learn the fields
    lines.text = (bel_str){0};
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_string_equal(lines.text.text, expected);
    bel_str_deinit(&lines.text);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void assert_text(const char *text, size_t size, const char *expected)
{
    char *path = bel_test_file(bel_test_own_folder(), "a.txt", text, size);
    assert_lines((const char *const[]){path}, 1, expected);
    bel_free(path);
}

static void test_what_a_line_is(void **state)
{
    (void)state;
    assert_text("one\ntwo\n", 8, "one|two|");
    assert_text("one\ntwo", 7, "one|two|");
    assert_text("one\r\ntwo\r\n", 10, "one|two|");
    assert_text("one\r\n\r\n\ntwo", 11, "one|||two|");
    assert_text("a\rb\nc\r", 6, "a\rb|c\r|"); // carriage returns inside the text
    assert_text("\n", 1, "|");
    assert_text("\xEF\xBB\xBFone\n", 7, "one|");
}

static void test_several_files(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    char *paths[] = {bel_test_file(folder, "b.txt", "b1\nb2\n", 6),
                     bel_test_file(folder, "empty.txt", "", 0), bel_path_join(folder, "a.txt.gz")};
    gzFile packed = gzopen(paths[2], "wb");
    assert_int_equal(gzputs(packed, "a1\na2"), 5);
    gzclose(packed);
    assert_lines((const char *const *)paths, 3, "b1|b2|a1|a2|");
    for (int i = 0; i < 3; i++)
        bel_free(paths[i]);
}

// Any line separately, and its origin: file and line number, as editors count.
static void test_any_line_alone(void **state)
{
    (void)state;
    char *paths[] = {bel_test_file(bel_test_own_folder(), "a.txt", "0\n11\n222\n", 9),
                     bel_test_file(bel_test_own_folder(), "b.txt", "3333\n44444\n", 11)};
    static const char *const places[] = {"a.txt:1", "a.txt:2", "a.txt:3", "b.txt:1", "b.txt:2"};
    seen lines = {0};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lines_of((const char *const *)paths, 2, &lines, 1), &input));
    bel_batch *batch = bel_batch_create(input);
    for (int64_t i = 0; i < 10; i++) {
        int64_t block = i * 3 % 5, length; // 0 3 1 4 2 …
        assert_int_equal(read_ids(input, batch, block, &length), 1);
        assert_int_equal(length, block + 1);
        assert_non_null(strstr(lines.origin, places[block]));
    }
    bel_str_deinit(&lines.text);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(paths[0]);
    bel_free(paths[1]);
}

static void test_errors(void **state)
{
    (void)state;
    seen lines = {0};
    char *path = bel_test_file(bel_test_own_folder(), "empty.txt", "", 0);
    const char *const paths[] = {path};
    BEL_ASSERT_FAILS(open_failing(lines_of(paths, 1, &lines, 1)), BEL_DATA_LOSS,
                     "expected lines of text, got none");
    BEL_ASSERT_FAILS(open_failing(lines_of(paths, 0, &lines, 1)), BEL_INVALID_ARGUMENT,
                     "text: expected at least one path");
    const char *const none[] = {NULL};
    BEL_ASSERT_FAILS(open_failing(lines_of(none, 1, &lines, 1)), BEL_INVALID_ARGUMENT,
                     "text: path 0 is NULL");
    unlink(path);
    BEL_ASSERT_FAILS(open_failing(lines_of(paths, 1, &lines, 1)), BEL_NOT_FOUND, "empty.txt");
    bel_free(path);

    path = bel_test_file(bel_test_own_folder(), "a.txt", "one\ntwo\n", 8);
    bel_dataset *dataset = bel_dataset_from_text((const char *const[]){path}, 1);
    bel_dataset_batch(dataset, 1); // no map turned the text into numbers
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "field \"text\" is text");

    const char *const shrinking[] = {path};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lines_of(shrinking, 1, &lines, 1), &input));
    bel_batch *batch = bel_batch_create(input);
    assert_int_equal(truncate(path, 3), 0);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS,
                     "a.txt: it had 8 bytes when it was opened, and has 3 now");
    bel_str_deinit(&lines.text);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

static void test_a_file_that_has_gone(void **state)
{
    (void)state;
    char *path = bel_test_file(bel_test_own_folder(), "a.txt", "one\ntwo\n", 8);
    seen lines = {0};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lines_of((const char *const[]){path}, 1, &lines, 1), &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    unlink(path);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS,
                     "a.txt: it was removed after it was opened");
    bel_free(bel_test_file(bel_test_own_folder(), "a.txt", "", 0)); // another file of that name
    BEL_ASSERT_OK(bel_input_read(input, 1, batch));
    bel_str_deinit(&lines.text);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

// The handler of a bus error can look up the file of the address.
static void test_the_file_of_an_address(void **state)
{
    (void)state;
    char *path = bel_test_file(bel_test_own_folder(), "a.txt", "one\n", 4);
    bel_file_view view;
    assert_null(bel_file_view_at(path));
    BEL_ASSERT_OK(bel_file_view_open(path, &view));
    assert_string_equal(bel_file_view_at(view.data), path);
    assert_string_equal(bel_file_view_at(view.data + 3), path);
    const char *start = view.data;
    assert_null(bel_file_view_at(start + 4));
    bel_file_view_close(&view);
    assert_null(bel_file_view_at(start));
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_what_a_line_is),
        BEL_TEST_IN_FOLDER(test_several_files),
        BEL_TEST_IN_FOLDER(test_any_line_alone),
        BEL_TEST_IN_FOLDER(test_errors),
        BEL_TEST_IN_FOLDER(test_a_file_that_has_gone),
        BEL_TEST_IN_FOLDER(test_the_file_of_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
