// Tables from flags: what the columns are (belfry/columns.h), and what a model is to learn of them
// where no flag says it.
#ifndef BELFRY_TOOLS_TABLES_H
#define BELFRY_TOOLS_TABLES_H

#include "base/options.h"
#include "belfry/columns.h"
#include "params.h"

// The columns of the files to train on: those that --columns names, else those of the newest
// checkpoint in model_dir (*out_remembered), else as they are inferred. *out_columns is NULL where
// flags say what columns are (--feature_scale and the like), where the model takes no tables, where
// the files are no regular ones, and where the checkpoint was trained without. Errors: those of
// bel_columns_infer; INVALID_ARGUMENT, flags that exclude each other, or that say something else of
// a column than the checkpoint.
bel_status *bel_table_for_training(const bel_options *options, const char *model_dir,
                                   bel_columns **out_columns, bool *out_remembered) BEL_MUST_USE;

// A description by the flags of columns alone, of the files at `paths`; with no label where it is
// not `labelled`.
bel_status *bel_table_infer(const bel_options *options, const char *const *paths, int count,
                            bool labelled, bel_columns **out_columns) BEL_MUST_USE;

// INVALID_ARGUMENT: the columns have no label, or none of the kind that --objective learns, or
// --label_column names another one.
bel_status *bel_table_check_label(const bel_options *options,
                                  const bel_columns *columns) BEL_MUST_USE;

// For reading by the description of a checkpoint. INVALID_ARGUMENT: a flag that says what columns
// are.
bel_status *bel_table_check_reading(const bel_options *options) BEL_MUST_USE;

// For training: sets parameters that follow from the columns, and those that stand for flags which
// are not given; where the checkpoint in `remembering` (NULL: none) has the latter, they are its.
// `blocks`: batches of a step.
bel_status *bel_table_set_params(bel_params *params, const bel_options *options,
                                 const bel_columns *columns, const char *remembering,
                                 int blocks) BEL_MUST_USE;

// Examples of a batch and passes over the data, where no flag says it.
int64_t bel_table_batch_size(const bel_columns *columns);
int64_t bel_table_epochs(const bel_columns *columns);

// Steps from one evaluation to the next where --keep_best or --early_stopping compares them, and no
// flag says when there are some: a pass over the data, and not over a hundred in all. 0 otherwise.
int64_t bel_table_eval_steps(const bel_options *options, const bel_columns *columns, int blocks);

// What each column is, as a table for people.
void bel_table_print(const bel_columns *columns, bel_str *out);

// The same for programs, an object a line: {"name":"age","kind":"number","note":"0 to 99 …"}.
void bel_table_print_json(const bel_columns *columns, bel_str *out);

#endif
