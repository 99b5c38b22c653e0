// Frame headers, byte by byte: no padding, and no dependence on the machine's byte order. Unused
// bytes are written as zeros and must be zeros on reading, so a later version can give them a
// meaning. Only the form is checked here; the receiver of the frame checks kind, fields and size.
#include "wire/frame.h"

#include <string.h>

#include "wire/bytes.h"

static const uint8_t magic[4] = {'B', 'E', 'L', '2'};

void bel_wire_frame_write(const bel_wire_frame *frame, uint8_t out_bytes[BEL_WIRE_FRAME_BYTES])
{
    memset(out_bytes, 0, BEL_WIRE_FRAME_BYTES);
    memcpy(out_bytes, magic, sizeof magic);
    out_bytes[4] = frame->kind;
    (void)bel_wire_put(out_bytes + 8, frame->generation, 4);
    (void)bel_wire_put(out_bytes + 12, frame->incarnation, 4);
    (void)bel_wire_put(out_bytes + 16, (uint32_t)frame->sender, 4);
    (void)bel_wire_put(out_bytes + 24, frame->payload_bytes, 8);
    (void)bel_wire_put(out_bytes + 32, frame->sequence, 8);
    (void)bel_wire_put(out_bytes + 40, frame->taken, 8);
    memcpy(out_bytes + 48, frame->fields, sizeof frame->fields);
}

bool bel_wire_frame_read(const uint8_t bytes[BEL_WIRE_FRAME_BYTES], bel_wire_frame *out_frame)
{
    bool zeros = bel_wire_get(bytes + 5, 3) == 0 && bel_wire_get(bytes + 20, 4) == 0;
    if (memcmp(bytes, magic, sizeof magic) != 0 || !zeros) return false;
    *out_frame = (bel_wire_frame){.kind = bytes[4],
                                  .generation = (uint32_t)bel_wire_get(bytes + 8, 4),
                                  .incarnation = (uint32_t)bel_wire_get(bytes + 12, 4),
                                  .sender = (int32_t)bel_wire_get(bytes + 16, 4),
                                  .payload_bytes = bel_wire_get(bytes + 24, 8),
                                  .sequence = bel_wire_get(bytes + 32, 8),
                                  .taken = bel_wire_get(bytes + 40, 8)};
    memcpy(out_frame->fields, bytes + 48, sizeof out_frame->fields);
    return true;
}
