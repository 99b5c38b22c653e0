// WAV files (RIFF): a list of chunks, with the format of samples in "fmt " and the samples in
// "data". Every number of the file is checked before it is used; reading never exceeds `size`.
// Samples become floats by division by a power of two, so integers of up to 24 bits keep all their
// digits; the mean over channels is computed in double. Only the first "data" is used; later chunks
// are ignored.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "features/record_file.h"

enum {
    FORMAT_PCM = 1,
    FORMAT_FLOAT = 3,
    FORMAT_EXTENSIBLE = 0xFFFE,
    MAX_CHANNELS = 64,
    MAX_RATE = 1 << 20,
};

typedef enum sample_kind {
    SAMPLE_U8,
    SAMPLE_I16,
    SAMPLE_I24,
    SAMPLE_I32,
    SAMPLE_F32,
    SAMPLE_F64
} sample_kind;

typedef struct wave_format {
    sample_kind kind;
    uint32_t channels;
    uint32_t sample_bytes;
    uint32_t rate;
} wave_format;

typedef struct chunk {
    const uint8_t *data;
    size_t size;
} chunk;

static uint32_t get_u16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t get_u32(const uint8_t *bytes)
{
    return get_u16(bytes) | get_u16(bytes + 2) << 16;
}

static const char *format_name(uint32_t code)
{
    switch (code) {
    case 2: return " (ADPCM)";
    case 6: return " (A-law)";
    case 7: return " (mu-law)";
    case 0x11: return " (IMA ADPCM)";
    case 0x55: return " (MP3)";
    default: return "";
    }
}

// Finds the kind for a format code and bits per sample; false: unsupported.
static bool find_kind(uint32_t code, uint32_t bits, sample_kind *out_kind)
{
    static const struct {
        uint32_t code, bits;
        sample_kind kind;
    } kinds[] = {
        {FORMAT_PCM, 8, SAMPLE_U8},     {FORMAT_PCM, 16, SAMPLE_I16},
        {FORMAT_PCM, 24, SAMPLE_I24},   {FORMAT_PCM, 32, SAMPLE_I32},
        {FORMAT_FLOAT, 32, SAMPLE_F32}, {FORMAT_FLOAT, 64, SAMPLE_F64},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].code != code || kinds[i].bits != bits) continue;
        *out_kind = kinds[i].kind;
        return true;
    }
    return false;
}

// Tail of the GUID of an extensible format, after the code.
static const uint8_t guid_tail[14] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};

static bel_status *read_format(chunk fmt, const char *name, wave_format *out_format)
{
    if (fmt.size < 16) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a format chunk of 16 bytes or more, got %zu",
                       name, fmt.size);
    }
    uint32_t code = get_u16(fmt.data), bits = get_u16(fmt.data + 14);
    uint32_t block = get_u16(fmt.data + 12);
    wave_format format = {.channels = get_u16(fmt.data + 2), .rate = get_u32(fmt.data + 4)};
    if (code == FORMAT_EXTENSIBLE) {
        if (fmt.size < 40 || memcmp(fmt.data + 26, guid_tail, sizeof guid_tail) != 0) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: expected an extensible format of PCM or float samples, got another",
                           name);
        }
        code = get_u16(fmt.data + 24);
    }
    if (!find_kind(code, bits, &format.kind)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected PCM samples (format 1) of 8, 16, 24 or 32 bits or floats "
                       "(format 3) of 32 or 64, got format %u%s of %u bits",
                       name, code, format_name(code), bits);
    }
    format.sample_bytes = bits / 8;
    if (format.channels < 1 || format.channels > MAX_CHANNELS) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected 1 to %d channels, got %u", name, MAX_CHANNELS,
                       format.channels);
    }
    if (format.rate < 1 || format.rate > MAX_RATE) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a sample rate of 1 to %d Hz, got %u", name,
                       MAX_RATE, format.rate);
    }
    if (block != format.channels * format.sample_bytes) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected %u bytes for a sample of each channel, got %u",
                       name, format.channels * format.sample_bytes, block);
    }
    *out_format = format;
    return NULL;
}

