// Waits of the main thread that may last forever: it opens a pipe without a writer, or a file on a
// file system that does not answer. During one, a log line reports it every 30 s, and a signal
// handler may end the process at once, since no step has been made.
#ifndef BELFRY_BASE_LONG_WAIT_H
#define BELFRY_BASE_LONG_WAIT_H

#include <stdbool.h>
#include <stdint.h>

// `what` ("reading train.csv") must stay valid until the end. Waits of other threads are ignored.
// Waits may be nested; the innermost one is named.
typedef struct bel_long_wait {
    const char *what;
    int64_t begun_ns;
    int64_t said; // number of logged lines
    struct bel_long_wait *outer;
    bool counts; // it is the main thread's
} bel_long_wait;

void bel_long_wait_begin(bel_long_wait *wait, const char *what);
void bel_long_wait_end(bel_long_wait *wait);

// Returns true if the main thread is in a wait, and no step can have been made yet. Safe in signal
// handlers.
bool bel_long_wait_is_on(void);

// Remembers a signal that asked the process to end outside of a wait; 0: none. A wait that begins
// later and takes more than a second raises it again. Safe in signal handlers.
void bel_long_wait_note_signal(int number);

// Marks the beginning of a job's training; until a call with `false`, the function above ignores
// waits.
void bel_long_wait_note_training(bool trains);

#endif
