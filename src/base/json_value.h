// Values of a JSON document, for json_parse.c, which makes them, and json.c, which reads them. They
// are immutable and live in an arena.
#ifndef BELFRY_BASE_JSON_VALUE_H
#define BELFRY_BASE_JSON_VALUE_H

#include "base/arena.h"
#include "base/json.h"

typedef enum bel_json_kind {
    BEL_JSON_NULL,
    BEL_JSON_FALSE,
    BEL_JSON_TRUE,
    BEL_JSON_INTEGER, // a number without a point and an exponent
    BEL_JSON_REAL,
    BEL_JSON_TEXT,
    BEL_JSON_LIST,
    BEL_JSON_OBJECT
} bel_json_kind;

struct bel_json_value {
    uint32_t kind;
    uint32_t count; // bytes of a text, elements of a list, members of an object
    union {
        int64_t integer;
        double real;
        const char *text; // with a zero byte after it, and no other
        // The elements of a list. For an object: the first name, its value, the second name, …; if
        // there are more than BEL_JSON_FEW members, pointers to the names follow, sorted by
        // bel_json_compare.
        const bel_json_value *items;
    };
};

enum { BEL_JSON_FEW = 8 };

// Compares two texts: by length, then by bytes.
int bel_json_compare(const bel_json_value *a, const bel_json_value *b);

// Parses a document, an object or a list. DATA_LOSS: it is not valid; with `is_secret` the message
// repeats nothing of it.
bel_status *bel_json_parse_values(bel_arena *arena, const char *text, size_t length,
                                  const char *source, bool is_secret,
                                  const bel_json_value **out_root) BEL_MUST_USE;

#endif
