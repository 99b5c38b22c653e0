// Tests of networks on a GPU: layers and their gradients in one program, at sizes that cross the
// tiles of its kernels, with channels-last values between layers. The bits must be the CPU's.
// test_cuda.c tests each operation separately. label: native
#include "base/str.h"
#include "cuda/cuda.h"
#include "op/op_case.h"
#include "runtime/device.h"
#include "support/cards.h"

enum { MOST_INPUTS = 12, MOST_OUTPUTS = 12 };

static bel_device *card;

typedef struct network {
    bel_graph *graph;
    int input_count, output_count;
    bel_tensor inputs[MOST_INPUTS];
    bel_program_output outputs[MOST_OUTPUTS];
} network;

// As in cases.def: "f[3,4]:0.5:2".
static bel_value *add_input(network *net, const char *text)
{
    op_input inputs[BEL_OP_MAX_INPUTS];
    char name[16];
    int i = net->input_count++;
    assert_int_equal(op_parse_inputs(text, inputs), 1);
    snprintf(name, sizeof name, "x%d", i);
    net->inputs[i] = op_make_input(&inputs[0], i, BEL_DTYPE_F32);
    return bel_input_value(net->graph, name, net->inputs[i].dtype, &inputs[0].shape);
}

static bel_value *add_shaped(network *net, const bel_shape *shape, const char *range)
{
    bel_str text = {0};
    bel_str_puts(&text, "f[");
    for (int32_t d = 0; d < shape->rank; d++)
        bel_str_printf(&text, "%s%lld", d > 0 ? "," : "", (long long)shape->dims[d]);
    bel_str_printf(&text, "]%s", range);
    bel_value *value = add_input(net, text.text);
    bel_str_deinit(&text);
    return value;
}

static bel_value *add(network *net, bel_op op, const char *attrs, bel_value *a, bel_value *b,
                      bel_value *c, bel_value *d, bel_value *e)
{
    bel_value *values[] = {a, b, c, d, e};
    int count = 0;
    while (count < 5 && values[count] != NULL)
        count++;
    bel_attr_list list = op_parse_attrs(attrs);
    bel_value *y = bel_graph_add(net->graph, op, &list, values, count);
    BEL_ASSERT_OK(bel_graph_check(net->graph));
    return y;
}

static void wants(network *net, bel_value *value)
{
    assert_true(net->output_count < MOST_OUTPUTS);
    net->outputs[net->output_count++] = (bel_program_output){.value = value};
}

// --- Running -------------------------------------------------------------------------------------

typedef struct runner {
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
    void *arena;
} runner;

static bel_status *start(runner *r, const network *net, bel_device *device, bool fast_math)
{
    bel_shape shapes[MOST_INPUTS];
    for (int i = 0; i < net->input_count; i++)
        shapes[i] = net->inputs[i].shape;
    const bel_program_options options = {
        .threads = 1, .device = device, .fixed_variables = fast_math, .fast_math = fast_math};
    BEL_ASSERT_OK(bel_program_compile(net->graph, shapes, net->outputs, net->output_count, &options,
                                      &r->program));
    size_t bytes = bel_program_arena_bytes(r->program);
    if (device != NULL) {
        BEL_ASSERT_OK(device->ops->allocate(device, bytes, "test", &r->memory));
        BEL_ASSERT_OK(bel_instance_create_on(r->program, &r->memory, &r->instance));
    } else {
        BEL_ASSERT_OK(bel_pages_create(bytes + 64, false, "activations", &r->arena));
        r->instance = bel_instance_create(r->program, r->arena);
    }
    for (int i = 0; i < net->input_count; i++)
        bel_instance_bind_input(r->instance, i, net->inputs[i].data);
    bel_run_context context = {.seed = 7};
    bel_team *team = NULL;
    if (device == NULL) BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_status *status = bel_instance_run(r->instance, team, &context, NULL, NULL);
    bel_team_destroy(team);
    return status;
}

