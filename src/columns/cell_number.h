// Numbers as tables write them: with a point or a comma in front of the decimals, and the forms
// that are none, so that somebody can be told what they look like.
#ifndef BELFRY_COLUMNS_CELL_NUMBER_H
#define BELFRY_COLUMNS_CELL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { BEL_CELL_NUMBER_ROOM = 64 }; // a longer text with a comma is no number

// A number with a decimal comma, and perhaps points between thousands ("1.234,5", "-3,2e4", "17"),
// with a point in its place; how long that is. 0: it is none. "1.5" is none, "1.500" is 1500.
size_t bel_cell_number_pointed(const char *text, size_t length,
                               char out_text[BEL_CELL_NUMBER_ROOM]);

// Reads a whole cell as a number. `decimal`: '.' or ','. Between thousands there may be an
// apostrophe or a space that does not break, which mean nothing else: "1\u2019250.5". False: it is
// none, or too large.
bool bel_cell_number_read(char decimal, const char *text, size_t length, double *out_value);

// A number that something stands beside.
typedef struct bel_cell_dressed {
    const char *unit; // "kg" of "43.2 kg", "$" of "-$5"; NULL: it has none
    size_t unit_length;
    bool commas; // between thousands: "52,300"
    bool clear;  // and that is what they are: "52,300.00", "1,234,567"
    double value;
} bel_cell_dressed;

// Reads a cell that is a number but for a unit, in front of it a currency, or commas between
// thousands. False: it is none with them, either.
bool bel_cell_number_undress(char decimal, const char *text, size_t length,
                             bel_cell_dressed *out_number);

// Whether a text is a number with a decimal comma, and nothing else that a comma is written for:
// "1,5" and "0,125"; "1,125" may have it between thousands.
bool bel_cell_number_has_comma(const char *text, size_t length);

// A number as a text that is the same for all ways to write it: "9", "9.0", "+9" and "0.9e1" are
// "9e0", and "0.50" is "5e-1". Exact, with all its digits. Returns its length; 0: it is no number,
// has zeros in front, as names have ("00501"), or is too long. Whole numbers have no "e-" in it.
size_t bel_cell_number_key(char decimal, const char *text, size_t length,
                           char out_key[BEL_CELL_NUMBER_ROOM]);

// Whether a text is digits alone, perhaps with a sign, of a number that a double cannot hold: as
// one it would be equal to others.
bool bel_cell_number_is_long(const char *text, size_t length);

// What a text that is no number would be one without.
typedef enum bel_cell_dress {
    BEL_DRESS_NONE,     // it is no number without it, either
    BEL_DRESS_COMMA,    // a decimal comma
    BEL_DRESS_THOUSAND, // commas between thousands
    BEL_DRESS_PERCENT,
    BEL_DRESS_CURRENCY, // a sign or three letters, in front or behind; perhaps commas, too
    BEL_DRESSES,
} bel_cell_dress;

bel_cell_dress bel_cell_number_dress(const char *text, size_t length);

#endif
