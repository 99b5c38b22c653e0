// Shared by the two parts of huggingface.h: config.json (huggingface_config.c) and the values
// (huggingface.c).
#ifndef BELFRY_TOOLS_SETUP_HUGGINGFACE_INNER_H
#define BELFRY_TOOLS_SETUP_HUGGINGFACE_INNER_H

#include "base/json.h"
#include "setup/huggingface.h"

#define BEL_HUGGINGFACE_CONFIG "config.json"

typedef struct bel_huggingface_form {
    bool llama;
    int64_t layers, heads, kv_heads, width, context, vocabulary;
    int64_t hidden; // Llama: width between the two kernels of a feed-forward part
    bool tied;
} bel_huggingface_form;

// Reads the parameters of a model "gpt". FAILED_PRECONDITION: no family has this model.
bel_status *bel_huggingface_read_form(const bel_estimator *estimator,
                                      bel_huggingface_form *out_form) BEL_MUST_USE;

// Writes config.json of the form into a folder. `tokenizer` names the end token; may be NULL.
bel_status *bel_huggingface_write_config(const bel_huggingface_form *form,
                                         const bel_tokenizer *tokenizer,
                                         const char *folder) BEL_MUST_USE;

// FAILED_PRECONDITION: config.json in the folder describes another model (the member is named).
bel_status *bel_huggingface_check_config(const bel_huggingface_form *form,
                                         const char *folder) BEL_MUST_USE;

// Reads a file of JSON. Destroy *out_json.
bel_status *bel_huggingface_parse(const char *path, bel_json **out_json) BEL_MUST_USE;

#endif
