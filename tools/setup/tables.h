// Tables described by flags: their columns (belfry/columns.h), and the defaults of a model that
// learns from them.
#ifndef BELFRY_TOOLS_SETUP_TABLES_H
#define BELFRY_TOOLS_SETUP_TABLES_H

#include "base/options.h"
#include "belfry/columns.h"
#include "model/remote_input.h"
#include "setup/params.h"

// Returns the columns of the files to train on: those of --columns, else those of the newest
// checkpoint in model_dir (*out_remembered), else inferred ones. *out_columns is NULL if flags
// describe the columns (--feature_scale and the like), if the model reads no tables, if a file is
// not a regular one, or if the checkpoint was trained without a description. `remote`: the files
// are on other hosts, and this is their description there, or NULL without one; it replaces the
// first and the last of these. Errors: those of bel_columns_infer; INVALID_ARGUMENT: flags that
// exclude each other, or contradict the checkpoint's description of a column.
bel_status *bel_table_for_training(const bel_options *options, const char *model_dir,
                                   const bel_remote_input *remote, bel_columns **out_columns,
                                   bool *out_remembered) BEL_MUST_USE;

// Infers a description of the files at `paths`, using only the column flags; without a label unless
// `labeled`.
bel_status *bel_table_infer(const bel_options *options, const char *const *paths, int count,
                            bool labeled, bel_columns **out_columns) BEL_MUST_USE;

// INVALID_ARGUMENT: the columns have no label, --objective cannot learn their label, or
// --label_column names another one.
bel_status *bel_table_check_label(const bel_options *options,
                                  const bel_columns *columns) BEL_MUST_USE;

// INVALID_ARGUMENT: a model of Belfry that reads tokens has no column of kind tokens, another model
// has one, or the model reads no table.
bel_status *bel_table_check_model(const bel_columns *columns, const char *model) BEL_MUST_USE;

// For reading by the description of a checkpoint. INVALID_ARGUMENT: a flag that describes columns.
bel_status *bel_table_check_reading(const bel_options *options) BEL_MUST_USE;

// For training: sets parameters that follow from the columns, and those of flags that are not
// given. If the checkpoint in `remembering` (NULL: no checkpoint) has the latter, it sets them to
// its values. `blocks`: batches of a step.
bel_status *bel_table_set_params(bel_params *params, const bel_options *options,
                                 const bel_columns *columns, const char *remembering,
                                 int64_t blocks) BEL_MUST_USE;

// Returns the steps of a training by the flags, or else by the table's defaults.
int64_t bel_table_steps(const bel_options *options, const bel_columns *columns, int64_t blocks);

// Default batch size, and default number of passes over the data.
int64_t bel_table_batch_size(const bel_options *options, const bel_columns *columns);
int64_t bel_table_epochs(const bel_columns *columns);

// Returns the default number of steps between evaluations if --keep_best or --early_stopping
// compares them: one pass over the data, with at most a hundred evaluations in all. 0 otherwise.
int64_t bel_table_eval_steps(const bel_options *options, const bel_columns *columns,
                             int64_t blocks);

// Prints the columns as a table for people.
void bel_table_print(const bel_columns *columns, bel_str *out);

// Prints the columns for programs, an object a line: {"name":"age","kind":"number","note":"0 to 99
// …"}.
void bel_table_print_json(const bel_columns *columns, bel_str *out);

#endif
