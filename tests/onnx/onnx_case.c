// Reads, runs and compares a case.
#include "onnx/onnx_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/graph.h"
#include "onnx/model.h"
#include "ops/kernels/elements.h"
#include "runtime/program.h"

// --- Reading -------------------------------------------------------------------------------------

static bel_status *read_tensors(const char *folder, int set, const char *kind, onnx_tensors *out)
{
    for (int i = 0; i < ONNX_CASE_TENSORS; i++) {
        char *path = bel_strf("%s/test_data_set_%d/%s_%d.pb", folder, set, kind, i), *bytes;
        bool there = bel_file_exists(path);
        size_t size;
        bel_status *status = there ? bel_file_read(path, &bytes, &size) : NULL;
        bel_free(path);
        if (!there) return NULL;
        BEL_TRY(status);
        status = bel_onnx_read_tensor(bytes, size, &out->items[i]);
        bel_free(bytes);
        BEL_TRY_CTX(status, "%s %d", kind, i);
        out->count++;
    }
    return BEL_ERR(BEL_INTERNAL, "%s has more than %d tensors", folder, ONNX_CASE_TENSORS);
}

static bel_status *read_case(const char *folder, int set, onnx_case *opened)
{
    char *path = bel_path_join(folder, "model.onnx"), *bytes;
    size_t size;
    bel_status *status = bel_file_read(path, &bytes, &size);
    bel_free(path);
    BEL_TRY(status);
    status = bel_onnx_read(bytes, size, &opened->model);
    bel_free(bytes);
    BEL_TRY(status);
    BEL_TRY(read_tensors(folder, set, "input", &opened->inputs));
    BEL_TRY(read_tensors(folder, set, "output", &opened->outputs));
    bool fits = opened->inputs.count == bel_onnx_input_count(opened->model) &&
                opened->outputs.count == bel_onnx_output_count(opened->model);
    if (fits) return NULL;
    return BEL_ERR(BEL_INTERNAL, "the model has %d inputs and %d outputs, the data %d and %d",
                   bel_onnx_input_count(opened->model), bel_onnx_output_count(opened->model),
                   opened->inputs.count, opened->outputs.count);
}

bel_status *onnx_case_open(const char *folder, int set, onnx_case *out)
{
    *out = (onnx_case){.model = NULL};
    bel_status *status = read_case(folder, set, out);
    if (status != NULL) onnx_case_close(out);
    return status;
}

void onnx_case_close(onnx_case *opened)
{
    for (int i = 0; i < opened->inputs.count; i++)
        bel_free(opened->inputs.items[i].data);
    for (int i = 0; i < opened->outputs.count; i++)
        bel_free(opened->outputs.items[i].data);
    bel_onnx_destroy(opened->model);
    *opened = (onnx_case){.model = NULL};
}

// --- Comparing -----------------------------------------------------------------------------------

static bool is_near(double got, double expected, double relative)
{
    if (isnan(expected)) return isnan(got);
    if (isinf(expected)) return got == expected;
    return fabs(got - expected) <= 1e-7 + relative * fabs(expected);
}

onnx_match onnx_compare(const bel_tensor *got, const bel_tensor *expected, char difference[200])
{
    char gt[BEL_SHAPE_TEXT], et[BEL_SHAPE_TEXT];
    if (got->dtype != expected->dtype || !bel_shape_equal(&got->shape, &expected->shape)) {
        snprintf(difference, 200, "got %s %s, expected %s %s", bel_dtype_name(got->dtype),
                 bel_shape_text(&got->shape, gt), bel_dtype_name(expected->dtype),
                 bel_shape_text(&expected->shape, et));
        return ONNX_DIFFERS;
    }
    onnx_match match = ONNX_CLOSE;
    bool whole = bel_element_is_whole(got->dtype);
    for (int64_t i = 0; i < bel_shape_elements(&got->shape); i++) {
        double g = bel_element_get(got, i), e = bel_element_get(expected, i);
        bool same = whole && bel_element_get_whole(got, i) == bel_element_get_whole(expected, i);
        if (whole ? same : is_near(g, e, 1e-5)) continue;
        match = ONNX_NEAR;
        if (!whole && is_near(g, e, 1e-3)) continue;
        snprintf(difference, 200, "element %lld is %.9g, expected %.9g", (long long)i, g, e);
        return ONNX_DIFFERS;
    }
    return match;
}

// --- Running -------------------------------------------------------------------------------------

typedef struct run {
    const onnx_case *opened;
    bel_graph *graph;
    bel_value *outputs[ONNX_CASE_TENSORS];
    bel_program *program;
    bel_instance *instance;
    void *arena;
    size_t arena_bytes;
    int64_t batch; // batch of a model that was closed
} run;