static double get_sample(sample_kind kind, const uint8_t *at)
{
    switch (kind) {
    case SAMPLE_U8: return ((double)at[0] - 128) / 0x1p7;
    case SAMPLE_I16: return (double)(int16_t)get_u16(at) / 0x1p15;
    case SAMPLE_I24: // upper bytes of 32 bits, so that the sign is in place
        return (double)(int32_t)(get_u16(at) << 8 | (uint32_t)at[2] << 24) / 0x1p31;
    case SAMPLE_I32: return (double)(int32_t)get_u32(at) / 0x1p31;
    case SAMPLE_F32: {
        uint32_t bits = get_u32(at);
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    case SAMPLE_F64: {
        uint64_t bits = get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    }
    return 0;
}

// Computes the mean of the channels of every sample. Returns the index of the first that is not
// finite, or the count.
static int64_t mix(const wave_format *format, const uint8_t *data, int64_t count, float *out)
{
    uint32_t channels = format->channels, bytes = format->sample_bytes;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (uint32_t c = 0; c < channels; c++, data += bytes)
            sum += get_sample(format->kind, data);
        out[i] = (float)(channels == 1 ? sum : sum / channels);
        if (!isfinite(out[i])) return i;
    }
    return count;
}

static bel_status *read_samples(const wave_format *format, chunk data, const char *name,
                                bel_wave *out_wave)
{
    size_t block = (size_t)format->channels * format->sample_bytes;
    int64_t count = (int64_t)(data.size / block);
    if (data.size % block != 0) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected samples of %zu bytes (%u channels), got %zu bytes in all",
                       name, block, format->channels, data.size);
    }
    if (count == 0) return BEL_ERR(BEL_DATA_LOSS, "%s: expected samples, got none", name);
    float *samples = bel_xmalloc((size_t)count * sizeof *samples);
    int64_t good = mix(format, data.data, count, samples);
    if (good < count) {
        bel_free(samples);
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected finite samples, got another at %lld of %lld",
                       name, (long long)good, (long long)count);
    }
    *out_wave = (bel_wave){.samples = samples, .sample_count = count, .sample_rate = format->rate};
    return NULL;
}

// Whether the length of "data" is a placeholder of a program that writes to a pipe and cannot seek
// back to correct it. ffmpeg leaves the largest number, SoX 0x7ffff000 without a header or a part
// of a sample, others 0x80000000 or 0. An empty "data" is really empty if the file has the length
// in its RIFF header.
static bool is_of_stream(uint32_t size, size_t left, bool has_its_length)
{
    const uint32_t least = 0x7fff0000;
    return size > left ? size >= least : size == 0 && left > 0 && !has_its_length;
}

// Finds the chunk's bytes; an error if the file ends before them. A stream's data extends to the
// end of the file, in complete samples.
static bel_status *take_data(const wave_format *format, const uint8_t *data, uint32_t size,
                             size_t left, bool has_its_length, const char *name, chunk *out_chunk)
{
    size_t block = (size_t)format->channels * format->sample_bytes;
    *out_chunk = (chunk){data, size};
    if (is_of_stream(size, left, has_its_length)) {
        out_chunk->size = left - left % block;
    } else if (size > left) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected %u bytes of samples, as its header says, got %zu: the file is "
                       "cut off",
                       name, size, left);
    }
    return NULL;
}

bel_status *bel_wave_parse(const void *data, size_t size, const char *name, bel_wave *out_wave)
{
    const uint8_t *bytes = data;
    if (size < 12 || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a WAV file (RIFF … WAVE), got another%s", name,
                       size >= 4 && memcmp(bytes, "RF64", 4) == 0 ? " (RF64)" : "");
    }
    bool has_format = false, has_its_length = get_u32(bytes + 4) == size - 8;
    wave_format format = {0};
    for (size_t at = 12; size - at >= 8;) {
        const uint8_t *head = bytes + at;
        uint32_t chunk_size = get_u32(head + 4);
        at += 8;
        if (memcmp(head, "data", 4) == 0 && has_format) {
            chunk found;
            BEL_TRY(take_data(&format, bytes + at, chunk_size, size - at, has_its_length, name,
                              &found));
            return read_samples(&format, found, name, out_wave);
        }
        if (memcmp(head, "data", 4) == 0) break;
        if (chunk_size > size - at) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: expected a chunk of %u bytes at byte %zu, got %zu: the file is cut "
                           "off",
                           name, chunk_size, at, size - at);
        }
        if (memcmp(head, "fmt ", 4) == 0) {
            BEL_TRY(read_format((chunk){bytes + at, chunk_size}, name, &format));
            has_format = true;
        }
        size_t padded = (size_t)chunk_size + (chunk_size & 1);
        at = padded > size - at ? size : at + padded;
    }
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected a chunk \"%s\", got none%s", name,
                   has_format ? "data" : "fmt ", has_format ? "" : " before the samples");
}

bel_status *bel_wave_read(const char *path, int64_t max_bytes, bel_wave *out_wave)
{
    uint8_t *data;
    size_t size;
    BEL_TRY(bel_feature_file_read(path, max_bytes, &data, &size));
    bel_status *status = bel_wave_parse(data, size, path, out_wave);
    bel_free(data);
    return status;
}

void bel_wave_deinit(bel_wave *wave)
{
    bel_free(wave->samples);
    *wave = (bel_wave){0};
}
