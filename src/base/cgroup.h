// Control-group limits of this process, set by a container or a service manager.
#ifndef BELFRY_BASE_CGROUP_H
#define BELFRY_BASE_CGROUP_H

#include <stdint.h>

// Returns the smallest limit of this process's memory cgroups, of version 1 or 2, shared by all
// their processes, in bytes; UINT64_MAX: no limit. `root` is a prefix of /proc and /sys: "" except
// in tests.
uint64_t bel_cgroup_memory_limit(const char *root);

// The same for quotas of cpu cgroups, in cores, rounded up; UINT64_MAX: no limit.
uint64_t bel_cgroup_core_limit(const char *root);

// The same for pids cgroups: processes and threads, including the running ones.
uint64_t bel_cgroup_thread_limit(const char *root);

#endif
