// Verbs jobs stream-logs and jobs top. Logs of all processes are merged by the times in their
// lines; a line without a time stays with the line before. Each round looks for new files (further
// incarnations). These verbs only read files and never contact the job (its engine may fetch the
// files). So they work for a job whose supervisor is gone, and do not slow a running job.
//
// The state is read before the lines, so that all lines up to the end are shown. Numbers of an
// earlier job in the same model folder are recognized by their time and omitted. On a terminal top
// continues until the job ends or Ctrl-C; elsewhere, and in JSON, it prints one snapshot.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "jobs/job_text.h"
#include "launch/engine/engine.h"
#include "launch/task/role_line.h"
#include "launch/task/task.h"
#include "monitoring/board.h"

// --- One log ------------------------------------------------------------------------------------

typedef struct log_file {
    char *file_name;
    char process[32]; // "worker 1"
    int descriptor;
    bel_str bytes; // bytes read; from `next` on not yet shown
    size_t next;   // start of the line after `line`
    bel_str raw;   // line to show next
    bel_role_line line;
    bool has_line;
    double time; // time of the newest line that has one; lines without a time take it
} log_file;

// Parses "worker-1.0.log" as worker 1, first incarnation. False for a file that is not a process's
// log.
static bool read_name(const char *file_name, char process[32])
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        const char *role = bel_role_name((bel_role)r);
        size_t length = strlen(role), digits;
        int64_t index;
        if (strncmp(file_name, role, length) != 0 || file_name[length] != '-') continue;
        digits = strspn(file_name + length + 1, "0123456789");
        if (!bel_parse_i64(file_name + length + 1, digits, &index) || index > INT16_MAX) continue;
        const char *rest = file_name + length + 1 + digits;
        size_t incarnation = rest[0] == '.' ? strspn(rest + 1, "0123456789") : 0;
        if (incarnation == 0 || strcmp(rest + 1 + incarnation, ".log") != 0) continue;
        bel_role_text((bel_role)r, (int)index, process);
        return true;
    }
    return false;
}

static void take_line(log_file *file, const char *bytes, size_t length)
{
    file->raw.length = 0;
    bel_str_append(&file->raw, bytes, length);
    bel_role_line_init(&file->line, file->raw.text, length);
    if (file->line.time > 0) file->time = file->line.time;
    file->has_line = true;
}

// Prepares the next line if there is one. `all`: the file is complete, so an unfinished line counts
// too.
static bel_status *find_line(log_file *file, bool all)
{
    while (!file->has_line) {
        size_t left = file->bytes.length - file->next;
        const char *start = left > 0 ? file->bytes.text + file->next : "";
        const char *newline = memchr(start, '\n', left);
        if (newline != NULL) {
            size_t length = (size_t)(newline - start);
            file->next += length + 1;
            if (length > 0) take_line(file, start, length);
            continue;
        }
        if (left > 0) memmove(file->bytes.text, start, left);
        file->bytes.length = left;
        file->next = 0;
        char chunk[1 << 14];
        ssize_t got = read(file->descriptor, chunk, sizeof chunk);
        if (got < 0 && errno != EINTR) return bel_file_error(errno, "read", file->file_name);
        if (got > 0) bel_str_append(&file->bytes, chunk, (size_t)got);
        if (got != 0) continue;
        if (all && left > 0) {
            take_line(file, file->bytes.text, left);
            file->bytes.length = 0;
        }
        return NULL;
    }
    return NULL;
}

// --- All logs of a job --------------------------------------------------------------------------

typedef struct log_stream {
    char *folder;
    log_file *files;
    size_t count, capacity;
    bool json;
} log_stream;

static bool is_known(const log_stream *stream, const char *file_name)
{
    for (size_t i = 0; i < stream->count; i++)
        if (strcmp(stream->files[i].file_name, file_name) == 0) return true;
    return false;
}

