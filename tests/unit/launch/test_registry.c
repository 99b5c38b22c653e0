// Registry of jobs: names, records written and read, states of jobs whose process is gone, damaged
// files, cancelling.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/str.h"
#include "launch/engine/engine.h"
#include "support/bel_test.h"

static int set_up(void **state)
{
    int failed = bel_test_enter_folder(state);
    return failed != 0 ? failed : setenv("XDG_STATE_HOME", bel_test_own_folder(), 1);
}

static bel_status *add(const char *name, bool replace)
{
    char arguments[2][32] = {"train_and_evaluate", "--model_dir=a \"b\""};
    char *list[] = {arguments[0], arguments[1]};
    char local[] = "local", model_dir[] = "/runs/a", config[] = "/jobs/cluster.yaml";
    char cluster[] = "workers: {count: 3}\n", directory[] = "/jobs";
    char *copy = bel_xstrdup(name);
    bel_job_record record = {.name = copy,
                             .engine = local,
                             .model_dir = model_dir,
                             .config = config,
                             .cluster = cluster,
                             .changes = {-1, 2, -1, -1, 0, -1},
                             .directory = directory,
                             .arguments = list,
                             .argument_count = 2};
    bel_status *status = bel_registry_add(&record, replace);
    bel_free(copy);
    return status;
}

static bel_job_record *read_job(const char *name)
{
    bel_job_record *record = NULL;
    BEL_ASSERT_OK(bel_registry_read(name, &record));
    return record;
}

static void set_state(const char *name, bel_job_state state, const char *progress)
{
    bel_job_record *record = read_job(name);
    record->state = state;
    bel_free(record->progress);
    record->progress = bel_xstrdup(progress);
    BEL_ASSERT_OK(bel_registry_update(record));
    bel_job_record_destroy(record);
}

static bel_job_state state_of(const char *name)
{
    bel_job_record *record = read_job(name);
    bel_job_state state = record->state;
    bel_job_record_destroy(record);
    return state;
}

static void test_round_trip(void **state)
{
    (void)state;
    BEL_ASSERT_OK(add("digits", false));
    bel_job_record *record = read_job("digits");
    assert_int_equal(record->state, BEL_JOB_QUEUED);
    assert_string_equal(record->engine, "local");
    assert_string_equal(record->model_dir, "/runs/a");
    assert_string_equal(record->config, "/jobs/cluster.yaml");
    bel_cluster *cluster;
    BEL_ASSERT_OK(bel_job_record_cluster(record, &cluster)); // without reading the file
    assert_int_equal(cluster->roles[BEL_ROLE_WORKER].count, 3);
    assert_int_equal(cluster->roles[BEL_ROLE_PS].count, 2); // the flag overrides the file
    assert_int_equal(record->changes.restarts, -1);
    assert_int_equal(record->changes.min_workers, 0);
    assert_string_equal(record->directory, "/jobs");
    assert_string_equal(record->engine_id, "");
    bel_cluster_destroy(cluster);
    assert_int_equal(record->argument_count, 2);
    assert_string_equal(record->arguments[1], "--model_dir=a \"b\"");
    assert_true(record->submitted_at > 1e9);
    assert_int_equal(record->supervisor, getpid());
    assert_string_equal(record->progress, "");
    char *logs = bel_path_join(record->folder, "logs");
    assert_true(bel_file_exists(logs));
    bel_free(logs);

    record->state = BEL_JOB_FAILED;
    record->exit_code = 137;
    record->ended_at = record->submitted_at + 2.5;
    bel_free(record->message);
    record->message = bel_xstrdup("worker 1 was \"killed\"\nat night");
    bel_free(record->progress);
    record->progress = bel_xstrdup("{\"step\":12,\"loss\":0.1,\"b\":[true,null,\"x\"]}");
    BEL_ASSERT_OK(bel_registry_update(record));
    bel_job_record *again = read_job("digits");
    assert_int_equal(again->state, BEL_JOB_FAILED);
    assert_int_equal(again->exit_code, 137);
    assert_string_equal(again->message, record->message);
    assert_string_equal(again->progress, record->progress);
    assert_true(again->ended_at == record->ended_at);
    bel_job_record_destroy(again);
    bel_job_record_destroy(record);
}

