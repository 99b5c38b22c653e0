// From flags to an estimator: what train, evaluate and predict have in common.
#ifndef BELFRY_TOOLS_SETUP_H
#define BELFRY_TOOLS_SETUP_H

#include "inputs.h"

#define BEL_PART_OF_RANKS "ranks" // of --part

// Everything a verb needs to call the estimator. Free with bel_setup_destroy.
typedef struct bel_setup {
    const bel_package *model;
    bel_estimator *estimator;
    bel_input_fn *input_fn; // of the package, or bel_flag_input_open
    void *input_user;
    bel_flag_input input; // for bel_flag_input_open
    char *id_columns;     // of it
    char *id_list_columns;
    char *length_column;      // of it
    char *label_column;       // of it
    bel_columns *columns;     // of it
    bool remembers;           // they are those of the checkpoint that the training goes on from
    double threshold;         // of two classes
    int64_t eval_every_steps; // of a table, where no flag says it; 0: at checkpoints
    char *checkpoint;         // evaluate, predict: the folder that is read
    char *model_dir;
    char *job_file;         // train: what job.yaml gets, or NULL
    bel_options *training;  // --held_out: its flags; NULL: other rows are read
    char *onnx_file;        // of model "onnx"; NULL: it is another one
    bel_dtype vector_dtype; // of the numbers of a CSV file, as that model takes them; else F32
} bel_setup;

// For training: all settings come from flags. `job_file` is what job.yaml gets, or NULL.
// INVALID_ARGUMENT: flags that are missing or exclude each other; errors of packages and of
// bel_estimator_create.
bel_status *bel_setup_for_training(const bel_options *options, const char *job_file,
                                   bel_setup **out_setup) BEL_MUST_USE;

// The same for commands that train nothing: without --model_dir it is the current folder, to which
// nobody writes.
bel_status *bel_setup_for_looking(const bel_options *options, bel_setup **out_setup) BEL_MUST_USE;

// Flags of a run that clash, of a job with so many workers; nothing is opened. INVALID_ARGUMENT.
bel_status *bel_setup_check_run(const bel_options *options, int worker_count) BEL_MUST_USE;

// GPUs that a training by these flags in this process asks for; 0: none, or flags that clash.
int bel_setup_card_count(const bel_options *options);

// For reading a checkpoint (--checkpoint, or the newest in --model_dir): model and parameters are
// those that it was trained with, unless a flag says otherwise. NOT_FOUND: there is no checkpoint;
// DATA_LOSS: it is damaged; FAILED_PRECONDITION: it needs a --package.
bel_status *bel_setup_for_reading(const bel_options *options, bel_setup **out_setup) BEL_MUST_USE;

// The model's folder that a verb reads: --model_dir, or that of --checkpoint; NULL: neither is
// given. Free with bel_free.
char *bel_setup_folder(const bel_options *options);

// Of --best_metric: as --best_goal says.
bel_goal bel_setup_goal(const bel_options *options);

void bel_setup_destroy(bel_setup *setup);

#endif
