// Integers as bytes, little-endian on every machine, for all binary formats of the wire.
#ifndef BELFRY_WIRE_BYTES_H
#define BELFRY_WIRE_BYTES_H

#include <stddef.h>
#include <stdint.h>

// Writes the low `count` bytes of a number, count ≤ 8; returns the address after them.
static inline uint8_t *bel_wire_put(uint8_t *bytes, uint64_t value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    return bytes + count;
}

// Reads the number in `count` bytes, without sign: a cast to the signed type of that size restores
// it.
static inline uint64_t bel_wire_get(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

#endif
