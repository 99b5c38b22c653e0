// Writers, readers and message text of all frame kinds, generated from the tables in frames.h. The
// compiler checks that each struct's fields fit a frame. A frame's unused bytes are zeros, so equal
// frames have equal bytes.
#include "ps/frames/frames.h"

#include <string.h>

#include "base/number.h"
#include "wire/bytes.h"

#define SIZE(type, name, meaning) +sizeof(type)
#define PUT(type, name, meaning) at = bel_wire_put(at, (uint64_t)fields.name, sizeof fields.name);
#define GET(type, name, meaning)                                                                   \
    fields.name = (type)bel_wire_get(at, sizeof fields.name);                                      \
    at += sizeof fields.name;

#define DEFINE(NAME, name, number, way, what, carries)                                             \
    _Static_assert(0 BEL_FIELDS_##name(SIZE) <= BEL_FRAME_FIELD_BYTES, "a frame has no room");     \
    bel_frame bel_##name##_frame_write(bel_##name##_frame fields, const void *data, size_t bytes)  \
    {                                                                                              \
        bel_frame frame = {.kind = BEL_FRAME_##NAME, .payload = data, .payload_bytes = bytes};     \
        uint8_t *at = frame.fields;                                                                \
        BEL_FIELDS_##name(PUT)(void) at;                                                           \
        return frame;                                                                              \
    }                                                                                              \
    bel_##name##_frame bel_##name##_frame_read(const bel_frame *frame)                             \
    {                                                                                              \
        bel_##name##_frame fields;                                                                 \
        const uint8_t *at = frame->fields;                                                         \
        BEL_FIELDS_##name(GET)(void) at;                                                           \
        return fields;                                                                             \
    }
BEL_FRAME_KINDS(DEFINE)

const char *bel_frame_kind_name(uint32_t kind)
{
    switch (kind) {
#define NAME_OF(NAME, name, number, way, what, carries)                                            \
    case number: return #name;
        BEL_FRAME_KINDS(NAME_OF)
    default: return "unknown";
    }
}

// Appends ", NAME VALUE" as far as there is room.
static size_t add_words(char *out, size_t length, const char *name, long long value)
{
    if (length + 1 >= BEL_FRAME_WORDS_BYTES) return length;
    bel_snprintf(out + length, BEL_FRAME_WORDS_BYTES - length, ", %s %lld", name, value);
    return length + strlen(out + length);
}

void bel_frame_words(const bel_frame *frame, char out_words[BEL_FRAME_WORDS_BYTES])
{
    bel_snprintf(out_words, BEL_FRAME_WORDS_BYTES, "%s", bel_frame_kind_name(frame->kind));
    size_t length = strlen(out_words);
    switch (frame->kind) {
#define ADD(type, name, meaning) length = add_words(out_words, length, #name, (long long)f.name);
#define WORDS_OF(NAME, name, number, way, what, carries)                                           \
    case number: {                                                                                 \
        const bel_##name##_frame f = bel_##name##_frame_read(frame);                               \
        BEL_FIELDS_##name(ADD) break;                                                              \
    }
        BEL_FRAME_KINDS(WORDS_OF)
    default: length = add_words(out_words, length, "kind", (long long)frame->kind); break;
    }
    (void)add_words(out_words, length, "bytes", (long long)frame->payload_bytes);
}
