/// Columns of a table: the type of each column of a CSV file, and the fields that it becomes. A
/// table is used as it was exported. Its description says which columns are numbers, categories,
/// dates, texts or the label, and the statistics of the training data that scale them:
///
/// ```c
/// bel_columns *columns;
/// const bel_columns_options known = {.size = sizeof known, .label = "species"};
/// bel_csv_options table = {
///     .size = sizeof table, .paths = (const char *[]){"train.csv"}, .path_count = 1};
/// BEL_TRY(bel_columns_infer(&table, &known, &columns));
/// table.table = columns;
/// bel_dataset *data = bel_dataset_from_csv(&table);
/// ```
///
/// A dataset with a description has these fields; fields without an element are left out:
///
/// | field | | contents |
/// |---|---|---|
/// | "x" | F32 [numbers] | scaled numbers, one-hot categories, parts of dates |
/// | "ids" | I64 [categories] | categories that have a row in a table (bel_embedding) |
/// | "id_lists" | I64 [columns, most] | lists, words of texts (bel_embedding_bag) |
/// | "tokens" | I64 [most] | the first tokens of a text, then zeros (tokens.h) |
/// | "length" | I64 [] | the number of these tokens |
/// | "label" | I64 [], F64 [] or I64 [labels] | the class; the number; several labels: 0 or 1 |
/// | "weight" | F32 [] | weight of the example |
///
/// Elements of "x" are in the order of the columns: a number and then its indicator; one per value
/// of a category and then one for a missing value; the parts of a date.
///
/// bel_columns_layer joins the first three fields to one F32 value, for any model. The description
/// is text (bel_columns_text, docs/columns.md), kept with every checkpoint. Columns are found by
/// their names, so later files may have them in another order, or more of them.
///
/// **Thread rule.** A description is immutable, so thread-safe.
#ifndef BELFRY_COLUMNS_H
#define BELFRY_COLUMNS_H

#include "belfry/dataset.h"
#include "belfry/model.h"
#include "belfry/tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BEL_WEIGHT_FIELD "weight" ///< Weight of an example.

/// Kind of a table's label.
typedef enum bel_label_kind {
    BEL_LABEL_NONE,
    BEL_LABEL_CLASSES, ///< one of several texts or numbers
    BEL_LABEL_NUMBER,  ///< any number
    BEL_LABEL_SEVERAL, ///< several columns, each of two classes
} bel_label_kind;

/// Known facts about a table, set before it is read. Set `size` and the fields you need.
/// Names of columns may be patterns (`*`, `?`, `[…]`). Two lists that name the same column are an
/// error.
typedef struct bel_columns_options {
    size_t size;       ///< sizeof(bel_columns_options): fields after it count as 0
    const char *label; ///< NULL: one called label, target, class or y, else the last that is no id
    /// Instead of `label`: several labels to learn together, each of two classes.
    const char *const *labels;
    int label_count;
    bool no_label;              ///< the table has no label
    bel_label_kind label_kind;  ///< NONE: by its values
    const char *weight;         ///< NULL: all examples have the same weight
    const char *const *ignored; ///< left out
    int ignored_count;
    const char *const *categories; ///< categories, whatever their values look like
    int category_count;
    const char *const *numbers; ///< numbers; other texts in them are errors
    int number_count;
    const char *const *logs; ///< numbers whose logarithm is scaled: ln (1 + |v|), with v's sign
    int log_count;
    const char *const *keys; ///< passed through to predictions
    int key_count;
    /// Decimal separator, '.' or ','. 0: a comma if it is not the delimiter and all cells of a
    /// column, except missing ones, are integers or numbers with a comma.
    char decimal;
    /// Rows with too few or too many fields are skipped, as by a dataset that skips bad records
    /// (bel_dataset_skip_bad_records); otherwise they are an error.
    bool skip_bad;
    int num_threads;   ///< 0: the cores; the result is the same with any
    int missing_count; ///< of `missing`
    /// Texts that stand for a missing value, besides the empty one; NULL: NA, N/A, n/a, #N/A, <NA>,
    /// nan, NaN, null, NULL, None, ? and a single point.
    const char *const *missing;
    /// Classes of the label in their order, for rows that may lack some. Another label is an error
    /// (DATA_LOSS). NULL: those of the rows, in the order of their values. Each once, at least two.
    const char *const *classes;
    int64_t class_count; ///< 0 without classes
    /// Column with a text whose tokens are learned from, and from no other column. NULL: none.
    /// Needs bel_columns_set_tokenizer before cells are read.
    const char *text;
    int64_t text_most; ///< with `text`: the first tokens that count, from 1 on
} bel_columns_options;

