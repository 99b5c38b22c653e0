// Verb graph: prints the instructions of a training step, in order, with memory and times. It
// accepts the flags of training, so you can inspect a command by replacing its verb. Nothing is
// written to --model_dir, which need not exist. --passes lists the enabled passes by the passes'
// names, so a new pass needs no change here.
#include <string.h>

#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "passes/passes.h"
#include "setup/setup.h"
#include "trainable/graph_dump.h"

// Parses `--passes`: the enabled passes, "all" or "none".
static bel_status *read_passes(const bel_options *options, unsigned *out_off)
{
    size_t count;
    const char *const *words = bel_options_list(options, "passes", &count);
    const char *names[BEL_PASS_COUNT + 2] = {"all", "none"};
    for (int p = 0; p < BEL_PASS_COUNT; p++)
        names[2 + p] = bel_pass_name((bel_pass)p);
    *out_off = BEL_PASSES_ALL;
    for (size_t i = 0; i < count; i++) {
        int found = 0;
        while (found < BEL_PASS_COUNT + 2 && strcmp(words[i], names[found]) != 0)
            found++;
        if (found == BEL_PASS_COUNT + 2) {
            int nearest = bel_nearest_name(words[i], names, BEL_PASS_COUNT + 2);
            return BEL_ERR(BEL_INVALID_ARGUMENT, "passes: unknown pass \"%s\"%s%s", words[i],
                           nearest < 0 ? "" : "; did you mean ", nearest < 0 ? "" : names[nearest]);
        }
        if (found == 0) *out_off = 0;
        if (found >= 2) *out_off &= ~(1u << (found - 2));
    }
    return NULL;
}

bel_status *bel_verb_graph(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    bel_graph_dump_options explain = {.measure = bel_options_bool(options, "cost"),
                                      .dump = bel_options_bool(options, "dump")};
    BEL_TRY(read_passes(options, &explain.passes_off));
    bel_setup *setup;
    BEL_TRY(bel_setup_for_looking(options, &setup));
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = setup->input_fn, .input_user = setup->input_user};
    bel_str text = {0};
    bel_status *status = bel_estimator_dump_graph(setup->estimator, &train, &explain, &text);
    if (status == NULL) status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_setup_destroy(setup);
    return status;
}
