// Predictors of ONNX models: loading, refusals, shapes and outputs, and runs without allocation.
// label: threads, label: release
#include "belfry/predictor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "support/bel_test.h"
#include "unit/onnx/onnx_bytes.h"

// --- Models --------------------------------------------------------------------------------------

enum { IN = 3, OUT = 2 };
static const float weights[IN][OUT] = {{1, 2}, {3, 4}, {5, 6}}, bias[OUT] = {10, -100};

// Model y = x · w + b, z = relu y for x [batch, 3].
static bel_str linear(void)
{
    bel_str graph = {.text = NULL}, part = make_node("Gemm", "x w b", "y", NULL);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_node("Relu", "y", "z", NULL);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_tensor("w", 1, (int64_t[]){IN, OUT}, 2, weights, sizeof weights);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    part = make_tensor("b", 1, (int64_t[]){OUT}, 1, bias, sizeof bias);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    part = make_port("x", 1, "batch 3");
    put_part(&graph, GRAPH_INPUT, &part);
    part = make_port("y", 1, "batch 2");
    put_part(&graph, GRAPH_OUTPUT, &part);
    part = make_port("z", 1, "batch 2");
    put_part(&graph, GRAPH_OUTPUT, &part);
    return make_model(&graph, 17);
}

// Model of the same y, from weights whose rows are the first model's columns.
static bel_str transposed(void)
{
    static const float turned[OUT][IN] = {{1, 3, 5}, {2, 4, 6}};
    bel_str graph = {.text = NULL}, attrs = make_int_attr("transB", 1);
    bel_str part = make_node("Gemm", "x w b", "y", &attrs);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_node("Relu", "y", "z", NULL);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_tensor("w", 1, (int64_t[]){OUT, IN}, 2, turned, sizeof turned);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    part = make_tensor("b", 1, (int64_t[]){OUT}, 1, bias, sizeof bias);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    part = make_port("x", 1, "batch 3");
    put_part(&graph, GRAPH_INPUT, &part);
    part = make_port("y", 1, "batch 2");
    put_part(&graph, GRAPH_OUTPUT, &part);
    part = make_port("z", 1, "batch 2");
    put_part(&graph, GRAPH_OUTPUT, &part);
    return make_model(&graph, 17);
}

// Model c = a OP b for two inputs with the same open dimensions, the second of type `type`.
static bel_str pair(const char *op, int type, const char *second)
{
    bel_str graph = {.text = NULL}, part = make_node(op, "a b", "c", NULL);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_port("a", 1, "batch time");
    put_part(&graph, GRAPH_INPUT, &part);
    part = make_port("b", type, second);
    put_part(&graph, GRAPH_INPUT, &part);
    part = make_port("c", 1, "batch time");
    put_part(&graph, GRAPH_OUTPUT, &part);
    return make_model(&graph, 17);
}

static bel_predictor *load(bel_str model)
{
    bel_predictor *predictor = NULL;
    BEL_ASSERT_OK(bel_predictor_load_bytes(model.text, model.length, NULL, &predictor));
    bel_str_deinit(&model);
    return predictor;
}

static bel_tensor floats(bel_shape shape, float *data)
{
    return (bel_tensor){.dtype = BEL_DTYPE_F32, .shape = shape, .data = data};
}

static void expect_linear(const bel_predictor *predictor, const float *x, int64_t count)
{
    const bel_tensor y = bel_predictor_output(predictor, 0), z = bel_predictor_output(predictor, 1);
    assert_int_equal(y.shape.rank, 2);
    assert_int_equal(y.shape.dims[0], count);
    assert_int_equal(z.shape.dims[1], OUT);
    for (int64_t i = 0; i < count * OUT; i++) {
        const float *row = x + i / OUT * IN;
        float sum = bias[i % OUT];
        for (int k = 0; k < IN; k++)
            sum += row[k] * weights[k][i % OUT];
        assert_true(((const float *)y.data)[i] == sum); // sum of small integers: exact
        assert_true(((const float *)z.data)[i] == (sum > 0 ? sum : 0));
    }
}

// --- Description ---------------------------------------------------------------------------------

