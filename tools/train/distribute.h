// Runs of several processes, made from the command line: shared by `local train`, `jobs submit` and
// the supervisor of a submitted job.
#ifndef BELFRY_TOOLS_TRAIN_DISTRIBUTE_H
#define BELFRY_TOOLS_TRAIN_DISTRIBUTE_H

#include "base/options.h"
#include "launch/cluster/plan.h"
#include "launch/engine/registry.h"
#include "launch/folder/scale.h"

// Command line of every process of a job: belfry with a training verb and flags, or the user's
// program, which calls bel_run_job (or bel_train_and_evaluate), with its arguments.
typedef struct bel_words {
    char *program; // absolute path of the user's program; NULL: belfry itself
    char **items;  // arguments, beginning with the program's name; NULL at the end
    size_t count, capacity;
} bel_words;

// Makes the words from the arguments after "--", from `first` on. If the first one has no leading
// dash, it is a program, and the rest are the program's arguments. If --module_name names a module
// of Python, FOLDER/NAME.py, that is the program, with all arguments. Otherwise they are training
// flags. Then the words are train_and_evaluate, those flags, output flags from before "--",
// --model_dir from --job_dir unless they have one, and --package with the build of --package_path.
// Ignored flags are logged. INVALID_ARGUMENT: no such program, or a flag before "--" that the
// program could not receive; errors of bel_package_build. Call bel_words_deinit in any case.
bel_status *bel_words_from_flags(bel_words *words, const bel_options *options,
                                 size_t first) BEL_MUST_USE;
void bel_words_add(bel_words *words, const char *text);
void bel_words_deinit(bel_words *words);

// Builds the package of --package_path or --module_name in the model's folder. *out_path is NULL if
// neither is given; free it with bel_free. INVALID_ARGUMENT besides the errors of
// bel_package_build: no model_dir.
bel_status *bel_package_from_flags(const bel_options *options, const char *model_dir,
                                   char **out_path) BEL_MUST_USE;

// Makes the words from a job's record, which has all of the above.
void bel_words_from_record(bel_words *words, const bel_job_record *record);

// Replaces this process with the words' program: belfry's verb, or the user's program, which finds
// the folder of --job_dir as its model_dir.
bel_status *bel_words_run(const bel_words *words, const bel_options *options,
                          int *out_exit_code) BEL_MUST_USE;

// Makes the cluster from --config or the counts; given counts win over the file. INVALID_ARGUMENT:
// no worker; errors of bel_cluster_read.
bel_status *bel_cluster_from_flags(const bel_options *options,
                                   bel_cluster **out_cluster) BEL_MUST_USE;

// Returns the counts and limits given as flags, which win over a file's.
bel_cluster_changes bel_cluster_changes_from_flags(const bel_options *options);

typedef struct bel_distribution {
    bel_options *training; // flags among the words, parsed and checked; defaults for the
                           // user's program, whose settings are unknown here
    bool asks; // they ask for help or the settings: the rest is NULL, and no training runs
    bel_plan *plan;
    const char *model_dir;
} bel_distribution;

// Checks the words' training flags against the cluster and makes the plan. `job_dir`: the model's
// folder if no flag among the words names it, or NULL. The cluster must outlive the result.
// INVALID_ARGUMENT: a bad flag, no folder, flags that contradict the cluster.
bel_status *bel_distribution_init(bel_distribution *out_distribution, const bel_words *words,
                                  const char *job_dir, const bel_cluster *cluster) BEL_MUST_USE;
// INVALID_ARGUMENT, with a message that begins with `what`: the number of workers cannot change,
// because they hold the shards, or because not all count in a step.
bel_status *bel_distribution_check_elastic(const bel_options *training, const bel_plan *plan,
                                           const char *what) BEL_MUST_USE;
void bel_distribution_deinit(bel_distribution *distribution);

// Starts a job. *scaled has the requests that led to this start, all 0 at the first; servers above
// 0 afterwards: it is to be started again with them.
typedef bel_status *bel_distribution_start(void *context, const bel_distribution *distribution,
                                           bel_scale *scaled);

// Makes the job's plan and starts it, and again whenever another number of parameter servers is
// wanted. If that number is not possible, logs why, and the job continues with the former.
bel_status *bel_distribution_run(const bel_words *words, const char *job_dir, bel_cluster *cluster,
                                 bel_distribution_start *start, void *context) BEL_MUST_USE;

// Changes the number of parameter servers and checks it with the training flags, as a start does.
// INVALID_ARGUMENT: the cluster's rules or a flag forbid it; then the number is unchanged.
bel_status *bel_distribution_scale(const bel_words *words, const char *job_dir,
                                   bel_cluster *cluster, int servers) BEL_MUST_USE;

#endif
