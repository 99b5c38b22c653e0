// Loop over standard input and the process. Input is read one line at a time. After the parcel a
// line is short, so a longer one does not come from a supervisor. Output needs no work: the process
// inherits standard output and error.
//
// The first line on standard error reports that the connection works, before the process can write
// anything. The next one is the process's number, by which a supervisor finds it when the master
// has lost it. The last one is the signal that killed it.
#include "launch/supervise/carry.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "launch/cluster/reach.h"
#include "launch/supervise/stop_signals.h"

enum {
    MOST_PARCEL = 16 << 20, // bytes
    MOST_ITEMS = 65536,     // arguments, or variables
    PARCEL_SECS = 60,       // to receive it
    GRACE_SECS = 300,       // for the process to exit without a supervisor
    LOOK_MS = 1000,         // between checks whether the process is stopped
};

// --- The parcel ----------------------------------------------------------------------------------

static void write_list(const char *name, char *const *items, bel_str *out)
{
    bel_str_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; items != NULL && items[i] != NULL; i++) {
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_exact(out, items[i]);
    }
    bel_str_puts(out, "]");
}

void bel_parcel_write(const bel_parcel *parcel, bel_str *out)
{
    bel_str_puts(out, "{\"program\":");
    bel_json_write_exact(out, parcel->program);
    bel_str_puts(out, ",\"folder\":");
    bel_json_write_exact(out, parcel->folder);
    write_list("arguments", parcel->arguments, out);
    write_list("environment", parcel->environment, out);
    write_list("moved", parcel->moved, out);
    bel_str task = {0};
    bel_task_write(parcel->task, &task);
    bel_str_puts(out, ",\"task\":");
    bel_json_write_exact(out, task.text);
    bel_str_puts(out, "}\n");
    bel_str_deinit(&task);
}

// Reads a list of texts, NULL at the end; they live as long as the document. NULL: not such a list.
static char **read_list(const bel_json_value *root, const char *name)
{
    const bel_json_value *list = bel_json_member(root, name);
    size_t count = bel_json_length(list);
    if (!bel_json_is_array(list) || count > MOST_ITEMS) return NULL;
    char **items = bel_xcalloc(count + 1, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const char *text = bel_json_value_string(bel_json_at(list, i));
        items[i] = bel_xstrdup(text != NULL ? text : "");
    }
    return items;
}

static void free_list(char **items)
{
    for (size_t i = 0; items != NULL && items[i] != NULL; i++)
        bel_free(items[i]);
    bel_free(items);
}

// Writes the task again, with this process as its supervisor.
static bel_status *set_task(const char *text, double *out_silence_secs)
{
    bel_task *task;
    bel_str out = {0};
    BEL_TRY(bel_task_parse(text, NULL, NULL, true, &task));
    if (task == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "a parcel without a task");
    task->supervisor = (int64_t)getpid();
    task->carried = true;
    *out_silence_secs = task->silence_timeout_secs;
    bel_task_write(task, &out);
    setenv("BELFRY_TASK", out.text, 1);
    bel_str_deinit(&out);
    bel_task_destroy(task);
    return NULL;
}

static char *find_file(const char *path)
{
    const char *home = getenv("HOME");
    if (strncmp(path, "~/", 2) != 0 || home == NULL) return bel_xstrdup(path);
    return bel_path_join(home, path + 2);
}

static char *find_program(const char *program)
{
    return program[0] == '\0' ? bel_linux_program() : find_file(program);
}

// Replaces the flag's file.
static void move_file(char **arguments, const char *flag, const char *place)
{
    for (size_t i = 1; arguments[i] != NULL; i++) {
        const char *value;
        if (!bel_reach_is_flag(arguments[i], flag, &value)) continue;
        size_t at = value == NULL ? i + 1 : i;
        if (arguments[at] == NULL) return;
        int kept = value == NULL ? 0 : (int)(value - arguments[i]);
        char *path = find_file(place), *text = bel_strf("%.*s%s", kept, arguments[at], path);
        bel_free(path);
        bel_free(arguments[at]);
        arguments[at] = text;
        i = at;
    }
}

static bel_status *carry_start(const char *text, size_t length, bel_linux_process *out_process,
                               double *out_silence_secs)
{
    bel_json *json;
    const char *program = NULL, *folder = NULL, *task = NULL;
    BEL_TRY(bel_json_parse(text, length, "parcel", &json));
    const bel_json_value *root = bel_json_root(json);
    char **arguments = read_list(root, "arguments"), **environment = read_list(root, "environment"),
         **moved = read_list(root, "moved");
    bool whole = bel_json_string(root, "program", &program) &&
                 bel_json_string(root, "folder", &folder) && bel_json_string(root, "task", &task) &&
                 arguments != NULL && arguments[0] != NULL && environment != NULL && moved != NULL;
    bel_status *status = NULL;
    if (!whole) status = BEL_ERR(BEL_INVALID_ARGUMENT, "standard input: expected a parcel");
    if (status == NULL) status = bel_dir_create(folder); // hosts may share no file system
    if (status == NULL && chdir(folder) != 0) status = bel_file_error(errno, "enter", folder);
    for (size_t i = 0; status == NULL && environment[i] != NULL; i++) {
        char *equals = strchr(environment[i], '=');
        if (equals == NULL || equals == environment[i]) continue;
        *equals = '\0';
        setenv(environment[i], equals + 1, 1);
    }
    for (size_t i = 0; status == NULL && moved[i] != NULL && moved[i + 1] != NULL; i += 2)
        move_file(arguments, moved[i], moved[i + 1]);
    if (status == NULL) status = set_task(task, out_silence_secs);
    if (status == NULL) {
        char *own = find_program(program);
        bel_linux_spawn spawn = {
            .program = own, .arguments = arguments, .standard = {-1, STDOUT_FILENO, STDERR_FILENO}};
        status = bel_linux_process_spawn(&spawn, out_process);
        bel_free(own);
    }
    free_list(arguments);
    free_list(environment);
    free_list(moved);
    bel_json_destroy(json);
    return status;
}

