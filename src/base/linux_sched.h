// Cores, futexes and thread signals: calls that only Linux has.
#ifndef BELFRY_BASE_LINUX_SCHED_H
#define BELFRY_BASE_LINUX_SCHED_H

#include <stdatomic.h>
#include <stdint.h>

// Cores in this process's affinity mask.
int bel_linux_affinity_cores(void);

// Sleeps while *word == expected; may wake early.
void bel_linux_futex_wait(atomic_uint *word, unsigned expected);
void bel_linux_futex_wake_one(atomic_uint *word);
void bel_linux_futex_wake_all(atomic_uint *word);

#endif
