// Parser and printer for lines of a role's log: live in `belfry local train`, from the files in
// `belfry jobs stream-logs`.
#ifndef BELFRY_LAUNCH_TASK_ROLE_LINE_H
#define BELFRY_LAUNCH_TASK_ROLE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/str.h"

// Figures of a progress object. NAN: unknown.
typedef struct bel_progress {
    int64_t step, last_step, workers; // workers is 0 if absent; last_step is -1 if the program's
                                      // own loop decides
    double loss, examples_per_second, eta_seconds;
} bel_progress;

// False: the text is not a progress object.
bool bel_progress_parse(const char *json, bel_progress *out_progress);

// Appends "step 120/1000  loss = 0.31  5120 examples/s  ETA 1 min 02 s", as training in one process
// prints it.
void bel_progress_write(const bel_progress *progress, bel_str *out);

typedef enum bel_role_line_kind {
    BEL_ROLE_LINE_MESSAGE,
    BEL_ROLE_LINE_PROGRESS,
    BEL_ROLE_LINE_ERROR,   // the error that ends a process
    BEL_ROLE_LINE_FOREIGN, // not Belfry's: a print of a model, a sanitizer, the C library
} bel_role_line_kind;

typedef struct bel_role_line {
    bel_role_line_kind kind;
    bel_log_level level; // FOREIGN counts as a warning
    double time;         // seconds since 1970; 0: absent
    bel_str text;        // the message, or the progress in readable form
    bel_progress progress;
    int64_t lost_pid;       // the process that the master has lost; 0: no such event
    bool begins;            // the master has met its members, and training begins
    bool leaves;            // the process was asked to leave, and exits
    bool carries;           // a process is about to run on another host; `text` is its name
    int64_t carried_pid;    // pid of that process; 0: no such event
    int64_t carried_signal; // the signal that killed it; 0: none
    int64_t crash_signal;   // the process crashes (base/crash.h); 0: no crash
    int64_t crash_step, crash_block; // position; -1: before the first, or outside the input
} bel_role_line;

// Parses a line without its newline. Always call deinit.
void bel_role_line_init(bel_role_line *out_line, const char *bytes, size_t length);
void bel_role_line_deinit(bel_role_line *line);

// Appends the line with a newline: "[worker 1] warning: …"; without the prefix if `name` is NULL.
void bel_role_line_write(const bel_role_line *line, const char *name, bel_str *out);

// Appends the line as JSON: the object with "process":"worker 1" as its first member. A FOREIGN
// line becomes an object.
void bel_role_line_write_json(const bel_role_line *line, const char *bytes, size_t length,
                              const char *name, bel_str *out);

#endif