static void test_names(void **state)
{
    (void)state;
    char longest[102];
    memset(longest, 'a', sizeof longest);
    longest[101] = '\0';
    const char *const bad[] = {"", "1a", "_a", "-a", "a b", "a/b", "..", "a.b", "a\n", longest};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bel_job_record *record;
        BEL_ASSERT_FAILS(add(bad[i], false), BEL_INVALID_ARGUMENT, "expected letters");
        BEL_ASSERT_FAILS(bel_registry_read(bad[i], &record), BEL_INVALID_ARGUMENT, "job name");
    }
    longest[100] = '\0';
    BEL_ASSERT_OK(add(longest, false));
    BEL_ASSERT_OK(add("A-b_9", false));
}

// Texts that a record cannot hold are refused before anything is created.
static void test_texts(void **state)
{
    (void)state;
    char name[] = "digits", local[] = "local", good[] = "/runs/\xc3\xa4", bad[] = "/runs/\xe4";
    char *arguments[] = {good};
    bel_job_record record = {.name = name,
                             .engine = local,
                             .model_dir = good,
                             .config = good,
                             .cluster = good,
                             .arguments = arguments,
                             .argument_count = 1};
    char **const texts[] = {&record.model_dir, &record.config, &arguments[0]};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = bad;
        BEL_ASSERT_FAILS(bel_registry_add(&record, false), BEL_INVALID_ARGUMENT, "UTF-8");
        *texts[i] = good;
    }
    BEL_ASSERT_OK(bel_registry_add(&record, false));
    bel_job_record *back = read_job("digits");
    assert_string_equal(back->model_dir, good);
    bel_job_record_destroy(back);
}

static void test_taken_names(void **state)
{
    (void)state;
    BEL_ASSERT_OK(add("digits", false));
    BEL_ASSERT_FAILS(add("digits", false), BEL_ALREADY_EXISTS, "QUEUED");
    BEL_ASSERT_FAILS(add("digits", true), BEL_ALREADY_EXISTS, "jobs cancel digits");
    set_state("digits", BEL_JOB_RUNNING, "");
    BEL_ASSERT_FAILS(add("digits", true), BEL_ALREADY_EXISTS, "RUNNING");
    set_state("digits", BEL_JOB_SUCCEEDED, "");
    BEL_ASSERT_FAILS(add("digits", false), BEL_ALREADY_EXISTS, "--replace");
    assert_int_equal(state_of("digits"), BEL_JOB_SUCCEEDED);
    BEL_ASSERT_OK(add("digits", true));
    assert_int_equal(state_of("digits"), BEL_JOB_QUEUED);
    bel_job_record *record;
    BEL_ASSERT_FAILS(bel_registry_read("digit", &record), BEL_NOT_FOUND, "did you mean digits?");
    BEL_ASSERT_FAILS(bel_registry_read("zebra", &record), BEL_NOT_FOUND, "no job zebra");
}

