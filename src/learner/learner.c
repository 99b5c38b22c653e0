// Life of a learner, and a step. Parameters, slots and gradients have the layout of a job's shard
// (ps/layout/layout.h); the program reads parameters and writes gradients in place. A step first
// computes and then updates, so that an error of the batch leaves the model unchanged. An update of
// tables may run out of memory halfway; then the learner is unusable and must be loaded again.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/isa.h"
#include "base/sized.h"
#include "learner/learner_inner.h"
#include "ops/kernels/elements.h"
#include "predictor/predictor.h"
#include "ps/layout/space.h"

// --- Making --------------------------------------------------------------------------------------

// Makes the layout of a job with one shard.
static void make_layout(bel_learner *l)
{
    const bel_graph *graph = l->file.graph;
    bel_layout_variable *variables = bel_xcalloc(graph->variable_count + 1, sizeof *variables);
    for (size_t v = 0; v < graph->variable_count; v++)
        variables[v] = (bel_layout_variable){.name = graph->variables[v].name,
                                             .shape = graph->variables[v].value->spec.shape,
                                             .kind = graph->variables[v].kind};
    l->layout = bel_layout_create(variables, (int)graph->variable_count, 1);
    for (size_t t = 0; t < graph->table_count; t++)
        bel_layout_add_table(l->layout,
                             &(bel_layout_table){.name = graph->tables[t].name,
                                                 .width = graph->tables[t].width,
                                                 .initializer = graph->tables[t].initializer});
    bel_free(variables);
}

static void add_output(bel_learner *l, bel_value *value, bool external)
{
    l->outputs[l->output_count++] = (bel_program_output){.value = value, .external = external};
}

// Lists reports by variable, row gradients by lookup, the loss.
static void list_outputs(bel_learner *l)
{
    const bel_graph *graph = l->file.graph;
    size_t most = graph->variable_count + graph->lookup_count + 1;
    l->outputs = bel_xcalloc(most, sizeof *l->outputs);
    l->output_variables = bel_xcalloc(most, sizeof *l->output_variables);
    l->lookup_outputs = bel_xcalloc(most, sizeof *l->lookup_outputs);
    for (size_t v = 0; v < graph->variable_count; v++) {
        if (l->file.reports[v] == NULL) continue;
        l->output_variables[l->output_count] = (int)v;
        add_output(l, l->file.reports[v], true);
    }
    l->report_count = l->output_count;
    for (size_t k = 0; k < graph->lookup_count; k++) {
        bool has = l->file.row_gradients[k] != NULL;
        l->lookup_outputs[k] = has ? l->output_count : -1;
        if (has) add_output(l, l->file.row_gradients[k], true);
    }
    add_output(l, l->file.loss, false);
}

// Checks before allocating that the checkpoint has all variables, with these shapes. A variable
// with a value per replica may have more there.
static bel_status *check_variables(const bel_graph *graph, const bel_ckpt_reader *reader)
{
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        const bel_shape *want = &variable->value->spec.shape;
        bool kept = bel_variable_is_kept_by_replica(variable->kind);
        const char *name;
        bel_dtype dtype;
        bel_shape have = {0};
        int index = bel_ckpt_find(reader, variable->name);
        if (index >= 0) bel_ckpt_tensor(reader, index, &name, &dtype, &have);
        bool whole =
            kept ? want->dims[0] == 1 && bel_shape_elements(want) <= bel_shape_elements(&have)
                 : bel_shape_equal(want, &have);
        if (index >= 0 && whole) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s is of another model: it has no variable \"%s\" of the shape that the "
                       "training graph has",
                       bel_ckpt_folder(reader), variable->name);
    }
    return NULL;
}

static bel_status *learner_make(bel_learner *l, const bel_ckpt_reader *reader)
{
    BEL_TRY(check_variables(l->file.graph, reader));
    l->seed = bel_ckpt_reader_info(reader)->seed;
    make_layout(l);
    list_outputs(l);
    l->shapes = bel_xcalloc(l->file.graph->input_count + 1, sizeof *l->shapes);
    l->data = bel_xcalloc(l->file.graph->input_count + 1, sizeof *l->data);
    const bel_program_options program = {.threads = l->threads};
    l->runner = bel_runner_create(l->file.graph, l->outputs, l->output_count, &program, 1);
    BEL_TRY(bel_team_create(l->threads, &l->team));
    BEL_TRY(bel_learner_make_update(l));
    BEL_TRY(bel_learner_make_tables(l));
    return bel_learner_restore(l, reader);
}

// Replaces the training's rate, with its schedule, by the program's.
static void set_rate(bel_optimizer *optimizer, double rate)
{
    optimizer->learning_rate = rate;
    optimizer->schedule = (bel_schedule){.kind = BEL_SCHEDULE_CONSTANT};
}

