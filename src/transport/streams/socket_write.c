// Output of a stream on a unix socket: a list of parts, of which the socket takes what it has room
// for. Frames that are wanted go out between messages of the owner. At the end of a stream that was
// accepted, the last frame tells the peer why.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "transport/streams/socket_inner.h"
#include "wire/bytes.h"

enum { MOST_TEXT_BYTES = 4096 }; // a limit for the text of an END

static void put_head(uint8_t *head, size_t count, uint32_t kind)
{
    (void)bel_wire_put(bel_wire_put(head, count, 4), kind, 4);
}

void bel_socket_want_locked(bel_socket_stream *stream, uint32_t kind, const void *bytes,
                            size_t count)
{
    stream->wanted = bel_xgrow(stream->wanted, &stream->wanted_capacity,
                               stream->wanted_bytes + BEL_SOCKET_HEAD_BYTES + count, 1);
    put_head(stream->wanted + stream->wanted_bytes, count, kind);
    if (count > 0)
        memcpy(stream->wanted + stream->wanted_bytes + BEL_SOCKET_HEAD_BYTES, bytes, count);
    stream->wanted_bytes += BEL_SOCKET_HEAD_BYTES + count;
}

void bel_socket_release_output(bel_socket_stream *stream)
{
    bel_stream_message_clear(&stream->message);
    bel_free(stream->control);
    stream->control = NULL;
    stream->out_bytes = stream->out_done = 0;
}

// Lists the parts of the output that are not written yet; returns their number.
static size_t list_output(const bel_socket_stream *stream, struct iovec *parts)
{
    const struct iovec head = {
        .iov_base = stream->control != NULL ? stream->control : (void *)(uintptr_t)stream->head,
        .iov_len = stream->control != NULL ? stream->out_bytes : BEL_SOCKET_HEAD_BYTES};
    size_t count = 0, skip = stream->out_done;
    for (size_t i = 0; i <= stream->message.piece_count; i++) {
        union { // sendmsg never writes to it
            const void *read;
            void *start;
        } memory = {.read = i == 0 ? head.iov_base : stream->message.pieces[i - 1].bytes};
        size_t bytes = i == 0 ? head.iov_len : stream->message.pieces[i - 1].count;
        size_t skipped = skip < bytes ? skip : bytes;
        skip -= skipped;
        if (skipped == bytes) continue;
        parts[count++] = (struct iovec){(uint8_t *)memory.start + skipped, bytes - skipped};
    }
    return count;
}

typedef enum written { WRITTEN, FULL, OVER } written;

// Writes as much of the output as the socket takes. FULL: the endpoint's thread continues, and the
// output belongs to it. OVER: no more can be written. The reader reports a broken connection.
static written write_output(bel_socket_stream *stream)
{
    struct iovec parts[BEL_MESSAGE_PIECES + 1];
    written result = WRITTEN;
    while (result == WRITTEN && stream->out_done < stream->out_bytes) {
        struct msghdr header = {.msg_iov = parts};
        header.msg_iovlen = list_output(stream, parts);
        pthread_mutex_lock(&stream->mutex);
        ssize_t sent = -1;
        if (stream->descriptor < 0) {
            result = OVER;
        } else {
            do
                sent = sendmsg(stream->descriptor, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
            while (sent < 0 && errno == EINTR);
            bool full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
            bool broken = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
            if (sent < 0) result = full && !stream->ending ? FULL : OVER;
            // Out of memory, for example: the reader must learn of it.
            if (sent < 0 && !full && !broken) (void)shutdown(stream->descriptor, SHUT_RDWR);
        }
        if (result == FULL) {
            stream->blocked = true;
            bel_endpoint_rewatch(stream->base.endpoint, stream->descriptor, &stream->watch,
                                 EPOLLIN | EPOLLOUT);
        }
        pthread_mutex_unlock(&stream->mutex);
        if (sent > 0) stream->out_done += (size_t)sent;
    }
    return result;
}

// The last frame tells the peer why.
static void want_end_locked(bel_socket_stream *stream)
{
    const char *text = stream->reason != NULL ? bel_status_message(stream->reason) : "";
    uint8_t bytes[4 + MOST_TEXT_BYTES];
    size_t length = strlen(text);
    if (length > MOST_TEXT_BYTES) length = MOST_TEXT_BYTES;
    bel_code code = stream->reason != NULL ? bel_status_code(stream->reason) : BEL_OK;
    memcpy(bel_wire_put(bytes, (uint32_t)code, 4), text, length);
    bel_socket_want_locked(stream, BEL_SOCKET_END, bytes, 4 + length);
}

// Chooses the next output: frames that are wanted, or the stream's data. None is left: false.
static bool choose_output(bel_socket_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    bool ending = stream->ending;
    if (ending && stream->base.is_server) want_end_locked(stream);
    stream->out_is_last = ending;
    stream->control = stream->wanted;
    stream->out_bytes = stream->wanted_bytes;
    stream->wanted = NULL;
    stream->wanted_bytes = stream->wanted_capacity = 0;
    pthread_mutex_unlock(&stream->mutex);
    if (stream->control != NULL) return true;
    if (ending || !atomic_exchange(&stream->asked, false)) return false;
    stream->base.events.fill(stream->base.events.context, &stream->message);
    if (stream->message.byte_count == 0) return false;
    put_head(stream->head, stream->message.byte_count, BEL_SOCKET_DATA);
    stream->out_bytes = BEL_SOCKET_HEAD_BYTES + stream->message.byte_count;
    return true;
}

void bel_socket_post_locked(bel_socket_stream *stream)
{
    if (stream->over) return;
    bel_stream_retain(&stream->base);
    if (!bel_endpoint_post(stream->base.endpoint, &stream->errand))
        bel_stream_release(&stream->base); // not the last: the caller has one
}

static void let_finish(bel_socket_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    stream->may_finish = true;
    bel_socket_post_locked(stream);
    pthread_mutex_unlock(&stream->mutex);
}

// Sends until there is nothing more. Only the sender is here. kicks returns to 0 only if it has not
// changed since before the output was chosen, so no kick is lost. After the last output it never
// does: fill is not called again.
static void send_next(bel_socket_stream *stream)
{
    for (;;) {
        unsigned seen = atomic_load(&stream->kicks);
        if (stream->out_bytes == 0 && !choose_output(stream)) {
            if (atomic_compare_exchange_strong(&stream->kicks, &seen, 0)) return;
            continue;
        }
        bool is_data = stream->control == NULL;
        written result = write_output(stream);
        if (result == FULL) return;
        bel_socket_release_output(stream);
        if (result == OVER || stream->out_is_last) {
            let_finish(stream);
            return;
        }
        if (is_data) atomic_store(&stream->asked, true); // the preceding message has left
    }
}

void bel_socket_push(bel_socket_stream *stream)
{
    if (atomic_fetch_add(&stream->kicks, 1) == 0) send_next(stream);
}

void bel_socket_kick(bel_stream *base)
{
    bel_socket_stream *stream = (bel_socket_stream *)base;
    atomic_store(&stream->asked, true);
    bel_socket_push(stream);
}

void bel_socket_resume(bel_socket_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    bool resumes = stream->blocked;
    if (resumes) {
        stream->blocked = false;
        bel_endpoint_rewatch(stream->base.endpoint, stream->descriptor, &stream->watch, EPOLLIN);
    }
    pthread_mutex_unlock(&stream->mutex);
    if (resumes) send_next(stream);
}