// The supervisor claims a job from the submitting process, which may then end.
static void test_claim(void **state)
{
    (void)state;
    char name[] = "sleep", time[] = "100", *arguments[] = {name, time, NULL};
    bel_linux_spawn spawn = {
        .program = "/bin/sleep", .arguments = arguments, .standard = {-1, -1, -1}};
    bel_linux_process process;
    bel_linux_end end;
    BEL_ASSERT_OK(bel_linux_process_spawn(&spawn, &process));
    BEL_ASSERT_OK(add("digits", false));
    bel_job_record *record = read_job("digits"), *mine;
    record->supervisor = process.pid;
    record->started_ticks = bel_linux_start_ticks(process.pid);
    BEL_ASSERT_OK(bel_registry_update(record));
    BEL_ASSERT_OK(bel_registry_claim("digits", NULL, &mine));
    assert_int_equal(mine->supervisor, getpid());
    bel_linux_process_signal(&process, SIGKILL, false);
    assert_true(bel_linux_process_wait(&process, 60000, &end));
    assert_int_equal(state_of("digits"), BEL_JOB_QUEUED);
    bel_job_record_destroy(mine);
    BEL_ASSERT_OK(bel_registry_update(record)); // the submitting process is gone
    BEL_ASSERT_FAILS(bel_registry_claim("digits", NULL, &mine), BEL_FAILED_PRECONDITION, "LOST");
    BEL_ASSERT_OK(bel_registry_set_engine_id(record, "17"));
    BEL_ASSERT_FAILS(bel_registry_claim("digits", "16", &mine), BEL_FAILED_PRECONDITION,
                     "is QUEUED");
    BEL_ASSERT_OK(bel_registry_claim("digits", "17", &mine)); // the engine started it again
    assert_string_equal(mine->message, "");
    assert_int_equal(state_of("digits"), BEL_JOB_QUEUED);
    mine->state = BEL_JOB_SUCCEEDED;
    BEL_ASSERT_OK(bel_registry_update(mine));
    bel_job_record_destroy(mine);
    BEL_ASSERT_FAILS(bel_registry_claim("digits", "17", &mine), BEL_FAILED_PRECONDITION,
                     "SUCCEEDED");
    bel_job_record_destroy(record);
}

// A job in an engine's queue has no process. A finished job may be queued again and keeps its logs.
static void test_queue(void **state)
{
    (void)state;
    BEL_ASSERT_OK(add("digits", false));
    bel_job_record *record = read_job("digits");
    BEL_ASSERT_FAILS(bel_registry_requeue("digits"), BEL_FAILED_PRECONDITION, "QUEUED");
    record->started_ticks++; // the submitting process ended
    BEL_ASSERT_OK(bel_registry_update(record));
    assert_int_equal(state_of("digits"), BEL_JOB_LOST);
    BEL_ASSERT_OK(bel_registry_set_engine_id(record, "17"));
    bel_job_record *queued = read_job("digits");
    assert_int_equal(queued->state, BEL_JOB_QUEUED);
    assert_string_equal(queued->engine_id, "17");
    bel_job_record_destroy(queued);
    set_state("digits", BEL_JOB_FAILED, "");
    char *log = bel_path_join(record->folder, "logs/worker-0.0.log");
    BEL_ASSERT_OK(bel_file_write_atomic(log, "x", 1));
    BEL_ASSERT_OK(bel_registry_requeue("digits"));
    queued = read_job("digits");
    assert_int_equal(queued->state, BEL_JOB_QUEUED);
    assert_int_equal(queued->supervisor, getpid());
    assert_string_equal(queued->engine_id, ""); // belonged to the earlier run
    assert_true(bel_file_exists(log));
    bel_free(log);
    bel_job_record_destroy(queued);
    bel_job_record_destroy(record);
}

// A job counts as running only while exactly its process lives.
static void test_lost(void **state)
{
    (void)state;
    BEL_ASSERT_OK(add("digits", false));
    set_state("digits", BEL_JOB_RUNNING, "");
    assert_int_equal(state_of("digits"), BEL_JOB_RUNNING);

    bel_job_record *record = read_job("digits"); // the pid now belongs to another process
    record->started_ticks++;
    BEL_ASSERT_OK(bel_registry_update(record));
    bel_job_record *lost = read_job("digits");
    assert_int_equal(lost->state, BEL_JOB_LOST);
    assert_non_null(strstr(lost->message, "belfry jobs resume digits"));
    assert_non_null(strstr(lost->message, "/runs/a"));
    bel_job_record_destroy(lost);

    record->started_ticks--; // the machine was restarted
    bel_free(record->boot_id);
    record->boot_id = bel_xstrdup("00000000-0000-0000-0000-000000000000");
    BEL_ASSERT_OK(bel_registry_update(record));
    assert_int_equal(state_of("digits"), BEL_JOB_LOST);
    bel_job_record_set_process(record);
    BEL_ASSERT_OK(bel_registry_update(record));
    assert_int_equal(state_of("digits"), BEL_JOB_RUNNING);

    record->state = BEL_JOB_SUCCEEDED; // a final state does not change
    record->supervisor = 0;
    BEL_ASSERT_OK(bel_registry_update(record));
    assert_int_equal(state_of("digits"), BEL_JOB_SUCCEEDED);
    bel_job_record_destroy(record);
}

