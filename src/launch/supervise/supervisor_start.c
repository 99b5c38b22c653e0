// Input of children: addresses, a secret, an environment, files for their output. The task and the
// secret are set last in the environment, so no other variable can replace them. The secret is
// never an argument, because every user of the host could read it.
//
// A process keeps its addresses over all incarnations, so members find a restarted master; only the
// log file and the pipes are new. The write ends of the pipes are closed here at once, so
// end-of-file means that the child's side is gone. Only masters inherit the lock of the model
// folder. The lock of the sockets' folder is held until the folder is removed.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_host.h"
#include "base/linux_lock.h"
#include "base/linux_shared.h"
#include "base/log.h"
#include "base/number.h"
#include "base/program.h"
#include "base/secret.h"
#include "base/str.h"
#include "launch/folder/scale.h"
#include "launch/folder/sockets.h"
#include "launch/supervise/carry.h"
#include "launch/supervise/supervisor_inner.h"

extern char **environ;

// --- Addresses ----------------------------------------------------------------------------------

// Members find the master at its address; with TCP they choose their ports.
static void set_address(const bel_supervisor *s, bel_task *task, const char *master)
{
    task->master_address = bel_xstrdup(master);
    if (task->role == BEL_ROLE_MASTER) {
        task->listen_address = bel_xstrdup(master);
    } else if (s->config->reach != NULL) {
        task->listen_address = bel_xstrdup(BEL_TASK_ANY_ADDRESS);
    } else if (s->config->tcp) {
        task->listen_address = bel_xstrdup("127.0.0.1:0");
    } else {
        task->listen_address =
            bel_strf("unix:%s/%s-%d", s->sockets.folder, bel_role_name(task->role), task->index);
    }
}

// Finds this host's address, for local processes or on the route to the others.
static bel_status *find_own_host(const bel_supervisor *s, char **out_host)
{
    const bel_reach *reach = s->config->reach;
    *out_host = reach == NULL ? bel_xstrdup("127.0.0.1") : bel_linux_host_toward(reach->peer);
    if (*out_host != NULL) return NULL;
    int length = (int)(strrchr(reach->peer, ':') - reach->peer);
    return BEL_ERR(BEL_UNAVAILABLE,
                   "no address of this host is on the way to %.*s, one of the job's hosts; hint: "
                   "does its name resolve here, and is there a route?",
                   length, reach->peer);
}

// Reserves the master's port, so that a restarted master has the same one.
static bel_status *set_addresses(bel_supervisor *s)
{
    char *master;
    if (s->config->tcp || s->config->reach != NULL) {
        int port;
        char *host;
        BEL_TRY(find_own_host(s, &host));
        bel_status *status =
            bel_linux_keep_port(s->config->reach == NULL, &port, &s->sockets.port_fd);
        master = bel_strf("%s:%d", host, port);
        bel_free(host);
        if (status != NULL) {
            bel_free(master);
            return status;
        }
    } else {
        BEL_TRY(bel_sockets_create(&s->sockets.folder, &s->sockets.lock));
        master = bel_strf("unix:%s/master", s->sockets.folder);
    }
    for (int i = 0; i < s->child_count; i++)
        set_address(s, s->children[i].task, master);
    bel_free(master);
    return NULL;
}

// --- The environment ----------------------------------------------------------------------------

typedef struct environment {
    char **items; // NULL at the end
    size_t count, capacity;
} environment;

// Replaces the variable of the same name, or adds it.
static void set_item(environment *e, const char *item)
{
    size_t name_length = strcspn(item, "=") + 1;
    for (size_t i = 0; i < e->count; i++) {
        if (strncmp(e->items[i], item, name_length) == 0) {
            bel_free(e->items[i]);
            e->items[i] = bel_xstrdup(item);
            return;
        }
    }
    e->items = bel_xgrow(e->items, &e->capacity, e->count + 2, sizeof *e->items);
    e->items[e->count++] = bel_xstrdup(item);
    e->items[e->count] = NULL;
}

