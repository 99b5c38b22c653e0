// Splitting CSV text into fields (RFC 4180), one field at a time, without copying.
#ifndef BELFRY_INPUT_CSV_SPLIT_H
#define BELFRY_INPUT_CSV_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

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
} bel_csv_stop;

// Splits off the field that begins at `text`. *out_next is where the next field or row begins;
// after a fault, the place of the fault.
bel_csv_stop bel_csv_next_field(const char *text, const char *end, char delimiter,
                                bel_csv_field *out_field, const char **out_next);

// What a fault means, for an error message: "an open quote".
const char *bel_csv_fault_text(bel_csv_stop stop);

// True when a row ends at `at`.
bool bel_csv_is_row_end(const char *at, const char *end);

// Length of the field's value; then copies it there, doubled quotes made single.
size_t bel_csv_value_length(const bel_csv_field *field);
void bel_csv_copy_value(const bel_csv_field *field, char *out_value);

#endif
