// A growing string, and the nearest name for "did you mean".
#ifndef BELFRY_BASE_STR_H
#define BELFRY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Zero-initialise to begin; `text` is NULL while empty and always ends with a zero byte otherwise.
typedef struct bel_str {
    char *text;
    size_t length;
    size_t capacity;
} bel_str;

void bel_str_append(bel_str *str, const char *bytes, size_t length);
void bel_str_puts(bel_str *str, const char *text);
// Room for at least `size` bytes at the end, for a caller that writes there: `length` is then the
// caller's to raise, and a zero byte to put behind.
char *bel_str_room(bel_str *str, size_t size);
void bel_str_printf(bel_str *str, const char *format, ...) BEL_PRINTF(2, 3);
void bel_str_deinit(bel_str *str);

// A new string from a printf format; free with bel_free.
char *bel_strf(const char *format, ...) BEL_PRINTF(1, 2);

// Index of the name nearest to `word` by edit distance, or -1 when none is near enough to suggest.
int bel_nearest_name(const char *word, const char *const *names, size_t count);

// The number of `text` among those of a list such as "a|b|c" (separator "|"), or -1: it is none.
int bel_list_find(const char *list, const char *separator, const char *text);

// Bytes of the character that begins at `text`, as RFC 3629 has it (overlong forms and halves of
// pairs are none); 0: none begins there. The text ends with a zero byte.
int bel_utf8_bytes(const char *text);

// Whole-string number parsing without locale. False when the text is not exactly one number in
// range. Integers accept a sign and decimal digits only.
bool bel_parse_i64(const char *text, size_t length, int64_t *out_value);
bool bel_parse_f64(const char *text, size_t length, double *out_value);

// "12.3 MiB" and "1 h 02 min" for people. `text` needs 32 bytes and is returned.
const char *bel_bytes_text(uint64_t bytes, char text[32]);
const char *bel_seconds_text(double seconds, char text[32]);

#endif
