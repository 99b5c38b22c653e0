// Runner of other programs. A program's output goes to stderr, as stdout is only for results,
// unless the caller asks for it. bel_program_ask reads both streams and writes the input at once,
// so that no pipe fills up. A program that exceeds the time limit is killed with its group, and so
// is one that another thread asks when this process exits.
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/str.h"

char *bel_absolute_path(const char *path)
{
    if (path[0] == '/') return bel_xstrdup(path);
    for (size_t size = 256;; size *= 2) {
        char *folder = bel_xmalloc(size);
        bool fits = getcwd(folder, size) != NULL;
        bool hopeless = !fits && errno != ERANGE;
        char *joined = fits ? bel_path_join(folder, path) : NULL;
        bel_free(folder);
        if (fits) return joined;
        if (hopeless) return bel_xstrdup(path);
    }
}

static bool is_executable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

// Searches the folders of $PATH; NULL: not found. An empty folder is the current one.
static char *find_in_path(const char *name)
{
    const char *rest = getenv("PATH");
    while (rest != NULL && *rest != '\0') {
        size_t length = strcspn(rest, ":");
        char *folder = length > 0 ? bel_xstrndup(rest, length) : bel_xstrdup(".");
        char *path = bel_path_join(folder, name);
        bel_free(folder);
        if (is_executable(path)) return path;
        bel_free(path);
        rest += length + (rest[length] == ':');
    }
    return NULL;
}

bel_status *bel_program_find(const char *name, char **out_path)
{
    bool named = strchr(name, '/') != NULL;
    char *found = named ? bel_xstrdup(name) : find_in_path(name);
    if (found == NULL) return BEL_ERR(BEL_NOT_FOUND, "there is no program %s in $PATH", name);
    bel_status *status = NULL;
    if (!bel_file_exists(found)) {
        status = BEL_ERR(BEL_NOT_FOUND, "there is no program %s", name);
    } else if (!is_executable(found)) {
        status = BEL_ERR(BEL_PERMISSION_DENIED, "%s is no executable file", name);
    } else {
        *out_path = bel_absolute_path(found);
    }
    bel_free(found);
    return status;
}

// --- Running -------------------------------------------------------------------------------------

bel_status *bel_program_run(char *const *arguments, int most_secs)
{
    char *path;
    BEL_TRY(bel_program_find(arguments[0], &path));
    fflush(stdout);
    bel_linux_process process;
    bel_linux_spawn spawn = {
        .program = path, .arguments = arguments, .standard = {-1, STDERR_FILENO, STDERR_FILENO}};
    bel_status *status = bel_linux_process_spawn(&spawn, &process);
    bel_free(path);
    BEL_TRY(status);
    bel_linux_end end;
    if (!bel_linux_process_wait(&process, most_secs * 1000, &end)) {
        bel_linux_process_signal(&process, SIGKILL, true);
        (void)bel_linux_process_wait(&process, 1000, &end); // else it is left as a zombie
        return BEL_ERR(BEL_DEADLINE_EXCEEDED, "%s took more than %d s, and was killed",
                       arguments[0], most_secs);
    }
    if (end.code == 0) return NULL;
    bel_str line = {0};
    for (int i = 0; arguments[i] != NULL; i++)
        bel_str_printf(&line, "%s%s", i > 0 ? " " : "", arguments[i]);
    status = BEL_ERR(BEL_ABORTED, "exit code %d of: %s", end.code, line.text);
    bel_str_deinit(&line);
    return status;
}

// --- Asking --------------------------------------------------------------------------------------

typedef struct asked asked;
struct asked {
    bel_linux_process process;
    int input, output, error; // this process's ends; -1: closed
    const char *rest;         // unsent input
    bel_str said, complained;
    asked *next;
};

// The programs that threads ask. One is in the list until its process is reaped, so that its number
// belongs to no other.
static struct {
    pthread_mutex_t mutex;
    asked *first;
} asked_now = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t asked_once = PTHREAD_ONCE_INIT;

static void kill_asked(void)
{
    pthread_mutex_lock(&asked_now.mutex);
    for (const asked *a = asked_now.first; a != NULL; a = a->next)
        (void)kill(-(pid_t)a->process.pid, SIGKILL);
    pthread_mutex_unlock(&asked_now.mutex);
}

static void watch_exit(void)
{
    (void)atexit(kill_asked); // on refusal a program may outlive this process by its time limit
}

// Under the mutex, as often as one likes.
static void forget(const asked *a)
{
    asked **at = &asked_now.first;
    while (*at != NULL && *at != a)
        at = &(*at)->next;
    if (*at != NULL) *at = a->next;
}

// Waits up to `timeout_ms` for the exit of the program, and reaps it.
static bool await_exit(asked *a, int timeout_ms, bel_linux_end *out_end)
{
    struct pollfd waiting = {.fd = a->process.descriptor, .events = POLLIN};
    int64_t deadline = bel_clock_ns() + timeout_ms * INT64_C(1000000);
    for (;;) {
        pthread_mutex_lock(&asked_now.mutex);
        bool exited = bel_linux_process_wait(&a->process, 0, out_end);
        if (exited) forget(a);
        pthread_mutex_unlock(&asked_now.mutex);
        int64_t left = (deadline - bel_clock_ns()) / 1000000;
        if (exited || left <= 0) return exited;
        (void)poll(&waiting, 1, (int)left); // an interrupted poll is repeated
    }
}

