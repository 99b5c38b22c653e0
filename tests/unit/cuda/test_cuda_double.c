// Stand-ins for NVIDIA's libraries (tests/support/cuda_double). They do what CUDA does, and end the
// process for every error that a real GPU would not report.
//
// A process has one driver, so each case runs in a forked child (cases.h) with the case's
// environment. The test compares the child's stderr. cases.cu holds the kernels.
// label: native, label: thorough
#include <pthread.h>

#include "support/cuda_double/cases.h"

// --- Correct kernels -----------------------------------------------------------------------------

static void add_vectors(void)
{
    float a[N], b[N];
    begin();
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)(i * i);
    }
    uint64_t of_a = numbers(N, a), of_b = numbers(N, b), of_y = allocate(BYTES);
    launch("add", 3, 32, of_a, of_b, of_y, (params){.count = N});
    const float *y = out_numbers(of_y, N);
    for (int i = 0; i < N; i++)
        NEED(y[i] == a[i] + b[i]);
    OK(release(of_a));
    OK(release(of_b));
    OK(release(of_y));
    for (int i = 0; i < 2; i++)
        OK(stream_destroy(streams[i]));
    OK(module_unload(module));
    OK(context_release(0));
}

static void test_vector_add(void **state)
{
    (void)state;
    expect_fine_with(add_vectors, (const char *[]){"CUDA_DOUBLE_LEAKS=1", NULL});
    expect_fine_with(add_vectors,
                     (const char *[]){"CUDA_DOUBLE_LEAKS=1", "CUDA_DOUBLE_CHECKS=0", NULL});
}

static void sum_blocks(void)
{
    float x[4 * 64];
    begin();
    for (int i = 0; i < 4 * 64; i++)
        x[i] = (float)(i % 7 * (i / 64 + 1));
    uint64_t of_x = numbers(4 * 64, x), of_y = allocate(4 * sizeof(float));
    launch("block_sum", 4, 64, of_x, 0, of_y, (params){0});
    const float *y = out_numbers(of_y, 4);
    for (int block = 0; block < 4; block++) {
        float expected = 0; // a sum of integers: exact
        for (int i = 0; i < 64; i++)
            expected += x[block * 64 + i];
        NEED(y[block] == expected);
    }
}

static void test_block_sum(void **state)
{
    (void)state;
    expect_fine(sum_blocks);
}

static void use_own_memory(void)
{
    static const float sorted[] = {1, 1.5f, 3, 4};
    begin();
    uint64_t of_y = allocate(6 * 24 * sizeof(float));
    bel_cuda_operands at = operands_of(0, 0, of_y);
    params p = {.offset = 1};
    void *kernel, *arguments[] = {&at, &p};
    OK(module_function(&kernel, module, "own_memory"));
    OK(launch(kernel, 3, 2, 1, 2, 3, 4, 0, streams[0], arguments, NULL));
    const float *y = out_numbers(of_y, 6 * 24);
    for (int i = 0; i < 6 * 24; i++)
        NEED(y[i] == sorted[i % 24 % 4] + 1);
}

static void share_bytes(void)
{
    static unsigned char y[N];
    begin();
    uint64_t of_y = allocate(N);
    launch("bytes", 4, 32, 0, 0, of_y, (params){.count = N});
    OK(copy_out(y, of_y, N, streams[0]));
    for (int i = 0; i < N; i++)
        NEED(y[i] == i);
}

static void share_a_word(void)
{
    int y[2 + 24];
    begin();
    uint64_t of_y = filled(sizeof y);
    launch("least", 3, 8, 0, 0, of_y, (params){.count = 5});
    launch("first", 3, 8, 0, 0, of_y, (params){.count = 7});
    OK(copy_out(y, of_y, sizeof y, streams[0]));
    NEED(y[0] == 1 && y[1] == 7 && y[2] == 2 && y[25] == 2);
}

static void test_no_false_alarms(void **state)
{
    (void)state;
    expect_fine(use_own_memory);
    expect_fine(share_bytes);
    expect_fine(share_a_word);
}

// --- Wrong kernels -------------------------------------------------------------------------------

static void race_in_block(void)
{
    begin();
    uint64_t of_x = filled(64 * sizeof(float)), of_y = allocate(sizeof(float));
    launch("block_sum_in_haste", 1, 64, of_x, 0, of_y, (params){0});
    finish();
}

static void race_of_writers(void)
{
    begin();
    launch("all_to_one", 2, 32, 0, 0, filled(BYTES), (params){.factor = 1});
    finish();
}

