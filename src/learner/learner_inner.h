// Internal header of the learner: learner.c (life, a step), files.c (exported files), update.c
// (optimizer), rows.c (tables), state.c (checkpoints), predict.c (predictors of the learner).
//
// A learner combines one replica, its shard and its master. It makes the same operations on the
// same numbers in the same order as they do, without the communication. Work that is trivial for a
// single replica is omitted: sums over replicas, and their scale of 1.
#ifndef BELFRY_LEARNER_LEARNER_INNER_H
#define BELFRY_LEARNER_LEARNER_INNER_H

#include "base/input_segment.h"
#include "belfry/learner.h"
#include "checkpoint/checkpoint.h"
#include "onnx/onnx.h"
#include "ps/client/row_batch.h"
#include "ps/layout/space_update.h"
#include "ps/table/table.h"
#include "runtime/runner.h"

// The exported files, as read by files.c.
typedef struct bel_training_file {
    bel_graph *graph; // from training.onnx
    bel_value *loss;
    bel_value **reports;       // by variable: its gradient, or a state variable's new value; NULL:
                               // no report
    bel_value **row_gradients; // by lookup; NULL: the loss does not depend on it
    bel_port *inputs, *labels;
    int *input_fields, *label_fields; // by port: index of the graph's input
    int input_count, label_count;
    bel_optimizers optimizers;
    char **setting_names, **setting_values; // settings of the training that affect a step
    int setting_count;
    char *prediction; // contents of prediction.onnx
    size_t prediction_bytes;
} bel_training_file;

// A table, with the data of a batch.
typedef struct bel_learner_table {
    bel_table *table;
    int width, group;
    int64_t capacity; // number of ids for which the arrays below have room
    int64_t *ids;     // the batch's, lookup after lookup
    bel_row_batch *batch;
    uint32_t *places;        // by distinct id
    float *distinct;         // rows of the distinct ids
    float *gradients, *sums; // gradients: by position; sums: by distinct id
    float *rows;             // by position
    size_t memory_bytes;     // one allocation for distinct and the arrays after it
} bel_learner_table;

struct bel_learner {
    bel_training_file file;
    int threads, keep_checkpoint_max;
    bool torn; // a step failed halfway: the learner can only be destroyed

    bel_layout *layout;
    bel_team *team;
    bel_runner *runner;
    bel_program_output *outputs; // reports, row gradients, loss
    int output_count;
    int *output_variables; // by report output: its variable
    int *lookup_outputs;   // by lookup: its output; -1: no output
    int report_count;
    bel_shape *shapes; // by graph input …
    const void **data; // … data of the batch; NULL: rows

    // With the layout of the space.
    float *values, *gradients, *averages; // averages is NULL if not kept
    float *slots[BEL_RULE_MAX_SLOTS];
    float **slot_starts; // by variable and slot, as in bel_space_values
    bool *reported;      // by variable
    bel_space_update update;
    bel_learner_table *tables;

    // The rest of a checkpoint.
    int64_t step, generation;
    uint64_t seed;
    bel_input_segment *segments;
    int segment_count;
    char **setting_names, **setting_values;
    int setting_count;
};

// files.c: reads a folder except its checkpoints. Free with bel_training_file_deinit, also after an
// error.
bel_status *bel_training_file_read(const char *folder, bel_training_file *out) BEL_MUST_USE;
void bel_training_file_deinit(bel_training_file *file);
// Reads a setting of the training that is a number; *out_number: 0 if it is not set. DATA_LOSS: it
// is no number, or below 0.
bel_status *bel_training_file_number(const bel_training_file *file, const char *name,
                                     int64_t *out_number) BEL_MUST_USE;
bel_status *bel_training_file_real(const bel_training_file *file, const char *name,
                                   double *out_number) BEL_MUST_USE;

// update.c: allocates memory for the optimizer; applies a step's update to all variables, from the
// gradients. The update cannot fail.
bel_status *bel_learner_make_update(bel_learner *learner) BEL_MUST_USE;
void bel_learner_update(bel_learner *learner);

// rows.c
bel_status *bel_learner_make_tables(bel_learner *learner) BEL_MUST_USE;
void bel_learner_destroy_tables(bel_learner *learner);
// Looks up the rows of a batch's ids and binds them.
bel_status *bel_learner_bind_rows(bel_learner *learner, bel_instance *instance) BEL_MUST_USE;
bel_status *bel_learner_update_rows(bel_learner *learner) BEL_MUST_USE;

// state.c: reads a checkpoint's step, values, slots, averages, rows and settings.
bel_status *bel_learner_restore(bel_learner *learner, const bel_ckpt_reader *reader) BEL_MUST_USE;

// The error after a step that failed halfway.
static inline bel_status *bel_learner_refuse_torn(void)
{
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "a step of this learner ran out of memory in the middle; hint: load it again");
}

// Returns the layout of a variable, with its `offset` in the learner's arrays.
static inline const bel_layout_variable *bel_learner_variable(const bel_learner *learner, int v)
{
    return &learner->layout->variables[v];
}

#endif
