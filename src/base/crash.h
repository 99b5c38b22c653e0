// What a process says when its code crashes: one line on stderr, with the step or the block of the
// input, before the signal ends the process as it would have. Others learn from it what crashed,
// and whether it was the same as before.
#ifndef BELFRY_BASE_CRASH_H
#define BELFRY_BASE_CRASH_H

#include <stdbool.h>
#include <stdint.h>

// From now on a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) says `message`, one line that is
// copied. With `instead` it takes the place of an earlier message, and of handlers that somebody
// else has installed, such as a sanitizer; without it they stay.
void bel_crash_watch(const char *message, bool instead);

// The step that this process works on. From any thread.
void bel_crash_set_step(int64_t step);

// The block of the input that this thread reads; -1: none. Batches are read ahead of their steps,
// so where a map crashes it is the block that is the same each time.
void bel_crash_set_block(int64_t block);

#endif