// --- Lines ---------------------------------------------------------------------------------------

// Reads the available input. False: end of input.
static bool read_more(bel_str *line)
{
    char chunk[65536];
    ssize_t got = read(STDIN_FILENO, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    bel_str_append(line, chunk, (size_t)got);
    return true;
}

// Removes and returns the first line without its newline. NULL: no complete line. Free with
// bel_free.
static char *take_line(bel_str *text)
{
    char *newline = text->length > 0 ? memchr(text->text, '\n', text->length) : NULL;
    if (newline == NULL) return NULL;
    size_t length = (size_t)(newline - text->text);
    char *line = bel_xstrndup(text->text, length);
    memmove(text->text, newline + 1, text->length - length - 1);
    text->length -= length + 1;
    return line;
}

static bel_status *read_parcel(bel_str *text, char **out_line)
{
    int64_t deadline = bel_clock_ns() + PARCEL_SECS * INT64_C(1000000000);
    while ((*out_line = take_line(text)) == NULL) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        int64_t left = (deadline - bel_clock_ns()) / 1000000;
        if (left <= 0 || text->length > MOST_PARCEL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "standard input: expected a supervisor's parcel, one line of at most %d "
                           "MiB, within %d s; this verb is not for people",
                           MOST_PARCEL >> 20, PARCEL_SECS);
        }
        if (poll(&input, 1, (int)left) > 0 && !read_more(text)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "standard input: it ended before the parcel");
        }
    }
    return NULL;
}

static void carry_obey(const char *line, const bel_linux_process *process)
{
    static const char word[] = "signal ";
    int64_t number;
    if (strncmp(line, word, sizeof word - 1) != 0) return;
    const char *text = line + sizeof word - 1;
    if (!bel_parse_i64(text, strlen(text), &number) || number < 1 || number > 64) return;
    bel_linux_process_signal(process, (int)number, number == SIGKILL);
}

// --- The process ---------------------------------------------------------------------------------

// Waits until the process has exited. Forwards this process's signals to it, because a batch system
// signals all processes that it has started.
static void carry_watch(bel_linux_process *process, double silence_secs, bel_str *text, int signals,
                        int *out_exit_code)
{
    bool heard = true; // from a supervisor
    int64_t kill_ns = INT64_MAX, still_ns = 0;
    bel_linux_end end;
    while (!bel_linux_process_wait(process, 0, &end)) {
        struct pollfd waiting[] = {{.fd = heard ? STDIN_FILENO : -1, .events = POLLIN},
                                   {.fd = process->descriptor, .events = POLLIN},
                                   {.fd = signals, .events = POLLIN}};
        (void)poll(waiting, 3, LOOK_MS); // an interrupted call is repeated
        // As supervisors do on their hosts: the process that would notice may be gone.
        if (bel_linux_process_stands_still(process, 2 * silence_secs, &still_ns))
            bel_linux_process_signal(process, SIGKILL, true);
        for (int number; (number = bel_stop_signals_read(signals)) != 0;)
            bel_linux_process_signal(process, number, false);
        if (heard && waiting[0].revents != 0) {
            heard = read_more(text);
            for (char *line; (line = take_line(text)) != NULL; bel_free(line))
                carry_obey(line, process);
            heard = heard && text->length < 4096;
            if (!heard) {
                kill_ns = bel_clock_awake_ns() + GRACE_SECS * INT64_C(1000000000);
            }
        }
        if (bel_clock_awake_ns() >= kill_ns) {
            bel_linux_process_signal(process, SIGKILL, true);
            kill_ns = INT64_MAX;
        }
    }
    *out_exit_code = end.code;
    if (end.signal == 0) return;
    // The exit code is ambiguous: a process may itself exit with 128 or more.
    char *line = bel_strf(
        "{\"level\":\"debug\",\"event\":\"killed\",\"signal\":%d,\"message\":\"\"}\n", end.signal);
    bel_log_line(BEL_LOG_ERROR, line);
    bel_free(line);
}

bel_status *bel_carry(int *out_exit_code)
{
    bel_str text = {0};
    char *parcel = NULL;
    int signals;
    bel_linux_process process;
    double silence_secs = 0;
    setenv("BELFRY_LOG_FORMAT", "json", 1); // for a supervisor, also for errors from here on
    BEL_TRY(bel_stop_signals_open(&signals));
    bel_status *status = read_parcel(&text, &parcel);
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1); // "" on failure
    bel_log_event(BEL_LOG_DEBUG, "carries", (long long)getpid(), "%s", host);
    if (status == NULL) status = carry_start(parcel, strlen(parcel), &process, &silence_secs);
    if (status == NULL) {
        bel_log_event(BEL_LOG_DEBUG, "carried", (long long)process.pid, "a process");
        carry_watch(&process, silence_secs, &text, signals, out_exit_code);
    }
    bel_stop_signals_close(signals);
    bel_free(parcel);
    bel_str_deinit(&text);
    return status;
}
