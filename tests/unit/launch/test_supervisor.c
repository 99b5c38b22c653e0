// The supervisor against a program that prints, ends, hangs and crashes on command
// (tests/support/fake_role.c): outputs, exit codes, the process that failed, signals, deadlines,
// leftovers. label: native
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/folder/scale.h"
#include "support/supervised.h"

// --- A successful run ----------------------------------------------------------------------------

static void test_success(void **state)
{
    (void)state;
    run r = make_run(2, 1);
    tell(&r, "master:say=info building the model");
    tell(&r, "master:say=warning careful");
    tell(&r, "master:progress=40");
    tell(&r, "master:print=loss 0.5");
    tell(&r, "master:print=digest abc");
    tell(&r, "worker 0:say=info no one needs this");
    tell(&r, "worker 1:say=warning slow disk");
    tell(&r, "worker 0:say=warning \x1b[31mred\xc2\x9b");
    tell(&r, "worker 1:raw=*** stack\tsmashing\x01 ***");
    tell(&r, "ps 0:print=from a model's printf");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    assert_false(r.result.stopped);
    assert_string_equal(r.result.output, "loss 0.5\ndigest abc\n");

    assert_holds(r.shown, "building the model\n");
    assert_lacks(r.shown, "[master]");
    assert_holds(r.shown, "warning: careful\n");
    assert_holds(r.shown, "step 40/100  loss = 0.25  1000 examples/s  ETA 2.0 s\n");
    assert_lacks(r.shown, "no one needs this");
    assert_holds(r.shown, "[worker 1] warning: slow disk\n");
    assert_holds(r.shown, "[worker 0] warning: ?[31mred?\n");
    assert_holds(r.shown, "[worker 1] *** stack\tsmashing? ***\n");
    assert_holds(r.shown, "[ps 0] from a model's printf\n");
    assert_true(r.change_count >= 2);
    assert_holds(r.last_progress, "\"step\":40");

    char *log;
    read_log(&r, "worker-0.0.log", &log);
    assert_holds(log, "\"message\":\"no one needs this\"}\n");
    bel_free(log);
    read_log(&r, "worker-1.0.log", &log);
    assert_holds(log, "*** stack\tsmashing\x01 ***\n"); // unchanged
    bel_free(log);
    end_run(&r);
}

static void test_json(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell(&r, "master:say=info hello");
    tell(&r, "worker 0:say=warning \"quoted\"");
    tell(&r, "worker 0:raw=plain");
    bel_log_configure(BEL_LOG_INFO, BEL_LOG_JSON);
    supervise(&r);
    bel_log_configure(BEL_LOG_INFO, BEL_LOG_TEXT);
    assert_holds(r.shown, "{\"process\":\"master\",\"time\":");
    assert_holds(r.shown, "\"message\":\"hello\"}\n");
    assert_holds(r.shown, "{\"process\":\"worker 0\",\"level\":\"warning\",\"message\":\"plain\"}");
    for (char *line = r.shown; *line != '\0';) { // each line is an object
        size_t length = strcspn(line, "\n");
        bel_json *json;
        BEL_ASSERT_OK(bel_json_parse(line, length, "stderr", &json));
        bel_json_destroy(json);
        line += length + 1;
    }
    end_run(&r);
}