// The case's tensor for an input of the graph.
static const bel_tensor *tensor_for(const run *r, int graph_input)
{
    const char *name = r->graph->inputs[graph_input].name;
    for (int i = 0; i < r->opened->inputs.count; i++)
        if (strcmp(bel_onnx_input(r->opened->model, i)->name, name) == 0)
            return &r->opened->inputs.items[i];
    return NULL;
}

// Binds all inputs: as constants, or as values that only the operations that need them look at.
static bel_status *build_with(run *r, bool constants)
{
    bel_onnx_binding bindings[ONNX_CASE_TENSORS];
    int count = r->opened->inputs.count;
    for (int i = 0; i < count; i++) {
        const bel_tensor *tensor = &r->opened->inputs.items[i];
        bindings[i] = (bel_onnx_binding){.name = bel_onnx_input(r->opened->model, i)->name};
        if (constants) bindings[i].value = bel_constant(r->graph, tensor);
        if (!constants) bindings[i].elements = tensor;
    }
    bel_onnx_options options = {.bindings = bindings, .binding_count = count};
    return bel_onnx_build(r->opened->model, r->graph, &options, r->outputs);
}

// If an operation has to know values that depend on an input, all inputs become constants.
static bel_status *build(run *r)
{
    bel_status *status = build_with(r, false);
    if (bel_status_code(status) == BEL_FAILED_PRECONDITION) {
        bel_status_ignore(status); // the second try reports the error
        bel_graph_destroy(r->graph);
        r->graph = bel_graph_create();
        status = build_with(r, true);
    }
    return status;
}

static bel_status *check_random(const run *r)
{
    for (size_t i = 0; i < r->graph->node_count; i++) {
        const bel_op_def *def = bel_op_get(r->graph->nodes[i]->op);
        if ((def->flags & BEL_OP_RANDOM) == 0) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED, "%s: the expected elements come from NumPy's generator",
                       def->name);
    }
    return NULL;
}

// Binds the initializers that became variables, by name.
static void bind_variables(run *r)
{
    for (size_t v = 0; v < r->graph->variable_count; v++) {
        for (int i = 0; i < bel_onnx_initializer_count(r->opened->model); i++) {
            bel_tensor tensor;
            const char *name = bel_onnx_initializer(r->opened->model, i, &tensor);
            if (strcmp(name, r->graph->variables[v].name) == 0)
                bel_instance_bind_variable(r->instance, (int)v, tensor.data);
        }
    }
}

static bel_status *compile(run *r, bool reference)
{
    bel_program_output outputs[ONNX_CASE_TENSORS];
    bel_shape shapes[ONNX_CASE_TENSORS];
    int count = bel_onnx_output_count(r->opened->model);
    for (size_t i = 0; i < r->graph->input_count; i++)
        shapes[i] = tensor_for(r, (int)i)->shape;
    for (int i = 0; i < count; i++)
        outputs[i] = (bel_program_output){.value = r->outputs[i]};
    bel_program_options options = {.reference = reference, .threads = 1};
    BEL_TRY(bel_program_compile(r->graph, shapes, outputs, count, &options, &r->program));
    r->arena_bytes = bel_program_arena_bytes(r->program) + 64;
    BEL_TRY(bel_pages_create(r->arena_bytes, false, "activations", &r->arena));
    r->instance = bel_instance_create(r->program, r->arena);
    for (size_t i = 0; i < r->graph->input_count; i++)
        bel_instance_bind_input(r->instance, (int)i, tensor_for(r, (int)i)->data);
    bind_variables(r);
    return NULL;
}

static bel_status *execute(run *r)
{
    bel_team *team;
    BEL_TRY(bel_team_create(1, &team));
    bel_run_context context = {.seed = 1};
    bel_status *status = bel_instance_run(r->instance, team, &context, NULL, NULL);
    bel_team_destroy(team);
    return status;
}

static bel_status *compare(run *r, onnx_match *out_match)
{
    *out_match = ONNX_CLOSE;
    for (int i = 0; i < r->opened->outputs.count; i++) {
        char difference[200];
        bel_tensor got = bel_instance_output(r->instance, i);
        onnx_match match = onnx_compare(&got, &r->opened->outputs.items[i], difference);
        if (match == ONNX_DIFFERS) return BEL_ERR(BEL_INTERNAL, "output %d: %s", i, difference);
        if (match < *out_match) *out_match = match;
    }
    return NULL;
}

