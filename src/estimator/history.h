// What a run has left in its event files: the curves that report.html shows, and its evaluations'
// details. They are read back from the files, so that a run which was resumed, repeated or is
// evaluated by another process still has all of them, and nothing is kept in memory.
//
// A folder's files follow each other by name. A START voids what was said of its step and later
// ones (docs/formats/events.md), as in TensorBoard. A record that is not whole or whose checksum
// is wrong ends its file.
#ifndef BELFRY_ESTIMATOR_HISTORY_H
#define BELFRY_ESTIMATOR_HISTORY_H

#include "estimator/report.h"

typedef struct bel_history bel_history; // immutable

// Reads `model_dir` itself (training) and its folders "eval" and "eval_…", not "evaluate…": what
// was evaluated by hand is no part of the run. Files that cannot be read are errors; a folder
// without any is none.
bel_status *bel_history_read(const char *model_dir, bel_history **out_history) BEL_MUST_USE;

// The same of one of these folders alone, such as "eval"; one that is not there has no curves.
bel_status *bel_history_read_folder(const char *model_dir, const char *name,
                                    bel_history **out_history) BEL_MUST_USE;
void bel_history_destroy(bel_history *history);

// The curve of a tag, by ascending steps, in the folder of that name ("": training). NULL: none.
const bel_report_series *bel_history_find(const bel_history *history, const char *folder,
                                          const char *tag);

// The curves of that folder one after another, as they first came; NULL behind the last.
const bel_report_series *bel_history_at(const bel_history *history, const char *folder,
                                        size_t index);

// Index of its least finite value, the earliest of those; -1: there is none.
int64_t bel_history_best(const bel_report_series *series);

// Writes the page with the curves and the newest evaluations' details of this history; those of
// `frame` are ignored.
bel_status *bel_history_report(const bel_history *history, const bel_report *frame,
                               const char *path) BEL_MUST_USE;

#endif