static bel_status *open_log(log_stream *stream, const char *file_name)
{
    log_file file = {0};
    if (is_known(stream, file_name) || !read_name(file_name, file.process)) return NULL;
    char *path = bel_path_join(stream->folder, file_name);
    struct stat about;
    bool empty = stat(path, &about) != 0 || about.st_size == 0;
    if (empty) { // a failed attempt's, or removed already
        bel_free(path);
        return NULL;
    }
    file.descriptor = open(path, O_RDONLY | O_CLOEXEC);
    bel_status *status = file.descriptor >= 0 ? NULL : bel_file_error(errno, "open", path);
    bel_free(path);
    if (status != NULL) return status;
    file.file_name = bel_xstrdup(file_name);
    stream->files =
        bel_xgrow(stream->files, &stream->capacity, stream->count + 1, sizeof *stream->files);
    stream->files[stream->count++] = file;
    return NULL;
}

static bel_status *open_new_logs(log_stream *stream)
{
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(stream->folder, &names, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++)
        status = open_log(stream, names[i]);
    bel_dir_names_free(names, count);
    return status;
}

static bel_status *print_line(const log_stream *stream, log_file *file)
{
    bel_str text = {0};
    if (!bel_log_shows(file->line.level)) { // only for supervisors, unless --log_level is debug
        bel_role_line_deinit(&file->line);
        file->has_line = false;
        return NULL;
    }
    if (stream->json) {
        bel_role_line_write_json(&file->line, file->raw.text, file->raw.length, file->process,
                                 &text);
    } else {
        bel_role_line_write(&file->line, file->process, &text);
    }
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_role_line_deinit(&file->line);
    file->has_line = false;
    return status;
}

// Prints the available lines, oldest first: always the earliest of the logs' next lines.
static bel_status *print_new_lines(log_stream *stream, bool all)
{
    BEL_TRY(open_new_logs(stream));
    for (;;) {
        log_file *first = NULL;
        for (size_t i = 0; i < stream->count; i++) {
            log_file *file = &stream->files[i];
            BEL_TRY(find_line(file, all));
            bool earlier = file->has_line && (first == NULL || file->time < first->time);
            if (earlier) first = file;
        }
        if (first == NULL) break;
        BEL_TRY(print_line(stream, first));
    }
    return bel_results_flush();
}

static void close_stream(log_stream *stream)
{
    for (size_t i = 0; i < stream->count; i++) {
        log_file *file = &stream->files[i];
        close(file->descriptor);
        bel_free(file->file_name);
        bel_str_deinit(&file->bytes);
        bel_str_deinit(&file->raw);
        if (file->has_line) bel_role_line_deinit(&file->line);
    }
    bel_free(stream->files);
    bel_free(stream->folder);
}

// Copies the engine's logs into the record's folder.
static bel_status *fetch_logs(const bel_job_record *record)
{
    const bel_engine *engine = bel_engine_find(record->engine);
    bool there = engine == NULL || engine->logs == NULL || record->engine_id[0] == '\0';
    return there ? NULL : engine->logs(record);
}

// The state is read before the lines, so that no line is missed at the end.
static bel_status *log_stream_follow(log_stream *stream, const char *name, bool on)
{
    enum { FETCH_ROUNDS = 10 }; // two seconds
    for (int round = 0;; round++) {
        bel_job_record *record;
        BEL_TRY(bel_job_follow(name, round, &record));
        bool ended = bel_job_state_is_final(record->state);
        bool fetches = ended || round % FETCH_ROUNDS == 0;
        bel_status *status = fetches ? fetch_logs(record) : NULL;
        if (status == NULL) status = print_new_lines(stream, ended);
        if (status == NULL && ended) {
            bool has_message = record->message[0] != '\0';
            bel_log_write(BEL_LOG_INFO, "job %s is %s%s%s", name, bel_job_state_name(record->state),
                          has_message ? ": " : "", record->message);
        }
        bel_job_record_destroy(record);
        if (status != NULL || ended || !on) return status;
    }
}

