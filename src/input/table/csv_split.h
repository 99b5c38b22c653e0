// Splitter of CSV text into fields (RFC 4180), one field at a time, without copying.
#ifndef BELFRY_INPUT_TABLE_CSV_SPLIT_H
#define BELFRY_INPUT_TABLE_CSV_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A field as it is in the text, without its quotes.
typedef struct bel_csv_field {
    const char *text;
    size_t length;
    bool doubled; // contains doubled quotes; bel_csv_copy_value makes them single
} bel_csv_field;

// End of a field. Values from BEL_CSV_OPEN_QUOTE on are faults.
typedef enum bel_csv_stop {
    BEL_CSV_DELIMITER,
    BEL_CSV_ROW_END,     // LF, CR LF or the end of the text
    BEL_CSV_OPEN_QUOTE,  // the text ended inside quotes
    BEL_CSV_STRAY_QUOTE, // a quote inside a field that does not begin with one
    BEL_CSV_AFTER_QUOTE, // text after the closing quote
    BEL_CSV_SHORT_ROW,   // fewer fields than expected
} bel_csv_stop;

// Splits off the field that begins at `text`. *out_next is the start of the next field or row, or
// the place of the fault.
bel_csv_stop bel_csv_next_field(const char *text, const char *end, char delimiter,
                                bel_csv_field *out_field, const char **out_next);

// Finds the starts of the first `count` fields of the row at `row`, quotes included. starts[count]
// is the start that another field would have: field i ends one byte before starts[i + 1]. The
// function scans nearly all rows eight bytes at a time. `starts` needs room for `count` +
// BEL_CSV_SPARE_STARTS entries. *out_fault is the place of a fault.
enum { BEL_CSV_SPARE_STARTS = 9 };
bel_csv_stop bel_csv_split_row(const char *row, const char *end, char delimiter, int count,
                               const char **starts, const char **out_fault);

// Makes a field from bel_csv_split_row's starts[i] and starts[i + 1].
bel_csv_field bel_csv_field_between(const char *start, const char *next);

// Marks the bytes of `bytes` that equal those of `wanted`, which holds one byte eight times. The
// highest bit of each equal byte is set, all other bits are 0.
static inline uint64_t bel_csv_equal_bytes(uint64_t bytes, uint64_t wanted)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7F, other = bytes ^ wanted;
    return ~(((other & low) + low) | other | low);
}

// Number of bytes that such a mask marks.
static inline int bel_csv_count_marked(uint64_t mask)
{
    return (int)((mask >> 7) * 0x0101010101010101 >> 56);
}

// The byte, repeated eight times.
static inline uint64_t bel_csv_eight(char byte)
{
    return 0x0101010101010101 * (unsigned char)byte;
}

// Text of a fault for an error message: "expected more fields, got the end of the row".
const char *bel_csv_fault_text(bel_csv_stop stop);

// True when a row ends at `at`.
bool bel_csv_is_row_end(const char *at, const char *end);

// Length of the field's value, with doubled quotes counted once.
size_t bel_csv_value_length(const bel_csv_field *field);
// Copies the field's value, with doubled quotes made single.
void bel_csv_copy_value(const bel_csv_field *field, char *out_value);

#endif
