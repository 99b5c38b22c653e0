// Splitting CSV text into fields (RFC 4180), one field at a time, without copying.
#ifndef BELFRY_INPUT_CSV_SPLIT_H
#define BELFRY_INPUT_CSV_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A field as it lies in the text, without its quotes.
typedef struct bel_csv_field {
    const char *text;
    size_t length;
    bool doubled; // holds doubled quotes: bel_csv_copy_value makes them single
} bel_csv_field;

// What ended a field; from OPEN_QUOTE on it is a fault.
typedef enum bel_csv_stop {
    BEL_CSV_DELIMITER,
    BEL_CSV_ROW_END,     // line feed, carriage return and line feed, or the end of the text
    BEL_CSV_OPEN_QUOTE,  // the text ended inside quotes
    BEL_CSV_STRAY_QUOTE, // a quote inside a field that does not begin with one
    BEL_CSV_AFTER_QUOTE, // text behind the closing quote
    BEL_CSV_SHORT_ROW,   // fewer fields than the row was to have
} bel_csv_stop;

// Splits off the field that begins at `text`. *out_next is where the next field or row begins;
// after a fault, the place of the fault.
bel_csv_stop bel_csv_next_field(const char *text, const char *end, char delimiter,
                                bel_csv_field *out_field, const char **out_next);

// Where the first `count` fields of the row at `row` begin, with their quotes, and in starts[count]
// where another one would: field i ends one byte before starts[i + 1]. Nearly all rows are passed
// eight bytes at a time. `starts` has room for BEL_CSV_SPARE_STARTS more. After a fault *out_fault
// is its place.
enum { BEL_CSV_SPARE_STARTS = 9 };
bel_csv_stop bel_csv_split_row(const char *row, const char *end, char delimiter, int count,
                               const char **starts, const char **out_fault);

// A field by what bel_csv_split_row says of it: starts[i] and starts[i + 1].
bel_csv_field bel_csv_field_between(const char *start, const char *next);

// Bytes of `bytes` that are `wanted`, in all eight bytes of which the same byte is: the highest bit
// of each.
static inline uint64_t bel_csv_equal_bytes(uint64_t bytes, uint64_t wanted)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7F, other = bytes ^ wanted;
    return ~(((other & low) + low) | other | low);
}

// A byte in all eight.
static inline uint64_t bel_csv_eight(char byte)
{
    return 0x0101010101010101 * (unsigned char)byte;
}

// What a fault means, for an error message: "an open quote".
const char *bel_csv_fault_text(bel_csv_stop stop);

// True when a row ends at `at`.
bool bel_csv_is_row_end(const char *at, const char *end);

// Length of the field's value; then copies it there, doubled quotes made single.
size_t bel_csv_value_length(const bel_csv_field *field);
void bel_csv_copy_value(const bel_csv_field *field, char *out_value);

#endif