static void race_of_blocks(void)
{
    begin();
    launch("neighbors", 2, 1, 0, 0, filled(BYTES), (params){.factor = 1});
    finish();
}

static void test_races(void **state)
{
    (void)state;
    expect_end(race_in_block, "kernel block_sum_in_haste, block (0,0,0), thread (",
               "shared memory");
    expect_end(race_of_writers, "kernel all_to_one, block (1,0,0), thread (0,0,0), writes",
               "which block (0,0,0), thread (0,0,0) writes: nothing orders the two");
    expect_end(race_of_blocks, "kernel neighbors, block (1,0,0), thread (0,0,0), writes",
               "which block (0,0,0), thread (0,0,0) reads: nothing orders the two");
}

static void read_host(void)
{
    static float mine[N];
    begin();
    uint64_t of_b = filled(BYTES), of_y = allocate(BYTES);
    launch("add", 1, 32, (uintptr_t)mine, of_b, of_y, (params){.count = N});
    finish();
}

static void write_host(void)
{
    static float mine[N];
    begin();
    uint64_t of_a = filled(BYTES), of_b = filled(BYTES);
    launch("add", 1, 32, of_a, of_b, (uintptr_t)mine, (params){.count = N});
    finish();
}

static void write_behind(void)
{
    begin();
    uint64_t of_a = filled(2 * BYTES), of_b = filled(2 * BYTES), of_y = allocate(BYTES);
    launch("add", 1, 128, of_a, of_b, of_y, (params){.count = N + 1});
    finish();
}

static void write_before(void)
{
    begin();
    launch("all_to_one", 1, 1, 0, 0, allocate(BYTES) - 4, (params){.factor = 1});
    finish();
}

static void copy_too_much(void)
{
    static char mine[2 * BYTES];
    begin();
    uint64_t of_x = filled(BYTES);
    (void)cuda.copy_out(mine, of_x, BYTES + 1, streams[0]);
}

static void use_freed(void)
{
    begin();
    uint64_t of_y = filled(BYTES);
    OK(release(of_y));
    launch("count_up", 1, 128, 0, 0, of_y, (params){.count = N});
    finish();
}

static void free_under_kernel(void)
{
    begin();
    uint64_t of_y = filled(BYTES);
    launch("count_up", 1, 128, 0, 0, of_y, (params){.count = N});
    OK(release(of_y));
    finish();
}

static void free_under_fill(void)
{
    begin();
    uint64_t of_y = allocate(BYTES);
    OK(fill(of_y, 0, BYTES, streams[0]));
    (void)cuda.release(of_y);
}

static void test_places(void **state)
{
    (void)state;
    expect_end(read_host, "kernel add, block (0,0,0), thread (0,0,0), reads host memory 0x", "");
    expect_end(write_host, "kernel add, block (0,0,0), thread (0,0,0), writes host memory 0x", "");
    expect_end(write_behind, "kernel add, block (0,0,0), thread (100,0,0), writes outside of",
               "0 bytes after the end of the allocation of 400 bytes");
    expect_end(write_before, "kernel all_to_one, block (0,0,0), thread (0,0,0), writes outside of",
               "4 bytes before the allocation of 400 bytes");
    expect_end(copy_too_much, "cuMemcpyDtoHAsync", "401 bytes");
    expect_end(use_freed, "kernel count_up, block (0,0,0), thread (0,0,0), reads freed memory",
               "byte 0 of the freed allocation of 400 bytes");
    expect_end(free_under_kernel, "reads freed memory", "kernel count_up");
    expect_end(free_under_fill, "cuMemFree: operations that touch the memory", "are not done");
}

static void read_unwritten(void)
{
    begin();
    launch("count_up", 1, 32, 0, 0, allocate(BYTES), (params){.count = N});
    finish();
}

static void copy_unwritten(void)
{
    static char mine[BYTES];
    begin();
    uint64_t of_y = allocate(BYTES);
    OK(fill(of_y, 0, BYTES - 1, streams[0]));
    (void)cuda.copy_out(mine, of_y, BYTES, streams[0]);
}

static void read_unwritten_shared(void)
{
    begin();
    launch("bare_shared", 1, 32, 0, 0, allocate(BYTES), (params){.factor = 1});
    finish();
}

static void test_never_written(void **state)
{
    (void)state;
    expect_end(read_unwritten,
               "kernel count_up, block (0,0,0), thread (0,0,0), reads what was "
               "never written",
               "byte 0 of the allocation of 400 bytes");
    expect_end(copy_unwritten,
               "copy to the host (operation 2, stream 1) reads what was never "
               "written",
               "byte 396 of the allocation of 400 bytes");
    expect_end(read_unwritten_shared,
               "kernel bare_shared, block (0,0,0), thread (0,0,0), reads "
               "what was never written",
               "shared memory");
}

