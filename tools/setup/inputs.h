// Datasets from the data flags.
#ifndef BELFRY_TOOLS_SETUP_INPUTS_H
#define BELFRY_TOOLS_SETUP_INPUTS_H

#include "base/arena.h"
#include "base/options.h"
#include "belfry/columns.h"
#include "belfry/package.h"
#include "belfry/tokens.h"

// Data flags of one run. Immutable; must outlive the estimator's calls.
typedef struct bel_flag_input {
    const bel_options *options;
    const bel_options *training; // training whose held out rows are read (--held_out); NULL: unset
    double feature_scale;
    bel_dtype vector_dtype;      // type of a CSV file's numbers
    const char *id_columns;      // "NAME,NAME"; NULL: none
    const char *id_list_columns; // same form
    int64_t id_list_most;        // 0: the default
    bool id_list_weights;
    const char *length_column;
    const char *label_column;             // the checkpoint's; NULL: it has none
    const bel_columns *columns;           // a table's; NULL: the fields above describe the columns
    int64_t train_batch_size, num_epochs; // if no flag sets them; 0: the flags' defaults
    int64_t class_count;                  // 0: labels are not checked
    bool reads_tokens;                    // contexts of tokens; else tables or images
    const bel_tokenizer *tokenizer;       // with reads_tokens: of texts; NULL: unknown
    int64_t context, vocabulary;          // with reads_tokens
    bel_feature_fn *feature_fn; // a package's: rows name files; NULL: rows are the features
    void *feature_user;
} bel_flag_input;

// NOT_FOUND, PERMISSION_DENIED: one of the files in the data flags cannot be read here.
bel_status *bel_flag_inputs_check(const bel_options *options) BEL_MUST_USE;

// Returns true if --train_files names a file that is not here, or is no regular file.
bool bel_flag_inputs_are_elsewhere(const bel_options *options);

// Returns the files to train on, or to read, below --data_dir, with patterns replaced by their
// matches. They live in `arena`.
bel_status *bel_flag_inputs_paths(const bel_options *options, bel_mode mode, bel_arena *arena,
                                  const char *const **out_paths, int *out_count) BEL_MUST_USE;

// Returns true if there are examples to evaluate on: --eval_files, or --eval_share of the training
// rows.
bool bel_flag_inputs_evaluates(const bel_options *options);

// Logs that there is no evaluation, or that it uses examples of the training.
void bel_flag_inputs_say(const bel_options *options);

// Returns true if --eval_share is given; false if the command has no such flag.
bool bel_flag_inputs_hold_out(const bel_options *options);

// Returns the rows that --eval_share holds out (`held`), or the others. Without the flag it is
// zero: all rows are read. INVALID_ARGUMENT: the value is no share, --eval_files is given too, or a
// file to train on can be read only once.
bel_status *bel_flag_inputs_holdout(const bel_options *options, bool held,
                                    bel_holdout *out_holdout) BEL_MUST_USE;

// Returns the format of the files in the data flags: with `tokens`, for a model that reads tokens,
// "text", "jsonl" or "tokens", by the first file; else "csv" or "idx". With files of both kinds, or
// none, it is "csv", which reads more flags.
const char *bel_flag_inputs_format(const bel_options *options, bool tokens);

// Returns "text", "jsonl" or "tokens" for a file that a model of language reads.
const char *bel_flag_inputs_text_format(const bel_options *options, const char *path);

// INVALID_ARGUMENT: --input_format is one that the model does not read. `model`: one that reads
// contexts of tokens; NULL: another one.
bel_status *bel_flag_inputs_check_format(const bel_options *options,
                                         const char *model) BEL_MUST_USE;

// Returns the bytes of the files to train on, which stay in memory while they are read repeatedly.
// Compressed files count five times their size.
int64_t bel_flag_inputs_bytes(const bel_options *options);

// A bel_input_fn; `flag_input` is a bel_flag_input. TRAIN reads --train_files, shuffled and
// repeated. EVAL and PREDICT read --eval_files, or the rows that --eval_share holds out, in order.
// Errors: INVALID_ARGUMENT (flag missing, files that do not fit together); NOT_FOUND, DATA_LOSS
// (the header of a CSV file); others when opened.
bel_input_fn bel_flag_input_open;

#endif
