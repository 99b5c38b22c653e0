// Engine "ssh": the supervisor and the master on the submitting host, other processes on the hosts
// of the cluster file, reached by ssh with the user's configuration. Hosts need no Belfry process
// beforehand. Before a job starts, the engine installs what hosts need: belfry, the program of the
// job's processes, the files of their flags --package and --config_file. A program at the same path
// on the host (a shared file system) is linked. Other files are copied, unless an earlier job has
// done so. Files are identified by SHA-256, so no host starts with a different one.
//
// $HOME/.cache/belfry/DIGEST/NAME is the remote file, or a link to it. Commands for a host are
// shell text, because sshd passes them to a shell.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_host.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/program.h"
#include "base/str.h"
#include "base/thread.h"
#include "launch/engine/detached.h"
#include "launch/engine/engines.h"

enum { DIGEST_TEXT = 65, LOOK_SECS = 60, COPY_SECS = 600, MOST_FILES = 4 };

// A file that hosts need.
typedef struct file {
    char *path; // on this host
    const char *name;
    char digest[DIGEST_TEXT];
    bool runs; // it is a program
} file;

typedef struct ssh_reach {
    bel_reach reach;
    const bel_plan *plan;
    char *peer, *program;   // texts of `reach`
    file files[MOST_FILES]; // belfry; the program of the job's processes, if different
    int file_count;
    char *moved[2 * MOST_FILES + 1]; // target of reach.moved
} ssh_reach;

// --- Words ---------------------------------------------------------------------------------------

// BELFRY_SSH replaces the program; it must accept ssh's arguments.
static const char *ssh_program(void)
{
    const char *program = getenv("BELFRY_SSH");
    return program != NULL && program[0] != '\0' ? program : "ssh";
}

// A dead connection is detected after 15 s; no password prompts.
static void add_ssh(bel_reach_words *w, const char *host, const char *command, bool quick)
{
    static const char *const options[] = {"-T", "-oBatchMode=yes", "-oServerAliveInterval=5",
                                          "-oServerAliveCountMax=3"};
    bel_reach_words_add(w, ssh_program());
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        bel_reach_words_add(w, options[i]);
    bel_reach_words_add(w, quick ? "-oConnectTimeout=1" : "-oConnectTimeout=10");
    bel_reach_words_add(w, "--");
    bel_reach_words_add(w, host);
    bel_str line = {0};
    bel_str_puts(&line, "exec sh -c "); // works with any login shell
    bel_reach_quote(command, &line);
    bel_reach_words_add(w, line.text);
    bel_str_deinit(&line);
}

static char **words_of(const bel_reach *reach, const bel_task *task)
{
    const ssh_reach *s = (const ssh_reach *)reach;
    const char *host = bel_plan_host(s->plan, task);
    if (host == NULL || bel_linux_host_is_here(host)) return NULL;
    bel_reach_words w = {0};
    char *command =
        bel_strf("exec \"$HOME/.cache/belfry/%s/%s\" carry", s->files[0].digest, s->files[0].name);
    // A connection retransmits lost packets at growing intervals, so short attempts find a
    // recovered host sooner. Some attempts are long enough for a slow host.
    bool quick = task->incarnation % 8 != 0;
    add_ssh(&w, host, command, quick);
    bel_free(command);
    return w.items;
}

// --- Files ---------------------------------------------------------------------------------------

static bel_status *read_digest(file *f)
{
    char *text, program[] = "sha256sum", mark[] = "--";
    char *const arguments[] = {program, mark, f->path, NULL};
    BEL_TRY(bel_program_ask(arguments, NULL, LOOK_SECS, &text));
    const char *digits = text[0] == '\\' ? text + 1 : text; // for a path with odd characters
    bool good = strspn(digits, "0123456789abcdef") == DIGEST_TEXT - 1;
    if (good) memcpy(f->digest, digits, DIGEST_TEXT - 1);
    bel_free(text);
    return good ? NULL : BEL_ERR(BEL_ABORTED, "sha256sum of %s: expected 64 digits", f->path);
}

static char *place_of(const file *f)
{
    return bel_strf("~/.cache/belfry/%s/%s", f->digest, f->name);
}

