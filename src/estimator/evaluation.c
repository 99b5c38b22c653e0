// Evaluation and prediction: groups of `tower_count` batches run side by side; between groups
// the results are taken in block order. So the sums, which are added in double, do not depend on
// how many towers there are or which of them was first, and neither does the order in which
// examples are handed out.
//
// A group waits for its slowest tower. A batch without examples, which a map may leave, runs
// nothing and adds nothing. Prediction does not ask `between`.
#include "estimator/evaluation.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/thread.h"
#include "estimator/metrics.h"

typedef struct eval_tower { // its part of a group
    const bel_evaluation_config *config;
    int64_t block; // to run, or -1: nothing in this group
    bel_forward *forward;
    bel_batch *batch;
    bel_instance *instance; // with the outputs; NULL: the batch had no example
    bel_status *status;
} eval_tower;

typedef struct group {
    const bel_evaluation_config *config;
    eval_tower *towers;
    bel_team *dispatch;
    bel_program_output *outputs;
    int output_count;
    int64_t block_count;
    int64_t next_block;
} group;

// One batch on one tower.
static bel_status *run_block(eval_tower *tower)
{
    const bel_evaluation_config *config = tower->config;
    BEL_TRY(bel_input_read(config->input, tower->block, tower->batch));
    if (tower->batch->example_count == 0) return NULL;
    BEL_TRY(bel_forward_run(tower->forward, tower->batch->fields, tower->block, &tower->instance));
    if (config->forward.built->mode != BEL_MODE_PREDICT) return NULL;
    return bel_forward_check_rows(tower->forward, tower->instance, tower->batch->example_count);
}

// On a thread of the dispatch team.
static void run_tower(void *argument, int64_t tile)
{
    group *g = argument;
    eval_tower *tower = &g->towers[tile];
    if (tower->block >= 0) tower->status = run_block(tower);
}

// The order in which add_batch reads them: the loss, its weight, then of each metric sum and
// weight.
static void list_outputs(group *g)
{
    const bel_estimator_spec *spec = &g->config->forward.built->spec;
    enum { EVAL_OUTPUTS = 2 * BEL_MAX_METRICS + 3, PREDICT_OUTPUTS = BEL_MAX_OUTPUTS + 1 };
    g->outputs = bel_xcalloc((size_t)EVAL_OUTPUTS + PREDICT_OUTPUTS, sizeof *g->outputs);
    if (g->config->forward.built->mode == BEL_MODE_PREDICT) {
        bel_output outputs[BEL_MAX_OUTPUTS + 1];
        g->output_count = bel_spec_outputs(spec, outputs);
        for (int i = 0; i < g->output_count; i++)
            g->outputs[i].value = outputs[i].value;
        return;
    }
    g->outputs[g->output_count++].value = spec->loss;
    if (spec->loss_weight != NULL) g->outputs[g->output_count++].value = spec->loss_weight;
    for (int m = 0; m < spec->metric_count; m++) {
        g->outputs[g->output_count++].value = spec->metrics[m].sum;
        if (spec->metrics[m].weight == NULL) continue;
        g->outputs[g->output_count++].value = spec->metrics[m].weight;
    }
    bool confusion = spec->confusion != NULL && g->config->details != NULL;
    if (confusion) g->outputs[g->output_count++].value = spec->confusion;
}

static bel_status *never_ends(const bel_evaluation_config *config)
{
    bool predicts = config->forward.built->mode == BEL_MODE_PREDICT;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s would never end: the input repeats forever%s",
                   predicts ? "the prediction" : "the evaluation",
                   predicts ? "" : " and steps is not set");
}

// Takes part of what it makes on an error, too: group_deinit frees it in any case.
static bel_status *group_init(group *g, const bel_evaluation_config *config)
{
    *g = (group){.config = config,
                 .block_count = bel_input_block_count(config->input, true),
                 .towers = bel_xcalloc((size_t)config->tower_count, sizeof *g->towers)};
    if (config->steps > 0 && config->steps < g->block_count) g->block_count = config->steps;
    if (g->block_count == INT64_MAX) return never_ends(config);
    list_outputs(g);
    BEL_TRY(bel_team_create(config->tower_count, &g->dispatch));
    for (int t = 0; t < config->tower_count; t++) {
        eval_tower *tower = &g->towers[t];
        tower->config = config;
        tower->batch = bel_batch_create(config->input);
        BEL_TRY(bel_forward_create(&config->forward, g->outputs, g->output_count, &tower->forward));
    }
    return NULL;
}

