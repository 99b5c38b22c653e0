// Processes through posix_spawn, pidfds, prctl and /proc. A descriptor identifies a child, as its
// number may be reused. It starts with all signals at their defaults and none blocked, whatever its
// parent has set.
#define _GNU_SOURCE
#include "base/linux_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

// --- Starting -----------------------------------------------------------------------------------

// A child begins with no signal blocked or ignored, in a new group or session.
static int set_attributes(posix_spawnattr_t *attributes, bool own_session)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    flags |= own_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    int error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &all);
    if (error == 0) error = posix_spawnattr_setpgroup(attributes, 0);
    if (error == 0) error = posix_spawnattr_setflags(attributes, (short)flags);
    return error;
}

// A descriptor that already has its number needs the call too: it clears close-on-exec.
static int set_files(posix_spawn_file_actions_t *actions, const bel_linux_spawn *spawn)
{
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++) {
        if (spawn->standard[i] >= 0) {
            error = posix_spawn_file_actions_adddup2(actions, spawn->standard[i], i);
        } else {
            error = posix_spawn_file_actions_addopen(actions, i, "/dev/null",
                                                     i == 0 ? O_RDONLY : O_WRONLY, 0);
        }
    }
    if (error != 0 || spawn->inherited <= 2) return error;
    return posix_spawn_file_actions_adddup2(actions, spawn->inherited, BEL_LINUX_INHERITED);
}

bel_status *bel_linux_process_spawn(const bel_linux_spawn *spawn, bel_linux_process *out_process)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    pid_t pid = 0;
    int error = set_attributes(&attributes, spawn->own_session);
    if (error == 0) error = set_files(&actions, spawn);
    if (error == 0) {
        char *const *environment = spawn->environment != NULL ? spawn->environment : environ;
        error =
            posix_spawn(&pid, spawn->program, &actions, &attributes, spawn->arguments, environment);
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) return bel_file_error(error, "run", spawn->program);

    // It cannot be another process: this one has not been waited for.
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0); // implicitly close-on-exec
    if (descriptor < 0) {
        error = errno;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return BEL_ERR(error == EMFILE ? BEL_RESOURCE_EXHAUSTED : BEL_UNIMPLEMENTED,
                       "cannot watch a child process: pidfd_open: %s; hint: Linux 5.3 or newer "
                       "is needed",
                       strerror(error));
    }
    *out_process = (bel_linux_process){.pid = pid, .descriptor = descriptor};
    return NULL;
}

// --- Waiting ------------------------------------------------------------------------------------

