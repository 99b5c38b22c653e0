// Growing string, and the nearest name for "did you mean".
#ifndef BELFRY_BASE_STR_H
#define BELFRY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Zero-initialize to begin; `text` is NULL while empty and otherwise always ends with a zero byte.
typedef struct bel_str {
    char *text;
    size_t length;
    size_t capacity;
} bel_str;

void bel_str_append(bel_str *str, const char *bytes, size_t length);
void bel_str_puts(bel_str *str, const char *text);
// Makes room for at least `size` bytes at the end and returns its start. The caller writes there,
// raises `length` and puts a zero byte after the text.
char *bel_str_room(bel_str *str, size_t size);
void bel_str_put_i64(bel_str *str, int64_t number); // as "%lld", several times as fast
void bel_str_printf(bel_str *str, const char *format, ...) BEL_PRINTF(2, 3);
void bel_str_deinit(bel_str *str);

// Makes a string from a printf format; free with bel_free.
char *bel_strf(const char *format, ...) BEL_PRINTF(1, 2);

// Returns the index of the name nearest to `word` by edit distance; -1 if all are too different.
int bel_nearest_name(const char *word, const char *const *names, size_t count);

// Returns the index of `text` in a list such as "a|b|c" (separator "|"); -1: not in the list.
int bel_list_find(const char *list, const char *separator, const char *text);

// Returns the number of bytes of the character at `text` by RFC 3629 (without overlong forms and
// surrogates); 0: invalid. The text ends with a zero byte.
int bel_utf8_bytes(const char *text);

// Returns the bytes of a byte order mark of UTF-8 at the beginning of a text, which some editors
// write: 3, or 0 without one.
size_t bel_utf8_mark_bytes(const char *text, size_t size);

// Parse an entire string as a number, in the "C" locale. False unless the text is exactly one
// number in range. Integers accept only a sign and decimal digits.
bool bel_parse_i64(const char *text, size_t length, int64_t *out_value);
bool bel_parse_f64(const char *text, size_t length, double *out_value);

// Format "12.3 MiB" and "1 h 02 min". `text` needs 32 bytes and is returned.
const char *bel_bytes_text(uint64_t bytes, char text[32]);
const char *bel_seconds_text(double seconds, char text[32]);

#endif
