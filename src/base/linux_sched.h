// Cores, futexes and thread signals: calls that only Linux has.
#ifndef BELFRY_BASE_LINUX_SCHED_H
#define BELFRY_BASE_LINUX_SCHED_H

#include <stdatomic.h>
#include <stdint.h>

#include "belfry/status.h"

// Returns the number of cores in this process's affinity mask.
int bel_linux_affinity_cores(void);

// Lets the calling thread, and those that it starts later, run only on the processors of a list
// such as "0-3,8". INVALID_ARGUMENT: another text, or a processor that this process may not use.
bel_status *bel_linux_run_on(const char *list) BEL_MUST_USE;

// Lowers the priority of the calling thread, which moves data for threads that compute: when it
// wakes and no core is idle, it waits for its turn instead of interrupting them. On busy cores a
// cluster makes a tenth to a fifth more steps this way, as frames that arrive meanwhile are
// processed together.
void bel_linux_give_way(void);

// Lowers the priority of the calling thread for good: on busy cores it gets about a tenth of the
// time of a thread that computes, and more on idle ones.
void bel_linux_lower_priority(void);

// Sleeps while *word == expected; may wake early. The word belongs only to this process.
void bel_linux_futex_wait(atomic_uint *word, unsigned expected);
void bel_linux_futex_wake_one(atomic_uint *word);
void bel_linux_futex_wake_all(atomic_uint *word);

// The same for a word in shared memory, and for at most `timeout_ns`, below a second.
void bel_linux_shared_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);
void bel_linux_shared_futex_wake_all(_Atomic uint32_t *word);

#endif
