// A record of a TFRecord file as a tf.train.Example: features by name. All that knows protobuf-c
// is behind this.
#ifndef BELFRY_INPUT_EXAMPLE_H
#define BELFRY_INPUT_EXAMPLE_H

#include "belfry/dataset.h"

typedef struct bel_example bel_example;

// NULL: these bytes are no Example. Free with bel_example_destroy.
bel_example *bel_example_parse(const char *data, size_t size);
void bel_example_destroy(bel_example *example); // accepts NULL

// What a feature holds. Numbers are one behind the other; the values of a bytes_list are not, so
// there is `bytes` for its first value.
typedef struct bel_example_values {
    const char *list; // "float_list", "int64_list" or "bytes_list"
    size_t count;     // values
    const void *numbers;
    const void *bytes;
    size_t byte_count;
} bel_example_values;

// False when there is no feature of this name, or nothing in it. Of several of one name the last
// counts.
bool bel_example_find(const bel_example *example, const char *key, bel_example_values *out_values);

#endif
