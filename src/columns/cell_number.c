// Cells are brought to a form with a decimal point and then parsed by base/decimal.h, so that a
// number has the same bits however it is written. The statistics of columns and the reading of
// cells both use these functions, so they agree on which cells are numbers. An ambiguous text is
// not a number: "1,125" has no clear decimal comma, and a text with a currency or a percent sign is
// only reported to look like a number.
#include "columns/cell_number.h"

#include <string.h>

#include "base/decimal.h"
#include "base/number.h"
#include "base/str.h"

enum { MOST_EXPONENT = 1000 };

// The first match counts: "US$" before "$".
static const char *const currencies[] = {"US$", "$",   "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5",
                                         "USD", "EUR", "GBP",          "CHF",      "Rs."};

enum { CURRENCIES = sizeof currencies / sizeof currencies[0] };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *pass_sign(const char *at, const char *end)
{
    return at < end && (*at == '-' || *at == '+') ? at + 1 : at;
}

// Skips digits, with `between` before each group of three or nowhere: "1234", "1.234.567". Returns
// the end; NULL: no digits. *out_groups: the count of `between`.
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

// Length of a separator that is used only between thousands: an apostrophe, straight or curved, or
// a no-break space of any width; 0: no separator.
static size_t separator_at(const char *at, const char *end)
{
    static const char *const separators[] = {"'", "\xC2\xA0", "\xE2\x80\x99", "\xE2\x80\xAF",
                                             "\xE2\x80\x89"};
    for (size_t i = 0; i < sizeof separators / sizeof separators[0]; i++) {
        size_t length = strlen(separators[i]);
        if ((size_t)(end - at) >= length && memcmp(at, separators[i], length) == 0) return length;
    }
    return 0;
}

static int digits_at(const char *at, const char *end)
{
    int count = 0;
    while (at < end && count < 5 && is_digit(*at))
        at++, count++;
    return count;
}

// Removes the thousands separators; 0: none, or a misplaced one.
static size_t without_separators(const char *text, size_t length, char out[BEL_CELL_NUMBER_ROOM])
{
    const char *end = text + length, *at = pass_sign(text, end);
    int digits = digits_at(at, end);
    size_t count = (size_t)(at + digits - text), bytes;
    if (length >= BEL_CELL_NUMBER_ROOM || digits < 1 || digits > 3) return 0;
    memcpy(out, text, count);
    at += digits;
    if (separator_at(at, end) == 0) return 0;
    while ((bytes = separator_at(at, end)) > 0) {
        at += bytes;
        if (digits_at(at, end) != 3) return 0;
        memcpy(out + count, at, 3);
        count += 3;
        at += 3;
    }
    memcpy(out + count, at, (size_t)(end - at));
    return count + (size_t)(end - at);
}

static bool read_bare(char decimal, const char *text, size_t length, double *out_value)
{
    char pointed[BEL_CELL_NUMBER_ROOM];
    if (decimal == ',') {
        length = bel_cell_number_pointed(text, length, pointed);
        text = pointed;
    }
    return length > 0 && bel_decimal_parse(text, text + length, out_value) == text + length;
}

