// Comparison of 64 bytes at a time. Each comparison is a word with one bit a byte, so the number of
// a row's delimiters is the number of bits before its line feed. The last bytes before the end are
// copied into a block that is filled up with letters.
//
// Words shifted by one check whether the byte before each byte of a number allows it. The rule of
// at most one point in a field needs more than the byte before: a sum carries from each point to
// the end of the field, and detects a second point on the way.
#include "input/table/csv_scan.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

// A value of 309 digits is too large for a double. Fields without an end in more than MOST_OPEN
// consecutive blocks are not numbers; others have fewer than 4 * BLOCK digits.
enum { BLOCK = 64, MOST_OPEN = 2 };

// Bits of a block's bytes.
typedef struct marks {
    uint64_t feeds, delimiters, returns, others; // others: quotes and zero bytes
    uint64_t digits, points, signs;
} marks;

#if defined(__AVX512BW__)
static inline marks csv_scan_mark(const char *at, char delimiter)
{
    __m512i bytes = _mm512_loadu_si512(at);
    __m512i from_zero = _mm512_sub_epi8(bytes, _mm512_set1_epi8('0'));
    return (marks){
        .feeds = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\n')),
        .delimiters = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(delimiter)),
        .returns = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\r')),
        .others = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"')) |
                  _mm512_testn_epi8_mask(bytes, bytes),
        .digits = _mm512_cmple_epu8_mask(from_zero, _mm512_set1_epi8(9)),
        .points = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('.')),
        .signs = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('-')),
    };
}
#else

#if defined(__AVX2__)
enum { PARTS = 2 };
typedef __m256i part;

static inline part load(const char *at)
{
    return _mm256_loadu_si256((const void *)at);
}

static inline uint64_t equal_in(part bytes, char byte)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte)));
}

static inline uint64_t digits_in(part bytes)
{
    part from_zero = _mm256_sub_epi8(bytes, _mm256_set1_epi8('0'));
    part least = _mm256_min_epu8(from_zero, _mm256_set1_epi8(9));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(from_zero, least));
}
#elif defined(__SSE2__)
enum { PARTS = 4 };
typedef __m128i part;

static inline part load(const char *at)
{
    return _mm_loadu_si128((const void *)at);
}

static inline uint64_t equal_in(part bytes, char byte)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)));
}

static inline uint64_t digits_in(part bytes)
{
    part from_zero = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
    part least = _mm_min_epu8(from_zero, _mm_set1_epi8(9));
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(from_zero, least));
}
#else
enum { PARTS = 8 };
typedef uint64_t part;

static const uint64_t ones = 0x0101010101010101, low = 0x7F7F7F7F7F7F7F7F;

// Eight bytes as a word, the first one lowest, on machines of any byte order.
static inline part load(const char *at)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return word;
}

// Gathers the highest bit of each byte in the lowest byte.
static inline uint64_t gather(uint64_t highest)
{
    return ((highest & ~low) >> 7) * 0x0102040810204080 >> 56;
}

// A byte that equals `byte` is zero after xor.
static inline uint64_t equal_in(part bytes, char byte)
{
    uint64_t x = bytes ^ ones * (unsigned char)byte;
    return gather(~(((x & low) + low) | x));
}

// Adding sets the highest bit of bytes from a limit on, '0' and the byte after '9'.
static inline uint64_t digits_in(part bytes)
{
    uint64_t from_zero = (bytes & low) + ones * (0x80 - '0');
    uint64_t after_nine = (bytes & low) + ones * (0x80 - '9' - 1);
    return gather(from_zero & ~after_nine & ~bytes);
}
#endif

static inline uint64_t bytes_equal(const part *parts, char byte)
{
    uint64_t bits = 0;
    for (int i = 0; i < PARTS; i++)
        bits |= equal_in(parts[i], byte) << BLOCK / PARTS * i;
    return bits;
}

static inline marks csv_scan_mark(const char *at, char delimiter)
{
    part parts[PARTS];
    uint64_t digits = 0;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = load(at + BLOCK / PARTS * i);
        digits |= digits_in(parts[i]) << BLOCK / PARTS * i;
    }
    return (marks){
        .feeds = bytes_equal(parts, '\n'),
        .delimiters = bytes_equal(parts, delimiter),
        .returns = bytes_equal(parts, '\r'),
        .others = bytes_equal(parts, '"') | bytes_equal(parts, '\0'),
        .digits = digits,
        .points = bytes_equal(parts, '.'),
        .signs = bytes_equal(parts, '-'),
    };
}
#endif

