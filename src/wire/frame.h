// Header of a frame on the wire: 80 bytes, little-endian, followed by the payload's raw bytes
// (docs/protocol.md is normative).
//
//    0  u32  magic "BEL2"          24  u64  payload bytes
//    4  u8   kind                  32  u64  sequence number, from 1; 0: not numbered
//    5  u8   0, u16 0              40  u64  frames of the other direction that were taken
//    8  u32  generation            48  32 bytes of fields: the kind's own
//   12  u32  incarnation
//   16  i32  sender
//   20  u32  0
#ifndef BELFRY_WIRE_FRAME_H
#define BELFRY_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { BEL_WIRE_FRAME_BYTES = 80, BEL_WIRE_FIELD_BYTES = 32 };

typedef struct bel_wire_frame {
    uint8_t kind;
    uint32_t generation, incarnation;
    int32_t sender;
    uint64_t payload_bytes;
    uint64_t sequence, taken;
    uint8_t fields[BEL_WIRE_FIELD_BYTES];
} bel_wire_frame;

void bel_wire_frame_write(const bel_wire_frame *frame, uint8_t out_bytes[BEL_WIRE_FRAME_BYTES]);

// Returns false if the bytes are not a header of this protocol.
bool bel_wire_frame_read(const uint8_t bytes[BEL_WIRE_FRAME_BYTES], bel_wire_frame *out_frame);

#endif
