// Programs of a training graph: shared memory changes no bit, outputs are complete when published,
// and constants and leaves can be outputs too.
#include <pthread.h>

#include "passes/passes.h"
#include "unit/runtime/test_mlp.h"

typedef struct running {
    bel_program *program;
    bel_instance *instance;
    bel_team *team;
    void *arena;
    size_t arena_bytes;
} running;

static running start(mlp *m, const bel_program_options *options, int threads)
{
    running r;
    bel_shape shapes[2];
    mlp_shapes(MLP_BATCH, shapes);
    BEL_ASSERT_OK(
        bel_program_compile(m->graph, shapes, m->outputs, MLP_OUTPUTS, options, &r.program));
    r.arena_bytes = bel_program_arena_bytes(r.program);
    BEL_ASSERT_OK(bel_pages_create(r.arena_bytes, false, "activations", &r.arena));
    memset(r.arena, 0xff, r.arena_bytes); // NaN, in case anything is read before it is written
    BEL_ASSERT_OK(bel_team_create(threads, &r.team));
    r.instance = bel_instance_create(r.program, r.arena);
    mlp_bind(m, r.instance);
    return r;
}

static void stop(running *r)
{
    bel_instance_destroy(r->instance);
    bel_team_destroy(r->team);
    bel_pages_destroy(r->arena, r->arena_bytes);
    bel_program_destroy(r->program);
}

static void check_equal_bits(mlp *a, running *p, mlp *b, running *q)
{
    for (int o = 0; o < MLP_OUTPUTS; o++) {
        bel_tensor x = bel_instance_output(p->instance, o);
        bel_tensor y = bel_instance_output(q->instance, o);
        assert_true(bel_shape_equal(&x.shape, &y.shape));
        assert_memory_equal(x.data, y.data, bel_tensor_bytes(&x));
        if (o < 2) continue;
        assert_ptr_equal(x.data, a->gradients[o - 2]);
        assert_ptr_equal(y.data, b->gradients[o - 2]);
    }
    float loss = *(const float *)bel_instance_output(p->instance, 0).data;
    assert_true(loss > 0.1f && loss < 10.0f);
}

// Compares a normal program with one that has no passes, no shared memory and no parallel calls.
static void test_plain(void **state)
{
    (void)state;
    mlp *a = mlp_create(), *b = mlp_create();
    bel_program_options shared = {.threads = 1};
    bel_program_options apart = {
        .no_reuse = true, .no_groups = true, .passes_off = BEL_PASSES_ALL, .threads = 1};
    running p = start(a, &shared, 1), q = start(b, &apart, 3);
    assert_true(p.arena_bytes < q.arena_bytes / 2);
    bel_run_context context = {.seed = 3, .step = 8, .replica = 1}, same = context;
    for (int again = 0; again < 2; again++) { // the second run finds the first run's remains
        BEL_ASSERT_OK(bel_instance_run(p.instance, p.team, &context, NULL, NULL));
        BEL_ASSERT_OK(bel_instance_run(q.instance, q.team, &same, NULL, NULL));
        check_equal_bits(a, &p, b, &q);
    }
    stop(&p);
    stop(&q);
    mlp_destroy(a);
    mlp_destroy(b);
}

typedef struct watcher {
    mlp *m;
    int published[MLP_OUTPUTS];
    int order[MLP_OUTPUTS], count;
    float *copies[MLP_VARIABLES]; // contents at the time of publication
} watcher;

static void watch(void *context, int output, int64_t first, int64_t count)
{
    watcher *w = context;
    w->published[output]++;
    w->order[w->count++] = output;
    memcpy(w->copies[output - 2] + first, w->m->gradients[output - 2] + first,
           (size_t)count * sizeof(float));
}

