// Trainings as processes of their own, some side by side: the folds of a cross-validation, the
// trials of a search. Each is a command that knows nothing of the others; what it printed is its
// result, in a file.
#ifndef BELFRY_LAUNCH_TRIALS_H
#define BELFRY_LAUNCH_TRIALS_H

#include "base/linux_process.h"

typedef struct bel_trial {
    char *const *arguments; // the program's name first, NULL at the end
    const char *output;     // the file for standard output, written anew
    const char *log;        // the file for standard error, to which is appended
    bel_linux_end end;      // result: how it ended, where `ended` was called
} bel_trial;

typedef struct bel_trials_config {
    const char *program; // path of the executable
    bel_trial *trials;
    int count;
    int side_by_side; // so many at once, at least 1
    // A trial has ended, whatever its exit code; on the calling thread. False: no more are started,
    // and those that run are asked to save and end. Not called any more then.
    bool (*ended)(void *context, int trial);
    void *context;
} bel_trials_config;

// Runs them in their order. SIGINT and SIGTERM are passed on once, a second one kills; then
// *out_signal is its number, otherwise 0. Whoever has not ended 30 s after it was asked to gets
// SIGKILL. When this process is killed, trials save and end (BEL_TRIALS_STARTER). Errors are those
// of starting, and of the files. Called by the process's first thread.
bel_status *bel_trials_run(const bel_trials_config *config, int *out_signal) BEL_MUST_USE;

// The variable that tells a trial whose end is its own, too.
#define BEL_TRIALS_STARTER "BELFRY_TRIALS_STARTER"

// The variable that tells a trial, and whom it starts, "1/4": of four that may run at once it is in
// place 1, in which no other one is as long as it runs. Such trials share a machine's GPUs.
#define BEL_TRIALS_PLACE "BELFRY_TRIALS_PLACE"

// Reads it; 0 and 0 where it is not set.
void bel_trials_place(int *out_place, int *out_places);

// In a trial, at its start: SIGINT comes when its starter ends. Elsewhere it does nothing.
void bel_trials_follow_starter(void);

#endif