static bel_status *learner_load(bel_learner *l, const char *path,
                                const bel_learner_options *options)
{
    bel_ckpt_reader *reader;
    bel_optimizers *optimizers = &l->file.optimizers;
    BEL_TRY(bel_training_file_read(path, &l->file));
    if (options->learning_rate > 0) {
        set_rate(&optimizers->main, options->learning_rate);
        for (int p = 0; p < optimizers->part_count; p++)
            set_rate(&optimizers->parts[p].optimizer, options->learning_rate);
    }
    BEL_TRY(bel_ckpt_open_any(options->checkpoint != NULL ? options->checkpoint : path, &reader));
    bel_status *status = learner_make(l, reader);
    bel_ckpt_close(reader);
    return status;
}

static bel_status *learner_options_check(const bel_learner_options *options)
{
    BEL_TRY(bel_isa_check_wanted());
    BEL_TRY(bel_isa_check());
    if (!(options->learning_rate >= 0 && options->learning_rate <= 1e6))
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "learning_rate of a learner: expected 0 to 1e6, got %g",
                       options->learning_rate);
    return bel_check_threads("a learner", options->threads);
}

bel_status *bel_learner_load(const char *path, const bel_learner_options *given,
                             bel_learner **out_learner)
{
    bel_learner_options options;
    BEL_TRY(bel_sized_take(&options, sizeof options, given, "bel_learner_options"));
    BEL_TRY(learner_options_check(&options));
    bel_learner *l = bel_xcalloc(1, sizeof *l);
    l->threads = options.threads > 0 ? options.threads : 1;
    l->keep_checkpoint_max = options.keep_checkpoint_max;
    bel_status *status = learner_load(l, path, &options);
    if (status != NULL) {
        bel_learner_destroy(l);
        return status;
    }
    *out_learner = l;
    return NULL;
}

void bel_learner_destroy(bel_learner *l)
{
    if (l == NULL) return;
    bel_learner_destroy_tables(l);
    if (l->runner != NULL) bel_runner_destroy(l->runner);
    bel_team_destroy(l->team);
    bel_space_free_array(l->layout, l->values);
    bel_space_free_array(l->layout, l->gradients);
    bel_space_free_array(l->layout, l->averages);
    for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
        bel_space_free_array(l->layout, l->slots[k]);
    bel_space_update_deinit(&l->update);
    bel_layout_destroy(l->layout);
    bel_free(l->outputs);
    bel_free(l->output_variables);
    bel_free(l->lookup_outputs);
    bel_free(l->shapes);
    bel_free(l->data);
    bel_free(l->slot_starts);
    bel_free(l->reported);
    bel_free(l->segments);
    for (int s = 0; s < l->setting_count; s++) {
        bel_free(l->setting_names[s]);
        bel_free(l->setting_values[s]);
    }
    bel_free(l->setting_names);
    bel_free(l->setting_values);
    bel_training_file_deinit(&l->file);
    bel_free(l);
}

// --- Properties ----------------------------------------------------------------------------------

int bel_learner_input_count(const bel_learner *l)
{
    return l->file.input_count;
}

bel_port bel_learner_input_port(const bel_learner *l, int input)
{
    return l->file.inputs[input];
}

int bel_learner_label_count(const bel_learner *l)
{
    return l->file.label_count;
}

bel_port bel_learner_label_port(const bel_learner *l, int label)
{
    return l->file.labels[label];
}

int bel_learner_find_input(const bel_learner *l, const char *name)
{
    return bel_port_find(l->file.inputs, l->file.input_count, name);
}

int bel_learner_find_label(const bel_learner *l, const char *name)
{
    return bel_port_find(l->file.labels, l->file.label_count, name);
}

int64_t bel_learner_step_count(const bel_learner *l)
{
    return l->step;
}

// --- A step --------------------------------------------------------------------------------------

// A NaN may not affect the loss, because Relu turns it into 0, but would be in all parameters
// afterwards.
static bel_status *check_finite(const char *what, const bel_port *port, const bel_tensor *elements)
{
    int64_t count = bel_shape_elements(&elements->shape);
    bel_dtype dtype = elements->dtype;
    bool finite = true;
    if (dtype == BEL_DTYPE_F32)
        for (int64_t i = 0; i < count; i++)
            finite &= isfinite(((const float *)elements->data)[i]) != 0;
    if (dtype == BEL_DTYPE_F64 || dtype == BEL_DTYPE_F16 || dtype == BEL_DTYPE_BF16)
        for (int64_t i = 0; i < count; i++)
            finite &= isfinite(bel_element_get(elements, i)) != 0;
    if (finite) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s \"%s\": an element is not finite", what, port->name);
}

