// Stand-in for a role of a cluster, so that launching can be tested without training. It reads its
// role from BELFRY_TASK and does the actions that the arguments name for that role:
//
//   fake_role train_and_evaluate "master:say=info hello" "worker 1:await=FILE" "worker 1:kill=9" …
//
//   say=LEVEL TEXT   a line of the log          error=TEXT    the last line of a process
//   raw=TEXT         a line that is not JSON    print=TEXT    a line on stdout
//   progress=STEP    a progress object, of 100 steps
//   env=NAME         logs a variable            task=         logs BELFRY_TASK
//   touch=FILE       makes a file               await=FILE    waits until the file exists
//   pid=FILE         writes its pid to FILE     lost=FILE     reports the loss of worker 0
//                                               whose pid is in FILE
//   gone=FILE        waits until there is no process with FILE's pid
//   scale=N FOLDER   asks for N workers, as `belfry jobs scale` does
//   sleep=SECONDS    does nothing for that time
//   begin=           reports that training begins
//   leave=CODE       reports that it leaves, and exits with CODE
//   exit=CODE        kill=SIGNAL                hang=         waits, deaf to SIGTERM and SIGINT
//   stop=CODE        waits for SIGTERM or SIGINT, names it, exits with CODE; 0: 128 + its number
//   catch=           waits for SIGTERM or SIGINT, and continues; the next one is another
//   heir=FILE        leaves a process that holds stderr as long as FILE exists
//
// "worker 1.0:" addresses only the first incarnation. Actions run in order. After the last one the
// program exits with 0. Two other uses, for tests of processes: `fake_role parent FILE` starts
// `fake_role orphan FILE`, and both wait to be killed; the orphan, which ends with its parent,
// writes its pid into the file. `fake_role carry` is belfry's verb of that name
// (launch/supervise/carry.h).
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/folder/scale.h"
#include "launch/supervise/carry.h"
#include "launch/task/task.h"

enum { LIFE_SECS = 100, LOOK_MS = 5 }; // no process of a test lives longer, whatever goes wrong

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

// Also ends when the test has removed the file's folder.
static void wait_for_file(const char *path)
{
    char *folder = bel_xstrndup(path, (size_t)(strrchr(path, '/') - path));
    while (!bel_file_exists(path) && bel_file_exists(folder))
        poll(NULL, 0, LOOK_MS);
    bel_free(folder);
}

static void write_file(const char *path, const char *text)
{
    bel_status *status = bel_file_write_atomic(path, text, strlen(text));
    if (status == NULL) return;
    fprintf(stderr, "%s\n", bel_status_message(status));
    exit(99);
}

static void wait_forever(void)
{
    for (;;)
        pause();
}

// --- Actions ------------------------------------------------------------------------------------

static void say(const char *text)
{
    static const char *const names[] = {"error ", "warning ", "info ", "debug "};
    for (int i = 0; i < 4; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(text, names[i], length) == 0) {
            bel_log_write((bel_log_level)i, "%s", text + length);
        }
    }
}

static void show_progress(const char *step)
{
    char json[200];
    snprintf(json, sizeof json,
             "{\"time\":1.5,\"level\":\"info\",\"event\":\"progress\",\"step\":%s,"
             "\"last_step\":100,\"loss\":0.25,\"examples_per_second\":1000.0,"
             "\"eta_seconds\":2.0}",
             step);
    bel_log_progress("", json, false);
}

static void end_with_error(const char *text)
{
    bel_str line = {0};
    bel_str_puts(&line, "{\"time\":2.5,\"level\":\"error\",\"code\":\"ABORTED\",\"message\":");
    bel_json_write_string(&line, text);
    fprintf(stderr, "%s}\n", line.text);
    bel_str_deinit(&line);
}

static void wait_for_signal(void)
{
    while (caught == 0)
        poll(NULL, 0, LOOK_MS);
}

static void catch_signal(void)
{
    wait_for_signal();
    caught = 0;
}

static void stop(int code)
{
    wait_for_signal();
    bel_log_write(BEL_LOG_WARN, "stopped by signal %d", (int)caught);
    exit(code != 0 ? code : 128 + (int)caught);
}

static void leave_heir(const char *program, const char *path)
{
    static char name[] = "fake_role", heir[] = "heir";
    char *file = bel_xstrdup(path), *arguments[] = {name, heir, file, NULL};
    bel_linux_spawn spawn = {
        .program = program, .arguments = arguments, .standard = {-1, -1, 2}, .own_session = true};
    bel_linux_process process;
    bel_status *status = bel_linux_process_spawn(&spawn, &process);
    if (status != NULL) exit(98);
    close(process.descriptor);
    bel_free(file);
}

static void write_pid(const char *path)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)getpid());
    write_file(path, text);
}

static pid_t read_pid(const char *path)
{
    char *text;
    size_t size;
    wait_for_file(path);
    bel_status *status = bel_file_read(path, &text, &size);
    if (status != NULL) exit(99);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    bel_free(text);
    return pid;
}

static void say_lost(const char *path)
{
    bel_log_event(BEL_LOG_WARN, "lost", read_pid(path), "lost worker 0 on this host");
}

static void leave(int code)
{
    bel_log_event(BEL_LOG_DEBUG, "leaves", (long long)getpid(), "it leaves");
    exit(code);
}

static void wait_for_end(const char *path)
{
    pid_t pid = read_pid(path);
    while (kill(pid, 0) == 0)
        poll(NULL, 0, LOOK_MS);
}

