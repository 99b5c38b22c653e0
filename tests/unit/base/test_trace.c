// Trace rings: the events that are kept and dropped, the events a killed process leaves, and the
// flows found by the merge. label: threads
#include "base/trace.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"
#include "support/bel_test.h"

typedef struct merged {
    char *text;
    bel_json *json;
    const bel_json_value *events;
} merged;

static merged merge(const char *folder)
{
    merged m;
    size_t size;
    char *path = bel_path_join(folder, "trace.json");
    BEL_ASSERT_OK(bel_trace_merge(folder, path));
    BEL_ASSERT_OK(bel_file_read(path, &m.text, &size));
    BEL_ASSERT_OK(bel_json_parse(m.text, size, path, &m.json));
    m.events = bel_json_root(m.json);
    bel_free(path);
    return m;
}

static void free_merged(merged *m)
{
    bel_json_destroy(m->json);
    bel_free(m->text);
}

// Number of events of a phase; with `name`, only events of that name.
static int count(const merged *m, const char *phase, const char *name)
{
    int found = 0;
    for (size_t i = 0; i < bel_json_length(m->events); i++) {
        const char *ph, *its_name;
        const bel_json_value *event = bel_json_at(m->events, i);
        assert_true(bel_json_string(event, "ph", &ph));
        assert_true(bel_json_string(event, "name", &its_name));
        found += strcmp(ph, phase) == 0 && (name == NULL || strcmp(its_name, name) == 0);
    }
    return found;
}

static void record(bel_trace_role role, bel_trace_span span, int64_t step, int64_t begun,
                   int64_t ended)
{
    bel_trace_add((bel_trace_event){.role = (uint8_t)role,
                                    .span = (uint8_t)span,
                                    .step = step,
                                    .workers = BEL_TRACE_EVERYBODY},
                  begun, ended);
}

static void test_off(void **state)
{
    (void)state;
    assert_false(bel_trace_is_on());
    assert_int_equal(bel_trace_begin(), 0);
    record(BEL_TRACE_WORKER, BEL_TRACE_WAIT, 1, 10, 20); // starts no flow
    bel_trace_end((bel_trace_event){.step = 1}, 0);
}

static void test_newest_stay(void **state)
{
    (void)state;
    enum { MORE = 100 };
    char *folder = bel_test_folder();
    BEL_ASSERT_OK(bel_trace_start(folder, "one"));
    BEL_ASSERT_OK(bel_trace_start(folder, "two")); // it already records
    for (int64_t i = 0; i < BEL_TRACE_RING + MORE; i++)
        record(BEL_TRACE_SHARD, BEL_TRACE_PUBLISH, i, i * 10 + 1, i * 10 + 5);
    bel_trace_stop();
    merged m = merge(folder);
    assert_int_equal(count(&m, "X", "publish"), BEL_TRACE_RING);
    assert_int_equal(count(&m, "M", "dropped_events"), 1);
    assert_non_null(strstr(m.text, "\"count\":100}"));
    assert_null(strstr(m.text, "\"step\":99}"));
    assert_non_null(strstr(m.text, "\"step\":100}"));
    free_merged(&m);
    bel_test_remove_folder(folder);
}

static void *record_some(void *argument)
{
    for (int64_t i = 1; i <= 1000; i++)
        record(BEL_TRACE_WORKER, BEL_TRACE_COMPUTE, i, i, i + 1);
    return argument;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4, ROUNDS = 3 };
    char *folder = bel_test_folder();
    BEL_ASSERT_OK(bel_trace_start(folder, "one"));
    for (int round = 0; round < ROUNDS; round++) { // threads reuse the rings of ended ones
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            BEL_ASSERT_OK(bel_thread_start(&threads[i], record_some, NULL));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    bel_trace_stop();
    merged m = merge(folder);
    assert_int_equal(count(&m, "X", "compute"), THREADS * ROUNDS * 1000);
    assert_in_range(count(&m, "M", "thread_name"), 1, THREADS);
    free_merged(&m);
    m = merge(folder); // the merge removed the parts
    assert_int_equal(bel_json_length(m.events), 0);
    free_merged(&m);
    bel_test_remove_folder(folder);
}

