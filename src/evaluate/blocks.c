// Each tower has a program, a batch and a thread of the dispatch team, and runs one block at a
// time. A call returns when all of its towers have finished. The caller chooses the blocks, so that
// evaluations with and without helpers share this code. A batch may be empty because of a map; it
// runs nothing, and its instance is NULL.
#include "evaluate/blocks.h"

#include "base/alloc.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/metrics.h"

typedef struct block_tower {
    const bel_evaluation_config *config;
    int64_t block; // block to run, or -1
    bel_forward *forward;
    bel_forward_config program; // its program on the tower's device
    const bel_program_output *outputs;
    int output_count;
    bel_batch *batch;
    bel_instance *instance; // with the outputs; NULL: the batch had no example
    bel_status *status;
} block_tower;

struct bel_blocks {
    const bel_evaluation_config *config;
    block_tower *towers;
    bel_device **devices; // by tower; NULL: the CPU
    bel_block_run *runs;  // by tower
    bel_team *dispatch;
    bel_program_output *outputs;
    int output_count;
    int64_t count;
};

// INVALID_ARGUMENT: an output of PREDICT does not have one row per example, whatever the symbols of
// the graph's shapes promise.
static bel_status *check_rows(const bel_estimator_spec *spec, const bel_instance *instance,
                              int64_t examples)
{
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    int count = bel_spec_outputs(spec, outputs);
    for (int i = 0; i < count; i++) {
        bel_shape shape = bel_instance_output(instance, i).shape;
        if (shape.rank > 0 && shape.dims[0] == examples) continue;
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s must be [batch, …], a row for each of %lld examples, got %s",
                       outputs[i].name, (long long)examples, bel_shape_text(&shape, text));
    }
    return NULL;
}

// Binds a tower's program to its batch. On a GPU whose memory training uses, a batch may not fit.
// The tower then continues on the CPU, with the same bits. With fast arithmetic the bits would
// differ, and which towers fit would be chance.
static bel_status *block_tower_bind(block_tower *tower)
{
    bel_status *status = bel_forward_bind(tower->forward, tower->batch->fields);
    bool full = status != NULL && bel_status_code(status) == BEL_RESOURCE_EXHAUSTED;
    if (!full || tower->program.program.device == NULL) return status;
    if (tower->program.program.gpu_math != BEL_GPU_MATH_EXACT) // other towers may have fit
        return bel_status_wrap(
            status, __FILE__, __LINE__,
            "with fast arithmetic an evaluation cannot continue on the processor");
    bel_log_write(BEL_LOG_WARN, "%s: this evaluates on the processor", bel_status_message(status));
    bel_status_ignore(status); // reported
    bel_forward_destroy(tower->forward);
    tower->forward = NULL;
    tower->program.program.device = NULL;
    BEL_TRY(
        bel_forward_create(&tower->program, tower->outputs, tower->output_count, &tower->forward));
    return bel_forward_bind(tower->forward, tower->batch->fields);
}

// Runs one batch on one tower.
static bel_status *run_block(block_tower *tower)
{
    const bel_evaluation_config *config = tower->config;
    BEL_TRY(bel_input_read(config->input, tower->block, tower->batch));
    if (tower->batch->example_count == 0) return NULL;
    BEL_TRY(block_tower_bind(tower));
    BEL_TRY(bel_forward_run(tower->forward, tower->block));
    tower->instance = bel_forward_instance(tower->forward);
    if (config->built->mode != BEL_MODE_PREDICT) return NULL;
    return check_rows(&config->built->spec, tower->instance, tower->batch->example_count);
}

// Runs on a thread of the dispatch team.
static void run_tower(void *argument, int64_t tile)
{
    bel_blocks *b = argument;
    block_tower *tower = &b->towers[tile];
    if (tower->block < 0) return;
    bel_fault_point("evaluates");
    tower->status = run_block(tower);
}

