// Pages through mmap and madvise. A mapping of 2 MiB or more is aligned to 2 MiB, so that huge
// pages can back it: it is made larger by 2 MiB, and the excess is unmapped at once. Huge pages are
// only advice; a kernel may give small ones. Unmapping needs only addresses and sizes. The settings
// of malloc apply to the entire process.
#define _GNU_SOURCE
#include "base/linux_memory.h"

#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

// Kernels for aarch64 have pages of 4, 16 or 64 KiB.
static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *bel_linux_map_pages(size_t size_bytes)
{
    size_t size = round_up(size_bytes, page_bytes());
    if (size < size_bytes || size > SIZE_MAX - HUGE_PAGE) return NULL;
    size_t slack = size >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *base =
        mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    if (slack == 0) return base;
    size_t head = (HUGE_PAGE - ((uintptr_t)base & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (head > 0) munmap(base, head);
    if (slack > head) munmap(base + head + size, slack - head);
    madvise(base + head, size, MADV_HUGEPAGE);
    return base + head;
}

void bel_linux_unmap_pages(void *memory, size_t size_bytes)
{
    munmap(memory, round_up(size_bytes, page_bytes()));
}

void bel_linux_forget_pages(void *memory, size_t size_bytes)
{
    madvise(memory, round_up(size_bytes, page_bytes()), MADV_DONTNEED);
}

void bel_linux_drop_pages(const void *mapped, size_t size_bytes)
{
    uintptr_t page = page_bytes(), begin = (uintptr_t)mapped, end = begin + size_bytes;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end)
        madvise((char *)(uintptr_t)mapped + (begin - (uintptr_t)mapped), end - begin,
                MADV_DONTNEED);
}

void bel_linux_read_huge_pages(const void *mapped, size_t size_bytes)
{
    madvise((void *)(uintptr_t)mapped, round_up(size_bytes, page_bytes()), MADV_HUGEPAGE);
}

void bel_linux_keep_freed_memory(void)
{
    enum { MMAP_THRESHOLD = 32 << 20, TRIM_THRESHOLD = 256 << 20, TOP_PAD = 16 << 20 };
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD);
    mallopt(M_TOP_PAD, TOP_PAD);
    // One arena: any thread can reuse freed memory. With one for each thread, each arena would keep
    // the peak of its thread.
    mallopt(M_ARENA_MAX, 1);
}
