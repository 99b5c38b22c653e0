// Folders of models of language as Hugging Face's transformers write and read them: config.json,
// which describes the model, and its values: model.safetensors, or several files and an index.
// docs/text.md has the two families:
//
//   GPT-2  learned positions, layer norm, GELU, biases; the names and shapes are Belfry's
//   Llama  rotary positions, RMS norm, SwiGLU, no biases; kernels are [out, in], and queries, keys
//          and values are three of them
#ifndef BELFRY_TOOLS_SETUP_HUGGINGFACE_H
#define BELFRY_TOOLS_SETUP_HUGGINGFACE_H

#include "belfry/estimator.h"
#include "belfry/tokens.h"

// Returns true for a folder with a config.json.
bool bel_is_huggingface(const char *folder);

// Settings of the model that config.json describes, as flags: "layers" "12". An unknown family has
// none.
typedef struct bel_huggingface_setting {
    const char *flag; // a literal
    char value[32];
} bel_huggingface_setting;

typedef struct bel_huggingface_settings {
    bel_huggingface_setting items[12];
    int count;
} bel_huggingface_settings;

// NOT_FOUND, DATA_LOSS: config.json is absent, or malformed (the member is named).
bel_status *bel_huggingface_read_settings(const char *folder,
                                          bel_huggingface_settings *out) BEL_MUST_USE;

// Flag number `index` of those that a folder may set; NULL after the last.
const char *bel_huggingface_flag(int index);

// A folder whose values begin a training. Bound to one thread.
typedef struct bel_huggingface bel_huggingface;

// Makes it without reading anything. The folder's name is copied.
bel_huggingface *bel_huggingface_create(const char *folder);
void bel_huggingface_destroy(bel_huggingface *model); // accepts NULL

// bel_init_fn, with a bel_huggingface as `user`. The first call opens the folder and compares
// config.json with the parameters of the estimator. FAILED_PRECONDITION: they differ (the setting
// is named), or no family has this model; DATA_LOSS, NOT_FOUND: a file is malformed or absent.
bel_status *bel_huggingface_init(void *user, const bel_estimator *estimator, const char *variable,
                                 const bel_shape *shape, float *values) BEL_MUST_USE;

// Writes config.json, model.safetensors and, with a tokenizer, tokenizer.json into an existing
// folder. `checkpoint` is that of a model "gpt"; with `averages` the moving averages are written,
// if it has them. FAILED_PRECONDITION: no family has this model (the setting is named).
bel_status *bel_huggingface_write(const bel_estimator *estimator, const char *checkpoint,
                                  bool averages, const bel_tokenizer *tokenizer,
                                  const char *folder) BEL_MUST_USE;

#endif
