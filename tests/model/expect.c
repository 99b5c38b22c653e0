#include "model/expect.h"

#include <stdlib.h>

#include "support/bel_test.h"

enum { STATES_MOST = 8000000, TRACE_LINES = 6 };

// Prints the last lines of the file, or all of it.
static void print_end(FILE *file, int depth)
{
    char line[256];
    int skip = getenv("BELFRY_TRACES") != NULL ? 0 : depth + 1 - TRACE_LINES;
    rewind(file);
    for (int i = 0; fgets(line, sizeof line, file) != NULL; i++)
        if (i >= skip) printf("%s", line);
}

void bel_expect_sound(const char *what, bel_cluster_config config)
{
    bel_explore_model model = bel_cluster_model(&config);
    bel_explore_result result = bel_explore(&model, STATES_MOST, stdout);
    printf("%-58s %8lld states, %8lld steps, %4lld ends, %.2f s\n", what, (long long)result.states,
           (long long)result.steps, (long long)result.ends, result.seconds);
    assert_null(result.found);
    assert_true(result.ends > 0);
}

void bel_expect_found(bel_cluster_config config, const char *found)
{
    bel_explore_model model = bel_cluster_model(&config);
    FILE *trace = tmpfile();
    assert_non_null(trace);
    bel_explore_result result = bel_explore(&model, STATES_MOST, trace);
    printf("found after %d steps, among %lld states in %.2f s:\n", result.depth,
           (long long)result.states, result.seconds);
    print_end(trace, result.depth);
    fclose(trace);
    assert_non_null(result.found);
    assert_string_equal(result.found, found);
}
