// History of a run from its event files: the curves in report.html, and details of its evaluations.
// It is read back from the files, so that it is complete after a resume, a repeat or an evaluation
// by another process, and training keeps nothing in memory.
//
// A folder's files are in the order of their names. A START voids values of its step and later ones
// (docs/formats/events.md), as in TensorBoard. A record that is incomplete or whose checksum is
// wrong ends its file.
#ifndef BELFRY_ESTIMATOR_HISTORY_H
#define BELFRY_ESTIMATOR_HISTORY_H

#include "report/report.h"

typedef struct bel_history bel_history; // immutable

// Reads `model_dir` itself (training) and its folders "eval" and "eval_…". It skips "evaluate…":
// evaluations by hand are no part of the run. Files that cannot be read are errors; a folder
// without files is valid.
bel_status *bel_history_read(const char *model_dir, bel_history **out_history) BEL_MUST_USE;

// The same of only one of these folders, such as "eval". A missing folder has no curves.
bel_status *bel_history_read_folder(const char *model_dir, const char *name,
                                    bel_history **out_history) BEL_MUST_USE;
void bel_history_destroy(bel_history *history);

// The curve of a tag, by ascending steps, in the folder of that name ("": training). NULL: absent.
const bel_report_series *bel_history_find(const bel_history *history, const char *folder,
                                          const char *tag);

// The curves of that folder in order of appearance; NULL after the last.
const bel_report_series *bel_history_at(const bel_history *history, const char *folder,
                                        size_t index);

// Index of its least finite value, the earliest of equal ones; -1: no finite value.
int64_t bel_history_best(const bel_report_series *series);

// Writes the page with this history's curves and the details of the newest evaluations. Those of
// `frame` are ignored.
bel_status *bel_history_report(const bel_history *history, const bel_report *frame,
                               const char *path) BEL_MUST_USE;

#endif
