/// Packages: a model with its input, features and flags in a separate shared object. `belfry` loads
/// it (`--package my_model.so`), or builds and loads it (`--package_path my_model/`).
///
/// ```c
/// BEL_PACKAGE(.name = "my_model", .description = "what it is", .model_fn = model_fn)
/// ```
///
/// or, with more options:
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
/// library: its calls use the copy of Belfry in the program that loads it.
#ifndef BELFRY_PACKAGE_H
#define BELFRY_PACKAGE_H

#include "belfry/estimator.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Syntax of a flag's text.
typedef enum bel_flag_kind {
    BEL_FLAG_TEXT,
    BEL_FLAG_INT,    ///< an integer, within `accepts`
    BEL_FLAG_NUMBER, ///< a number, within `accepts`
    BEL_FLAG_SWITCH, ///< --name and --no_name
    BEL_FLAG_INTS,   ///< integers between commas
    BEL_FLAG_TEXTS,  ///< texts between commas
} bel_flag_kind;

/// Flag of the package. Its value, or its default, is the parameter of the same name
/// (bel_estimator_param, bel_context_param). Checkpoints record it, and `--package FILE --help`
/// lists it.
typedef struct bel_package_flag {
    const char *name; ///< with underscores; not a flag of the command
    bel_flag_kind kind;
    const char *otherwise; ///< default as it would be typed; NULL: none; required for numbers
    const char *accepts;   ///< numbers: "[1, inf)", "(0, 1]"; TEXT: "slow|fast"; NULL: anything
    const char *help;      ///< one sentence
} bel_package_flag;

/// Computes features from a file that a row of the data names: reads `path` and adds fields to
/// `record` (bel_record_add), which already has the row's label. The result must depend only on the
/// file. Several threads call it at once. Opening calls it for the first record. Returns NULL, or
/// an error, which ends the step with the row's origin before its message.
typedef bel_status *bel_feature_fn(void *user, const char *path, bel_record *record);

/// Contents of a shared object. Only name and model_fn are required; others may be NULL or 0.
typedef struct bel_package {
    int abi;                 ///< BEL_PACKAGE_ABI of the headers it was compiled with
    size_t size;             ///< sizeof(bel_package) of them; fields after it count as unset
    const char *name;        ///< name of the model; recorded in checkpoints
    const char *description; ///< one line
    bel_model_fn *model_fn;

    /// Makes the data for each mode, instead of the data flags. Those flags, if given, are
    /// parameters under their names ("train_files", "train_batch_size", …).
    bel_input_fn *input_fn;

    /// Reads a file for each row: the data flags then name CSV files with a column of paths
    /// (--path_column; a relative path starts at its CSV file's folder) and a label. This function
    /// makes each row's fields from its file, and batches are padded (bel_dataset_padded_batch).
    bel_feature_fn *feature_fn;

    const bel_package_flag *flags;
    int flag_count;

    const bel_hook *const *hooks; ///< for the training verbs, each with its `user`
    int hook_count;

    void *user; ///< for the functions above; for the model function: bel_estimator_config()->user
} bel_package;

/// Version of the interface, raised when packages must be recompiled. A package of another version
/// is refused when it is loaded. New fields are added at the end of bel_package and need no new
/// version.
enum { BEL_PACKAGE_ABI = 13 };

/// Exports the package of a shared object, once in it: fields after `size`, by their names.
#define BEL_PACKAGE(...)                                                                           \
    BEL_API extern const bel_package bel_package_entry;                                            \
    const bel_package bel_package_entry = {                                                        \
        .abi = BEL_PACKAGE_ABI, .size = sizeof(bel_package), __VA_ARGS__};

/// Returns a model that comes with Belfry, by name ("linear", "dnn", "cnn", "resnet", "wide_deep",
/// "gru", "lstm", "gpt", "encoder": docs/models.md). NULL: no such model. Static.
BEL_API const bel_package *bel_model_find(const char *name);
/// Returns the same by index, from 0 on. NULL after the last. Static.
BEL_API const bel_package *bel_model_at(int index);

#ifdef __cplusplus
}
#endif

#endif
