// The journal: lines there and back, a line that was not finished.
#include "base/alloc.h"
#include "base/file.h"
#include "master/journal.h"
#include "support/bel_test.h"

static uint32_t newest(const char *folder)
{
    uint32_t generation = 77;
    BEL_ASSERT_OK(bel_journal_generation(folder, &generation));
    return generation;
}

static void test_generations(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    assert_int_equal(newest(folder), 0);
    BEL_ASSERT_OK(bel_journal_write(folder, "generation", 1, 0, "first"));
    BEL_ASSERT_OK(bel_journal_write(folder, "generation", 3, 100, "a \"quoted\" reason"));
    BEL_ASSERT_OK(bel_journal_write(folder, "end", 2, 100, ""));
    assert_int_equal(newest(folder), 3);
    bel_test_remove_folder(folder);
}

static void test_unfinished_line(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *path = bel_path_join(folder, BEL_JOURNAL_FILE);
    static const char text[] = "{\"event\":\"generation\",\"generation\":5}\n"
                               "{\"event\":\"generation\",\"generation\":-2}\n"
                               "garbage\n\n{\"event\":\"generation\",\"gener";
    BEL_ASSERT_OK(bel_file_write_atomic(path, text, sizeof text - 1));
    assert_int_equal(newest(folder), 5);
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void test_no_folder(void **state)
{
    (void)state;
    BEL_ASSERT_FAILS(bel_journal_write("/no/such", "end", 1, 0, ""), BEL_NOT_FOUND, "/no/such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_generations),
                                       cmocka_unit_test(test_unfinished_line),
                                       cmocka_unit_test(test_no_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