// Takes ownership of the path.
static bel_status *add_file(ssh_reach *s, char *path, bool runs)
{
    file *f = &s->files[s->file_count++];
    const char *slash = strrchr(path, '/');
    f->path = path;
    f->runs = runs;
    f->name = slash != NULL ? slash + 1 : path;
    return read_digest(f);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

// Adds the file of a belfry flag: the last occurrence counts, as in flag parsing.
static bel_status *add_moved(ssh_reach *s, const bel_job_record *record, const char *flag)
{
    const char *path = NULL;
    for (size_t i = 0; i < record->argument_count; i++) {
        const char *value;
        if (!bel_reach_is_flag(record->arguments[i], flag, &value)) continue;
        bool behind = value == NULL && i + 1 < record->argument_count;
        path = behind ? record->arguments[++i] : value;
    }
    bool named = strcmp(flag, "model") != 0 || (path != NULL && ends_with(path, ".onnx"));
    if (path == NULL || !named) return NULL; // a model's name, not a file
    char **pair = s->moved;
    while (*pair != NULL)
        pair += 2;
    bool whole = path[0] == '/';
    BEL_TRY(add_file(s, whole ? bel_xstrdup(path) : bel_path_join(record->directory, path), false));
    pair[0] = bel_xstrdup(flag);
    pair[1] = place_of(&s->files[s->file_count - 1]);
    return NULL;
}

// Writes shell code: f is the file's remote path, is() tests whether a path has its bytes.
static void write_place(const file *f, bel_str *out)
{
    bel_str_printf(out, "d=\"$HOME/.cache/belfry/%s\"; f=\"$d\"/", f->digest);
    bel_reach_quote(f->name, out);
    bel_str_printf(
        out, "; is() { [ -%c \"$1\" ] && [ \"$(sha256sum <\"$1\" | cut -c 1-64)\" = %s ]; }; ",
        f->runs ? 'x' : 'r', f->digest);
}

// Returns the output of `command` on the host; with `input` that file is its standard input.
static bel_status *ask_host(const char *host, const char *command, const char *input, int secs,
                            char **out_text)
{
    bel_reach_words w = {0};
    if (input != NULL) {
        bel_reach_words_add(&w, "sh");
        bel_reach_words_add(&w, "-c");
        bel_reach_words_add(&w, "exec \"$@\" <\"$0\"");
        bel_reach_words_add(&w, input);
    }
    add_ssh(&w, host, command, false);
    bel_status *status = bel_program_ask(w.items, NULL, secs, out_text);
    bel_reach_words_free(w.items);
    return status;
}

static bel_status *file_copy(const file *f, const char *host)
{
    bel_str command = {0};
    char *text = NULL;
    write_place(f, &command);
    bel_str_puts(&command,
                 "umask 077; mkdir -p \"$d\" && cat >\"$f.$$\" && chmod 700 \"$f.$$\" && "
                 "is \"$f.$$\" && mv -f \"$f.$$\" \"$f\" || { rm -f \"$f.$$\"; exit 1; }");
    bel_log_write(BEL_LOG_INFO, "%s is copied to %s", f->path, host);
    bel_status *status = ask_host(host, command.text, f->path, COPY_SECS, &text);
    bel_str_deinit(&command);
    bel_free(text);
    return status;
}

// Installs a file: links a program to an identical file at the same remote path, otherwise copies.
// (Other files are never linked, because they are loaded while the job runs and must not change.)
static bel_status *make_ready(const file *f, const char *host)
{
    bel_str command = {0};
    char *text = NULL;
    write_place(f, &command);
    bel_str_puts(&command, "if is \"$f\"; then :; ");
    if (f->runs) {
        bel_str_puts(&command, "elif is ");
        bel_reach_quote(f->path, &command);
        bel_str_puts(&command, "; then mkdir -p \"$d\" && ln -sfn ");
        bel_reach_quote(f->path, &command);
        bel_str_puts(&command, " \"$f\"; ");
    }
    bel_str_puts(&command, "else echo missing; fi");
    bel_status *status = ask_host(host, command.text, NULL, LOOK_SECS, &text);
    bool missing = status == NULL && strstr(text, "missing") != NULL;
    bel_str_deinit(&command);
    bel_free(text);
    return missing ? file_copy(f, host) : status;
}

// --- Hosts ---------------------------------------------------------------------------------------

typedef struct preparation {
    const ssh_reach *s;
    const char *host;
    pthread_t thread;
    bool started;
    bel_status *status;
} preparation;

static void *engine_ssh_prepare(void *argument)
{
    preparation *p = argument;
    for (int i = 0; i < p->s->file_count && p->status == NULL; i++)
        p->status = make_ready(&p->s->files[i], p->host);
    return NULL;
}

// All hosts at once, because each takes as long as a connection.
static bel_status *prepare_all(const ssh_reach *s, const char *const *hosts, size_t count)
{
    preparation *all = bel_xcalloc(count + 1, sizeof *all);
    bel_status *status = NULL;
    for (size_t i = 0; i < count; i++) {
        all[i] = (preparation){.s = s, .host = hosts[i]};
        bel_status *start = bel_thread_start(&all[i].thread, engine_ssh_prepare, &all[i]);
        all[i].started = start == NULL;
        if (status == NULL) {
            status = start;
        } else {
            bel_status_ignore(start); // the first error counts
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i].started) pthread_join(all[i].thread, NULL);
        if (status == NULL && all[i].status != NULL) {
            status = bel_status_wrap(all[i].status, __FILE__, __LINE__,
                                     "host %s cannot be made ready by %s", hosts[i], ssh_program());
        } else {
            bel_status_ignore(all[i].status); // the first error counts
        }
    }
    bel_free(all);
    return status;
}

