// Pages from the kernel.
#ifndef BELFRY_BASE_LINUX_MEMORY_H
#define BELFRY_BASE_LINUX_MEMORY_H

#include <stddef.h>

// Maps zeroed pages, huge ones if transparent huge pages are allowed; NULL without memory.
void *bel_linux_map_pages(size_t size_bytes);
void bel_linux_unmap_pages(void *memory, size_t size_bytes);
// Drops their contents: they stay mapped, and are zeros again.
void bel_linux_forget_pages(void *memory, size_t size_bytes);

// Drops the full pages in this range of a file mapped for reading. They use no memory of this
// process any more, and are read again when needed.
void bel_linux_drop_pages(const void *mapped, size_t size_bytes);

// Lets the system read these bytes of a file, mapped for reading, from the disk into huge pages if
// the file system can. Bytes that are in memory already stay as they are.
void bel_linux_read_huge_pages(const void *mapped, size_t size_bytes);

// Makes malloc of this process keep freed memory, also blocks of megabytes, instead of returning it
// to the system at once, and share it between all threads. For code that constantly allocates and
// frees such blocks. Threads that have used malloc before keep separate arenas.
void bel_linux_keep_freed_memory(void);

#endif
