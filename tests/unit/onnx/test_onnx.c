// Reader of ONNX models: the model's description, the graph made from it, and refusals.
#include "onnx/onnx.h"

#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/thread.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "runtime/program.h"
#include "support/bel_test.h"
#include "unit/onnx/onnx_bytes.h"

enum { FLOAT = 1, INT16 = 5, INT64 = 7 };

typedef struct built {
    bel_onnx_model *model;
    bel_graph *graph;
    bel_value *outputs[4];
} built;

static bel_status *read_and_free(bel_str *bytes, bel_onnx_model **out_model)
{
    bel_status *status = bel_onnx_read(bytes->text, bytes->length, out_model);
    bel_str_deinit(bytes);
    return status;
}

static bel_status *build(bel_str *bytes, const bel_onnx_options *options, built *out)
{
    *out = (built){.graph = bel_graph_create()};
    BEL_TRY(read_and_free(bytes, &out->model));
    return bel_onnx_build(out->model, out->graph, options, out->outputs);
}

static void end(built *b)
{
    bel_graph_destroy(b->graph);
    bel_onnx_destroy(b->model);
}

static void put(bel_str *graph, int field, bel_str part)
{
    put_part(graph, field, &part);
}

// Model x [batch, 2] · w [2, 3] + b [3].
static bel_str linear_model(void)
{
    static const float w[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30};
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_NODE, make_node("MatMul", "x w", "product", NULL));
    put(&graph, GRAPH_NODE, make_node("Add", "product b", "y", NULL));
    put(&graph, GRAPH_INITIALIZER, make_tensor("w", FLOAT, (int64_t[]){2, 3}, 2, w, sizeof w));
    put(&graph, GRAPH_INITIALIZER, make_tensor("b", FLOAT, (int64_t[]){3}, 1, b, sizeof b));
    put(&graph, GRAPH_INPUT, make_port("x", FLOAT, "batch 2"));
    put(&graph, GRAPH_INPUT, make_port("w", FLOAT, "2 3"));
    put(&graph, GRAPH_OUTPUT, make_port("y", FLOAT, "batch 3"));
    return make_model(&graph, 17);
}

// Model of one node over x [2, 3] (float) and s [2] (int64) with outputs y.
static bel_str one_node(bel_str node, int64_t opset)
{
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_NODE, node);
    put(&graph, GRAPH_INPUT, make_port("x", FLOAT, "2 3"));
    put(&graph, GRAPH_INPUT, make_port("s", INT64, "2"));
    put(&graph, GRAPH_OUTPUT, make_port("y", FLOAT, ""));
    return make_model(&graph, opset);
}

static void assert_refused(bel_str node, int64_t opset, bel_code code, const char *part)
{
    built b;
    bel_str bytes = one_node(node, opset);
    BEL_ASSERT_FAILS(build(&bytes, NULL, &b), code, part);
    end(&b);
}

// --- Description of a model ----------------------------------------------------------------------

static void test_ports_and_initializers(void **state)
{
    (void)state;
    bel_onnx_model *model;
    bel_str bytes = linear_model();
    BEL_ASSERT_OK(read_and_free(&bytes, &model));
    assert_int_equal(bel_onnx_input_count(model), 1); // w is listed, but is an initializer
    const bel_onnx_port *x = bel_onnx_input(model, 0), *y = bel_onnx_output(model, 0);
    assert_string_equal(x->name, "x");
    assert_int_equal(x->dtype, BEL_DTYPE_F32);
    assert_true(x->ranked);
    assert_true(x->shape.dims[0] < 0);
    assert_int_equal(x->shape.dims[0], y->shape.dims[0]); // one symbol
    assert_int_equal(bel_onnx_initializer_count(model), 2);
    bel_tensor b;
    assert_string_equal(bel_onnx_initializer(model, 1, &b), "b");
    assert_float_equal(((const float *)b.data)[2], 30, 0);
    bel_onnx_destroy(model);
}

static void test_dimensions_without_a_name_differ(void **state)
{
    (void)state;
    bel_onnx_model *model;
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_INPUT, make_port("x", FLOAT, "? ? n"));
    put(&graph, GRAPH_OUTPUT, make_port("x", FLOAT, "? ? n"));
    bel_str bytes = make_model(&graph, 17);
    BEL_ASSERT_OK(read_and_free(&bytes, &model));
    const int64_t *dims = bel_onnx_input(model, 0)->shape.dims;
    assert_int_equal(dims[2], -1);
    assert_true(dims[0] < 0 && dims[1] < 0 && dims[0] != dims[1] && dims[0] != -1);
    bel_onnx_destroy(model);
}