static void desert(void)
{
    begin();
    launch("deserters", 1, 4, 0, 0, 0, (params){0});
    finish();
}

static void test_barrier_without_all(void **state)
{
    (void)state;
    expect_end(desert, "kernel deserters, block (0,0,0), thread (1,0,0), waits at a barrier",
               "1 threads of the block have not come");
}

// --- Order ---------------------------------------------------------------------------------------

static void use_two_streams(bool with_event, bool with_finish)
{
    begin();
    uint64_t of_x = filled(BYTES), of_y = filled(BYTES);
    void *event = new_event(2);
    OK(stream_wait(streams[1], event, 0)); // never recorded: no effect
    launch("count_up", 1, 32, 0, 0, of_x, (params){.count = N, .factor = 1, .offset = 3});
    OK(event_record(event, streams[0]));
    if (with_event) OK(stream_wait(streams[1], event, 0));
    if (with_finish) OK(event_finish(event));
    NEED(launch_in(streams[1], "add", 1, 32, of_x, of_x, of_y, (params){.count = N}) == 0);
    OK(stream_finish(streams[1]));
    OK(stream_finish(streams[0]));
    NEED(out_numbers(of_y, N)[N - 1] == 6);
}

static void forget_event(void)
{
    use_two_streams(false, false);
}

static void wait_for_event(void)
{
    use_two_streams(true, false);
}

static void finish_between(void)
{
    use_two_streams(false, true);
}

// A wait applies to the last record before the call.
static void record_again(void)
{
    begin();
    uint64_t of_x = filled(BYTES), of_y = filled(BYTES);
    void *event = new_event(2);
    OK(event_record(event, streams[0]));
    OK(stream_wait(streams[1], event, 0));
    launch("count_up", 1, 32, 0, 0, of_x, (params){.count = N});
    OK(event_record(event, streams[0]));
    NEED(launch_in(streams[1], "add", 1, 32, of_x, of_x, of_y, (params){.count = N}) == 0);
    OK(stream_finish(streams[1]));
    finish();
}

static void copy_in_disorder(void)
{
    static char mine[BYTES];
    begin();
    uint64_t of_x = filled(BYTES);
    OK(host_register(mine, BYTES, 0));
    OK(copy_out(mine, of_x, BYTES, streams[0]));
    OK(fill(of_x, 1, BYTES, streams[1]));
    finish();
    OK(stream_finish(streams[1]));
}

static void test_order(void **state)
{
    (void)state;
    static const char *const seeds[] = {"CUDA_DOUBLE_SEED=1", "CUDA_DOUBLE_SEED=2",
                                        "CUDA_DOUBLE_SEED=3", "CUDA_DOUBLE_SEED=4"};
    for (int i = 0; i < 4; i++) {
        const char *const variables[] = {seeds[i], NULL};
        expect_fine_with(wait_for_event, variables);
        expect_fine_with(finish_between, variables);
        setenv("CUDA_DOUBLE_SEED", strchr(seeds[i], '=') + 1, 1);
        expect_end(forget_event, "kernel count_up (operation 3, stream 1)",
                   "kernel add (operation 4, stream 2)");
        expect_end(forget_event, "nothing orders the two", "of the allocation of 400 bytes");
        unsetenv("CUDA_DOUBLE_SEED");
    }
    expect_end(record_again, "kernel count_up (operation 3, stream 1)",
               "kernel add (operation 4, stream 2)");
    expect_end(copy_in_disorder, "copy to the host (operation 2, stream 1)",
               "fill (operation 3, stream 2)");
}

// Without checks the seed decides which of two streams runs first; the exit status names it.
static void race_streams(void)
{
    begin();
    uint64_t of_x = filled(BYTES);
    for (int i = 0; i < 2; i++)
        OK(fill(of_x, (unsigned char)(1 + i), BYTES, streams[i]));
    OK(stream_finish(streams[0]));
    OK(stream_finish(streams[1]));
    unsigned char first;
    OK(copy_out(&first, of_x, 1, streams[0]));
    _exit(first);
}

