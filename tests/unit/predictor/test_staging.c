// Runs in stages: the same bits as with all variables in memory, for any sufficient memory, run
// after run. The error for too little memory. label: threads
#include "predictor/staging.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "predictor/forward.h"
#include "support/bel_test.h"

enum { WIDTH = 32, LAYERS = 11, BATCH = 3, MATRIX = WIDTH * WIDTH * 4, BIAS = WIDTH * 4 };

typedef struct net {
    bel_graph *graph;
    bel_value *outputs[2];
    float *elements[LAYERS + 1];
    const float *values[LAYERS + 1];
    bel_staged_source sources[LAYERS + 1];
} net;

// Net y = tanh(… tanh(x w_0 + b) w_1 + b …): matrices that are read once, and a vector that every
// layer reads. The second output is the vector itself.
static net make_net(void)
{
    net n = {.graph = bel_graph_create()};
    bel_shape x_shape = BEL_SHAPE(BEL_DIM_BATCH, WIDTH), square = BEL_SHAPE(WIDTH, WIDTH);
    bel_value *x = bel_input_value(n.graph, "x", BEL_DTYPE_F32, &x_shape), *y = x;
    const bel_initializer zeros = {BEL_INIT_ZEROS, 0};
    bel_value *b = bel_variable(n.graph, "b", &BEL_SHAPE(WIDTH), zeros, BEL_VARIABLE_FROZEN);
    for (int l = 0; l < LAYERS; l++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", l);
        bel_value *w = bel_variable(n.graph, name, &square, zeros, BEL_VARIABLE_FROZEN);
        y = bel_tanh(n.graph, bel_add(n.graph, bel_matmul(n.graph, y, w), b));
    }
    n.outputs[0] = y;
    n.outputs[1] = b;
    BEL_ASSERT_OK(bel_graph_check(n.graph));
    for (int v = 0; v <= LAYERS; v++) {
        size_t bytes = v == 0 ? BIAS : MATRIX;
        n.elements[v] = bel_xcalloc(bytes, 1);
        for (size_t i = 0; i < bytes / 4; i++)
            n.elements[v][i] = (float)((i * 37 + (size_t)v * 11) % 101) / 300.0F - 0.15F;
        n.values[v] = n.elements[v];
        n.sources[v] = (bel_staged_source){.elements = n.elements[v], .size_bytes = bytes};
    }
    return n;
}

static void end(net *n)
{
    bel_graph_destroy(n->graph);
    for (int v = 0; v <= LAYERS; v++)
        bel_free(n->elements[v]);
}

static bel_status *open_forward(net *n, size_t memory, int threads, bel_forward_config *config,
                                bel_forward **out_forward)
{
    static const int fields[] = {0};
    const bel_program_output outputs[] = {{.value = n->outputs[0]}, {.value = n->outputs[1]}};
    *config = (bel_forward_config){.graph = n->graph,
                                   .fields = fields,
                                   .values = n->values,
                                   .staged = {.sources = n->sources, .count = LAYERS + 1},
                                   .stage_memory = memory,
                                   .program = {.threads = threads}};
    return bel_forward_create(config, outputs, 2, out_forward);
}

// Runs `x` [batch, WIDTH] and copies both outputs, one after the other.
static void run(bel_forward *forward, float *x, int64_t batch, float *out)
{
    const bel_tensor field = {BEL_DTYPE_F32, BEL_SHAPE(batch, WIDTH), x};
    bel_forward_move(forward, 0, field.data);
    BEL_ASSERT_OK(bel_forward_run(forward, 0));
    const bel_instance *instance = bel_forward_instance(forward);
    const bel_tensor y = bel_instance_output(instance, 0), b = bel_instance_output(instance, 1);
    memcpy(out, y.data, (size_t)batch * WIDTH * 4);
    memcpy(out + batch * WIDTH, b.data, BIAS);
}