// Resolves a host, which may be an alias in the user's ssh configuration, to its "hostname" from
// ssh -G.
static char *find_peer(const char *host)
{
    char *text = NULL, option[] = "-G", mark[] = "--";
    char *program = bel_xstrdup(ssh_program()), *alias = bel_xstrdup(host);
    char *const arguments[] = {program, option, mark, alias, NULL};
    static const char key[] = "hostname ";
    bel_status_ignore(bel_program_ask(arguments, NULL, LOOK_SECS, &text)); // else the name
    const char *at = text;
    while (at != NULL && strncmp(at, key, sizeof key - 1) != 0) {
        at = strchr(at, '\n');
        if (at != NULL) at++;
    }
    const char *found = at != NULL ? at + sizeof key - 1 : host;
    char *name = bel_xstrndup(found, strcspn(found, "\n"));
    char *peer = bel_reach_peer(name);
    bel_free(name);
    bel_free(text);
    bel_free(program);
    bel_free(alias);
    return peer;
}

static void engine_ssh_destroy(bel_reach *reach)
{
    ssh_reach *s = (ssh_reach *)reach;
    for (int i = 0; i < s->file_count; i++)
        bel_free(s->files[i].path);
    for (size_t i = 0; s->moved[i] != NULL; i++)
        bel_free(s->moved[i]);
    bel_free(s->peer);
    bel_free(s->program);
    bel_free(s);
}

static bel_status *engine_ssh_check(const bel_cluster *cluster)
{
    return bel_reach_check(cluster, bel_engine_ssh.name);
}

static bel_status *engine_ssh_reach(const bel_job_record *record, const bel_plan *plan,
                                    bel_reach **out_reach)
{
    size_t count;
    const char **hosts = bel_reach_hosts(plan->cluster, &count);
    ssh_reach *s = bel_xcalloc(1, sizeof *s);
    s->reach = (bel_reach){.words = words_of, .destroy = engine_ssh_destroy};
    s->plan = plan;
    bel_status *status = engine_ssh_check(plan->cluster);
    if (status == NULL) status = add_file(s, bel_linux_program(), true);
    if (status == NULL && record->program[0] != '\0') {
        status = add_file(s, bel_xstrdup(record->program), true);
        s->program = place_of(&s->files[1]);
    } else if (status == NULL) {
        s->program = bel_xstrdup("");
        status = add_moved(s, record, "package");
        if (status == NULL) status = add_moved(s, record, "config_file");
        if (status == NULL) status = add_moved(s, record, "model");
    }
    if (status == NULL) status = prepare_all(s, hosts, count);
    if (status == NULL) {
        s->peer = find_peer(hosts[0]);
        s->reach.peer = s->peer;
        s->reach.program = s->program;
        s->reach.moved = s->moved;
        *out_reach = &s->reach;
    } else {
        engine_ssh_destroy(&s->reach);
    }
    bel_free(hosts);
    return status;
}

// --- The engine ----------------------------------------------------------------------------------

static bel_status *engine_ssh_show(const bel_job_record *record, const bel_plan *plan, bel_str *out)
{
    char digest[] = "DIGEST";
    ssh_reach s = {
        .reach = {.words = words_of}, .plan = plan, .files = {{.name = "belfry"}}, .file_count = 1};
    memcpy(s.files[0].digest, digest, sizeof digest);
    bel_reach_show(&s.reach, record->name, plan, out);
    return NULL;
}

// Waits as long as preparing the hosts may take.
static bel_status *engine_ssh_submit(bel_job_record *record, const bel_plan *plan)
{
    enum { START_SECS = 30 };
    (void)plan; // the supervisor creates it
    return bel_detached_submit(record, START_SECS + MOST_FILES * (LOOK_SECS + COPY_SECS));
}

const bel_engine bel_engine_ssh = {
    .name = "ssh",
    .check = engine_ssh_check,
    .show = engine_ssh_show,
    .submit = engine_ssh_submit,
    .cancel = bel_detached_cancel,
    .reach = engine_ssh_reach,
};
