// Holders and spans are counted separately: the object stays until the last slice ends, which
// may be after its lane has stopped waiting. Waiting is polling: it is short and rare, and slices
// end within gRPC's locks.
#include "transport/streams/spans.h"

#include <stdatomic.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

struct bel_spans {
    atomic_int holders; // this object's: every span is one
    atomic_int count;
};

bel_spans *bel_spans_create(void)
{
    bel_spans *spans = bel_xcalloc(1, sizeof *spans);
    atomic_store(&spans->holders, 1);
    return spans;
}

void bel_spans_retain(bel_spans *spans)
{
    atomic_fetch_add(&spans->holders, 1);
}

void bel_spans_release(bel_spans *spans)
{
    if (atomic_fetch_sub(&spans->holders, 1) == 1) bel_free(spans);
}

void bel_spans_begin(bel_spans *spans)
{
    bel_spans_retain(spans);
    atomic_fetch_add(&spans->count, 1);
}

// The count first, then the holder: a waiter that sees 0 may free the memory, but not this object.
void bel_spans_end(void *spans)
{
    bel_spans *s = spans;
    atomic_fetch_sub(&s->count, 1);
    bel_spans_release(s);
}

bool bel_spans_wait(bel_spans *spans, int64_t deadline_ns)
{
    enum { NAP_NS = 1000000 };
    while (atomic_load(&spans->count) > 0) {
        if (bel_clock_ns() >= deadline_ns) return false;
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return true;
}
