// What features a model was trained on, as a text in its checkpoints: so that the graph of
// predictions can be built where no data are, as for an export.
#ifndef BELFRY_ESTIMATOR_FEATURE_LIST_H
#define BELFRY_ESTIMATOR_FEATURE_LIST_H

#include "base/arena.h"
#include "base/str.h"
#include "belfry/estimator.h"
#include "input/input.h"

typedef struct bel_feature_list {
    bel_feature *items;
    double *scales; // what numbers in files are multiplied by; 1: nothing
    int count;
} bel_feature_list;

// [{"name":"x","dtype":"f32","shape":[64],"scale":0.0625}]: all fields but the labels, in the
// input's order. Open dimensions are below 0; a scale of 1 is not there.
void bel_feature_list_write(const bel_input *input, bel_str *out_text);

// The same back; everything lives in `arena`. DATA_LOSS: malformed; `source` names the text.
bel_status *bel_feature_list_read(const char *text, const char *source, bel_arena *arena,
                                  bel_feature_list *out_list) BEL_MUST_USE;

#endif
