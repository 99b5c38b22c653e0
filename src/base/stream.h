// Stores past the caches, for arrays that are larger than the caches. A plain store reads a line
// before it changes it; these only write it. A reader then finds it in memory, as it would at the
// end of a pass over so large an array. On other processors than x86-64 they are plain stores.
#ifndef BELFRY_BASE_STREAM_H
#define BELFRY_BASE_STREAM_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Copies `n` floats. `to` is aligned to 16 bytes; the arrays do not overlap.
static inline void bel_stream_floats(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
#if defined(__x86_64__)
    for (; i + 4 <= n; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
#endif
    memcpy(to + i, from + i, (size_t)(n - i) * sizeof *to);
}

// Orders these stores before all later ones of this thread. Without it another thread may see a
// flag that says that the values are there, but not the values.
static inline void bel_stream_fence(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

#endif