static void list_outputs(bel_blocks *b)
{
    const bel_estimator_spec *spec = &b->config->built->spec;
    enum { EVAL_OUTPUTS = 2 * BEL_MAX_METRICS + 3, PREDICT_OUTPUTS = BEL_MAX_OUTPUTS + 1 };
    b->outputs = bel_xcalloc((size_t)EVAL_OUTPUTS + PREDICT_OUTPUTS, sizeof *b->outputs);
    if (b->config->built->mode == BEL_MODE_PREDICT) {
        bel_output outputs[BEL_MAX_OUTPUTS + 1];
        b->output_count = bel_spec_outputs(spec, outputs);
        for (int i = 0; i < b->output_count; i++)
            b->outputs[i].value = outputs[i].value;
        return;
    }
    b->outputs[b->output_count++].value = spec->loss;
    if (spec->loss_weight != NULL) b->outputs[b->output_count++].value = spec->loss_weight;
    for (int m = 0; m < spec->metric_count; m++) {
        b->outputs[b->output_count++].value = spec->metrics[m].sum;
        if (spec->metrics[m].weight == NULL) continue;
        b->outputs[b->output_count++].value = spec->metrics[m].weight;
    }
    bool confusion = spec->confusion != NULL && b->config->details != NULL;
    if (confusion) b->outputs[b->output_count++].value = spec->confusion;
}

static bel_status *never_ends(const bel_evaluation_config *config)
{
    bool predicts = config->built->mode == BEL_MODE_PREDICT;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s would never end: the input repeats forever%s",
                   predicts ? "the prediction" : "the evaluation",
                   predicts ? "" : " and steps is not set");
}

static bel_status *init(bel_blocks *b)
{
    const bel_evaluation_config *config = b->config;
    b->count = bel_input_block_count(config->input, true);
    if (config->steps > 0 && config->steps < b->count) b->count = config->steps;
    if (b->count == INT64_MAX) return never_ends(config);
    list_outputs(b);
    BEL_TRY(bel_team_create(config->tower_count, &b->dispatch));
    b->devices = bel_xcalloc((size_t)config->tower_count, sizeof(bel_device *));
    BEL_TRY(bel_cards_choose(&config->cards, config->tower_count, b->devices));
    for (int t = 0; t < config->tower_count; t++) {
        block_tower *tower = &b->towers[t];
        tower->config = config;
        tower->batch = bel_batch_create(config->input);
        tower->program = config->forward;
        tower->program.program.device = b->devices[t];
        tower->outputs = b->outputs;
        tower->output_count = b->output_count;
        BEL_TRY(bel_forward_create(&tower->program, b->outputs, b->output_count, &tower->forward));
    }
    return NULL;
}

bel_status *bel_blocks_create(const bel_evaluation_config *config, bel_blocks **out_blocks)
{
    bel_blocks *b = bel_xcalloc(1, sizeof *b);
    size_t towers = (size_t)config->tower_count;
    b->config = config;
    b->towers = bel_xcalloc(towers, sizeof *b->towers);
    b->runs = bel_xcalloc(towers, sizeof *b->runs);
    bel_status *status = init(b);
    if (status != NULL) {
        bel_blocks_destroy(b);
        return status;
    }
    *out_blocks = b;
    return NULL;
}

void bel_blocks_destroy(bel_blocks *b)
{
    if (b == NULL) return;
    for (int t = 0; t < b->config->tower_count; t++) {
        bel_forward_destroy(b->towers[t].forward);
        if (b->towers[t].batch != NULL) bel_batch_destroy(b->towers[t].batch);
        bel_status_destroy(b->towers[t].status);
    }
    bel_team_destroy(b->dispatch);
    bel_free(b->towers);
    bel_free(b->devices);
    bel_free(b->runs);
    bel_free(b->outputs);
    bel_free(b);
}

int64_t bel_blocks_count(const bel_blocks *b)
{
    return b->count;
}

int bel_blocks_outputs(const bel_blocks *b)
{
    return b->output_count;
}

const bel_value *bel_blocks_output(const bel_blocks *b, int output)
{
    return b->outputs[output].value;
}

bel_status *bel_blocks_run(bel_blocks *b, const int64_t *wanted, const bel_block_run **out_runs)
{
    int towers = b->config->tower_count;
    for (int t = 0; t < towers; t++) {
        b->towers[t].block = wanted[t];
        b->towers[t].instance = NULL;
    }
    bel_team_run(b->dispatch, run_tower, b, towers);
    for (int t = 0; t < towers; t++) {
        block_tower *tower = &b->towers[t];
        bel_status *status = tower->status;
        tower->status = NULL;
        b->runs[t] = (bel_block_run){tower->block, tower->instance, tower->batch};
        if (status != NULL)
            return bel_status_wrap(status, __FILE__, __LINE__, "batch %lld",
                                   (long long)tower->block);
    }
    *out_runs = b->runs;
    return NULL;
}
