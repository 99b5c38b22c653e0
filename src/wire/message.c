// Messages to bytes and back, by protobuf-c. A struct's descriptor determines its kind among the
// fields of Message, so a sender cannot name one kind and fill in another.
//
// Bytes come from the network, so their memory is bounded (base/budget.h). Missing parts read as
// zeros. Code that uses a number checks its value.
#include "wire/message.h"

#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/check.h"
#include "wire/bytes.h"

// --- Writing -------------------------------------------------------------------------------------

// Returns the field of Message that holds this kind.
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *kind)
{
    const ProtobufCMessageDescriptor *all = &bel__message__descriptor;
    for (unsigned i = 0; i < all->n_fields; i++)
        if (all->fields[i].descriptor == kind) return &all->fields[i];
    return NULL;
}

// The kind's pointer goes into the message's union, at the field descriptor's offset.
uint8_t *bel_message_write(uint32_t generation, const ProtobufCMessage *kind, size_t *out_bytes)
{
    enum { LENGTH = 4 };
    Bel__Message message;
    bel__message__init(&message);
    const ProtobufCFieldDescriptor *field = field_of(kind->descriptor);
    BEL_CHECK(field != NULL);
    message.generation = generation;
    message.kind_case = (Bel__Message__KindCase)field->id;
    memcpy((char *)&message + field->offset, &kind, sizeof kind);
    size_t size = bel__message__get_packed_size(&message);
    uint8_t *bytes = bel_xmalloc(LENGTH + size);
    bel__message__pack(&message, bel_wire_put(bytes, size, LENGTH));
    *out_bytes = LENGTH + size;
    return bytes;
}

// --- Reading -------------------------------------------------------------------------------------

bel_status *bel_message_read(const uint8_t *bytes, size_t count, Bel__Message **out_message)
{
    // No message of a job comes near this limit: a large one has a single piece of data.
    enum { MIB = 1 << 20, PARTS_MIB = 64 };
    const size_t allowed = 2 * count + (size_t)PARTS_MIB * MIB;
    bel_budget budget = {.left = allowed};
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
    Bel__Message *message = bel__message__unpack(&allocator, count, bytes);
    if (message == NULL && budget.is_spent) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "control message of %zu bytes is too large once read: its parts need more "
                       "than the %zu bytes of memory that are allowed (twice its size and %d MiB)",
                       count, allowed, PARTS_MIB);
    }
    if (message == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed control message");
    if (message->kind_case == BEL__MESSAGE__KIND__NOT_SET) {
        bel_message_destroy(message);
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed control message: of no kind that is known");
    }
    *out_message = message;
    return NULL;
}

void bel_message_destroy(Bel__Message *message)
{
    ProtobufCAllocator allocator = {NULL, bel_budget_give, NULL};
    if (message != NULL) bel__message__free_unpacked(message, &allocator);
}

const char *bel_message_kind_name(const Bel__Message *message)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        &bel__message__descriptor, (unsigned)message->kind_case);
    return field != NULL ? field->name : "unknown";
}
