// Table of the flags of every verb.
#ifndef BELFRY_TOOLS_COMMAND_FLAGS_H
#define BELFRY_TOOLS_COMMAND_FLAGS_H

#include "base/options.h"

// Bits of bel_option.uses: the verbs that accept a flag.
enum {
    BEL_VERB_TRAIN_AND_EVALUATE = 1 << 0,
    BEL_VERB_TRAIN = 1 << 1,
    BEL_VERB_EVALUATE = 1 << 2,
    BEL_VERB_PREDICT = 1 << 3,
    BEL_VERB_INSPECT = 1 << 4,
    BEL_VERB_DOCTOR = 1 << 5,
    BEL_VERB_VERSION = 1 << 6,
    BEL_VERB_LOCAL_TRAIN = 1 << 7,
    BEL_VERB_JOBS_SUBMIT = 1 << 8,
    BEL_VERB_JOBS_LIST = 1 << 9,
    BEL_VERB_JOBS_DESCRIBE = 1 << 10,
    BEL_VERB_JOBS_CANCEL = 1 << 11,
    BEL_VERB_JOBS_LOGS = 1 << 12,
    BEL_VERB_JOBS_TOP = 1 << 13,
    BEL_VERB_SUPERVISE = 1 << 14,
    BEL_VERB_JOBS_SCALE = 1 << 15,
    BEL_VERB_GRAPH = 1 << 16,
    BEL_VERB_JOBS_REMOVE = 1 << 17,
    BEL_VERB_NEW = 1 << 18,
    BEL_VERB_EXPERIMENT = 1 << 19,
    BEL_VERB_LOCAL_RANKS = 1 << 20,
    BEL_VERB_CARRY = 1 << 21,
    BEL_VERB_JOBS_RESUME = 1 << 22,
    BEL_VERB_RANK = 1 << 24,
    BEL_VERB_CERTS = 1 << 23,
    BEL_VERB_COLUMNS = 1 << 26,
    BEL_VERB_SHELL = 1 << 25, // completion, complete, manual
    BEL_VERB_CROSS_VALIDATE = 1 << 27,
    BEL_VERB_TUNE = 1 << 28,
    BEL_VERB_BENCH = 1 << 29,
    BEL_VERB_EXPORT = 1 << 30,
};

// Returns all flags at their defaults, for the verb of that bit. Free with bel_options_destroy.
bel_options *bel_flags_create(unsigned verb);

// Flags that -h shows; NULL at the end. No verb has more than 30 of them.
extern const char *const bel_common_flags[];

// Other tools' words for flags; no word in the last.
extern const bel_option_word bel_flag_words[];

// Returns the name of flag `index` of a help text's group; NULL after the last.
const char *bel_flags_in_group(const char *group, size_t index);

#define BEL_FLAG_GROUP_MODEL "Model"
#define BEL_FLAG_GROUP_OPTIMIZER "Optimizer"
#define BEL_FLAG_GROUP_DATA "Data"
#define BEL_FLAG_GROUP_PACKAGE "Package"

// Verbs that run a model.
#define BEL_VERBS_RUNNING                                                                          \
    (BEL_VERB_TRAIN_AND_EVALUATE | BEL_VERB_TRAIN | BEL_VERB_GRAPH | BEL_VERB_EVALUATE |           \
     BEL_VERB_PREDICT | BEL_VERB_CROSS_VALIDATE | BEL_VERB_TUNE)

#endif
