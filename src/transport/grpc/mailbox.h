// Mailboxes: control messages both ways on one stream. Messages are taken on the receiver's own
// thread; a ping goes out every second from the endpoint's, so that a busy peer is not silent.
// Thread-safe.
#ifndef BELFRY_TRANSPORT_GRPC_MAILBOX_H
#define BELFRY_TRANSPORT_GRPC_MAILBOX_H

#include "transport/grpc/endpoint.h"
#include "transport/lane.h"
#include "wire/message.h"

#define BEL_MAILBOX_PATH "/belfry/control"

typedef struct bel_mailbox bel_mailbox;

// Opens a stream to an address. `bell` is rung for each message and when the stream is over; it
// must outlive the endpoint. The mailbox must be closed before the endpoint is destroyed.
bel_mailbox *bel_mailbox_open(bel_endpoint *endpoint, const char *address, bel_doorbell *bell);

// For bel_endpoint_config.accept at BEL_MAILBOX_PATH.
bel_mailbox *bel_mailbox_accept(bel_stream *stream, bel_doorbell *bell,
                                bel_stream_events *out_events);

// Sends a message of this kind (wire/message.h). Never blocks; after the end of the stream nothing
// is sent.
void bel_mailbox_send(bel_mailbox *mailbox, uint32_t generation, const ProtobufCMessage *kind);

// The next message other than a ping; NULL when there is none now. Free with bel_message_destroy.
Bel__Message *bel_mailbox_take(bel_mailbox *mailbox);

// True once the peer has answered the call; the doorbell is rung then, too.
bool bel_mailbox_was_open(bel_mailbox *mailbox);

// True when the stream is over and all messages are taken.
bool bel_mailbox_is_over(bel_mailbox *mailbox);

// Why it is over, as a new status; NULL when the peer ended it in order, or while it is not over.
bel_status *bel_mailbox_why(bel_mailbox *mailbox) BEL_MUST_USE;

// Time since anything came from the peer.
int64_t bel_mailbox_silence_ns(bel_mailbox *mailbox);

// Ends the stream with an error that the peer sees (on the side that accepted it).
void bel_mailbox_refuse(bel_mailbox *mailbox, bel_code code, const char *message);

// Waits until what was sent is out and, on the side that opened it, until the peer has taken it, at
// most `wait_ms`; then ends the stream. NULL is fine.
void bel_mailbox_close(bel_mailbox *mailbox, int64_t wait_ms);

#endif
