// Training input that only the workers see, as one of them describes it. It takes the place of the
// opened dataset in a master that does not train: a model is built from it, and nothing is read.
#ifndef BELFRY_MODEL_REMOTE_INPUT_H
#define BELFRY_MODEL_REMOTE_INPUT_H

#include "belfry/columns.h"
#include "input/batch/input.h"
#include "model/settings.h"

typedef struct bel_remote_input bel_remote_input;

// A worker's description of its input. Borrowed.
typedef struct bel_remote_input_words {
    const bel_settings *settings; // as bel_settings_gather gives them
    const char *file;             // as bel_input_file; "": no file
    int64_t epoch_records, records;
} bel_remote_input_words;

// DATA_LOSS: malformed; `source` names the worker.
bel_status *bel_remote_input_create(const bel_remote_input_words *words, const char *source,
                                    bel_remote_input **out_remote) BEL_MUST_USE;
void bel_remote_input_destroy(bel_remote_input *remote); // accepts NULL

// Description of its columns, as text; NULL: none.
const char *bel_remote_input_table(const bel_remote_input *remote);

// Opens the input: bel_input_use.facts has its limits. `remote` must outlive it.
bel_status *bel_remote_input_open(const bel_remote_input *remote,
                                  bel_input **out_input) BEL_MUST_USE;

#endif
