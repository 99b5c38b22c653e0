// Datasets from the data flags.
#ifndef BELFRY_TOOLS_INPUTS_H
#define BELFRY_TOOLS_INPUTS_H

#include "base/arena.h"
#include "base/options.h"
#include "belfry/columns.h"
#include "belfry/package.h"

// What the data flags mean for one run. Immutable; must outlive the estimator's calls.
typedef struct bel_flag_input {
    const bel_options *options;
    const bel_options *training; // whose held out rows are read (--held_out); NULL: of no one
    double feature_scale;
    bel_dtype vector_dtype;      // of the numbers of a CSV file
    const char *id_columns;      // "NAME,NAME"; NULL: none
    const char *id_list_columns; // in the same way
    int64_t id_list_most;        // 0: the default
    bool id_list_weights;
    const char *length_column;
    const char *label_column;             // of the checkpoint; NULL: it says none
    const bel_columns *columns;           // of a table; NULL: the fields above say what columns are
    int64_t train_batch_size, num_epochs; // where no flag says it; 0: the flags' defaults
    int64_t class_count;                  // 0: labels are not checked
    bel_feature_fn *feature_fn; // of a package: rows name files; NULL: rows are the features
    void *feature_user;
} bel_flag_input;

// NOT_FOUND, PERMISSION_DENIED: one of the files that the data flags name cannot be read here.
bel_status *bel_flag_inputs_check(const bel_options *options) BEL_MUST_USE;

// The files to train on, or to read, below --data_dir, with patterns replaced by what they match.
// They live in `arena`.
bel_status *bel_flag_inputs_paths(const bel_options *options, bel_mode mode, bel_arena *arena,
                                  const char *const **out_paths, int *out_count) BEL_MUST_USE;

// Whether there are examples to evaluate on: --eval_files, or --eval_share of those to train on.
bool bel_flag_inputs_evaluates(const bel_options *options);

// Says what is not evaluated, or on examples that are trained on as well.
void bel_flag_inputs_say(const bel_options *options);

// Whether --eval_share is given; false where the command has no such flag.
bool bel_flag_inputs_hold_out(const bel_options *options);

// The rows that are held out as --eval_share says (`held`), or the others; zeros without the flag,
// where all are read. INVALID_ARGUMENT: it is no share, stands beside --eval_files, or a file to
// train on can be read once only.
bel_status *bel_flag_inputs_holdout(const bel_options *options, bool held,
                                    bel_holdout *out_holdout) BEL_MUST_USE;

// "csv" or "idx": how the files are read that the data flags name. With files of both kinds, and
// without any, it is "csv", which reads more flags.
const char *bel_flag_inputs_format(const bel_options *options);

// Bytes of the files to train on, which stay in memory while they are read again and again. Packed
// ones are taken to be five times as large.
int64_t bel_flag_inputs_bytes(const bel_options *options);

// A bel_input_fn; `flag_input` is a bel_flag_input. TRAIN reads --train_files, shuffled and
// repeated; EVAL and PREDICT read --eval_files, or what --eval_share holds out, in order. Errors:
// INVALID_ARGUMENT (flag missing, files that do not make sense together); NOT_FOUND, DATA_LOSS (the
// header of a CSV file); others when opened.
bel_input_fn bel_flag_input_open;

#endif