// Checks the children's input: one task each, one secret, the variables of the cluster file.
static void check_tasks(bool tcp)
{
    run r = make_run(1, 1);
    r.tcp = tcp;
    r.cluster->environment = bel_xcalloc(1, sizeof(char *));
    r.cluster->environment[0] = bel_xstrdup("BEL_TEST_COLOR=green");
    r.cluster->environment_count = 1;
    setenv("BEL_TEST_COLOR", "red", 1);
    tell(&r, "master:task=");
    tell(&r, "master:env=BEL_TEST_COLOR");
    tell(&r, "worker 0:task=");
    tell(&r, "worker 0:env=BELFRY_SECRET");
    tell(&r, "ps 0:env=BELFRY_SECRET");
    supervise(&r);
    unsetenv("BEL_TEST_COLOR");
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown, "BEL_TEST_COLOR=green");
    assert_holds(r.shown, "\"job\":\"digits\",\"role\":\"master\",\"index\":0");
    char *of_worker, *of_ps;
    read_log(&r, "worker-0.0.log", &of_worker);
    read_log(&r, "ps-0.0.log", &of_ps);
    if (tcp) {
        assert_holds(r.shown, "\"listen\":\"127.0.0.1:");
        assert_lacks(r.shown, "\"listen\":\"127.0.0.1:0\"");
        assert_holds(of_worker, "\\\"listen\\\":\\\"127.0.0.1:0\\\"");
    } else {
        char *start = bel_strf("\"master\":\"unix:%s/belfry-sockets-", r.sockets);
        assert_holds(r.shown, start);
        assert_holds(r.shown, "/master\",\"listen\":\"unix:");
        assert_holds(of_worker, "/worker-0\\\"");
        bel_free(start);
    }
    char *secret = strstr(of_worker, "BELFRY_SECRET="), *other = strstr(of_ps, "BELFRY_SECRET=");
    assert_non_null(secret);
    assert_non_null(other);
    size_t length = strlen("BELFRY_SECRET=") + 64;
    assert_memory_equal(secret, other, length);
    assert_int_equal(strspn(secret + strlen("BELFRY_SECRET="), "0123456789abcdef"), 64);
    bel_free(of_worker);
    bel_free(of_ps);
    end_run(&r);
}

static void test_tasks(void **state)
{
    (void)state;
    check_tasks(false);
    check_tasks(true);
}

// More processes than the soft limit has descriptors for.
static void test_many_files(void **state)
{
    (void)state;
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 24;
    run r = make_run(12, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    supervise(&r);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r.result.exit_code, 0);
    end_run(&r);
}

// A later run appends to the logs. A folder whose path is too long for sockets is not used.
static void test_places(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    tell(&r, "master:say=info once");
    supervise(&r);
    bel_free(r.shown);
    bel_free(r.result.output);
    char name[100];
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    char *deep = bel_path_join(r.sockets, name);
    BEL_ASSERT_OK(bel_dir_create(deep));
    bel_free(r.sockets);
    r.sockets = deep;
    tell(&r, "master:task=");
    supervise(&r);
    assert_holds(r.shown, "\"master\":\"unix:/tmp/belfry-sockets-");
    char *log;
    read_log(&r, "master-0.0.log", &log);
    assert_non_null(strstr(strstr(log, "once") + 1, "once"));
    bel_free(log);
    end_run(&r);
}

// --- Failures -----------------------------------------------------------------------------------

static void test_worker_killed(void **state)
{
    (void)state;
    run r = make_run(2, 1);
    tell(&r, "master:progress=30");
    tell_path(&r, "master:touch=", "begun");
    tell_path(&r, "worker 1:await=", "begun");
    tell(&r, "worker 1:kill=9");
    tell(&r, "worker 0:stop=0");
    tell(&r, "ps 0:stop=0");
    tell_path(&r, "master:await=", "never"); // ignores the failure: SIGKILL after the grace
    r.grace_secs = 0.3;
    supervise(&r);
    assert_holds(r.result.message, "worker 1 (pid ");
    assert_holds(r.result.message, "was killed by signal 9 (Killed) after step 30");
    assert_holds(r.result.message, "worker-1.0.log");
    assert_holds(r.shown, "master (pid ");
    assert_holds(r.shown, "did not end in time; it is killed");
    assert_int_equal(r.result.exit_code, 137);
    end_run(&r);
}