static void set_text(char **text, const char *value)
{
    bel_free(*text);
    *text = bel_xstrdup(value);
}

// It is unknown whether a job on another machine or in another container still runs.
static void test_elsewhere(void **state)
{
    (void)state;
    const bel_engine *local = bel_engine_find("local");
    BEL_ASSERT_OK(add("digits", false));
    set_state("digits", BEL_JOB_RUNNING, "");
    bel_job_record *record = read_job("digits"), *far;
    assert_false(record->elsewhere);
    char *host = bel_xstrdup(record->host), *boot_id = bel_xstrdup(record->boot_id);
    for (int i = 0; i < 2; i++) {
        bool machine = i == 0;
        set_text(&record->host, machine ? "far-away" : host);
        set_text(&record->boot_id, machine ? "00000000-0000-0000-0000-000000000000" : boot_id);
        record->pid_namespace += !machine;
        record->supervisor = 1 << 30; // no process here
        BEL_ASSERT_OK(bel_registry_update(record));
        far = read_job("digits");
        assert_true(far->elsewhere);
        assert_int_equal(far->state, BEL_JOB_RUNNING);
        BEL_ASSERT_FAILS(add("digits", true), BEL_ALREADY_EXISTS, machine ? "far-away" : host);
        BEL_ASSERT_FAILS(local->cancel(far), BEL_FAILED_PRECONDITION, "cancel it there");
        bel_job_record_destroy(far);
    }
    record->state = BEL_JOB_FAILED; // a final state counts everywhere
    BEL_ASSERT_OK(bel_registry_update(record));
    far = read_job("digits");
    assert_false(far->elsewhere);
    BEL_ASSERT_OK(add("digits", true));
    bel_job_record_destroy(far);
    bel_job_record_destroy(record);
    bel_free(host);
    bel_free(boot_id);
}

static void test_list(void **state)
{
    (void)state;
    bel_job_record **records;
    size_t count;
    BEL_ASSERT_OK(bel_registry_list(&records, &count));
    assert_int_equal(count, 0);
    bel_free(records);
    const char *const names[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++)
        BEL_ASSERT_OK(add(names[i], false));
    BEL_ASSERT_OK(bel_registry_list(&records, &count));
    assert_int_equal(count, 3);
    for (size_t i = 1; i < count; i++)
        assert_true(records[i - 1]->submitted_at >= records[i]->submitted_at);
    for (size_t i = 0; i < count; i++)
        bel_job_record_destroy(records[i]);
    bel_free(records);
}

static void write_into(const char *folder, const char *name, const char *text)
{
    char *path = bel_test_file(folder, name, text, strlen(text));
    bel_free(path);
}

// A damaged record is an error of only that job.
static void test_damage(void **state)
{
    (void)state;
    BEL_ASSERT_OK(add("good", false));
    BEL_ASSERT_OK(add("bad", false));
    bel_job_record *record = read_job("bad"), *other;
    const char *const texts[] = {
        "", "{", "[]", "{}", "{\"state\": \"ASLEEP\"}", "{\"state\": 1, \"exit_code\": \"x\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_into(record->folder, "status.json", texts[i]);
        BEL_ASSERT_FAILS(bel_registry_read("bad", &other), BEL_DATA_LOSS, "status.json");
    }
    write_into(record->folder, "job.json", "{\"submitted_at\": 1, \"arguments\": [1]}");
    BEL_ASSERT_FAILS(bel_registry_read("bad", &other), BEL_DATA_LOSS, "job.json");
    bel_job_record **records;
    size_t count;
    BEL_ASSERT_OK(bel_registry_list(&records, &count));
    assert_int_equal(count, 1);
    assert_string_equal(records[0]->name, "good");
    bel_job_record_destroy(records[0]);
    bel_free(records);
    BEL_ASSERT_FAILS(add("bad", false), BEL_ALREADY_EXISTS, "damaged");
    BEL_ASSERT_OK(add("bad", true));
    assert_int_equal(state_of("bad"), BEL_JOB_QUEUED);
    bel_job_record_destroy(record);
}

