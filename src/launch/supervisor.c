// One thread, one poll loop: the ends of children, their output, signals. Children are spawned
// before anything else happens; what they write goes to their log as it is and to stderr as people
// read it.
#include "launch/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "base/log.h"
#include "base/str.h"
#include "launch/role_line.h"

enum { SECRET_BYTES = 32, GRACE_SECS = 15, TICK_MS = 1000, READ_BYTES = 65536, HOST_TEXT = 256 };

typedef struct child {
    const bel_plan_process *process;
    char name[32]; // "worker 1"
    bel_linux_process handle;
    bool running;
    bel_linux_end end;
    int output[2]; // ends to read from: standard output (master) and error; -1: closed
    int log;
    bel_str line; // what has come of a line
    char *error;  // the error with which it ended, as it told it
} child;

typedef struct supervisor {
    const bel_supervisor_config *config;
    char *folder; // of the sockets
    char *secret;
    child *children;
    int child_count;
    bel_str output; // the master's
    char *progress; // the newest progress object
    int64_t step;   // in it
    child *first_failed;
    int64_t ask_ns;  // when those that still run are asked to end; 0: not yet known
    int64_t kill_ns; // when they are killed
    int signals;     // that have been passed on
    int last_signal;
    int64_t changed_ns;
} supervisor;

static int signal_pipe[2] = {-1, -1}; // from the handler to the loop

static void on_signal(int number)
{
    int saved = errno;
    unsigned char byte = (unsigned char)number;
    (void)!write(signal_pipe[1], &byte, 1);
    errno = saved;
}

// --- Addresses and secrets -----------------------------------------------------------------------

static bel_status *make_folder(supervisor *s)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (base == NULL || base[0] != '/' || strlen(base) > 60 || access(base, W_OK) != 0) {
        base = "/tmp";
    }
    s->folder = bel_strf("%s/belfry-XXXXXX", base); // mode 0700
    if (mkdtemp(s->folder) != NULL) return NULL;
    return bel_file_error(errno, "make a folder", s->folder);
}

static bel_status *make_secret(supervisor *s)
{
    const char *path = s->config->plan->cluster->secret_file;
    if (path != NULL) {
        size_t size;
        BEL_TRY_CTX(bel_file_read(path, &s->secret, &size), "secret_file");
        s->secret[strcspn(s->secret, "\r\n")] = '\0';
        if (s->secret[0] != '\0') return NULL;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the secret is empty", path);
    }
    unsigned char bytes[SECRET_BYTES];
    BEL_TRY(bel_linux_random(bytes, sizeof bytes));
    bel_str text = {0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bel_str_printf(&text, "%02x", bytes[i]);
    s->secret = text.text;
    return NULL;
}

static char *address_of(const supervisor *s, const bel_plan_process *process)
{
    bool is_master = process->role == BEL_ROLE_MASTER;
    if (s->config->tcp) return bel_xstrdup("127.0.0.1:0");
    if (is_master) return bel_strf("unix:%s/master", s->folder);
    return bel_strf("unix:%s/%s-%d", s->folder, bel_role_name(process->role), process->index);
}

// --- Starting ------------------------------------------------------------------------------------

static char **make_environment(const supervisor *s, const char *task)
{
    extern char **environ;
    const bel_cluster *cluster = s->config->plan->cluster;
    size_t count = 0, capacity = 0;
    char **list = NULL;
    for (char **e = environ; *e != NULL; e++) {
        bool ours = strncmp(*e, "BELFRY_TASK=", 12) == 0 || strncmp(*e, "TF_CONFIG=", 10) == 0 ||
                    strncmp(*e, "BELFRY_SECRET=", 14) == 0;
        if (ours) continue;
        list = bel_xgrow(list, &capacity, count + 1, sizeof *list);
        list[count++] = bel_xstrdup(*e);
    }
    list = bel_xgrow(list, &capacity, count + cluster->environment_count + 3, sizeof *list);
    for (size_t i = 0; i < cluster->environment_count; i++)
        list[count++] = bel_xstrdup(cluster->environment[i]);
    list[count++] = bel_strf("BELFRY_TASK=%s", task);
    list[count++] = bel_strf("BELFRY_SECRET=%s", s->secret);
    list[count] = NULL;
    return list;
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++)
        bel_free(texts[i]);
    bel_free(texts);
}

static bel_status *open_log(const supervisor *s, child *c)
{
    char *name = c->process->role == BEL_ROLE_MASTER
                     ? bel_xstrdup("master-0.0.log")
                     : bel_strf("%s-%d.0.log", bel_role_name(c->process->role), c->process->index);
    char *path = bel_path_join(s->config->log_dir, name);
    c->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bel_status *status = c->log < 0 ? bel_file_error(errno, "open", path) : NULL;
    bel_free(name);
    bel_free(path);
    return status;
}