static void test_restarts(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    r.cluster->restarts = 2;
    tell(&r, "worker 0.0:kill=9");
    tell(&r, "worker 0.1:exit=137");
    tell(&r, "worker 0.2:say=info here again");
    tell_path(&r, "worker 0.2:touch=", "back");
    tell_path(&r, "master.1:await=", "back");
    tell(&r, "master.0:print=of a life before");
    tell(&r, "master.0:kill=9");
    tell(&r, "master.1:print=done");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    assert_string_equal(r.result.output, "done\n"); // from the incarnation that ended the job
    assert_holds(r.shown, "worker 0 (pid ");
    assert_holds(r.shown, "was killed by signal 9 (Killed)");
    assert_holds(r.shown, "it is started again (1 of 2 times)");
    assert_holds(r.shown, "ended with exit code 137");
    assert_holds(r.shown, "it is started again (2 of 2 times)");
    char *log;
    read_log(&r, "worker-0.2.log", &log);
    assert_holds(log, "here again");
    bel_free(log);
    end_run(&r);
}

// A process that leaves, even the master, may start again more often than one that dies.
static void test_leaves(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    r.cluster->restarts = 1;
    for (int life = 0; life < 3; life++) {
        char *leave = bel_strf("worker 0.%d:leave=143", life);
        tell(&r, leave);
        bel_free(leave);
    }
    tell(&r, "worker 0.3:kill=9");
    tell_path(&r, "worker 0.4:touch=", "back");
    tell(&r, "master.0:leave=143");
    tell_path(&r, "master.1:await=", "back");
    tell(&r, "master.1:print=done");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    assert_string_equal(r.result.output, "done\n");
    assert_holds(r.shown, "worker 0 has left, as it was told to: it is started again");
    assert_holds(r.shown, "master has left");
    assert_holds(r.shown, "it is started again (1 of 1 times)");
    end_run(&r);
}

// A restarted process does not depend on its log file.
static void test_no_log_file(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    r.cluster->restarts = 1;
    char *log = bel_path_join(r.log_dir, "worker-0.1.log");
    BEL_ASSERT_OK(bel_dir_create(log)); // has the file's name
    bel_free(log);
    tell(&r, "worker 0.0:kill=9");
    tell_path(&r, "worker 0.1:touch=", "back");
    tell_path(&r, "master:await=", "back");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown, "worker 0 has no log file: cannot create");
    end_run(&r);
}

static void test_too_many_restarts(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    r.cluster->restarts = 1;
    tell(&r, "worker 0:kill=9");
    tell(&r, "ps 0:stop=0");
    tell(&r, "master:stop=1");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 1); // the master's
    assert_holds(r.result.message, "was killed by signal 9 (Killed)");
    assert_holds(r.shown, "it is started again (1 of 1 times)");
    end_run(&r);
}

static void expect_crashes(const char *first, const char *second, const char *third, int restarts)
{
    run r = make_run(1, 1);
    r.cluster->restarts = 10;
    tell(&r, first);
    tell(&r, second);
    tell(&r, third);
    tell_path(&r, "worker 0.3:touch=", "fourth");
    tell(&r, "ps 0:stop=0");
    if (restarts == 3) {
        tell_path(&r, "master:await=", "fourth");
    } else {
        tell(&r, "master:stop=1");
    }
    supervise(&r);
    assert_int_equal(r.result.exit_code, restarts == 3 ? 0 : 1);
    if (restarts == 2) assert_holds(r.result.message, "in step 7, as 2 times before: it crashed");
    char *said = bel_strf("it is started again (%d of 10 times)", restarts);
    assert_holds(r.shown, said);
    bel_free(said);
    end_run(&r);
}

// Three crashes by the same signal in the same step: a fourth would be the same. A crash in another
// step or by another signal in between resets the count.
static void test_same_crashes(void **state)
{
    (void)state;
    expect_crashes("worker 0.0:crash=7", "worker 0.1:crash=7", "worker 0.2:crash=7", 2);
    expect_crashes("worker 0.0:crash=7", "worker 0.1:crash=8", "worker 0.2:crash=7", 3);
    expect_crashes("worker 0.0:crash=7", "worker 0.1:kill=9", "worker 0.2:crash=7", 3);
}

