// One write call a line, to a file opened for appending, so that lines of two masters never mix. A
// master that is killed while it writes leaves half a line: the next one begins a new line, and
// readers skip text that is no JSON. A generation is synced, with the folder, since the file may be
// new, before any member is sent it: a lost number would be used twice. Readers look for the
// highest number, not for the last line; of lines with the same number the last counts.
#include "master/backend/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "ps/layout/fan_in.h"

// False: the last line is incomplete, as after a killed master.
static bool ends_with_a_line(int descriptor)
{
    off_t size = lseek(descriptor, 0, SEEK_END);
    char last = '\n';
    return size <= 0 || (pread(descriptor, &last, 1, size - 1) == 1 && last == '\n');
}

// Owns the descriptor; the head of this file describes the guarantees for a line.
static bel_status *journal_append(const char *path, const bel_str *line, bool sync)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_str text = {0};
    bel_str_printf(&text, "%s%s", ends_with_a_line(descriptor) ? "" : "\n", line->text);
    errno = ENOSPC; // for a short write
    bool good = write(descriptor, text.text, text.length) == (ssize_t)text.length &&
                (!sync || fsync(descriptor) == 0);
    bel_status *status = good ? NULL : bel_file_error(errno, "write", path);
    close(descriptor);
    bel_str_deinit(&text);
    return status;
}

static void write_list(const char *name, const int *numbers, int count, bel_str *out)
{
    bel_str_printf(out, ",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        bel_str_printf(out, "%s%d", i > 0 ? "," : "", numbers[i]);
    bel_str_puts(out, "]");
}

bel_status *bel_journal_write(const char *model_dir, const bel_journal_line *line)
{
    bel_str text = {0};
    bel_str_printf(&text,
                   "{\"time\":%.3f,\"event\":\"%s\",\"generation\":%u,\"step\":%lld,\"text\":",
                   bel_clock_wall(), line->event, line->generation, (long long)line->step);
    bel_json_write_string(&text, line->text);
    if (line->replicas != NULL) bel_str_printf(&text, ",\"fan_in\":%d", line->fan_in);
    if (line->host_count > 0) write_list("hosts", line->hosts, line->host_count, &text);
    if (line->replicas != NULL) write_list("replicas", line->replicas, line->worker_count, &text);
    bel_str_puts(&text, "}\n");
    char *path = bel_path_join(model_dir, BEL_JOURNAL_FILE);
    bool begins = strcmp(line->event, "generation") == 0;
    bel_status *status = journal_append(path, &text, begins);
    if (status == NULL && begins) status = bel_dir_sync(model_dir); // the file may be new
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// --- Reading -------------------------------------------------------------------------------------

typedef struct visitor {
    uint32_t wanted; // read this generation; 0: the highest
    uint32_t found;  // highest matching generation so far
    int *replicas;   // NULL: the assignment is not requested
    int worker_count;
    int *hosts; // NULL: they are not requested
    int fan_in;
    bool has_assignment;
} visitor;

// Reads a number for each worker. Missing or malformed ones count as 0: that worker plays no
// replica, or there is no such host.
static void read_list(const bel_json_value *list, int count, int *out)
{
    for (int i = 0; i < count; i++) {
        int64_t number = 0;
        bool there = list != NULL && (size_t)i < bel_json_length(list) &&
                     bel_json_value_i64(bel_json_at(list, (size_t)i), &number);
        out[i] = there && number > 0 && number <= INT32_MAX ? (int)number : 0;
    }
}

static void read_assignment(const bel_json_value *root, visitor *v)
{
    const bel_json_value *list = bel_json_member(root, "replicas");
    v->has_assignment = list != NULL;
    if (list != NULL) read_list(list, v->worker_count, v->replicas);
}

// An absent number is that of an earlier version, which had no relays.
static void read_relays(const bel_json_value *root, visitor *v)
{
    if (v->has_assignment && v->hosts != NULL)
        read_list(bel_json_member(root, "hosts"), v->worker_count, v->hosts);
    int64_t fan_in = 0;
    (void)bel_json_i64(root, "fan_in", &fan_in);
    v->fan_in = fan_in > 1 && fan_in <= BEL_FAN_IN_MOST ? (int)fan_in : 0;
}

// Takes a line of the wanted generation, or of the highest so far.
static void visit_line(const char *line, size_t length, visitor *v)
{
    bel_json *json = NULL;
    int64_t generation = 0;
    bel_status *status = bel_json_parse(line, length, BEL_JOURNAL_FILE, &json);
    bel_status_ignore(status); // an incomplete line
    if (json == NULL) return;
    const bel_json_value *root = bel_json_root(json);
    (void)bel_json_i64(root, "generation", &generation);
    bool asked = generation > 0 && generation < UINT32_MAX && generation >= v->found &&
                 (v->wanted == 0 || generation == v->wanted);
    if (asked) {
        v->found = (uint32_t)generation;
        if (v->replicas != NULL) {
            read_assignment(root, v);
            read_relays(root, v);
        }
    }
    bel_json_destroy(json);
}

// Skips an absent file: the first master of a model finds no journal.
static bel_status *journal_visit(const char *model_dir, visitor *v)
{
    char *path = bel_path_join(model_dir, BEL_JOURNAL_FILE), *text = NULL;
    size_t size = 0;
    bel_status *status = bel_file_read(path, &text, &size);
    bel_free(path);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status);
        return NULL;
    }
    if (status != NULL) return status;
    const char *next = text;
    while (size > 0) {
        const char *newline = memchr(next, '\n', size);
        size_t length = newline != NULL ? (size_t)(newline - next) : size;
        visit_line(next, length, v);
        length += newline != NULL;
        next += length;
        size -= length;
    }
    bel_free(text);
    return NULL;
}

bel_status *bel_journal_generation(const char *model_dir, uint32_t *out_generation)
{
    visitor v = {0};
    *out_generation = 0;
    BEL_TRY(journal_visit(model_dir, &v));
    *out_generation = v.found;
    return NULL;
}

bool bel_journal_assignment(const char *model_dir, uint32_t generation, int worker_count,
                            int *out_replicas, int *out_fan_in, int *out_hosts)
{
    visitor v = {.wanted = generation,
                 .replicas = out_replicas,
                 .hosts = out_hosts,
                 .worker_count = worker_count};
    bel_status_ignore(journal_visit(model_dir, &v)); // then it is unknown
    if (v.has_assignment && out_fan_in != NULL) *out_fan_in = v.fan_in;
    return v.has_assignment;
}
