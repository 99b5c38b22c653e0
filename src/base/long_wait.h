// Waits of the main thread that may last for ever: it opens a file of a pipe without a writer, or
// of a file system that does not answer. While one lasts a line of the log says so every 30 s, and
// a signal handler may end the process at once, since no step has been made.
#ifndef BELFRY_BASE_LONG_WAIT_H
#define BELFRY_BASE_LONG_WAIT_H

#include <stdbool.h>
#include <stdint.h>

// `what` ("reading train.csv") must stay until the end. Waits of other threads do not count. Waits
// may be nested; the innermost is named.
typedef struct bel_long_wait {
    const char *what;
    int64_t begun_ns;
    int64_t said; // lines of the log
    struct bel_long_wait *outer;
    bool counts; // it is the main thread's
} bel_long_wait;

void bel_long_wait_begin(bel_long_wait *wait, const char *what);
void bel_long_wait_end(bel_long_wait *wait);

// Whether the main thread is in one, and no step can have been made yet. Safe in signal handlers.
bool bel_long_wait_is_on(void);

// A job begins to train: until `false` is said, waits do not count for the function above.
void bel_long_wait_note_training(bool trains);

#endif