static void test_no_place(void **state)
{
    (void)state;
    char *home = bel_xstrdup(getenv("HOME") != NULL ? getenv("HOME") : "/");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    BEL_ASSERT_FAILS(add("digits", false), BEL_FAILED_PRECONDITION, "XDG_STATE_HOME");
    setenv("XDG_STATE_HOME", "relative", 1); // ignored
    setenv("HOME", bel_test_own_folder(), 1);
    BEL_ASSERT_OK(add("digits", false));
    char *expected = bel_path_join(bel_test_own_folder(), ".local/state/belfry/jobs/digits");
    assert_true(bel_file_exists(expected));
    bel_free(expected);
    setenv("HOME", home, 1);
    bel_free(home);
}

// --- Engines ------------------------------------------------------------------------------------

static void test_engines(void **state)
{
    (void)state;
    const bel_engine *local = bel_engine_find("local");
    assert_non_null(local);
    assert_ptr_equal(bel_engine_at(0), local);
    for (int i = 0; bel_engine_at(i) != NULL; i++)
        assert_ptr_equal(bel_engine_find(bel_engine_at(i)->name), bel_engine_at(i));
    assert_null(bel_engine_at(-1));
    assert_null(bel_engine_find("borg"));

    bel_cluster *cluster = bel_cluster_create(2, 1, 0);
    BEL_ASSERT_OK(local->check(cluster));
    bel_cluster_role *workers = &cluster->roles[BEL_ROLE_WORKER];
    workers->hosts = bel_xcalloc(2, sizeof *workers->hosts);
    workers->hosts[0] = bel_xstrdup("localhost");
    workers->hosts[1] = bel_xstrdup("far-away.example");
    workers->host_count = 2;
    BEL_ASSERT_FAILS(local->check(cluster), BEL_INVALID_ARGUMENT, "far-away.example");
    bel_cluster_destroy(cluster);
}

static void test_cancel(void **state)
{
    (void)state;
    const bel_engine *local = bel_engine_find("local");
    char name[] = "sleep", time[] = "100", *arguments[] = {name, time, NULL};
    bel_linux_spawn spawn = {
        .program = "/bin/sleep", .arguments = arguments, .standard = {-1, -1, -1}};
    bel_linux_process process;
    BEL_ASSERT_OK(bel_linux_process_spawn(&spawn, &process));
    BEL_ASSERT_OK(add("digits", false));
    bel_job_record *record = read_job("digits");
    record->state = BEL_JOB_RUNNING;
    record->supervisor = process.pid;
    record->started_ticks = bel_linux_start_ticks(process.pid) + 1; // another process with that pid
    BEL_ASSERT_FAILS(local->cancel(record), BEL_FAILED_PRECONDITION, "nothing to cancel");
    record->started_ticks--;
    BEL_ASSERT_OK(local->cancel(record));
    bel_linux_end end;
    assert_true(bel_linux_process_wait(&process, 60000, &end));
    assert_int_equal(end.signal, SIGTERM);
    BEL_ASSERT_FAILS(local->cancel(record), BEL_FAILED_PRECONDITION, "digits");
    record->state = BEL_JOB_SUCCEEDED;
    BEL_ASSERT_FAILS(local->cancel(record), BEL_FAILED_PRECONDITION, "SUCCEEDED");
    bel_job_record_destroy(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_names, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_texts, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_taken_names, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_claim, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_queue, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_lost, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_elsewhere, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_list, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_damage, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_no_place, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_engines, set_up, bel_test_leave_folder),
        cmocka_unit_test_setup_teardown(test_cancel, set_up, bel_test_leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