// A silent process is killed when the master reports it lost.
static void test_lost(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    r.cluster->restarts = 1;
    tell_path(&r, "worker 0.0:pid=", "pid");
    tell(&r, "worker 0.0:hang=");
    tell_path(&r, "worker 0.1:touch=", "back");
    tell_path(&r, "master:lost=", "pid");
    tell_path(&r, "master:await=", "back");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown, "lost worker 0 on this host");
    end_run(&r);
}

static void test_worker_fails(void **state)
{
    (void)state;
    run r = make_run(2, 1);
    tell(&r, "worker 0:error=a.csv:3: expected 65 fields, got 2");
    tell(&r, "worker 0:exit=3");
    tell(&r, "master:hang="); // ignores the failure
    r.grace_secs = 0.3;
    supervise(&r);
    assert_holds(r.result.message, "worker 0 (pid ");
    assert_holds(r.result.message, "ended with exit code 3: a.csv:3: expected 65 fields, got 2");
    assert_int_equal(r.result.exit_code, 3); // the master was killed: the cause's code counts
    assert_lacks(r.shown, "error: a.csv");   // reported once
    end_run(&r);
}

static void test_master_fails(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell_path(&r, "worker 0:touch=", "ready");
    tell_path(&r, "master:await=", "ready");
    tell(&r, "master:error=the loss is not finite");
    tell(&r, "master:exit=1");
    tell(&r, "worker 0:stop=0"); // ends on request
    tell(&r, "ps 0:stop=0");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 1);
    assert_string_equal(r.result.message, "the loss is not finite"); // as in one process
    assert_holds(r.shown, "stopped by signal 2");
    end_run(&r);
}

// A member that ends because of the job's error reports none; the master reports its error.
static void test_master_knows_why(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell(&r, "worker 0:exit=1");
    tell(&r, "master:error=the disk is full");
    tell(&r, "master:stop=1"); // it notices the member's failure, or the supervisor asks
    supervise(&r);
    assert_int_equal(r.result.exit_code, 1);
    assert_string_equal(r.result.message, "the disk is full");
    end_run(&r);
}

static void test_failure_behind_success(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell(&r, "master:print=done");
    tell_path(&r, "master:touch=", "done");
    tell_path(&r, "worker 0:await=", "done");
    tell(&r, "worker 0:exit=7");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 7);
    assert_holds(r.result.message, "worker 0");
    assert_string_equal(r.result.output, "done\n");
    end_run(&r);
}

// Processes that remain after the master are killed. The job does not fail for that.
static void test_stragglers(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell(&r, "ps 0:hang=");
    r.grace_secs = 0.2;
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    assert_holds(r.shown, "ps 0 (pid ");
    end_run(&r);
}

// A grandchild that outlives its parent holds its stderr; the supervisor does not wait for it.
static void test_heir(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    char *held = bel_test_file(r.folder, "held", "", 0);
    tell_path(&r, "worker 0:heir=", "held");
    tell(&r, "worker 0:say=warning last words");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown, "[worker 0] warning: last words\n");
    bel_free(held);
    end_run(&r); // removes the file, which ends the process left
}