static void shut(int *descriptor)
{
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

static bel_status *start_asking(char *const *arguments, const char *input, asked *a)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    char *path = NULL;
    bel_status *status = bel_program_find(arguments[0], &path);
    if (status == NULL && input != NULL) status = bel_linux_pipe(in);
    if (status == NULL) status = bel_linux_pipe(out);
    if (status == NULL) status = bel_linux_pipe(err);
    if (status == NULL) {
        if (input != NULL) { // it waits for its input, and this process must not block
            (void)fcntl(in[0], F_SETFL, 0);
            (void)fcntl(in[1], F_SETFL, O_NONBLOCK);
        }
        bel_linux_spawn spawn = {
            .program = path, .arguments = arguments, .standard = {in[0], out[1], err[1]}};
        pthread_once(&asked_once, watch_exit);
        pthread_mutex_lock(&asked_now.mutex);
        status = bel_linux_process_spawn(&spawn, &a->process);
        if (status == NULL) {
            a->next = asked_now.first;
            asked_now.first = a;
        }
        pthread_mutex_unlock(&asked_now.mutex);
    }
    shut(&in[0]);
    shut(&out[1]);
    shut(&err[1]);
    a->input = in[1];
    a->output = out[0];
    a->error = err[0];
    bel_free(path);
    return status;
}

static void feed(asked *a)
{
    size_t left = strlen(a->rest);
    ssize_t wrote = left > 0 ? write(a->input, a->rest, left) : 0;
    if (wrote > 0) a->rest += wrote;
    bool over = a->rest[0] == '\0' || (wrote < 0 && errno != EAGAIN && errno != EINTR);
    if (over) shut(&a->input); // it may have exited without reading
}

static void program_hear(int *descriptor, bel_str *text)
{
    enum { MOST = 16 << 20 };
    char chunk[16384];
    ssize_t got = read(*descriptor, chunk, sizeof chunk);
    if (got > 0 && text->length < MOST) bel_str_append(text, chunk, (size_t)got);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) shut(descriptor);
}

// Runs until it has exited and closed its output, or the time is over: false.
static bool converse(asked *a, int most_secs)
{
    int64_t deadline = bel_clock_ns() + most_secs * INT64_C(1000000000);
    while (a->output >= 0 || a->error >= 0) {
        struct pollfd waiting[] = {{.fd = a->input, .events = POLLOUT},
                                   {.fd = a->output, .events = POLLIN},
                                   {.fd = a->error, .events = POLLIN}};
        int64_t left = (deadline - bel_clock_ns()) / 1000000;
        if (left <= 0) return false;
        (void)poll(waiting, 3, (int)left); // an interrupted poll is repeated
        if (waiting[0].revents != 0) feed(a);
        if (waiting[1].revents != 0) program_hear(&a->output, &a->said);
        if (waiting[2].revents != 0) program_hear(&a->error, &a->complained);
    }
    return true;
}

// Returns the last line of its standard error.
static const char *last_complaint(bel_str *text)
{
    while (text->length > 0 && strchr("\r\n ", text->text[text->length - 1]) != NULL)
        text->text[--text->length] = '\0';
    if (text->length == 0) return "it says nothing";
    const char *newline = strrchr(text->text, '\n');
    return newline != NULL ? newline + 1 : text->text;
}

bel_status *bel_program_ask(char *const *arguments, const char *input, int most_secs,
                            char **out_text)
{
    asked a = {.process.descriptor = -1, .input = -1, .output = -1, .error = -1, .rest = input};
    bel_linux_end end = {0};
    bel_status *status = start_asking(arguments, input, &a);
    if (status == NULL) {
        int64_t begin = bel_clock_ns();
        bool whole = converse(&a, most_secs);
        int left = most_secs * 1000 - (int)((bel_clock_ns() - begin) / 1000000);
        if (!whole || !await_exit(&a, left > 0 ? left : 0, &end)) {
            bel_linux_process_signal(&a.process, SIGKILL, true);
            (void)await_exit(&a, 1000, &end); // else it is left as a zombie
            status = BEL_ERR(BEL_DEADLINE_EXCEEDED, "%s took more than %d s, and was killed",
                             arguments[0], most_secs);
        } else if (end.code != 0) {
            status = BEL_ERR(BEL_ABORTED, "exit code %d of %s: %s", end.code, arguments[0],
                             last_complaint(&a.complained));
        }
    }
    pthread_mutex_lock(&asked_now.mutex);
    forget(&a);
    pthread_mutex_unlock(&asked_now.mutex);
    shut(&a.input);
    shut(&a.output);
    shut(&a.error);
    bel_str_puts(&a.said, ""); // a text, even if empty
    if (status == NULL) {
        *out_text = a.said.text;
    } else {
        bel_str_deinit(&a.said);
    }
    bel_str_deinit(&a.complained);
    return status;
}

// --- Exec ----------------------------------------------------------------------------------------

bel_status *bel_program_become(const char *path, char *const *arguments)
{
    fflush(stdout);
    execv(path, arguments);
    return bel_file_error(errno, "run", path);
}
