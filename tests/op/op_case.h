// A row of cases.def as a program: parsing, input values, building, compiling, running. Only tests
// of this folder include it.
#ifndef BELFRY_TESTS_OP_OP_CASE_H
#define BELFRY_TESTS_OP_OP_CASE_H

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "ops/kernels/elements.h"
#include "ops/op.h"
#include "runtime/program.h"
#include "support/bel_test.h"

typedef struct op_case {
    const char *name;
    bel_op op;
    const char *inputs, *attrs;
    double tolerance;
} op_case;

typedef struct op_input {
    char kind; // as in cases.def
    bel_shape shape;
    double low, high;
} op_input;

static inline bool op_input_is_float(const op_input *input)
{
    return input->kind == 'f' || input->kind == 'q';
}

// --- Parsing -------------------------------------------------------------------------------------

// Parses "[7,65]" or "[]", and moves the text after it.
static inline bel_shape op_parse_dims(const char **text)
{
    bel_shape dims = {.rank = 0};
    assert_int_equal(*(*text)++, '[');
    while (**text != ']') {
        assert_true(dims.rank < BEL_MAX_RANK);
        char *end;
        dims.dims[dims.rank++] = strtoll(*text, &end, 10);
        assert_ptr_not_equal(end, *text);
        *text = *end == ',' ? end + 1 : end;
    }
    ++*text;
    return dims;
}

static inline double op_parse_number(const char **text)
{
    char *end;
    double number = strtod(*text, &end);
    assert_ptr_not_equal(end, *text);
    *text = end;
    return number;
}

static inline int op_parse_inputs(const char *text, op_input out_inputs[BEL_OP_MAX_INPUTS])
{
    int count = 0;
    while (*text != '\0') {
        assert_true(count < BEL_OP_MAX_INPUTS);
        op_input *input = &out_inputs[count++];
        input->kind = *text++;
        input->low = input->kind == 'f' ? -2.0 : input->kind == 'q' ? -3.0 : 0.0;
        input->high = input->kind == 'f' ? 2.1 : input->kind == 'b' ? 2.0 : 3.0;
        input->shape = op_parse_dims(&text);
        if (*text == ':') {
            text++;
            input->low = op_parse_number(&text);
            assert_int_equal(*text++, ':');
            input->high = op_parse_number(&text);
        }
        while (*text == ' ')
            text++;
    }
    return count;
}

static inline bel_attr_list op_parse_attrs(const char *text)
{
    static const char *const names[] = {"axes",
                                        "keepdims",
                                        "axis",
                                        "alpha",
                                        "beta",
                                        "transA",
                                        "to",
                                        "transB",
                                        "shape",
                                        "perm",
                                        "depth",
                                        "ratio",
                                        "strides",
                                        "pads",
                                        "dilations",
                                        "group",
                                        "auto_pad",
                                        "kernel_shape",
                                        "ceil_mode",
                                        "count_include_pad",
                                        "epsilon",
                                        "momentum",
                                        "training_mode",
                                        "hidden_size",
                                        "direction",
                                        "layout",
                                        "linear_before_reset",
                                        "given",
                                        "starts",
                                        "ends",
                                        "steps",
                                        "pads_before",
                                        "pads_behind",
                                        "mode",
                                        "value",
                                        "min",
                                        "max",
                                        "k",
                                        "largest",
                                        "exclusive",
                                        "reverse",
                                        "select_last_index",
                                        "num_groups",
                                        "output_padding",
                                        "output_shape",
                                        "causal",
                                        "scale",
                                        "zero_infinity",
                                        "low",
                                        "high",
                                        "mean",
                                        "replicas",
                                        "by_sums"};
    bel_attr_list attrs = {.count = 0};
    while (*text != '\0') {
        size_t length = strcspn(text, "=");
        bel_attr *attr = &attrs.items[attrs.count++];
        *attr = (bel_attr){.name = NULL};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            bool same = strlen(names[i]) == length && strncmp(names[i], text, length) == 0;
            if (same) attr->name = names[i];
        }
        if (attr->name == NULL) fail_msg("unknown attribute: %s", text);
        text += length + 1;
        if (*text == '[') {
            attr->ints = op_parse_dims(&text);
        } else {
            attr->number = op_parse_number(&text);
        }
        while (*text == ' ')
            text++;
    }
    return attrs;
}

// --- Values --------------------------------------------------------------------------------------

