// JSON: texts parsed to values, with errors that name source, line and column; and written.
#ifndef BELFRY_BASE_JSON_H
#define BELFRY_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_str bel_str; // base/str.h

// write_string adds quotes and escapes, and replaces bytes that are no UTF-8 by U+FFFD: a reader
// then accepts the line, whatever bytes a file's name or a library's message contains. write_exact
// keeps all bytes, for Belfry's own readers.
void bel_json_write_string(bel_str *out, const char *text);
void bel_json_write_exact(bel_str *out, const char *text);
void bel_json_write_number(bel_str *out,
                           double value); // shortest text with the same bits; null if not finite

// Appends a parsed value as one line, in its original order.
typedef struct bel_json_value bel_json_value;
void bel_json_write_value(bel_str *out, const bel_json_value *value);

// Parsed document, which owns its values.
typedef struct bel_json bel_json;

// `source` names the text in errors. DATA_LOSS with source:line:column if it is not valid JSON; the
// place of a name that comes twice is the end of its object. Values need at most 18 times the
// text's bytes and 16 MiB while it is read.
bel_status *bel_json_parse(const char *text, size_t length, const char *source,
                           bel_json **out_json) BEL_MUST_USE;
// The same for a text with secrets: the error has only the place.
bel_status *bel_json_parse_secret(const char *text, size_t length, const char *source,
                                  bel_json **out_json) BEL_MUST_USE;
// bel_json_parse for a caller that parses often: the values live in the arena, which frees them at
// once.
typedef struct bel_arena bel_arena;
bel_status *bel_json_parse_in(bel_arena *arena, const char *text, size_t length, const char *source,
                              const bel_json_value **out_root) BEL_MUST_USE;

const bel_json_value *bel_json_root(const bel_json *json);
void bel_json_destroy(bel_json *json);

// Look-ups return false or NULL if the member is missing or has another type.
const bel_json_value *bel_json_member(const bel_json_value *object, const char *name);
bool bel_json_string(const bel_json_value *object, const char *name, const char **out_text);
bool bel_json_i64(const bel_json_value *object, const char *name, int64_t *out_number);
bool bel_json_f64(const bel_json_value *object, const char *name, double *out_number); // any number
size_t bel_json_length(const bel_json_value *array); // 0 if it is no array
const bel_json_value *bel_json_at(const bel_json_value *array, size_t index);
bool bel_json_value_i64(const bel_json_value *value, int64_t *out_number);
bool bel_json_value_f64(const bel_json_value *value, double *out_number); // any number
// Copies a list of numbers as f32, and returns how many come before the first other element. A
// number is rounded to double and then to f32; a large one becomes infinite.
size_t bel_json_take_f32(const bel_json_value *array, float *out_numbers);
bool bel_json_value_bool(const bel_json_value *value, bool *out_flag);
const char *bel_json_value_string(const bel_json_value *value); // NULL if it is no string
bool bel_json_is_array(const bel_json_value *value);            // false for NULL, as the next
bool bel_json_is_object(const bel_json_value *value);
bool bel_json_is_null(const bel_json_value *value); // the value null

// Calls `visit` for each member in the order of the text; stops at the first error.
bel_status *bel_json_each(const bel_json_value *object,
                          bel_status *(*visit)(void *context, const char *name,
                                               const bel_json_value *value),
                          void *context) BEL_MUST_USE;

#endif