static void group_deinit(group *g)
{
    for (int t = 0; t < g->config->tower_count; t++) {
        bel_forward_destroy(g->towers[t].forward);
        if (g->towers[t].batch != NULL) bel_batch_destroy(g->towers[t].batch);
        bel_status_destroy(g->towers[t].status);
    }
    bel_team_destroy(g->dispatch);
    bel_free(g->towers);
    bel_free(g->outputs);
}

// Runs the next group; *out_more is false when there was no block left.
static bel_status *run_group(group *g, bool *out_more)
{
    *out_more = g->next_block < g->block_count;
    if (!*out_more) return NULL;
    for (int t = 0; t < g->config->tower_count; t++) {
        g->towers[t].block = g->next_block < g->block_count ? g->next_block++ : -1;
        g->towers[t].instance = NULL;
    }
    bel_team_run(g->dispatch, run_tower, g, g->config->tower_count);
    for (int t = 0; t < g->config->tower_count; t++) {
        bel_status *status = g->towers[t].status;
        g->towers[t].status = NULL;
        if (status == NULL) continue;
        return bel_status_wrap(status, __FILE__, __LINE__, "batch %lld",
                               (long long)g->towers[t].block);
    }
    return NULL;
}

typedef struct totals {
    double loss_sum, loss_weight, batch_loss_sum;
    int64_t examples, batches;
    bel_metric_sums metrics[BEL_MAX_METRICS];
    bel_details *details; // NULL: not wanted
} totals;

// Output of the tower's last run.
static double scalar_of(const eval_tower *tower, int output)
{
    return (double)*(const float *)bel_instance_output(tower->instance, output).data;
}

// The batch counts by its weight where the model gives one, else by its examples.
static void add_batch(totals *t, const eval_tower *tower, const bel_estimator_spec *spec)
{
    if (tower->block < 0 || tower->instance == NULL) return;
    int output = 0;
    double loss = scalar_of(tower, output++), share = (double)tower->batch->example_count;
    if (spec->loss_weight != NULL) share = scalar_of(tower, output++);
    t->examples += tower->batch->example_count;
    if (share != 0) { // else the mean is over nothing
        t->loss_sum += loss * share;
        t->loss_weight += share;
        t->batch_loss_sum += loss;
        t->batches++;
    }
    for (int m = 0; m < spec->metric_count; m++) {
        bel_tensor sum = bel_instance_output(tower->instance, output++), weight;
        bool weighted = spec->metrics[m].weight != NULL;
        if (weighted) weight = bel_instance_output(tower->instance, output++);
        bel_metric_sums_add(&t->metrics[m], &sum, weighted ? &weight : NULL,
                            tower->batch->example_count);
    }
    if (t->details == NULL || t->details->classes == 0) return;
    const float *counts = bel_instance_output(tower->instance, output).data;
    for (int i = 0; i < t->details->classes * t->details->classes; i++)
        t->details->confusion[i] += (double)counts[i];
}

// All groups, in block order.
static bel_status *add_batches(group *g, totals *t)
{
    for (bool more = true; more;) {
        BEL_TRY(run_group(g, &more));
        for (int i = 0; more && i < g->config->tower_count; i++)
            add_batch(t, &g->towers[i], &g->config->forward.built->spec);
        if (g->config->between != NULL) BEL_TRY(g->config->between(g->config->context));
    }
    if (t->examples > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "the evaluation input has no example");
}

