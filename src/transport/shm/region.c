// A region is a descriptor and a mapping from its beginning; the owner's is writable. The
// descriptor stays open, to be sent to peers and to map parts of it elsewhere. A reader checks the
// seals before the size: once sealed, the size is final, and no later access can be past the end.
// Sizes and offsets are multiples of the page size.
#include "transport/shm/region.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/linux_shared.h"

struct bel_shm_region {
    int descriptor;
    uint8_t *memory;
    size_t bytes;
    bool is_own;
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bel_shm_region *region_make(int descriptor, void *memory, size_t bytes, bool is_own)
{
    bel_shm_region *region = bel_xcalloc(1, sizeof *region);
    *region = (bel_shm_region){
        .descriptor = descriptor, .memory = memory, .bytes = bytes, .is_own = is_own};
    return region;
}

bel_status *bel_shm_region_create(const char *name, size_t bytes, bel_shm_region **out_region)
{
    size_t page = page_bytes();
    if (bytes == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "region \"%s\" has no bytes", name);
    if (bytes > SIZE_MAX - page) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "region \"%s\" of %zu bytes is too large", name,
                       bytes);
    }
    size_t rounded = (bytes + page - 1) / page * page;
    int descriptor = -1;
    void *memory = NULL;
    BEL_TRY(bel_linux_shared_create(name, rounded, &descriptor, &memory));
    *out_region = region_make(descriptor, memory, rounded, true);
    return NULL;
}

bel_status *bel_shm_region_keep(int descriptor, size_t bytes, bel_shm_region **out_region)
{
    size_t page = page_bytes(), rounded = (bytes + page - 1) / page * page;
    void *memory = NULL;
    int reading = -1;
    BEL_TRY(bel_linux_shared_keep(descriptor, rounded, &reading, &memory));
    *out_region = region_make(reading, memory, rounded, true);
    return NULL;
}

// Checks seals, then size, then maps; the region owns the descriptor only on success.
static bel_status *open_sealed(int descriptor, size_t least_bytes, bel_shm_region **out_region)
{
    if (!bel_linux_shared_is_sealed(descriptor)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a region's descriptor is no sealed memfd");
    }
    struct stat state; // the seals hold: the size is final
    if (fstat(descriptor, &state) != 0 || state.st_size <= 0 ||
        (size_t)state.st_size < least_bytes || (size_t)state.st_size % page_bytes() != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a region has %lld bytes, expected %zu or more",
                       (long long)state.st_size, least_bytes);
    }
    void *memory = bel_linux_shared_map(descriptor, (size_t)state.st_size);
    if (memory == NULL) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot map a region of %lld bytes",
                       (long long)state.st_size);
    }
    *out_region = region_make(descriptor, memory, (size_t)state.st_size, false);
    return NULL;
}

bel_status *bel_shm_region_open(int descriptor, size_t least_bytes, bel_shm_region **out_region)
{
    bel_status *status = open_sealed(descriptor, least_bytes, out_region);
    if (status != NULL && descriptor >= 0) close(descriptor);
    return status;
}

void bel_shm_region_destroy(bel_shm_region *region)
{
    if (region == NULL) return;
    bel_linux_shared_unmap(region->memory, region->bytes);
    close(region->descriptor);
    bel_free(region);
}

void *bel_shm_region_memory(const bel_shm_region *region)
{
    return region->memory;
}

size_t bel_shm_region_bytes(const bel_shm_region *region)
{
    return region->bytes;
}

int bel_shm_region_descriptor(const bel_shm_region *region)
{
    return region->descriptor;
}

// True if the part is within the region; the difference cannot overflow, a sum could.
static bool shm_region_holds(const bel_shm_region *region, size_t offset, size_t bytes)
{
    return offset <= region->bytes && bytes <= region->bytes - offset;
}

// From the first byte's page to the end of the last byte's page.
void bel_shm_region_touch(bel_shm_region *region, size_t offset, size_t bytes)
{
    BEL_CHECK(region->is_own && shm_region_holds(region, offset, bytes));
    if (bytes == 0) return;
    size_t page = page_bytes(), begin = offset / page * page;
    size_t end = (offset + bytes + page - 1) / page * page;
    if (bel_linux_shared_populate(region->memory + begin, end - begin)) return;
    for (size_t at = begin; at < end; at += page) { // for a kernel too old to do it at once
        volatile uint8_t *byte = region->memory + at;
        *byte = *byte;
    }
}

bel_status *bel_shm_region_map(const bel_shm_region *region, size_t offset, size_t bytes, void *at)
{
    size_t page = page_bytes();
    if (!shm_region_holds(region, offset, bytes) || bytes == 0 || offset % page != 0 ||
        bytes % page != 0 || (uintptr_t)at % page != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "cannot map %zu bytes at offset %zu of a region of %zu: not within it, or "
                       "no whole pages",
                       bytes, offset, region->bytes);
    }
    if (bel_linux_shared_map_at(region->descriptor, offset, bytes, at)) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot map %zu bytes of a region", bytes);
}
