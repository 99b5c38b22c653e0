// Small models as text, one node a line: "y = Op a b; axis=0 perm=1,0". Numbers with commas are
// lists of integers. Names of a letter and a digit are constants that need no line:
//
//   w2x3    f32 initializer [2, 3]; another one is w2x3_b     d2x3    the same in f64
//   c2x3    the same in a node Constant                       n2x3    -100000 in all elements
//   s2      the number 2, an f32 initializer without dimensions
//   i0,3    an int64 list of 0 and 3
#ifndef BELFRY_TESTS_UNIT_ONNX_ONNX_TEXT_H
#define BELFRY_TESTS_UNIT_ONNX_ONNX_TEXT_H

#include "base/alloc.h"
#include "base/number.h"
#include "base/thread.h"
#include "belfry/tensor.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "runtime/program.h"
#include "support/bel_test.h"
#include "unit/onnx/onnx_bytes.h"

typedef struct text_model {
    const char *name, *dims; // input x, f32
    const char *nodes;       // output: y
} text_model;

enum { TEXT_FLOAT = 1, TEXT_INT64 = 7, TEXT_DOUBLE = 11, TEXT_MOST = 1 << 12 };

// Element i of a constant.
static inline double text_element(const char *name, int64_t i)
{
    uint64_t state = (uint64_t)i * 2654435761U + 7 * strlen(name) + (uint64_t)name[1];
    double number = (double)(state % 1024) / 512 - 1;
    return name[0] == 'n' ? -100000 : name[0] == 's' ? name[1] - '0' : number;
}

static inline void put_text_tensor(bel_str *graph, const char *name)
{
    static float floats[TEXT_MOST];
    static double doubles[TEXT_MOST];
    int64_t dims[BEL_MAX_RANK] = {0}, count = 1;
    int rank = 0, type = name[0] == 'd' ? TEXT_DOUBLE : TEXT_FLOAT;
    for (const char *at = name + 1; *at != '\0' && *at != '_' && name[0] != 's'; at += *at == 'x') {
        size_t length = strcspn(at, "x_");
        assert_true(bel_parse_i64(at, length, &dims[rank]));
        count *= dims[rank++];
        at += length;
    }
    for (int64_t i = 0; i < count; i++) {
        doubles[i] = text_element(name, i);
        floats[i] = (float)doubles[i];
    }
    const void *raw = type == TEXT_DOUBLE ? (const void *)doubles : floats;
    size_t size = (size_t)count * (type == TEXT_DOUBLE ? sizeof *doubles : sizeof *floats);
    bel_str tensor = make_tensor(name, type, dims, rank, raw, size);
    if (name[0] != 'c') {
        put_part(graph, GRAPH_INITIALIZER, &tensor);
        return;
    }
    bel_str attr = {.text = NULL}, attrs = {.text = NULL};
    put_text(&attr, 1, "value");
    put_part(&attr, 5, &tensor);
    put_int(&attr, 20, 4);
    put_part(&attrs, 5, &attr);
    bel_str node = make_node("Constant", "", name, &attrs);
    put_part(graph, GRAPH_NODE, &node);
}

static inline int read_text_list(const char *text, size_t length, int64_t out[BEL_MAX_RANK])
{
    int count = 0;
    for (size_t at = 0; at < length; at++) {
        size_t digits = strcspn(text + at, ", ;\n");
        if (digits > length - at) digits = length - at;
        assert_true(bel_parse_i64(text + at, digits, &out[count++]));
        at += digits;
    }
    return count;
}

static inline void put_text_attr(bel_str *attrs, const char *text, size_t length)
{
    int64_t numbers[BEL_MAX_RANK];
    size_t name = strcspn(text, "=");
    bool list = memchr(text, ',', length) != NULL;
    int count = read_text_list(text + name + 1, length - name - 1, numbers);
    bel_str attr = {.text = NULL};
    put_bytes(&attr, 1, text, name);
    for (int i = 0; i < count && list; i++)
        put_int(&attr, 8, numbers[i]);
    if (!list) put_int(&attr, 3, numbers[0]);
    put_int(&attr, 20, list ? 7 : 2);
    put_part(attrs, 5, &attr);
}