bool bel_linux_process_wait(bel_linux_process *process, int timeout_ms, bel_linux_end *out_end)
{
    struct pollfd waiting = {.fd = process->descriptor, .events = POLLIN};
    int ready;
    do {
        ready = poll(&waiting, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR && timeout_ms < 0);
    if (ready <= 0) return false;
    int status = 0;
    pid_t pid;
    do {
        pid = waitpid((pid_t)process->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    *out_end = (bel_linux_end){.code = 1}; // ECHILD: other code has reaped it
    if (pid > 0 && WIFEXITED(status)) out_end->code = WEXITSTATUS(status);
    if (pid > 0 && WIFSIGNALED(status)) {
        out_end->signal = WTERMSIG(status);
        out_end->code = 128 + out_end->signal;
    }
    close(process->descriptor);
    process->descriptor = -1;
    return true;
}

void bel_linux_reap_others(const int64_t *pids, int count)
{
    siginfo_t ended = {0};
    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
        for (int i = 0; i < count; i++)
            if (pids[i] == ended.si_pid) return; // bel_linux_process_wait reaps that one
        (void)waitpid(ended.si_pid, NULL, 0);    // it has exited
        ended.si_pid = 0;
    }
}

void bel_linux_process_signal(const bel_linux_process *process, int number, bool group)
{
    if (process->descriptor < 0) return;
    kill((pid_t)(group ? -process->pid : process->pid), number);
}

void bel_linux_signal_at_parents_end(int64_t parent, int number)
{
    prctl(PR_SET_PDEATHSIG, (unsigned long)number);
    if (getppid() != (pid_t)parent) raise(number); // the parent ended before the call above
}

bool bel_linux_is_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

// --- Identity of processes -----------------------------------------------------------------------

static size_t read_small(const char *path, char *text, size_t capacity)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = descriptor < 0 ? -1 : read(descriptor, text, capacity - 1);
    if (descriptor >= 0) close(descriptor);
    if (size < 0) size = 0;
    text[size] = '\0';
    return (size_t)size;
}

// Returns field 3 and the following ones, of "pid (name) state …": the name may contain anything,
// even ')'. NULL: there is no such process.
static const char *read_state(int64_t pid, char text[1024])
{
    char path[64];
    bel_snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_small(path, text, 1024);
    const char *field = strrchr(text, ')');
    return field == NULL || strlen(field) < 3 ? NULL : field + 2;
}

bool bel_linux_process_stands_still(const bel_linux_process *process, double secs,
                                    int64_t *since_ns)
{
    char text[1024];
    const char *state = read_state(process->pid, text);
    if (state == NULL || *state != 'T') {
        *since_ns = 0;
        return false;
    }
    if (*since_ns == 0) *since_ns = bel_clock_awake_ns();
    return (double)(bel_clock_awake_ns() - *since_ns) * 1e-9 >= secs;
}

// Returns field `number` of the text of read_state, which begins with number 3. 0: it is missing,
// or no integer.
static int64_t find_field(const char *field, int number)
{
    for (int at = 3; at < number && field != NULL; at++) {
        field = strchr(field, ' ');
        if (field != NULL) field++;
    }
    int64_t value = 0;
    if (field == NULL || !bel_parse_i64(field, strcspn(field, " \n"), &value)) return 0;
    return value;
}

int64_t bel_linux_start_ticks(int64_t pid)
{
    enum { START_TIME = 22 };
    char text[1024];
    const char *field = read_state(pid, text);
    if (field == NULL || *field == 'Z' || *field == 'X') return 0;
    return find_field(field, START_TIME);
}

bool bel_linux_signal_exactly(int64_t pid, int64_t start_ticks, int number)
{
    if (pid <= 0 || pid > INT_MAX || start_ticks == 0) return false;
    // Opens the descriptor first: if the start ticks match after that, it is of the right process.
    int descriptor = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (descriptor < 0) return false;
    bool sent = bel_linux_start_ticks(pid) == start_ticks &&
                syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0) == 0;
    close(descriptor);
    return sent;
}

// --- Activity of a process -----------------------------------------------------------------------

// Reads the processor time of all threads, and of reaped children.
static bool read_processor(int64_t pid, int64_t *out_ns)
{
    enum { USER = 14, SYSTEM, USER_OF_CHILDREN, SYSTEM_OF_CHILDREN };
    char text[1024];
    const char *state = read_state(pid, text);
    if (state == NULL) return false;
    int64_t ticks = 0;
    for (int number = USER; number <= SYSTEM_OF_CHILDREN; number++)
        ticks += find_field(state, number);
    *out_ns = ticks * (1000000000 / sysconf(_SC_CLK_TCK));
    return true;
}

static bool read_bytes(int64_t pid, int64_t *out_bytes)
{
    static const char *const names[] = {"rchar: ", "wchar: ", "read_bytes: "};
    char path[64], text[1024];
    bel_snprintf(path, sizeof path, "/proc/%lld/io", (long long)pid);
    read_small(path, text, sizeof text);
    *out_bytes = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int64_t number;
        const char *at = strstr(text, names[i]);
        if (at == NULL) return false;
        at += strlen(names[i]);
        if (!bel_parse_i64(at, strcspn(at, "\n"), &number)) return false;
        *out_bytes += number;
    }
    return true;
}