static void test_same_bits(void **state)
{
    (void)state;
    static float xs[5][BATCH * WIDTH], want[5][(BATCH + 1) * WIDTH], got[(BATCH + 1) * WIDTH];
    net n = make_net();
    bel_forward *forward;
    bel_forward_config config;
    const bel_tensor first = {BEL_DTYPE_F32, BEL_SHAPE(BATCH, WIDTH), xs[0]};
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < BATCH * WIDTH; i++)
            xs[r][i] = (float)((i + r * 13) % 17) / 17.0F;
    BEL_ASSERT_OK(open_forward(&n, 0, 1, &config, &forward));
    BEL_ASSERT_OK(bel_forward_bind(forward, &first));
    for (int r = 0; r < 5; r++)
        run(forward, xs[r], BATCH, want[r]);
    assert_null(bel_forward_staging(forward));
    bel_forward_destroy(forward);

    // Stages of one matrix and the vector, up to five matrices, and all in one stage.
    static const struct {
        size_t memory;
        int stages;
    } cases[] = {{2 * (MATRIX + BIAS), LAYERS},
                 {2 * (2 * MATRIX + BIAS), (LAYERS + 1) / 2},
                 {2 * (5 * MATRIX + BIAS) + 100, (LAYERS + 4) / 5},
                 {LAYERS * MATRIX + BIAS, 1},
                 {1 << 30, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int threads = 1; threads <= 2; threads++) {
            BEL_ASSERT_OK(open_forward(&n, cases[c].memory, threads, &config, &forward));
            BEL_ASSERT_OK(bel_forward_bind(forward, &first));
            const bel_staging *staging = bel_forward_staging(forward);
            assert_int_equal(bel_staging_count(staging), cases[c].stages);
            assert_true(bel_staging_bytes(staging) <= cases[c].memory);
            for (int r = 0; r < 5; r++) {
                run(forward, xs[r], BATCH, got);
                assert_memory_equal(got, want[r], sizeof got);
            }
            bel_forward_destroy(forward);
        }
    }
    end(&n);
}

// Another batch needs another program with separate stages. Later the first program is used again.
static void test_shapes_change(void **state)
{
    (void)state;
    static float x[8 * WIDTH], one[2 * WIDTH], more[9 * WIDTH], again[2 * WIDTH];
    net n = make_net();
    bel_forward *forward;
    bel_forward_config config;
    for (int i = 0; i < 8 * WIDTH; i++)
        x[i] = (float)(i % 19) / 19.0F;
    BEL_ASSERT_OK(open_forward(&n, 2 * (3 * MATRIX + BIAS), 1, &config, &forward));
    for (int round = 0; round < 3; round++) {
        int64_t batch = round == 1 ? 8 : 1;
        BEL_ASSERT_OK(
            bel_forward_bind(forward, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(batch, WIDTH), x}));
        run(forward, x, batch, round == 0 ? one : round == 1 ? more : again);
    }
    assert_memory_equal(one, again, sizeof one);
    assert_memory_equal(one, more, WIDTH * 4);
    bel_forward_destroy(forward);
    end(&n);
}

static void test_too_little(void **state)
{
    (void)state;
    static float x[WIDTH];
    net n = make_net();
    bel_forward *forward;
    bel_forward_config config;
    const bel_tensor field = {BEL_DTYPE_F32, BEL_SHAPE(1, WIDTH), x};
    BEL_ASSERT_OK(open_forward(&n, MATRIX, 1, &config, &forward));
    BEL_ASSERT_FAILS(bel_forward_bind(forward, &field), BEL_RESOURCE_EXHAUSTED,
                     "hint: a memory of");
    assert_null(bel_forward_instance(forward));
    bel_forward_destroy(forward);
    end(&n);
}

// Elements come from a function that fails from some call on, which ends that run and the next.
typedef struct reading {
    const net *net;
    int calls, most;
} reading;

static bel_status *read_elements(void *context, int variable, void *out)
{
    reading *r = context;
    if (r->calls++ == r->most) return BEL_ERR(BEL_DATA_LOSS, "the disk is gone");
    memcpy(out, r->net->elements[variable], r->net->sources[variable].size_bytes);
    return NULL;
}

static void test_reading_fails(void **state)
{
    (void)state;
    static float x[WIDTH], out[2 * WIDTH];
    enum { ALL = 2 * LAYERS + 1 }; // a matrix and the vector per stage, and the vector for output
    for (int most = 0; most <= 3 * ALL; most += 5) {
        net n = make_net();
        reading r = {.net = &n, .most = most};
        bel_forward *forward;
        bel_forward_config config;
        const bel_tensor field = {BEL_DTYPE_F32, BEL_SHAPE(1, WIDTH), x};
        for (int v = 0; v <= LAYERS; v++)
            n.sources[v].elements = NULL;
        BEL_ASSERT_OK(open_forward(&n, 2 * (MATRIX + BIAS), 1, &config, &forward));
        config.staged.read = read_elements;
        config.staged.context = &r;
        if (most == 0) {
            BEL_ASSERT_FAILS(bel_forward_bind(forward, &field), BEL_DATA_LOSS, "the disk is gone");
        } else {
            BEL_ASSERT_OK(bel_forward_bind(forward, &field));
            int well = 0;
            for (; well < 3 && (well + 1) * 2 * LAYERS + 1 <= most; well++)
                run(forward, x, 1, out);
            bel_status *status = NULL;
            for (int more = 0; more < 2 && status == NULL; more++) // it may be read ahead
                status = bel_forward_run(forward, 0);
            assert_int_equal(bel_status_code(status), BEL_DATA_LOSS);
            bel_status_destroy(status);
            BEL_ASSERT_FAILS(bel_forward_run(forward, 0), BEL_DATA_LOSS, "the disk is gone");
        }
        bel_forward_destroy(forward);
        end(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_shapes_change),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_reading_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