static bel_status *spawn(supervisor *s, child *c, const char *task)
{
    char *const *given = s->config->arguments;
    size_t count = 0;
    while (given[count] != NULL)
        count++;
    char **arguments = bel_xcalloc(count + 3, sizeof *arguments);
    arguments[0] = bel_xstrdup("belfry");
    for (size_t i = 0; i < count; i++)
        arguments[i + 1] = bel_xstrdup(given[i]);
    arguments[count + 1] = bel_xstrdup("--log_format=json");
    char **environment = make_environment(s, task);
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    bool is_master = c->process->role == BEL_ROLE_MASTER;
    bel_status *status = bel_linux_pipe(err);
    if (status == NULL && is_master) status = bel_linux_pipe(out);
    if (status == NULL) {
        const bel_linux_spawn how = {.program = s->config->program,
                                     .arguments = arguments,
                                     .environment = environment,
                                     .standard = {-1, is_master ? out[1] : err[1], err[1]}};
        status = bel_linux_process_spawn(&how, &c->handle);
    }
    if (err[1] >= 0) close(err[1]);
    if (out[1] >= 0) close(out[1]);
    c->output[0] = out[0];
    c->output[1] = err[0];
    c->running = status == NULL;
    free_texts(arguments);
    free_texts(environment);
    return status;
}

static bel_status *start_child(supervisor *s, int index, const char *master_address)
{
    child *c = &s->children[index];
    bel_task *task = bel_plan_task(s->config->plan, s->config->job, index);
    bool is_master = c->process->role == BEL_ROLE_MASTER;
    task->master_address = bel_xstrdup(master_address);
    task->listen_address = is_master ? bel_xstrdup(master_address) : address_of(s, c->process);
    task->supervisor = (int64_t)getpid();
    bel_str text = {0};
    bel_task_write(task, &text);
    bel_status *status = open_log(s, c);
    if (status == NULL) status = spawn(s, c, text.text);
    bel_str_deinit(&text);
    bel_task_destroy(task);
    return status;
}

static bel_status *start_all(supervisor *s)
{
    const bel_plan *plan = s->config->plan;
    s->children = bel_xcalloc((size_t)plan->process_count, sizeof *s->children);
    for (int i = 0; i < plan->process_count; i++) {
        child *c = &s->children[s->child_count++];
        *c = (child){.process = &plan->processes[i], .output = {-1, -1}, .log = -1};
        bel_task_name(c->process->role, c->process->index, c->name);
    }
    char *master;
    if (s->config->tcp) {
        int port;
        BEL_TRY(bel_linux_free_port(&port));
        master = bel_strf("127.0.0.1:%d", port);
    } else {
        master = address_of(s, &plan->processes[0]);
    }
    bel_status *status = NULL;
    for (int i = 0; i < plan->process_count && status == NULL; i++)
        status = start_child(s, i, master);
    bel_free(master);
    return status;
}

// --- Output --------------------------------------------------------------------------------------

static void take_progress(supervisor *s, const bel_role_line *line, const char *json, size_t length)
{
    bel_free(s->progress);
    s->progress = bel_xstrndup(json, length);
    s->step = line->progress.step;
    bool last = line->progress.step >= line->progress.last_step;
    bel_log_progress(line->text.text, s->progress, last);
}

// The master's lines as in one process; of others what is worth a warning. Errors that end a
// process are kept: one of them is the job's.
static void show_line(supervisor *s, child *c, const char *bytes, size_t length)
{
    bool is_master = c->process->role == BEL_ROLE_MASTER;
    bel_role_line line;
    bel_role_line_init(&line, bytes, length);
    bel_str text = {0};
    if (is_master && line.kind == BEL_ROLE_LINE_PROGRESS) {
        take_progress(s, &line, bytes, length);
    } else if (line.kind == BEL_ROLE_LINE_ERROR) {
        bel_free(c->error);
        c->error = bel_xstrdup(line.text.text);
    } else if (is_master || line.level <= BEL_LOG_WARN) {
        if (bel_log_get_format() == BEL_LOG_JSON) {
            bel_role_line_write_json(&line, bytes, length, c->name, &text);
        } else {
            bel_role_line_write(&line, is_master ? NULL : c->name, &text);
        }
        bel_log_line(line.level, text.text);
    }
    bel_str_deinit(&text);
    bel_role_line_deinit(&line);
}

