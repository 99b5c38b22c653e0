// Mailboxes: control messages both ways on one stream. The receiver's thread takes messages. After
// a second without a message the endpoint's thread sends a ping, so that a busy peer is not silent.
// Thread-safe.
#ifndef BELFRY_TRANSPORT_STREAMS_MAILBOX_H
#define BELFRY_TRANSPORT_STREAMS_MAILBOX_H

#include "transport/lane.h"
#include "transport/streams/endpoint.h"
#include "wire/message.h"

#define BEL_MAILBOX_PATH "/belfry/control"

typedef struct bel_mailbox bel_mailbox;

// Opens a stream to an address. `bell` is rung for each message and at the stream's end; it must
// outlive the endpoint. The mailbox must be closed before the endpoint is destroyed.
bel_mailbox *bel_mailbox_open(bel_endpoint *endpoint, const char *address, bel_doorbell *bell);

// For bel_endpoint_config.accept at BEL_MAILBOX_PATH.
bel_mailbox *bel_mailbox_accept(bel_stream *stream, bel_doorbell *bell,
                                bel_stream_events *out_events);

// Sends a message of this kind (wire/message.h). Never blocks. After the end of the stream it does
// nothing.
void bel_mailbox_send(bel_mailbox *mailbox, uint32_t generation, const ProtobufCMessage *kind);

// Returns the next message other than a ping; NULL if no message waits. Free with
// bel_message_destroy.
Bel__Message *bel_mailbox_take(bel_mailbox *mailbox);

// True once the peer has answered the call; the doorbell is rung then, too.
bool bel_mailbox_was_open(bel_mailbox *mailbox);

// True if the stream is over and all messages are taken.
bool bel_mailbox_is_over(bel_mailbox *mailbox);

// Returns the reason of the end, as a new status; NULL if the peer ended it in order, or before the
// end.
bel_status *bel_mailbox_why(bel_mailbox *mailbox) BEL_MUST_USE;

// Returns the time since the last bytes from the peer, without times in which this process was
// suspended.
int64_t bel_mailbox_silence_ns(bel_mailbox *mailbox);

// Ends the stream with an error that the peer receives (on the side that accepted it).
void bel_mailbox_refuse(bel_mailbox *mailbox, bel_code code, const char *message);

// Ends the stream after all sent messages are written and, on the side that opened it, received by
// the peer. Waits at most `wait_ms`. NULL is allowed.
void bel_mailbox_close(bel_mailbox *mailbox, int64_t wait_ms);

#endif
