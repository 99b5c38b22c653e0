// Programs whose variables and outputs are bound in a GPU's memory (bel_program_options.on_device).
// No variable or output is copied to the process. A copy fills each output that no kernel writes at
// its bound address. Graphs follow when other memory is bound. label: native
#include <unistd.h>

#include "base/linux_shared.h"
#include "belfry/ops.h"
#include "cuda/device.h"
#include "support/bel_test.h"
#include "support/cards.h"

static bel_device *card;

static void count_published(void *counts, int output, int64_t first, int64_t count)
{
    assert_int_equal(first, 0);
    assert_int_equal(count, 65);
    ((int *)counts)[output]++;
}

enum { BOUND = 65, BOUND_OUTPUTS = 5 };

// Copies between the process and the GPU, and waits for the copy.
static void copy_floats(float *here, uint64_t there, bool in)
{
    bel_cuda_device *device = (bel_cuda_device *)card;
    const bel_cuda_api *api = device->api;
    void *stream, *done;
    size_t bytes = BOUND * sizeof(float);
    BEL_ASSERT_OK(bel_cuda_enter(device));
    assert_int_equal(api->stream_create(&stream, BEL_CUDA_STREAM_NON_BLOCKING), 0);
    assert_int_equal(api->event_create(&done, BEL_CUDA_EVENT_NO_TIMING), 0);
    assert_int_equal(in ? api->copy_in(there, here, bytes, stream)
                        : api->copy_out(here, there, bytes, stream),
                     0);
    BEL_ASSERT_OK(bel_cuda_await_stream(device, stream, done, "copy"));
    api->event_destroy(done);
    api->stream_destroy(stream);
}

typedef struct bound_memory {
    bel_device_memory variable, outputs[BOUND_OUTPUTS];
} bound_memory;

static bound_memory allocate_bound(float factor)
{
    bound_memory m;
    float w[BOUND];
    size_t bytes = sizeof w;
    for (int i = 0; i < BOUND; i++)
        w[i] = factor * (float)i;
    BEL_ASSERT_OK(card->ops->allocate(card, bytes, "test", &m.variable));
    for (int o = 0; o < BOUND_OUTPUTS; o++)
        BEL_ASSERT_OK(card->ops->allocate(card, bytes, "test", &m.outputs[o]));
    copy_floats(w, (uint64_t)(uintptr_t)m.variable.address, true);
    return m;
}

static void release_bound(bound_memory *m)
{
    card->ops->release(card, &m->variable);
    for (int o = 0; o < BOUND_OUTPUTS; o++)
        card->ops->release(card, &m->outputs[o]);
}

// The outputs: a product of the variable and the input, twice, then the variable, the input and a
// constant. Each is published once, at the end of a run.
static void check_bound(bel_instance *instance, const bound_memory *m, const float *x, float factor)
{
    bel_run_context context = {.seed = 7};
    bel_instance_bind_variable(instance, 0, m->variable.address);
    for (int o = 0; o < BOUND_OUTPUTS; o++)
        bel_instance_bind_output(instance, o, m->outputs[o].address);
    for (int turn = 0; turn < 3; turn++) { // one by one, captured as a graph, replayed
        int counts[BOUND_OUTPUTS] = {0};
        float got[BOUND];
        BEL_ASSERT_OK(bel_instance_run(instance, NULL, &context, count_published, counts));
        for (int o = 0; o < BOUND_OUTPUTS; o++) {
            assert_int_equal(counts[o], 1);
            copy_floats(got, (uint64_t)(uintptr_t)m->outputs[o].address, false);
            for (int i = 0; i < BOUND; i++) {
                float w = factor * (float)i;
                const float expected[BOUND_OUTPUTS] = {w * x[i], w * x[i], w, x[i], 3};
                assert_true(got[i] == expected[o]);
            }
        }
    }
}

