// List of the fields that a model was trained on, as a text in its checkpoints, so that its graphs
// can be built without data, as for an export.
#ifndef BELFRY_ESTIMATOR_FEATURE_LIST_H
#define BELFRY_ESTIMATOR_FEATURE_LIST_H

#include "base/arena.h"
#include "belfry/estimator.h"
#include "input/batch/input.h"
#include "ops/op.h"

typedef struct bel_str bel_str; // base/str.h

// Features, and all fields including labels, each in the input's order.
typedef struct bel_feature_list {
    bel_feature *items;
    double *scales; // factors of numbers in files; 1: unscaled
    int count;
    bel_feature *fields;
    double *field_scales;
    bool *is_label;
    int field_count;
    bool has_labels; // false: an earlier version omitted them
} bel_feature_list;

// Writes [{"name":"x","dtype":"f32","shape":[64],"scale":0.0625,"role":"feature"},
//  {"name":"label","dtype":"i64","shape":[],"role":"label"}]: all fields in the input's order. Open
// dimensions are below 0; a scale of 1 is omitted.
void bel_feature_list_write(const bel_input *input, bel_str *out_text);

// Parses the text; everything is in `arena`. DATA_LOSS: malformed; `source` names the text.
bel_status *bel_feature_list_read(const char *text, const char *source, bel_arena *arena,
                                  bel_feature_list *out_list) BEL_MUST_USE;

// Writes a port in a signature, without its closing brace: {"name":…,"dtype":…,"shape":["N",64].
// Open dimensions have the names that models give them.
void bel_feature_write_port(bel_str *out, const char *name, const bel_spec *spec);

// Makes a dataset of one record, in batches of `batch`, with these fields, empty in open
// dimensions. It lets a model be built from its description, and is never read. `is_label` may be
// NULL: no labels. *out_zeros is the record's memory, which must outlive the dataset; free it with
// bel_pages_destroy. INVALID_ARGUMENT: a feature has too many dimensions.
bel_status *bel_feature_dataset(const bel_feature *features, const bool *is_label, int count,
                                int64_t batch, void **out_zeros, size_t *out_bytes,
                                bel_dataset **out_dataset) BEL_MUST_USE;

#endif