static void test_publication(void **state)
{
    (void)state;
    mlp *m = mlp_create();
    running r = start(m, NULL, 1);
    watcher w = {.m = m};
    for (int v = 0; v < MLP_VARIABLES; v++)
        w.copies[v] = bel_xcalloc((size_t)mlp_elements(m, v), sizeof(float));
    bel_run_context context = {.seed = 3};
    BEL_ASSERT_OK(bel_instance_run(r.instance, r.team, &context, watch, &w));
    assert_int_equal(w.count, MLP_VARIABLES); // external outputs, each once
    for (int v = 0; v < MLP_VARIABLES; v++) {
        assert_int_equal(w.published[2 + v], 1);
        size_t bytes = (size_t)mlp_elements(m, v) * sizeof(float);
        assert_memory_equal(w.copies[v], m->gradients[v], bytes); // complete at that time
        bel_free(w.copies[v]);
    }
    assert_true(w.order[0] >= 2 + 2); // the last layer's gradients come first
    stop(&r);
    mlp_destroy(m);
}

// A gradient of several tiles is published piece by piece, from all threads.
enum { ROWS = 64, IN = 1024, OUT = 512, MOST_PIECES = 64 };

typedef struct pieces {
    const float *gradient;
    float *copy;
    pthread_mutex_t mutex;
    int64_t firsts[MOST_PIECES], counts[MOST_PIECES];
    int count;
} pieces;

static void take_piece(void *context, int output, int64_t first, int64_t count)
{
    pieces *p = context;
    assert_int_equal(output, 0);
    memcpy(p->copy + first, p->gradient + first, (size_t)count * sizeof(float));
    pthread_mutex_lock(&p->mutex);
    p->firsts[p->count] = first;
    p->counts[p->count++] = count;
    pthread_mutex_unlock(&p->mutex);
}

static void test_pieces(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_shape x_shape = BEL_SHAPE(ROWS, IN);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &x_shape);
    bel_value *loss = bel_mean(graph, bel_dense(graph, x, OUT, "top"));
    bel_value *kernel = graph->variables[0].value, *gradient;
    bel_gradients(graph, loss, &kernel, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_program_output output = {.value = gradient, .external = true};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(graph, &x_shape, &output, 1, NULL, &program));
    float *data = bel_xcalloc((size_t)ROWS * IN, sizeof *data);
    for (int i = 0; i < ROWS * IN; i++)
        data[i] = (float)(i % 13) - 6.0f;
    float *memory = bel_xcalloc((size_t)IN * OUT, sizeof *memory);
    float *kernel_values = bel_xcalloc((size_t)IN * OUT, sizeof *kernel_values);
    pieces p = {.gradient = memory, .copy = bel_xcalloc((size_t)IN * OUT, sizeof(float))};
    pthread_mutex_init(&p.mutex, NULL);
    void *arena;
    BEL_ASSERT_OK(bel_pages_create(bel_program_arena_bytes(program), false, "arena", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, data);
    bel_instance_bind_variable(instance, 0, kernel_values);
    bel_instance_bind_variable(instance, 1, kernel_values);
    bel_instance_bind_output(instance, 0, memory);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(3, &team));
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, take_piece, &p));
    assert_true(p.count > 1);
    int64_t covered = 0, overlaps = 0;
    for (int i = 0; i < p.count; i++) {
        covered += p.counts[i];
        for (int k = 0; k < i; k++)
            overlaps +=
                p.firsts[i] < p.firsts[k] + p.counts[k] && p.firsts[k] < p.firsts[i] + p.counts[i];
    }
    assert_int_equal(covered, IN * OUT);
    assert_int_equal(overlaps, 0); // no pieces overlap
    assert_memory_equal(p.copy, memory, (size_t)IN * OUT * sizeof(float));
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bel_program_arena_bytes(program));
    bel_program_destroy(program);
    pthread_mutex_destroy(&p.mutex);
    bel_free(p.copy);
    bel_free(kernel_values);
    bel_free(memory);
    bel_free(data);
    bel_graph_destroy(graph);
}

// The gradient of a layer's scale is summed in parts, which a final call adds. It is published
// after that call, although dx is written earlier.
static void copy_scale(void *context, int output, int64_t first, int64_t count)
{
    float **copies = context;
    memcpy(copies[output] + first, copies[2] + output * OUT + first, (size_t)count * sizeof(float));
}