/// Reads every cell of the files and decides the type of each column: see docs/columns.md for the
/// rules. The result depends only on the rows, in their order. Reads only paths, delimiter (0: the
/// most frequent one of the first line), no_header and holdout of `csv`. Held-out rows are ignored.
/// options NULL: nothing is known.
/// Free *out_columns with bel_columns_destroy. Errors: those of opening the files; DATA_LOSS, with
/// the first ten invalid cells, each with file, line and column; INVALID_ARGUMENT: a named column
/// does not exist, or the label cannot be learned.
BEL_API bel_status *bel_columns_infer(const bel_csv_options *csv,
                                      const bel_columns_options *options,
                                      bel_columns **out_columns) BEL_MUST_USE;

/// Reads a description from a file. INVALID_ARGUMENT with line and column.
BEL_API bel_status *bel_columns_read(const char *path, bel_columns **out_columns) BEL_MUST_USE;
/// Reads a description from its text; `source` names it in errors, which are the same.
BEL_API bel_status *bel_columns_parse(const char *text, const char *source,
                                      bel_columns **out_columns) BEL_MUST_USE;
BEL_API void bel_columns_destroy(bel_columns *columns); ///< accepts NULL

/// Sets the tokenizer of the column with a text. Its description holds only the number of tokens,
/// so a description that was read needs it again. Call it before the first use of `columns`; the
/// tokenizer must outlive them. INVALID_ARGUMENT: no column becomes tokens.
BEL_API bel_status *bel_columns_set_tokenizer(bel_columns *columns,
                                              const bel_tokenizer *tokenizer) BEL_MUST_USE;

/// Returns the description as text for bel_columns_parse. Lives as long as the description.
BEL_API const char *bel_columns_text(const bel_columns *columns);

/// Returns the kind of the label.
BEL_API bel_label_kind bel_columns_label_kind(const bel_columns *columns);
/// Returns the name of the label's column; NULL: no label. With several labels, this and the
/// next four describe the first.
BEL_API const char *bel_columns_label(const bel_columns *columns);
/// Returns the number of classes.
BEL_API int bel_columns_class_count(const bel_columns *columns);
/// Returns class `number`, from 0 on.
BEL_API const char *bel_columns_class(const bel_columns *columns, int number);
/// Returns the number of labels.
BEL_API int bel_columns_label_count(const bel_columns *columns);
/// Returns the name of a label.
BEL_API const char *bel_columns_label_at(const bel_columns *columns, int label);
/// Returns the rows of a class in the training data; 0: unknown.
BEL_API double bel_columns_class_rows(const bel_columns *columns, int number);
/// Returns the smallest label of the training data, if it is a number; 0 if it is unknown.
BEL_API double bel_columns_label_low(const bel_columns *columns);
/// Returns the mean of the weights; 1 without weights.
BEL_API double bel_columns_weight_mean(const bel_columns *columns);
/// Returns the mean of a numeric label in the training data; else 0.
BEL_API double bel_columns_label_mean(const bel_columns *columns);
/// Returns the standard deviation of a numeric label in the training data; else 1.
BEL_API double bel_columns_label_deviation(const bel_columns *columns);

/// Returns the name of a column that is read to predict, by index, from 0 on. NULL after the last.
BEL_API const char *bel_columns_feature_name(const bel_columns *columns, int index);

/// Returns the number of rows of the training data that have a label.
BEL_API int64_t bel_columns_rows(const bel_columns *columns);

/// Hyperparameters for a training on a table, from its rows, columns and label (docs/columns.md).
/// They are the defaults of `belfry train_and_evaluate`. The texts are static, in the form of
/// flags.
typedef struct bel_table_defaults {
    const char *hidden_units, *dropout, *learning_rate;
    double l2;
    int64_t batch_size, epochs;
} bel_table_defaults;
BEL_API bel_table_defaults bel_columns_defaults(const bel_columns *columns);

/// --- Tables in memory ---------------------------------------------------------------------------
///
/// A table that a program holds, instead of files. The functions below do for its rows what the
/// ones above, bel_dataset_from_csv and `belfry predict` do for those of files, with the same bits.

