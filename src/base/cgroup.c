// Lines of /proc/self/cgroup are "0::/group" for version 2 and "9:memory:/group", with several
// names between commas, for version 1. A limit holds for the groups below it as well, so all on
// the way up are read. Inside of a container the group may be named as on the host, where it is
// not mounted: then what is read at the mounted root is the container's own.
#include "base/cgroup.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

// The number in a file; UINT64_MAX: there is none ("max"), or no such file.
static uint64_t read_limit(const char *path)
{
    uint64_t limit;
    FILE *file = fopen(path, "re");
    if (file == NULL) return UINT64_MAX;
    bool found = fscanf(file, "%" SCNu64, &limit) == 1;
    fclose(file);
    return found ? limit : UINT64_MAX;
}

// The least limit from `group` ("/a/b") up to the mounted root.
static uint64_t least_limit(const char *mount, const char *group, const char *name)
{
    uint64_t least = UINT64_MAX;
    char *path = bel_strf("%s%s", mount, group);
    size_t top = strlen(mount);
    for (bool more = true; more;) {
        char *file = bel_path_join(path, name);
        uint64_t limit = read_limit(file);
        bel_free(file);
        if (limit < least) least = limit;
        char *slash = strrchr(path + top, '/');
        more = slash != NULL;
        if (more) *slash = '\0';
    }
    bel_free(path);
    return least;
}

uint64_t bel_cgroup_memory_limit(const char *root)
{
    uint64_t least = UINT64_MAX;
    char *path = bel_strf("%s/proc/self/cgroup", root), line[4096];
    char *mount_1 = bel_strf("%s/sys/fs/cgroup/memory", root);
    char *mount_2 = bel_strf("%s/sys/fs/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
        if (group == NULL) continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool second = names[1] == '\0';
        if (!second && strstr(names, "memory") == NULL) continue;
        uint64_t limit = second ? least_limit(mount_2, group, "memory.max")
                                : least_limit(mount_1, group, "memory.limit_in_bytes");
        if (limit < least) least = limit;
    }
    if (file != NULL) fclose(file);
    bel_free(mount_2);
    bel_free(mount_1);
    bel_free(path);
    return least;
}
