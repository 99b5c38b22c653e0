// Verb local ranks: runs a user's program as several processes on this machine, which connect by
// the calls of belfry/ddl.h.
#include "base/alloc.h"
#include "base/program.h"
#include "command/verbs.h"
#include "launch/supervise/ranks.h"

// Runs the program; `words` ends with NULL.
static bel_status *local_ranks_run(const char *const *words, size_t count, int rank_count,
                                   int *out_exit_code)
{
    char *path, **arguments;
    BEL_TRY(bel_program_find(words[0], &path));
    arguments = bel_xcalloc(count + 1, sizeof *arguments);
    for (size_t i = 0; i < count; i++)
        arguments[i] = bel_xstrdup(words[i]);
    bel_ranks_config config = {.program = path, .arguments = arguments, .count = rank_count};
    bel_ranks_result result = {0};
    bel_status *status = bel_ranks_run(&config, &result);
    *out_exit_code = result.exit_code;
    if (status == NULL && result.message != NULL)
        status = BEL_ERR(BEL_ABORTED, "%s", result.message);
    bel_free(result.message);
    for (size_t i = 0; i < count; i++)
        bel_free(arguments[i]);
    bel_free(arguments);
    bel_free(path);
    return status;
}

bel_status *bel_verb_local_ranks(const bel_options *options, int *out_exit_code)
{
    size_t count;
    const char *const *words = bel_options_arguments(options, &count);
    if (bel_options_own_argument_count(options) > 0 || count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a program after --, got %s",
                       count == 0 ? "nothing" : words[0]);
    }
    return local_ranks_run(words, count, (int)bel_options_int(options, "rank_count"),
                           out_exit_code);
}
