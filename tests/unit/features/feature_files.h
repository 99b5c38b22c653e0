// Files for tests of features.
#ifndef BELFRY_TESTS_UNIT_FEATURES_FEATURE_FILES_H
#define BELFRY_TESTS_UNIT_FEATURES_FEATURE_FILES_H

#include <string.h>

#include "base/str.h"

static inline void put_u16(bel_str *out, unsigned value)
{
    bel_str_append(out, (const char[]){(char)(value & 255), (char)(value >> 8 & 255)}, 2);
}

static inline void put_u32(bel_str *out, uint32_t value)
{
    put_u16(out, value & 0xFFFF);
    put_u16(out, value >> 16);
}

// Unusual properties and false statements of a WAV file.
typedef struct wav_case {
    unsigned code, bits, channels, rate; // code 1 PCM, 3 float
    bool extensible;
    bool odd_chunk;     // a chunk of 3 bytes, with its padding byte, before the samples
    uint32_t data_size; // 0: the true size
} wav_case;

static inline void put_wav(bel_str *out, const wav_case *it, const void *data, uint32_t size)
{
    static const char tail[] = "\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71";
    unsigned block = it->channels * it->bits / 8;
    bel_str_append(out, "RIFF\0\0\0\0WAVEfmt ", 16);
    put_u32(out, it->extensible ? 40 : 16);
    put_u16(out, it->extensible ? 0xFFFE : it->code);
    put_u16(out, it->channels);
    put_u32(out, it->rate);
    put_u32(out, it->rate * block);
    put_u16(out, block);
    put_u16(out, it->bits);
    if (it->extensible) {
        put_u16(out, 22);
        put_u16(out, it->bits);
        put_u32(out, 0);
        put_u16(out, it->code);
        bel_str_append(out, tail, 14);
    }
    if (it->odd_chunk) bel_str_append(out, "note\3\0\0\0abc\0", 12);
    bel_str_append(out, "data", 4);
    put_u32(out, it->data_size == 0 ? size : it->data_size);
    bel_str_append(out, data, size);
}

#endif