// --- Graphs from models --------------------------------------------------------------------------

static void test_initializers_as_constants_or_variables(void **state)
{
    (void)state;
    for (int variables = 0; variables < 2; variables++) {
        built b;
        bel_str bytes = linear_model();
        bel_onnx_options options = {.variables = variables != 0};
        BEL_ASSERT_OK(build(&bytes, &options, &b));
        BEL_ASSERT_OK(bel_graph_verify(b.graph));
        bel_shape y = bel_value_shape(b.outputs[0]);
        assert_true(y.rank == 2 && y.dims[0] < 0 && y.dims[1] == 3);
        assert_int_equal(b.graph->variable_count, variables ? 2 : 0);
        if (variables) assert_string_equal(b.graph->variables[0].name, "w");
        end(&b);
    }
}

static void test_variables_have_gradients(void **state)
{
    (void)state;
    built b;
    bel_str bytes = linear_model();
    bel_onnx_options options = {.variables = true};
    BEL_ASSERT_OK(build(&bytes, &options, &b));
    bel_value *loss = bel_l2_loss(b.graph, b.outputs[0]), *gradients[2];
    bel_value *values[] = {b.graph->variables[0].value, b.graph->variables[1].value};
    bel_gradients(b.graph, loss, values, 2, gradients);
    BEL_ASSERT_OK(bel_graph_check(b.graph));
    assert_non_null(gradients[0]);
    assert_non_null(gradients[1]);
    end(&b);
}

// Reshape to [Shape(x)[1], 2]: known when built, as x's shape is closed.
static void test_shapes_are_computed_when_built(void **state)
{
    (void)state;
    static const int64_t one[] = {1}, two[] = {2};
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_NODE, make_node("Shape", "x", "shape", NULL));
    put(&graph, GRAPH_NODE, make_node("Gather", "shape one", "width", NULL));
    bel_str axis = make_int_attr("axis", 0);
    put(&graph, GRAPH_NODE, make_node("Concat", "width two", "target", &axis));
    put(&graph, GRAPH_NODE, make_node("Reshape", "x target", "y", NULL));
    put(&graph, GRAPH_INITIALIZER, make_tensor("one", INT64, one, 1, one, sizeof one));
    put(&graph, GRAPH_INITIALIZER, make_tensor("two", INT64, one, 1, two, sizeof two));
    put(&graph, GRAPH_INPUT, make_port("x", FLOAT, "2 3"));
    put(&graph, GRAPH_OUTPUT, make_port("y", FLOAT, "3 2"));
    bel_str bytes = make_model(&graph, 17);
    built b;
    BEL_ASSERT_OK(build(&bytes, NULL, &b));
    bel_shape y = bel_value_shape(b.outputs[0]);
    assert_true(y.rank == 2 && y.dims[0] == 3 && y.dims[1] == 2);
    end(&b);
}

static void test_bindings(void **state)
{
    (void)state;
    built b;
    int64_t elements[] = {3, 2};
    bel_tensor shape = {BEL_DTYPE_I64, BEL_SHAPE(2), elements};
    bel_onnx_binding binding = {.name = "s", .elements = &shape};
    bel_onnx_options options = {.bindings = &binding, .binding_count = 1};
    bel_str bytes = one_node(make_node("Reshape", "x s", "y", NULL), 17);
    BEL_ASSERT_OK(build(&bytes, &options, &b));
    assert_int_equal(bel_value_shape(b.outputs[0]).dims[0], 3);
    assert_null(bel_graph_find_input(b.graph, "s")); // no node computes with it
    end(&b);

    binding.name = "t";
    bytes = one_node(make_node("Reshape", "x s", "y", NULL), 17);
    BEL_ASSERT_FAILS(build(&bytes, &options, &b), BEL_NOT_FOUND, "\"t\"");
    end(&b);

    binding.name = "x";
    bytes = one_node(make_node("Reshape", "x s", "y", NULL), 17);
    BEL_ASSERT_FAILS(build(&bytes, &options, &b), BEL_INVALID_ARGUMENT, "is f32 and is bound to");
    end(&b);
}