// Means over nothing are NaN.
static void fill_result(totals *t, const bel_estimator_spec *spec, bel_result *out_result)
{
    out_result->loss = t->loss_weight != 0 ? t->loss_sum / t->loss_weight : NAN;
    out_result->batch_mean_loss = t->batches > 0 ? t->batch_loss_sum / (double)t->batches : NAN;
    out_result->examples = t->examples;
    out_result->metric_count = spec->metric_count;
    for (int m = 0; m < spec->metric_count; m++) {
        bel_snprintf(out_result->metrics[m].name, sizeof out_result->metrics[m].name, "%s",
                     spec->metrics[m].name);
        out_result->metrics[m].value = bel_metric_sums_value(&t->metrics[m]);
    }
}

static void begin_details(const group *g, totals *t)
{
    const bel_estimator_spec *spec = &g->config->forward.built->spec;
    t->details = g->config->details;
    if (t->details == NULL) return;
    bel_details_deinit(t->details);
    t->details->step = g->config->forward.step;
    if (spec->confusion == NULL) return;
    int classes = (int)bel_value_shape(spec->confusion).dims[0];
    t->details->classes = classes;
    t->details->confusion = bel_xcalloc((size_t)classes * (size_t)classes, sizeof(double));
}

static void finish_details(totals *t, const bel_estimator_spec *spec)
{
    bel_details *details = t->details;
    for (int m = 0; details != NULL && m < spec->metric_count; m++) {
        if (spec->metrics[m].kind != BEL_METRIC_AUC) continue;
        if (details->roc_count == BEL_MOST_ROCS) return;
        bel_metric_sums_roc(&t->metrics[m], &details->rocs[details->roc_count]);
        details->roc_count += details->rocs[details->roc_count].count > 0;
    }
}

static bel_status *evaluate(group *g, bel_result *out_result)
{
    totals t = {0};
    const bel_estimator_spec *spec = &g->config->forward.built->spec;
    begin_details(g, &t);
    for (int m = 0; m < spec->metric_count; m++)
        bel_metric_sums_init(&t.metrics[m], &spec->metrics[m]);
    bel_status *status = add_batches(g, &t);
    if (status == NULL) fill_result(&t, spec, out_result);
    if (status == NULL) finish_details(&t, spec);
    for (int m = 0; m < spec->metric_count; m++)
        bel_metric_sums_deinit(&t.metrics[m]);
    return status;
}

bel_status *bel_evaluation_run(const bel_evaluation_config *config, bel_result *out_result)
{
    group g;
    bel_status *status = group_init(&g, config);
    if (status == NULL) status = evaluate(&g, out_result);
    group_deinit(&g);
    return status;
}

// Hands out one batch: row i of an output is of example i.
static bel_status *deliver(const eval_tower *tower, int64_t *example, bel_predict_fn *each,
                           void *user)
{
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    bel_row rows[BEL_MAX_OUTPUTS + 1];
    size_t bytes[BEL_MAX_OUTPUTS + 1];
    if (tower->block < 0 || tower->instance == NULL) return NULL;
    int count = bel_spec_outputs(&tower->config->forward.built->spec, outputs);
    for (int o = 0; o < count; o++) {
        bel_tensor *row = &rows[o].value;
        rows[o] = (bel_row){outputs[o].name, bel_instance_output(tower->instance, o)};
        row->shape.rank--;
        memmove(row->shape.dims, row->shape.dims + 1,
                (size_t)row->shape.rank * sizeof row->shape.dims[0]);
        bytes[o] = bel_tensor_bytes(row);
    }
    for (int64_t i = 0; i < tower->batch->example_count; i++) {
        BEL_TRY(each(user, (*example)++, rows, count));
        for (int o = 0; o < count; o++)
            rows[o].value.data = (char *)rows[o].value.data + bytes[o];
    }
    return NULL;
}

bel_status *bel_prediction_run(const bel_evaluation_config *config, bel_predict_fn *each,
                               void *user)
{
    group g;
    int64_t example = 0;
    bool more = true;
    bel_status *status = group_init(&g, config);
    while (status == NULL && more) {
        status = run_group(&g, &more);
        for (int t = 0; more && status == NULL && t < config->tower_count; t++)
            status = deliver(&g.towers[t], &example, each, user);
    }
    group_deinit(&g);
    return status;
}
