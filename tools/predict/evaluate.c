// Verb evaluate: loss and metrics of a checkpoint. The setup chooses the checkpoint once, by name.
// If a job saves another one meanwhile, model, parameters and values still come from the same
// checkpoint.
#include "command/results.h"
#include "command/verbs.h"
#include "setup/setup.h"

bel_status *bel_verb_evaluate(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    bel_setup *setup;
    BEL_TRY(bel_setup_for_reading(options, &setup));
    bel_eval_spec spec = {.size = sizeof spec,
                          .input_fn = setup->input_fn,
                          .input_user = setup->input_user,
                          .steps = bel_options_int(options, "eval_steps")};
    bel_result result = {.size = sizeof result};
    bel_status *status = bel_evaluate(setup->estimator, &spec, setup->checkpoint, &result);
    bel_setup_destroy(setup);
    if (status != NULL) return status;
    return bel_results_print(&result, false, true, bel_options_bool(options, "json"));
}