static void test_a_value_stands_for_an_input(void **state)
{
    (void)state;
    bel_onnx_model *model;
    bel_str bytes = linear_model();
    BEL_ASSERT_OK(read_and_free(&bytes, &model));
    bel_graph *graph = bel_graph_create(), *other = bel_graph_create();
    bel_shape shape = BEL_SHAPE(7, 2);
    bel_value *mine = bel_input_value(graph, "mine", BEL_DTYPE_F32, &shape), *y;
    bel_onnx_binding binding = {.name = "x", .value = mine};
    bel_onnx_options options = {.bindings = &binding, .binding_count = 1};
    BEL_ASSERT_OK(bel_onnx_build(model, graph, &options, &y));
    assert_int_equal(bel_value_shape(y).dims[0], 7);
    assert_int_equal(graph->input_count, 1);
    BEL_ASSERT_FAILS(bel_onnx_build(model, other, &options, &y), BEL_INVALID_ARGUMENT,
                     "another graph");
    bel_graph_destroy(other);
    bel_graph_destroy(graph);
    bel_onnx_destroy(model);
}

// --- Results -------------------------------------------------------------------------------------

static void test_range_is_exact(void **state)
{
    (void)state;
    static const int64_t start = INT64_MAX - 5, limit = INT64_MAX, delta = 2;
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_NODE, make_node("Range", "start limit delta", "y", NULL));
    put(&graph, GRAPH_INITIALIZER, make_tensor("start", INT64, NULL, 0, &start, sizeof start));
    put(&graph, GRAPH_INITIALIZER, make_tensor("limit", INT64, NULL, 0, &limit, sizeof limit));
    put(&graph, GRAPH_INITIALIZER, make_tensor("delta", INT64, NULL, 0, &delta, sizeof delta));
    put(&graph, GRAPH_OUTPUT, make_port("y", INT64, "3"));
    bel_str bytes = make_model(&graph, 17);
    built b;
    BEL_ASSERT_OK(build(&bytes, NULL, &b));
    const bel_tensor *y = &b.outputs[0]->node->constant;
    assert_int_equal(y->shape.dims[0], 3);
    for (int64_t i = 0; i < 3; i++)
        assert_true(((const int64_t *)y->data)[i] == start + i * delta);
    end(&b);
}

// Runs one node over x and s and returns the first element of its first output.
static bel_status *run_one_node(bel_str node, int64_t opset, float *x, int64_t *s,
                                float *out_element)
{
    built b;
    bel_str bytes = one_node(node, opset);
    BEL_ASSERT_OK(build(&bytes, NULL, &b));
    const bel_shape shapes[] = {BEL_SHAPE(2, 3), BEL_SHAPE(2)};
    const bel_program_output output = {.value = b.outputs[0]};
    bel_program *program;
    void *arena;
    BEL_ASSERT_OK(bel_program_compile(b.graph, shapes, &output, 1,
                                      &(bel_program_options){.threads = 1}, &program));
    size_t size = bel_program_arena_bytes(program) + 64;
    BEL_ASSERT_OK(bel_pages_create(size, false, "a test", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, x);
    bel_instance_bind_input(instance, 1, s);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_run_context context = {.seed = 1};
    bel_status *status = bel_instance_run(instance, team, &context, NULL, NULL);
    bel_tensor y = bel_instance_output(instance, 0);
    *out_element = *(const float *)y.data;
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, size);
    bel_program_destroy(program);
    end(&b);
    return status;
}

