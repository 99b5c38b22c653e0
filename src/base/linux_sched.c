// Cores, futexes and scheduling through sched_getaffinity and futex. Cores are counted by the
// affinity mask, which may have fewer than the machine. Futexes whose words belong to one process
// are private, and their waits are unbounded. Any wait may end early, so the caller checks its word
// again, and the code that changes the word wakes. bel_linux_give_way affects only the calling
// thread; a system that refuses it schedules as before.
#define _GNU_SOURCE
#include "base/linux_sched.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int bel_linux_affinity_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

void bel_linux_give_way(void)
{
    const struct sched_param none = {0};
    (void)sched_setscheduler(0, SCHED_BATCH, &none); // on refusal it schedules as before
}

void bel_linux_lower_priority(void)
{
    enum { NICE = 10 };
    bel_linux_give_way();
    (void)setpriority(PRIO_PROCESS, 0, NICE); // 0: this thread; on refusal it runs as before
}

void bel_linux_futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void bel_linux_futex_wake_one(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void bel_linux_futex_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void bel_linux_shared_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    const struct timespec timeout = {.tv_nsec = timeout_ns};
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

void bel_linux_shared_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