static void scale(const char *value)
{
    char *folder;
    int workers = (int)strtol(value, &folder, 10);
    if (bel_scale_write(folder + 1, (bel_scale){.workers = workers}) != NULL) exit(99);
}

// SIGSEGV is not used, as the address sanitizer catches it in tests.
static void crash(int64_t step)
{
    bel_crash_watch("it crashed", true);
    bel_crash_set_step(step);
    raise(SIGABRT);
}

static void act(const char *program, const char *action, const char *value)
{
    if (strcmp(action, "say") == 0) say(value);
    if (strcmp(action, "error") == 0) end_with_error(value);
    if (strcmp(action, "raw") == 0) fprintf(stderr, "%s\n", value);
    if (strcmp(action, "print") == 0) printf("%s\n", value);
    if (strcmp(action, "progress") == 0) show_progress(value);
    if (strcmp(action, "env") == 0) {
        const char *text = getenv(value);
        bel_log_write(BEL_LOG_INFO, "%s=%s", value, text != NULL ? text : "(unset)");
    }
    if (strcmp(action, "task") == 0) bel_log_write(BEL_LOG_INFO, "%s", getenv("BELFRY_TASK"));
    if (strcmp(action, "touch") == 0) write_file(value, "");
    if (strcmp(action, "pid") == 0) write_pid(value);
    if (strcmp(action, "lost") == 0) say_lost(value);
    if (strcmp(action, "gone") == 0) wait_for_end(value);
    if (strcmp(action, "scale") == 0) scale(value);
    if (strcmp(action, "await") == 0) wait_for_file(value);
    if (strcmp(action, "sleep") == 0) poll(NULL, 0, 1000 * (int)strtol(value, NULL, 10));
    if (strcmp(action, "begin") == 0)
        bel_log_event(BEL_LOG_DEBUG, "begins", (long long)getpid(), "training begins");
    if (strcmp(action, "leave") == 0) leave((int)strtol(value, NULL, 10));
    if (strcmp(action, "exit") == 0) exit((int)strtol(value, NULL, 10));
    if (strcmp(action, "crash") == 0) crash(strtol(value, NULL, 10));
    if (strcmp(action, "kill") == 0) raise((int)strtol(value, NULL, 10));
    if (strcmp(action, "hang") == 0) wait_forever(); // its handler only sets `caught`
    if (strcmp(action, "catch") == 0) catch_signal();
    if (strcmp(action, "stop") == 0) stop((int)strtol(value, NULL, 10));
    if (strcmp(action, "heir") == 0) leave_heir(program, value);
}

// --- Uses ---------------------------------------------------------------------------------------

static int play_role(int count, char **arguments)
{
    bel_task *task;
    bel_status *status = bel_task_from_environment(true, &task);
    if (status != NULL || task == NULL) {
        fprintf(stderr, "no task: %s\n", bel_status_message(status));
        bel_status_destroy(status);
        return 97;
    }
    bel_linux_signal_at_parents_end(task->supervisor, SIGKILL);
    char name[32], life[16];
    bel_role_text(task->role, task->index, name);
    snprintf(life, sizeof life, ".%u", task->incarnation);
    bel_task_destroy(task);
    const char *format = getenv("BELFRY_LOG_FORMAT");
    if (format == NULL || strcmp(format, "json") != 0) return 96;
    size_t length = strlen(name);
    for (int i = 1; i < count; i++) {
        if (strncmp(arguments[i], name, length) != 0) continue;
        const char *rest = arguments[i] + length;
        if (strncmp(rest, life, strlen(life)) == 0) rest += strlen(life);
        if (*rest != ':') continue;
        char action[16] = "";
        size_t action_length = strcspn(++rest, "=");
        if (action_length >= sizeof action) return 95;
        memcpy(action, rest, action_length);
        act(arguments[0], action, rest + action_length + 1);
    }
    return 0;
}

static void start_orphan(char *file)
{
    static char name[] = "fake_role", orphan[] = "orphan";
    char parent[32];
    snprintf(parent, sizeof parent, "%lld", (long long)getpid());
    char *program = bel_linux_program(), *arguments[] = {name, orphan, file, parent, NULL};
    bel_linux_spawn spawn = {.program = program, .arguments = arguments, .standard = {-1, -1, -1}};
    bel_linux_process process;
    if (bel_linux_process_spawn(&spawn, &process) != NULL) exit(98);
    bel_free(program);
    wait_forever();
}

int main(int count, char **arguments)
{
    alarm(LIFE_SECS);
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    bel_log_configure(BEL_LOG_DEBUG, BEL_LOG_JSON);
    while (count == 3 && strcmp(arguments[1], "heir") == 0 && bel_file_exists(arguments[2]))
        poll(NULL, 0, LOOK_MS);
    if (count == 3 && strcmp(arguments[1], "parent") == 0) start_orphan(arguments[2]);
    if (count == 4 && strcmp(arguments[1], "orphan") == 0) {
        bel_linux_signal_at_parents_end(strtol(arguments[3], NULL, 10), SIGKILL);
        write_pid(arguments[2]);
        wait_forever();
    }
    if (count == 2 && strcmp(arguments[1], "carry") == 0) {
        int code = 1;
        bel_status *status = bel_carry(&code);
        if (status == NULL) return code;
        bel_log_failure(status);
        return bel_status_exit_code(status);
    }
    if (count > 1 && strcmp(arguments[1], "train_and_evaluate") == 0) {
        char *program = bel_linux_program();
        arguments[0] = program;
        int code = play_role(count, arguments);
        bel_free(program);
        return code;
    }
    return 0;
}