bool bel_cell_number_read(char decimal, const char *text, size_t length, double *out_value)
{
    char joined[BEL_CELL_NUMBER_ROOM];
    if (read_bare(decimal, text, length, out_value)) return true;
    length = without_separators(text, length, joined);
    return length > 0 && read_bare(decimal, joined, length, out_value);
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

// --- Marks ---------------------------------------------------------------------------------------

// Length of the currency before a number.
static size_t currency_at(const char *at, const char *end)
{
    for (size_t i = 0; i < CURRENCIES; i++) {
        size_t length = strlen(currencies[i]);
        if ((size_t)(end - at) > length && memcmp(at, currencies[i], length) == 0) return length;
    }
    return 0;
}

// Cuts off a unit, and the spaces between it and the number; a sign may precede both.
static void cut_unit(const char **text, const char **end, bool *negative, bel_cell_dressed *number)
{
    enum { LONGEST = 16 };
    const char *at = *text, *last = *end;
    *negative = last - at > 1 && *at == '-' && currency_at(at + 1, last) > 0;
    if (*negative) at++;
    size_t front = currency_at(at, last);
    if (front > 0) {
        number->unit = at;
        number->unit_length = front;
        for (at += front; at < last && *at == ' ';)
            at++;
    } else {
        while (last > at && !is_digit(last[-1]) && last[-1] != '.')
            last--;
        number->unit = last;
        while (number->unit < *end && *number->unit == ' ')
            number->unit++;
        number->unit_length = (size_t)(*end - number->unit);
    }
    if (number->unit_length == 0 || number->unit_length > LONGEST ||
        memchr(number->unit, ',', number->unit_length) != NULL)
        number->unit = NULL;
    if (number->unit == NULL) return;
    *text = at;
    *end = last;
}

// Removes commas between thousands; 0: none, or a misplaced one.
static size_t without_commas(const char *text, const char *end, char out[BEL_CELL_NUMBER_ROOM],
                             bool *out_clear)
{
    int groups;
    size_t count = 0;
    const char *behind = pass_whole(pass_sign(text, end), end, ',', &groups);
    if (behind == NULL || groups == 0 || end - text >= BEL_CELL_NUMBER_ROOM) return 0;
    for (const char *at = text; at < end; at++)
        if (*at != ',' || at >= behind) out[count++] = *at;
    *out_clear = groups > 1 || behind < end;
    return count;
}

bool bel_cell_number_undress(char decimal, const char *text, size_t length,
                             bel_cell_dressed *out_number)
{
    char joined[BEL_CELL_NUMBER_ROOM];
    const char *end = text + length;
    bel_cell_dressed number = {0};
    bool negative;
    cut_unit(&text, &end, &negative, &number);
    bool read =
        text < end && bel_cell_number_read(decimal, text, (size_t)(end - text), &number.value);
    if (!read && decimal == '.') {
        size_t count = without_commas(text, end, joined, &number.clear);
        read = number.commas = count > 0 && read_bare('.', joined, count, &number.value);
    }
    if (!read || (number.unit == NULL && !number.commas)) return false;
    if (number.unit != NULL && negative) number.value = -number.value;
    *out_number = number;
    return true;
}

// --- Exact keys ----------------------------------------------------------------------------------

// Reads the digits of a number, without the point and the zeros at both ends. As an integer, times
// 10^*out_power, they are the number. Returns the end of the digits.
static const char *take_digits(const char *at, const char *end, char *out_digits, size_t *out_count,
                               int64_t *out_power)
{
    size_t count = 0, kept = 0; // kept: up to the last nonzero digit
    int64_t power = 0;
    bool fraction = false;
    for (; at < end && (is_digit(*at) || (*at == '.' && !fraction)); at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        power -= fraction;
        if (*at == '0' && count == 0) continue;
        out_digits[count++] = *at;
        if (*at != '0') kept = count;
    }
    *out_count = kept;
    *out_power = power + (int64_t)(count - kept);
    return at;
}

size_t bel_cell_number_key(char decimal, const char *text, size_t length,
                           char out_key[BEL_CELL_NUMBER_ROOM])
{
    enum { EXPONENT = 24 }; // room for an exponent
    char pointed[BEL_CELL_NUMBER_ROOM], digits[BEL_CELL_NUMBER_ROOM];
    size_t bare = decimal == ',' ? bel_cell_number_pointed(text, length, pointed) : 0, count;
    if (bare > 0) text = pointed, length = bare;
    if (length == 0 || length > BEL_CELL_NUMBER_ROOM - EXPONENT) return 0;
    const char *end = text + length, *at = pass_sign(text, end);
    bool named = end - at > 1 && *at == '0' && is_digit(at[1]);
    int64_t power, exponent = 0;
    if (named || !is_number(text, end)) return 0;
    at = take_digits(at, end, digits, &count, &power);
    if (at < end) at++; // the "e"
    if (at < end && *at == '+') at++;
    if (at < end && !bel_parse_i64(at, (size_t)(end - at), &exponent)) return 0;
    if (exponent < -MOST_EXPONENT || exponent > MOST_EXPONENT) return 0;
    if (count == 0) return (size_t)bel_snprintf(out_key, BEL_CELL_NUMBER_ROOM, "0e0");
    long long scale = power + exponent;
    return (size_t)bel_snprintf(out_key, BEL_CELL_NUMBER_ROOM, "%s%.*se%lld",
                                *text == '-' ? "-" : "", (int)count, digits, scale);
}

bool bel_cell_number_is_long(const char *text, size_t length)
{
    enum { HELD = 15, MOST = 19 }; // digits that fit a double, and 64 bits
    const char *end = text + length, *at = pass_sign(text, end);
    uint64_t value = 0;
    if (end - at <= HELD) return false;
    for (const char *digit = at; digit < end; digit++)
        if (!is_digit(*digit)) return false;
    while (end > at && end[-1] == '0')
        end--;
    if (end - at > MOST) return true;
    for (; at < end; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value > (uint64_t)1 << 53;
}

// --- Texts that are no numbers -------------------------------------------------------------------

// Removes a text from the start or the end of another.
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

// Finds the mark of a number that may have commas in it.
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
    const char *end = text + length;
    const char *sign = pass_sign(text, end); // -$5
    bel_cell_dress dress = BEL_DRESS_NONE;
    if (sign > text && sign < end && !is_digit(*sign)) text = sign;
    if (take_off(&text, &end, "%")) dress = BEL_DRESS_PERCENT;
    for (size_t i = 0; i < CURRENCIES && dress == BEL_DRESS_NONE; i++)
        if (take_off(&text, &end, currencies[i])) dress = BEL_DRESS_CURRENCY;
    bel_cell_dress commas = dress_of_commas(text, end);
    if (dress == BEL_DRESS_NONE) return commas;
    return commas != BEL_DRESS_NONE || is_number(text, end) ? dress : BEL_DRESS_NONE;
}

bool bel_cell_of_json(bel_str *out, const bel_json_value *value)
{
    int64_t integer;
    double number;
    bool flag;
    const char *text = bel_json_value_string(value);
    if (text != NULL) {
        bel_str_puts(out, text);
    } else if (bel_json_value_bool(value, &flag)) {
        bel_str_puts(out, flag ? "true" : "false");
    } else if (bel_json_value_i64(value, &integer)) {
        bel_str_printf(out, "%lld", (long long)integer);
    } else if (bel_json_value_f64(value, &number)) {
        bel_json_write_number(out, number);
    } else {
        return false;
    }
    return true;
}
