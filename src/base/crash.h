// Crash report: one line on stderr, with the step or the block of the input, before the signal ends
// the process as usual. Other processes learn from it what crashed, and whether the crash repeats.
#ifndef BELFRY_BASE_CRASH_H
#define BELFRY_BASE_CRASH_H

#include <stdbool.h>
#include <stdint.h>

// Reports `message`, one line that is copied, at a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
// SIGABRT). With `instead` it replaces an earlier message, and handlers of other code, such as a
// sanitizer; without it they stay.
void bel_crash_watch(const char *message, bool instead);

// Sets the step that this process works on. Any thread may call it.
void bel_crash_set_step(int64_t step);

// Sets the block of the input that this thread reads; -1: no block. Batches are read ahead of their
// steps, so when a map crashes, only the block is the same each time.
void bel_crash_set_block(int64_t block);

#endif
