// Verb graph: what a training step computes, in what order and memory, and where its time goes.
#include "base/str.h"
#include "job/explain.h"
#include "results.h"
#include "setup.h"
#include "verbs.h"

bel_status *bel_verb_graph(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    bel_setup *setup;
    BEL_TRY(bel_setup_for_looking(options, &setup));
    const bel_train_spec train = {.input_fn = bel_flag_input_open, .input_user = &setup->input};
    bel_str text = {0};
    bel_status *status =
        bel_job_explain(setup->estimator, &train, bel_options_bool(options, "cost"), &text);
    if (status == NULL) status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_setup_destroy(setup);
    return status;
}
