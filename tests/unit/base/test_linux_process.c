// Processes: how they end, what they inherit, how two are told apart, and how one ends with its
// parent. label: native
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/str.h"
#include "support/bel_test.h"

// Starts `sh -c SCRIPT` with these descriptors.
static bel_linux_process start(const char *script, int output)
{
    char name[] = "sh", flag[] = "-c", *copy = bel_xstrdup(script);
    char *arguments[] = {name, flag, copy, NULL};
    bel_linux_spawn spawn = {
        .program = "/bin/sh", .arguments = arguments, .standard = {-1, output, 2}};
    bel_linux_process process;
    BEL_ASSERT_OK(bel_linux_process_spawn(&spawn, &process));
    bel_free(copy);
    return process;
}

static bel_linux_end wait_for(bel_linux_process *process)
{
    bel_linux_end end;
    assert_true(bel_linux_process_wait(process, 60000, &end));
    assert_int_equal(process->descriptor, -1);
    return end;
}

static void test_ends(void **state)
{
    (void)state;
    bel_linux_process process = start("exit 7", -1);
    bel_linux_end end = wait_for(&process);
    assert_int_equal(end.code, 7);
    assert_int_equal(end.signal, 0);

    process = start("kill -KILL $$", -1);
    end = wait_for(&process);
    assert_int_equal(end.code, 137);
    assert_int_equal(end.signal, 9);

    process = start("read nothing; cat", -1); // stdin is empty, so both commands end at once
    assert_int_equal(wait_for(&process).code, 0);

    char missing[] = "missing", *arguments[] = {missing, NULL};
    bel_linux_spawn spawn = {
        .program = "/nonexistent/program", .arguments = arguments, .standard = {-1, -1, -1}};
    BEL_ASSERT_FAILS(bel_linux_process_spawn(&spawn, &process), BEL_NOT_FOUND,
                     "/nonexistent/program");
    spawn.program = "/";
    BEL_ASSERT_FAILS(bel_linux_process_spawn(&spawn, &process), BEL_PERMISSION_DENIED, "run /");
}

static void test_stands_still(void **state)
{
    (void)state;
    bel_linux_process process = start("while :; do sleep 0.01; done", -1);
    int64_t since = 0;
    assert_false(bel_linux_process_stands_still(&process, 0, &since));
    assert_int_equal(since, 0);
    bel_linux_process_signal(&process, SIGSTOP, false);
    while (!bel_linux_process_stands_still(&process, 0.05, &since))
        poll(NULL, 0, 5);
    assert_int_not_equal(since, 0);
    assert_false(bel_linux_process_stands_still(&process, 1000, &since));
    bel_linux_process_signal(&process, SIGCONT, false);
    while (bel_linux_process_stands_still(&process, 0, &since))
        poll(NULL, 0, 5);
    assert_int_equal(since, 0);
    bel_linux_process_signal(&process, SIGKILL, false);
    assert_int_equal(wait_for(&process).signal, SIGKILL);
    assert_false(bel_linux_process_stands_still(&process, 0, &since));
}

// Reads until the other end closes.
static char *read_all(int descriptor)
{
    bel_str text = {0};
    bel_str_puts(&text, "");
    struct pollfd waiting = {.fd = descriptor, .events = POLLIN};
    for (;;) {
        char chunk[256];
        assert_int_equal(poll(&waiting, 1, 60000), 1);
        ssize_t got = read(descriptor, chunk, sizeof chunk);
        assert_true(got >= 0);
        if (got == 0) return text.text;
        bel_str_append(&text, chunk, (size_t)got);
    }
}

// bel_linux_reap_others reaps children that no caller waits for, and leaves the others to their
// waits.
static void test_reaping_others(void **state)
{
    (void)state;
    bel_linux_process orphan = start("exit 0", -1), own = start("exit 7", -1);
    struct pollfd ended[] = {{.fd = orphan.descriptor, .events = POLLIN},
                             {.fd = own.descriptor, .events = POLLIN}};
    assert_int_equal(poll(&ended[0], 1, 60000), 1);
    bel_linux_reap_others(&own.pid, 1);
    assert_int_equal(kill((pid_t)orphan.pid, 0), -1); // no longer a zombie
    assert_int_equal(poll(&ended[1], 1, 60000), 1);
    bel_linux_reap_others(&own.pid, 1);
    assert_int_equal(wait_for(&own).code, 7);
    close(orphan.descriptor);
}

// A child has no close-on-exec descriptors. All its signals have the default action, although this
// process ignores or blocks some.
static void test_what_a_child_gets(void **state)
{
    (void)state;
    int ends[2], other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    BEL_ASSERT_OK(bel_linux_pipe(ends));
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGTERM, SIG_IGN);
    // Signals 32 and up belong to the C library, so only the last 31 bits count.
    char *script = bel_strf("[ -e /proc/$$/fd/%d ] && echo open; [ -e /proc/$$/fd/%d ] && echo "
                            "open; grep -E 'Sig(Blk|Ign)' /proc/$$/status | grep -vE "
                            "'[08]0{7}$'; echo done",
                            other, ends[0]);
    bel_linux_process process = start(script, ends[1]);
    bel_free(script);
    close(ends[1]);
    char *text = read_all(ends[0]);
    assert_string_equal(text, "done\n");
    assert_int_equal(wait_for(&process).code, 0);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    bel_free(text);
    close(ends[0]);
    close(other);
}