static void test_killed_process(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    pid_t child = fork();
    if (child == 0) {
        if (bel_trace_start(folder, "child") != NULL) _exit(1);
        for (int64_t i = 1; i <= 50; i++)
            record(BEL_TRACE_SHARD, BEL_TRACE_PUBLISH, i, i, i + 1);
        raise(SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    bel_free(bel_test_file(folder, "bad.trace-part", "nonsense", 8));
    merged m = merge(folder);
    assert_int_equal(count(&m, "X", "publish"), 50);
    free_merged(&m);
    bel_test_remove_folder(folder);
}

// A device has a track beside its worker's, with two rows for each tower, whichever thread recorded
// the spans. The thread's spans name their device.
static void test_devices(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    BEL_ASSERT_OK(bel_trace_start(folder, "one"));
    bel_trace_event event = {.role = BEL_TRACE_WORKER, .index = 3, .device = 2, .tower = 1};
    static const bel_trace_span spans[] = {BEL_TRACE_COMPUTE, BEL_TRACE_KERNELS,
                                           BEL_TRACE_COPY_REPORTS};
    for (int i = 0; i < 3; i++) {
        event.span = (uint8_t)spans[i];
        bel_trace_add(event, 10 + i, 20);
    }
    bel_trace_stop();
    merged m = merge(folder);
    assert_int_equal(count(&m, "M", "process_name"), 2);
    assert_int_equal(count(&m, "M", "thread_name"), 3);
    assert_non_null(strstr(m.text, "\"name\":\"worker 3\""));
    assert_non_null(strstr(m.text, "\"name\":\"worker 3 on cuda:1\""));
    assert_non_null(strstr(m.text, "\"tid\":3,\"args\":{\"name\":\"tower 1, copies in and"));
    assert_non_null(strstr(m.text, "\"tid\":4,\"args\":{\"name\":\"tower 1, copies of rep"));
    assert_non_null(strstr(m.text, "\"replica\":0,\"device\":\"cuda:1\"}"));
    free_merged(&m);
    bel_test_remove_folder(folder);
}

// Two steps of one worker at one shard. A flow leads from a step's report to its pass, and from
// there to the wait for the next version.
static void test_flows(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    BEL_ASSERT_OK(bel_trace_start(folder, "one"));
    for (int64_t s = 0; s < 2; s++) {
        record(BEL_TRACE_WORKER, BEL_TRACE_REPORT, s, 100 * s + 10, 100 * s + 20);
        record(BEL_TRACE_SHARD, BEL_TRACE_PASS, s, 100 * s + 30, 100 * s + 40);
        if (s == 0) record(BEL_TRACE_WORKER, BEL_TRACE_WAIT, s + 1, 100 * s + 25, 100 * s + 60);
    }
    record(BEL_TRACE_SHARD, BEL_TRACE_PASS, 2, 230, 240); // its report is missing
    bel_trace_stop();
    merged m = merge(folder);
    assert_int_equal(count(&m, "s", NULL), 2);
    assert_int_equal(count(&m, "t", NULL), 1); // no worker waited for the last version
    assert_int_equal(count(&m, "f", NULL), 2);
    assert_int_equal(count(&m, "M", "process_name"), 2);
    free_merged(&m);
    bel_test_remove_folder(folder);
}

static void test_errors(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    char *file = bel_test_file(folder, "file", "", 0);
    BEL_ASSERT_FAILS(bel_trace_start(file, "one"), BEL_INVALID_ARGUMENT, "is in the way");
    assert_false(bel_trace_is_on());
    BEL_ASSERT_FAILS(bel_trace_merge(folder, "/nowhere/trace.json"), BEL_NOT_FOUND, "/nowhere");
    bel_free(file);
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_newest_stay),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_killed_process),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
