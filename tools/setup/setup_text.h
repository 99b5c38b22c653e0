// Models that learn from tokens: their tokenizer, sizes and defaults.
#ifndef BELFRY_TOOLS_SETUP_SETUP_TEXT_H
#define BELFRY_TOOLS_SETUP_SETUP_TEXT_H

#include "setup/params.h"
#include "setup/setup.h"

// Returns true for a model that reads tokens, by its name.
bool bel_is_text_model(const char *model);

// Sets setup->tokenizer (NULL: token files of an unknown one) and, for a training, the parameters
// of the model and the optimizer that no flag sets; the log names them. A master that trains writes
// the tokenizer to the model's folder. INVALID_ARGUMENT: a flag without effect on such a model;
// FAILED_PRECONDITION: the folder has another tokenizer than the checkpoint. Else errors of opening
// tokenizers and files.
// `blocks`: batches of a step.
bel_status *bel_setup_text(const bel_options *options, bel_params *params, int64_t blocks,
                           bel_setup *setup) BEL_MUST_USE;

// Sets the variables that a warm start reads, unless a flag does: a classification of texts that
// begins with a training on hidden tokens takes its body only, which the log says. *out_patterns
// stays as it is otherwise.
bel_status *bel_setup_text_start(const bel_options *options, const bel_setup *setup,
                                 const char *const **out_patterns, int *out_count) BEL_MUST_USE;

// Sets the part of setup->input that such a model reads, by the parameters. DATA_LOSS: the
// checkpoint lacks one.
bel_status *bel_setup_text_input(const bel_params *params, bel_setup *setup) BEL_MUST_USE;

// Makes the tokenizer of a name (bel_tokenizer_open), or of the characters of these files with the
// name "chars". `key`: member of JSONL; NULL: the files are texts.
bel_status *bel_make_tokenizer(const char *name, const char *const *paths, int path_count,
                               const char *key, bel_tokenizer **out_tokenizer) BEL_MUST_USE;

#endif
