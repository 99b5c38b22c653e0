// The log: one line per event on stderr, text or JSON. Thread-safe.
#ifndef BELFRY_BASE_LOG_H
#define BELFRY_BASE_LOG_H

#include <stdbool.h>

#include "belfry/status.h"

typedef enum bel_log_format { BEL_LOG_TEXT, BEL_LOG_JSON } bel_log_format;

// Defaults: INFO, and the format of BELFRY_LOG_FORMAT ("json"; else text). A supervisor sets that
// variable for its children, so it also overrides `format`.
void bel_log_configure(bel_log_level level, bel_log_format format);
bool bel_log_shows(bel_log_level level);
bel_log_format bel_log_get_format(void);

// Prefixes text lines with the local time, "2027-03-01 14:05:09 "; JSON lines always have it. Call
// it before other threads are started.
void bel_log_show_time(bool shown);

void bel_log_write(bel_log_level level, const char *format, ...) BEL_PRINTF(2, 3);

// Logs a line that a program may act on: as JSON it has "event" and "pid" besides its message.
void bel_log_event(bel_log_level level, const char *event, long long pid, const char *format, ...)
    BEL_PRINTF(4, 5);

// Logs a progress line. On a terminal the next log line overwrites it, and it is cut at the
// terminal's width, as a second row would stay; with final true it stays. Elsewhere it is an
// ordinary line, or with JSON format the object in `json`.
void bel_log_progress(const char *text, const char *json, bool final);

// Logs a formatted line of another process, with its newline.
void bel_log_line(bel_log_level level, const char *line);

// Logs the error that ends the process: "belfry: …", or as JSON with "code". On one line, whatever
// bytes a file's name or a user's text added to the message.
void bel_log_failure(const bel_status *status);

// Returns true if stderr is a terminal and the format is text.
bool bel_log_is_interactive(void);

#endif
