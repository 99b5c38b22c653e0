// What a run of many processes needs, from the command line: shared by `local train`, `jobs submit`
// and the supervisor of a submitted job.
#ifndef BELFRY_TOOLS_DISTRIBUTE_H
#define BELFRY_TOOLS_DISTRIBUTE_H

#include "base/options.h"
#include "launch/plan.h"

// The words that every process is started with: train_and_evaluate, what the cluster says of
// training (NULL: there is none), what stands behind "--" (from argument `first` on), flags of
// output in front of it, and --model_dir from --job_dir.
typedef struct bel_words {
    char **items; // NULL at the end
    size_t count, capacity;
    bool two_folders; // --job_dir and --model_dir were both given
} bel_words;

// INVALID_ARGUMENT: two folders.
bel_status *bel_words_check(const bel_words *words) BEL_MUST_USE;

void bel_words_add(bel_words *words, const char *text);
void bel_words_from_flags(bel_words *words, const bel_options *options, size_t first,
                          const bel_cluster *cluster);
void bel_words_deinit(bel_words *words);

// The cluster of --config, or of the counts; counts that are given win. INVALID_ARGUMENT: no
// worker, or what bel_cluster_read says.
bel_status *bel_cluster_from_flags(const bel_options *options,
                                   bel_cluster **out_cluster) BEL_MUST_USE;

typedef struct bel_distribution {
    bel_options *training; // the flags among the words, read and checked
    bool asks; // for help or the settings: then the rest is NULL, and nothing is to be trained
    bel_plan *plan;
    const char *model_dir;
} bel_distribution;

// Checks the words' training flags against the cluster and makes the plan. The cluster must
// outlive it. INVALID_ARGUMENT: a bad flag, no --model_dir, flags that contradict the cluster.
bel_status *bel_distribution_init(bel_distribution *out_distribution, const bel_words *words,
                                  const bel_cluster *cluster) BEL_MUST_USE;
// INVALID_ARGUMENT, in front of which stands `what`: the number of workers cannot change, as they
// hold the shards, or as not all count in a step.
bel_status *bel_distribution_check_elastic(const bel_options *training, const bel_plan *plan,
                                           const char *what) BEL_MUST_USE;
void bel_distribution_deinit(bel_distribution *distribution);

#endif