static void test_publication_of_parts(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(ROWS, OUT);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape);
    bel_value *y = bel_layer_norm(graph, bel_mul(graph, x, x), "norm"), *gradients[2], *wanted[2];
    for (int v = 0; v < 2; v++)
        wanted[v] = graph->variables[v].value;
    bel_gradients(graph, bel_l2_loss(graph, y), wanted, 2, gradients);
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_program_output outputs[2];
    for (int v = 0; v < 2; v++)
        outputs[v] = (bel_program_output){.value = gradients[v], .external = true};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(graph, &shape, outputs, 2, NULL, &program));
    float *data = bel_xcalloc(ROWS * OUT, sizeof *data),
          *memory = bel_xcalloc(2 * OUT, sizeof *memory);
    float *copies[3] = {bel_xcalloc(OUT, sizeof *data), bel_xcalloc(OUT, sizeof *data), memory};
    for (int i = 0; i < ROWS * OUT; i++)
        data[i] = (float)(i % 13) - 6.0f;
    void *arena;
    BEL_ASSERT_OK(bel_pages_create(bel_program_arena_bytes(program), false, "arena", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, data);
    for (int v = 0; v < 2; v++) {
        bel_instance_bind_variable(instance, v, data);
        bel_instance_bind_output(instance, v, memory + v * OUT);
    }
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, copy_scale, copies));
    for (int v = 0; v < 2; v++) {
        assert_true(memory[v * OUT + 7] != 0);
        assert_memory_equal(copies[v], memory + v * OUT, OUT * sizeof(float));
        bel_free(copies[v]);
    }
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bel_program_arena_bytes(program));
    bel_program_destroy(program);
    bel_free(memory);
    bel_free(data);
    bel_graph_destroy(graph);
}

// The callback owns published memory: here it copies and overwrites the memory at once.
enum { ODD = 5, ODD_ELEMENTS = 6 };

typedef struct taking {
    float out[ODD][ODD_ELEMENTS], kept[ODD][ODD_ELEMENTS];
} taking;

static void take_over(void *context, int output, int64_t first, int64_t count)
{
    taking *t = context;
    for (int64_t i = first; i < first + count; i++) {
        t->kept[output][i] = t->out[output][i];
        t->out[output][i] = -1000;
    }
}

// One value requested twice, its alias, a variable and a constant, all in outside memory; other
// calls read the value, too.
static void check_odd_outputs(const bel_program_options *options)
{
    taking t = {0};
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(2, 3), flat = BEL_SHAPE(6);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape);
    bel_value *w = bel_variable(graph, "w", &shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                                BEL_VARIABLE_TRAINABLE);
    static float seven[6] = {7, 7, 7, 7, 7, 7}, one[6] = {1, 2, 3, 4, 5, 6};
    bel_value *constant = bel_constant(graph, &(bel_tensor){BEL_DTYPE_F32, shape, seven});
    bel_value *sum = bel_add(graph, x, constant);
    bel_value *later = bel_relu(graph, sum);
    bel_value *values[ODD] = {sum, sum, bel_reshape(graph, sum, &flat), w, constant};
    bel_program_output outputs[ODD + 1];
    for (int i = 0; i < ODD; i++)
        outputs[i] = (bel_program_output){.value = values[i], .external = true};
    outputs[ODD] = (bel_program_output){.value = later};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(graph, &shape, outputs, ODD + 1, options, &program));
    size_t bytes = bel_program_arena_bytes(program);
    void *arena;
    bel_team *team;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "activations", &arena));
    BEL_ASSERT_OK(bel_team_create(options->threads, &team));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, one);
    bel_instance_bind_variable(instance, 0, one);
    for (int i = 0; i < ODD; i++)
        bel_instance_bind_output(instance, i, t.out[i]);
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, take_over, &t));
    bel_tensor last = bel_instance_output(instance, ODD);
    for (int i = 0; i < 6; i++) {
        for (int o = 0; o < 3; o++)
            assert_true(t.kept[o][i] == one[i] + 7);
        assert_true(t.kept[3][i] == one[i] && t.kept[4][i] == 7);
        assert_true(((const float *)last.data)[i] == one[i] + 7);
    }
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
}

