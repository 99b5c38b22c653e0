// The mutex guards only the request to end the thread; ending it takes no longer than killing a
// command. A notice is given once; the job handles the rest. Each process polls, instead of a
// supervisor, so that notices work under any launcher.
#include "driver/notice.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/thread.h"

extern char **environ;

enum { SECOND_NS = 1000000000, COMMAND_SECS = BEL_NOTICE_COMMAND_SECS };

struct bel_notice {
    const char *file, *command; // NULL: unset
    void (*tell)(void);
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool over;         // guarded by the mutex
    bool told_command; // an unusable command was reported
};

// True if the thread must end; waits for that up to `secs`.
static bool is_over(bel_notice *n, int secs)
{
    int64_t deadline = bel_clock_ns() + secs * (int64_t)SECOND_NS;
    pthread_mutex_lock(&n->mutex);
    while (!n->over && bel_cond_wait_until(&n->cond, &n->mutex, deadline)) {
    }
    bool over = n->over;
    pthread_mutex_unlock(&n->mutex);
    return over;
}

// Reports an unusable command once, by the shell's exit codes for it; the command is tried again.
static void check_command(bel_notice *n, int code)
{
    enum { NOT_RUN = 126, NOT_FOUND = 127 };
    if (n->told_command || (code != NOT_RUN && code != NOT_FOUND)) return;
    n->told_command = true;
    bel_log_write(BEL_LOG_WARN, "BELFRY_NOTICE_COMMAND ended with exit code %d: it %s", code,
                  code == NOT_FOUND ? "was not found" : "cannot be run");
}

// Returns this process's environment without the variables that would let the command take part in
// the job. The environment owns the texts; free the list with bel_free.
static char **without_secrets(void)
{
    static const char *const secret[] = {"BELFRY_SECRET=", "BELFRY_SECRET_FILE=", "BELFRY_TASK="};
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    char **list = bel_xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        bool hidden = false;
        for (size_t k = 0; k < sizeof secret / sizeof secret[0]; k++)
            hidden = hidden || strncmp(environ[i], secret[k], strlen(secret[k])) == 0;
        if (!hidden) list[kept++] = environ[i];
    }
    return list;
}

// True if the command succeeded in time.
static bool run_command(bel_notice *n)
{
    enum { NAP_MS = 50 };
    char shell[] = "/bin/sh", option[] = "-c", *text = bel_xstrdup(n->command);
    char *const arguments[] = {shell, option, text, NULL};
    char **environment = without_secrets();
    const bel_linux_spawn spawn = {.program = shell,
                                   .arguments = arguments,
                                   .environment = environment,
                                   .standard = {-1, -1, -1}};
    bel_linux_process process;
    bel_linux_end end = {.code = 1};
    bel_status *status = bel_linux_process_spawn(&spawn, &process);
    bel_free(text);
    bel_free(environment);
    if (status != NULL) {
        bel_status_ignore(status); // no processes or memory at the moment: it is tried again
        return false;
    }
    int64_t deadline = bel_clock_ns() + COMMAND_SECS * (int64_t)SECOND_NS;
    bool ended = false;
    while (!(ended = bel_linux_process_wait(&process, NAP_MS, &end)) && bel_clock_ns() < deadline &&
           !is_over(n, 0)) {
    }
    if (!ended) {
        bel_linux_process_signal(&process, SIGKILL, true);
        (void)bel_linux_process_wait(&process, -1, &end);
        return false;
    }
    check_command(n, end.code);
    return end.code == 0;
}

// True if there is a notice; reports it to the process.
static bool notice_look(bel_notice *n, bool at_command)
{
    const char *from = NULL;
    if (n->file != NULL && bel_file_exists(n->file)) from = n->file;
    if (from == NULL && at_command && n->command != NULL && run_command(n)) from = n->command;
    if (from == NULL) return false;
    bel_log_write(BEL_LOG_WARN, "notice that this machine is to go (%s)", from);
    n->tell();
    return true;
}

static void *notice_watch(void *argument)
{
    bel_notice *n = argument;
    const int period = BEL_NOTICE_FILE_SECS;
    for (int secs = period; !is_over(n, period); secs += period)
        if (notice_look(n, secs % COMMAND_SECS == 0)) break;
    return NULL;
}

static const char *notice_setting(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void notice_destroy(bel_notice *n)
{
    pthread_cond_destroy(&n->cond);
    pthread_mutex_destroy(&n->mutex);
    bel_free(n);
}

bel_status *bel_notice_begin(void (*told)(void), bel_notice **out_notice)
{
    const char *file = notice_setting(BEL_NOTICE_FILE_VARIABLE);
    const char *command = notice_setting(BEL_NOTICE_COMMAND_VARIABLE);
    *out_notice = NULL;
    if (file == NULL && command == NULL) return NULL;
    bel_notice *n = bel_xcalloc(1, sizeof *n);
    n->file = file;
    n->command = command;
    n->tell = told;
    pthread_mutex_init(&n->mutex, NULL);
    bel_cond_init(&n->cond);
    if (notice_look(n, true)) {
        notice_destroy(n);
        return NULL;
    }
    bel_status *status = bel_thread_start(&n->thread, notice_watch, n);
    if (status != NULL) {
        notice_destroy(n);
        return status;
    }
    *out_notice = n;
    return NULL;
}

void bel_notice_end(bel_notice *notice)
{
    if (notice == NULL) return;
    pthread_mutex_lock(&notice->mutex);
    notice->over = true;
    pthread_cond_signal(&notice->cond);
    pthread_mutex_unlock(&notice->mutex);
    pthread_join(notice->thread, NULL);
    notice_destroy(notice);
}