// Whether an output of an opened model begins with its examples, and the expected output does too.
// Else the file's shape has the batch elsewhere, or the output does not depend on it.
static bool begins_with_batch(const run *r, const bel_tensor *got, const bel_tensor *expected)
{
    return expected->shape.rank > 0 && expected->shape.dims[0] == r->batch &&
           got->shape.rank == expected->shape.rank && got->shape.dims[0] == r->batch;
}

// Returns infinity if type or shape differ, an element is NaN, or nothing can be compared.
static double largest_difference(run *r)
{
    double largest = 0;
    int compared = 0;
    for (int i = 0; i < r->opened->outputs.count; i++) {
        const bel_tensor *expected = &r->opened->outputs.items[i];
        bel_tensor got = bel_instance_output(r->instance, i);
        if (r->batch > 0 && !begins_with_batch(r, &got, expected)) continue;
        if (got.dtype != expected->dtype || !bel_shape_equal(&got.shape, &expected->shape))
            return INFINITY;
        compared++;
        for (int64_t k = 0; k < bel_shape_elements(&got.shape); k++) {
            double e = bel_element_get(expected, k), g = bel_element_get(&got, k);
            double difference = fabs(g - e) / fmax(1, fabs(e));
            if (!(difference <= largest)) largest = isnan(difference) ? INFINITY : difference;
        }
    }
    return compared > 0 ? largest : INFINITY;
}

// Compiles, runs and compares the graph that `status` is about, and destroys everything.
static bel_status *finish(run *r, bel_status *status, bool reference, onnx_match *out_match,
                          double *out_difference)
{
    if (status == NULL) status = check_random(r);
    if (status == NULL) status = compile(r, reference);
    if (status == NULL) status = execute(r);
    if (status == NULL && out_match != NULL) status = compare(r, out_match);
    if (status == NULL && out_difference != NULL) *out_difference = largest_difference(r);
    if (r->instance != NULL) bel_instance_destroy(r->instance);
    bel_pages_destroy(r->arena, r->arena_bytes);
    bel_program_destroy(r->program);
    bel_graph_destroy(r->graph);
    return status;
}

bel_status *onnx_case_run(const onnx_case *opened, bool reference, int *out_bound,
                          onnx_match *out_match)
{
    run r = {.opened = opened, .graph = bel_graph_create()};
    bel_status *status = build(&r);
    if (status == NULL) *out_bound = opened->inputs.count - (int)r.graph->input_count;
    return finish(&r, status, reference, out_match, NULL);
}

bel_status *onnx_case_run_open(const onnx_case *opened, bool reference, bool variables,
                               double *out_difference)
{
    run r = {.opened = opened, .graph = bel_graph_create()};
    bel_onnx_options options = {.variables = variables};
    bel_status *status = bel_onnx_build(opened->model, r.graph, &options, r.outputs);
    if (status == NULL) status = bel_graph_verify(r.graph);
    return finish(&r, status, reference, NULL, out_difference);
}

static bool begin_with_batch(const bel_onnx_model *model)
{
    bool all = model->input_count > 0;
    for (int i = 0; i < model->input_count && all; i++)
        all = model->inputs[i].shape.rank > 0 && model->inputs[i].shape.dims[0] < 0 &&
              model->inputs[i].shape.dims[0] == model->inputs[0].shape.dims[0];
    return all;
}

// The model belongs to this test: its ports get the shapes of a file with a closed batch.
static void set_batch(bel_onnx_model *model, int64_t batch)
{
    for (int i = 0; i < model->input_count; i++)
        model->inputs[i].shape.dims[0] = batch;
}

bel_status *onnx_case_run_closed(const onnx_case *opened, int64_t batch, bool variables,
                                 bool *out_fits, double *out_difference)
{
    bel_onnx_model *model = opened->model;
    *out_fits = begin_with_batch(model) && opened->inputs.items[0].shape.dims[0] > 1;
    if (!*out_fits) return NULL;
    run r = {.opened = opened,
             .graph = bel_graph_create(),
             .batch = opened->inputs.items[0].shape.dims[0]};
    bel_onnx_binding bindings[ONNX_CASE_TENSORS];
    int64_t symbol = model->inputs[0].shape.dims[0];
    for (int i = 0; i < model->input_count; i++) {
        const bel_onnx_port *port = &model->inputs[i];
        bindings[i] = (bel_onnx_binding){.name = port->name};
        bindings[i].value = bel_input_value(r.graph, port->name, port->dtype, &port->shape);
    }
    bel_onnx_options options = {
        .variables = variables, .bindings = bindings, .binding_count = model->input_count};
    set_batch(model, batch);
    bel_status *status = bel_onnx_build(model, r.graph, &options, r.outputs);
    set_batch(model, symbol);
    if (status == NULL) status = bel_graph_verify(r.graph);
    return finish(&r, status, true, NULL, out_difference);
}