static void test_seeds_give_orders(void **state)
{
    (void)state;
    bool seen[3] = {false, false, false};
    for (int seed = 1; seed <= 16; seed++) {
        char variable[32];
        snprintf(variable, sizeof variable, "CUDA_DOUBLE_SEED=%d", seed);
        end once, again;
        const char *const variables[] = {variable, "CUDA_DOUBLE_CHECKS=0", NULL};
        run_child(race_streams, variables, &once);
        run_child(race_streams, variables, &again);
        assert_true(WIFEXITED(once.state));
        assert_int_equal(once.state, again.state);
        assert_in_range(WEXITSTATUS(once.state), 1, 2);
        seen[WEXITSTATUS(once.state)] = true;
    }
    assert_true(seen[1] && seen[2]);
}

// --- Late execution ------------------------------------------------------------------------------

static void change_early(void)
{
    static float pinned[N], plain[N], back[N];
    begin();
    uint64_t of_pinned = allocate(BYTES), of_plain = allocate(BYTES);
    OK(host_register(pinned, BYTES, 0));
    OK(host_register(back, BYTES, 0));
    OK(copy_in(of_pinned, pinned, BYTES, streams[0]));
    OK(copy_in(of_plain, plain, BYTES, streams[0]));
    for (int i = 0; i < N; i++)
        pinned[i] = plain[i] = 7; // the first copy has not run; the second one took its bytes
    OK(copy_out(back, of_pinned, BYTES, streams[0]));
    NEED(back[0] == 0); // not yet
    finish();
    NEED(back[0] == 7);
    OK(copy_out(plain, of_plain, BYTES, streams[0]));
    NEED(plain[0] == 0); // at once
    OK(host_unregister(pinned));
    NEED(cuda.host_unregister(pinned) == 1);
    NEED(cuda.host_register(back + 1, 4, 0) == 712);
}

static void free_host_early(void)
{
    void *memory;
    begin();
    uint64_t of_x = allocate(64);
    OK(host_allocate(&memory, 64, 0));
    OK(copy_in(of_x, memory, 64, streams[0]));
    OK(host_release(memory));
}

static void fill_the_queue(void)
{
    static unsigned char pinned[4];
    begin();
    uint64_t of_x = allocate(4);
    OK(host_register(pinned, 4, 0));
    OK(fill(of_x, 9, 4, streams[0]));
    OK(copy_out(pinned, of_x, 4, streams[0]));
    for (int i = 0; i < 9000; i++)
        OK(fill(of_x, 1, 4, streams[0]));
    NEED(pinned[0] == 0);
    for (int i = 0; i < 2000; i++)
        OK(fill(of_x, 1, 4, streams[0]));
    NEED(pinned[0] == 9);
}

static void test_late_execution(void **state)
{
    (void)state;
    expect_fine(change_early);
    expect_fine(fill_the_queue);
    expect_end(free_host_early, "cuMemFreeHost: copies from or to the memory", "are not done");
}

static void touch_device_memory(void)
{
    begin();
    volatile char *address = (volatile char *)(uintptr_t)filled(64);
    *address = 1;
    _exit(0);
}

static void test_host_cannot_touch(void **state)
{
    (void)state;
    end e;
    run_child(touch_device_memory, NULL, &e);
    assert_int_not_equal(e.state, 0);
}

// --- Contexts, memory, devices -------------------------------------------------------------------

static void use_others_stream(void)
{
    begin();
    use_other_device();
    (void)cuda.stream_finish(streams[0]);
}

static void use_others_memory(void)
{
    begin();
    uint64_t of_x = filled(BYTES);
    void *stream;
    use_other_device();
    OK(stream_create(&stream, 0));
    (void)cuda.fill(of_x, 0, BYTES, stream);
}

static void use_others_memory_in_kernel(void)
{
    begin();
    uint64_t of_x = filled(BYTES);
    OK(context_retain(&contexts[1], 1));
    OK(context_set(contexts[1]));
    OK(module_load(&module, kernels));
    OK(stream_create(&streams[0], 0));
    launch("count_up", 1, 32, 0, 0, of_x, (params){.count = N});
    finish();
}

static void use_others_module(void)
{
    begin();
    use_other_device();
    void *kernel;
    (void)cuda.module_function(&kernel, module, "add");
}

static void use_destroyed_stream(void)
{
    begin();
    OK(stream_destroy(streams[1]));
    (void)cuda.stream_finish(streams[1]);
}

static void use_no_context(void)
{
    uint64_t address;
    NEED(cuda.allocate(&address, 4) == 3);
    OK(init(0));
    NEED(cuda.allocate(&address, 4) == 201);
    begin();
    OK(context_release(0));
    NEED(cuda.allocate(&address, 4) == 201);
    OK(context_set(NULL));
    NEED(cuda.allocate(&address, 4) == 201);
}

