/// Packages: a model with its input, features and flags in a shared object of its own, which
/// `belfry` loads (`--package my_model.so`), or builds and loads (`--package_path my_model/`).
///
/// ```c
/// BEL_PACKAGE(.name = "my_model", .description = "what it is", .model_fn = model_fn)
/// ```
///
/// or, with more of what it may have:
///
/// ```c
/// static const bel_package_flag flags[] = {
///     {.name = "units", .kind = BEL_FLAG_INT, .otherwise = "64", .accepts = "[1, 4096]",
///      .help = "size of the hidden layer."}};
/// BEL_PACKAGE(.name = "my_model", .description = "what it is", .model_fn = model_fn,
///             .feature_fn = feature_fn, .flags = flags, .flag_count = 1)
/// ```
///
/// A package runs inside the process and is trusted as much as the program itself. It needs no
/// library: its calls reach the copy of Belfry in the program that loads it.
#ifndef BELFRY_PACKAGE_H
#define BELFRY_PACKAGE_H

#include "belfry/estimator.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a flag's text must be.
typedef enum bel_flag_kind {
    BEL_FLAG_TEXT,
    BEL_FLAG_INT,    ///< a whole number, within `accepts`
    BEL_FLAG_NUMBER, ///< a number, within `accepts`
    BEL_FLAG_SWITCH, ///< --name and --no_name
    BEL_FLAG_INTS,   ///< whole numbers between commas
    BEL_FLAG_TEXTS,  ///< texts between commas
} bel_flag_kind;

/// A flag of the package's own. Its value, or its default, is the parameter of the same name
/// (bel_estimator_param, bel_context_param), is remembered by checkpoints, and is listed by
/// `--package FILE --help`.
typedef struct bel_package_flag {
    const char *name; ///< with underscores; none of the command's own
    bel_flag_kind kind;
    const char *otherwise; ///< the default as it would be typed; NULL: none, needed for numbers
    const char *accepts;   ///< numbers: "[1, inf)", "(0, 1]"; TEXT: "slow|fast"; NULL: anything
    const char *help;      ///< one sentence
} bel_package_flag;

/// Features from a file that a row of the data names: reads `path` and adds fields to `record`
/// (bel_record_add), which has the row's label already. What it makes must depend on the file
/// alone. Called from several threads at once, and at opening for the first record. NULL, or an
/// error, which ends the step with the row's place in front.
typedef bel_status *bel_feature_fn(void *user, const char *path, bel_record *record);

/// What a shared object gives. All but name and model function may be left out (NULL, 0).
typedef struct bel_package {
    int abi;                 ///< BEL_PACKAGE_ABI of the headers it was compiled with
    size_t size;             ///< sizeof(bel_package) of them: what lies behind counts as left out
    const char *name;        ///< of the model; remembered in checkpoints
    const char *description; ///< one line
    bel_model_fn *model_fn;

    /// The data for each mode, in place of what the data flags say; it finds them, as parameters,
    /// under their names ("train_files", "train_batch_size", …) where they are given.
    bel_input_fn *input_fn;

    /// With it the data flags name CSV files with a column of paths (--path_column; a relative path
    /// starts at its CSV file's folder) and a label; each row's fields are what this function makes
    /// of its file, and batches are padded (bel_dataset_padded_batch).
    bel_feature_fn *feature_fn;

    const bel_package_flag *flags;
    int flag_count;

    const bel_hook *const *hooks; ///< of the training verbs, each with its own `user`
    int hook_count;

    void *user; ///< of the functions above; of the model function: bel_estimator_config()->user
} bel_package;

/// Rises when packages must be compiled again; a package of another number is refused when it is
/// loaded. New fields come at the end of bel_package and need no new number.
enum { BEL_PACKAGE_ABI = 12 };

/// Exports the package of a shared object, once in it: the fields behind `size`, by their names.
#define BEL_PACKAGE(...)                                                                           \
    BEL_API extern const bel_package bel_package_entry;                                            \
    const bel_package bel_package_entry = {                                                        \
        .abi = BEL_PACKAGE_ABI, .size = sizeof(bel_package), __VA_ARGS__};

/// A model that comes with Belfry, by name ("linear", "dnn", "cnn", "resnet", "wide_deep", "gru",
/// "lstm": docs/models.md), or by index from 0 on. NULL: there is none, or the index is behind the
/// last. Static.
BEL_API const bel_package *bel_model_find(const char *name);
BEL_API const bel_package *bel_model_at(int index);

#ifdef __cplusplus
}
#endif

#endif
