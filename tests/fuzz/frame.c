// Fuzz target for headers of frames (docs/protocol.md), the first bytes of a peer, and for the
// description of each kind of frame. An accepted header is written again to the same bytes.
#include <string.h>

#include "fuzz/fuzz.h"
#include "ps/frames/frames.h"
#include "wire/frame.h"

#define READ(NAME, name, number, way, what, carries)                                               \
    case number: {                                                                                 \
        bel_##name##_frame fields = bel_##name##_frame_read(&frame);                               \
        bel_frame again = bel_##name##_frame_write(fields, NULL, 0);                               \
        bel_##name##_frame same = bel_##name##_frame_read(&again);                                 \
        again = bel_##name##_frame_write(same, NULL, 0);                                           \
        fuzz_expect(again.kind == frame.kind, "a frame of the same kind");                         \
        break;                                                                                     \
    }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_wire_frame header;
    if (size < BEL_WIRE_FRAME_BYTES || !bel_wire_frame_read(data, &header)) return 0;
    uint8_t bytes[BEL_WIRE_FRAME_BYTES];
    bel_wire_frame_write(&header, bytes);
    fuzz_expect(memcmp(bytes, data, sizeof bytes) == 0, "the same header, written again");
    bel_frame frame = {.kind = header.kind,
                       .sender = header.sender,
                       .payload = data + BEL_WIRE_FRAME_BYTES,
                       .payload_bytes = (size_t)header.payload_bytes};
    memcpy(frame.fields, header.fields, sizeof frame.fields);
    char words[BEL_FRAME_WORDS_BYTES];
    bel_frame_words(&frame, words);
    fuzz_expect(strlen(words) < sizeof words, "words that end");
    switch (frame.kind) {
        BEL_FRAME_KINDS(READ)
    default: break;
    }
    return 0;
}
