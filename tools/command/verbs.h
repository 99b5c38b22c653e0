// Verbs of the command. Each has one file; belfry.c finds and calls them.
#ifndef BELFRY_TOOLS_COMMAND_VERBS_H
#define BELFRY_TOOLS_COMMAND_VERBS_H

#include "base/options.h"

// Runs the verb. Results go to stdout, the log to stderr. *out_exit_code is the process's exit
// code; if it stays 0, a failure's status determines the code.
typedef bel_status *bel_verb_fn(const bel_options *options, int *out_exit_code);

bel_verb_fn bel_verb_train; // train_and_evaluate, and train
bel_verb_fn bel_verb_evaluate;
bel_verb_fn bel_verb_predict;
bel_verb_fn bel_verb_export;
bel_verb_fn bel_verb_generate;
bel_verb_fn bel_verb_serve;
bel_verb_fn bel_verb_tokens_train;
bel_verb_fn bel_verb_tokens_encode;
bel_verb_fn bel_verb_tokens_decode;
bel_verb_fn bel_verb_inspect;
bel_verb_fn bel_verb_bisect;
bel_verb_fn bel_verb_bench;
bel_verb_fn bel_verb_columns;
bel_verb_fn bel_verb_cross_validate;
bel_verb_fn bel_verb_tune;
bel_verb_fn bel_verb_graph;
bel_verb_fn bel_verb_new;
bel_verb_fn bel_verb_doctor;
bel_verb_fn bel_verb_certs;
bel_verb_fn bel_verb_version;
bel_verb_fn bel_verb_experiment_batch_norm;

bel_verb_fn bel_verb_plan;
bel_verb_fn bel_verb_local_train;
bel_verb_fn bel_verb_local_ranks;
bel_verb_fn bel_verb_jobs_submit;
bel_verb_fn bel_verb_jobs_list;
bel_verb_fn bel_verb_jobs_describe;
bel_verb_fn bel_verb_jobs_cancel;
bel_verb_fn bel_verb_jobs_remove;
bel_verb_fn bel_verb_jobs_scale;
bel_verb_fn bel_verb_jobs_stream_logs;
bel_verb_fn bel_verb_jobs_top;
bel_verb_fn bel_verb_supervise; // supervisor process of a submitted job
bel_verb_fn bel_verb_carry;     // a process of a job on this host, for a supervisor on another
bel_verb_fn bel_verb_jobs_resume;
bel_verb_fn bel_verb_rank;

bel_verb_fn bel_verb_completion;
bel_verb_fn bel_verb_complete; // called by a shell
bel_verb_fn bel_verb_manual;

typedef struct bel_verb {
    const char *name; // one word or more
    uint64_t use;     // verb bit of its flags (flags.h)
    const char *arguments;
    const char *summary; // NULL: internal, and not in the list
    bel_verb_fn *run;
    bool takes_arguments; // other than flags
} bel_verb;

const bel_verb *bel_verb_at(size_t index); // NULL after the last

// Finds the verb whose name the first words are, and their number; NULL: no such verb.
const bel_verb *bel_verb_find(int count, const char *const *words, int *out_word_count);

// Runs a verb as if typed: its words, then its flags.
bel_status *bel_command_run(int count, char *const *words, int *out_exit_code) BEL_MUST_USE;

// Returns true if --help or -h is given.
bool bel_command_wants_help(const bel_options *options);

// Parses a verb's flags and their --config_file, and sets up the log accordingly, also on failure.
bel_status *bel_command_parse(bel_options *options, int count, char *const *arguments) BEL_MUST_USE;

#endif
