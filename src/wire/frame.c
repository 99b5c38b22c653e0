// Frame headers, byte by byte: no padding, no byte order of the machine's own. Bytes without a
// meaning are written as zeros and must be zeros when they are read, so a later version can give
// them one. Only the form is checked here; whether kind, chunk, node and size fit is the
// receiving lane's question.
#include "wire/frame.h"

#include <string.h>

static const uint8_t magic[4] = {'B', 'E', 'L', '1'};

static void put(uint8_t *bytes, uint64_t value, int count)
{
    for (int i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void bel_wire_frame_write(const bel_wire_frame *frame, uint8_t out_bytes[BEL_WIRE_FRAME_BYTES])
{
    memset(out_bytes, 0, BEL_WIRE_FRAME_BYTES);
    memcpy(out_bytes, magic, sizeof magic);
    out_bytes[4] = frame->kind;
    put(out_bytes + 8, frame->generation, 4);
    put(out_bytes + 12, frame->incarnation, 4);
    put(out_bytes + 16, (uint32_t)frame->sender, 4);
    put(out_bytes + 20, (uint64_t)frame->step, 8);
    put(out_bytes + 28, frame->decision, 4);
    put(out_bytes + 32, (uint32_t)frame->chunk, 4);
    put(out_bytes + 36, (uint32_t)frame->node, 4);
    put(out_bytes + 40, frame->payload_bytes, 8);
    put(out_bytes + 48, frame->sequence, 8);
    put(out_bytes + 56, frame->taken, 8);
    put(out_bytes + 64, (uint64_t)frame->count, 8);
    put(out_bytes + 72, (uint32_t)frame->replicas, 4);
}

bool bel_wire_frame_read(const uint8_t bytes[BEL_WIRE_FRAME_BYTES], bel_wire_frame *out_frame)
{
    bool zeros = get(bytes + 5, 3) == 0 && get(bytes + 76, 4) == 0;
    if (memcmp(bytes, magic, sizeof magic) != 0 || !zeros) return false;
    *out_frame = (bel_wire_frame){.kind = bytes[4],
                                  .generation = (uint32_t)get(bytes + 8, 4),
                                  .incarnation = (uint32_t)get(bytes + 12, 4),
                                  .sender = (int32_t)get(bytes + 16, 4),
                                  .step = (int64_t)get(bytes + 20, 8),
                                  .decision = (uint32_t)get(bytes + 28, 4),
                                  .chunk = (int32_t)get(bytes + 32, 4),
                                  .node = (int32_t)get(bytes + 36, 4),
                                  .payload_bytes = get(bytes + 40, 8),
                                  .sequence = get(bytes + 48, 8),
                                  .taken = get(bytes + 56, 8),
                                  .count = (int64_t)get(bytes + 64, 8),
                                  .replicas = (int32_t)get(bytes + 72, 4)};
    return true;
}
