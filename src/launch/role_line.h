// A line of a role's log, taken apart and put together again for people: in `belfry local train`
// while it happens, in `belfry jobs stream-logs` from the files.
#ifndef BELFRY_LAUNCH_ROLE_LINE_H
#define BELFRY_LAUNCH_ROLE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/str.h"

// The figures of a progress object. NAN: not known.
typedef struct bel_progress {
    int64_t step, last_step, workers; // workers is 0 when it is not said, last_step -1 when a loop
                                      // of the program's own decides
    double loss, examples_per_second, eta_seconds;
} bel_progress;

// False when the text is no progress object.
bool bel_progress_parse(const char *json, bel_progress *out_progress);

// "step 120/1000  loss = 0.31  5120 examples/s  ETA 1 min 02 s", as training in one process says
// it.
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
    double time;         // seconds since 1970; 0: it does not say
    bel_str text;        // the message, or the progress as people read it
    bel_progress progress;
    int64_t lost_pid;    // the master has lost this process; 0: the line says nothing of the kind
    bool begins;         // the master has met its members, and training begins
    bool leaves;         // the process was told to go, and ends
    bool carries;        // a process is about to run on another host, of which the text is the name
    int64_t carried_pid; // that process; 0: the line says nothing of the kind
    int64_t carried_signal;          // it was killed by that; 0: as above
    int64_t crash_signal;            // the process crashes (base/crash.h); 0: it does not
    int64_t crash_step, crash_block; // where; -1: before the first, or not in the input
} bel_role_line;

// Reads a line without its newline. Deinit in any case.
void bel_role_line_init(bel_role_line *out_line, const char *bytes, size_t length);
void bel_role_line_deinit(bel_role_line *line);

// Appends the line with a newline: "[worker 1] warning: …", without the name when that is NULL.
void bel_role_line_write(const bel_role_line *line, const char *name, bel_str *out);

// The same as JSON: the object with "process":"worker 1" as its first member; a FOREIGN line
// becomes one.
void bel_role_line_write_json(const bel_role_line *line, const char *bytes, size_t length,
                              const char *name, bel_str *out);

#endif
