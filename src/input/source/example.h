// Parser for a TFRecord record that is a tf.train.Example: features by name. Only example.c uses
// protobuf-c.
#ifndef BELFRY_INPUT_SOURCE_EXAMPLE_H
#define BELFRY_INPUT_SOURCE_EXAMPLE_H

#include "belfry/dataset.h"

typedef struct bel_example bel_example;

// Parses an Example; NULL: invalid bytes. Free with bel_example_destroy.
bel_example *bel_example_parse(const char *data, size_t size);
void bel_example_destroy(bel_example *example); // accepts NULL

// Values of a feature. Numbers are contiguous; the values of a bytes_list are not, so `bytes` is
// its first value.
typedef struct bel_example_values {
    const char *list; // "float_list", "int64_list" or "bytes_list"
    size_t count;     // number of values
    const void *numbers;
    const void *bytes;
    size_t byte_count;
} bel_example_values;

// Finds a feature. False: no feature of this name, or it is empty. If several have the name, the
// last counts.
bool bel_example_find(const bel_example *example, const char *key, bel_example_values *out_values);

#endif
