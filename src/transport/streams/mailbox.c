// One list of letters to send, one of messages to take. The endpoint's thread adds received
// messages and sends pings. The reader's fields belong to it; the rest is under the mutex. Three
// references keep the mailbox: the owner's, the stream's until its closed event, and the ping's
// alarm's. Messages sent after the end are dropped: members send them again when they join.
//
// A letter goes in parts (BEL_STREAM_MESSAGE_BYTES) and is freed when its last part has left. After
// closing the bell is not rung any more. Closing waits until all letters are sent and, on the side
// that opened the stream, until the peer ends it: ending it from this side may lose data that the
// peer has not received.
#include "transport/streams/mailbox.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

enum { LENGTH_BYTES = 4, PING_MS = 1000 };

typedef struct letter {
    struct letter *next;
    uint8_t *bytes; // to send
    size_t count;
    Bel__Message *message; // to take
} letter;

typedef struct letters {
    letter *first, *last;
} letters;

struct bel_mailbox {
    bel_endpoint *endpoint;
    bel_doorbell *bell;
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t cond;
    int references;
    bel_stream *stream;
    letters out, in;
    letter *sending; // until the message with its last part has left
    size_t sent;     // number of its bytes already in messages
    bool calls;      // it opened the stream
    bool opened, over, closed;
    bel_status *why;
    int64_t heard_ns, said_ns; // when bytes last came, and a message was last sent
    // The reader's, only for the endpoint's thread.
    uint8_t length[LENGTH_BYTES];
    size_t length_done;
    uint8_t *body;
    size_t body_bytes, body_done;
};

// --- Lists ---------------------------------------------------------------------------------------

static void letters_push(letters *list, letter *l)
{
    l->next = NULL;
    if (list->last != NULL) {
        list->last->next = l;
    } else {
        list->first = l;
    }
    list->last = l;
}

static letter *pop_letter(letters *list)
{
    letter *l = list->first;
    if (l == NULL) return NULL;
    list->first = l->next;
    if (list->first == NULL) list->last = NULL;
    return l;
}

static void free_letter(letter *l)
{
    if (l == NULL) return;
    bel_free(l->bytes);
    bel_message_destroy(l->message);
    bel_free(l);
}

// --- Life ----------------------------------------------------------------------------------------

// Releases one reference; the last one frees the mailbox and all letters.
static void release_and_unlock(bel_mailbox *mailbox)
{
    bool last = --mailbox->references == 0;
    pthread_mutex_unlock(&mailbox->mutex);
    if (!last) return;
    letter *l;
    while ((l = pop_letter(&mailbox->out)) != NULL)
        free_letter(l);
    while ((l = pop_letter(&mailbox->in)) != NULL)
        free_letter(l);
    free_letter(mailbox->sending);
    bel_stream_release(mailbox->stream);
    bel_status_destroy(mailbox->why);
    bel_free(mailbox->body);
    pthread_cond_destroy(&mailbox->cond);
    pthread_mutex_destroy(&mailbox->mutex);
    bel_free(mailbox);
}

static bel_mailbox *mailbox_create(bel_endpoint *endpoint, bel_doorbell *bell)
{
    bel_mailbox *mailbox = bel_xcalloc(1, sizeof *mailbox);
    mailbox->endpoint = endpoint;
    mailbox->bell = bell;
    mailbox->references = 2; // the owner's and the stream's
    mailbox->heard_ns = bel_clock_awake_ns();
    pthread_mutex_init(&mailbox->mutex, NULL);
    bel_cond_init(&mailbox->cond);
    return mailbox;
}

// --- The stream's events -------------------------------------------------------------------------

// Sends a long letter in parts, as a stream's message is limited. Closing waits until no letter is
// left.
static void on_fill(void *context, bel_stream_message *message)
{
    bel_mailbox *mailbox = context;
    pthread_mutex_lock(&mailbox->mutex);
    if (mailbox->sending == NULL || mailbox->sent == mailbox->sending->count) {
        free_letter(mailbox->sending); // asked again: the preceding message has left
        mailbox->sending = pop_letter(&mailbox->out);
        mailbox->sent = 0;
    }
    if (mailbox->sending != NULL) {
        size_t left = mailbox->sending->count - mailbox->sent;
        size_t part = left < BEL_STREAM_MESSAGE_BYTES ? left : BEL_STREAM_MESSAGE_BYTES;
        bel_stream_message_copy(message, mailbox->sending->bytes + mailbox->sent, part);
        mailbox->sent += part;
    } else {
        pthread_cond_broadcast(&mailbox->cond);
    }
    pthread_mutex_unlock(&mailbox->mutex);
}

