// Table of the flags of every verb.
#ifndef BELFRY_TOOLS_COMMAND_FLAGS_H
#define BELFRY_TOOLS_COMMAND_FLAGS_H

#include "base/options.h"

// Bits of bel_option.uses: the verbs that accept a flag.
#define BEL_VERB_TRAIN_AND_EVALUATE (UINT64_C(1) << 0)
#define BEL_VERB_TRAIN (UINT64_C(1) << 1)
#define BEL_VERB_EVALUATE (UINT64_C(1) << 2)
#define BEL_VERB_PREDICT (UINT64_C(1) << 3)
#define BEL_VERB_INSPECT (UINT64_C(1) << 4)
#define BEL_VERB_DOCTOR (UINT64_C(1) << 5)
#define BEL_VERB_VERSION (UINT64_C(1) << 6)
#define BEL_VERB_LOCAL_TRAIN (UINT64_C(1) << 7)
#define BEL_VERB_JOBS_SUBMIT (UINT64_C(1) << 8)
#define BEL_VERB_JOBS_LIST (UINT64_C(1) << 9)
#define BEL_VERB_JOBS_DESCRIBE (UINT64_C(1) << 10)
#define BEL_VERB_JOBS_CANCEL (UINT64_C(1) << 11)
#define BEL_VERB_JOBS_LOGS (UINT64_C(1) << 12)
#define BEL_VERB_JOBS_TOP (UINT64_C(1) << 13)
#define BEL_VERB_SUPERVISE (UINT64_C(1) << 14)
#define BEL_VERB_JOBS_SCALE (UINT64_C(1) << 15)
#define BEL_VERB_GRAPH (UINT64_C(1) << 16)
#define BEL_VERB_JOBS_REMOVE (UINT64_C(1) << 17)
#define BEL_VERB_NEW (UINT64_C(1) << 18)
#define BEL_VERB_EXPERIMENT (UINT64_C(1) << 19)
#define BEL_VERB_LOCAL_RANKS (UINT64_C(1) << 20)
#define BEL_VERB_CARRY (UINT64_C(1) << 21)
#define BEL_VERB_JOBS_RESUME (UINT64_C(1) << 22)
#define BEL_VERB_CERTS (UINT64_C(1) << 23)
#define BEL_VERB_RANK (UINT64_C(1) << 24)
#define BEL_VERB_SHELL (UINT64_C(1) << 25)
#define BEL_VERB_COLUMNS (UINT64_C(1) << 26)
#define BEL_VERB_CROSS_VALIDATE (UINT64_C(1) << 27)
#define BEL_VERB_TUNE (UINT64_C(1) << 28)
#define BEL_VERB_BENCH (UINT64_C(1) << 29)
#define BEL_VERB_EXPORT (UINT64_C(1) << 30)
#define BEL_VERB_TOKENS_TRAIN (UINT64_C(1) << 31)
#define BEL_VERB_TOKENS_ENCODE (UINT64_C(1) << 32)
#define BEL_VERB_TOKENS_DECODE (UINT64_C(1) << 33)
#define BEL_VERB_GENERATE (UINT64_C(1) << 34)
#define BEL_VERB_SERVE (UINT64_C(1) << 35)
#define BEL_VERB_PLAN (UINT64_C(1) << 36)
#define BEL_VERB_BISECT (UINT64_C(1) << 37)

// Returns all flags at their defaults, for the verb of that bit. Free with bel_options_destroy.
bel_options *bel_flags_create(uint64_t verb);

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
