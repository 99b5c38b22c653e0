/// Columns of a table: what each column of a CSV file is, and what becomes of it. A table is taken
/// as it was exported; its description says which columns are numbers, categories, dates, texts,
/// the label, and with which values of the training data they are scaled:
///
/// ```c
/// bel_columns *columns;
/// const bel_csv_options table = {.paths = (const char *[]){"train.csv"}, .path_count = 1};
/// BEL_TRY(bel_columns_infer(&table, &(bel_columns_options){.label = "species"}, &columns));
/// bel_dataset *data = bel_dataset_from_csv(&(bel_csv_options){
///     .paths = table.paths, .path_count = 1, .table = columns});
/// ```
///
/// A dataset with a description has these fields, of which those without an element are left out:
///
/// | field | | what |
/// |---|---|---|
/// | "x" | F32 [numbers] | scaled numbers, categories as one of several, parts of dates |
/// | "ids" | I64 [categories] | categories that have a row in a table (bel_embedding) |
/// | "id_lists" | I64 [columns, most] | lists, words of texts (bel_embedding_bag) |
/// | "label" | I64 [], F64 [] or I64 [labels] | the class; the number; of several labels 0 or 1 |
/// | "weight" | F32 [] | how much the example counts |
///
/// Elements of "x" stand in the order of the columns: of a number it and then its indicator, of a
/// category one for each value and then one for a missing one, of a date its parts.
///
/// bel_columns_layer makes one F32 value of the first three, for any model. The description is text
/// (bel_columns_text, docs/columns.md), kept with every checkpoint: columns are found by their
/// names, so that later files may have them in another order, or more of them.
///
/// **Thread rule.** A description is immutable, so thread-safe.
#ifndef BELFRY_COLUMNS_H
#define BELFRY_COLUMNS_H

#include "belfry/dataset.h"
#include "belfry/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BEL_WEIGHT_FIELD "weight" ///< How much an example counts.

/// What the label of a table is.
typedef enum bel_label_kind {
    BEL_LABEL_NONE,
    BEL_LABEL_CLASSES, ///< one of several texts or numbers
    BEL_LABEL_NUMBER,  ///< any number
    BEL_LABEL_SEVERAL, ///< several columns, each of two classes
} bel_label_kind;

/// What is known of a table before it is looked at. Zero-initialise, then set what you need. Names
/// of columns may be patterns (`*`, `?`, `[…]`). A column that two lists name is an error.
typedef struct bel_columns_options {
    const char *label; ///< NULL: one called label, target, class or y, else the last one
    /// In place of `label`: several that are learned together, each of two classes.
    const char *const *labels;
    int label_count;
    bool no_label;              ///< there is none
    bel_label_kind label_kind;  ///< NONE: by its values
    const char *weight;         ///< NULL: all examples count alike
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
    /// Texts that stand for a missing value beside an empty one; NULL: NA, N/A, n/a, #N/A, <NA>,
    /// nan, NaN, null, NULL, None, ? and a single point.
    const char *const *missing;
    int missing_count;
    /// What stands in front of decimals, '.' or ','. 0: a comma where it is not the delimiter and a
    /// column's cells, but for missing ones, are all whole numbers and numbers with one.
    char decimal;
    /// Rows that have too few fields, or too many, are passed over, as by a dataset that skips bad
    /// records (bel_dataset_skip_bad_records); without it they are an error.
    bool skip_bad;
    int thread_count; ///< 0: the cores; the result is the same with any
} bel_columns_options;

/// Looks at every cell of the files, and decides what each column is: see docs/columns.md for the
/// rules. The result depends on the rows, in their order, and on nothing else. Of `csv` the paths,
/// delimiter (0: the one that the first line has most of), no_header and holdout are read: what is
/// held out is not looked at. Free *out_columns
/// with bel_columns_destroy. Errors: those of opening the files; DATA_LOSS, with the first ten
/// cells that are wrong, each with file, line and column; INVALID_ARGUMENT, a column that is named
/// is not there, or the label is none to learn.
BEL_API bel_status *bel_columns_infer(const bel_csv_options *csv,
                                      const bel_columns_options *options,
                                      bel_columns **out_columns) BEL_MUST_USE;

/// A description from a file, or from its text; `source` names it in errors. INVALID_ARGUMENT with
/// line and column.
BEL_API bel_status *bel_columns_read(const char *path, bel_columns **out_columns) BEL_MUST_USE;
BEL_API bel_status *bel_columns_parse(const char *text, const char *source,
                                      bel_columns **out_columns) BEL_MUST_USE;
BEL_API void bel_columns_destroy(bel_columns *columns); ///< accepts NULL

/// The same description as text that bel_columns_parse takes back. Lives as long as it.
BEL_API const char *bel_columns_text(const bel_columns *columns);

/// The label: its kind, its column's name (NULL: there is none), its classes in the order of their
/// numbers, and the mean and standard deviation of a number in the training data (0 and 1
/// otherwise). Of several labels the names and classes of each; those without a number are of the
/// first.
BEL_API bel_label_kind bel_columns_label_kind(const bel_columns *columns);
BEL_API const char *bel_columns_label(const bel_columns *columns);
BEL_API int bel_columns_class_count(const bel_columns *columns);
BEL_API const char *bel_columns_class(const bel_columns *columns, int number);
BEL_API int bel_columns_label_count(const bel_columns *columns);
BEL_API const char *bel_columns_label_at(const bel_columns *columns, int label);
BEL_API const char *bel_columns_label_class(const bel_columns *columns, int label, int number);
/// Rows of a class in the training data; 0: nobody said.
BEL_API double bel_columns_class_rows(const bel_columns *columns, int number);
/// The least label of the training data, where it is a number; 0 where nobody said.
BEL_API double bel_columns_label_low(const bel_columns *columns);
/// The mean of the weights; 1 where there are none.
BEL_API double bel_columns_weight_mean(const bel_columns *columns);
BEL_API double bel_columns_label_mean(const bel_columns *columns);
BEL_API double bel_columns_label_deviation(const bel_columns *columns);

/// Rows of the training data that have a label.
BEL_API int64_t bel_columns_rows(const bel_columns *columns);

/// The numbers of an example, F32 [batch, n]: "x" and, side by side with it, the rows [width] of
/// table "columns" for each of "ids", and their mean for each of "id_lists". The names are those of
/// this header, so that it serves tables without a description, too. Error: there is none of the
/// three, or one has another type or rank.
BEL_API bel_value *bel_columns_layer(bel_model_context *context, int64_t width);

#ifdef __cplusplus
}
#endif

#endif
