// Memory calls; alloc.h says when to use which. Calls for bookkeeping end the process without
// memory, as reporting that would need more memory. An empty block has one byte, so NULL never
// means an empty request.
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/linux_memory.h"
#include "base/number.h"

_Noreturn static void out_of_memory(size_t size)
{
    char line[80];
    bel_snprintf(line, sizeof line, "belfry: out of memory (%zu bytes wanted)\n", size);
    fputs(line, stderr);
    abort();
}

void bel_check_failed(const char *what, const char *file, int line)
{
    char text[256];
    bel_snprintf(text, sizeof text, "belfry: internal error at %s:%d: %s\n", file, line, what);
    fputs(text, stderr);
    abort();
}

void *bel_xmalloc(size_t size)
{
    void *pointer = malloc(size > 0 ? size : 1);
    if (pointer == NULL) out_of_memory(size);
    return pointer;
}

void *bel_xcalloc(size_t count, size_t size)
{
    void *pointer = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (pointer == NULL) out_of_memory(count * size);
    return pointer;
}

void *bel_xrealloc(void *pointer, size_t size)
{
    void *grown = realloc(pointer, size > 0 ? size : 1);
    if (grown == NULL) out_of_memory(size);
    return grown;
}

char *bel_xstrdup(const char *text)
{
    return bel_xstrndup(text, strlen(text));
}

char *bel_xstrndup(const char *text, size_t length)
{
    char *copy = bel_xmalloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void bel_free(void *pointer)
{
    free(pointer);
}

void *bel_xgrow(void *array, size_t *capacity, size_t needed, size_t element_size)
{
    if (needed <= *capacity) return array;
    size_t grown = *capacity > 0 ? *capacity : 8;
    while (grown < needed)
        grown *= 2;
    size_t bytes;
    if (!bel_size_mul(grown, element_size, &bytes)) out_of_memory(SIZE_MAX);
    *capacity = grown;
    return bel_xrealloc(array, bytes);
}

bel_status *bel_pages_create(size_t size_bytes, bool touch, const char *what, void **out_memory)
{
    void *memory = bel_linux_map_pages(size_bytes > 0 ? size_bytes : 1);
    if (memory == NULL) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot get %zu bytes of memory for %s", size_bytes,
                       what);
    }
    if (touch) memset(memory, 0, size_bytes);
    *out_memory = memory;
    return NULL;
}

void bel_pages_destroy(void *memory, size_t size_bytes)
{
    if (memory != NULL) bel_linux_unmap_pages(memory, size_bytes > 0 ? size_bytes : 1);
}

void bel_pages_forget(void *memory, size_t size_bytes)
{
    bel_linux_forget_pages(memory, size_bytes > 0 ? size_bytes : 1);
}
