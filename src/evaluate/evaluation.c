// Evaluation and prediction. Batches run in groups of `tower_count` side by side (blocks.h), and in
// an evaluation helpers may run some, too. A batch's sums are kept until all batches before it have
// arrived. So the totals, which are added in double, do not depend on the number and speed of
// towers and helpers, and prediction delivers examples in order.
//
// Blocks are assigned in order and stay within a window after the first missing one, so memory is
// bounded. When all are assigned, towers run those that helpers still have, from the first on: an
// evaluation never waits for a helper.
//
// A group waits for its slowest tower. Prediction does not call `between`.
#include "evaluate/evaluation.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "evaluate/blocks.h"
#include "model/metrics.h"

// --- Sums of a batch ---------------------------------------------------------------------------

// List and numbers in one allocation, which begins with the list.
typedef struct sums_memory {
    bel_batch_sums sums;
    int64_t *memory; // OWN
} sums_memory;

static sums_memory make_sums(int64_t block, int64_t examples, int output_count, int64_t values)
{
    size_t lists = (size_t)output_count * sizeof(int64_t);
    int64_t *memory = bel_xcalloc(1, lists + (size_t)values * sizeof(float) + 1);
    return (sums_memory){.sums = {.block = block,
                                  .examples = examples,
                                  .output_count = output_count,
                                  .elements = memory,
                                  .values = (float *)(void *)(memory + output_count)},
                         .memory = memory};
}

// Copies the concatenated outputs of a run; no outputs if the batch had no example.
static sums_memory take_run(const bel_block_run *run, int output_count)
{
    int64_t all = 0;
    int count = run->instance != NULL ? output_count : 0;
    for (int i = 0; i < count; i++) {
        const bel_tensor output = bel_instance_output(run->instance, i);
        all += bel_shape_elements(&output.shape);
    }
    int64_t examples = run->instance != NULL ? run->batch->example_count : 0;
    sums_memory made = make_sums(run->block, examples, count, all);
    float *to = (float *)(void *)(made.memory + count);
    for (int i = 0; i < count; i++) {
        const bel_tensor output = bel_instance_output(run->instance, i);
        made.memory[i] = bel_shape_elements(&output.shape);
        memcpy(to, output.data, (size_t)made.memory[i] * sizeof *to);
        to += made.memory[i];
    }
    return made;
}

static sums_memory copy_sums(const bel_batch_sums *from)
{
    int64_t all = 0;
    for (int i = 0; i < from->output_count; i++)
        all += from->elements[i];
    sums_memory made = make_sums(from->block, from->examples, from->output_count, all);
    for (int i = 0; i < from->output_count; i++)
        made.memory[i] = from->elements[i];
    if (all > 0)
        memcpy(made.memory + from->output_count, from->values, (size_t)all * sizeof(float));
    return made;
}

// --- Sums over batches ---------------------------------------------------------------------------

typedef struct totals {
    double loss_sum, loss_weight, batch_loss_sum;
    int64_t examples, batches;
    bel_metric_sums metrics[BEL_MAX_METRICS];
    bel_details *details; // NULL: not wanted
} totals;

// Cursor that reads a batch's outputs in order.
typedef struct cursor {
    const bel_batch_sums *sums;
    int output;
    const float *at;
} cursor;

// The next output, which is `value` of the graph. If it has two dimensions, the second may be open.
static bel_tensor next_output(cursor *c, const bel_value *value)
{
    union {
        const float *read;
        void *view;
    } data = {.read = c->at};
    int64_t elements = c->sums->elements[c->output++];
    bel_tensor tensor = {
        .dtype = BEL_DTYPE_F32, .shape = bel_value_shape(value), .data = data.view};
    if (tensor.shape.rank == 2) tensor.shape.dims[1] = elements / tensor.shape.dims[0];
    c->at += elements;
    return tensor;
}

static double next_scalar(cursor *c, const bel_value *value)
{
    const bel_tensor tensor = next_output(c, value);
    return (double)*(const float *)tensor.data;
}

// Adds a batch by its weight if the model gives one, else by its number of examples.
static void add_batch(totals *t, const bel_batch_sums *sums, const bel_estimator_spec *spec)
{
    cursor c = {sums, 0, sums->values};
    if (sums->examples == 0) return;
    double loss = next_scalar(&c, spec->loss), share = (double)sums->examples;
    if (spec->loss_weight != NULL) share = next_scalar(&c, spec->loss_weight);
    t->examples += sums->examples;
    if (share != 0) { // otherwise the mean is undefined
        t->loss_sum += loss * share;
        t->loss_weight += share;
        t->batch_loss_sum += loss;
        t->batches++;
    }
    for (int m = 0; m < spec->metric_count; m++) {
        const bel_metric *metric = &spec->metrics[m];
        bel_tensor sum = next_output(&c, metric->sum), weight;
        if (metric->weight != NULL) weight = next_output(&c, metric->weight);
        bel_metric_sums_add(&t->metrics[m], &sum, metric->weight != NULL ? &weight : NULL,
                            sums->examples);
    }
    if (t->details == NULL || t->details->classes == 0) return;
    const float *counts = next_output(&c, spec->confusion).data;
    for (int i = 0; i < t->details->classes * t->details->classes; i++)
        t->details->confusion[i] += (double)counts[i];
}