// Scores with an ignored label may be anything.
static void test_ignored_scores(void **state)
{
    (void)state;
    static const char *const operators[] = {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"};
    for (int i = 0; i < 2; i++) {
        float x[] = {1, 1, 1, NAN, INFINITY, -INFINITY}, loss;
        int64_t s[] = {1, -100};
        bel_str attrs = make_int_attr("ignore_index", -100);
        bel_str node = make_node(operators[i], "x s", "y", &attrs);
        BEL_ASSERT_OK(run_one_node(node, 13, x, s, &loss));
        assert_true(fabsf(loss - (i == 0 ? 1.0986123f : -1.0f)) < 1e-6f); // false for NaN
    }
}

// --- Refusals ------------------------------------------------------------------------------------

static void test_nodes_are_checked(void **state)
{
    (void)state;
    assert_refused(make_node("Frobnicate", "x", "y", NULL), 17, BEL_UNIMPLEMENTED,
                   "node 0 \"here\" (Frobnicate): Belfry has no such operator");
    assert_refused(make_node("Trilu", "x", "y", NULL), 13, BEL_UNIMPLEMENTED,
                   "it is of opset 13, and Belfry reads it from 14 on");
    assert_refused(make_node("Relu", "x x", "y", NULL), 17, BEL_DATA_LOSS, "it has 2 inputs");
    assert_refused(make_node("Add", "x -", "y", NULL), 17, BEL_DATA_LOSS, "input 1 is left out");
    assert_refused(make_node("Relu", "z", "y", NULL), 17, BEL_DATA_LOSS,
                   "its input \"z\" is made by no node before it");
    assert_refused(make_node("Relu", "x", "x", NULL), 17, BEL_DATA_LOSS, "made a second time");
    assert_refused(make_node("Relu", "x", "z", NULL), 17, BEL_DATA_LOSS,
                   "output \"y\" is made by no node");
    assert_refused(make_node("Relu", "x", "y z", NULL), 17, BEL_UNIMPLEMENTED,
                   "Belfry does not make its output 1");
    assert_refused(make_node("Add", "x s", "y", NULL), 17, BEL_INVALID_ARGUMENT,
                   "both inputs must have one type");
    assert_refused(make_node("Reshape", "x s", "y", NULL), 17, BEL_FAILED_PRECONDITION,
                   "input 1 \"s\" must be known when the graph is built");
    assert_refused(make_node("Relu", "x", "y", NULL), 25, BEL_UNIMPLEMENTED, "opset 25");
}

static void test_attributes_are_checked(void **state)
{
    (void)state;
    bel_str attr = make_int_attr("axes", 1);
    assert_refused(make_node("ReduceMax", "x", "y", &attr), 17, BEL_DATA_LOSS,
                   "attribute \"axes\": it has type 2, expected 7");
    attr = make_int_attr("color", 1);
    assert_refused(make_node("ReduceMax", "x", "y", &attr), 17, BEL_UNIMPLEMENTED,
                   "attribute \"color\": Belfry does not know");
    attr = make_int_attr("axis", INT64_MAX);
    assert_refused(make_node("Softmax", "x", "y", &attr), 17, BEL_UNIMPLEMENTED, "beyond 2^53");
    attr = make_int_attr("axis", 2);
    assert_refused(make_node("Softmax", "x", "y", &attr), 17, BEL_INVALID_ARGUMENT,
                   "axis 2 does not exist in rank 2");
    attr = make_int_attr("to", INT16);
    assert_refused(make_node("Cast", "x", "y", &attr), 17, BEL_UNIMPLEMENTED, "int16");
}

// Reads a model that has only one initializer.
static bel_status *read_initializer(bel_str tensor)
{
    bel_onnx_model *model = NULL;
    bel_str graph = {.text = NULL};
    put(&graph, GRAPH_INITIALIZER, tensor);
    put(&graph, GRAPH_NODE, make_node("Identity", "t", "y", NULL));
    bel_str bytes = make_model(&graph, 17);
    bel_status *status = read_and_free(&bytes, &model);
    bel_onnx_destroy(model);
    return status;
}

static void test_tensors_are_checked(void **state)
{
    (void)state;
    static const float data[] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[] = {2, 3}, negative[] = {-2, 3}, large[] = {INT64_C(1) << 62, 8};
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 6};
    BEL_ASSERT_OK(read_initializer(make_tensor("t", FLOAT, dims, 2, data, 24)));
    BEL_ASSERT_FAILS(read_initializer(make_tensor("t", FLOAT, dims, 2, data, 23)), BEL_DATA_LOSS,
                     "initializer \"t\": shape [2, 3] of f32 needs 6 elements, got 23 bytes");
    BEL_ASSERT_FAILS(read_initializer(make_tensor("t", FLOAT, negative, 2, data, 24)),
                     BEL_DATA_LOSS, "dimension 0 is -2");
    BEL_ASSERT_FAILS(read_initializer(make_tensor("t", FLOAT, large, 2, data, 24)), BEL_DATA_LOSS,
                     "got 24 bytes");
    BEL_ASSERT_FAILS(read_initializer(make_tensor("t", FLOAT, nine, 9, data, 24)),
                     BEL_UNIMPLEMENTED, "9 dimensions");
    BEL_ASSERT_FAILS(read_initializer(make_tensor("t", INT16, dims, 2, data, 12)),
                     BEL_UNIMPLEMENTED, "element type int16");
    BEL_ASSERT_FAILS(read_initializer(make_tensor("t", 99, dims, 2, data, 24)), BEL_DATA_LOSS,
                     "no element type number 99");
    bel_str outside = make_tensor("t", FLOAT, dims, 2, "", 0);
    put_int(&outside, 14, 1);
    BEL_ASSERT_FAILS(read_initializer(outside), BEL_UNIMPLEMENTED, "external data");
    bel_str twice = make_tensor("t", FLOAT, dims, 2, data, 24);
    put_bytes(&twice, 4, data, 24);
    BEL_ASSERT_FAILS(read_initializer(twice), BEL_DATA_LOSS, "both in raw_data and");
}

