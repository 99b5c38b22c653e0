// Cores, futexes and scheduling through sched_getaffinity and futex. Cores are counted by the
// affinity mask, which may have fewer than the machine. Futexes whose words belong to one process
// are private, and their waits are unbounded. Any wait may end early, so the caller checks its word
// again, and the code that changes the word wakes. bel_linux_give_way affects only the calling
// thread; a system that refuses it schedules as before.
#define _GNU_SOURCE
#include "base/linux_sched.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

int bel_linux_affinity_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

// Adds a part of a list, "3" or "0-3".
static bool add_processors(const char *part, size_t length, cpu_set_t *set)
{
    const char *dash = memchr(part, '-', length);
    size_t first_length = dash != NULL ? (size_t)(dash - part) : length;
    int64_t first, last;
    if (!bel_parse_i64(part, first_length, &first)) return false;
    last = first;
    if (dash != NULL && !bel_parse_i64(dash + 1, length - first_length - 1, &last)) return false;
    if (first < 0 || last < first || last >= CPU_SETSIZE) return false;
    for (int64_t cpu = first; cpu <= last; cpu++)
        CPU_SET((size_t)cpu, set);
    return true;
}

bel_status *bel_linux_run_on(const char *list)
{
    cpu_set_t set, may;
    CPU_ZERO(&set);
    for (const char *part = list;;) {
        size_t length = strcspn(part, ",");
        if (!add_processors(part, length, &set))
            return BEL_ERR(BEL_INVALID_ARGUMENT, "expected processors such as 0-3,8, got \"%s\"",
                           list);
        if (part[length] == '\0') break;
        part += length + 1;
    }
    if (sched_getaffinity(0, sizeof may, &may) != 0) may = set;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && !CPU_ISSET(cpu, &may))
            return BEL_ERR(BEL_INVALID_ARGUMENT, "this process may not use processor %zu", cpu);
    if (sched_setaffinity(0, sizeof set, &set) == 0) return NULL;
    return BEL_ERR(BEL_UNAVAILABLE, "cannot choose processors: %s", strerror(errno));
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