// --- Batches in order ----------------------------------------------------------------------------

enum { WINDOW = 1024, MOST_GIVEN = 32 };

typedef struct dealing {
    const bel_evaluation_config *config;
    bel_blocks *blocks;
    int64_t *wanted;            // by tower
    int64_t added, next, end;   // blocks: first not added; next to begin; end
    sums_memory window[WINDOW]; // by block modulo WINDOW; NULL memory: not received
} dealing;

// Keeps the first result of a block; all are the same.
static void dealing_keep(dealing *d, sums_memory made)
{
    int64_t block = made.sums.block;
    sums_memory *to = &d->window[block % WINDOW];
    if (block < d->added || block >= d->next || to->memory != NULL) {
        bel_free(made.memory);
    } else {
        *to = made;
    }
}

// Whether outputs have the model's shapes: a helper may run another model.
static bool dealing_fits(const dealing *d, const bel_batch_sums *sums)
{
    if (sums->block < d->added || sums->block >= d->next || sums->examples < 0) return false;
    if (sums->examples == 0) return sums->output_count == 0;
    if (sums->output_count != bel_blocks_outputs(d->blocks)) return false;
    for (int i = 0; i < sums->output_count; i++) {
        bel_shape shape = bel_value_shape(bel_blocks_output(d->blocks, i));
        int64_t closed = bel_shape_elements(&shape), have = sums->elements[i];
        bool open = closed < 0 && shape.rank == 2 && shape.dims[0] > 0 && have >= 0;
        if (open ? have % shape.dims[0] != 0 : have != closed) return false;
    }
    return true;
}

// Gives helpers large shares of blocks, but few at a time near the end.
static void give_to_helpers(dealing *d)
{
    const bel_evaluation_helpers *helpers = d->config->helpers;
    int64_t limit = d->added + WINDOW < d->end ? d->added + WINDOW : d->end;
    for (bool given = helpers != NULL; given;) {
        int64_t count = (d->end - d->next) / 16;
        if (count > MOST_GIVEN) count = MOST_GIVEN;
        if (count < 1) count = 1;
        if (d->next + count > limit) return;
        given = helpers->give(helpers->context, d->next, count);
        if (given) d->next += count;
    }
}

static void take_from_helpers(dealing *d)
{
    bel_batch_sums sums;
    const bel_evaluation_helpers *helpers = d->config->helpers;
    while (helpers != NULL && helpers->take(helpers->context, &sums))
        if (dealing_fits(d, &sums)) dealing_keep(d, copy_sums(&sums));
}

// Chooses unassigned blocks, then those that helpers still have.
static void dealing_choose(dealing *d)
{
    int64_t late = d->added, begun = d->next;
    for (int t = 0; t < d->config->tower_count; t++) {
        d->wanted[t] = -1;
        if (d->next < d->end && d->next < d->added + WINDOW) {
            d->wanted[t] = d->next++;
            continue;
        }
        while (late < begun && d->window[late % WINDOW].memory != NULL)
            late++;
        if (late < begun) d->wanted[t] = late++;
    }
}

static void add_ready(dealing *d, totals *t)
{
    for (; d->added < d->next; d->added++) {
        sums_memory *next = &d->window[d->added % WINDOW];
        if (next->memory == NULL) return;
        add_batch(t, &next->sums, &d->config->built->spec);
        bel_free(next->memory);
        next->memory = NULL;
    }
}

static bel_status *run_chosen(dealing *d)
{
    const bel_block_run *runs;
    BEL_TRY(bel_blocks_run(d->blocks, d->wanted, &runs));
    for (int i = 0; i < d->config->tower_count; i++)
        if (runs[i].block >= 0) dealing_keep(d, take_run(&runs[i], bel_blocks_outputs(d->blocks)));
    return NULL;
}

static bel_status *add_batches(dealing *d, totals *t)
{
    while (d->added < d->end) {
        give_to_helpers(d);
        dealing_choose(d);
        BEL_TRY(run_chosen(d));
        if (d->config->between != NULL) BEL_TRY(d->config->between(d->config->context));
        take_from_helpers(d);
        add_ready(d, t);
    }
    if (t->examples > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "the evaluation input has no example");
}

// --- Results -------------------------------------------------------------------------------------

// Means without examples are NaN.
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