// Takes shapes and addresses of the ports' tensors, by graph input.
static bel_status *learner_take(bel_learner *l, const char *what, const bel_port *ports,
                                const int *fields, int count, const bel_tensor *tensors)
{
    for (int i = 0; i < count; i++) {
        BEL_TRY(bel_port_check(what, &ports[i], &tensors[i]));
        BEL_TRY(check_finite(what, &ports[i], &tensors[i]));
        l->shapes[fields[i]] = tensors[i].shape;
        l->data[fields[i]] = tensors[i].data;
    }
    return NULL;
}

static bool has_dimension(const bel_shape *shape, int64_t symbol, int32_t *out_axis)
{
    for (*out_axis = 0; *out_axis < shape->rank; ++*out_axis)
        if (shape->dims[*out_axis] == symbol) return true;
    return false;
}

// Open dimensions with the same symbol must agree, including the batch dimension of all inputs.
static bel_status *check_dimensions(const bel_learner *l, const bel_port *ports, const int *fields,
                                    int count)
{
    const bel_graph *graph = l->file.graph;
    for (int i = 0; i < count; i++)
        for (int32_t d = 0; d < ports[i].shape.rank; d++) {
            int64_t symbol = ports[i].shape.dims[d], have = l->shapes[fields[i]].dims[d], first;
            if (symbol >= 0) continue;
            int32_t axis = 0;
            size_t at = 0;
            while (!has_dimension(&graph->inputs[at].value->spec.shape, symbol, &axis))
                at++; // this input has it at the latest
            first = l->shapes[at].dims[axis];
            if (have == first) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "\"%s\": expected %lld in dimension %d, as \"%s\" has, got %lld",
                           ports[i].name, (long long)first, (int)d, graph->inputs[at].name,
                           (long long)have);
        }
    return NULL;
}

// Rows have their ids' shape followed by the table's width.
static bel_status *take_batch(bel_learner *l, const bel_tensor *inputs, const bel_tensor *labels)
{
    const bel_training_file *file = &l->file;
    BEL_TRY(learner_take(l, "input", file->inputs, file->input_fields, file->input_count, inputs));
    BEL_TRY(learner_take(l, "label", file->labels, file->label_fields, file->label_count, labels));
    BEL_TRY(check_dimensions(l, file->inputs, file->input_fields, file->input_count));
    BEL_TRY(check_dimensions(l, file->labels, file->label_fields, file->label_count));
    for (size_t k = 0; k < file->graph->lookup_count; k++) {
        const bel_graph_lookup *lookup = &file->graph->lookups[k];
        bel_shape shape = l->shapes[lookup->ids];
        shape.dims[shape.rank++] = file->graph->tables[lookup->table].width;
        l->shapes[lookup->rows] = shape;
    }
    return NULL;
}

static bel_status *learner_bind(bel_learner *l, bel_instance *instance)
{
    const bel_graph *graph = l->file.graph;
    for (size_t i = 0; i < graph->input_count; i++)
        if (l->data[i] != NULL) bel_instance_bind_input(instance, (int)i, l->data[i]);
    for (size_t v = 0; v < graph->variable_count; v++)
        bel_instance_bind_variable(instance, (int)v,
                                   l->values + bel_learner_variable(l, (int)v)->offset);
    for (int r = 0; r < l->report_count; r++)
        bel_instance_bind_output(
            instance, r, l->gradients + bel_learner_variable(l, l->output_variables[r])->offset);
    return bel_learner_bind_rows(l, instance);
}

static bel_status *learner_compute(bel_learner *l, float *out_loss)
{
    bel_instance *instance;
    bel_run_context context = {.seed = l->seed, .step = l->step};
    BEL_TRY(bel_runner_get(l->runner, 0, l->shapes, &instance));
    BEL_TRY(learner_bind(l, instance));
    BEL_TRY(bel_instance_run(instance, l->team, &context, NULL, NULL));
    *out_loss = *(const float *)bel_instance_output(instance, l->output_count - 1).data;
    if (isfinite(*out_loss)) return NULL;
    return BEL_ERR(BEL_ABORTED,
                   "the loss is not finite (%g); hint: a lower learning_rate, warmup_steps or "
                   "clip_global_norm often helps",
                   (double)*out_loss);
}

static bel_status *update(bel_learner *l)
{
    bel_rule_groups_begin(&l->update.groups, &l->step, &l->step);
    bel_status *status = bel_learner_update_rows(l);
    l->torn = status != NULL;
    if (status != NULL) return status;
    bel_learner_update(l);
    l->step++;
    return NULL;
}

bel_status *bel_learner_step(bel_learner *l, const bel_tensor *inputs, const bel_tensor *labels,
                             float *out_loss)
{
    float loss;
    if (l->torn) return bel_learner_refuse_torn();
    BEL_TRY(take_batch(l, inputs, labels));
    bel_status *status = learner_compute(l, &loss);
    if (status == NULL) status = update(l);
    if (status != NULL)
        return bel_status_wrap(status, __FILE__, __LINE__, "step %lld", (long long)l->step);
    if (out_loss != NULL) *out_loss = loss;
    return NULL;
}
