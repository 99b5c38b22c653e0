// Streams, events, copies and fills: the API of queued operations, except kernels and graphs.
//
// If host memory is registered, the driver chooses when a copy accesses it: when the copy runs.
// From other host memory the bytes are taken at once. Copies to other host memory are complete when
// the call returns, as with CUDA.
#include "double.h"

#include <stdlib.h>
#include <string.h>

static stream **streams; // all live streams
static size_t stream_count;

int stream_append(stream *s, work *w)
{
    if (s->in != NULL) return capture_add(s, w);
    lane_append(&s->queue, w);
    return SUCCESS;
}

// Finishes all operations in the stream; the host then knows that they are done.
static void finish(stream *s)
{
    if (s->queue.last != NULL) task_finish(s->queue.last);
    host_saw(&s->queue.clock);
}

static int state_of(const device *d)
{
    return d->lost ? ERROR_LAUNCH_FAILED : SUCCESS;
}

// --- Copies and fills ----------------------------------------------------------------------------

static void need_device_memory(const device *d, uint64_t address, size_t bytes, const char *call)
{
    const device *of = memory_device(address);
    unsigned long long at = address;
    char where[192];
    if (of == NULL) die("%s: 0x%llx is no address of a device", call, at);
    if (of != d)
        die("%s: 0x%llx is memory of device %d, the current context is of device %d", call, at,
            of->index, d->index);
    if (memory_find(d, address, bytes) != NULL) return;
    memory_describe(d, address, where, sizeof where);
    die("%s: %zu bytes from 0x%llx on are not in an allocation: %s", call, bytes, at, where);
}

static void need_host_memory(const void *memory, const char *call)
{
    if (memory_device((uintptr_t)memory) != NULL)
        die("%s: %p, the host's side, is memory of a device", call, memory);
}

API(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (bytes == 0) return leave(SUCCESS);
    need_device_memory(d, to, bytes, __func__);
    need_host_memory(from, __func__);
    work w = {.what = COPY_IN, .on = d, .to = to, .host_from = from, .bytes = bytes};
    if (s->in == NULL && !host_is_registered(from, bytes)) {
        char *staged = grow(NULL, bytes);
        memcpy(staged, from, bytes);
        w.host_from = staged;
        w.owns_host_from = true;
    }
    return leave(stream_append(s, &w));
}

API(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (bytes == 0) return leave(SUCCESS);
    need_device_memory(d, from, bytes, __func__);
    need_host_memory(to, __func__);
    work w = {.what = COPY_OUT, .on = d, .from = from, .host_to = to, .bytes = bytes};
    error = stream_append(s, &w);
    if (error == SUCCESS && s->in == NULL && !host_is_registered(to, bytes)) {
        finish(s);
        error = state_of(d);
    }
    return leave(error);
}

API(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (bytes == 0) return leave(SUCCESS);
    need_device_memory(d, to, bytes, __func__);
    need_device_memory(d, from, bytes, __func__);
    if (to - from < bytes || from - to < bytes) die("%s: the two ranges overlap", __func__);
    work w = {.what = COPY_WITHIN, .on = d, .to = to, .from = from, .bytes = bytes};
    return leave(stream_append(s, &w));
}

// The driver copies between any two devices, also without peer access.
API(cuMemcpyPeerAsync,
    (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes, void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (bytes == 0) return leave(SUCCESS);
    if (s->in != NULL) die("%s: copies between devices are not supported in graphs", __func__);
    need_device_memory(device_of_context(to_context, __func__), to, bytes, __func__);
    need_device_memory(device_of_context(from_context, __func__), from, bytes, __func__);
    if (to - from < bytes || from - to < bytes) die("%s: the two ranges overlap", __func__);
    work w = {.what = COPY_BETWEEN, .on = d, .to = to, .from = from, .bytes = bytes};
    return leave(stream_append(s, &w));
}

API(cuMemsetD8Async, (uint64_t address, unsigned char byte, size_t bytes, void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (bytes == 0) return leave(SUCCESS);
    need_device_memory(d, address, bytes, __func__);
    work w = {.what = FILL, .on = d, .to = address, .byte = byte, .bytes = bytes};
    return leave(stream_append(s, &w));
}

// --- Streams -------------------------------------------------------------------------------------

API(cuStreamCreate, (void **out_stream, unsigned flags))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (flags > 1) return leave(ERROR_INVALID_VALUE);
    stream *s = object_create(STREAM, sizeof *s, d);
    lane_begin(&s->queue, s->head.number);
    streams = grow(streams, (stream_count + 1) * sizeof(stream *));
    streams[stream_count++] = s;
    *out_stream = s;
    return leave(SUCCESS);
}

static void end(stream *s)
{
    if (s->in != NULL) capture_leave(s);
    if (s->queue.last != NULL) task_finish(s->queue.last);
    lane_end(&s->queue);
    object_kill(&s->head);
    for (size_t i = 0; i < stream_count; i++)
        if (streams[i] == s) streams[i] = streams[--stream_count];
}

void streams_end(device *d)
{
    for (size_t i = stream_count; i-- > 0;) {
        stream *s = streams[i];
        if (s->head.owner != d) continue;
        if (s->in != NULL) capture_leave(s);
        if (s->queue.last != NULL) task_finish(s->queue.last);
        lane_end(&s->queue);
        streams[i] = streams[--stream_count];
    }
}

// Finishes the stream's operations first, but the host does not know that they are done.
API(cuStreamDestroy_v2, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    end(object_of(handle, STREAM, d, __func__));
    return leave(state_of(d));
}

// The libraries' stand-ins call it to see that a stream exists.
API(cuStreamGetId, (void *handle, unsigned long long *out_id))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    const stream *s = object_of(handle, STREAM, NULL, __func__);
    *out_id = s->head.number;
    return leave(SUCCESS);
}

