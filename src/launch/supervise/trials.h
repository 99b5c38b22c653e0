// Runner for trainings in separate processes, some in parallel: the folds of a cross-validation,
// the trials of a search. Each is a command that is independent of the others; its result is its
// output, in a file.
#ifndef BELFRY_LAUNCH_SUPERVISE_TRIALS_H
#define BELFRY_LAUNCH_SUPERVISE_TRIALS_H

#include "base/linux_process.h"

typedef struct bel_trial {
    char *const *arguments; // starts with the program's name; ends with NULL
    const char *output;     // file for standard output, overwritten
    const char *log;        // file for standard error, appended to
    bel_linux_end end;      // result: how it ended; set before `ended` is called
} bel_trial;

typedef struct bel_trials_config {
    const char *program; // path of the executable
    bel_trial *trials;
    int count;
    int side_by_side; // number of parallel trials, at least 1
    // Called on the calling thread when a trial has exited, whatever its exit code. False: no more
    // trials start, running ones are asked to save and end, and `ended` is not called again.
    bool (*ended)(void *context, int trial);
    void *context;
} bel_trials_config;

// Runs the trials in order. The first SIGINT or SIGTERM is forwarded, a second one kills;
// *out_signal is then its number, otherwise 0. A trial still running 30 s after a request to end
// gets SIGKILL. If this process is killed, trials save and end (BEL_TRIALS_STARTER). Returns only
// errors of starting and of the files. Call it on the process's first thread.
bel_status *bel_trials_run(const bel_trials_config *config, int *out_signal) BEL_MUST_USE;

// Environment variable with the process whose end is also the trial's.
#define BEL_TRIALS_STARTER "BELFRY_TRIALS_STARTER"

// Environment variable for a trial and its descendants, e.g. "1/4": place 1 of 4 parallel trials.
// No other running trial has that place. Such trials share a machine's GPUs.
#define BEL_TRIALS_PLACE "BELFRY_TRIALS_PLACE"

// Reads BEL_TRIALS_PLACE; 0 and 0 if unset.
void bel_trials_place(int *out_place, int *out_places);

// In a trial, at its start: arranges for SIGINT when its starter ends. Elsewhere does nothing.
void bel_trials_follow_starter(void);

#endif
