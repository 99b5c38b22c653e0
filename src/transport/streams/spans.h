// Spans of memory to which messages refer instead of copying them. gRPC may still refer to them
// after their message is sent and their call has finished: bytes wait in the connection to be
// encrypted and written. Only the end of the last reference shows that the memory may be freed, so
// every one is counted. Thread-safe.
#ifndef BELFRY_TRANSPORT_STREAMS_SPANS_H
#define BELFRY_TRANSPORT_STREAMS_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bel_spans bel_spans;

bel_spans *bel_spans_create(void); // with one holder, the caller
void bel_spans_retain(bel_spans *spans);
void bel_spans_release(bel_spans *spans);

// Count the beginning and the end of a reference to a span; on any thread.
void bel_spans_begin(bel_spans *spans);
void bel_spans_end(void *spans);

// Waits until there are no references. Returns false if there are some at `deadline_ns`
// (bel_clock_ns).
bool bel_spans_wait(bel_spans *spans, int64_t deadline_ns);

#endif
