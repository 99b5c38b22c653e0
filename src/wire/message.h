// Control messages on the wire: protobuf (proto/belfry.proto, which says what each is for), each
// behind its length (u32, little-endian). docs/protocol.md is normative.
//
// A message has one kind, and each kind is a struct of its own, Bel__Join and so on, made from the
// .proto by protoc-c. A sender fills in its struct,
//
//     Bel__Admit admit;
//     bel__admit__init(&admit);
//     admit.worker = worker;
//     bel_members_send(members, member, generation, &admit.base);
//
// and a receiver looks at kind_case and reads the struct of that kind: message->admit. What a
// struct points at is borrowed while it is sent, and the message's own when it was taken. Texts are
// never NULL in a message that was taken.
#ifndef BELFRY_WIRE_MESSAGE_H
#define BELFRY_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "belfry.pb-c.h"
#include "belfry/status.h"

enum { BEL_PROTOCOL_VERSION = 22, BEL_MESSAGE_MAX_BYTES = 64 << 20 };

enum { BEL_PROGRESS_POINTS = 64 }; // of a message; one with fewer has the last of its step

// The message of this kind's struct, given by its base, with its length in front; free with
// bel_free.
uint8_t *bel_message_write(uint32_t generation, const ProtobufCMessage *kind, size_t *out_bytes);

// Reads one message without its length. INVALID_ARGUMENT: it is none, of no kind that there is, or
// too large once read. Free with bel_message_destroy.
bel_status *bel_message_read(const uint8_t *bytes, size_t count,
                             Bel__Message **out_message) BEL_MUST_USE;

void bel_message_destroy(Bel__Message *message); // NULL is fine

// "join", …
const char *bel_message_kind_name(const Bel__Message *message);

#endif
