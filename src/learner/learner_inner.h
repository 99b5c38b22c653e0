// The inside of a learner, for learner.c (its life, a step), files.c (what was exported), update.c
// (the optimizer), rows.c (tables), state.c (checkpoints), predict.c (predictors of it).
//
// A learner is one replica, its shard and its master in one: the same operations on the same
// numbers in the same order as theirs, without what brings them together. Where they do something
// with one replica alone it is left out here: sums over replicas, their scale of 1.
#ifndef BELFRY_LEARNER_LEARNER_INNER_H
#define BELFRY_LEARNER_LEARNER_INNER_H

#include "base/input_segment.h"
#include "belfry/learner.h"
#include "checkpoint/checkpoint.h"
#include "onnx/onnx.h"
#include "optim/groups.h"
#include "ps/client/row_batch.h"
#include "ps/layout/layout.h"
#include "ps/table/table.h"
#include "runtime/runner.h"

// What was exported, as files.c has read it.
typedef struct bel_training_file {
    bel_graph *graph; // of training.onnx
    bel_value *loss;
    bel_value **reports;       // by variable: its gradient, or what a state variable becomes; NULL:
                               // none
    bel_value **row_gradients; // by lookup; NULL: the loss does not depend on it
    bel_port *inputs, *labels;
    int *input_fields, *label_fields; // by port: the graph's input
    int input_count, label_count;
    bel_optimizers optimizers;
    char **setting_names, **setting_values; // of the training, on which a step depends
    int setting_count;
    char *prediction; // bytes of prediction.onnx
    size_t prediction_bytes;
} bel_training_file;

// A table, with what a batch has of it.
typedef struct bel_learner_table {
    bel_table *table;
    int width, group;
    int64_t capacity; // ids that the following have room for
    int64_t *ids;     // of the batch, lookup after lookup
    bel_row_batch *batch;
    uint32_t *places;        // by distinct id
    float *distinct;         // its rows
    float *gradients, *sums; // by position, by distinct id
    float *rows;             // by position
    size_t memory_bytes;     // of distinct and what follows, in one piece
} bel_learner_table;

struct bel_learner {
    bel_training_file file;
    int threads, keep_checkpoint_max;
    bool torn; // a step was left in the middle: only its destruction is left

    bel_layout *layout;
    bel_team *team;
    bel_runner *runner;
    bel_program_output *outputs; // reports, row gradients, the loss
    int output_count;
    int *output_variables; // by report among the outputs: the variable
    int *lookup_outputs;   // by lookup: its output; -1: none
    int report_count;
    bel_shape *shapes; // by graph input …
    const void **data; // … as the batch has them; NULL: rows

    // Laid out as the space.
    float *values, *gradients, *averages; // averages NULL: not kept
    float *slots[BEL_RULE_MAX_SLOTS];
    float *directions;     // needs_norm: of the first pass
    double *grain_squares; // needs_norm
    float *factors;        // needs_norm: by variable
    bool needs_norm, trusts;
    bel_rule_groups groups;
    int *group_of; // by variable
    float average_rest;
    bel_learner_table *tables;

    // What a checkpoint says besides.
    int64_t step, generation;
    uint64_t seed;
    bel_input_segment *segments;
    int segment_count;
    char **setting_names, **setting_values;
    int setting_count;
};

// files.c: all of a folder but checkpoints. Free it with bel_training_file_deinit, also after an
// error.
bel_status *bel_training_file_read(const char *folder, bel_training_file *out) BEL_MUST_USE;
void bel_training_file_deinit(bel_training_file *file);

// update.c: memory for the optimizer; a step's update of all variables, from the gradients, which
// cannot fail.
bel_status *bel_learner_make_update(bel_learner *learner) BEL_MUST_USE;
void bel_learner_update(bel_learner *learner);

// rows.c
bel_status *bel_learner_make_tables(bel_learner *learner) BEL_MUST_USE;
void bel_learner_destroy_tables(bel_learner *learner);
// Looks the rows of a batch's ids up and binds them.
bel_status *bel_learner_bind_rows(bel_learner *learner, bel_instance *instance) BEL_MUST_USE;
bel_status *bel_learner_update_rows(bel_learner *learner) BEL_MUST_USE;

// state.c: the step, values, slots, averages, rows and settings of a checkpoint.
bel_status *bel_learner_restore(bel_learner *learner, const bel_ckpt_reader *reader) BEL_MUST_USE;

// After a step that was left in the middle.
static inline bel_status *bel_learner_refuse_torn(void)
{
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "a step of this learner ran out of memory in the middle; hint: load it again");
}

// What the learner keeps of a variable, which lies at `offset` of an array.
static inline const bel_layout_variable *bel_learner_variable(const bel_learner *learner, int v)
{
    return &learner->layout->variables[v];
}

#endif
