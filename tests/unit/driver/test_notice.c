// Notices that the machine is about to stop: a file, a command, a command that cannot run, and one
// that does not end. label: native
#include "driver/notice.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "support/bel_test.h"

static atomic_int notices;

static void on_notice(void)
{
    notices++;
}

static void set_up(const char *file, const char *command)
{
    setenv("BELFRY_NOTICE_FILE", file, 1);
    setenv("BELFRY_NOTICE_COMMAND", command, 1);
    notices = 0;
}

static bool comes(void)
{
    enum { SECS = 60 };
    for (int i = 0; i < 100 * SECS && notices == 0; i++)
        poll(NULL, 0, 10);
    return notices == 1;
}

static char *make_path(void)
{
    static int count;
    return bel_strf("/tmp/belfry-notice-%d-%d", (int)getpid(), count++);
}

static void test_none(void **state)
{
    (void)state;
    bel_notice *notice;
    set_up("", "");
    BEL_ASSERT_OK(bel_notice_begin(on_notice, &notice));
    assert_null(notice);
    bel_notice_end(notice);
}

static void test_file(void **state)
{
    (void)state;
    bel_notice *notice;
    char *path = make_path();
    set_up(path, "");
    BEL_ASSERT_OK(bel_notice_begin(on_notice, &notice));
    assert_non_null(notice);
    assert_int_equal(notices, 0);
    BEL_ASSERT_OK(bel_file_write_atomic(path, "", 0));
    assert_true(comes());
    bel_notice_end(notice);

    notices = 0; // a process that starts on such a machine
    BEL_ASSERT_OK(bel_notice_begin(on_notice, &notice));
    assert_null(notice);
    assert_int_equal(notices, 1);
    assert_int_equal(remove(path), 0);
    bel_free(path);
}

static void test_command(void **state)
{
    (void)state;
    bel_notice *notice;
    char *path = make_path(), *command = bel_strf("test -e %s", path);
    set_up("", command);
    BEL_ASSERT_OK(bel_notice_begin(on_notice, &notice));
    assert_non_null(notice);
    BEL_ASSERT_OK(bel_file_write_atomic(path, "", 0));
    assert_true(comes());
    bel_notice_end(notice);
    assert_int_equal(remove(path), 0);
    bel_free(command);
    bel_free(path);
}

// Neither command gives a notice, and neither keeps the process from ending.
static void test_bad_commands(void **state)
{
    (void)state;
    static const char *const commands[] = {"/no/such/command", "sleep 1000"};
    for (int i = 0; i < 2; i++) {
        bel_notice *notice;
        set_up("", commands[i]);
        BEL_ASSERT_OK(bel_notice_begin(on_notice, &notice));
        assert_non_null(notice);
        bel_notice_end(notice);
        assert_int_equal(notices, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_bad_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
