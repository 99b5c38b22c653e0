// protobuf-c makes the message with an allocation per part. A handwritten parser would be faster,
// but does not justify a second reader of protocol buffers. The bytes of a file bound its claims:
// protobuf-c counts elements before it allocates them, and a budget limits empty parts, which take
// more memory than bytes.
#include "input/source/example.h"

#include <string.h>

#include "base/budget.h"
#include "example.pb-c.h"

struct bel_example {
    Tfrecord__Example message;
};

bel_example *bel_example_parse(const char *data, size_t size)
{
    bel_budget budget = bel_budget_of(size);
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
    return (bel_example *)tfrecord__example__unpack(&allocator, size, (const uint8_t *)data);
}

void bel_example_destroy(bel_example *example)
{
    ProtobufCAllocator allocator = {NULL, bel_budget_give, NULL};
    if (example != NULL) tfrecord__example__free_unpacked(&example->message, &allocator);
}

bool bel_example_find(const bel_example *example, const char *key, bel_example_values *out_values)
{
    const Tfrecord__Features *features = example->message.features;
    const Tfrecord__Feature *found = NULL;
    for (size_t i = features == NULL ? 0 : features->n_feature; i-- > 0 && found == NULL;) {
        const Tfrecord__Entry *entry = features->feature[i];
        const char *name = entry->key == NULL ? "" : entry->key;
        if (strcmp(name, key) == 0) found = entry->value;
    }
    if (found == NULL) return false;
    bel_example_values values = {0};
    switch (found->kind_case) {
    case TFRECORD__FEATURE__KIND_FLOAT_LIST:
        values.list = "float_list";
        values.count = found->float_list->n_value;
        values.numbers = found->float_list->value;
        break;
    case TFRECORD__FEATURE__KIND_INT64_LIST:
        values.list = "int64_list";
        values.count = found->int64_list->n_value;
        values.numbers = found->int64_list->value;
        break;
    case TFRECORD__FEATURE__KIND_BYTES_LIST:
        values.list = "bytes_list";
        values.count = found->bytes_list->n_value;
        if (values.count == 0) break;
        values.bytes = found->bytes_list->value[0].data;
        values.byte_count = found->bytes_list->value[0].len;
        break;
    default: return false; // a feature without a kind
    }
    *out_values = values;
    return true;
}