static void stop(runner *r, bel_device *device)
{
    size_t bytes = bel_program_arena_bytes(r->program);
    bel_instance_destroy(r->instance);
    if (device != NULL) {
        device->ops->release(device, &r->memory);
    } else {
        bel_pages_destroy(r->arena, bytes + 64);
    }
    bel_program_destroy(r->program);
}

// NaNs are equal, as their bits do not matter.
static void check_output(const bel_tensor *got, const bel_tensor *expected, int output)
{
    const float *g = got->data, *e = expected->data;
    assert_true(bel_shape_equal(&got->shape, &expected->shape));
    for (int64_t i = 0; i < bel_shape_elements(&expected->shape); i++) {
        if (memcmp(&g[i], &e[i], sizeof *g) == 0 || (isnan(g[i]) && isnan(e[i]))) continue;
        fail_msg("output %d, element %lld: GPU %.9g, CPU %.9g", output, (long long)i, (double)g[i],
                 (double)e[i]);
    }
}

static void destroy(network *net)
{
    for (int i = 0; i < net->input_count; i++)
        bel_free(net->inputs[i].data);
    bel_graph_destroy(net->graph);
}

static void finish(network *net, bool fast_math)
{
    runner on_cpu = {.program = NULL}, on_card = {.program = NULL};
    BEL_ASSERT_OK(start(&on_cpu, net, NULL, false));
    BEL_ASSERT_OK(start(&on_card, net, card, fast_math));
    for (int o = 0; o < net->output_count; o++) {
        bel_tensor got = bel_instance_output(on_card.instance, o);
        bel_tensor expected = bel_instance_output(on_cpu.instance, o);
        check_output(&got, &expected, o);
    }
    stop(&on_card, card);
    stop(&on_cpu, NULL);
    destroy(net);
}

// --- Networks ------------------------------------------------------------------------------------

// Convolution, batch normalization, ReLU, max pool, convolution, mean pool, and their gradients.
typedef struct net_case {
    int64_t n, in, height, width, middle, out;
    int64_t kernel;
    const char *first;  // attributes of the first convolution
    int64_t group;      // second convolution's
    const char *second; // second convolution's attributes
} net_case;

static bel_shape shape_of(bel_value *value)
{
    return bel_value_shape(value);
}

static void check_network(const net_case *c)
{
    network net = {.graph = bel_graph_create()};
    const char *max = "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]";
    const char *mean = "kernel_shape=[2,2] pads=[0,1,1,0]", *norm = "training_mode=1";
    bel_value *x = add_shaped(&net, &BEL_SHAPE(c->n, c->in, c->height, c->width), "");
    bel_value *w_1 = add_shaped(&net, &BEL_SHAPE(c->middle, c->in, c->kernel, c->kernel), "");
    bel_value *vectors[5];
    for (int i = 0; i < 5; i++)
        vectors[i] = add_shaped(&net, &BEL_SHAPE(c->middle), ":0.5:2");
    bel_value *w_2 = add_shaped(&net, &BEL_SHAPE(c->out, c->middle / c->group, 3, 3), "");
    bel_value *y_1 = add(&net, BEL_OP_CONV, c->first, x, w_1, vectors[0], NULL, NULL);
    bel_value *b =
        add(&net, BEL_OP_BATCH_NORM, norm, y_1, vectors[1], vectors[2], vectors[3], vectors[4]);
    bel_value *r = add(&net, BEL_OP_RELU, "", b, NULL, NULL, NULL, NULL);
    bel_value *p = add(&net, BEL_OP_MAX_POOL, max, r, NULL, NULL, NULL, NULL);
    bel_value *y_2 = add(&net, BEL_OP_CONV, c->second, p, w_2, NULL, NULL, NULL);
    bel_value *a = add(&net, BEL_OP_AVERAGE_POOL, mean, y_2, NULL, NULL, NULL, NULL);
    wants(&net, a);
    for (int i = 1; i < 3; i++)
        wants(&net, b->node->outputs[i]);
    bel_shape shape = shape_of(a);
    bel_value *dy = add_shaped(&net, &shape, "");
    bel_value *dy_2 = add(&net, BEL_OP_AVERAGE_POOL_GRAD, mean, dy, y_2, NULL, NULL, NULL);
    wants(&net, add(&net, BEL_OP_CONV_GRAD_WEIGHTS, c->second, dy_2, p, w_2, NULL, NULL));
    bel_value *dp = add(&net, BEL_OP_CONV_GRAD_INPUT, c->second, dy_2, w_2, p, NULL, NULL);
    bel_value *dr = add(&net, BEL_OP_MAX_POOL_GRAD, max, dp, r, p, NULL, NULL);
    bel_value *db = add(&net, BEL_OP_RELU_GRAD, "", dr, r, NULL, NULL, NULL);
    bel_value *dy_1 = add(&net, BEL_OP_BATCH_NORM_GRAD, norm, db, y_1, vectors[1],
                          b->node->outputs[3], b->node->outputs[4]);
    for (int i = 1; i < 3; i++)
        wants(&net, dy_1->node->outputs[i]);
    wants(&net, add(&net, BEL_OP_CONV_GRAD_WEIGHTS, c->first, dy_1, x, w_1, NULL, NULL));
    wants(&net, add(&net, BEL_OP_CHANNEL_SUM, "", dy_1, NULL, NULL, NULL, NULL));
    wants(&net, add(&net, BEL_OP_CONV_GRAD_INPUT, c->first, dy_1, w_1, x, NULL, NULL));
    finish(&net, false);
}

