// Numbers as tables write them, with a decimal point or comma, and forms that are not read as
// numbers, so that a message can name them.
#ifndef BELFRY_COLUMNS_CELL_NUMBER_H
#define BELFRY_COLUMNS_CELL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"

enum { BEL_CELL_NUMBER_ROOM = 64 }; // a longer text with a comma is no number

// Rewrites a number with a decimal comma, and perhaps points between thousands ("1.234,5",
// "-3,2e4", "17"), with a decimal point. Returns the new length; 0: no such number. "1.5" is
// invalid, "1.500" is 1500.
size_t bel_cell_number_pointed(const char *text, size_t length,
                               char out_text[BEL_CELL_NUMBER_ROOM]);

// Reads an entire cell as a number. `decimal`: '.' or ','. An apostrophe or a no-break space may
// separate thousands, as it means nothing else: "1\u2019250.5". False: no number, or too large.
bool bel_cell_number_read(char decimal, const char *text, size_t length, double *out_value);

// A number with a unit, or with commas between thousands.
typedef struct bel_cell_dressed {
    const char *unit; // "kg" of "43.2 kg", "$" of "-$5"; NULL: no unit
    size_t unit_length;
    bool commas; // between thousands: "52,300"
    bool clear;  // and they cannot be decimal commas: "52,300.00", "1,234,567"
    double value;
} bel_cell_dressed;

// Reads a cell that is a number with a unit after it, a currency before it, or commas between
// thousands. False: no such number.
bool bel_cell_number_undress(char decimal, const char *text, size_t length,
                             bel_cell_dressed *out_number);

// Whether a text is a number whose comma can only be a decimal comma: "1,5" and "0,125"; the comma
// of "1,125" may separate thousands.
bool bel_cell_number_has_comma(const char *text, size_t length);

// Writes the canonical text of a number, the same for all ways to write it: "9", "9.0", "+9" and
// "0.9e1" are "9e0", and "0.50" is "5e-1". It is exact, with all digits. Returns its length; 0: no
// number, leading zeros as in a name ("00501"), or too long. The key of an integer has no "e-".
size_t bel_cell_number_key(char decimal, const char *text, size_t length,
                           char out_key[BEL_CELL_NUMBER_ROOM]);

// Appends the cell that a value of JSON is, in a table and in a request: a number's shortest text
// (2.0 is "2"), "true", "false", or a text as it is. False: null, a list or an object.
bool bel_cell_of_json(bel_str *out, const bel_json_value *value);

// Whether a text consists of digits, perhaps with a sign, that a double cannot hold: as doubles,
// different numbers would be equal.
bool bel_cell_number_is_long(const char *text, size_t length);

// The mark without which a text would be a number.
typedef enum bel_cell_dress {
    BEL_DRESS_NONE,     // no mark explains it
    BEL_DRESS_COMMA,    // a decimal comma
    BEL_DRESS_THOUSAND, // commas between thousands
    BEL_DRESS_PERCENT,
    BEL_DRESS_CURRENCY, // a sign or three letters, before or after; perhaps commas, too
    BEL_DRESSES,
} bel_cell_dress;

bel_cell_dress bel_cell_number_dress(const char *text, size_t length);

#endif