// Element `index` of input `number`. oracle.py has the same formula.
static inline double op_input_element(const op_input *input, int number, int64_t index)
{
    double unit = (double)((index * 7919 + 104729 * ((int64_t)number + 1)) % 2003) / 2002.0;
    double span = input->high - input->low;
    if (input->kind == 'f') return (double)(float)(input->low + span * unit);
    if (input->kind == 'q') span += 1;
    return fmin(floor(input->low + span * unit), input->low + span - 1);
}

static inline bel_tensor op_make_input(const op_input *input, int number, bel_dtype float_dtype)
{
    bel_dtype dtype = op_input_is_float(input) ? float_dtype
                      : input->kind == 'i'     ? BEL_DTYPE_I64
                                               : BEL_DTYPE_BOOL;
    bel_tensor tensor = {.dtype = dtype, .shape = input->shape};
    tensor.data = bel_xmalloc(bel_tensor_bytes(&tensor));
    for (int64_t i = 0; i < bel_shape_elements(&input->shape); i++)
        bel_element_set(&tensor, i, op_input_element(input, number, i));
    return tensor;
}

// --- Programs ------------------------------------------------------------------------------------

enum { OP_RUN_MAX_OUTPUTS = 1 + BEL_OP_MAX_INPUTS };

typedef struct op_run {
    bel_graph *graph;
    int input_count;
    op_input inputs[BEL_OP_MAX_INPUTS];
    bel_value *values[BEL_OP_MAX_INPUTS];
    bel_tensor data[BEL_OP_MAX_INPUTS];
    bel_value *y; // output 0 of the operation
    bel_program *program;
    bel_instance *instance;
    void *arena;
    bel_run_context context;
} op_run;

// Builds only the operation; floats have type `float_dtype`.
static inline void op_run_build(op_run *run, const op_case *row, bel_dtype float_dtype)
{
    *run = (op_run){.graph = bel_graph_create(), .context = {.seed = 7, .step = 3, .replica = 2}};
    run->input_count = op_parse_inputs(row->inputs, run->inputs);
    for (int i = 0; i < run->input_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        run->data[i] = op_make_input(&run->inputs[i], i, float_dtype);
        run->values[i] = bel_input_value(run->graph, name, run->data[i].dtype, &run->data[i].shape);
    }
    bel_attr_list attrs = op_parse_attrs(row->attrs);
    run->y = bel_graph_add(run->graph, row->op, &attrs, run->values, run->input_count);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
}

static inline void op_run_compile(op_run *run, const bel_program_output *outputs, int output_count,
                                  bool reference)
{
    bel_shape shapes[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < run->input_count; i++)
        shapes[i] = run->data[i].shape;
    bel_program_options options = {.reference = reference, .threads = 1};
    BEL_ASSERT_OK(
        bel_program_compile(run->graph, shapes, outputs, output_count, &options, &run->program));
    BEL_ASSERT_OK(bel_pages_create(bel_program_arena_bytes(run->program) + 64, false, "activations",
                                   &run->arena));
    run->instance = bel_instance_create(run->program, run->arena);
    for (int i = 0; i < run->input_count; i++)
        bel_instance_bind_input(run->instance, i, run->data[i].data);
}

// Builds and compiles the operation with all its outputs.
static inline int op_run_create(op_run *run, const op_case *row, bool reference)
{
    op_run_build(run, row, BEL_DTYPE_F32);
    int count = bel_op_get(row->op)->output_count;
    bel_program_output outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < count; i++)
        outputs[i] = (bel_program_output){.value = run->y->node->outputs[i]};
    op_run_compile(run, outputs, count, reference);
    return count;
}

static inline void op_run_start(op_run *run, int threads)
{
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    bel_status *status = bel_instance_run(run->instance, team, &run->context, NULL, NULL);
    bel_team_destroy(team);
    BEL_ASSERT_OK(status);
}

static inline void op_run_destroy(op_run *run)
{
    if (run->program != NULL) {
        bel_instance_destroy(run->instance);
        bel_pages_destroy(run->arena, bel_program_arena_bytes(run->program) + 64);
        bel_program_destroy(run->program);
    }
    for (int i = 0; i < run->input_count; i++)
        bel_free(run->data[i].data);
    bel_graph_destroy(run->graph);
}

static inline bool op_is_near(double got, double expected, double tolerance)
{
    return fabs(got - expected) <= tolerance * fmax(1.0, fabs(expected));
}

#endif