static void test_no_program(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    bel_plan *plan;
    BEL_ASSERT_OK(bel_plan_create(r.cluster, 0, 1, &plan));
    bel_supervisor_config config = {.plan = plan,
                                    .job = "digits",
                                    .program = "/nonexistent/belfry",
                                    .arguments = r.arguments,
                                    .log_dir = r.log_dir};
    setenv("XDG_RUNTIME_DIR", r.sockets, 1);
    BEL_ASSERT_FAILS(bel_supervise(&config, &r.result), BEL_NOT_FOUND, "/nonexistent/belfry");
    char *secret = bel_test_file(r.folder, "secret", "two words\n", 10);
    r.cluster->secret_file = secret;
    BEL_ASSERT_FAILS(bel_supervise(&config, &r.result), BEL_INVALID_ARGUMENT, "chmod 600");
    assert_int_equal(chmod(secret, 0600), 0);
    BEL_ASSERT_FAILS(bel_supervise(&config, &r.result), BEL_INVALID_ARGUMENT, secret);
    bel_plan_destroy(plan);
    end_run(&r);
}

// --- Signals ------------------------------------------------------------------------------------

static void check_signal(int number)
{
    run r = make_run(1, 1);
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:stop=0");
    tell(&r, "worker 0:stop=0");
    tell(&r, "ps 0:stop=0");
    r.signal = number;
    r.signal_when = "begun";
    supervise(&r);
    assert_int_equal(r.result.exit_code, 128 + (number == SIGINT ? SIGINT : SIGTERM));
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    char *text = bel_strf("stopped by signal %d", SIGINT); // SIGTERM would ask them to leave
    assert_holds(r.shown, text);
    bel_free(text);
    end_run(&r);
}

static void test_signals(void **state)
{
    (void)state;
    check_signal(SIGTERM);
    check_signal(SIGINT);
    check_signal(SIGHUP);
    check_signal(SIGUSR1); // a scheduler's warning
}

static void test_second_signal(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell_path(&r, "worker 0:touch=", "ready");
    tell_path(&r, "master:await=", "ready");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:hang=");
    tell(&r, "worker 0:catch=");
    tell_path(&r, "worker 0:touch=", "caught");
    tell(&r, "worker 0:hang=");
    tell(&r, "ps 0:stop=0");
    r.signal = SIGINT;
    r.signal_when = "begun";
    r.signal_again_when = "caught";
    char *token = bel_test_file(r.folder, "job.token", "t", 1); // a killed master leaves it
    supervise(&r);
    assert_false(bel_file_exists(token));
    bel_free(token);
    assert_int_equal(r.result.exit_code, 130);
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    assert_holds(r.shown, "SIGINT again");
    end_run(&r);
}

// A process killed while the job stops is restarted, so that its state can be saved.
static void test_death_while_stopping(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    r.cluster->restarts = 1;
    tell_path(&r, "worker 0.0:touch=", "ready");
    tell(&r, "worker 0.0:catch=");
    tell(&r, "worker 0.0:kill=9");
    tell_path(&r, "worker 0.1:touch=", "back");
    tell_path(&r, "master:await=", "ready");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:catch=");
    tell_path(&r, "master:await=", "back");
    tell(&r, "master:exit=143");
    r.signal = SIGTERM;
    r.signal_when = "begun";
    supervise(&r);
    assert_int_equal(r.result.exit_code, 143);
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    end_run(&r);
}

// So is a process that leaves at that time: the master waits for the next one.
static void test_leaving_while_stopping(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    r.cluster->restarts = 1;
    tell_path(&r, "worker 0.0:touch=", "ready");
    tell(&r, "worker 0.0:catch=");
    tell(&r, "worker 0.0:leave=143");
    tell_path(&r, "worker 0.1:touch=", "back");
    tell_path(&r, "master:await=", "ready");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:catch=");
    tell_path(&r, "master:await=", "back");
    tell(&r, "master:exit=143");
    r.signal = SIGTERM;
    r.signal_when = "begun";
    supervise(&r);
    assert_int_equal(r.result.exit_code, 143);
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    end_run(&r);
}

