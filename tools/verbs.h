// The verbs of the command. Each is one file; belfry.c finds and calls them.
#ifndef BELFRY_TOOLS_VERBS_H
#define BELFRY_TOOLS_VERBS_H

#include "base/options.h"

// Does what the verb says. Results go to stdout, the log to stderr. On success *out_exit_code is
// the process's exit code (0 unless set); on failure the status decides it, unless it is set.
typedef bel_status *bel_verb_fn(const bel_options *options, int *out_exit_code);

bel_verb_fn bel_verb_train; // train_and_evaluate, and train
bel_verb_fn bel_verb_evaluate;
bel_verb_fn bel_verb_predict;
bel_verb_fn bel_verb_inspect;
bel_verb_fn bel_verb_doctor;
bel_verb_fn bel_verb_version;
bel_verb_fn bel_verb_local_train;

#endif