static void test_contexts(void **state)
{
    (void)state;
    expect_end(use_others_stream, "cuStreamSynchronize: stream 1 belongs to device 0",
               "the current context to device 1");
    expect_end(use_others_memory, "cuMemsetD8Async", "is memory of device 0");
    expect_end(use_others_memory_in_kernel, "kernel count_up, block (0,0,0), thread (0,0,0), reads",
               "memory of device 0");
    expect_end(use_others_module, "cuModuleGetFunction: module 1 belongs to device 0", "");
    expect_end(use_destroyed_stream, "cuStreamSynchronize: stream 2 was destroyed", "");
    expect_fine(use_no_context);
}

static void run_out(void)
{
    size_t rest, total;
    uint64_t address, other;
    begin();
    NEED(cuda.allocate(&address, (1 << 20) + 1) == 2);
    OK(allocate(&address, 3 << 18));
    NEED(cuda.allocate(&other, (1 << 18) + 1) == 2);
    OK(allocate(&other, 1 << 18));
    NEED(cuda.allocate(&other, 1) == 2);
    OK(memory_info(&rest, &total));
    NEED(rest == 0 && total == 1 << 20);
    OK(release(address));
    OK(memory_info(&rest, &total));
    NEED(rest == 3 << 18);
    for (int i = 0; i < 4500; i++) { // addresses are reused in the end
        OK(allocate(&address, 1 << 18));
        OK(release(address));
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    expect_fine_with(run_out, (const char *[]){"CUDA_DOUBLE_MEMORY=1048576", NULL});
}

static void lose(void)
{
    begin();
    uint64_t of_x = filled(BYTES), address; // filled() is one operation
    void *stream;
    OK(fill(of_x, 1, BYTES, streams[0]));
    finish();
    OK(fill(of_x, 2, BYTES, streams[0]));
    NEED(cuda.stream_finish(streams[0]) == 719);
    NEED(cuda.stream_finish(streams[1]) == 719);
    NEED(cuda.fill(of_x, 2, BYTES, streams[0]) == 719);
    NEED(cuda.allocate(&address, 4) == 719);
    NEED(cuda.release(of_x) == 719);
    use_other_device(); // which still works
    OK(stream_create(&stream, 0));
    for (int i = 0; i < 5; i++) {
        OK(allocate(&address, 64));
        OK(fill(address, 0, 64, stream));
        OK(stream_finish(stream));
        OK(release(address));
    }
    OK(context_set(contexts[0]));
    NEED(cuda.allocate(&address, 4) == 719);
    const char *name, *text;
    OK(error_name(719, &name));
    OK(error_text(719, &text));
    NEED(strcmp(name, "CUDA_ERROR_LAUNCH_FAILED") == 0 && text[0] != '\0');
    NEED(cuda.error_name(12345, &name) == 1);
}

static void release_what_the_lost_would_touch(void)
{
    static float pinned[N];
    begin();
    uint64_t of_x = filled(BYTES); // filled() is one operation
    OK(host_register(pinned, BYTES, 1));
    for (int i = 0; i < 20; i++)
        OK(copy_out(pinned, of_x, BYTES, streams[0]));
    OK(fill(allocate(4), 1, 4, streams[1]));
    NEED(cuda.stream_finish(streams[1]) == 719); // fails before all copies ran
    NEED(cuda.host_unregister(pinned) == 719);
    use_other_device();
    OK(host_unregister(pinned));
}

static void test_lost_device(void **state)
{
    (void)state;
    expect_fine_with(lose, (const char *[]){"CUDA_DOUBLE_LOSE=0:2", NULL});
    expect_fine_with(release_what_the_lost_would_touch,
                     (const char *[]){"CUDA_DOUBLE_LOSE=0:1", NULL});
}

static void look_at_devices(void)
{
    int count, value, device;
    size_t bytes;
    char name[64];
    OK(init(0));
    OK(device_count(&count));
    NEED(count == 3);
    OK(device(&device, 2));
    NEED(cuda.device(&device, 3) == 101);
    OK(device_name(name, sizeof name, 2));
    NEED(strcmp(name, "CUDA double 2") == 0);
    OK(device_pci(name, sizeof name, 2));
    NEED(strcmp(name, "0000:02:00.0") == 0);
    OK(device_memory(&bytes, 0));
    NEED(bytes == 256 << 20);
    OK(device_attribute(&value, 75, 0));
    NEED(value == 9);
    OK(device_attribute(&value, 16, 0));
    NEED(value == 4);
    OK(driver_version(&value));
    NEED(value >= 12000);
}

static void look_for_no_device(void)
{
    NEED(cuda.init(0) == 100);
}

static void test_devices(void **state)
{
    (void)state;
    expect_fine_with(look_at_devices, (const char *[]){"CUDA_DOUBLE_DEVICES=3", NULL});
    expect_fine_with(look_for_no_device, (const char *[]){"CUDA_DOUBLE_DEVICES=0", NULL});
}

static void leave_things(void)
{
    begin();
    (void)allocate(64);
    (void)new_event(0);
}

static void leave_things_in_context(void)
{
    leave_things();
    OK(context_release(0));
}

static void test_leaks(void **state)
{
    (void)state;
    const char *const variables[] = {"CUDA_DOUBLE_LEAKS=1", NULL};
    end e;
    run_child(leave_things, variables, &e);
    assert_true(WIFEXITED(e.state) && WEXITSTATUS(e.state) == 1);
    assert_string_equal(e.said, "cuda double: device 0: 2 of kind stream left\n"
                                "cuda double: device 0: 1 of kind event left\n"
                                "cuda double: device 0: 1 of kind module left\n"
                                "cuda double: device 0: 1 of kind memory left\n");
    run_child(leave_things_in_context, variables, &e);
    assert_true(WIFEXITED(e.state) && WEXITSTATUS(e.state) == 1);
    assert_string_equal(e.said, "cuda double: device 0: 5 left in a context that was released\n");
    expect_fine(leave_things);
}

// --- Graphs --------------------------------------------------------------------------------------

// The first stream makes x, the second doubles it, the first adds it up.
static void *capture(uint64_t of_x, uint64_t of_y, bool with_fork, bool with_join)
{
    void *fork_event = new_event(2), *join_event = new_event(2), *graph, *exec;
    OK(capture_begin(streams[0], 0));
    launch("count_up", 1, 32, 0, 0, of_x, (params){.count = N, .factor = 1, .offset = 1});
    OK(event_record(fork_event, streams[0]));
    OK(stream_wait(streams[1], fork_event, 0));
    uint64_t other = with_fork ? of_y : of_x;
    NEED(launch_in(streams[1], "add", 1, 32, of_x, of_x, of_y, (params){.count = N}) == 0);
    launch("count_up", 1, 32, 0, 0, other, (params){.count = 0});
    OK(event_record(join_event, streams[1]));
    if (with_join) OK(stream_wait(streams[0], join_event, 0));
    launch("count_up", 1, 32, 0, 0, of_x, (params){.count = N, .factor = 1});
    int error = cuda.capture_end(streams[0], &graph);
    if (!with_join) {
        NEED(error == 904 && graph == NULL);
        return NULL;
    }
    NEED(error == 0);
    OK(graph_instantiate(&exec, graph, 0));
    OK(graph_destroy(graph));
    OK(event_destroy(fork_event));
    OK(event_destroy(join_event));
    return exec;
}

static void replay(void)
{
    static float x[N];
    begin();
    uint64_t of_x = numbers(N, x), of_y = filled(BYTES);
    void *exec = capture(of_x, of_y, true, true);
    NEED(out_numbers(of_x, 1)[0] == 0); // a capture runs nothing
    for (int i = 1; i <= 3; i++) {
        OK(graph_launch(exec, streams[0]));
        OK(graph_launch(exec, streams[0]));
        NEED(out_numbers(of_y, N)[N - 1] == (float)(4 * i));
    }
    OK(graph_launch(exec, streams[0]));
    OK(graph_exec_destroy(exec));
    NEED(out_numbers(of_x, N)[N - 1] == 7);
}

// Launches of one graph follow each other in any streams. The second stream's node waits for no
// node of its graph, but writes memory that the previous launch's first node wrote.
static void replay_in_two_streams(void)
{
    begin();
    uint64_t of_x = filled(BYTES), of_y = filled(BYTES);
    void *fork_event = new_event(2), *join_event = new_event(2), *graph, *exec;
    OK(capture_begin(streams[0], 0));
    OK(event_record(fork_event, streams[0]));
    OK(stream_wait(streams[1], fork_event, 0));
    NEED(launch_in(streams[1], "add", 1, 32, of_x, of_x, of_y, (params){.count = N}) == 0);
    OK(event_record(join_event, streams[1]));
    OK(stream_wait(streams[0], join_event, 0));
    launch("count_up", 1, 32, 0, 0, of_y, (params){.count = N, .factor = 1, .offset = 1});
    OK(capture_end(streams[0], &graph));
    OK(graph_instantiate(&exec, graph, 0));
    OK(graph_launch(exec, streams[0]));
    OK(graph_launch(exec, streams[1]));
    OK(stream_finish(streams[1]));
    NEED(out_numbers(of_y, N)[N - 1] == 1);
}

// Two unordered nodes in one graph.
static void replay_a_race(void)
{
    begin();
    uint64_t of_x = filled(BYTES), of_y = filled(BYTES);
    void *fork_event = new_event(2), *join_event = new_event(2), *graph, *exec;
    OK(capture_begin(streams[0], 0));
    OK(event_record(fork_event, streams[0]));
    OK(stream_wait(streams[1], fork_event, 0));
    launch("count_up", 1, 32, 0, 0, of_x, (params){.count = N});
    NEED(launch_in(streams[1], "add", 1, 32, of_x, of_x, of_y, (params){.count = N}) == 0);
    OK(event_record(join_event, streams[1]));
    OK(stream_wait(streams[0], join_event, 0));
    OK(capture_end(streams[0], &graph));
    OK(graph_instantiate(&exec, graph, 0));
    OK(graph_launch(exec, streams[0]));
    finish();
}

static void break_captures(void)
{
    begin();
    uint64_t of_x = filled(BYTES), address;
    void *event = new_event(2), *outside = new_event(2), *graph;
    OK(event_record(outside, streams[1]));
    NEED(capture(of_x, filled(BYTES), true, false) == NULL); // 904
    for (int i = 0; i < 4; i++) {
        OK(capture_begin(streams[0], 0));
        NEED(cuda.capture_begin(streams[0], 0) == 401);
        OK(event_record(event, streams[0]));
        switch (i) {
        case 0: NEED(cuda.stream_finish(streams[0]) == 900); break;
        case 1: NEED(cuda.allocate(&address, 4) == 900); break;
        case 2: NEED(cuda.event_finish(event) == 907); break;
        default: NEED(cuda.stream_wait(streams[0], outside, 0) == 905);
        }
        NEED(cuda.fill(of_x, 0, 4, streams[0]) == 901);
        NEED(cuda.capture_end(streams[0], &graph) == 901 && graph == NULL);
    }
    OK(allocate(&address, 4));
    OK(fill(of_x, 0, 4, streams[0]));
    finish();
    NEED(cuda.capture_end(streams[0], &graph) == 401);
    OK(capture_begin(streams[0], 1)); // covers only this thread's calls, including the next one
    NEED(cuda.allocate(&address, 4) == 900);
    NEED(cuda.capture_end(streams[0], &graph) == 901);
    OK(capture_begin(streams[0], 2));
    OK(allocate(&address, 4));
    OK(capture_end(streams[0], &graph));
}

static void test_graphs(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 4; seed++) {
        char variable[32];
        snprintf(variable, sizeof variable, "CUDA_DOUBLE_SEED=%d", seed);
        expect_fine_with(replay, (const char *[]){variable, NULL});
        expect_fine_with(replay_in_two_streams, (const char *[]){variable, NULL});
    }
    expect_end(replay_a_race, "kernel count_up (operation 3, stream 1)",
               "kernel add (operation 4, stream 2)");
    expect_fine(break_captures);
}