static void test_signals_to_groups(void **state)
{
    (void)state;
    int ends[2];
    BEL_ASSERT_OK(bel_linux_pipe(ends));
    // The grandchild holds the pipe, which closes only when the grandchild ends too.
    bel_linux_process process = start("(echo ready; exec sleep 100) & wait", ends[1]);
    close(ends[1]);
    struct pollfd waiting = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, 60000), 1);
    bel_linux_end end;
    assert_false(bel_linux_process_wait(&process, 0, &end));
    bel_linux_process_signal(&process, SIGKILL, true);
    assert_int_equal(wait_for(&process).signal, 9);
    char *text = read_all(ends[0]);
    assert_string_equal(text, "ready\n");
    bel_linux_process_signal(&process, SIGKILL, true); // already exited: no process receives it
    bel_free(text);
    close(ends[0]);
}

static void test_identity(void **state)
{
    (void)state;
    int64_t own = bel_linux_start_ticks((int64_t)getpid());
    assert_true(own > 0);
    assert_int_equal(bel_linux_start_ticks((int64_t)getpid()), own);
    bel_linux_process process = start("exec sleep 100", -1);
    int64_t pid = process.pid, ticks = bel_linux_start_ticks(pid);
    assert_true(ticks >= own);
    assert_false(bel_linux_signal_exactly(pid, ticks + 1, SIGKILL));
    assert_false(bel_linux_signal_exactly(pid, 0, SIGKILL));
    assert_false(bel_linux_signal_exactly(0, ticks, SIGKILL));
    assert_true(bel_linux_signal_exactly(pid, ticks, SIGTERM));
    struct pollfd waiting = {.fd = process.descriptor, .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, 60000), 1);
    assert_int_equal(bel_linux_start_ticks(pid), 0); // exited, although not reaped yet
    assert_int_equal(wait_for(&process).signal, SIGTERM);
    assert_false(bel_linux_signal_exactly(pid, ticks, SIGTERM));

    char first[64], second[64];
    assert_string_equal(bel_linux_boot_id(first), bel_linux_boot_id(second));
    assert_true(bel_linux_pid_namespace() > 0);
    char *program = bel_linux_program();
    assert_non_null(strstr(program, "unit_tests"));
    bel_free(program);
    unsigned char a[32] = {0}, b[32] = {0};
    BEL_ASSERT_OK(bel_linux_random(a, sizeof a));
    BEL_ASSERT_OK(bel_linux_random(b, sizeof b));
    assert_memory_not_equal(a, b, sizeof a);
}

// A pipe created while descriptor 0 is closed takes another number, so that a child's stdin stays
// empty.
static void test_pipe_numbers(void **state)
{
    (void)state;
    int before = dup(0), ends[2];
    close(0);
    BEL_ASSERT_OK(bel_linux_pipe(ends));
    assert_true(ends[0] > 2 && ends[1] > 2);
    dup2(before, 0);
    close(before);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), -1); // returns without waiting
    close(ends[0]);
    close(ends[1]);
}

static int listen_at(int port, bool reuse)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = reuse;
    assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    if (bind(descriptor, (const struct sockaddr *)&address, sizeof address) == 0 &&
        listen(descriptor, 1) == 0)
        return descriptor;
    close(descriptor);
    return -1;
}

// Only a server that sets SO_REUSEADDR gets the port: repeatedly, but one server at a time.
static void test_kept_port(void **state)
{
    (void)state;
    int port, keeper;
    BEL_ASSERT_OK(bel_linux_keep_port(true, &port, &keeper));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(listen_at(port, false), -1);
        int server = listen_at(port, true);
        assert_true(server >= 0);
        assert_int_equal(listen_at(port, true), -1);
        close(server);
    }
    close(keeper);
}

// A process that ends with its parent: the orphan writes its pid, then the test kills the parent.
static void test_signal_at_parents_end(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *file = bel_path_join(folder, "pid");
    char name[] = "fake_role", use[] = "parent", *arguments[] = {name, use, file, NULL};
    bel_linux_spawn spawn = {
        .program = BEL_FAKE_ROLE, .arguments = arguments, .standard = {-1, -1, 2}};
    bel_linux_process parent;
    BEL_ASSERT_OK(bel_linux_process_spawn(&spawn, &parent));
    int64_t deadline = bel_clock_ns() + 60LL * 1000000000, orphan;
    while (!bel_file_exists(file) && bel_clock_ns() < deadline)
        poll(NULL, 0, 2);
    char *text;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(file, &text, &size));
    assert_true(bel_parse_i64(text, size, &orphan));
    int64_t ticks = bel_linux_start_ticks(orphan);
    assert_true(ticks > 0);
    bel_linux_process_signal(&parent, SIGKILL, false);
    assert_int_equal(wait_for(&parent).signal, 9);
    while (bel_linux_start_ticks(orphan) == ticks && bel_clock_ns() < deadline)
        poll(NULL, 0, 2);
    assert_int_not_equal(bel_linux_start_ticks(orphan), ticks);
    bel_free(text);
    bel_free(file);
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_stands_still),
        cmocka_unit_test(test_reaping_others),
        cmocka_unit_test(test_what_a_child_gets),
        cmocka_unit_test(test_signals_to_groups),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_pipe_numbers),
        cmocka_unit_test(test_kept_port),
        cmocka_unit_test(test_signal_at_parents_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
