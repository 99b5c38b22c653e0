// Verb evaluate: loss and metrics of a checkpoint. The checkpoint is chosen once, in the setup,
// and named from then on: where a job saves meanwhile, model, parameters and values are still
// those of one checkpoint.
#include "results.h"
#include "setup.h"
#include "verbs.h"

bel_status *bel_verb_evaluate(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // 0
    bel_setup *setup;
    BEL_TRY(bel_setup_for_reading(options, &setup));
    bel_eval_spec spec = {.input_fn = setup->input_fn,
                          .input_user = setup->input_user,
                          .steps = bel_options_int(options, "eval_steps")};
    bel_result result = {0};
    bel_status *status = bel_evaluate(setup->estimator, &spec, setup->checkpoint, &result);
    bel_setup_destroy(setup);
    if (status != NULL) return status;
    return bel_results_print(&result, false, true, bel_options_bool(options, "json"));
}
