// A comma is brought to a point and the rest left to base/decimal.h, so that a number has the same
// bits however it is written. Looking at columns and reading them both come here, so a cell that is
// a number for the one is one for the other. Nothing is read as a number that may be another one:
// "1,125" has no clear comma, and what has a sign or a percent sign is only said to look like one.
#include "columns/cell_number.h"

#include <string.h>

#include "base/decimal.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *pass_sign(const char *at, const char *end)
{
    return at < end && (*at == '-' || *at == '+') ? at + 1 : at;
}

// Digits, of which `between` may stand in front of every three: "1234", "1.234.567". Behind them;
// NULL: there are none. *out_groups: how many times it stands.
static const char *pass_whole(const char *at, const char *end, char between, int *out_groups)
{
    const char *first = at;
    *out_groups = 0;
    while (at < end && is_digit(*at))
        at++;
    if (at == first) return NULL;
    if (at - first > 3 || *first == '0') return at;
    while (end - at >= 4 && *at == between && is_digit(at[1]) && is_digit(at[2]) &&
           is_digit(at[3])) {
        bool more = end - at > 4 && is_digit(at[4]);
        if (more) break;
        at += 4;
        ++*out_groups;
    }
    return at;
}

static bool is_number(const char *text, const char *end)
{
    double value;
    return text < end && bel_decimal_parse(text, end, &value) == end;
}

size_t bel_cell_number_pointed(const char *text, size_t length, char out_text[BEL_CELL_NUMBER_ROOM])
{
    const char *end = text + length, *digits = pass_sign(text, end);
    size_t count = 0;
    int groups;
    if (length >= BEL_CELL_NUMBER_ROOM) return 0;
    const char *behind = pass_whole(digits, end, '.', &groups);
    if (behind == NULL) behind = digits; // ",5"
    for (const char *at = text; at < behind; at++)
        if (*at != '.') out_text[count++] = *at;
    for (const char *at = behind; at < end; at++) {
        if (*at == '.' || (*at == ',' && at != behind)) return 0;
        out_text[count++] = *at == ',' ? '.' : *at;
    }
    return is_number(out_text, out_text + count) ? count : 0;
}

bool bel_cell_number_read(char decimal, const char *text, size_t length, double *out_value)
{
    char pointed[BEL_CELL_NUMBER_ROOM];
    if (decimal == ',') {
        length = bel_cell_number_pointed(text, length, pointed);
        text = pointed;
    }
    return length > 0 && bel_decimal_parse(text, text + length, out_value) == text + length;
}

bool bel_cell_number_has_comma(const char *text, size_t length)
{
    char pointed[BEL_CELL_NUMBER_ROOM];
    const char *end = text + length;
    int groups;
    if (memchr(text, ',', length) == NULL || bel_cell_number_pointed(text, length, pointed) == 0)
        return false;
    const char *behind = pass_whole(pass_sign(text, end), end, ',', &groups);
    return behind != end || groups == 0;
}

// --- What is none --------------------------------------------------------------------------------

// Takes a text off the front of another, or off its end.
static bool take_off(const char **text, const char **end, const char *part)
{
    size_t length = strlen(part);
    if ((size_t)(*end - *text) <= length) return false;
    if (memcmp(*text, part, length) == 0) {
        *text += length;
    } else if (memcmp(*end - length, part, length) == 0) {
        *end -= length;
    } else {
        return false;
    }
    while (*text < *end && **text == ' ')
        ++*text;
    while (*text < *end && (*end)[-1] == ' ')
        --*end;
    return true;
}

// A number, perhaps with commas in it.
static bel_cell_dress dress_of_commas(const char *text, const char *end)
{
    int groups;
    if (bel_cell_number_has_comma(text, (size_t)(end - text))) return BEL_DRESS_COMMA;
    const char *behind = pass_whole(pass_sign(text, end), end, ',', &groups);
    bool whole = behind != NULL && groups > 0 &&
                 (behind == end || (*behind == '.' && is_number(behind, end)));
    return whole ? BEL_DRESS_THOUSAND : BEL_DRESS_NONE;
}

bel_cell_dress bel_cell_number_dress(const char *text, size_t length)
{
    static const char *const currencies[] = {"$",   "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5",
                                             "USD", "EUR",          "GBP",      "CHF"};
    const char *end = text + length;
    const char *sign = pass_sign(text, end); // -$5
    bel_cell_dress dress = BEL_DRESS_NONE;
    if (sign > text && sign < end && !is_digit(*sign)) text = sign;
    if (take_off(&text, &end, "%")) dress = BEL_DRESS_PERCENT;
    for (size_t i = 0; i < sizeof currencies / sizeof currencies[0] && dress == BEL_DRESS_NONE; i++)
        if (take_off(&text, &end, currencies[i])) dress = BEL_DRESS_CURRENCY;
    bel_cell_dress commas = dress_of_commas(text, end);
    if (dress == BEL_DRESS_NONE) return commas;
    return commas != BEL_DRESS_NONE || is_number(text, end) ? dress : BEL_DRESS_NONE;
}
