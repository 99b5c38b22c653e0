// What a run of many processes needs, from the command line: shared by `local train`, `jobs submit`
// and the supervisor of a submitted job.
#ifndef BELFRY_TOOLS_DISTRIBUTE_H
#define BELFRY_TOOLS_DISTRIBUTE_H

#include "base/options.h"
#include "launch/plan.h"
#include "launch/registry.h"

// What every process of a job is started with. It is belfry with a training verb and flags, or a
// program of the user's own that calls bel_run_job (or bel_train_and_evaluate), with its arguments.
typedef struct bel_words {
    char *program; // absolute path of a program of the user's own; NULL: belfry itself
    char **items;  // the arguments, the program's name first, NULL at the end
    size_t count, capacity;
} bel_words;

// From what stands behind "--" (from argument `first` on). Where its first word begins with no
// dash it is a program, and the rest are that program's. Else they are training flags: then the
// words are train_and_evaluate, those flags, flags of output in front of "--", --model_dir from
// --job_dir unless they have one, and --package of what --package_path has built. INVALID_ARGUMENT:
// there is no such program, a flag in front of "--" that it could not be told; errors of
// bel_package_build. Says what is passed over. Deinit in any case.
bel_status *bel_words_from_flags(bel_words *words, const bel_options *options,
                                 size_t first) BEL_MUST_USE;
void bel_words_add(bel_words *words, const char *text);
void bel_words_deinit(bel_words *words);

// Builds what --package_path, or --module_name, asks for, into the model's folder. *out_path is
// NULL where neither does; free with bel_free. INVALID_ARGUMENT besides the errors of
// bel_package_build: there is no model_dir.
bel_status *bel_package_from_flags(const bel_options *options, const char *model_dir,
                                   char **out_path) BEL_MUST_USE;

// From a job's record, which has all that was said above.
void bel_words_from_record(bel_words *words, const bel_job_record *record);

// Runs the words in this process, in place of what it does: belfry's verb, or the other program,
// which finds the folder of --job_dir as its model_dir.
bel_status *bel_words_run(const bel_words *words, const bel_options *options,
                          int *out_exit_code) BEL_MUST_USE;

// The cluster of --config, or of the counts; counts that are given win. INVALID_ARGUMENT: no
// worker, or what bel_cluster_read says.
bel_status *bel_cluster_from_flags(const bel_options *options,
                                   bel_cluster **out_cluster) BEL_MUST_USE;

// The counts and limits that are given as flags, which win over a file's.
bel_cluster_changes bel_cluster_changes_from_flags(const bel_options *options);

typedef struct bel_distribution {
    bel_options *training; // the flags among the words, read and checked; the defaults for a
                           // program of the user's own, of whose settings nothing is known here
    bool asks; // for help or the settings: then the rest is NULL, and nothing is to be trained
    bel_plan *plan;
    const char *model_dir;
} bel_distribution;

// Checks the words' training flags against the cluster and makes the plan. `job_dir` is the model's
// folder where no flag among the words names it, or NULL. The cluster must outlive it.
// INVALID_ARGUMENT: a bad flag, no folder, flags that contradict the cluster.
bel_status *bel_distribution_init(bel_distribution *out_distribution, const bel_words *words,
                                  const char *job_dir, const bel_cluster *cluster) BEL_MUST_USE;
// INVALID_ARGUMENT, in front of which stands `what`: the number of workers cannot change, as they
// hold the shards, or as not all count in a step.
bel_status *bel_distribution_check_elastic(const bel_options *training, const bel_plan *plan,
                                           const char *what) BEL_MUST_USE;
void bel_distribution_deinit(bel_distribution *distribution);

#endif
