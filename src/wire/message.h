// Control messages on the wire: protobuf (proto/belfry.proto describes each), each after its length
// (u32, little-endian). docs/protocol.md is normative.
//
// A message has one kind, and each kind has a separate struct, Bel__Join and so on, generated from
// the .proto by protoc-c. A sender fills in its struct,
//
//     Bel__Admit admit;
//     bel__admit__init(&admit);
//     admit.worker = worker;
//     bel_members_send(members, member, generation, &admit.base);
//
// and a receiver switches on kind_case and reads the struct of that kind: message->admit. A sent
// struct borrows the memory that it points to; a received message owns it. Texts in a received
// message are never NULL.
#ifndef BELFRY_WIRE_MESSAGE_H
#define BELFRY_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "belfry.pb-c.h"
#include "belfry/status.h"

enum { BEL_PROTOCOL_VERSION = 33, BEL_MESSAGE_MAX_BYTES = 64 << 20 };

enum { BEL_PROGRESS_POINTS = 64 }; // maximum of a message; one with fewer has the last of its step

// Returns the message of this kind's struct, given by its base, after its length; free with
// bel_free.
uint8_t *bel_message_write(uint32_t generation, const ProtobufCMessage *kind, size_t *out_bytes);

// Reads one message without its length. INVALID_ARGUMENT: invalid, of unknown kind, or too large
// once read. Free with bel_message_destroy.
bel_status *bel_message_read(const uint8_t *bytes, size_t count,
                             Bel__Message **out_message) BEL_MUST_USE;

void bel_message_destroy(Bel__Message *message); // NULL is allowed

// Returns "join", …
const char *bel_message_kind_name(const Bel__Message *message);

#endif