static void test_ports(void **state)
{
    (void)state;
    bel_predictor *predictor = load(linear());
    assert_int_equal(bel_predictor_input_count(predictor), 1);
    assert_int_equal(bel_predictor_output_count(predictor), 2);
    bel_port x = bel_predictor_input_port(predictor, 0),
             z = bel_predictor_output_port(predictor, 1);
    assert_string_equal(x.name, "x");
    assert_int_equal(x.dtype, BEL_DTYPE_F32);
    assert_true(bel_shape_equal(&x.shape, &BEL_SHAPE(BEL_DIM_BATCH, IN)));
    assert_string_equal(z.name, "z");
    assert_true(bel_shape_equal(&z.shape, &BEL_SHAPE(BEL_DIM_BATCH, OUT)));
    assert_int_equal(bel_predictor_find_input(predictor, "x"), 0);
    assert_int_equal(bel_predictor_find_input(predictor, "y"), -1);
    assert_int_equal(bel_predictor_find_output(predictor, "z"), 1);
    assert_int_equal(bel_predictor_step(predictor), -1);
    bel_predictor_destroy(predictor);
    bel_predictor_destroy(NULL);
}

// --- Running -------------------------------------------------------------------------------------

static void test_shapes(void **state)
{
    (void)state;
    float x[8 * IN], other[IN] = {7, 8, 9};
    for (int i = 0; i < 8 * IN; i++)
        x[i] = (float)(i % 5 - 2);
    bel_predictor *predictor = load(linear());
    assert_null(bel_predictor_output(predictor, 0).data);
    static const int64_t counts[] = {1, 3, 8, 3, 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const bel_tensor in = floats(BEL_SHAPE(counts[i], IN), x);
        BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &in));
        BEL_ASSERT_OK(bel_predictor_run(predictor));
        expect_linear(predictor, x, counts[i]);
        x[1] += 1; // the next run reads it
        BEL_ASSERT_OK(bel_predictor_run(predictor));
        expect_linear(predictor, x, counts[i]);
    }
    const bel_tensor elsewhere = floats(BEL_SHAPE(1, IN), other);
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &elsewhere));
    BEL_ASSERT_OK(bel_predictor_run(predictor));
    expect_linear(predictor, other, 1);
    bel_predictor_destroy(predictor);
}

static void test_transposed_weights(void **state)
{
    (void)state;
    float x[12 * IN];
    for (int i = 0; i < 12 * IN; i++)
        x[i] = (float)(i % 5 - 2);
    bel_predictor *predictor = load(transposed());
    for (int64_t n = 1; n <= 12; n += 11) {
        const bel_tensor in = floats(BEL_SHAPE(n, IN), x);
        BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &in));
        BEL_ASSERT_OK(bel_predictor_run(predictor));
        expect_linear(predictor, x, n);
    }
    bel_predictor_destroy(predictor);
}

// More shapes than the number of programs kept.
static void test_many_shapes(void **state)
{
    (void)state;
    enum { SHAPES = 70 };
    static float x[SHAPES * IN];
    for (int i = 0; i < SHAPES * IN; i++)
        x[i] = (float)(i % 7 - 3);
    bel_predictor *predictor = load(linear());
    for (int round = 0; round < 2; round++)
        for (int64_t n = 1; n <= SHAPES; n++) {
            const bel_tensor in = floats(BEL_SHAPE(n, IN), x);
            BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &in));
            BEL_ASSERT_OK(bel_predictor_run(predictor));
            expect_linear(predictor, x, n);
        }
    bel_predictor_destroy(predictor);
}

static void test_binding(void **state)
{
    (void)state;
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {6, 5, 4, 3, 2, 1};
    bel_predictor *predictor = load(pair("Add", 1, "batch time"));
    const bel_tensor wide = floats(BEL_SHAPE(2, 3), a), high = floats(BEL_SHAPE(3, 2), b);
    const bel_tensor other = floats(BEL_SHAPE(2, 3), b);
    bel_tensor wrong = wide;
    BEL_ASSERT_FAILS(bel_predictor_run(predictor), BEL_FAILED_PRECONDITION,
                     "input \"a\" is not bound");
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &wide));
    BEL_ASSERT_FAILS(bel_predictor_run(predictor), BEL_FAILED_PRECONDITION,
                     "input \"b\" is not bound");
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 1, &high));
    BEL_ASSERT_FAILS(bel_predictor_run(predictor), BEL_INVALID_ARGUMENT,
                     "\"b\": expected 2 in dimension 0, as in input \"a\", got [3, 2]");
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 1, &other));
    BEL_ASSERT_OK(bel_predictor_run(predictor));
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)bel_predictor_output(predictor, 0).data)[i] == 7);
    wrong.dtype = BEL_DTYPE_F64;
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 1, &wrong), BEL_INVALID_ARGUMENT,
                     "input \"b\": expected f32 [?, ?] with at least one example, got f64 [2, 3]");
    wrong = floats(BEL_SHAPE(6), a);
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 1, &wrong), BEL_INVALID_ARGUMENT, "got f32 [6]");
    wrong.shape.rank = 9;
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 1, &wrong), BEL_INVALID_ARGUMENT, "of no rank");
    wrong = floats(BEL_SHAPE(0, 3), a);
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 1, &wrong), BEL_INVALID_ARGUMENT, "[0, 3]");
    wrong = floats(BEL_SHAPE(2, 3), NULL);
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 1, &wrong), BEL_INVALID_ARGUMENT,
                     "it has no elements");
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 2, &wide), BEL_INVALID_ARGUMENT,
                     "there is no input 2: expected 0 to 1");
    BEL_ASSERT_OK(bel_predictor_run(predictor)); // the last valid binding stays
    bel_predictor_destroy(predictor);
}