// --- Threads and events --------------------------------------------------------------------------

typedef struct user {
    int device;
    bool fine;
} user;

// Like add_vectors, with separate streams and memory. Runs on a thread, so it asserts nothing.
static void *use_device(void *argument)
{
    user *u = argument;
    void *context, *stream, *kernel, *own_module;
    uint64_t of_x, of_y;
    float x[N], y[N];
    params p = {.count = N};
    bool fine = cuda.context_retain(&context, u->device) == 0 && cuda.context_set(context) == 0 &&
                cuda.stream_create(&stream, 0) == 0 &&
                cuda.module_load(&own_module, kernels) == 0 &&
                cuda.module_function(&kernel, own_module, "add") == 0 &&
                cuda.allocate(&of_x, BYTES) == 0 && cuda.allocate(&of_y, BYTES) == 0;
    for (int round = 0; round < 50 && fine; round++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(i + round + u->device);
        bel_cuda_operands at = operands_of(of_x, of_x, of_y);
        void *arguments[] = {&at, &p};
        fine = cuda.copy_in(of_x, x, BYTES, stream) == 0 &&
               cuda.launch(kernel, 2, 1, 1, 16, 1, 1, 0, stream, arguments, NULL) == 0 &&
               cuda.copy_out(y, of_y, BYTES, stream) == 0;
        for (int i = 0; i < N; i++)
            fine = fine && y[i] == 2 * x[i];
    }
    u->fine = fine;
    return NULL;
}