// Returns true if a thread of the process has a running child process.
static bool has_children(int64_t pid)
{
    char path[300], text[64];
    bel_snprintf(path, sizeof path, "/proc/%lld/task", (long long)pid);
    DIR *threads = opendir(path);
    bool found = false;
    struct dirent *entry;
    while (threads != NULL && !found && (entry = readdir(threads)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        bel_snprintf(path, sizeof path, "/proc/%lld/task/%s/children", (long long)pid,
                     entry->d_name);
        found = read_small(path, text, sizeof text) > 0;
    }
    if (threads != NULL) closedir(threads);
    return found;
}

bool bel_linux_process_activity(int64_t pid, bel_linux_activity *out_activity)
{
    out_activity->has_children = has_children(pid);
    return read_processor(pid, &out_activity->processor_ns) &&
           read_bytes(pid, &out_activity->bytes);
}

// --- The machine and this process ---------------------------------------------------------------

const char *bel_linux_boot_id(char text[64])
{
    read_small("/proc/sys/kernel/random/boot_id", text, 64);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

int64_t bel_linux_pid_namespace(void)
{
    struct stat about;
    return stat("/proc/self/ns/pid", &about) == 0 ? (int64_t)about.st_ino : 0;
}

char *bel_linux_program(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return bel_xstrdup("/proc/self/exe");
    path[length] = '\0';
    // The executable was replaced or removed: the link still leads to the right file.
    if (access(path, X_OK) != 0) return bel_xstrdup("/proc/self/exe");
    return bel_xstrdup(path);
}

// Moves `descriptor` above 2; returns -1 on failure.
static int move_up(int descriptor)
{
    if (descriptor > 2) return descriptor;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(descriptor);
    errno = error;
    return moved;
}

bel_status *bel_linux_pipe(int out_ends[2])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot make a pipe: %s", strerror(errno));
    }
    ends[0] = move_up(ends[0]); // a program may have been started with 0, 1 or 2 closed
    ends[1] = move_up(ends[1]);
    if (ends[0] < 0 || ends[1] < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        bel_status *status =
            BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot make a pipe: %s", strerror(errno));
        if (ends[0] >= 0) close(ends[0]);
        if (ends[1] >= 0) close(ends[1]);
        return status;
    }
    out_ends[0] = ends[0];
    out_ends[1] = ends[1];
    return NULL;
}

bel_status *bel_linux_input_pipe(const char *bytes, size_t size, int out_ends[2])
{
    enum { USUAL_BYTES = 65536, MOST_BYTES = 1 << 20 }; // the maximum of an unprivileged user
    BEL_TRY(bel_linux_pipe(out_ends));
    bool good = fcntl(out_ends[0], F_SETFL, 0) == 0 && fcntl(out_ends[1], F_SETFL, O_NONBLOCK) == 0;
    // A user may have only a few large ones.
    if (size > USUAL_BYTES)
        (void)fcntl(out_ends[1], F_SETPIPE_SZ, MOST_BYTES); // a failure shows
                                                            // below
    ssize_t wrote = good ? write(out_ends[1], bytes, size) : -1;
    if (wrote == (ssize_t)size) return NULL;
    close(out_ends[0]);
    close(out_ends[1]);
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "cannot give a child %zu bytes at its start; expected at most %d", size,
                   MOST_BYTES);
}

bel_status *bel_linux_keep_port(bool loopback, int *out_port, int *out_descriptor)
{
    static const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = descriptor >= 0 &&
                setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                bind(descriptor, (const struct sockaddr *)&address, sizeof address) == 0 &&
                getsockname(descriptor, (struct sockaddr *)&address, &size) == 0;
    if (!good) {
        bel_status *status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "no free port: %s", strerror(errno));
        if (descriptor >= 0) close(descriptor);
        return status;
    }
    *out_port = ntohs(address.sin_port);
    *out_descriptor = descriptor; // bound, but does not listen
    return NULL;
}

void bel_linux_raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); // on failure too few descriptors are an error later
}

bel_status *bel_linux_random(void *bytes, size_t size)
{
    char *next = bytes;
    while (size > 0) {
        ssize_t got = getrandom(next, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return BEL_ERR(BEL_UNKNOWN, "no random bytes: getrandom: %s", strerror(errno));
        next += got;
        size -= (size_t)got;
    }
    return NULL;
}

int64_t bel_linux_resident_bytes(void)
{
    long long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%lld %lld", &size, &resident) != 2) resident = 0;
    fclose(file);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

int64_t bel_linux_boottime_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