static void test_networks(void **state)
{
    (void)state;
    static const net_case cases[] = {
        {9, 3, 17, 19, 72, 80, 5, "strides=[2,2] pads=[2,2,2,2]", 1, "pads=[1,1,1,1]"},
        {3, 70, 9, 11, 66, 68, 3, "dilations=[2,1] pads=[2,1,2,1]", 2, "group=2 strides=[2,1]"},
        {2, 20, 12, 13, 32, 32, 1, "", 32, "group=32 pads=[1,1,1,1]"},
        {17, 1, 8, 9, 5, 20, 3, "", 1, "pads=[1,2,1,0]"},
        {1, 16, 40, 37, 16, 16, 3, "pads=[1,1,1,1]", 1, "strides=[3,3]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_network(&cases[i]);
}

// Transposed convolutions, with positions of a phase across a tile, normalized by group, by channel
// and by moments.
static void test_upwards(void **state)
{
    (void)state;
    network net = {.graph = bel_graph_create()};
    const char *up = "strides=[3,2] pads=[1,0,1,1] output_padding=[2,0]";
    bel_value *x = add_input(&net, "f[3,33,7,9]"), *w = add_input(&net, "f[33,65,4,3]");
    bel_value *bias = add_input(&net, "f[65]"), *scale = add_input(&net, "f[65]:0.5:2");
    bel_value *y = add(&net, BEL_OP_CONV_TRANSPOSE, up, x, w, bias, NULL, NULL);
    bel_value *m = add(&net, BEL_OP_BATCH_MOMENTS, "", y, NULL, NULL, NULL, NULL);
    bel_value *z = add(&net, BEL_OP_MOMENTS_NORM, "", y, scale, bias, m, NULL);
    bel_value *g = add(&net, BEL_OP_GROUP_NORM, "num_groups=5", z, scale, bias, NULL, NULL);
    bel_value *i = add(&net, BEL_OP_INSTANCE_NORM, "", g, scale, bias, NULL, NULL);
    wants(&net, add(&net, BEL_OP_GLOBAL_AVERAGE_POOL, "", i, NULL, NULL, NULL, NULL));
    wants(&net, g);
    bel_shape shape = shape_of(g);
    bel_value *dy = add_shaped(&net, &shape, "");
    bel_value *dz = add(&net, BEL_OP_GROUP_NORM_GRAD, "num_groups=5", dy, z, scale,
                        g->node->outputs[1], g->node->outputs[2]);
    wants(&net, dz->node->outputs[1]);
    wants(&net, dz->node->outputs[2]);
    bel_value *whole = z->node->outputs[1];
    bel_value *s = add(&net, BEL_OP_MOMENTS_NORM_SUMS, "", dz, y, whole, NULL, NULL);
    wants(&net, add(&net, BEL_OP_MOMENTS_NORM_GRAD, "", dz, y, whole, scale, s));
    finish(&net, false);
}

// Columns beside an image are zeros that are multiplied; rows above and below it are left out.
// Infinite or NaN weights show it, and so does -0.
static void test_edges(void **state)
{
    (void)state;
    for (int channels = 4; channels <= 20; channels += 16) {
        network net = {.graph = bel_graph_create()};
        const char *attrs = "pads=[1,1,1,1]";
        bel_value *x = add_shaped(&net, &BEL_SHAPE(2, channels, 6, 7), "");
        bel_value *w = add_shaped(&net, &BEL_SHAPE(channels, channels, 3, 3), "");
        bel_value *bias = add_shaped(&net, &BEL_SHAPE(channels), "");
        float *numbers = net.inputs[1].data;
        numbers[0] = INFINITY;
        numbers[9 * channels + 4] = -INFINITY;
        for (int64_t i = 18 * channels; i < 27 * channels; i++)
            numbers[i] = -0.0f;
        ((float *)net.inputs[2].data)[2] = -0.0f;
        bel_value *y = add(&net, BEL_OP_CONV, attrs, x, w, bias, NULL, NULL);
        wants(&net, y);
        wants(&net, add(&net, BEL_OP_CONV_GRAD_INPUT, attrs, x, w, x, NULL, NULL));
        wants(&net, add(&net, BEL_OP_CONV_GRAD_WEIGHTS, attrs, y, x, w, NULL, NULL));
        finish(&net, false);
    }
}

// A program with fast_math uses Winograd's algorithm on the CPU, but not on a GPU.
static void test_fast_math(void **state)
{
    (void)state;
    network net = {.graph = bel_graph_create()};
    bel_value *y = add_input(&net, "f[2,16,9,8]");
    for (int i = 0; i < 3; i++) {
        op_input weights = {'f', BEL_SHAPE(16, 16, 3, 3), -2, 2};
        bel_tensor numbers = op_make_input(&weights, i, BEL_DTYPE_F32);
        bel_value *w = bel_constant(net.graph, &numbers);
        bel_free(numbers.data);
        y = add(&net, BEL_OP_CONV, "pads=[1,1,1,1]", y, w, NULL, NULL, NULL);
    }
    wants(&net, y);
    finish(&net, true);
}

// An invalid length gives the CPU's error, also if a matrix has many queries.
static void test_lengths(void **state)
{
    (void)state;
    network net = {.graph = bel_graph_create()};
    bel_value *q = add_input(&net, "f[3,2,50,4]"), *k = add_input(&net, "f[3,2,9,4]");
    bel_value *lengths = add_input(&net, "i[3]:10:11");
    wants(&net, add(&net, BEL_OP_ATTENTION, "", q, k, k, lengths, NULL));
    runner on_cpu = {.program = NULL}, on_card = {.program = NULL};
    bel_status *expected = start(&on_cpu, &net, NULL, false);
    bel_status *got = start(&on_card, &net, card, false);
    assert_non_null(expected);
    assert_non_null(got);
    assert_int_equal(bel_status_code(got), bel_status_code(expected));
    assert_non_null(strstr(bel_status_message(got), "10"));
    bel_status_destroy(got);
    bel_status_destroy(expected);
    stop(&on_card, card);
    stop(&on_cpu, NULL);
    destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks), cmocka_unit_test(test_upwards),
        cmocka_unit_test(test_edges),    cmocka_unit_test(test_fast_math),
        cmocka_unit_test(test_lengths),
    };
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
