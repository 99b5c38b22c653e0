// Groups of calls: independent neighbors may run as one job of the team. The bits are those of
// programs in which every call waits, for several models, shapes and threads.
#include "passes/passes.h"
#include "unit/runtime/test_models.h"

static void check_case(const model_case *c)
{
    const bel_program_options plain = {
        .no_groups = true, .no_reuse = true, .passes_off = BEL_PASSES_ALL};
    const bel_program_options grouped = {.threads = 1, .passes_off = BEL_PASSES_ALL};
    model *m = model_create(c);
    void *expected[MOST_OUTPUTS], *got[MOST_OUTPUTS];
    size_t sizes[MOST_OUTPUTS];
    assert_int_equal(run_model(m, c->rows, &plain, 1, 2, expected, sizes), 0);
    for (int threads = 1; threads <= 3; threads++) {
        int joined = run_model(m, c->rows, &grouped, threads, 2, got, sizes);
        if (joined != c->joined) {
            fail_msg("%s: %d calls join groups, not %d", c->name, joined, c->joined);
        }
        for (int o = 0; o < m->output_count; o++) {
            if (memcmp(expected[o], got[o], sizes[o]) != 0) {
                fail_msg("%s, %lld rows, %d threads: output %d differs", c->name,
                         (long long)c->rows, threads, o);
            }
            bel_free(got[o]);
        }
    }
    for (int o = 0; o < m->output_count; o++)
        bel_free(expected[o]);
    model_destroy(m);
}

static void test_grouped_is_plain(void **state)
{
    (void)state;
    for (int i = 0; i < MODEL_CASES; i++)
        check_case(&model_cases[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_grouped_is_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
