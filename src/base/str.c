// Strings: building, number parsing, nearest names. A format that does not fit is run a second
// time, in the "C" locale (number.c). Integers accumulate as negative numbers, whose range includes
// the smallest one. A floating-point number has at most 63 characters, only those of decimal
// numbers, infinities and NaN, so no hexadecimal one passes. Words of more than 63 bytes get no
// suggestion.
#include "base/str.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/number.h"

void bel_str_append(bel_str *str, const char *bytes, size_t length)
{
    str->text = bel_xgrow(str->text, &str->capacity, str->length + length + 1, 1);
    if (length > 0) memcpy(str->text + str->length, bytes, length);
    str->length += length;
    str->text[str->length] = '\0';
}

char *bel_str_room(bel_str *str, size_t size)
{
    str->text = bel_xgrow(str->text, &str->capacity, str->length + size + 1, 1);
    return str->text + str->length;
}

void bel_str_puts(bel_str *str, const char *text)
{
    bel_str_append(str, text, strlen(text));
}

void bel_str_put_i64(bel_str *str, int64_t number)
{
    char digits[20], *at = digits + sizeof digits; // the longest number has a sign and 19 digits
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) *--at = '-';
    bel_str_append(str, at, (size_t)(digits + sizeof digits - at));
}

BEL_PRINTF(2, 0)
static void append_format(bel_str *str, const char *format, va_list args)
{
    va_list copy;
    size_t room = str->capacity - str->length;
    va_copy(copy, args);
    int length = bel_vsnprintf(room > 0 ? str->text + str->length : NULL, room, format, copy);
    va_end(copy);
    if (length >= 0 && (size_t)length >= room) {
        str->text = bel_xgrow(str->text, &str->capacity, str->length + (size_t)length + 1, 1);
        bel_vsnprintf(str->text + str->length, (size_t)length + 1, format, args);
    }
    if (length > 0) str->length += (size_t)length;
    if (str->text != NULL) str->text[str->length] = '\0'; // even if the format is wrong
}

void bel_str_printf(bel_str *str, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append_format(str, format, args);
    va_end(args);
}

void bel_str_deinit(bel_str *str)
{
    bel_free(str->text);
    *str = (bel_str){0};
}

char *bel_strf(const char *format, ...)
{
    bel_str str = {0};
    va_list args;
    va_start(args, format);
    append_format(&str, format, args);
    va_end(args);
    return str.text;
}

// Levenshtein distance, one row at a time; words longer than the row are never suggested.
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX_WORD = 63 };
    size_t row[MAX_WORD + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > MAX_WORD || b_length > MAX_WORD) return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = substitute < best ? substitute : best;
        }
    }
    return row[b_length];
}

int bel_nearest_name(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(word, names[i]) == 0) return (int)i;
    int nearest = -1;
    size_t best = strlen(word) / 2 + 1; // more than half the word wrong is not a typo
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, names[i]);
        if (distance < best) {
            best = distance;
            nearest = (int)i;
        }
    }
    return nearest;
}

int bel_list_find(const char *list, const char *separator, const char *text)
{
    size_t wanted = strlen(text);
    int index = 0;
    for (const char *item = list;; item++, index++) {
        size_t length = strcspn(item, separator);
        if (length == wanted && strncmp(item, text, length) == 0) return index;
        item += length;
        if (*item == '\0') return -1;
    }
}

bool bel_parse_i64(const char *text, size_t length, int64_t *out_value)
{
    bool negative = length > 0 && text[0] == '-';
    size_t i = length > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    if (i == length) return false;
    int64_t value = 0;
    for (; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        int64_t digit = text[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_sub_overflow(value, digit, &value)) return false; // negative: holds INT64_MIN
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value)) return false;
    *out_value = value;
    return true;
}

bool bel_parse_f64(const char *text, size_t length, double *out_value)
{
    char buffer[64];
    if (length == 0 || length >= sizeof buffer) return false;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    if (strspn(buffer, "0123456789+-.eEinfatyINFATY") != length) return false;
    char *end;
    double value = bel_strtod(buffer, &end);
    if (end != buffer + length) return false;
    *out_value = value;
    return true;
}

size_t bel_utf8_mark_bytes(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

int bel_utf8_bytes(const char *character)
{
    const unsigned char *text = (const unsigned char *)character;
    unsigned char first = text[0], low = 0x80, high = 0xBF;
    int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4) return 0;
    if (first == 0xE0) low = 0xA0;  // overlong
    if (first == 0xED) high = 0x9F; // surrogates
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F; // after the last character
    for (int i = 1; i <= more; i++) {
        if (text[i] < low || text[i] > high) return 0; // also for a zero byte
        low = 0x80, high = 0xBF;
    }
    return more + 1;
}

const char *bel_bytes_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    bel_snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

const char *bel_seconds_text(double seconds, char text[32])
{
    long whole = seconds < 0 ? 0 : (long)(seconds + 0.5);
    if (seconds < 10) {
        bel_snprintf(text, 32, "%.1f s", seconds < 0 ? 0.0 : seconds);
    } else if (whole < 60) {
        bel_snprintf(text, 32, "%ld s", whole);
    } else if (whole < 3600) {
        bel_snprintf(text, 32, "%ld min %02ld s", whole / 60, whole % 60);
    } else {
        bel_snprintf(text, 32, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
    }
    return text;
}
