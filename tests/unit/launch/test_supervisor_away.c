// Workers on other hosts, simulated by a shell that starts `carry` (tests/support/fake_role.c):
// their input, deaths, failed connections, signals. label: native
#include <signal.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "support/supervised.h"

static void test_away(void **state)
{
    (void)state;
    run r = make_run(2, 1);
    r.way = "";
    r.cluster->environment = bel_xcalloc(1, sizeof(char *));
    r.cluster->environment[0] = bel_xstrdup("BEL_TEST_COLOR=green");
    r.cluster->environment_count = 1;
    tell(&r, "master:task=");
    tell(&r, "master:print=loss 0.5");
    tell(&r, "worker 0:env=BEL_TEST_COLOR");
    tell(&r, "worker 0:task=");
    tell(&r, "worker 1:say=warning slow disk");
    tell(&r, "worker 1:print=from a model's printf");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_string_equal(r.result.output, "loss 0.5\n");
    assert_holds(r.shown, "[worker 1] warning: slow disk\n");
    assert_holds(r.shown, "[worker 1] from a model's printf\n");
    assert_holds(r.shown, "\"master\":\"127.0.0.1:"); // this host's address on the way to the peer
    char *log;
    read_log(&r, "worker-0.0.log", &log);
    assert_holds(log, "BEL_TEST_COLOR=green");
    assert_holds(log, "\\\"listen\\\":\\\"*:0\\\"");
    assert_lacks(log, "\\\"supervisor\\\":0,"); // the process that carries it
    bel_free(log);
    end_run(&r);
}

// A killed remote process is restarted like a local one. Messages name it by its remote pid.
static void test_away_killed(void **state)
{
    (void)state;
    run r = make_run(2, 0);
    r.way = "";
    r.cluster->restarts = 1;
    tell_path(&r, "worker 1.0:pid=", "pid");
    tell(&r, "worker 1.0:kill=9");
    tell_path(&r, "worker 1.1:touch=", "again");
    tell_path(&r, "master:await=", "again");
    tell_path(&r, "worker 0:await=", "again");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    char *path = bel_path_join(r.folder, "pid"), *pid;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &pid, &size));
    char *expected = bel_strf("worker 1 (pid %s on ", pid);
    assert_holds(r.shown, expected);
    assert_holds(r.shown, ") was killed by signal 9 (Killed)");
    assert_holds(r.shown, "it is started again (1 of 1 times)");
    bel_free(expected);
    bel_free(pid);
    bel_free(path);
    end_run(&r);
}

// A lost remote process is found by its remote pid and its name.
static void test_away_lost(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    r.way = "";
    r.cluster->restarts = 1;
    tell_path(&r, "worker 0.0:pid=", "pid");
    tell(&r, "worker 0.0:hang=");
    tell_path(&r, "master:await=", "pid");
    tell_path(&r, "master:lost=", "pid");
    tell_path(&r, "worker 0.1:touch=", "again");
    tell_path(&r, "master:await=", "again");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown, "worker 0 (pid ");
    assert_holds(r.shown, "was killed by signal 9 (Killed)");
    end_run(&r);
}

// Failed connections do not count as deaths and leave no logs. An error of the remote process
// counts.
static void test_no_way(void **state)
{
    (void)state;
    run r = make_run(1, 0);
    char *way =
        bel_strf("if [ ! -e %s/2 ]; then [ -e %s/1 ] && touch %s/2; touch %s/1; echo no route "
                 ">&2; exit 255; fi;",
                 r.folder, r.folder, r.folder, r.folder);
    r.way = way;
    tell_path(&r, "worker 0:touch=", "there");
    tell_path(&r, "master:await=", "there");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 0);
    assert_holds(r.shown,
                 "the way to worker 0 ended with exit code 255: no route; it is tried again");
    const char *said = strstr(r.shown, "no route");
    assert_null(strstr(said + 1, "no route")); // only once
    char *log = bel_path_join(r.log_dir, "worker-0.0.log");
    assert_false(bel_file_exists(log));
    bel_free(log);
    end_run(&r);
    bel_free(way);

    r = make_run(1, 0);
    r.way = "exit 127;";
    supervise(&r);
    assert_int_equal(r.result.exit_code, 127);
    assert_holds(r.result.message, "the way to worker 0 ended with exit code 127");
    end_run(&r);
}

// A request to stop goes to the remote processes, not to the connection.
static void test_away_stopped(void **state)
{
    (void)state;
    run r = make_run(2, 0);
    r.way = "";
    r.signal = SIGTERM;
    r.signal_when = "ready";
    tell_path(&r, "worker 1:touch=", "ready");
    tell(&r, "worker 0:stop=0");
    tell(&r, "worker 1:stop=0");
    tell(&r, "master:stop=0");
    supervise(&r);
    assert_int_equal(r.result.exit_code, 143);
    assert_true(r.result.stopped);
    char *log;
    read_log(&r, "worker-1.0.log", &log);
    assert_holds(log, "stopped by signal 2");
    bel_free(log);
    end_run(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_away),         cmocka_unit_test(test_away_killed),
        cmocka_unit_test(test_away_lost),    cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_away_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
