// Cores, futexes and thread signals: calls that only Linux has.
#ifndef BELFRY_BASE_LINUX_SCHED_H
#define BELFRY_BASE_LINUX_SCHED_H

#include <stdatomic.h>
#include <stdint.h>

// Cores in this process's affinity mask.
int bel_linux_affinity_cores(void);

// The calling thread moves data for others that compute: when it wakes and no core is idle, it
// waits for its turn instead of interrupting them. A cluster on busy cores makes a tenth to a fifth
// more steps so, as frames that come meanwhile are taken together.
void bel_linux_give_way(void);

// Sleeps while *word == expected; may wake early.
void bel_linux_futex_wait(atomic_uint *word, unsigned expected);
void bel_linux_futex_wake_one(atomic_uint *word);
void bel_linux_futex_wake_all(atomic_uint *word);

#endif