/// Column in memory: numbers, or texts of which many rows may share one.
typedef struct bel_memory_column {
    const char *name;         ///< UTF-8
    const void *numbers;      ///< row i is element i · stride; NaN is missing. NULL: texts
    bel_dtype dtype;          ///< of `numbers`: F32 or F64
    int64_t stride;           ///< elements from one row to the next, also below 0; not 0
    const int32_t *codes;     ///< row i is texts[codes[i]]; below 0: missing
    const char *const *texts; ///< UTF-8; spaces around them do not count, as in a file
    int64_t text_count;
} bel_memory_column;

/// Table in memory. The library reads its columns during a call, and while a dataset of it is used;
/// they must not change then.
typedef struct bel_memory_table {
    size_t size;                      ///< sizeof(bel_memory_table): fields after it count as 0
    const bel_memory_column *columns; ///< each name once
    int column_count;
    int64_t row_count;
    const int64_t *order; ///< row i is row order[i] of the columns, which exists; NULL: row i
} bel_memory_table;

/// Orders the rows of a table by a hash of their cells, and writes their numbers in the columns to
/// out_order [row_count]. As `order` of the table it makes a training independent of the order in
/// which the rows came: same rows, same model. Errors: those of a malformed table
/// (INVALID_ARGUMENT).
BEL_API bel_status *bel_memory_table_order(const bel_memory_table *rows,
                                           int64_t *out_order) BEL_MUST_USE;

/// Does what bel_columns_infer does, for a table in memory. All rows must have a label, if there is
/// one. Looks for no suspicious values. Free *out_columns with bel_columns_destroy. Errors:
/// INVALID_ARGUMENT: an infinite number, a code out of range or a missing label, each with its row
/// in the columns, from 0 on, and its column, and those of bel_columns_infer; DATA_LOSS: a column
/// of numbers has texts.
BEL_API bel_status *bel_columns_infer_memory(const bel_memory_table *rows,
                                             const bel_columns_options *options,
                                             bel_columns **out_columns) BEL_MUST_USE;

/// Makes a dataset of a table in memory, with the fields of a description: those of a CSV file with
/// bel_csv_options.table. Columns are found by name; others are left out, which the log says.
/// `unlabeled`: without label and weight. `rows` and `columns` are not copied, and must stay until
/// the last call that uses the dataset has returned. Errors, when opened: INVALID_ARGUMENT: no such
/// column, or a wrong cell, with row and column. All cells are checked then.
BEL_API bel_dataset *bel_dataset_from_memory_table(const bel_memory_table *rows,
                                                   const bel_columns *columns, bool unlabeled);

/// Sizes of an example's features: elements of "x", of "ids", columns of "id_lists" and their ids.
typedef struct bel_columns_widths {
    int64_t x, ids, id_lists, most;
} bel_columns_widths;
BEL_API bel_columns_widths bel_columns_feature_widths(const bel_columns *columns);

/// Computes the features of all rows: x [rows, x], ids [rows, ids], id_lists [rows, id_lists, most]
/// by bel_columns_feature_widths. A field without elements may be NULL. They are inputs for
/// bel_estimator_predictor. Errors: those of opening bel_dataset_from_memory_table.
BEL_API bel_status *bel_columns_features(const bel_columns *columns, const bel_memory_table *rows,
                                         float *out_x, int64_t *out_ids,
                                         int64_t *out_id_lists) BEL_MUST_USE;

/// Computes a column's input of an exported model (docs/formats/export.md): out [rows, width]. A
/// number is in its unit, NaN if it is missing. A category is a position in its values, with their
/// number for a missing one if training had any, else -1. A date has its `parts`. `width` is 1
/// except for dates. Errors, INVALID_ARGUMENT: no such column, another width, a column whose input
/// has ids, or those of bel_columns_features.
BEL_API bel_status *bel_columns_input(const bel_columns *columns, const bel_memory_table *rows,
                                      const char *name, int64_t width, double *out) BEL_MUST_USE;

/// --- Layer --------------------------------------------------------------------------------------

/// Joins an example's columns to F32 [batch, n]: "x", the rows [width] of table "columns" for each
/// of "ids", and their mean for each of "id_lists". The names are those of this header, so it also
/// works for tables without a description. Error: all three fields are absent, or one has
/// another type or rank.
BEL_API bel_value *bel_columns_layer(bel_model_context *context, int64_t width);

#ifdef __cplusplus
}
#endif

#endif
