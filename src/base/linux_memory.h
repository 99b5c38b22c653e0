// Pages from the kernel.
#ifndef BELFRY_BASE_LINUX_MEMORY_H
#define BELFRY_BASE_LINUX_MEMORY_H

#include <stddef.h>

// Zeroed pages, huge where transparent huge pages are allowed; NULL without memory.
void *bel_linux_map_pages(size_t size_bytes);
void bel_linux_unmap_pages(void *memory, size_t size_bytes);
// They stay mapped, and are zeros again.
void bel_linux_forget_pages(void *memory, size_t size_bytes);

// Pages of a file that is mapped to be read, as far as they lie in these bytes as a whole: they
// take no memory of this process any more, and are read again when they are looked at.
void bel_linux_drop_pages(const void *mapped, size_t size_bytes);

// Bytes of a file, mapped to be read, will be read from the disk into huge pages where the file
// system can. Bytes that are in memory already stay as they are.
void bel_linux_read_huge_pages(const void *mapped, size_t size_bytes);

// Makes malloc of this process keep what is freed, blocks of megabytes as well, instead of giving
// it back to the system at once, and for all threads together: for code that takes and frees such
// blocks all the time. Threads that have used malloc before keep an arena of their own.
void bel_linux_keep_freed_memory(void);

#endif