// The length, little-endian, is complete; it is checked before the allocation.
static bel_status *begin_body(bel_mailbox *mailbox)
{
    size_t bytes = 0;
    for (int i = 0; i < LENGTH_BYTES; i++)
        bytes |= (size_t)mailbox->length[i] << (8 * i);
    if (bytes > BEL_MESSAGE_MAX_BYTES) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed control message: %zu bytes", bytes);
    }
    mailbox->body = bel_xmalloc(bytes + 1);
    mailbox->body_bytes = bytes;
    mailbox->body_done = 0;
    return NULL;
}

// A message is complete. A ping ends here: its arrival was its purpose.
static bel_status *finish_body(bel_mailbox *mailbox)
{
    letter *l = bel_xcalloc(1, sizeof *l);
    bel_status *status = bel_message_read(mailbox->body, mailbox->body_bytes, &l->message);
    bel_free(mailbox->body);
    mailbox->body = NULL;
    mailbox->length_done = 0;
    if (status != NULL || l->message->kind_case == BEL__MESSAGE__KIND_PING) {
        free_letter(l);
        return status;
    }
    pthread_mutex_lock(&mailbox->mutex);
    letters_push(&mailbox->in, l);
    bool closed = mailbox->closed;
    pthread_mutex_unlock(&mailbox->mutex);
    if (!closed) bel_doorbell_ring(mailbox->bell);
    return NULL;
}

// Runs on the endpoint's thread. A body of 0 bytes is complete as soon as its length is.
static bel_status *on_received(void *context, const uint8_t *bytes, size_t count)
{
    bel_mailbox *mailbox = context;
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->heard_ns = bel_clock_awake_ns();
    pthread_mutex_unlock(&mailbox->mutex);
    while (count > 0) {
        size_t part;
        if (mailbox->body == NULL) {
            size_t left = LENGTH_BYTES - mailbox->length_done;
            part = count < left ? count : left;
            memcpy(mailbox->length + mailbox->length_done, bytes, part);
            mailbox->length_done += part;
            if (part == left) BEL_TRY(begin_body(mailbox));
        } else {
            size_t left = mailbox->body_bytes - mailbox->body_done;
            part = count < left ? count : left;
            memcpy(mailbox->body + mailbox->body_done, bytes, part);
            mailbox->body_done += part;
        }
        if (mailbox->body != NULL && mailbox->body_done == mailbox->body_bytes) {
            BEL_TRY(finish_body(mailbox));
        }
        bytes += part;
        count -= part;
    }
    return NULL;
}

// The stream's last event; releases the stream's reference.
static void on_closed(void *context, bel_status *status)
{
    bel_mailbox *mailbox = context;
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->over = true;
    mailbox->why = status;
    bool closed = mailbox->closed;
    pthread_cond_broadcast(&mailbox->cond);
    if (!closed) bel_doorbell_ring(mailbox->bell);
    release_and_unlock(mailbox);
}

// --- Pings ---------------------------------------------------------------------------------------

// Sends a ping when no message was sent for a second, while the stream lives; the alarm's reference
// is released with the last one. So a process with an open mailbox looks at its clock every second
// (base/clock.h).
static void on_tick(void *context, bool due)
{
    bel_mailbox *mailbox = context;
    pthread_mutex_lock(&mailbox->mutex);
    bool wanted = due && !mailbox->over && !mailbox->closed;
    int64_t silent_ms = (bel_clock_awake_ns() - mailbox->said_ns) / 1000000;
    pthread_mutex_unlock(&mailbox->mutex);
    if (wanted && silent_ms < PING_MS) {
        bel_endpoint_after(mailbox->endpoint, PING_MS - silent_ms, on_tick, mailbox);
        return;
    }
    if (wanted) {
        Bel__Ping ping;
        bel__ping__init(&ping);
        bel_mailbox_send(mailbox, 0, &ping.base);
        bel_endpoint_after(mailbox->endpoint, PING_MS, on_tick, mailbox);
        return;
    }
    pthread_mutex_lock(&mailbox->mutex);
    release_and_unlock(mailbox);
}

// The ping's alarm takes a reference.
static void on_opened(void *context)
{
    bel_mailbox *mailbox = context;
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->references++;
    mailbox->opened = true;
    bool closed = mailbox->closed;
    pthread_mutex_unlock(&mailbox->mutex);
    if (!closed) bel_doorbell_ring(mailbox->bell);
    bel_endpoint_after(mailbox->endpoint, PING_MS, on_tick, mailbox);
}

static bel_stream_events events_of(bel_mailbox *mailbox)
{
    return (bel_stream_events){.context = mailbox,
                               .opened = on_opened,
                               .received = on_received,
                               .fill = on_fill,
                               .closed = on_closed};
}

