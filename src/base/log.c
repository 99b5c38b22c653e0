// Log lines under one mutex, so that they never mix: a line is made before it and written in one
// call under it. The format is read without it, as it is configured once, before threads start. The
// level may change at any time. A progress line on a terminal has no newline; the next write erases
// it. Messages are cut at 2,047 bytes, except that of the error which ends the process.
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int max_level = BEL_LOG_INFO; // a bel_log_level
static bel_log_format line_format = BEL_LOG_TEXT;
static pthread_once_t format_is_read = PTHREAD_ONCE_INIT;
static bool time_is_shown;
static bool progress_shown; // a progress line is on the terminal, without a newline

static void read_format(void)
{
    const char *format = getenv("BELFRY_LOG_FORMAT");
    if (format != NULL && strcmp(format, "json") == 0) line_format = BEL_LOG_JSON;
}

bool bel_log_shows(bel_log_level level)
{
    return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

bel_log_level bel_log_set_level(bel_log_level level)
{
    return (bel_log_level)atomic_exchange(&max_level, (int)level);
}

void bel_log_configure(bel_log_level level, bel_log_format format)
{
    (void)bel_log_set_level(level);
    line_format = format;
    read_format();
}

bel_log_format bel_log_get_format(void)
{
    pthread_once(&format_is_read, read_format);
    return line_format;
}

void bel_log_show_time(bool shown)
{
    time_is_shown = shown;
}

bool bel_log_is_interactive(void)
{
    const char *terminal = getenv("TERM");
    return bel_log_get_format() == BEL_LOG_TEXT && isatty(STDERR_FILENO) == 1 &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

static void clear_progress_locked(void)
{
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

// Prepends the time to a line of text, if enabled.
static void append_time(bel_str *line)
{
    char text[32];
    time_t now = (time_t)bel_clock_wall();
    struct tm parts;
    bool known = time_is_shown && localtime_r(&now, &parts) != NULL &&
                 strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S ", &parts) > 0;
    if (known) bel_str_puts(line, text);
}

// Returns how many bytes of the text fit into a row of the terminal; one column stays free, for the
// cursor. (Progress has a byte a column.)
static int log_fitting(const char *text)
{
    struct winsize size;
    size_t length = strlen(text);
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known && length >= size.ws_col ? size.ws_col - 1 : (int)length;
}

static const char *const level_names[] = {"error", "warning", "info", "debug"};

// With an `event` the JSON also has that and `pid`.
static void write_line(bel_log_level level, const char *event, long long pid, const char *message)
{
    bel_str line = {0};
    if (bel_log_get_format() == BEL_LOG_JSON) {
        bel_str_printf(&line, "{\"time\":%.3f,\"level\":\"%s\",", bel_clock_wall(),
                       level_names[level]);
        if (event != NULL) bel_str_printf(&line, "\"event\":\"%s\",\"pid\":%lld,", event, pid);
        bel_str_puts(&line, "\"message\":");
        bel_json_write_string(&line, message);
        bel_str_puts(&line, "}\n");
    } else {
        append_time(&line);
        if (level != BEL_LOG_INFO) bel_str_printf(&line, "%s: ", level_names[level]);
        bel_str_printf(&line, "%s\n", message);
    }
    pthread_mutex_lock(&log_mutex);
    clear_progress_locked();
    fwrite(line.text, 1, line.length, stderr);
    pthread_mutex_unlock(&log_mutex);
    bel_str_deinit(&line);
}

void bel_log_write(bel_log_level level, const char *format, ...)
{
    if (!bel_log_shows(level)) return;
    char message[2048];
    va_list args;
    va_start(args, format);
    bel_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    write_line(level, NULL, 0, message);
}

void bel_log_event(bel_log_level level, const char *event, long long pid, const char *format, ...)
{
    if (!bel_log_shows(level) && bel_log_get_format() != BEL_LOG_JSON)
        return; // programs need it at any level
    char message[2048];
    va_list args;
    va_start(args, format);
    bel_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    write_line(level, event, pid, message);
}

void bel_log_line(bel_log_level level, const char *line)
{
    if (!bel_log_shows(level)) return;
    bel_str all = {0};
    if (bel_log_get_format() == BEL_LOG_TEXT) append_time(&all);
    bel_str_puts(&all, line);
    pthread_mutex_lock(&log_mutex);
    clear_progress_locked();
    fwrite(all.text, 1, all.length, stderr);
    pthread_mutex_unlock(&log_mutex);
    bel_str_deinit(&all);
}

void bel_log_progress(const char *text, const char *json, bool final)
{
    if (!bel_log_shows(BEL_LOG_INFO)) return;
    bool is_json = bel_log_get_format() == BEL_LOG_JSON;
    bool stays = is_json || final || !bel_log_is_interactive();
    bel_str line = {0};
    if (!is_json) append_time(&line);
    bel_str_puts(&line, is_json ? json : text);
    if (stays) bel_str_puts(&line, "\n");
    pthread_mutex_lock(&log_mutex);
    clear_progress_locked();
    // In one call: a reader may be at the other end of a pipe.
    fwrite(line.text, 1, stays ? line.length : (size_t)log_fitting(line.text), stderr);
    if (!stays) fflush(stderr);
    progress_shown = !stays;
    pthread_mutex_unlock(&log_mutex);
    bel_str_deinit(&line);
}

void bel_log_failure(const bel_status *status)
{
    bel_str line = {0};
    const char *message = bel_status_message(status);
    if (bel_log_get_format() == BEL_LOG_JSON) {
        bel_str_printf(&line, "{\"time\":%.3f,\"level\":\"error\",\"code\":\"%s\",\"message\":",
                       bel_clock_wall(), bel_code_name(bel_status_code(status)));
        bel_json_write_string(&line, message);
        bel_str_puts(&line, "}\n");
    } else {
        bel_str_puts(&line, "belfry: ");
        for (const char *c = message; *c != '\0'; c++)
            bel_str_append(&line, (unsigned char)*c < 0x20 || *c == 0x7f ? "?" : c, 1);
        bel_str_puts(&line, "\n");
    }
    bel_log_line(BEL_LOG_ERROR, line.text);
    bel_str_deinit(&line);
    bel_log_write(BEL_LOG_DEBUG, "raised at %s", bel_status_trace(status));
}

int bel_status_report(bel_status *status)
{
    int code = bel_status_exit_code(status);
    if (status != NULL) bel_log_failure(status);
    bel_status_destroy(status);
    return code;
}