static void test_on_device(void **state)
{
    (void)state;
    float x[BOUND], threes[BOUND];
    for (int i = 0; i < BOUND; i++) {
        x[i] = (float)i - 30;
        threes[i] = 3;
    }
    bel_graph *graph = bel_graph_create();
    bel_value *in = bel_input_value(graph, "x", BEL_DTYPE_F32, &BEL_SHAPE(BOUND));
    bel_value *w =
        bel_variable(graph, "w", &BEL_SHAPE(BOUND), (bel_initializer){0}, BEL_VARIABLE_TRAINABLE);
    bel_value *y = bel_mul(graph, w, in);
    bel_value *constant = bel_constant(
        graph, &(bel_tensor){.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(BOUND), .data = threes});
    bel_program_output outputs[BOUND_OUTPUTS] = {
        {y, true}, {y, true}, {w, true}, {in, true}, {constant, true}};
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_program_options options = {.threads = 1, .device = card, .on_device = true};
    bel_program *program;
    BEL_ASSERT_OK(
        bel_program_compile(graph, &BEL_SHAPE(BOUND), outputs, BOUND_OUTPUTS, &options, &program));
    bel_device_memory memory;
    bel_instance *instance;
    BEL_ASSERT_OK(card->ops->allocate(card, bel_program_arena_bytes(program), "test", &memory));
    BEL_ASSERT_OK(bel_instance_create_on(program, &memory, &instance));
    bel_instance_bind_input(instance, 0, x);
    bound_memory first = allocate_bound(2), second = allocate_bound(-1);
    check_bound(instance, &first, x, 2);
    check_bound(instance, &second, x, -1); // graphs are captured again
    release_bound(&first);
    check_bound(instance, &second, x, -1);
    bel_instance_destroy(instance);
    release_bound(&second);
    card->ops->release(card, &memory);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
}

// Announced inputs are on the GPU before their run begins, so later changes of the process's memory
// have no effect. A run copies inputs that were not announced.
static void test_inputs_ahead(void **state)
{
    (void)state;
    enum { RUNS = 5 };
    static float x[RUNS][BOUND];
    bel_graph *graph = bel_graph_create();
    bel_value *in = bel_input_value(graph, "x", BEL_DTYPE_F32, &BEL_SHAPE(BOUND));
    bel_program_output output = {.value = bel_mul(graph, in, in)};
    bel_program_options options = {.threads = 1, .device = card};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(graph, &BEL_SHAPE(BOUND), &output, 1, &options, &program));
    bel_device_memory memory;
    bel_instance *instance;
    BEL_ASSERT_OK(bel_program_allocate(program, &memory));
    BEL_ASSERT_OK(bel_instance_create_on(program, &memory, &instance));
    bel_run_context context = {.seed = 7};
    for (int r = 0; r < RUNS; r++)
        for (int i = 0; i < BOUND; i++)
            x[r][i] = (float)(r * BOUND + i);
    for (int r = 0; r < RUNS; r++) {
        const float *next = r + 1 < RUNS ? x[r + 1] : NULL;
        bel_instance_bind_input(instance, 0, x[r]);
        // The input of run 2 is not announced, and the announcement for run 3 is wrong.
        bel_instance_announce_input(instance, 0, r == 1 ? NULL : r == 2 ? x[0] : next);
        BEL_ASSERT_OK(bel_instance_run(instance, NULL, &context, NULL, NULL));
        const float *y = bel_instance_output(instance, 0).data;
        for (int i = 0; i < BOUND; i++) {
            float was = (float)(r * BOUND + i);
            assert_true(y[i] == was * was);
        }
        if (r == 0 || r == 3) memset(x[r + 1], 0, sizeof x[r + 1]); // it was announced
    }
    bel_instance_destroy(instance);
    bel_program_release(program, &memory);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
}

// Memory that may only be read can be pinned, like other processes' parameters, and pinned again
// after it is unpinned.
static void test_pinned(void **state)
{
    (void)state;
    const bel_cuda_api *api = ((bel_cuda_device *)card)->api;
    enum { BYTES = 1 << 16 };
    int descriptor;
    void *memory[2]; // for the process that writes, and for one that reads
    BEL_ASSERT_OK(bel_linux_shared_create("test", BYTES, &descriptor, &memory[0]));
    memory[1] = bel_linux_shared_map(descriptor, BYTES);
    for (int i = 0; i < 2; i++) {
        bel_device_pin(card, memory[i], BYTES, true);
        assert_int_equal(api->host_unregister(memory[i]), 0); // it was pinned
        bel_device_pin(card, memory[i], BYTES, true);
        bel_device_pin(card, memory[i], BYTES, false);
        assert_int_not_equal(api->host_unregister(memory[i]), 0); // no longer pinned
        bel_linux_shared_unmap(memory[i], BYTES);
    }
    close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_on_device),
                                       cmocka_unit_test(test_inputs_ahead),
                                       cmocka_unit_test(test_pinned)};
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
