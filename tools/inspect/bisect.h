// First difference of two trainings, found by verb bisect.
#ifndef BELFRY_TOOLS_INSPECT_BISECT_H
#define BELFRY_TOOLS_INSPECT_BISECT_H

#include "inspect/difference.h"

// A curve of the event files of both trainings.
typedef struct bel_curve_difference {
    char *tag;          // the first curve that differs; NULL: none does
    int64_t points;     // steps that both have, of all curves
    int64_t equal_step; // the last one before `step`; -1: none
    int64_t step;       // the first at which the curve differs
    double a, b;
} bel_curve_difference;

typedef struct bel_bisect_result {
    bool equal;             // by the manifests
    bool folders;           // two model folders, else checkpoints
    int64_t compared;       // steps that both have saved and that were compared
    int64_t left_out;       // steps before `step` that both have saved and that cannot be read
    int64_t first_left_out; // the first left out
    int64_t step;           // the first that was compared and differs; -1: none does
    int64_t equal_step;     // the newest equal one before it; -1: none
    int64_t equal_before;   // the same, and before the step at which a curve differs
    int64_t step_a, step_b; // steps of the last pair, which differ only if both are checkpoints
    int64_t newest_a, newest_b;
    bel_str settings; // those that differ at that step, or else at the newest equal one
    bel_str mode;     // the first that was found whose bits depend on timing; empty: none
    bel_differences differences;
    char *unread; // why `differences` lacks some; NULL: it has all
    bel_curve_difference curve;
    bel_str next; // advice on how to find more; empty: none
} bel_bisect_result;

// Appends the result as lines, or as a JSON object.
void bel_bisect_write(const bel_bisect_result *result, bool json, bel_str *out);

// Compares the curves of training in two model folders, but not those of speed. Event files that
// cannot be read are an error. Free out->tag with bel_free.
bel_status *bel_bisect_curves(const char *model_dir_a, const char *model_dir_b,
                              bel_curve_difference *out) BEL_MUST_USE;

#endif
