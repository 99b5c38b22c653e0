// Estimator made from flags: the common part of train, evaluate and predict.
#ifndef BELFRY_TOOLS_SETUP_SETUP_H
#define BELFRY_TOOLS_SETUP_SETUP_H

#include "model/remote_input.h"
#include "setup/inputs.h"

#define BEL_PART_OF_RANKS "ranks" // a value of --part

// Everything that a verb needs to call the estimator. Free with bel_setup_destroy.
typedef struct bel_setup {
    const bel_package *model;
    bel_estimator *estimator;
    bel_input_fn *input_fn; // the package's, or bel_flag_input_open
    void *input_user;
    bel_flag_input input; // for bel_flag_input_open
    char *id_columns;     // input's, as are the next four
    char *id_list_columns;
    char *length_column;      // input's
    char *label_column;       // input's
    bel_columns *columns;     // input's
    bool remembers;           // the columns are those of the checkpoint that training resumes from
    double threshold;         // for two classes
    int64_t eval_every_steps; // a table's default; 0: at checkpoints
    char *checkpoint;         // evaluate, predict: folder to read
    char *model_dir;
    char *job_file;           // train: text of job.yaml, or NULL
    bel_options *training;    // --held_out: the training's flags; NULL: unset
    bool is_master;           // training: this process writes to the model's folder
    bel_tokenizer *tokenizer; // models of texts: theirs; NULL: unknown
    char *onnx_file;          // file of model "onnx"; NULL: another model
    bel_dtype vector_dtype;   // type in which this model reads CSV numbers; else F32
    bel_remote_input *remote; // training input of the workers, without access to it here; or NULL
} bel_setup;

// For training: all settings come from flags. `job_file`: text of job.yaml, or NULL.
// INVALID_ARGUMENT: flags that are missing or exclude each other; errors of packages and of
// bel_estimator_create.
bel_status *bel_setup_for_training(const bel_options *options, const char *job_file,
                                   bel_setup **out_setup) BEL_MUST_USE;

// The same for commands that do not train. Without --model_dir they use the current folder, but do
// not write to it.
bel_status *bel_setup_for_looking(const bel_options *options, bel_setup **out_setup) BEL_MUST_USE;

// Checks for flags of a run that clash, in a job with `worker_count` workers, without opening
// anything. INVALID_ARGUMENT.
bel_status *bel_setup_check_run(const bel_options *options, int worker_count) BEL_MUST_USE;

// Returns the number of GPUs that a training by these flags uses in this process; 0: no GPU, or
// flags that clash.
int bel_setup_card_count(const bel_options *options);

// For reading a checkpoint (--checkpoint, or the newest in --model_dir): model and parameters are
// those of its training, unless a flag differs. NOT_FOUND: there is no checkpoint; DATA_LOSS: it is
// damaged; FAILED_PRECONDITION: it needs a --package.
bel_status *bel_setup_for_reading(const bel_options *options, bel_setup **out_setup) BEL_MUST_USE;

// Returns the model folder that a verb reads: --model_dir, or that of --checkpoint; NULL: neither
// is given. Free with bel_free.
char *bel_setup_folder(const bel_options *options);

// Returns the goal of --best_metric, as --best_goal says.
bel_goal bel_setup_goal(const bel_options *options);

void bel_setup_destroy(bel_setup *setup);

#endif
