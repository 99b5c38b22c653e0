// The supervisor takes over its process's signals and standard error, so a run sets both aside and
// restores them. A shell reaches the programs of workers on other hosts.
#include "support/supervised.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "base/str.h"

run make_run(int worker_count, int ps_count)
{
    run r = {.folder = bel_test_folder()};
    r.log_dir = bel_path_join(r.folder, "logs");
    r.sockets = bel_path_join(r.folder, "sockets");
    BEL_ASSERT_OK(bel_dir_create(r.sockets));
    r.cluster = bel_cluster_create(worker_count, ps_count, 0);
    r.cluster->restarts = 0;
    r.arguments[r.argument_count++] = bel_xstrdup("belfry");
    r.arguments[r.argument_count++] = bel_xstrdup("train_and_evaluate");
    return r;
}

void tell(run *r, const char *action)
{
    assert_true(r->argument_count + 1 < MOST_ARGUMENTS);
    r->arguments[r->argument_count++] = bel_xstrdup(action);
}

void tell_path(run *r, const char *action, const char *name)
{
    char *path = bel_path_join(r->folder, name), *text = bel_strf("%s%s", action, path);
    tell(r, text);
    bel_free(text);
    bel_free(path);
}

// A job's sockets are locked as long as its supervisor runs (sockets.h).
static void check_locked(const run *r)
{
    char **names = NULL;
    size_t count = 0;
    bel_status_ignore(bel_dir_list(r->sockets, &names, &count));
    for (size_t i = 0; i < count; i++) {
        int lock;
        char *folder = bel_path_join(r->sockets, names[i]);
        BEL_ASSERT_FAILS(bel_linux_lock_folder(folder, &lock), BEL_FAILED_PRECONDITION, "locked");
        bel_free(folder);
    }
    bel_dir_names_free(names, count);
}

static void on_change(void *context, const char *progress)
{
    run *r = context;
    check_locked(r);
    r->change_count++;
    if (progress == NULL) return;
    bel_free(r->last_progress);
    r->last_progress = bel_xstrdup(progress);
}

// Sends the signals, in a thread, as the supervisor occupies the test's thread.
static void *send_signals(void *argument)
{
    const run *r = argument;
    const char *const files[] = {r->signal_when, r->signal_again_when};
    int64_t deadline = bel_clock_ns() + 60LL * 1000000000;
    for (int i = 0; i < 2 && files[i] != NULL; i++) {
        char *path = bel_path_join(r->folder, files[i]);
        while (!bel_file_exists(path) && bel_clock_ns() < deadline)
            poll(NULL, 0, 2);
        bel_free(path);
        kill(getpid(), r->signal);
    }
    return NULL;
}

// A shell reaches the workers: it does what `way` says and becomes `carry`.
typedef struct test_reach {
    bel_reach reach;
    const char *way;
} test_reach;

static char **way_to(const bel_reach *reach, const bel_task *task)
{
    const test_reach *t = (const test_reach *)reach;
    if (task->role != BEL_ROLE_WORKER) return NULL;
    char **words = bel_xcalloc(5, sizeof *words);
    words[0] = bel_xstrdup("sh");
    words[1] = bel_xstrdup("-c");
    words[2] = bel_strf("%s exec \"$0\" carry", t->way);
    words[3] = bel_xstrdup(BEL_FAKE_ROLE);
    return words;
}

void supervise(run *r)
{
    bel_plan *plan;
    const test_reach reach = {{.words = way_to, .peer = "127.0.0.1:9", .program = BEL_FAKE_ROLE},
                              r->way};
    BEL_ASSERT_OK(bel_plan_create(r->cluster, 0, 1, &plan));
    char *shown = bel_path_join(r->folder, "stderr");
    bel_supervisor_config config = {.plan = plan,
                                    .job = "digits",
                                    .program = BEL_FAKE_ROLE,
                                    .arguments = r->arguments,
                                    .log_dir = r->log_dir,
                                    .model_dir = r->folder,
                                    .tcp = r->tcp,
                                    .reach = r->way != NULL ? &reach.reach : NULL,
                                    .folder = r->folder,
                                    .grace_secs = r->grace_secs > 0 ? r->grace_secs : 60,
                                    .changed = on_change,
                                    .context = r};
    setenv("XDG_RUNTIME_DIR", r->sockets, 1);
    fflush(stderr);
    int before = fcntl(2, F_DUPFD_CLOEXEC, 3);
    assert_non_null(freopen(shown, "w", stderr));
    pthread_t sender;
    bool sends = r->signal != 0 && pthread_create(&sender, NULL, send_signals, r) == 0;
    bel_status *status = bel_supervise(&config, &r->result);
    if (sends) pthread_join(sender, NULL);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    BEL_ASSERT_OK(status);
    size_t size;
    BEL_ASSERT_OK(bel_file_read(shown, &r->shown, &size));
    bel_free(shown);
    bel_plan_destroy(plan);

    char **names; // the supervisor removes its sockets
    BEL_ASSERT_OK(bel_dir_list(r->sockets, &names, &size));
    assert_int_equal(size, 0);
    bel_free(names);
}

void end_run(run *r)
{
    for (size_t i = 0; i < r->argument_count; i++)
        bel_free(r->arguments[i]);
    bel_cluster_destroy(r->cluster);
    bel_free(r->result.message);
    bel_free(r->result.output);
    bel_free(r->shown);
    bel_free(r->last_progress);
    bel_free(r->log_dir);
    bel_free(r->sockets);
    bel_test_remove_folder(r->folder);
}

void assert_holds(const char *text, const char *part)
{
    if (text == NULL || strstr(text, part) == NULL) {
        fail_msg("expected \"%s\" in: %s", part, text != NULL ? text : "(nothing)");
    }
}

void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL) fail_msg("unexpected \"%s\" in: %s", part, text);
}

void read_log(const run *r, const char *name, char **out_text)
{
    size_t size;
    char *path = bel_path_join(r->log_dir, name);
    BEL_ASSERT_OK(bel_file_read(path, out_text, &size));
    bel_free(path);
}
