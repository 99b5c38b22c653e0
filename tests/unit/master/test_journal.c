// Journal: lines written and read, and an unfinished line.
#include "base/alloc.h"
#include "base/file.h"
#include "master/backend/journal.h"
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
    static const int two[] = {1, 2}, three[] = {2, 0, 1}, hosts[] = {2, 1};
    char *folder = bel_test_folder();
    assert_int_equal(newest(folder), 0);
    const bel_journal_line lines[] = {{.event = "generation",
                                       .generation = 1,
                                       .text = "first",
                                       .fan_in = 32,
                                       .hosts = hosts,
                                       .host_count = 2,
                                       .replicas = two,
                                       .worker_count = 2},
                                      {.event = "generation",
                                       .generation = 3,
                                       .step = 100,
                                       .text = "a \"quoted\" reason",
                                       .replicas = three,
                                       .worker_count = 3},
                                      {.event = "end", .generation = 2, .step = 100, .text = ""}};
    for (int i = 0; i < 3; i++)
        BEL_ASSERT_OK(bel_journal_write(folder, &lines[i]));
    assert_int_equal(newest(folder), 3);
    int assignment[4] = {9, 9, 9, 9}, runs[4] = {9, 9, 9, 9}, fan_in = 9;
    assert_false(bel_journal_assignment(folder, 2, 4, assignment, &fan_in,
                                        runs)); // its line has no assignment
    assert_false(bel_journal_assignment(folder, 7, 4, assignment, &fan_in, runs));
    assert_true(assignment[0] == 9 && runs[0] == 9 && fan_in == 9);
    assert_true(bel_journal_assignment(folder, 0, 4, assignment, &fan_in, runs));
    assert_true(assignment[0] == 2 && assignment[1] == 0 && assignment[2] == 1 &&
                assignment[3] == 0 && fan_in == 0 && runs[0] == 0);
    assert_true(bel_journal_assignment(folder, 1, 4, assignment, &fan_in, runs));
    assert_true(assignment[0] == 1 && assignment[1] == 2 && assignment[2] == 0 &&
                assignment[3] == 0 && fan_in == 32 && runs[0] == 2 && runs[1] == 1 && runs[2] == 0);
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
    const bel_journal_line next = {.event = "generation", .generation = 6, .text = ""};
    BEL_ASSERT_OK(bel_journal_write(folder, &next)); // starts a new line
    assert_int_equal(newest(folder), 6);
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void test_no_folder(void **state)
{
    (void)state;
    const bel_journal_line line = {.event = "end", .generation = 1, .text = ""};
    BEL_ASSERT_FAILS(bel_journal_write("/no/such", &line), BEL_NOT_FOUND, "/no/such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_generations),
                                       cmocka_unit_test(test_unfinished_line),
                                       cmocka_unit_test(test_no_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