// Order: this process's environment, the cluster file's additions, the task. A remote process has
// its host's environment, so only Belfry's variables are sent.
static environment make_environment(const bel_supervisor *s, const bel_task *task, bool away)
{
    environment e = {0};
    const bel_cluster *cluster = s->config->plan->cluster;
    for (char **item = environ; *item != NULL; item++)
        if (!away || strncmp(*item, "BELFRY_", strlen("BELFRY_")) == 0) set_item(&e, *item);
    for (size_t i = 0; i < cluster->environment_count; i++)
        set_item(&e, cluster->environment[i]);
    bel_str text = {0};
    bel_str_puts(&text, "BELFRY_TASK=");
    bel_task_write(task, &text);
    set_item(&e, text.text);
    text.length = 0;
    bel_str_printf(&text, "BELFRY_SECRET=%s", s->sockets.secret);
    set_item(&e, text.text);
    set_item(&e, "BELFRY_SECRET_FILE="); // unset this process's
    if (s->config->model_dir != NULL) {
        text.length = 0;
        bel_str_printf(&text, BEL_MODEL_DIR_VARIABLE "=%s", s->config->model_dir);
        set_item(&e, text.text);
    }
    const char *host = bel_plan_host(s->config->plan, task);
    const char *data = bel_cluster_data_folder(cluster, host);
    if (data != NULL) {
        text.length = 0;
        bel_str_printf(&text, BEL_DATA_DIR_VARIABLE "=%s", data);
        set_item(&e, text.text);
    }
    set_item(&e, "BELFRY_LOG_FORMAT=json");
    bel_str_deinit(&text);
    return e;
}

static void free_environment(environment *e)
{
    for (size_t i = 0; i < e->count; i++)
        bel_free(e->items[i]);
    bel_free(e->items);
}

// --- Starting -----------------------------------------------------------------------------------

