// A saved model, opened for use without training: a checkpoint, the input that the model is built
// for, its graph and the values of its variables. For evaluation, prediction and export.
#ifndef BELFRY_ESTIMATOR_SAVED_H
#define BELFRY_ESTIMATOR_SAVED_H

#include "checkpoint/checkpoint.h"
#include "model/model.h"
#include "predictor/forward.h"
#include "ps/table/row_layers.h"

// Before it is opened zero, except for estimator, averages, stage_memory, the fields of layers, and
// perhaps the reader. Pointers into it are borrowed.
typedef struct bel_saved {
    const bel_estimator *estimator;
    bool averages; // use averages instead of values, if the checkpoint has them
    bel_input *input;
    bel_built *built;
    bel_ckpt_reader *reader; // opened before: that checkpoint is taken
    int64_t step;            // the checkpoint's
    size_t stage_memory;     // memory for values that are read on demand; 0: all are loaded
    float **values;          // by graph variable; NULL if read on demand
    bel_staged_source *sources;
    bel_row_layers layers; // rows of tables
    // For a server: the files are checked when they are read, so those of a base that one of
    // `others` has are not. Set before it is opened.
    const bel_row_layers *const *others;
    int other_count;
} bel_saved;

// Opens the checkpoint in folder `checkpoint`; NULL: the newest. If `saved` has no input, the model
// gets that of the input function. Close it also after an error. NOT_FOUND: no checkpoint.
// Otherwise the errors of the program's functions and of reading.
bel_status *bel_saved_open(bel_saved *saved, bel_mode mode, bel_input_fn *input_fn,
                           void *input_user, const char *checkpoint) BEL_MUST_USE;

// The same in PREDICT for these features. INVALID_ARGUMENT: a feature is invalid.
bel_status *bel_saved_open_features(bel_saved *saved, const bel_feature *features, int count,
                                    const char *checkpoint) BEL_MUST_USE;

void bel_saved_close(bel_saved *saved);

bel_forward_config bel_saved_forward(bel_saved *saved);

#endif
