// What control groups leave to this process, which a container or a service manager has limited.
#ifndef BELFRY_BASE_CGROUP_H
#define BELFRY_BASE_CGROUP_H

#include <stdint.h>

// The least that the memory cgroups of this process, of version 1 or 2, leave to all processes in
// them together, in bytes; UINT64_MAX: no limit. `root` stands in front of /proc and /sys: "", but
// in tests.
uint64_t bel_cgroup_memory_limit(const char *root);

// The same of cpu cgroups' quotas, in cores, a part of one as a whole; UINT64_MAX: no limit.
uint64_t bel_cgroup_core_limit(const char *root);

// The same of pids cgroups: processes and threads, those that run already among them.
uint64_t bel_cgroup_thread_limit(const char *root);

#endif