static void take_lines(supervisor *s, child *c, bool all)
{
    char *begin = c->line.text, *end = begin + c->line.length, *newline;
    if (begin == NULL) return;
    while (begin < end && (newline = memchr(begin, '\n', (size_t)(end - begin))) != NULL) {
        show_line(s, c, begin, (size_t)(newline - begin));
        begin = newline + 1;
    }
    if (all && begin < end) {
        show_line(s, c, begin, (size_t)(end - begin));
        begin = end;
    }
    c->line.length = (size_t)(end - begin);
    memmove(c->line.text, begin, c->line.length);
}

// Reads what is there of one of a child's outputs.
static void read_output(supervisor *s, child *c, int which)
{
    static char bytes[READ_BYTES];
    for (;;) {
        ssize_t got = read(c->output[which], bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) {
            close(c->output[which]);
            c->output[which] = -1;
            if (which == 1) take_lines(s, c, true);
            return;
        }
        if (which == 0) {
            bel_str_append(&s->output, bytes, (size_t)got);
            continue;
        }
        if (write(c->log, bytes, (size_t)got) < 0 && errno == ENOSPC) {
            bel_log_write(BEL_LOG_WARN, "%s: its log cannot be written: the disk is full", c->name);
        }
        bel_str_append(&c->line, bytes, (size_t)got);
        take_lines(s, c, false);
    }
}

// --- Ends ----------------------------------------------------------------------------------------

static void signal_all(const supervisor *s, int number)
{
    for (int i = 0; i < s->child_count; i++)
        if (s->children[i].running) bel_linux_process_signal(&s->children[i].handle, number, true);
}

// Members end with an error once the job has one, so the first end counts. The master notices one
// by itself, unless that member had not joined: then it is asked to end.
static void note_end(supervisor *s, child *c)
{
    enum { NOTICE_SECS = 2 };
    bool failed = c->end.signal != 0 || c->end.code != 0;
    bool is_master = c->process->role == BEL_ROLE_MASTER;
    if (failed && s->first_failed == NULL) s->first_failed = c;
    if (!failed && !is_master) return;
    int64_t now = bel_clock_ns();
    double grace = s->config->grace_secs > 0 ? s->config->grace_secs : GRACE_SECS;
    if (s->kill_ns == 0) s->kill_ns = now + (int64_t)(grace * 1e9);
    if (s->ask_ns == 0) s->ask_ns = is_master ? now : now + NOTICE_SECS * (int64_t)1000000000;
}

static void reap(supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        child *c = &s->children[i];
        if (!c->running || !bel_linux_process_wait(&c->handle, 0, &c->end)) continue;
        c->running = false;
        for (int k = 0; k < 2; k++)
            if (c->output[k] >= 0) read_output(s, c, k);
        note_end(s, c);
    }
}

static void take_signals(supervisor *s)
{
    unsigned char number;
    while (read(signal_pipe[0], &number, 1) == 1) {
        s->last_signal = number;
        if (s->signals++ == 0) {
            signal_all(s, SIGTERM);
        } else {
            signal_all(s, SIGKILL);
        }
    }
}

static bool any_left(const supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        const child *c = &s->children[i];
        if (c->running || c->output[0] >= 0 || c->output[1] >= 0) return true;
    }
    return false;
}

// --- The loop ------------------------------------------------------------------------------------

static void wait_for_events(supervisor *s)
{
    struct pollfd *fds = bel_xcalloc((size_t)s->child_count * 3 + 1, sizeof *fds);
    nfds_t count = 0;
    fds[count++] = (struct pollfd){.fd = signal_pipe[0], .events = POLLIN};
    for (int i = 0; i < s->child_count; i++) {
        const child *c = &s->children[i];
        const int watched[] = {c->running ? c->handle.descriptor : -1, c->output[0], c->output[1]};
        for (int k = 0; k < 3; k++)
            if (watched[k] >= 0) fds[count++] = (struct pollfd){.fd = watched[k], .events = POLLIN};
    }
    (void)poll(fds, count, TICK_MS); // whatever it says, everything is looked at
    bel_free(fds);
}

static void tell_change(supervisor *s)
{
    int64_t now = bel_clock_ns();
    if (s->config->changed == NULL || now - s->changed_ns < (int64_t)TICK_MS * 1000000) return;
    s->changed_ns = now;
    s->config->changed(s->config->context, s->progress);
}

static void end_the_rest(supervisor *s)
{
    int64_t now = bel_clock_ns();
    if (s->kill_ns > 0 && now >= s->kill_ns) {
        signal_all(s, SIGKILL);
    } else if (s->ask_ns > 0 && now >= s->ask_ns) {
        signal_all(s, SIGTERM);
        s->ask_ns = INT64_MAX; // once
    }
}