// State between one block and the next. The bits are 0 or 1.
typedef struct state {
    // The row in which the next block begins.
    int64_t delimiters; // in it so far
    uint64_t bad;       // not 0: it is not plain
    uint64_t wrong;     // not 0: it is not plain numbers
    // The byte before.
    uint64_t returned, digit, start; // start: a field begins after it
    uint64_t point;                  // the field has a point already
    int open;                        // consecutive blocks without the end of a field
    size_t count;                    // finished rows
} state;

// Returns the bytes that make their row no plain one.
static inline uint64_t find_bad(const marks *m, state *s)
{
    // A carriage return without a line feed after it is wrong. For one at the end of a block, the
    // next block shows that.
    uint64_t bad = m->others | (m->returns & ~(m->feeds >> 1) & ~((uint64_t)1 << (BLOCK - 1)));
    s->bad |= s->returned & ~m->feeds;
    return bad;
}

// Returns the bytes that cannot be part of a row of plain numbers at their place.
static inline uint64_t find_wrong(const marks *m, state *s)
{
    const uint64_t ends = m->delimiters | m->feeds;
    const uint64_t after_digit = m->digits << 1 | s->digit;
    const uint64_t after_return = m->returns << 1 | s->returned;
    const uint64_t after_start = ends << 1 | s->start;
    const uint64_t first = ~ends + m->points, sum = first + s->point;
    uint64_t wrong = ~(m->digits | m->points | m->signs | ends | m->returns);
    wrong |= (m->delimiters | m->points | m->returns) & ~after_digit;
    wrong |= m->feeds & ~(after_digit | after_return);
    wrong |= m->signs & ~after_start;
    wrong |= m->points & sum;
    s->point = (uint64_t)((first < ~ends) | (sum < first));
    s->digit = m->digits >> (BLOCK - 1);
    s->start = ends >> (BLOCK - 1);
    s->open = ends != 0 ? 0 : s->open + 1;
    if (s->open > MOST_OPEN) s->wrong = 1;
    return wrong;
}

// Adds the rows that end in a block. False: one of them is not plain, or there are `most` rows.
static inline bool end_rows(const bel_csv_scan *scan, const marks *m, int64_t offset, size_t most,
                            state *s, bel_csv_scanned *out_rows)
{
    const uint64_t bad = find_bad(m, s), wrong = find_wrong(m, s);
    uint64_t feeds = m->feeds, before = 0; // bits of the finished rows
    while (feeds != 0) {
        uint64_t to = feeds ^ (feeds - 1); // up to the line feed
        uint64_t row = to & ~before;
        int64_t delimiters = s->delimiters + __builtin_popcountll(m->delimiters & row);
        bool fits = scan->delimiters < 0 || delimiters == scan->delimiters;
        if (!fits || (s->bad | (bad & row)) != 0 || s->count == most) return false;
        out_rows[s->count++] = (bel_csv_scanned){.end = offset + __builtin_ctzll(feeds),
                                                 .numbers = (s->wrong | (wrong & row)) == 0};
        s->delimiters = 0;
        s->wrong = 0;
        before = to;
        feeds &= feeds - 1;
    }
    s->delimiters += __builtin_popcountll(m->delimiters & ~before);
    s->bad |= bad & ~before;
    s->wrong |= wrong & ~before;
    s->returned = m->returns >> (BLOCK - 1);
    return true;
}

static size_t csv_scan_rows(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                            bel_csv_scanned *out_rows)
{
    // Delimiters that can be part of a number: no row counts as numbers.
    static const char ambiguous[] = ".-0123456789";
    const bool unclear = memchr(ambiguous, scan->delimiter, sizeof ambiguous) != NULL;
    state s = {.start = 1};
    for (const char *at = row; at < end; at += BLOCK) {
        char last[BLOCK];
        const char *block = at;
        if (end - at < BLOCK) {
            memset(last, 'a', sizeof last);
            memcpy(last, at, (size_t)(end - at));
            block = last;
        }
        marks m = csv_scan_mark(block, scan->delimiter);
        if (!end_rows(scan, &m, at - row, most, &s, out_rows)) break;
    }
    for (size_t i = 0; unclear && i < s.count; i++)
        out_rows[i].numbers = false;
    return s.count;
}

const bel_csv_scan_kernels JOIN(bel_csv_scan_kernels_, BEL_LEVEL) = {csv_scan_rows};