// A run detects an index out of range and names the operation. It then has no outputs.
static void test_errors_of_runs(void **state)
{
    (void)state;
    float a[6] = {0};
    int64_t indices[2] = {1, 9};
    const bel_tensor wide = floats(BEL_SHAPE(2, 3), a);
    bel_predictor *predictor = load(pair("Gather", 7, "count"));
    const bel_tensor some = {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(2), .data = indices};
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &wide));
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 1, &some));
    BEL_ASSERT_FAILS(bel_predictor_run(predictor), BEL_OUT_OF_RANGE, "Gather");
    assert_null(bel_predictor_output(predictor, 0).data);
    indices[1] = 0;
    BEL_ASSERT_OK(bel_predictor_run(predictor));
    bel_predictor_destroy(predictor);
}

// --- Loading -------------------------------------------------------------------------------------

static char *path_of(const char *name)
{
    return bel_path_join(bel_test_own_folder(), name);
}

static void write_file(const char *name, const char *bytes, size_t size)
{
    char *path = path_of(name);
    BEL_ASSERT_OK(bel_file_write_atomic(path, bytes, size));
    bel_free(path);
}

static void expect_error(const char *name, bel_code code, const char *part)
{
    bel_predictor *predictor = NULL;
    char *path = path_of(name);
    BEL_ASSERT_FAILS(bel_predictor_load(path, NULL, &predictor), code, part);
    bel_free(path);
}

static void expect_step(const char *name, int64_t step)
{
    bel_predictor *predictor = NULL;
    char *path = path_of(name);
    BEL_ASSERT_OK(bel_predictor_load(path, NULL, &predictor));
    assert_int_equal(bel_predictor_step(predictor), step);
    bel_predictor_destroy(predictor);
    bel_free(path);
}

static void test_files(void **state)
{
    (void)state;
    bel_str model = linear();
    expect_error("none.onnx", BEL_NOT_FOUND, "none.onnx");
    expect_error("", BEL_NOT_FOUND, "model.onnx");
    write_file("model.onnx", model.text, model.length);
    expect_step("", -1);
    expect_step("model.onnx", -1);
    write_file("cut.onnx", model.text, model.length / 2);
    expect_error("cut.onnx", BEL_DATA_LOSS, "cut.onnx: ");
    write_file("empty.onnx", "", 0);
    expect_error("empty.onnx", BEL_DATA_LOSS, "empty.onnx: ");
    bel_str_deinit(&model);
    model = pair("NoSuch", 1, "batch time");
    write_file("unknown.onnx", model.text, model.length);
    expect_error("unknown.onnx", BEL_UNIMPLEMENTED, "NoSuch");
    bel_str_deinit(&model);
}

static void test_signatures(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t step; // -2: DATA_LOSS
    } cases[] = {{"{\"inputs\": [], \"step\": 1200}", 1200},
                 {"{\"step\": \"many\"}", -1},
                 {"{}", -1},
                 {"[1200]", -1},
                 {"{\"step\": ", -2},
                 {"", -2}};
    bel_str model = linear();
    write_file("model.onnx", model.text, model.length);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("signature.json", cases[i].text, strlen(cases[i].text));
        if (cases[i].step == -2) {
            expect_error("", BEL_DATA_LOSS, "signature.json");
        } else {
            expect_step("", cases[i].step);
        }
    }
    bel_str_deinit(&model);
}