// Appends: an incarnation's log may have lines of an earlier run with the same number.
static bel_status *open_log(bel_supervisor *s, bel_child *child)
{
    const bel_task *task = child->task;
    char *name =
        bel_strf("%s-%d.%u.log", bel_role_name(task->role), task->index, task->incarnation);
    child->output.log_path = bel_path_join(s->config->log_dir, name);
    bel_free(name);
    child->output.log_fd =
        open(child->output.log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (child->output.log_fd < 0) return bel_file_error(errno, "create", child->output.log_path);
    child->output.log_begin = (int64_t)lseek(child->output.log_fd, 0, SEEK_END);
    return NULL;
}

// Returns the arguments of a process. In a process list belfry's name shows the role, such as
// "belfry[worker-1]"; a user's program may need an unchanged name. Free with free_arguments.
static char **name_arguments(const bel_supervisor *s, const bel_task *task)
{
    size_t count = 0;
    while (s->config->arguments[count] != NULL)
        count++;
    char **arguments = bel_xcalloc(count + 1, sizeof *arguments), *own = bel_linux_program();
    for (size_t i = 0; i < count; i++)
        arguments[i] = s->config->arguments[i];
    bool ours = own != NULL && strcmp(own, s->config->program) == 0;
    arguments[0] = ours ? bel_strf("belfry[%s-%d]", bel_role_name(task->role), task->index)
                        : bel_xstrdup(arguments[0]);
    bel_free(own);
    return arguments;
}

static void free_arguments(char **arguments)
{
    bel_free(arguments[0]); // the supervisor owns the others
    bel_free(arguments);
}

static bel_status *spawn_away(const bel_supervisor *s, bel_child *child, char **words,
                              char *const *arguments, char *const *variables, int output, int error)
{
    int input[2];
    char *program;
    bel_str text = {0};
    const bel_parcel parcel = {.program = s->config->reach->program,
                               .arguments = arguments,
                               .environment = variables,
                               .moved = s->config->reach->moved,
                               .folder = s->config->folder,
                               .task = child->task};
    BEL_TRY(bel_program_find(words[0], &program));
    bel_parcel_write(&parcel, &text);
    bel_status *status = bel_linux_input_pipe(text.text, text.length, input);
    if (status == NULL) {
        bel_linux_spawn spawn = {
            .program = program, .arguments = words, .standard = {input[0], output, error}};
        status = bel_linux_process_spawn(&spawn, &child->process);
        close(input[0]);
        child->remote.input_fd = status == NULL ? input[1] : -1;
        if (status != NULL) close(input[1]);
    }
    bel_str_deinit(&text);
    bel_free(program);
    return status;
}

// Returns the descriptor that a local child inherits; 0: none. A master gets the lock of the model
// folder, and a process with a shard memory in which it keeps its state. The supervisor holds that
// memory, so it outlives the child. Without it the job goes back to a checkpoint.
static int inheritance_of(const bel_supervisor *s, bel_child *child)
{
    bel_role role = child->task->role;
    if (role == BEL_ROLE_MASTER) return s->lock > 2 ? s->lock : 0;
    bool has_shard = role == BEL_ROLE_PS || (role == BEL_ROLE_WORKER && child->task->ps_count == 0);
    if (!has_shard || !child->task->recovers) return 0;
    if (child->memory_fd < 0) child->memory_fd = bel_linux_shared_open("belfry-parameters");
    return child->memory_fd > 2 ? child->memory_fd : 0;
}

static bel_status *spawn_child(bel_supervisor *s, bel_child *child, int output, int error)
{
    const bel_reach *reach = s->config->reach;
    char **words = reach != NULL ? reach->words(reach, child->task) : NULL;
    bel_status *status;
    child->away = words != NULL;
    int inherited = child->away ? 0 : inheritance_of(s, child);
    bool is_master = child->task->role == BEL_ROLE_MASTER;
    child->task->lock = inherited > 0 && is_master ? BEL_LINUX_INHERITED : 0;
    child->task->memory = inherited > 0 && !is_master ? BEL_LINUX_INHERITED : 0;
    environment e = make_environment(s, child->task, child->away);
    char **arguments = name_arguments(s, child->task);
    if (child->away) {
        status = spawn_away(s, child, words, arguments, e.items, output, error);
    } else {
        bel_linux_spawn spawn = {.inherited = inherited,
                                 .program = s->config->program,
                                 .arguments = arguments,
                                 .environment = e.items,
                                 .standard = {-1, output, error}};
        status = bel_linux_process_spawn(&spawn, &child->process);
    }
    bel_reach_words_free(words);
    free_arguments(arguments);
    free_environment(&e);
    return status;
}

// The write ends of pipes belong only to the child. A master's stdout is a separate pipe; other
// children's stdout is their stderr.
static bel_status *start_child(bel_supervisor *s, bel_child *child)
{
    int error_ends[2], output_ends[2] = {-1, -1};
    bool is_master = child->task->role == BEL_ROLE_MASTER;
    bel_status *logging = open_log(s, child);
    bool goes_without = logging != NULL && child->task->incarnation > 0;
    if (goes_without) // the job needs the process more than its log
        bel_log_write(BEL_LOG_WARN, "%s has no log file: %s", child->name,
                      bel_status_message(logging));
    if (logging != NULL && !goes_without) return logging;
    bel_status_destroy(logging);
    BEL_TRY(bel_linux_pipe(error_ends));
    child->output.error_fd = error_ends[0];
    bel_status *status = is_master ? bel_linux_pipe(output_ends) : NULL;
    if (status == NULL) {
        if (is_master) s->master.output_fd = output_ends[0];
        status = spawn_child(s, child, is_master ? output_ends[1] : error_ends[1], error_ends[1]);
    }
    close(error_ends[1]);
    if (output_ends[1] >= 0) close(output_ends[1]);
    child->lives.started_ns = bel_clock_awake_ns();
    return status;
}

// A line that does not fit into the pipe has no reader: the connection is gone, or soon will be. A
// command that has not reached a process yet is killed here.
void bel_child_signal(bel_child *child, int number, bool group)
{
    enum { PATIENCE_NS = 2000000000 };
    child->sent = number;
    if (!child->away || child->remote.input_fd < 0 || !child->remote.there) {
        bel_linux_process_signal(&child->process, number, group);
        return;
    }
    char line[32];
    int length = bel_snprintf(line, sizeof line, "signal %d\n", number);
    ssize_t wrote = write(child->remote.input_fd, line, (size_t)length);
    if (number == SIGKILL && child->remote.kill_ns == 0) {
        child->remote.kill_ns = bel_clock_awake_ns() + (wrote == length ? PATIENCE_NS : 0);
    }
}

// A child that never ran keeps its incarnation.
bel_status *bel_supervisor_restart(bel_supervisor *supervisor, bel_child *child)
{
    bool again = child->output.log_path != NULL; // false: it has not run yet
    if (child->output.log_fd >= 0) close(child->output.log_fd);
    bel_free(child->output.log_path);
    child->output.log_path = NULL;
    child->task->incarnation += again;
    child->lives.restart_ns = 0;
    child->end = (bel_linux_end){0};
    child->output.last_error.length = 0;
    child->remote.last_words.length = 0;
    child->remote.pid = child->lost_pid = child->remote.kill_ns = child->still_ns = 0;
    child->remote.there = false;
    child->remote.signal = child->sent = 0;
    child->leaves = false;
    bel_free(child->remote.host);
    child->remote.host = NULL;
    child->lives.crash = (bel_crash){0};
    if (child->task->role == BEL_ROLE_MASTER)
        supervisor->master.output.length = 0; // it starts over
    return start_child(supervisor, child);
}

// Takes ownership of the task.
static bel_child *add_child(bel_supervisor *s, bel_task *task)
{
    s->children =
        bel_xgrow(s->children, &s->child_capacity, (size_t)s->child_count + 1, sizeof *s->children);
    bel_child *child = &s->children[s->child_count++];
    *child = (bel_child){.task = task,
                         .process.descriptor = -1,
                         .remote.input_fd = -1,
                         .memory_fd = -1,
                         .output = {.error_fd = -1, .log_fd = -1}};
    task->supervisor = (int64_t)getpid();
    bel_role_text(task->role, task->index, child->name);
    return child;
}

static void make_children(bel_supervisor *s)
{
    const bel_plan *plan = s->config->plan;
    for (int i = 0; i < plan->process_count; i++)
        add_child(s, bel_plan_task(plan, s->config->job, i));
    s->scale.workers = plan->worker_count;
}

// May move the children, which invalidates pointers to them.
void bel_supervisor_add_worker(bel_supervisor *supervisor, int index)
{
    const bel_supervisor *s = supervisor;
    bel_task *task = bel_plan_added_task(s->config->plan, s->config->job, index);
    set_address(s, task, s->children[0].task->master_address);
    bel_child *child = add_child(supervisor, task);
    child->lives.restart_ns = bel_clock_awake_ns();
}

// Removes an earlier job's requests. Those that led to this start stay in force, and so do the ones
// that have come since.
static bel_status *keep_requests(const bel_supervisor_config *config)
{
    if (config->model_dir == NULL) return NULL;
    if (config->scaled.servers == 0) {
        bel_scale_remove(config->model_dir);
        return NULL;
    }
    bel_scale wish = bel_scale_read(config->model_dir);
    if (wish.workers == 0) wish.workers = config->scaled.workers;
    if (wish.servers == 0) wish.servers = config->scaled.servers;
    return bel_scale_write(config->model_dir, wish);
}

bel_status *bel_supervisor_start(bel_supervisor *supervisor)
{
    bel_supervisor *s = supervisor;
    bel_linux_raise_file_limit(); // a child needs three descriptors
    BEL_TRY(bel_private_file_check(s->config->plan->cluster->tls_key, "tls.key"));
    make_children(s);
    BEL_TRY(keep_requests(s->config));
    const char *file = s->config->plan->cluster->secret_file;
    BEL_TRY(file != NULL ? bel_secret_read(file, "secret_file", &s->sockets.secret)
                         : bel_secret_create(&s->sockets.secret));
    BEL_TRY(set_addresses(s));
    BEL_TRY(bel_dir_create(s->config->log_dir));
    for (int i = 0; i < s->child_count; i++)
        BEL_TRY(start_child(s, &s->children[i]));
    return NULL;
}

// Removes the token of a killed master; no other run is in the folder.
static void remove_token(const bel_supervisor *s, bool again)
{
    if (s->config->model_dir == NULL) return;
    char *path = bel_path_join(s->config->model_dir, BEL_TOKEN_FILE);
    (void)remove(path); // usually absent
    bel_free(path);
    if (!again) bel_scale_remove(s->config->model_dir);
}

void bel_supervisor_clean_up(bel_supervisor *supervisor, bool again)
{
    bel_supervisor *s = supervisor;
    remove_token(s, again);
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        if (child->remote.input_fd >= 0) close(child->remote.input_fd);
        if (child->output.error_fd >= 0) close(child->output.error_fd);
        if (child->output.log_fd >= 0) close(child->output.log_fd);
        if (child->memory_fd >= 0) close(child->memory_fd);
        bel_task_destroy(child->task);
        bel_free(child->output.log_path);
        bel_str_deinit(&child->output.line);
        bel_str_deinit(&child->output.last_error);
        bel_str_deinit(&child->remote.last_words);
        bel_free(child->remote.why_unreached);
        bel_free(child->remote.host);
    }
    bel_free(s->children);
    if (s->master.output_fd >= 0) close(s->master.output_fd);
    if (s->sockets.port_fd >= 0) close(s->sockets.port_fd);
    if (s->sockets.folder != NULL)
        bel_status_ignore(bel_dir_remove(s->sockets.folder)); // empty, and in /tmp
    bel_linux_unlock(s->sockets.lock);
    bel_free(s->sockets.folder);
    bel_free(s->sockets.secret);
}