static void watch(supervisor *s)
{
    while (any_left(s)) {
        wait_for_events(s);
        take_signals(s);
        for (int i = 0; i < s->child_count; i++)
            for (int k = 0; k < 2; k++)
                if (s->children[i].output[k] >= 0) read_output(s, &s->children[i], k);
        reap(s);
        end_the_rest(s);
        tell_change(s);
    }
    if (s->config->changed != NULL) s->config->changed(s->config->context, s->progress);
}

// --- The result ----------------------------------------------------------------------------------

// Whose end is the reason: one that was killed, else one that told of an error before the master
// told of it, else the master's, else the first.
static const child *find_cause(const supervisor *s)
{
    const child *first = s->first_failed, *master = &s->children[0];
    if (first == NULL || first->end.signal != 0) return first;
    for (int i = 0; i < s->child_count; i++) {
        const child *c = &s->children[i];
        if (c->end.signal != 0 && s->kill_ns > bel_clock_ns()) return c; // not killed from here
    }
    if (first->error != NULL) return first;
    return master->error != NULL ? master : first;
}

static char *describe(const supervisor *s, const child *c)
{
    char host[HOST_TEXT] = "this host";
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "this host");
    bool is_master = c->process->role == BEL_ROLE_MASTER;
    if (is_master && c->error != NULL) return bel_xstrdup(c->error);
    bel_str text = {0};
    bel_str_printf(&text, "%s (pid %lld on %s) ", c->name, (long long)c->handle.pid, host);
    if (c->end.signal != 0) {
        bel_str_printf(&text, "was killed by signal %d (%s)", c->end.signal,
                       strsignal(c->end.signal));
    } else {
        bel_str_printf(&text, "ended with exit code %d", c->end.code);
    }
    if (s->progress != NULL) bel_str_printf(&text, " after step %lld", (long long)s->step);
    if (c->error != NULL) bel_str_printf(&text, ": %s", c->error);
    bel_str_printf(&text, "; its log is in %s; the same command goes on from the last checkpoint",
                   s->config->log_dir);
    return text.text;
}

static void fill_result(supervisor *s, bel_supervisor_result *out)
{
    const child *master = &s->children[0], *cause = find_cause(s);
    *out = (bel_supervisor_result){.exit_code = master->end.code, .output = s->output.text};
    s->output = (bel_str){0};
    if (s->signals > 0 && (cause == NULL || cause->error == NULL)) {
        out->exit_code = 128 + s->last_signal;
        out->stopped = true;
    } else if (cause != NULL) {
        if (out->exit_code == 0) out->exit_code = cause->end.code;
        out->message = describe(s, cause);
    }
}

static void release(supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        child *c = &s->children[i];
        if (c->running) { // starting failed half-way
            bel_linux_process_signal(&c->handle, SIGKILL, true);
            (void)bel_linux_process_wait(&c->handle, -1, &c->end);
        }
        for (int k = 0; k < 2; k++)
            if (c->output[k] >= 0) close(c->output[k]);
        if (c->log >= 0) close(c->log);
        bel_str_deinit(&c->line);
        bel_free(c->error);
    }
    if (s->folder != NULL) bel_status_ignore(bel_dir_remove(s->folder)); // only sockets were in it
    bel_free(s->children);
    bel_free(s->folder);
    bel_free(s->secret);
    bel_free(s->progress);
    bel_str_deinit(&s->output);
}

static bel_status *run(supervisor *s, bel_supervisor_result *out_result)
{
    BEL_TRY(bel_dir_create(s->config->log_dir));
    BEL_TRY(make_folder(s));
    BEL_TRY(make_secret(s));
    BEL_TRY(start_all(s));
    watch(s);
    fill_result(s, out_result);
    return NULL;
}

bel_status *bel_supervise(const bel_supervisor_config *config, bel_supervisor_result *out_result)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction before[3], action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    BEL_TRY(bel_linux_pipe(signal_pipe));
    for (int i = 0; i < 3; i++) {
        sigaction(numbers[i], NULL, &before[i]);
        bool ignored = numbers[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
        if (!ignored) sigaction(numbers[i], &action, NULL);
    }
    supervisor s = {.config = config};
    bel_status *status = run(&s, out_result);
    release(&s);
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &before[i], NULL);
    for (int i = 0; i < 2; i++) {
        close(signal_pipe[i]);
        signal_pipe[i] = -1;
    }
    return status;
}