static void test_options(void **state)
{
    (void)state;
    bel_predictor *predictor = NULL;
    bel_str model = linear();
    float x[IN] = {1, 2, 3};
    const bel_tensor in = floats(BEL_SHAPE(1, IN), x);
    bel_predictor_options options = {.size = sizeof options, .threads = -1};
    BEL_ASSERT_FAILS(bel_predictor_load_bytes(model.text, model.length, &options, &predictor),
                     BEL_INVALID_ARGUMENT, "expected 0 to 1024, got -1");
    options.size = offsetof(bel_predictor_options, threads); // as in an older program
    BEL_ASSERT_OK(bel_predictor_load_bytes(model.text, model.length, &options, &predictor));
    bel_predictor_destroy(predictor);
    options = (bel_predictor_options){.size = sizeof options, .threads = 3};
    BEL_ASSERT_OK(bel_predictor_load_bytes(model.text, model.length, &options, &predictor));
    memset(model.text, 0, model.length); // no longer needed
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &in));
    BEL_ASSERT_OK(bel_predictor_run(predictor));
    expect_linear(predictor, x, 1);
    bel_predictor_destroy(predictor);
    bel_str_deinit(&model);
}

// --- Joined requests ----------------------------------------------------------------------------

enum { INNER = 64, HIDDEN = 512, JOINED = 16 };

// Model y = (x · w) · v for x [batch, 64]. The products of one request are small, those of 16 are
// not.
static bel_str two_products(const char *producer)
{
    static float w[INNER][HIDDEN], v[HIDDEN][OUT];
    for (int i = 0; i < INNER * HIDDEN; i++)
        w[i / HIDDEN][i % HIDDEN] = (float)(i % 101 - 50) / 37;
    for (int i = 0; i < HIDDEN * OUT; i++)
        v[i / OUT][i % OUT] = (float)(i % 89 - 44) / 31;
    bel_str graph = {.text = NULL}, part = make_node("MatMul", "x w", "h", NULL);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_node("MatMul", "h v", "y", NULL);
    put_part(&graph, GRAPH_NODE, &part);
    part = make_tensor("w", 1, (int64_t[]){INNER, HIDDEN}, 2, w, sizeof w);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    part = make_tensor("v", 1, (int64_t[]){HIDDEN, OUT}, 2, v, sizeof v);
    put_part(&graph, GRAPH_INITIALIZER, &part);
    part = make_port("x", 1, "batch 64");
    put_part(&graph, GRAPH_INPUT, &part);
    part = make_port("y", 1, "batch 2");
    put_part(&graph, GRAPH_OUTPUT, &part);
    bel_str model = make_model(&graph, 17);
    put_text(&model, 2, producer);
    return model;
}

static void run_rows(bel_predictor *predictor, float *x, int64_t rows)
{
    const bel_tensor in = floats(BEL_SHAPE(rows, INNER), x);
    BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &in));
    BEL_ASSERT_OK(bel_predictor_run(predictor));
}

// Requests of 1 and 2 examples, 16 in a run, have the bits of separate runs; without the option
// they would not. The file is Belfry's, or another tool's, whose products have four chains.
static void test_joined(void **state)
{
    (void)state;
    static const char *const producers[] = {"belfry", "other"};
    static float x[2 * JOINED][INNER];
    for (int i = 0; i < 2 * JOINED * INNER; i++)
        x[i / INNER][i % INNER] = (float)(i % 103 - 51) / 43;
    for (int p = 0; p < 2; p++) {
        bel_predictor *single, *joined, *batch;
        bel_predictor_options options = {.size = sizeof options, .joined = JOINED};
        bel_str model = two_products(producers[p]);
        BEL_ASSERT_OK(bel_predictor_load_bytes(model.text, model.length, NULL, &single));
        BEL_ASSERT_OK(bel_predictor_load_bytes(model.text, model.length, NULL, &batch));
        BEL_ASSERT_OK(bel_predictor_load_bytes(model.text, model.length, &options, &joined));
        for (int64_t rows = 1; rows <= 2; rows++) {
            int differ = 0;
            run_rows(joined, x[0], JOINED * rows);
            run_rows(batch, x[0], JOINED * rows);
            const float *got = bel_predictor_output(joined, 0).data;
            const float *other = bel_predictor_output(batch, 0).data;
            for (int64_t r = 0; r < JOINED; r++) {
                run_rows(single, x[r * rows], rows);
                const float *want = bel_predictor_output(single, 0).data;
                size_t floats_of = (size_t)rows * OUT;
                assert_memory_equal(got + (size_t)r * floats_of, want, floats_of * sizeof *want);
                differ += memcmp(other + (size_t)r * floats_of, want, floats_of * sizeof *want);
            }
            assert_true(differ != 0);
        }
        bel_predictor_destroy(single);
        bel_predictor_destroy(batch);
        bel_predictor_destroy(joined);
        options.joined = -1;
        BEL_ASSERT_FAILS(bel_predictor_load_bytes(model.text, model.length, &options, &joined),
                         BEL_INVALID_ARGUMENT, "joined: expected 0 or more, got -1");
        bel_str_deinit(&model);
    }
}

