// Differences of two opened checkpoints: settings, tensors with optimizer slots, and tables.
#ifndef BELFRY_TOOLS_INSPECT_DIFFERENCE_H
#define BELFRY_TOOLS_INSPECT_DIFFERENCE_H

#include "base/arena.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"

enum { BEL_VALUE_TEXT = 32 };

// How a tensor, or a column of a table, differs in its values.
typedef struct bel_value_difference {
    int64_t count;          // elements of the tensor, or rows that both tables have
    int64_t different;      // elements or rows that differ; 0: none
    int64_t first;          // index of the first element that differs, or key of the first row
    int first_element;      // index in that row
    char a[BEL_VALUE_TEXT]; // its values
    char b[BEL_VALUE_TEXT];
    bool floats;
    bool finite;        // two finite elements differ
    double apart;       // largest difference of two finite floats; inf: above the largest double
    uint64_t ulps;      // the same in units in the last place: 1 for neighbors; of integers, exact
    int64_t not_finite; // elements that differ, and of which one is not finite
} bel_value_difference;

// A tensor or a part of a table that differs; texts are in the result's arena.
typedef struct bel_difference {
    const char *name;
    const char *column; // a table's; NULL: its rows, or the name is a tensor's
    bool is_table;
    const char *other;   // a difference that is not one of values: "is not in B"; NULL: values
    const char *only_in; // "a" or "b": the one that has it, or has the lone rows; NULL: both do
    int64_t lone_rows;   // rows of a table that only this one has
    int64_t first_lone;  // key of the first
    const char *kind_a;  // types, shapes or columns that differ; NULL: they are the same
    const char *kind_b;
    bel_shape shape; // a tensor's
    bel_value_difference values;
} bel_difference;

// Tensors in byte order of names, then tables: also those that only one of the two has.
typedef struct bel_differences {
    bel_arena *arena;
    bel_difference *items;
    size_t count, capacity;
    int64_t equal; // tensors and tables without a difference
} bel_differences;

// Reads all tensors and tables of both; those of a delta with its base. Free the result with
// bel_differences_free, also after an error. DATA_LOSS, NOT_FOUND: a file is damaged or missing.
bel_status *bel_differences_find(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                 bel_differences *out) BEL_MUST_USE;
void bel_differences_free(bel_differences *differences);

// Appends the settings that differ and that a resume compares, as "learning_rate was 0.1 and is
// 0.2; …", and the replicas and
// batches of steps. "was" is of `a`.
void bel_differences_settings(const bel_ckpt_reader *a, const bel_ckpt_reader *b, bel_str *out);

#endif