static void test_odd_outputs(void **state)
{
    (void)state;
    static const bel_program_options executors[] = {
        {.threads = 1}, {.threads = 2}, {.threads = 2, .asynchronous = true}};
    for (size_t i = 0; i < sizeof executors / sizeof executors[0]; i++)
        check_odd_outputs(&executors[i]);
}

static void test_compile_errors(void **state)
{
    (void)state;
    mlp *m = mlp_create();
    bel_shape shapes[2];
    bel_program *program = NULL;
    mlp_shapes(MLP_BATCH, shapes);
    shapes[1] = BEL_SHAPE(MLP_BATCH + 1);
    BEL_ASSERT_FAILS(bel_program_compile(m->graph, shapes, m->outputs, MLP_OUTPUTS, NULL, &program),
                     BEL_INVALID_ARGUMENT, "expected logits [n, classes] and labels [n]");
    assert_null(program);
    bel_graph_fail(m->graph, BEL_UNIMPLEMENTED, "stuck");
    BEL_ASSERT_FAILS(bel_program_compile(m->graph, shapes, m->outputs, MLP_OUTPUTS, NULL, &program),
                     BEL_UNIMPLEMENTED, "stuck");
    mlp_destroy(m);
}

// A slice with a step copies elements one by one, whatever their size.
static void test_elements_of_every_size(void **state)
{
    (void)state;
    static const bel_dtype dtypes[] = {BEL_DTYPE_U8,  BEL_DTYPE_BOOL, BEL_DTYPE_F16, BEL_DTYPE_BF16,
                                       BEL_DTYPE_F32, BEL_DTYPE_I32,  BEL_DTYPE_F64, BEL_DTYPE_I64};
    enum { COUNT = 6, STEP = 2 };
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        bel_graph *graph = bel_graph_create();
        bel_shape shape = BEL_SHAPE(COUNT);
        const int64_t start = 0, end = COUNT, step = STEP;
        unsigned char x[COUNT * 8];
        for (size_t i = 0; i < sizeof x; i++)
            x[i] = (unsigned char)(i + 1);
        bel_value *value = bel_input_value(graph, "x", dtypes[d], &shape);
        bel_program_output output = {.value =
                                         bel_slice(graph, value, NULL, &start, &end, &step, 1)};
        bel_program *program;
        BEL_ASSERT_OK(bel_program_compile(graph, &shape, &output, 1, NULL, &program));
        void *arena = bel_xcalloc(bel_program_arena_bytes(program) + 1, 1);
        bel_instance *instance = bel_instance_create(program, arena);
        bel_run_context context = {.seed = 1};
        bel_instance_bind_input(instance, 0, x);
        BEL_ASSERT_OK(bel_instance_run(instance, NULL, &context, NULL, NULL));
        const unsigned char *y = bel_instance_output(instance, 0).data;
        size_t size = bel_dtype_size(dtypes[d]);
        for (size_t i = 0; i < COUNT / STEP; i++)
            assert_memory_equal(y + i * size, x + i * STEP * size, size);
        bel_instance_destroy(instance);
        bel_free(arena);
        bel_program_destroy(program);
        bel_graph_destroy(graph);
    }
}