// --- No allocation -------------------------------------------------------------------------------

// The linker replaces the C library's functions with these (--wrap, tests/CMakeLists.txt), for
// calls from Belfry's objects.
static atomic_llong calls;

#define COUNTED(name, result, parameters, arguments)                                               \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        atomic_fetch_add(&calls, 1);                                                               \
        return __real_##name arguments;                                                            \
    }
COUNTED(malloc, void *, (size_t size), (size))
COUNTED(calloc, void *, (size_t count, size_t size), (count, size))
COUNTED(realloc, void *, (void *memory, size_t size), (memory, size))
COUNTED(pthread_mutex_lock, int, (pthread_mutex_t * mutex), (mutex))
COUNTED(mmap, void *, (void *at, size_t size, int access, int flags, int file, off_t offset),
        (at, size, access, flags, file, offset))

// Runs with shapes seen before allocate nothing. So do runs after binding the same shape at another
// address, or another known shape.
static void test_no_allocation(void **state)
{
    (void)state;
#ifdef BEL_SANITIZE
    print_message("skipped: sanitizers (%s) replace malloc themselves\n", BEL_SANITIZE);
    skip();
#endif
    float x[4 * IN] = {1, 2, 3, 4}, other[4 * IN] = {5, 6, 7, 8};
    const bel_tensor ins[] = {floats(BEL_SHAPE(1, IN), x), floats(BEL_SHAPE(4, IN), x),
                              floats(BEL_SHAPE(1, IN), other)};
    bel_predictor *predictor = load(linear());
    for (int round = 0; round < 3; round++) {
        long long before = atomic_load(&calls);
        assert_true(before > 0); // the calls are counted
        for (int i = 0; i < 3; i++) {
            BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &ins[i]));
            for (int run = 0; run < 100; run++)
                BEL_ASSERT_OK(bel_predictor_run(predictor));
            expect_linear(predictor, ins[i].data, ins[i].shape.dims[0]);
        }
        if (round > 1) assert_int_equal(atomic_load(&calls), before);
    }
    bel_predictor_destroy(predictor);
}

// --- Threads -------------------------------------------------------------------------------------

typedef struct worker {
    const bel_str *model;
    float x[IN], y[OUT];
    bel_status *status;
} worker;

static bel_status *work(worker *w)
{
    bel_predictor *predictor;
    const bel_tensor in = floats(BEL_SHAPE(1, IN), w->x);
    BEL_TRY(bel_predictor_load_bytes(w->model->text, w->model->length, NULL, &predictor));
    bel_status *status = bel_predictor_bind(predictor, 0, &in);
    for (int i = 0; i < 1000 && status == NULL; i++)
        status = bel_predictor_run(predictor);
    if (status == NULL) memcpy(w->y, bel_predictor_output(predictor, 0).data, sizeof w->y);
    bel_predictor_destroy(predictor);
    return status;
}

static void *work_on_thread(void *argument)
{
    worker *w = argument;
    w->status = work(w);
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    bel_str model = linear();
    worker workers[2] = {{.model = &model, .x = {1, 2, 3}}, {.model = &model, .x = {-1, 0, 4}}};
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, work_on_thread, &workers[t]), 0);
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    for (int t = 0; t < 2; t++) {
        const worker *w = &workers[t];
        BEL_ASSERT_OK(w->status);
        for (int j = 0; j < OUT; j++)
            assert_true(w->y[j] == bias[j] + w->x[0] * weights[0][j] + w->x[1] * weights[1][j] +
                                       w->x[2] * weights[2][j]);
    }
    bel_str_deinit(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ports),
                                       cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_many_shapes),
                                       cmocka_unit_test(test_binding),
                                       cmocka_unit_test(test_transposed_weights),
                                       cmocka_unit_test(test_errors_of_runs),
                                       BEL_TEST_IN_FOLDER(test_files),
                                       BEL_TEST_IN_FOLDER(test_signatures),
                                       cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_no_allocation),
                                       cmocka_unit_test(test_two_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
