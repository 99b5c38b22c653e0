// Output of children. Bytes go to the log file at once. Complete lines are parsed and shown on this
// process's stderr: all of the master's, and the important ones of others. Nothing here may delay
// the supervisor's loop or end the job. So reads never block and alternate between children, an
// unwritable log is abandoned with one warning, and an endless line is cut.
//
// When a child has exited, its pipe is drained and closed, even if a process that the child left
// still holds the other end. Two lines have effects: the error that ends a process becomes part of
// the job's message, and "lost" from the master kills the process of that pid, if it is a child.
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/supervise/supervisor_inner.h"

enum {
    CHUNK = 1 << 16,       // bytes read at once
    LONGEST_LINE = 65536,  // a longer one is cut
    MOST_OUTPUT = 1 << 20, // minimum kept of the master's stdout
    ROUNDS = 16,           // chunks read from one child before the others
};

// Blocks only as a file does. After a failure closes the log; the job continues.
static void write_log(bel_child_output *output, const char *bytes, size_t size)
{
    while (size > 0 && output->log_fd >= 0) {
        ssize_t wrote = write(output->log_fd, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) { // no reason to end training
            bel_log_write(BEL_LOG_WARN, "cannot write %s: %s; it ends here", output->log_path,
                          strerror(errno));
            close(output->log_fd);
            output->log_fd = -1;
            return;
        }
        bytes += wrote;
        size -= (size_t)wrote;
    }
}

// Keeps the newest progress object, for the job's status, and shows it on the terminal.
static void take_progress(bel_supervisor *s, const bel_role_line *line, const char *bytes,
                          size_t length)
{
    bool again = line->progress.step == s->master.step;
    int64_t last = line->progress.last_step;
    bool at_end = last >= 0 && line->progress.step >= last;
    bel_free(s->master.progress);
    s->master.progress = bel_xstrndup(bytes, length);
    s->master.step = line->progress.step;
    s->changed = true;
    if (s->master.shown && again)
        return; // the last step is reported twice: when due, and at the end
    bel_log_progress(line->text.text, s->master.progress, at_end);
    s->master.shown = at_end;
}

// True for "lost NAME on …": hosts may have processes with the same pid.
static bool is_named(const bel_child *child, const char *text)
{
    static const char word[] = "lost ";
    size_t length = strlen(child->name);
    text += strncmp(text, word, sizeof word - 1) == 0 ? sizeof word - 1 : 0;
    return strncmp(text, child->name, length) == 0 && text[length] == ' ';
}

// Kills a process that its master has lost, as it may still be there, stopped or stuck; another
// replaces it. If a replacement already runs, its pid differs.
static void end_lost(bel_supervisor *s, const bel_role_line *line)
{
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        int64_t pid = child->away ? child->remote.pid : child->process.pid;
        if (!bel_child_is_running(child) || !is_named(child, line->text.text)) continue;
        child->lost_pid = line->lost_pid; // for a remote one this may arrive before its pid
        if (pid == line->lost_pid) bel_child_signal(child, SIGKILL, true);
    }
}

// A connection's failure is reported once, when its command has exited.
static bool is_there(const bel_child *child)
{
    return !child->away || child->remote.there;
}

// False for a rule or an empty line; mpirun frames its messages with these.
static bool says_something(const bel_role_line *line)
{
    for (size_t i = 0; i < line->text.length; i++)
        if (isalnum((unsigned char)line->text.text[i])) return true;
    return false;
}

// Keeps the reason of a failed connection: ssh writes it last, after warnings; mpirun writes it
// first, before advice.
static void take_words(bel_child *child, const bel_role_line *line)
{
    enum { MOST = 400 };
    bel_str *words = &child->remote.last_words;
    if (words->length + line->text.length > MOST) return;
    if (words->length > 0) bel_str_puts(words, " ");
    bel_str_append(words, line->text.text, line->text.length);
}

