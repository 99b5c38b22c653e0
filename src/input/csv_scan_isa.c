// Bytes are compared 64 at a time; each comparison is a word with a bit for a byte, so a row's
// delimiters are counted by counting bits up to its line feed. The last bytes before the end are
// copied into a block that is filled up with letters.
#include "input/csv_scan.h"

#include <stdbool.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

enum { BLOCK = 64 };

// Bits of a block's bytes.
typedef struct marks {
    uint64_t feeds, delimiters, returns, others;
} marks;

#if defined(__AVX512BW__)
static inline marks mark(const char *at, char delimiter)
{
    __m512i bytes = _mm512_loadu_si512(at);
    return (marks){
        .feeds = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\n')),
        .delimiters = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(delimiter)),
        .returns = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\r')),
        .others = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"')) |
                  _mm512_testn_epi8_mask(bytes, bytes),
    };
}
#elif defined(__AVX2__)
static inline uint64_t equal(__m256i low, __m256i high, char byte)
{
    __m256i all = _mm256_set1_epi8(byte);
    uint32_t first = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all));
    uint32_t second = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all));
    return (uint64_t)second << 32 | first;
}

static inline marks mark(const char *at, char delimiter)
{
    __m256i low = _mm256_loadu_si256((const void *)at);
    __m256i high = _mm256_loadu_si256((const void *)(at + 32));
    return (marks){
        .feeds = equal(low, high, '\n'),
        .delimiters = equal(low, high, delimiter),
        .returns = equal(low, high, '\r'),
        .others = equal(low, high, '"') | equal(low, high, '\0'),
    };
}
#elif defined(__SSE2__)
static inline uint64_t equal(const __m128i *parts, char byte)
{
    __m128i all = _mm_set1_epi8(byte);
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(parts[i], all)) << 16 * i;
    return bits;
}

static inline marks mark(const char *at, char delimiter)
{
    __m128i parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] = _mm_loadu_si128((const void *)(at + 16 * i));
    return (marks){
        .feeds = equal(parts, '\n'),
        .delimiters = equal(parts, delimiter),
        .returns = equal(parts, '\r'),
        .others = equal(parts, '"') | equal(parts, '\0'),
    };
}
#else
// Eight bytes as a word, the first one lowest, whatever the byte order.
static inline uint64_t load(const char *at)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return word;
}

// A bit for each of the eight bytes that equals one: such a byte is zero after xor; the product
// gathers the lowest bits of the bytes in the highest one.
static inline uint64_t equal(const uint64_t *words, char byte)
{
    const uint64_t ones = 0x0101010101010101, low = 0x7F7F7F7F7F7F7F7F;
    uint64_t all = ones * (unsigned char)byte, bits = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t x = words[i] ^ all;
        uint64_t zero = ~(((x & low) + low) | x | low) >> 7;
        bits |= (zero * 0x0102040810204080) >> 56 << 8 * i;
    }
    return bits;
}

static inline marks mark(const char *at, char delimiter)
{
    uint64_t words[8];
    for (int i = 0; i < 8; i++)
        words[i] = load(at + 8 * i);
    return (marks){
        .feeds = equal(words, '\n'),
        .delimiters = equal(words, delimiter),
        .returns = equal(words, '\r'),
        .others = equal(words, '"') | equal(words, '\0'),
    };
}
#endif

// The row that the block at hand begins in.
typedef struct state {
    int64_t delimiters; // of it so far
    uint64_t bad;       // not 0: it is no plain one
    bool returned;      // the block before ended with a carriage return
    size_t count;       // rows that are through
} state;

// Ends the rows that end in a block. False: a row that is not plain does, or there are enough.
static inline bool end_rows(const bel_csv_scan *scan, const marks *m, uint64_t bad, int64_t offset,
                            size_t most, state *s, int64_t *out_ends)
{
    uint64_t feeds = m->feeds, before = 0; // bits of the rows that are through
    while (feeds != 0) {
        uint64_t to = feeds ^ (feeds - 1); // up to the line feed
        uint64_t row = to & ~before;
        int64_t delimiters = s->delimiters + __builtin_popcountll(m->delimiters & row);
        bool fits = scan->delimiters < 0 || delimiters == scan->delimiters;
        if (!fits || s->bad != 0 || (bad & row) != 0 || s->count == most) return false;
        out_ends[s->count++] = offset + __builtin_ctzll(feeds);
        s->delimiters = 0;
        before = to;
        feeds &= feeds - 1;
    }
    s->delimiters += __builtin_popcountll(m->delimiters & ~before);
    s->bad |= bad & ~before;
    return true;
}

static size_t rows(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                   int64_t *out_ends)
{
    state s = {0};
    for (const char *at = row; at < end; at += BLOCK) {
        char last[BLOCK];
        const char *block = at;
        if (end - at < BLOCK) {
            memset(last, 'a', sizeof last);
            memcpy(last, at, (size_t)(end - at));
            block = last;
        }
        marks m = mark(block, scan->delimiter);
        // A carriage return without a line feed behind it is of the row that it is in, as far as
        // the block shows; one at the end of a block shows in the next.
        uint64_t bad = m.others | (m.returns & ~(m.feeds >> 1) & ~((uint64_t)1 << 63));
        if (s.returned && (m.feeds & 1) == 0) s.bad = 1;
        s.returned = m.returns >> 63 != 0;
        if (!end_rows(scan, &m, bad, at - row, most, &s, out_ends)) break;
    }
    return s.count;
}

const bel_csv_scan_kernels JOIN(bel_csv_scan_kernels_, BEL_LEVEL) = {rows};
