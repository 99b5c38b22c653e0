// LSD radix sort, only over the bits in which keys differ: ids of a batch often are in a range of a
// few million and need two passes. Digits have one width, at most 11 bits, whose counts stay in the
// first-level cache. Each pass is stable, and so is the sort. The number of passes determines which
// of the two arrays has the result.
#include "base/sort.h"

#include <string.h>

enum { DIGIT_BITS = 11, KEY_BITS = 64 };

// Flips the sign bit, so that negative keys come first.
static inline uint64_t ordered(int64_t key)
{
    return (uint64_t)key ^ (UINT64_C(1) << (KEY_BITS - 1));
}

// One stable pass: counts of each digit, their prefix sums as places, then each item to its place.
static void sort_digit(const bel_keyed *items, bel_keyed *out, int64_t n, int shift, int bits)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    int64_t place[1 << DIGIT_BITS];
    memset(place, 0, (size_t)(mask + 1) * sizeof place[0]);
    for (int64_t i = 0; i < n; i++)
        place[(ordered(items[i].key) >> shift) & mask]++;
    int64_t next = 0;
    for (uint64_t digit = 0; digit <= mask; digit++) {
        int64_t count = place[digit];
        place[digit] = next;
        next += count;
    }
    for (int64_t i = 0; i < n; i++)
        out[place[(ordered(items[i].key) >> shift) & mask]++] = items[i];
}

bel_keyed *bel_sort_keyed(bel_keyed *items, bel_keyed *spare, int64_t n)
{
    uint64_t varying = 0;
    for (int64_t i = 1; i < n; i++)
        varying |= (uint64_t)items[i].key ^ (uint64_t)items[0].key;
    if (varying == 0) return items;
    int shift = __builtin_ctzll(varying), end = KEY_BITS - __builtin_clzll(varying);
    int digits = (end - shift + DIGIT_BITS - 1) / DIGIT_BITS;
    int bits = (end - shift + digits - 1) / digits; // digits of one width: small tables of counts
    for (; shift < end; shift += bits) {
        sort_digit(items, spare, n, shift, bits);
        bel_keyed *sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}