// --- The mailbox ---------------------------------------------------------------------------------

bel_mailbox *bel_mailbox_open(bel_endpoint *endpoint, const char *address, bel_doorbell *bell)
{
    bel_mailbox *mailbox = mailbox_create(endpoint, bell);
    bel_stream_events events = events_of(mailbox);
    bel_stream *stream = bel_stream_open(endpoint, address, BEL_MAILBOX_PATH, &events);
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->calls = true;
    mailbox->stream = stream;
    if (stream == NULL) { // the endpoint is ending
        mailbox->over = true;
        mailbox->references--;
    }
    pthread_mutex_unlock(&mailbox->mutex);
    return mailbox;
}

bel_mailbox *bel_mailbox_accept(bel_stream *stream, bel_doorbell *bell,
                                bel_stream_events *out_events)
{
    bel_mailbox *mailbox = mailbox_create(bel_stream_endpoint(stream), bell);
    mailbox->stream = stream;
    bel_stream_retain(stream);
    *out_events = events_of(mailbox);
    return mailbox;
}

void bel_mailbox_send(bel_mailbox *mailbox, uint32_t generation, const ProtobufCMessage *kind)
{
    letter *l = bel_xcalloc(1, sizeof *l);
    l->bytes = bel_message_write(generation, kind, &l->count);
    pthread_mutex_lock(&mailbox->mutex);
    bool open = !mailbox->over && !mailbox->closed;
    bel_stream *stream = open ? mailbox->stream : NULL;
    if (open) {
        mailbox->said_ns = bel_clock_awake_ns();
        letters_push(&mailbox->out, l);
    } else {
        free_letter(l);
    }
    pthread_mutex_unlock(&mailbox->mutex);
    if (stream != NULL) bel_stream_kick(stream); // NULL: it is just being opened
}

Bel__Message *bel_mailbox_take(bel_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    letter *l = pop_letter(&mailbox->in);
    pthread_mutex_unlock(&mailbox->mutex);
    if (l == NULL) return NULL;
    Bel__Message *message = l->message;
    bel_free(l);
    return message;
}

bool bel_mailbox_was_open(bel_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    bool opened = mailbox->opened;
    pthread_mutex_unlock(&mailbox->mutex);
    return opened;
}

bool bel_mailbox_is_over(bel_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    bool over = mailbox->over && mailbox->in.first == NULL;
    pthread_mutex_unlock(&mailbox->mutex);
    return over;
}

bel_status *bel_mailbox_why(bel_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    bel_status *why = NULL;
    if (mailbox->over && mailbox->why != NULL) {
        why = BEL_ERR(bel_status_code(mailbox->why), "%s", bel_status_message(mailbox->why));
    }
    pthread_mutex_unlock(&mailbox->mutex);
    return why;
}

int64_t bel_mailbox_silence_ns(bel_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    int64_t silence = bel_clock_awake_ns() - mailbox->heard_ns;
    pthread_mutex_unlock(&mailbox->mutex);
    return silence;
}

void bel_mailbox_refuse(bel_mailbox *mailbox, bel_code code, const char *message)
{
    bel_stream_end(mailbox->stream, code, message);
}

// The last letters are out, but the peer may not have received them: it ends the stream when it
// has.
static void wait_for_peer_locked(bel_mailbox *mailbox, int64_t deadline)
{
    pthread_mutex_unlock(&mailbox->mutex);
    bel_stream_close(mailbox->stream);
    pthread_mutex_lock(&mailbox->mutex);
    bool in_time = true;
    while (in_time && !mailbox->over)
        in_time = bel_cond_wait_until(&mailbox->cond, &mailbox->mutex, deadline);
}

void bel_mailbox_close(bel_mailbox *mailbox, int64_t wait_ms)
{
    if (mailbox == NULL) return;
    int64_t deadline = bel_clock_ns() + wait_ms * 1000000;
    pthread_mutex_lock(&mailbox->mutex);
    bool in_time = true;
    while (in_time && !mailbox->over && (mailbox->out.first != NULL || mailbox->sending != NULL))
        in_time = bel_cond_wait_until(&mailbox->cond, &mailbox->mutex, deadline);
    mailbox->closed = true;
    bel_stream *stream = mailbox->over ? NULL : mailbox->stream;
    if (stream != NULL) bel_stream_retain(stream);
    bool in_order = stream != NULL && mailbox->calls && in_time && wait_ms > 0;
    if (in_order) wait_for_peer_locked(mailbox, deadline);
    release_and_unlock(mailbox);
    if (stream != NULL) bel_stream_end(stream, BEL_CANCELLED, "closed");
    bel_stream_release(stream);
}
