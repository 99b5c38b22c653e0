// Comparison of two checkpoints, or of two runs by their checkpoints.
#ifndef BELFRY_TOOLS_INSPECT_COMPARE_H
#define BELFRY_TOOLS_INSPECT_COMPARE_H

#include "base/str.h"
#include "checkpoint/checkpoint.h"

typedef struct bel_compare_result {
    bool equal;
    bel_str difference; // "dense/kernel differs at element 3: 0.5 and 0.25"; empty if equal
    bel_str settings;   // "learning_rate was 0.1 and is 0.2; …"; empty: none differs
    // For two model folders: the first step that both have saved and at which they differ, and the
    // last one before it; -1: none.
    int64_t step, equal_step;
} bel_compare_result;

// Compares two opened checkpoints; a path is that of a checkpoint or of a model folder. If both are
// model folders, their runs are compared: the difference is at the first step that both have saved
// and at which they differ. Only manifests are read to find it. Free the result with
// bel_compare_free, also after an error. Errors: those of checkpoints.
bel_status *bel_compare(const bel_ckpt_reader *a, const char *path_a, const bel_ckpt_reader *b,
                        const char *path_b, bel_compare_result *out_result) BEL_MUST_USE;
void bel_compare_free(bel_compare_result *result);

// Appends the result as lines, or as a JSON object.
void bel_compare_write(const bel_compare_result *result, bool json, bel_str *out);

#endif