bel_status *bel_verb_jobs_stream_logs(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    const char *name;
    BEL_TRY(bel_job_take_name(options, false, &name));
    bel_job_record *record;
    BEL_TRY(bel_engine_read_job(name, &record));
    bool json = bel_options_bool(options, "json") || bel_log_get_format() == BEL_LOG_JSON;
    log_stream stream = {.folder = bel_path_join(record->folder, "logs"), .json = json};
    bel_job_record_destroy(record);
    bel_status *status = log_stream_follow(&stream, name, bel_options_bool(options, "follow"));
    close_stream(&stream);
    return status;
}

// --- Top ----------------------------------------------------------------------------------------

// Reads the numbers that the job's master wrote last; NULL: this run has none yet.
static bel_status *read_board(const bel_job_record *record, char **out_text, bel_board **out_board)
{
    char *path = bel_path_join(record->model_dir, BEL_BOARD_FILE);
    bel_status *status = NULL;
    size_t size;
    *out_text = NULL;
    *out_board = NULL;
    if (bel_file_exists(path)) status = bel_file_read(path, out_text, &size);
    if (status == NULL && *out_text != NULL) {
        status = bel_board_parse(*out_text, size, path, out_board);
    }
    bel_free(path);
    if (*out_board == NULL || (*out_board)->time >= record->started_at) return status;
    bel_board_destroy(*out_board); // an earlier job's
    *out_board = NULL;
    return status;
}

static void write_board(const bel_job_record *record, const bel_board *board, bel_str *out)
{
    bel_str_printf(out, "job %s is %s\n", record->name, bel_job_state_name(record->state));
    if (board != NULL) {
        bel_board_write_table(board, out);
    } else {
        bel_str_puts(out, "there are no numbers of it yet\n");
    }
}

static bel_status *print_top_of(const char *name, const char *before, bool json, bool *out_ended)
{
    bel_job_record *record;
    bel_board *board = NULL;
    char *object = NULL;
    BEL_TRY(bel_engine_read_job(name, &record));
    bel_status *status = read_board(record, &object, &board);
    bel_str text = {0};
    bel_str_puts(&text, before);
    if (status == NULL && json) {
        bel_str_puts(&text, board != NULL ? object : "null\n");
    } else if (status == NULL) {
        write_board(record, board, &text);
    }
    *out_ended = bel_job_state_is_final(record->state);
    if (status == NULL) status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_board_destroy(board);
    bel_free(object);
    bel_job_record_destroy(record);
    return status != NULL ? status : bel_results_flush();
}

static bel_status *print_top(const char *before, bool json)
{
    bel_job_record **records;
    size_t count;
    BEL_TRY(bel_registry_list(&records, &count));
    bel_str text = {0};
    bel_str_puts(&text, before);
    if (json) {
        for (size_t i = 0; i < count; i++)
            bel_job_write_json(records[i], &text);
    } else {
        bel_jobs_write_top(records, count, &text);
    }
    for (size_t i = 0; i < count; i++)
        bel_job_record_destroy(records[i]);
    bel_free(records);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status != NULL ? status : bel_results_flush();
}

bel_status *bel_verb_jobs_top(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    static const char clear_screen[] = "\033[H\033[J";
    bool json = bel_options_bool(options, "json"), ended = false;
    size_t count;
    const char *const *names = bel_options_arguments(options, &count);
    if (count > 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected at most one name of a job, got %zu arguments", count);
    }
    const char *name = count == 1 ? names[0] : NULL;
    bool once = json || isatty(STDOUT_FILENO) != 1;
    do { // until Ctrl-C, or the end of the job
        const char *before = once ? "" : clear_screen;
        BEL_TRY(name != NULL ? print_top_of(name, before, json, &ended) : print_top(before, json));
        if (!once && !ended) poll(NULL, 0, 1000);
    } while (!once && !ended);
    return NULL;
}
