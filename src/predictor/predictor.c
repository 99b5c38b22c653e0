// Binding and running, for any origin of the predictor. Binding an input with the same shape only
// changes an address in the existing calls. Binding another shape leaves the search for a program
// to the next run, so that several inputs can change together. So a run with the same shapes as the
// run before is only a call of the instance.
#include "predictor/predictor.h"

#include <string.h>

#include "base/alloc.h"

struct bel_predictor {
    bel_predictor_parts parts;
    bel_forward *forward;
    bel_tensor *inputs; // as bound
    bool *bound;        // by input
    bool ready;         // the forward is bound to the present inputs
    bool ran;           // it has run since, so there are outputs
};

bel_status *bel_predictor_make(const bel_predictor_parts *parts, bel_predictor **out_predictor)
{
    bel_predictor *p = bel_xcalloc(1, sizeof *p);
    size_t inputs = (size_t)parts->input_count + 1, outputs = (size_t)parts->output_count + 1;
    bel_program_output *values = bel_xcalloc(outputs, sizeof *values);
    for (int i = 0; i < parts->output_count; i++)
        values[i].value = parts->values[i];
    *p = (bel_predictor){.parts = *parts,
                         .inputs = bel_xcalloc(inputs, sizeof *p->inputs),
                         .bound = bel_xcalloc(inputs, sizeof *p->bound)};
    bel_status *status =
        bel_forward_create(&p->parts.forward, values, parts->output_count, &p->forward);
    bel_free(values);
    if (status != NULL) {
        p->parts.release = NULL;
        bel_predictor_destroy(p);
        return status;
    }
    *out_predictor = p;
    return NULL;
}

void bel_predictor_destroy(bel_predictor *p)
{
    if (p == NULL) return;
    bel_forward_destroy(p->forward);
    if (p->parts.release != NULL) p->parts.release(p->parts.owner);
    bel_free(p->inputs);
    bel_free(p->bound);
    bel_free(p);
}

// --- Properties ----------------------------------------------------------------------------------

int bel_predictor_input_count(const bel_predictor *p)
{
    return p->parts.input_count;
}

int bel_predictor_output_count(const bel_predictor *p)
{
    return p->parts.output_count;
}

bel_port bel_predictor_input_port(const bel_predictor *p, int input)
{
    return p->parts.inputs[input];
}

bel_port bel_predictor_output_port(const bel_predictor *p, int output)
{
    return p->parts.outputs[output];
}

int bel_predictor_find_input(const bel_predictor *p, const char *name)
{
    return bel_port_find(p->parts.inputs, p->parts.input_count, name);
}

int bel_predictor_find_output(const bel_predictor *p, const char *name)
{
    return bel_port_find(p->parts.outputs, p->parts.output_count, name);
}

int64_t bel_predictor_step(const bel_predictor *p)
{
    return p->parts.forward.step;
}

bel_predictor_sizes bel_predictor_measure(const bel_predictor *p)
{
    const bel_graph *graph = p->parts.forward.graph;
    bel_predictor_sizes sizes = {.arena_bytes = bel_forward_arena_bytes(p->forward)};
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (node->op != BEL_OP_CONSTANT && node->op != BEL_OP_VARIABLE) continue;
        const bel_spec *spec = &node->outputs[0]->spec;
        sizes.weight_bytes += bel_tensor_bytes(&(bel_tensor){spec->dtype, spec->shape, NULL});
    }
    return sizes;
}

// --- Binding -------------------------------------------------------------------------------------

static bel_status *check_input(const bel_predictor *p, int input, const bel_tensor *elements)
{
    if (input < 0 || input >= p->parts.input_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no input %d: expected 0 to %d", input,
                       p->parts.input_count - 1);
    }
    return bel_port_check("input", &p->parts.inputs[input], elements);
}

bel_status *bel_predictor_bind(bel_predictor *p, int input, const bel_tensor *elements)
{
    BEL_TRY(check_input(p, input, elements));
    bool same = p->bound[input] && bel_shape_equal(&p->inputs[input].shape, &elements->shape);
    p->inputs[input] = *elements;
    p->bound[input] = true;
    if (!same) p->ready = false;
    if (p->ready) bel_forward_move(p->forward, input, elements->data);
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

// Returns the size of an open dimension in the first `count` inputs; 0, and input -1, if no input
// has it.
static int64_t size_of(const bel_predictor *p, int count, int64_t symbol, int *out_input)
{
    for (int i = 0; i < count; i++) {
        const bel_shape *shape = &p->parts.inputs[i].shape;
        for (int32_t d = 0; d < shape->rank; d++) {
            if (shape->dims[d] != symbol) continue;
            *out_input = i;
            return p->inputs[i].shape.dims[d];
        }
    }
    *out_input = -1;
    return 0;
}

static bel_status *check_dimension(const bel_predictor *p, int count, const bel_port *port,
                                   int32_t d, const bel_shape *have)
{
    int input;
    int64_t size = size_of(p, count, port->shape.dims[d], &input);
    if (input < 0 || size == have->dims[d]) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "\"%s\": expected %lld in dimension %d, as in input \"%s\", got %s", port->name,
                   (long long)size, d, p->parts.inputs[input].name, bel_shape_text(have, text));
}

// Open dimensions with the same symbol must agree among inputs, and in outputs, whatever the
// graph's symbols have promised.
static bel_status *check_ports(const bel_predictor *p, const bel_port *ports, int count,
                               bool outputs)
{
    const bel_instance *instance = bel_forward_instance(p->forward);
    for (int i = 0; i < count; i++) {
        bel_shape have = outputs ? bel_instance_output(instance, i).shape : p->inputs[i].shape;
        if (have.rank != ports[i].shape.rank) {
            char text[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %d dimensions, got %s",
                           ports[i].name, ports[i].shape.rank, bel_shape_text(&have, text));
        }
        for (int32_t d = 0; d < have.rank; d++) {
            if (ports[i].shape.dims[d] >= 0) continue;
            BEL_TRY(
                check_dimension(p, outputs ? p->parts.input_count : i + 1, &ports[i], d, &have));
        }
    }
    return NULL;
}

static bel_status *get_ready(bel_predictor *p)
{
    p->ran = false;
    for (int i = 0; i < p->parts.input_count; i++) {
        if (p->bound[i]) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION, "input \"%s\" is not bound",
                       p->parts.inputs[i].name);
    }
    BEL_TRY(check_ports(p, p->parts.inputs, p->parts.input_count, false));
    BEL_TRY(bel_forward_bind(p->forward, p->inputs));
    BEL_TRY(check_ports(p, p->parts.outputs, p->parts.output_count, true));
    p->ready = true;
    return NULL;
}

bel_status *bel_predictor_run(bel_predictor *p)
{
    if (!p->ready) BEL_TRY(get_ready(p));
    bel_status *status = bel_forward_run(p->forward, 0);
    p->ran = status == NULL;
    return status;
}

bel_tensor bel_predictor_output(const bel_predictor *p, int output)
{
    if (p->ran) return bel_instance_output(bel_forward_instance(p->forward), output);
    const bel_port *port = &p->parts.outputs[output];
    return (bel_tensor){.dtype = port->dtype, .shape = port->shape};
}