static void use_two_threads(void)
{
    pthread_t threads[2];
    user users[2] = {{0, false}, {1, false}};
    OK(init(0));
    for (int i = 0; i < 2; i++)
        NEED(pthread_create(&threads[i], NULL, use_device, &users[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    NEED(users[0].fine && users[1].fine);
}

static void test_two_threads(void **state)
{
    (void)state;
    expect_fine(use_two_threads);
}

static void time_events(void)
{
    float ms = 0;
    begin();
    void *from = new_event(0), *to = new_event(0), *untimed = new_event(2);
    uint64_t of_x = allocate(BYTES);
    NEED(cuda.event_elapsed(&ms, from, to) == 400); // not recorded
    OK(event_finish(from));
    OK(event_record(from, streams[0]));
    OK(fill(of_x, 0, BYTES, streams[0]));
    OK(event_record(to, streams[0]));
    OK(event_record(untimed, streams[0]));
    NEED(cuda.event_elapsed(&ms, from, to) == 600);
    OK(event_finish(to));
    OK(event_elapsed(&ms, from, to));
    NEED(ms > 0);
    NEED(cuda.event_elapsed(&ms, from, untimed) == 400);
}

static void test_events(void **state)
{
    (void)state;
    expect_fine(time_events);
}

// --- NVRTC ---------------------------------------------------------------------------------------

// Computes a * b + c for numbers where rounding once and rounding twice differ.
static void multiply_and_add(const char *const *with, int count, float expected)
{
    static char blob[MOST_BLOB];
    const float x = 1 + 0x1p-12f;
    assert_int_equal(compile(source, count, with, blob, NULL), 0);
    begin();
    OK(module_load(&module, blob));
    uint64_t of_x = numbers(1, &x);
    launch("count_up", 1, 1, 0, 0, of_x, (params){1, 1 + 0x1p-12f, -1});
    NEED(out_numbers(of_x, 1)[0] == expected);
}

static void round_twice(void)
{
    multiply_and_add(options, 2, 0x1p-11f);
}

static void round_once(void)
{
    multiply_and_add(options, 1, 0x1p-11f + 0x1p-24f);
}

static void test_fused_or_not(void **state)
{
    (void)state;
    expect_fine(round_twice);
    if (processor_fuses()) expect_fine(round_once);
}

static void test_compiling(void **state)
{
    (void)state;
    static char blob[MOST_BLOB], log[MOST_BLOB];
    char command[256];
    char *folder = bel_test_folder();
    setenv("TMPDIR", folder, 1);
    assert_int_equal(compile("int f(void) { return nothing_known; }", 3, options, blob, log), 6);
    assert_non_null(strstr(log, "nothing_known"));
    const char *const macro[] = {"-DWORD=int", "--define-macro=OTHER=f", "-arch=sm_90"};
    assert_int_equal(compile("WORD OTHER(void) { return 1; }", 3, macro, blob, log), 0);
    snprintf(command, sizeof command, "[ -z \"$(ls -A '%s')\" ]", folder);
    FILE *shell = popen(command, "r");
    assert_non_null(shell);
    assert_int_equal(pclose(shell), 0); // no file remains
    unsetenv("TMPDIR");
    bel_test_remove_folder(folder);
    int major, minor;
    assert_int_equal(cuda.nvrtc_version(&major, &minor), 0);
    assert_int_equal(major * 1000 + minor, 12999);
    setenv("CUDA_DOUBLE_CHECKS", "0", 1);
    assert_int_equal(cuda.nvrtc_version(&major, &minor), 0);
    assert_int_equal(major * 1000 + minor, 12998);
    unsetenv("CUDA_DOUBLE_CHECKS");
}

static void load_others(void)
{
    void *other, *kernel;
    begin();
    NEED(cuda.module_load(&other, kernels_unchecked) == 209);
    NEED(cuda.module_load(&other, "no object at all, but long enough") == 200);
    NEED(cuda.module_function(&kernel, module, "nobody") == 500);
}

static void test_modules(void **state)
{
    (void)state;
    expect_fine(load_others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_add),
        cmocka_unit_test(test_block_sum),
        cmocka_unit_test(test_no_false_alarms),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_never_written),
        cmocka_unit_test(test_barrier_without_all),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_seeds_give_orders),
        cmocka_unit_test(test_late_execution),
        cmocka_unit_test(test_host_cannot_touch),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_lost_device),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_fused_or_not),
        cmocka_unit_test(test_compiling),
        cmocka_unit_test(test_modules),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