API(cuStreamSynchronize, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (s->in != NULL) {
        capture_break(s->in);
        return leave(ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    finish(s);
    return leave(state_of(d));
}

// The event may belong to another device.
API(cuStreamWaitEvent, (void *handle, void *event_handle, unsigned flags))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    event *e = object_of(event_handle, EVENT, NULL, __func__);
    if (flags > 1) return leave(ERROR_INVALID_VALUE);
    if (!e->recorded) return leave(SUCCESS);
    if (s->in != NULL || e->in != NULL) return leave(capture_wait(s, e));
    lane_wait(&s->queue, &e->clock, e->at);
    return leave(SUCCESS);
}

// --- Events --------------------------------------------------------------------------------------

API(cuEventCreate, (void **out_event, unsigned flags))
{
    enum { DISABLE_TIMING = 2 };
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    if (flags > 3) return leave(ERROR_INVALID_VALUE);
    event *e = object_create(EVENT, sizeof *e, d);
    e->timed = (flags & DISABLE_TIMING) == 0;
    *out_event = e;
    return leave(SUCCESS);
}

static void forget_record(event *e)
{
    task_drop(e->at);
    vector_free(&e->clock);
    free(e->ends.at);
    e->at = NULL;
    e->in = NULL;
    e->ends = (node_set){NULL, 0};
}

API(cuEventDestroy_v2, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    event *e = object_of(handle, EVENT, d, __func__);
    forget_record(e);
    object_kill(&e->head);
    return leave(SUCCESS);
}

API(cuEventRecord, (void *handle, void *stream_handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    event *e = object_of(handle, EVENT, d, __func__);
    stream *s = object_of(stream_handle, STREAM, d, __func__);
    forget_record(e);
    e->recorded = true;
    e->asked = false;
    e->recorded_ns = now_ns();
    if (s->in != NULL) {
        capture_record(s, e);
        return leave(SUCCESS);
    }
    e->at = task_keep(s->queue.last);
    vector_join(&e->clock, &s->queue.clock);
    return leave(SUCCESS);
}

API(cuEventSynchronize, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    event *e = object_of(handle, EVENT, d, __func__);
    if (e->in != NULL) {
        capture_break(e->in);
        return leave(ERROR_CAPTURED_EVENT);
    }
    if (e->at != NULL) task_finish(e->at);
    host_saw(&e->clock);
    return leave(state_of(d));
}

// The first query is mostly too early on a GPU. Here it always is, unless all earlier
// operations are done.
API(cuEventQuery, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    event *e = object_of(handle, EVENT, d, __func__);
    if (e->in != NULL) {
        capture_break(e->in);
        return leave(ERROR_CAPTURED_EVENT);
    }
    bool early = !e->asked && e->at != NULL && !task_is_done(e->at);
    e->asked = true;
    if (early || (e->at != NULL && !task_try(e->at))) return leave(ERROR_NOT_READY);
    host_saw(&e->clock);
    return leave(state_of(d));
}

// When the stream reached the event.
static int64_t passed_ns(const event *e)
{
    int64_t done = task_done_ns(e->at);
    return done > e->recorded_ns ? done : e->recorded_ns;
}

API(cuEventElapsedTime, (float *out_ms, void *from_handle, void *to_handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    const event *from = object_of(from_handle, EVENT, d, __func__);
    const event *to = object_of(to_handle, EVENT, d, __func__);
    if (!from->timed || !to->timed || !from->recorded || !to->recorded)
        return leave(ERROR_INVALID_HANDLE);
    if (from->in != NULL || to->in != NULL) return leave(ERROR_CAPTURED_EVENT);
    if (!task_is_done(from->at) || !task_is_done(to->at)) return leave(ERROR_NOT_READY);
    *out_ms = (float)((double)(passed_ns(to) - passed_ns(from)) * 1e-6);
    return leave(SUCCESS);
}