// A model with an initializer that Belfry cannot read is refused only if the model uses it.
static void test_unused_initializers_may_be_strange(void **state)
{
    (void)state;
    static const char data[12] = {0};
    for (int used = 0; used < 2; used++) {
        bel_onnx_model *model = NULL;
        bel_str graph = {.text = NULL}, sparse = {.text = NULL};
        put(&graph, GRAPH_INITIALIZER, make_tensor("t", INT16, (int64_t[]){2, 3}, 2, data, 12));
        put(&graph, 15, sparse); // sparse_initializer
        put(&graph, GRAPH_INPUT, make_port("x", FLOAT, "2 3"));
        put(&graph, GRAPH_NODE, make_node("Relu", "x", "y", NULL));
        put(&graph, GRAPH_OUTPUT, make_port(used == 1 ? "t" : "y", FLOAT, ""));
        bel_str bytes = make_model(&graph, 17);
        bel_status *status = read_and_free(&bytes, &model);
        if (used == 0) BEL_ASSERT_OK(status);
        if (used == 1)
            BEL_ASSERT_FAILS(status, BEL_UNIMPLEMENTED, "initializer \"t\": element type int16");
        bel_onnx_destroy(model);
    }
}

// Nodes of two bytes each: a file of megabytes must not take hundreds of megabytes. Field 7 of a
// model is its graph, whose field 1 holds the nodes.
static void test_too_many_parts(void **state)
{
    (void)state;
    enum { NODES = 4 << 20, GRAPH = 7 << 3 | 2, NODE = 1 << 3 | 2, HEAD = 6 };
    size_t inner = 2 * (size_t)NODES, size = HEAD + inner;
    uint8_t *bytes = bel_xcalloc(size, 1);
    bytes[0] = GRAPH; // the length follows, in five bytes of seven bits
    for (int i = 0; i < 5; i++)
        bytes[1 + i] = (uint8_t)((inner >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
    for (size_t i = HEAD; i < size; i += 2)
        bytes[i] = NODE;
    bel_onnx_model *model;
    BEL_ASSERT_FAILS(bel_onnx_read(bytes, size, &model), BEL_DATA_LOSS,
                     "its parts need more memory than 8388614 bytes can stand for");
    bel_free(bytes);
}

// Shapes too large for memory cause errors, not overflows.
static void test_sizes_that_do_not_fit(void **state)
{
    (void)state;
    int64_t elements[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    bel_tensor shape = {BEL_DTYPE_I64, BEL_SHAPE(2), elements};
    bel_onnx_binding binding = {.name = "s", .elements = &shape};
    bel_onnx_options options = {.bindings = &binding, .binding_count = 1};
    static const char *const ops[] = {"Reshape", "Expand"};
    for (int i = 0; i < 2; i++) {
        built b;
        bel_str bytes = one_node(make_node(ops[i], "x s", "y", NULL), 13);
        BEL_ASSERT_FAILS(build(&bytes, &options, &b), BEL_INVALID_ARGUMENT, "too many elements");
        end(&b);
    }
    built b;
    elements[0] = elements[1] = INT32_MAX;
    bel_str bytes = one_node(make_node("Tile", "x s", "y", NULL), 13);
    BEL_ASSERT_FAILS(build(&bytes, &options, &b), BEL_INVALID_ARGUMENT, "too many elements");
    end(&b);
    elements[0] = INT64_MAX;
    bytes = one_node(make_node("Tile", "x s", "y", NULL), 13);
    BEL_ASSERT_FAILS(build(&bytes, &options, &b), BEL_INVALID_ARGUMENT, "repeats");
    end(&b);
}

// Returns the element of x [2, 3] at two indices. OUT_OF_RANGE if one of them is outside its
// dimension, even if their combination is a valid place.
static bel_status *gather_nd(int64_t row, int64_t column, float *out_element)
{
    float x[] = {0, 1, 2, 10, 11, 12};
    int64_t s[] = {row, column};
    return run_one_node(make_node("GatherND", "x s", "y", NULL), 13, x, s, out_element);
}

static void test_each_index_is_checked(void **state)
{
    (void)state;
    float y;
    BEL_ASSERT_OK(gather_nd(1, 2, &y));
    assert_true(y == 12);
    BEL_ASSERT_OK(gather_nd(-1, -3, &y));
    assert_true(y == 10);
    BEL_ASSERT_FAILS(gather_nd(0, 5, &y), BEL_OUT_OF_RANGE, "out of range");
    BEL_ASSERT_FAILS(gather_nd(1, -4, &y), BEL_OUT_OF_RANGE, "out of range");
    BEL_ASSERT_FAILS(gather_nd(2, 0, &y), BEL_OUT_OF_RANGE, "out of range");
}

// Model of x [batch, 1, 2, 2]: a convolution 2 x + 1 and a normalization give (2 x + 1 - 1) 3 / 2 +
// 5.
static bel_str normalized_model(bool conv_is_output)
{
    static const float w[] = {2}, bias[] = {1}, scale[] = {3}, offset[] = {5}, mean[] = {1},
                       variance[] = {3};
    static const float *const numbers[] = {w, bias, scale, offset, mean, variance};
    static const char *const names[] = {"w", "bias", "scale", "offset", "mean", "variance"};
    bel_str graph = {.text = NULL}, attr = {.text = NULL}, attrs = {.text = NULL};
    const float epsilon = 1;
    uint32_t bits;
    memcpy(&bits, &epsilon, sizeof bits);
    put_text(&attr, 1, "epsilon");
    put_varint(&attr, 2 << 3 | 5); // a float
    for (int i = 0; i < 4; i++)
        bel_str_append(&attr, &(char){(char)(bits >> 8 * i)}, 1);
    put_int(&attr, 20, 1);
    put_part(&attrs, 5, &attr);
    put(&graph, GRAPH_NODE, make_node("Conv", "x w bias", "c", NULL));
    put(&graph, GRAPH_NODE,
        make_node("BatchNormalization", "c scale offset mean variance", "y", &attrs));
    for (int i = 0; i < 6; i++)
        put(&graph, GRAPH_INITIALIZER,
            make_tensor(names[i], FLOAT, (int64_t[]){1, 1, 1, 1}, i == 0 ? 4 : 1, numbers[i],
                        sizeof(float)));
    put(&graph, GRAPH_INPUT, make_port("x", FLOAT, "batch 1 2 2"));
    put(&graph, GRAPH_OUTPUT, make_port("y", FLOAT, "batch 1 2 2"));
    if (conv_is_output) put(&graph, GRAPH_OUTPUT, make_port("c", FLOAT, "batch 1 2 2"));
    return make_model(&graph, 17);
}

// A normalization is merged into the convolution on request, if nothing else reads the convolution.
static void test_normalizations_are_merged(void **state)
{
    (void)state;
    const bel_onnx_options merge = {.merge = true};
    for (int kind = 0; kind < 3; kind++) {
        built b;
        bel_str bytes = normalized_model(kind == 1);
        BEL_ASSERT_OK(build(&bytes, kind == 2 ? NULL : &merge, &b));
        const bel_node *node = b.outputs[0]->node;
        assert_int_equal(node->op, kind == 0 ? BEL_OP_CONV : BEL_OP_BATCH_NORM);
        if (kind == 0) {
            assert_true(*(const float *)node->inputs[1]->node->constant.data == 3); // 2 · 3 / 2
            assert_true(*(const float *)node->inputs[2]->node->constant.data == 5);
        }
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports_and_initializers),
        cmocka_unit_test(test_dimensions_without_a_name_differ),
        cmocka_unit_test(test_initializers_as_constants_or_variables),
        cmocka_unit_test(test_variables_have_gradients),
        cmocka_unit_test(test_shapes_are_computed_when_built),
        cmocka_unit_test(test_bindings),
        cmocka_unit_test(test_a_value_stands_for_an_input),
        cmocka_unit_test(test_range_is_exact),
        cmocka_unit_test(test_ignored_scores),
        cmocka_unit_test(test_nodes_are_checked),
        cmocka_unit_test(test_attributes_are_checked),
        cmocka_unit_test(test_tensors_are_checked),
        cmocka_unit_test(test_unused_initializers_may_be_strange),
        cmocka_unit_test(test_too_many_parts),
        cmocka_unit_test(test_sizes_that_do_not_fit),
        cmocka_unit_test(test_each_index_is_checked),
        cmocka_unit_test(test_normalizations_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