// The same for a process that waits for its restart: there is a pause after three short lives.
static void test_stop_before_restart(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    r.cluster->restarts = 3;
    tell(&r, "worker 0.0:kill=9");
    tell(&r, "worker 0.1:kill=9");
    tell_path(&r, "worker 0.2:await=", "begun");
    tell_path(&r, "worker 0.2:touch=", "dies");
    tell(&r, "worker 0.2:kill=9");
    tell_path(&r, "worker 0.3:touch=", "back");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:catch=");
    tell_path(&r, "master:await=", "back");
    tell(&r, "master:exit=130");
    r.signal = SIGINT;
    r.signal_when = "dies";
    supervise(&r);
    assert_int_equal(r.result.exit_code, 130);
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    end_run(&r);
}

// Before the master reports progress there is nothing to save, so processes that do not answer are
// killed.
static void test_stop_before_the_beginning(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    tell_path(&r, "worker 0:touch=", "ready");
    tell(&r, "worker 0:hang=");
    tell_path(&r, "master:await=", "ready");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:hang=");
    r.signal = SIGTERM;
    r.signal_when = "begun";
    r.grace_secs = 0.2;
    supervise(&r);
    assert_int_equal(r.result.exit_code, 143);
    assert_true(r.result.stopped);
    assert_holds(r.shown, "did not end in time");
    end_run(&r);

    r = make_run(1, 0); // a job that has begun may take time to save
    tell_path(&r, "worker 0:touch=", "ready");
    tell_path(&r, "master:await=", "ready");
    tell(&r, "master:begin=");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:catch=");
    tell_path(&r, "master:await=", "saved");
    tell(&r, "master:exit=143");
    tell(&r, "worker 0:catch=");
    tell(&r, "worker 0:sleep=1");
    tell_path(&r, "worker 0:touch=", "saved");
    r.signal = SIGTERM;
    r.signal_when = "begun";
    r.grace_secs = 0.2;
    supervise(&r);
    assert_int_equal(r.result.exit_code, 143);
    assert_lacks(r.shown, "did not end in time");
    end_run(&r);
}

// A job that neither computes nor reads before it begins is stuck, even if no process runs a clock.
static void test_stuck_before_the_beginning(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    r.cluster->join_timeout_secs = 1;
    tell(&r, "worker 0:hang=");
    tell(&r, "master:hang=");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 1);
    assert_false(r.result.stopped);
    assert_holds(r.result.message, "training has not begun, and no process has computed or read");
    end_run(&r);
}

// Only the master was asked to end the job. Other processes end with it and report no error.
static void test_master_stops(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    r.cluster->restarts = 2;
    tell_path(&r, "worker 0:touch=", "falls");
    tell(&r, "worker 0:exit=1");
    tell_path(&r, "master:await=", "falls");
    tell(&r, "master:exit=143");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 143);
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    assert_lacks(r.shown, "started again");
    end_run(&r);
}

// If the master is asked to end because another process failed, that process's error counts.
static void test_master_is_stopped(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell(&r, "worker 0:exit=7");
    tell(&r, "master:stop=0");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 7);
    assert_false(r.result.stopped);
    assert_holds(r.result.message, "worker 0 (pid ");
    end_run(&r);
}

// A process that takes long to end after the master is asked again.
static void test_slow_end(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    tell_path(&r, "worker 0:touch=", "ready");
    tell(&r, "worker 0:catch=");
    tell(&r, "worker 0:stop=0");
    tell_path(&r, "master:await=", "ready");
    tell_path(&r, "master:touch=", "begun");
    tell(&r, "master:stop=0");
    r.signal = SIGINT;
    r.signal_when = "begun";
    supervise(&r);
    assert_int_equal(r.result.exit_code, 130);
    assert_true(r.result.stopped);
    assert_null(r.result.message);
    assert_holds(r.shown, "stopped by signal 2");
    end_run(&r);
}

// --- Other numbers of workers --------------------------------------------------------------------