static void begin_details(const bel_evaluation_config *config, totals *t)
{
    const bel_estimator_spec *spec = &config->built->spec;
    t->details = config->details;
    if (t->details == NULL) return;
    bel_details_deinit(t->details);
    t->details->step = config->forward.step;
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

static bel_status *dealing_evaluate(dealing *d, bel_result *out_result)
{
    totals t = {0};
    const bel_estimator_spec *spec = &d->config->built->spec;
    begin_details(d->config, &t);
    for (int m = 0; m < spec->metric_count; m++)
        bel_metric_sums_init(&t.metrics[m], &spec->metrics[m]);
    bel_status *status = add_batches(d, &t);
    if (status == NULL) fill_result(&t, spec, out_result);
    if (status == NULL) finish_details(&t, spec);
    for (int m = 0; m < spec->metric_count; m++)
        bel_metric_sums_deinit(&t.metrics[m]);
    return status;
}

bel_status *bel_evaluation_run(const bel_evaluation_config *config, bel_result *out_result)
{
    dealing *d = bel_xcalloc(1, sizeof *d);
    d->config = config;
    d->wanted = bel_xcalloc((size_t)config->tower_count, sizeof *d->wanted);
    bel_status *status = bel_blocks_create(config, &d->blocks);
    if (status == NULL) d->end = bel_blocks_count(d->blocks);
    if (status == NULL) status = dealing_evaluate(d, out_result);
    for (int i = 0; i < WINDOW; i++)
        bel_free(d->window[i].memory);
    bel_blocks_destroy(d->blocks);
    bel_free(d->wanted);
    bel_free(d);
    return status;
}

bel_status *bel_evaluation_run_blocks(bel_blocks *blocks, int tower_count, int64_t first,
                                      int64_t count, bool (*stop)(void *context),
                                      bel_batch_sums_fn *take, void *context)
{
    int64_t *wanted = bel_xcalloc((size_t)tower_count, sizeof *wanted), end = first + count;
    bel_status *status = NULL;
    while (status == NULL && first < end && !stop(context)) {
        const bel_block_run *runs;
        for (int t = 0; t < tower_count; t++)
            wanted[t] = first < end ? first++ : -1;
        status = bel_blocks_run(blocks, wanted, &runs);
        for (int t = 0; status == NULL && t < tower_count; t++) {
            if (runs[t].block < 0) continue;
            sums_memory made = take_run(&runs[t], bel_blocks_outputs(blocks));
            take(context, &made.sums);
            bel_free(made.memory);
        }
    }
    bel_free(wanted);
    return status;
}

// --- Prediction ----------------------------------------------------------------------------------

// Delivers one batch: row i of an output belongs to example i.
static bel_status *evaluation_deliver(const bel_estimator_spec *spec, const bel_block_run *run,
                                      int64_t *example, bel_predict_fn *each, void *user)
{
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    bel_row rows[BEL_MAX_OUTPUTS + 1];
    size_t bytes[BEL_MAX_OUTPUTS + 1];
    if (run->block < 0 || run->instance == NULL) return NULL;
    int count = bel_spec_outputs(spec, outputs);
    for (int o = 0; o < count; o++) {
        bel_tensor *row = &rows[o].value;
        rows[o] = (bel_row){outputs[o].name, bel_instance_output(run->instance, o)};
        row->shape.rank--;
        memmove(row->shape.dims, row->shape.dims + 1,
                (size_t)row->shape.rank * sizeof row->shape.dims[0]);
        bytes[o] = bel_tensor_bytes(row);
    }
    for (int64_t i = 0; i < run->batch->example_count; i++) {
        BEL_TRY(each(user, (*example)++, rows, count));
        for (int o = 0; o < count; o++)
            rows[o].value.data = (char *)rows[o].value.data + bytes[o];
    }
    return NULL;
}

// Sizes of parts differ by one block at most.
static int64_t part_start(int64_t blocks, int part, int parts)
{
    int64_t more = blocks % parts;
    return blocks / parts * part + (part < more ? part : more);
}

static bel_status *predict_all(const bel_evaluation_config *config, bel_blocks *blocks,
                               int64_t *wanted, bel_predict_fn *each, void *user)
{
    int64_t all = bel_blocks_count(blocks), next = 0, end = all;
    if (config->parts > 0) {
        next = part_start(all, config->part, config->parts);
        end = part_start(all, config->part + 1, config->parts);
    }
    int64_t example = next * bel_input_batch_size(config->input);
    while (next < end) {
        const bel_block_run *runs;
        for (int t = 0; t < config->tower_count; t++)
            wanted[t] = next < end ? next++ : -1;
        BEL_TRY(bel_blocks_run(blocks, wanted, &runs));
        for (int t = 0; t < config->tower_count; t++)
            BEL_TRY(evaluation_deliver(&config->built->spec, &runs[t], &example, each, user));
    }
    return NULL;
}

bel_status *bel_prediction_run(const bel_evaluation_config *config, bel_predict_fn *each,
                               void *user)
{
    bel_blocks *blocks = NULL;
    int64_t *wanted = bel_xcalloc((size_t)config->tower_count, sizeof *wanted);
    bel_status *status = bel_blocks_create(config, &blocks);
    if (status == NULL) status = predict_all(config, blocks, wanted, each, user);
    bel_blocks_destroy(blocks);
    bel_free(wanted);
    return status;
}
