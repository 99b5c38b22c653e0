// The pattern of GPT-2 by hand. At each place the first alternative that matches is taken, as
// greedily as a backtracking matcher takes it. Classes of characters are those of the table that
// make-classes wrote. A newer version of Unicode has more letters; in older ones these are
// unassigned, and so OTHER.
#include "tokens/split.h"

#include <string.h>

#include "tokens/classes_table.h"

enum { INVALID = 0x110000 };

bel_text_class bel_text_class_of(uint32_t character)
{
    size_t low = 0, high = sizeof class_starts / sizeof *class_starts;
    while (high - low > 1) { // class_starts[low] is at most the character, class_starts[high] above
        size_t middle = low + (high - low) / 2;
        if (class_starts[middle] >> 2 <= character) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (bel_text_class)(class_starts[low] & 3);
}

static uint32_t continuation(const unsigned char *bytes, size_t size, size_t index)
{
    return index < size && (bytes[index] & 0xC0) == 0x80 ? bytes[index] & 0x3FU : UINT32_MAX;
}

size_t bel_text_character(const char *text, size_t size, uint32_t *out_character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t first = bytes[0];
    *out_character = first;
    if (first < 0x80) return 1;
    size_t length = first >= 0xF0 && first < 0xF8   ? 4
                    : first >= 0xE0 && first < 0xF0 ? 3
                    : first >= 0xC0 && first < 0xE0 ? 2
                                                    : 0;
    uint32_t character = length == 0 ? UINT32_MAX : first & (0xFFU >> (length + 1));
    for (size_t i = 1; i < length && character != UINT32_MAX; i++) {
        uint32_t next = continuation(bytes, size, i);
        character = next == UINT32_MAX ? next : character << 6 | next;
    }
    bool surrogate = character >= 0xD800 && character < 0xE000;
    bool valid = character < INVALID && character >= least[length] && !surrogate;
    *out_character = valid ? character : INVALID;
    return valid ? length : 1;
}

static bel_text_class class_at(const char *text, size_t size, size_t *out_bytes)
{
    uint32_t character;
    *out_bytes = bel_text_character(text, size, &character);
    if (character < 0x80) { // most characters of most texts
        bool letter = (character | 0x20) - 'a' < 26;
        if (letter) return BEL_TEXT_LETTER;
        if (character - '0' < 10) return BEL_TEXT_NUMBER;
        return character == ' ' || character - 9 < 5 ? BEL_TEXT_SPACE : BEL_TEXT_OTHER;
    }
    return bel_text_class_of(character);
}

// Returns the bytes of the characters of one class at the beginning of a text.
static size_t run_of(const char *text, size_t size, bel_text_class wanted)
{
    size_t length = 0, bytes;
    while (length < size && class_at(text + length, size - length, &bytes) == wanted)
        length += bytes;
    return length;
}

static size_t contraction(const char *text, size_t size)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(ends[i]);
        if (size > length && memcmp(text + 1, ends[i], length) == 0) return length + 1;
    }
    return 0;
}

// A run of spaces leaves its last one to a following word.
static size_t spaces(const char *text, size_t size)
{
    size_t length = 0, last = 0, bytes;
    while (length < size && class_at(text + length, size - length, &bytes) == BEL_TEXT_SPACE) {
        last = bytes;
        length += bytes;
    }
    return length < size && length > last ? length - last : length;
}

size_t bel_text_piece(const char *text, size_t size)
{
    if (text[0] == '\'') {
        size_t length = contraction(text, size);
        if (length > 0) return length;
    }
    size_t before = text[0] == ' ' && size > 1 ? 1 : 0, bytes;
    bel_text_class its = class_at(text + before, size - before, &bytes);
    if (its == BEL_TEXT_SPACE) return spaces(text, size);
    return before + run_of(text + before, size - before, its);
}
