// The access log: a line for each request. The file is opened to append, and each line is one
// write, so lines of other processes stay whole. If a reopened file cannot be opened, the old one
// stays in use. A lost line is reported once, as a full disk would lose them all.
#include "serve/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"

struct bel_access_log {
    char *path;
    pthread_mutex_t mutex;
    int descriptor;
    bool failed; // a line was lost, and that is logged
};

static bel_status *open_to_append(const char *path, int *out_descriptor)
{
    *out_descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    return *out_descriptor >= 0 ? NULL : bel_file_error(errno, "open", path);
}

bel_status *bel_access_log_open(const char *path, bel_access_log **out_log)
{
    int descriptor;
    BEL_TRY(open_to_append(path, &descriptor));
    bel_access_log *log = bel_xcalloc(1, sizeof *log);
    log->path = bel_xstrdup(path);
    log->descriptor = descriptor;
    pthread_mutex_init(&log->mutex, NULL);
    *out_log = log;
    return NULL;
}

void bel_access_log_close(bel_access_log *log)
{
    if (log == NULL) return;
    (void)close(log->descriptor);
    pthread_mutex_destroy(&log->mutex);
    bel_free(log->path);
    bel_free(log);
}

bel_status *bel_access_log_reopen(bel_access_log *log)
{
    int descriptor;
    BEL_TRY(open_to_append(log->path, &descriptor));
    pthread_mutex_lock(&log->mutex);
    (void)close(log->descriptor);
    log->descriptor = descriptor;
    log->failed = false;
    pthread_mutex_unlock(&log->mutex);
    return NULL;
}

void bel_access_log_write(bel_access_log *log, const bel_access_entry *entry)
{
    bel_str line = {0};
    bel_str_printf(&line, "{\"time\":%.6f,\"remote\":", bel_clock_wall());
    bel_json_write_string(&line, entry->remote);
    bel_str_puts(&line, ",\"method\":");
    bel_json_write_string(&line, entry->method);
    bel_str_puts(&line, ",\"path\":");
    bel_json_write_string(&line, entry->path);
    if (entry->model != NULL) {
        bel_str_puts(&line, ",\"model\":");
        bel_json_write_string(&line, entry->model);
    }
    if (entry->version >= 0) bel_str_printf(&line, ",\"version\":%lld", (long long)entry->version);
    bel_str_printf(&line, ",\"code\":%d,\"bytes_in\":%zu,\"bytes_out\":%zu,\"ms\":%.3f}\n",
                   entry->code, entry->bytes_in, entry->bytes_out, (double)entry->spent_ns * 1e-6);
    pthread_mutex_lock(&log->mutex);
    ssize_t written = write(log->descriptor, line.text, line.length);
    bool is_news = written != (ssize_t)line.length && !log->failed;
    log->failed = log->failed || is_news;
    int reason = errno;
    pthread_mutex_unlock(&log->mutex);
    bel_str_deinit(&line);
    if (is_news)
        bel_log_write(BEL_LOG_WARN, "%s: lines of the access log are lost: %s", log->path,
                      written < 0 ? strerror(reason) : "the disk is full");
}