// Adds initializers that a node names for the first time.
static inline void put_text_constants(bel_str *graph, const char *inputs, bel_str *seen)
{
    while (*inputs != '\0') {
        char name[32];
        size_t length = strcspn(inputs, " ");
        bel_snprintf(name, sizeof name, "%.*s", (int)length, inputs);
        char *mark = bel_strf("|%s|", name);
        bool known = seen->text != NULL && strstr(seen->text, mark) != NULL;
        bool constant = name[1] >= '0' && name[1] <= '9' && !known;
        if (constant && strchr("wdcns", name[0]) != NULL) put_text_tensor(graph, name);
        if (constant && name[0] == 'i') {
            int64_t numbers[BEL_MAX_RANK],
                count = read_text_list(name + 1, strlen(name + 1), numbers);
            bel_str part =
                make_tensor(name, TEXT_INT64, &count, 1, numbers, (size_t)count * sizeof *numbers);
            put_part(graph, GRAPH_INITIALIZER, &part);
        }
        if (!known) bel_str_puts(seen, mark);
        bel_free(mark);
        inputs += length;
        inputs += *inputs == ' ';
    }
}

static inline void put_text_line(bel_str *graph, const char *line, size_t length, bel_str *seen)
{
    char text[200], *op, *rest;
    const char *inputs = "";
    bel_snprintf(text, sizeof text, "%.*s", (int)length, line);
    bel_str attrs = {.text = NULL};
    rest = strchr(text, ';');
    if (rest != NULL) *rest++ = '\0';
    while (rest != NULL && *rest != '\0') {
        rest += strspn(rest, " ");
        size_t size = strcspn(rest, " ");
        put_text_attr(&attrs, rest, size);
        rest += size;
    }
    op = strstr(text, " = ");
    assert_non_null(op);
    *op = '\0';
    op += 3;
    char *blank = strchr(op, ' ');
    if (blank != NULL) {
        *blank = '\0';
        inputs = blank + 1;
    }
    put_text_constants(graph, inputs, seen);
    bel_str part = make_node(op, inputs, text, &attrs);
    put_part(graph, GRAPH_NODE, &part);
}

static inline bel_onnx_model *read_text_model(const text_model *c, int opset)
{
    bel_str graph = {.text = NULL}, seen = {.text = NULL};
    bel_str part = make_port("x", TEXT_FLOAT, c->dims);
    put_part(&graph, GRAPH_INPUT, &part);
    for (const char *at = c->nodes; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        put_text_line(&graph, at, length, &seen);
        at += length;
        at += *at == '\n';
    }
    part = make_port("y", TEXT_FLOAT, "");
    put_part(&graph, GRAPH_OUTPUT, &part);
    bel_str bytes = make_model(&graph, opset);
    bel_onnx_model *model;
    BEL_ASSERT_OK(bel_onnx_read(bytes.text, bytes.length, &model));
    bel_str_deinit(&bytes);
    bel_str_deinit(&seen);
    return model;
}

// Runs `value` for an input x of this shape, if the graph has the input. Writes at most TEXT_MOST
// elements and returns their number.
static inline int64_t run_text_graph(const bel_graph *graph, bel_value *value, const float *x,
                                     bel_shape shape, float *out)
{
    bel_program_output output = {.value = value};
    bel_program_options options = {.reference = true, .threads = 1};
    bel_program *program;
    bel_team *team;
    void *arena;
    BEL_ASSERT_OK(bel_program_compile(graph, &shape, &output, 1, &options, &program));
    size_t bytes = bel_program_arena_bytes(program) + 64;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "activations", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    if (graph->input_count > 0) bel_instance_bind_input(instance, 0, x);
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_team_create(1, &team));
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    bel_tensor y = bel_instance_output(instance, 0);
    int64_t count = bel_shape_elements(&y.shape);
    assert_true(count <= TEXT_MOST);
    for (int64_t i = 0; i < count; i++)
        out[i] = y.dtype == BEL_DTYPE_F32 ? ((const float *)y.data)[i]
                                          : (float)((const int64_t *)y.data)[i];
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
    return count;
}

#endif
