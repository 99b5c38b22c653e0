// Hashes: XXH3 (through the xxhash library) for content, CRC-32C for files and records.
#ifndef BELFRY_BASE_HASH_H
#define BELFRY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t bel_hash64(const void *data, size_t size); // XXH3, 64 bits, seed 0
// The same, seeded with the hash of the preceding data, 0 at first.
uint64_t bel_hash64_more(uint64_t before, const void *data, size_t size);

typedef struct bel_hash128 {
    uint64_t low, high;
} bel_hash128;

// XXH3, 128 bits, of one block.
bel_hash128 bel_hash128_of(const void *data, size_t size, uint64_t seed);

// Key of a name in a table, such as a cell of the id column `column`: the low half of XXH3's 128
// bits, seeded with the 64 of the column's name.
uint64_t bel_hash_name_seed(const char *column);
int64_t bel_hash_name(const char *name, size_t length, uint64_t seed);

// XXH3, 128 bits, over a stream of blocks.
typedef struct bel_hasher bel_hasher;
bel_hasher *bel_hasher_create(void);
void bel_hasher_update(bel_hasher *hasher, const void *data, size_t size);
bel_hash128 bel_hasher_finish(const bel_hasher *hasher);
void bel_hasher_destroy(bel_hasher *hasher);

// 32 lower-case hex digits and a zero byte, high half first.
const char *bel_hash128_text(bel_hash128 hash, char text[33]);

// CRC-32C (Castagnoli) of `data`, continuing from `crc` (0 to begin).
uint32_t bel_crc32c(uint32_t crc, const void *data, size_t size);

// The CRC-32C of two blocks one after the other, of which the second has `second_bytes`.
uint32_t bel_crc32c_joined(uint32_t first, uint32_t second, uint64_t second_bytes);

// Checksum of TFRecord files: masked, because a checksum over data with checksums is weak.
uint32_t bel_crc32c_masked(const void *data, size_t size);

// CRC-64/NVME, which S3 computes of every object; continues from `crc`, 0 at first.
uint64_t bel_crc64_nvme(uint64_t crc, const void *data, size_t size);

#endif
