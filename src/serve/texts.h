// Texts as requests send them, whose tokens are two inputs of a model (a column of kind tokens).
#ifndef BELFRY_SERVE_TEXTS_H
#define BELFRY_SERVE_TEXTS_H

#include "serve/served.h"

// Adds the input for texts to a version whose columns and inputs are known, if its column has
// another name than the model's inputs. `folder` has the tokenizer; `digest` NULL: the training had
// none, or an earlier version wrote the export. Without the tokenizer there is no such input.
// FAILED_PRECONDITION: another tokenizer is there. DATA_LOSS: the inputs do not fit the column.
bel_status *bel_texts_open(bel_served *version, const char *folder,
                           const char *digest) BEL_MUST_USE;

#endif