// Fixed weights are packed once; changed weights are packed again. The Relu after the convolution
// is part of it. The bits are those of a program that packs in every run.
static void test_packed_weights(void **state)
{
    (void)state;
    enum { X = 2 * 3 * 6 * 6, W = 4 * 3 * 3 * 3, Y = 2 * 4 * 6 * 6 };
    static float x[X], w[2][W], bias[4] = {1, -1, 0.5f, 2};
    const bel_program_options fixed = {.fixed_variables = true, .threads = 1};
    const bel_program_options plain = {.threads = 1};
    const bel_program_options *const options[] = {&fixed, &plain};
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    const int64_t pads[] = {1, 1, 1, 1};
    const bel_window_options window = {.size = sizeof window, .pads = pads};
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(2, 3, 6, 6), weights = BEL_SHAPE(4, 3, 3, 3), one = BEL_SHAPE(4);
    bel_value *in = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *y = bel_conv(g, in, bel_variable(g, "w", &weights, zeros, BEL_VARIABLE_TRAINABLE),
                            bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, one, bias}), 1, &window);
    bel_program_output output = {.value = bel_relu(g, y)};
    bel_program *programs[2];
    bel_instance *instances[2];
    void *arenas[2];
    for (int i = 0; i < X; i++)
        x[i] = (float)(i * 7919 % 2003) / 1000.0f - 1;
    for (int i = 0; i < 2 * W; i++)
        w[i / W][i % W] = (float)(i * 6271 % 1999) / 1000.0f - 1;
    for (int p = 0; p < 2; p++) {
        BEL_ASSERT_OK(bel_program_compile(g, &shape, &output, 1, options[p], &programs[p]));
        arenas[p] = bel_xcalloc(bel_program_arena_bytes(programs[p]) + 64, 1);
        instances[p] = bel_instance_create(programs[p], arenas[p]);
        bel_instance_bind_input(instances[p], 0, x);
    }
    assert_int_equal(bel_program_prologue_count(programs[0]), 1);
    assert_int_equal(bel_program_instruction_count(programs[0]), 2);
    assert_int_equal(bel_program_instruction_count(programs[1]), 3);
    for (int run = 0; run < 4; run++) {
        for (int p = 0; p < 2; p++) {
            bel_run_context context = {.seed = 1};
            bel_instance_bind_variable(instances[p], 0, w[run / 2]);
            BEL_ASSERT_OK(bel_instance_run(instances[p], NULL, &context, NULL, NULL));
        }
        assert_memory_equal(bel_instance_output(instances[0], 0).data,
                            bel_instance_output(instances[1], 0).data, Y * sizeof(float));
        x[run] += 1;
    }
    for (int p = 0; p < 2; p++) {
        bel_instance_destroy(instances[p]);
        bel_free(arenas[p]);
        bel_program_destroy(programs[p]);
    }
    bel_graph_destroy(g);
}

// A call without elements has no tile, and its neighbor has two: the same total as calls.
static void test_calls_without_elements(void **state)
{
    (void)state;
    enum { N = 33000 }; // elements: two tiles
    bel_graph *graph = bel_graph_create();
    const bel_shape shapes[] = {BEL_SHAPE(0), BEL_SHAPE(N)};
    bel_program_output outputs[2] = {{.value = NULL}};
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "nothing" : "x";
        bel_value *x = bel_input_value(graph, name, BEL_DTYPE_F32, &shapes[i]);
        outputs[i].value = bel_neg(graph, x);
    }
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(graph, shapes, outputs, 2, NULL, &program));
    void *arena;
    BEL_ASSERT_OK(bel_pages_create(bel_program_arena_bytes(program), false, "arena", &arena));
    float *x = bel_xcalloc(N, sizeof *x);
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, x);
    bel_instance_bind_input(instance, 1, x);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    const float *y = bel_instance_output(instance, 1).data;
    for (int i = 0; i < N; i++)
        assert_true(y[i] == -x[i]);
    bel_team_destroy(team);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bel_program_arena_bytes(program));
    bel_program_destroy(program);
    bel_free(x);
    bel_graph_destroy(graph);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_publication),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_odd_outputs),
        cmocka_unit_test(test_compile_errors),
        cmocka_unit_test(test_publication_of_parts),
        cmocka_unit_test(test_elements_of_every_size),
        cmocka_unit_test(test_packed_weights),
        cmocka_unit_test(test_calls_without_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
