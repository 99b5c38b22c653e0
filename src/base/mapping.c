// Mapped files. A file is opened without blocking and checked before it is mapped, so that a pipe
// or a device is an error, not a wait. The descriptor is closed at once: the mapping keeps the
// file.
#include "base/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static bel_status *mapping_map(int descriptor, const char *path, bel_mapping *out_mapping)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "look at", path);
    if (!S_ISREG(info.st_mode)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s is no regular file", path);
    }
    if (info.st_size > 0 && (uintmax_t)info.st_size > SIZE_MAX) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s is too large to be mapped", path);
    }
    bel_mapping mapping = {.data = NULL, .size = (size_t)info.st_size};
    if (mapping.size > 0) {
        void *memory = mmap(NULL, mapping.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (memory == MAP_FAILED) return bel_file_error(errno, "map", path);
        mapping.data = memory;
    }
    *out_mapping = mapping;
    return NULL;
}

bel_status *bel_mapping_open(const char *path, bel_mapping *out_mapping)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_status *status = mapping_map(descriptor, path, out_mapping);
    close(descriptor);
    return status;
}

void bel_mapping_close(bel_mapping *mapping)
{
    if (mapping->data != NULL) {
        union {
            const char *read;
            void *memory;
        } address = {.read = mapping->data}; // munmap needs mmap's pointer
        munmap(address.memory, mapping->size);
    }
    *mapping = (bel_mapping){.data = NULL};
}
