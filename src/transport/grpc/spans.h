// Spans of memory that gRPC refers to instead of copying them. It may still do so when their
// message is sent and their call over: bytes wait in the connection to be encrypted and written.
// Only the end of the last slice tells that the memory may go, so every slice is counted.
// Thread-safe.
#ifndef BELFRY_TRANSPORT_GRPC_SPANS_H
#define BELFRY_TRANSPORT_GRPC_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bel_spans bel_spans;

bel_spans *bel_spans_create(void); // with one holder, the caller
void bel_spans_retain(bel_spans *spans);
void bel_spans_release(bel_spans *spans);

// A span begins, or ceases, to be referred to; on any thread.
void bel_spans_begin(bel_spans *spans);
void bel_spans_end(void *spans);

// Waits until none is referred to. False: not by `deadline_ns` (bel_clock_ns).
bool bel_spans_wait(bel_spans *spans, int64_t deadline_ns);

#endif
