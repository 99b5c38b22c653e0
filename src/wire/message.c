// Messages to bytes and back, by protobuf-c. The kind of a struct is found by its descriptor among
// the fields of Message, so a sender cannot name one kind and fill in another.
//
// Bytes come from the network, so the memory that is taken for them is bounded: protobuf-c
// allocates from a budget. Parts that are missing read as zeros. Whether numbers make sense is
// checked where they are used.
#include "wire/message.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "wire/bytes.h"

// --- Writing -------------------------------------------------------------------------------------

// The field of Message that holds this kind.
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *kind)
{
    const ProtobufCMessageDescriptor *all = &bel__message__descriptor;
    for (unsigned i = 0; i < all->n_fields; i++)
        if (all->fields[i].descriptor == kind) return &all->fields[i];
    return NULL;
}

// The kind's pointer goes into the message's union, where the field's descriptor says.
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

// Two bytes of a message may be an empty part, which takes a hundred in memory. No message of a job
// comes near the limit: what is large in one is a single piece of data.
typedef struct budget {
    size_t left;
    bool is_spent; // more was asked for
} budget;

// protobuf-c's allocator. NULL, once the budget is spent, makes it give up the message.
static void *take_memory(void *context, size_t size)
{
    budget *b = context;
    size_t cost = size + 16; // what an allocation takes besides
    b->is_spent = b->is_spent || size > SIZE_MAX - 16 || cost > b->left;
    if (b->is_spent) return NULL;
    b->left -= cost;
    return bel_xmalloc(size);
}

static void give_memory(void *context, void *memory)
{
    (void)context;
    bel_free(memory);
}

bel_status *bel_message_read(const uint8_t *bytes, size_t count, Bel__Message **out_message)
{
    enum { MIB = 1 << 20, PARTS_MIB = 64 };
    const size_t allowed = 2 * count + (size_t)PARTS_MIB * MIB;
    budget b = {.left = allowed};
    ProtobufCAllocator allocator = {take_memory, give_memory, &b};
    Bel__Message *message = bel__message__unpack(&allocator, count, bytes);
    if (message == NULL && b.is_spent) {
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
    ProtobufCAllocator allocator = {NULL, give_memory, NULL};
    if (message != NULL) bel__message__free_unpacked(message, &allocator);
}

const char *bel_message_kind_name(const Bel__Message *message)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        &bel__message__descriptor, (unsigned)message->kind_case);
    return field != NULL ? field->name : "unknown";
}