// Shows all lines of the master, and others' warnings and errors. The error that ends a process is
// kept for the job's message instead.
static void show_line(bel_supervisor *s, bel_child *child, const char *bytes, size_t length)
{
    bool is_master = child->task->role == BEL_ROLE_MASTER;
    bel_role_line line;
    bel_role_line_init(&line, bytes, length);
    if (is_master && line.lost_pid > 0) end_lost(s, &line);
    if (child->away && line.carries) {
        child->remote.there = true;
        child->remote.attempts = 0;
        bel_free(child->remote.host);
        child->remote.host = bel_xstrdup(line.text.text);
    }
    if (child->away && line.carried_pid > 0) {
        child->remote.pid = line.carried_pid;
        if (child->remote.pid == child->lost_pid) bel_child_signal(child, SIGKILL, true);
    }
    if (child->away && line.carried_signal > 0) child->remote.signal = (int)line.carried_signal;
    if (child->away && line.kind == BEL_ROLE_LINE_FOREIGN && says_something(&line))
        take_words(child, &line);
    if (line.begins && is_master) s->master.begun = true;
    if (line.leaves) child->leaves = true;
    if (line.crash_signal > 0)
        child->lives.crash = (bel_crash){line.crash_signal, line.crash_step, line.crash_block};
    if (line.kind == BEL_ROLE_LINE_ERROR) { // becomes part of the job's error
        child->output.last_error.length = 0;
        bel_str_append(&child->output.last_error, line.text.text, line.text.length);
    } else if (line.kind == BEL_ROLE_LINE_PROGRESS) {
        if (is_master) take_progress(s, &line, bytes, length);
    } else if ((is_master || line.level <= BEL_LOG_WARN) && is_there(child)) {
        bel_str text = {0};
        if (bel_log_get_format() == BEL_LOG_JSON) {
            bel_role_line_write_json(&line, bytes, length, child->name, &text);
        } else {
            bel_role_line_write(&line, is_master ? NULL : child->name, &text);
        }
        bel_log_line(line.level, text.text);
        bel_str_deinit(&text);
    }
    bel_role_line_deinit(&line);
}

// Shows the complete lines read, and with `all` also the unfinished one.
static void show_lines(bel_supervisor *s, bel_child *child, bool all)
{
    const char *next = child->output.line.text;
    size_t left = child->output.line.length;
    while (left > 0) {
        const char *newline = memchr(next, '\n', left);
        if (newline == NULL && !all && left < LONGEST_LINE) break;
        size_t length = newline != NULL ? (size_t)(newline - next) : left;
        if (length > 0) show_line(s, child, next, length);
        length += newline != NULL;
        next += length;
        left -= length;
    }
    if (left > 0) memmove(child->output.line.text, next, left);
    child->output.line.length = left;
}

// Reads from a pipe without blocking; 0: nothing now, -1: end.
static ssize_t read_some(int descriptor, char *chunk)
{
    ssize_t got;
    do {
        got = read(descriptor, chunk, CHUNK);
    } while (got < 0 && errno == EINTR);
    if (got > 0) return got;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
}

// At most ROUNDS chunks, so that a child with endless output does not starve the others.
void bel_child_read(bel_supervisor *supervisor, bel_child *child, bool last)
{
    if (child->output.error_fd < 0) return;
    char *chunk = bel_xmalloc(CHUNK);
    ssize_t got = 0;
    for (int round = 0; round < ROUNDS; round++) {
        got = read_some(child->output.error_fd, chunk);
        if (got <= 0) break;
        write_log(&child->output, chunk, (size_t)got);
        bel_str_append(&child->output.line, chunk, (size_t)got);
        show_lines(supervisor, child, false);
    }
    bel_free(chunk);
    // A process that the child left may hold the other end: do not wait for it.
    if (got >= 0 && !last) return;
    show_lines(supervisor, child, true);
    close(child->output.error_fd);
    child->output.error_fd = -1;
}

// Results come at the end, so the last part of endless output is kept.
static void keep_output(bel_str *output, const char *bytes, size_t size)
{
    bel_str_append(output, bytes, size);
    if (output->length <= 2 * (size_t)MOST_OUTPUT) return;
    memmove(output->text, output->text + output->length - MOST_OUTPUT, MOST_OUTPUT);
    output->length = MOST_OUTPUT;
    output->text[output->length] = '\0';
}

void bel_supervisor_read_output(bel_supervisor *supervisor, bool last)
{
    if (supervisor->master.output_fd < 0) return;
    char *chunk = bel_xmalloc(CHUNK);
    ssize_t got = 0;
    for (int round = 0; round < ROUNDS; round++) {
        got = read_some(supervisor->master.output_fd, chunk);
        if (got <= 0) break;
        keep_output(&supervisor->master.output, chunk, (size_t)got);
    }
    bel_free(chunk);
    if (got >= 0 && !last) return;
    close(supervisor->master.output_fd);
    supervisor->master.output_fd = -1;
}
