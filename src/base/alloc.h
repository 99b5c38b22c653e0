// Memory. Small bookkeeping (names, lists, nodes) uses the bel_x… calls, which never return NULL:
// without memory the process ends with one line, as it could do nothing sensible. Memory whose size
// depends on data or parameters uses bel_pages_create, which reports a status.
#ifndef BELFRY_BASE_ALLOC_H
#define BELFRY_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

void *bel_xmalloc(size_t size);
void *bel_xcalloc(size_t count, size_t size);
void *bel_xrealloc(void *pointer, size_t size);
char *bel_xstrdup(const char *text);
char *bel_xstrndup(const char *text, size_t length);
void bel_free(void *pointer);

// Grows an array to hold at least `needed` elements: doubles the capacity, keeps the contents.
void *bel_xgrow(void *array, size_t *capacity, size_t needed, size_t element_size);

// Allocates zeroed memory for parameters and activations: 64-byte aligned, with huge pages if the
// system provides them. `touch` writes every page now, so that the first step does not pay for it.
// `what` names the memory in the error. RESOURCE_EXHAUSTED: not enough memory. Free with
// bel_pages_destroy.
bel_status *bel_pages_create(size_t size_bytes, bool touch, const char *what,
                             void **out_memory) BEL_MUST_USE;
void bel_pages_destroy(void *memory, size_t size_bytes);
// Frees the memory and keeps the addresses: zeros, which cost nothing until they are written.
void bel_pages_forget(void *memory, size_t size_bytes);

// Checked size arithmetic: false on overflow.
static inline bool bel_size_mul(size_t a, size_t b, size_t *out_product)
{
    return !__builtin_mul_overflow(a, b, out_product);
}
static inline bool bel_size_add(size_t a, size_t b, size_t *out_sum)
{
    return !__builtin_add_overflow(a, b, out_sum);
}

#endif
