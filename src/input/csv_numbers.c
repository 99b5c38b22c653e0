// Validation of eight bytes at a time. Masks of the bytes' highest bits mark digits, delimiters,
// points and minus signs. Shifted masks check whether the byte before each allows it. The rule of
// at most one point in a field needs more than the byte before: a sum carries from each point to
// the next delimiter and detects a second point on the way.
#include "input/csv_numbers.h"

#include "base/decimal.h"
#include "input/csv_split.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

static const uint64_t highest = 0x8080808080808080, eight_zeros = 0x3030303030303030;

// State between one group of eight bytes and the next.
typedef struct before {
    uint64_t digit, delimiter; // the lowest byte's highest bit: the byte before was one
    uint64_t point;            // 1: the field has a point already
    int alone;                 // number of consecutive groups without a delimiter
} before;

// Limit of that number: a value of 309 digits is too large for a double.
enum { MOST_ALONE = 30 };

// True if the line may continue with `bytes`. Adds their delimiters to *count. Bytes with only
// digits and delimiters, as in lines of integers, take half the work.
static inline bool goes_on(uint64_t bytes, uint64_t wanted, before *b, size_t *count)
{
    const uint64_t others = bel_decimal_others(bytes ^ eight_zeros);
    const uint64_t delimiters = bel_csv_equal_bytes(bytes, wanted);
    const uint64_t digits = ~others & highest;
    uint64_t wrong = delimiters & ~(digits << 8 | b->digit);
    if (others == delimiters) {
        if (delimiters != 0) b->point = 0;
    } else {
        const uint64_t points = bel_csv_equal_bytes(bytes, bel_csv_eight('.'));
        const uint64_t signs = bel_csv_equal_bytes(bytes, bel_csv_eight('-'));
        const uint64_t between = ~((delimiters >> 7) * 0xFF), one = points >> 7;
        const uint64_t first = between + one, sum = first + b->point;
        wrong |= others ^ (delimiters | points | signs);
        wrong |= points & ~(digits << 8 | b->digit);
        wrong |= signs & ~(delimiters << 8 | b->delimiter);
        wrong |= sum & one;
        b->point = (uint64_t)((first < between) | (sum < first));
    }
    b->digit = digits >> 56;
    b->delimiter = delimiters >> 56;
    b->alone = delimiters != 0 ? 0 : b->alone + 1;
    *count += (size_t)bel_csv_count_marked(delimiters);
    return wrong == 0 && b->alone <= MOST_ALONE;
}

bool bel_csv_line_is_numbers(const char *line, const char *end, char delimiter,
                             size_t *out_delimiters)
{
    const uint64_t wanted = bel_csv_eight(delimiter);
    const bool other = delimiter != '.' && delimiter != '-' && (delimiter < '0' || delimiter > '9');
    before b = {.delimiter = 0x80};
    size_t count = 0;
    uint64_t bytes;
    if (!other || end == line) return false;
    for (; end - line >= 8; line += 8) {
        memcpy(&bytes, line, sizeof bytes);
        if (!goes_on(bytes, wanted, &b, &count)) return false;
    }
    // The rest of the line, filled up with zeros, which extend the last number.
    bytes = eight_zeros;
    memcpy(&bytes, line, (size_t)(end - line));
    if (end > line && !goes_on(bytes, wanted, &b, &count)) return false;
    if (end[-1] < '0' || end[-1] > '9') return false;
    *out_delimiters = count;
    return true;
}

#else

bool bel_csv_line_is_numbers(const char *line, const char *end, char delimiter,
                             size_t *out_delimiters)
{
    (void)line, (void)end, (void)delimiter, (void)out_delimiters;
    return false;
}

#endif