static void test_enough_workers(void **state)
{
    (void)state;
    for (int least = 1; least <= 2; least++) {
        run r = make_run(2, 1);
        r.cluster->min_workers = least;
        tell_path(&r, "worker 1:touch=", "dies");
        tell(&r, "worker 1:kill=9");
        tell_path(&r, "master:await=", "dies");
        if (least == 2) tell(&r, "master:stop=0"); // the supervisor asks it to end
        supervise(&r);
        if (least == 1) {
            assert_int_equal(r.result.exit_code, 0);
            assert_null(r.result.message);
        } else {
            assert_holds(r.result.message, "worker 1 (pid");
        }
        end_run(&r);
    }
}

// An earlier job's request does not count. This job's request adds workers with separate tasks.
static void test_more_workers(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    BEL_ASSERT_OK(bel_scale_write(r.folder, (bel_scale){9, 9}));
    tell_path(&r, "master:scale=3 ", "");
    tell_path(&r, "master:await=", "one");
    tell_path(&r, "master:await=", "two");
    tell(&r, "worker 1.0:task=");
    tell_path(&r, "worker 1.0:touch=", "one");
    tell_path(&r, "worker 2.0:touch=", "two");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown, "3 workers are wanted, instead of 1");
    assert_lacks(r.shown, "9 workers");
    char *log = bel_path_join(r.log_dir, "worker-1.0.log"), *text;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(log, &text, &size));
    assert_holds(text, "added\\\":1");
    bel_free(text);
    bel_free(log);
    end_run(&r);
}

// A request for the present number restores workers that were given up.
static void test_same_number(void **state)
{
    (void)state;
    run r = make_run(2, 1);
    r.cluster->min_workers = 1;
    tell_path(&r, "worker 1.0:pid=", "pid");
    tell(&r, "worker 1.0:kill=9");
    tell_path(&r, "master:gone=", "pid");
    tell_path(&r, "master:scale=2 ", "");
    tell_path(&r, "master:await=", "back");
    tell_path(&r, "worker 1.1:touch=", "back");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    end_run(&r);
}

// So does a request after the master retired workers because of one that the supervisor has not
// seen.
static void test_retired_and_wanted(void **state)
{
    (void)state;
    run r = make_run(2, 1);
    tell_path(&r, "worker 1.0:await=", "retired");
    tell_path(&r, "master:scale=2 ", "");
    tell_path(&r, "master:touch=", "retired");
    tell_path(&r, "master:await=", "back");
    tell_path(&r, "worker 1.1:touch=", "back");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    end_run(&r);
}

// A worker added too late in the job is asked to end; that is not a failure.
static void test_added_too_late(void **state)
{
    (void)state;
    run r = make_run(1, 1);
    tell_path(&r, "master:scale=2 ", "");
    tell_path(&r, "master:await=", "up");
    tell_path(&r, "worker 1:touch=", "up");
    tell(&r, "worker 1:stop=1");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_null(r.result.message);
    end_run(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_no_log_file),
        cmocka_unit_test(test_too_many_restarts),
        cmocka_unit_test(test_same_crashes),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_worker_killed),
        cmocka_unit_test(test_worker_fails),
        cmocka_unit_test(test_master_fails),
        cmocka_unit_test(test_master_knows_why),
        cmocka_unit_test(test_failure_behind_success),
        cmocka_unit_test(test_stragglers),
        cmocka_unit_test(test_heir),
        cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_second_signal),
        cmocka_unit_test(test_death_while_stopping),
        cmocka_unit_test(test_leaving_while_stopping),
        cmocka_unit_test(test_stop_before_restart),
        cmocka_unit_test(test_stop_before_the_beginning),
        cmocka_unit_test(test_stuck_before_the_beginning),
        cmocka_unit_test(test_master_stops),
        cmocka_unit_test(test_master_is_stopped),
        cmocka_unit_test(test_slow_end),
        cmocka_unit_test(test_enough_workers),
        cmocka_unit_test(test_more_workers),
        cmocka_unit_test(test_same_number),
        cmocka_unit_test(test_retired_and_wanted),
        cmocka_unit_test(test_added_too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
