// Sizes of a saved model "gpt", and the features with which it computes tokens after kept ones.
#ifndef BELFRY_TOOLS_PREDICT_GPT_FEATURES_H
#define BELFRY_TOOLS_PREDICT_GPT_FEATURES_H

#include "models/gpt.h"
#include "setup/setup.h"

typedef struct bel_gpt_sizes {
    int64_t layers, kv_heads, context, width, vocabulary; // width: of a head
    size_t kept_bytes; // all keys of a full context; as many values
} bel_gpt_sizes;

// INVALID_ARGUMENT: another model; `verb` is for the message. DATA_LOSS: the parameters have no
// valid sizes.
bel_status *bel_gpt_sizes_read(const bel_setup *setup, const char *verb,
                               bel_gpt_sizes *out_sizes) BEL_MUST_USE;

// The features of one token (BEL_GPT_POSITION), or of any number (BEL_GPT_INPUT_IDS), as
// models/gpt.h has them. Free `items` with bel_free.
typedef struct bel_gpt_features {
    bel_feature *items;
    int count;
} bel_gpt_features;
bel_gpt_features bel_gpt_features_of_step(const bel_gpt_sizes *sizes);
bel_gpt_features bel_gpt_features_of_past(const bel_gpt_sizes *sizes);

#endif
