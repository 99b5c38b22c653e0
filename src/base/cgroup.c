// Parser of /proc/self/cgroup and the limits in its folders. Lines are "0::/group" for version 2
// and "9:memory:/group", with several names between commas, for version 1. A limit also holds for
// the groups below it, so all groups up to the root are read. Inside a container the group may have
// its name on the host, where it is not mounted: then the mounted root is the container's group.
#include "base/cgroup.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

// Reads the limit in one group's folder; UINT64_MAX: no limit.
typedef uint64_t read_limit(const char *folder);

// Reads up to two numbers and returns their count: 0 if the file contains "max", or is missing.
static int read_numbers(const char *folder, const char *name, int64_t *out_first,
                        int64_t *out_second)
{
    char *path = bel_path_join(folder, name);
    FILE *file = fopen(path, "re");
    int count = file == NULL ? 0 : fscanf(file, "%" SCNd64 " %" SCNd64, out_first, out_second);
    if (file != NULL) fclose(file);
    bel_free(path);
    return count < 0 ? 0 : count;
}

static uint64_t number_in(const char *folder, const char *name)
{
    int64_t limit, rest;
    bool found = read_numbers(folder, name, &limit, &rest) > 0 && limit >= 0;
    return found ? (uint64_t)limit : UINT64_MAX;
}

static uint64_t memory_1(const char *folder)
{
    return number_in(folder, "memory.limit_in_bytes");
}

static uint64_t memory_2(const char *folder)
{
    return number_in(folder, "memory.max");
}

static uint64_t threads_in(const char *folder)
{
    return number_in(folder, "pids.max");
}

// Rounds a partial core up.
static uint64_t cores_of(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0) return UINT64_MAX; // -1: no limit
    return (uint64_t)(quota / period + (quota % period > 0 ? 1 : 0));
}

static uint64_t cores_1(const char *folder)
{
    int64_t quota = -1, period = -1, rest;
    bool found = read_numbers(folder, "cpu.cfs_quota_us", &quota, &rest) > 0 &&
                 read_numbers(folder, "cpu.cfs_period_us", &period, &rest) > 0;
    return found ? cores_of(quota, period) : UINT64_MAX;
}

// "max 100000" or "<quota> <period>".
static uint64_t cores_2(const char *folder)
{
    int64_t quota = -1, period = -1;
    return read_numbers(folder, "cpu.max", &quota, &period) == 2 ? cores_of(quota, period)
                                                                 : UINT64_MAX;
}

// Returns the smallest limit from `group` ("/a/b") up to the mounted root.
static uint64_t least_limit(const char *mount, const char *group, read_limit *read)
{
    uint64_t least = UINT64_MAX;
    char *path = bel_strf("%s%s", mount, group);
    size_t top = strlen(mount);
    for (bool more = true; more;) {
        uint64_t limit = read(path);
        if (limit < least) least = limit;
        char *slash = strrchr(path + top, '/');
        more = slash != NULL;
        if (more) *slash = '\0';
    }
    bel_free(path);
    return least;
}

// Returns the smallest limit of a controller over this process's groups of both versions.
static uint64_t limit_of(const char *root, const char *controller, read_limit *read_1,
                         read_limit *read_2)
{
    uint64_t least = UINT64_MAX;
    char *path = bel_strf("%s/proc/self/cgroup", root), line[4096];
    char *mount_1 = bel_strf("%s/sys/fs/cgroup/%s", root, controller);
    char *mount_2 = bel_strf("%s/sys/fs/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
        if (group == NULL) continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool second = names[1] == '\0';
        if (!second && bel_list_find(names + 1, ",", controller) < 0) continue;
        uint64_t limit =
            second ? least_limit(mount_2, group, read_2) : least_limit(mount_1, group, read_1);
        if (limit < least) least = limit;
    }
    if (file != NULL) fclose(file);
    bel_free(mount_2);
    bel_free(mount_1);
    bel_free(path);
    return least;
}

uint64_t bel_cgroup_memory_limit(const char *root)
{
    return limit_of(root, "memory", memory_1, memory_2);
}

uint64_t bel_cgroup_core_limit(const char *root)
{
    return limit_of(root, "cpu", cores_1, cores_2);
}

uint64_t bel_cgroup_thread_limit(const char *root)
{
    return limit_of(root, "pids", threads_in, threads_in);
}
