// Version of a served model: its predictors and its signature.
//
// Slot i of the server uses the predictors of slot i, so a run takes no lock. There is one for each
// number of requests in a run, 1, 2, 4 … All predictors of a version share the pages of its
// weights, which stay mapped even if the folder is removed.
#ifndef BELFRY_SERVE_SERVED_H
#define BELFRY_SERVE_SERVED_H

#include <stdatomic.h>

#include "belfry/predictor.h"
#include "belfry/tokens.h"
#include "columns/description.h"
#include "export/live.h"
#include "serve/counts.h"

typedef struct bel_served_input {
    bel_port port;
    const bel_column *column; // whose cells can be sent; NULL: only elements
    _Atomic uint64_t unknown; // cells with a value that the training did not distinguish
} bel_served_input;

// An input for texts, whose tokens are two inputs of the model (texts.h).
typedef struct bel_served_text {
    int input; // input_count; -1: none
    int tokens, lengths;
    bel_tokenizer *tokenizer;
} bel_served_text;

// Immutable after loading, except for `users`, the counts and `*left_out`.
typedef struct bel_served {
    int64_t number;
    bel_live *live;              // the checkpoint; NULL: an export
    int slot_count, level_count; // a predictor of level l runs 1 << l requests
    bel_predictor **predictors;  // by slot, then level
    bel_served_input *inputs;    // the model's, then the one that takes texts
    int input_count, output_count;
    bel_served_text text;
    bel_columns *columns; // NULL: no table
    // Output whose rows are probabilities of the table's classes, from which the answer "class" is
    // made; -1: none.
    int class_output;
    double threshold;

    int users;         // requests that hold it, under the mutex of its model (models.c)
    bel_counts counts; // its inferences

    atomic_bool *left_out; // the log has named a column of a request that the model does not read
} bel_served;

// The name of the answer that has a class's name.
#define BEL_CLASS_OUTPUT "class"

typedef struct bel_served_options {
    int64_t number; // the version's; below 0: the step that the file names, else 1
    int slot_count;
    int max_batch;  // most examples of a run of several requests; 1: none has several
    bel_live *live; // a checkpoint to serve, which the version retains; NULL: an export
} bel_served_options;

// Loads a checkpoint, an export, or an ONNX file, and runs each predictor once with requests of one
// example, so that the first request finds programs and memory ready. A run that fails on zeros is
// no error. If random examples have other bits in a run of several requests than in separate runs,
// level_count is 1, which is logged. Errors of bel_predictor_load; DATA_LOSS: the signature does
// not fit the model.
bel_status *bel_served_load(const char *path, const bel_served_options *options,
                            bel_served **out_version) BEL_MUST_USE;

bel_predictor *bel_served_predictor(const bel_served *version, int slot, int level);

void bel_served_destroy(bel_served *version); // accepts NULL

// Returns the name of a class of the table for a row of `class_output`.
const char *bel_served_class(const bel_served *version, const bel_tensor *row);

#endif
