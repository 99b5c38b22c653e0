// Fuzz target for JSON. An accepted document is written again, and read to the same text. Any bytes
// can be written as a string that is accepted.
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

// The object that is walked, and its members so far.
typedef struct members {
    const bel_json_value *object;
    size_t count;
} members;

static bel_status *visit(void *context, const char *name, const bel_json_value *value)
{
    members *all = context;
    size_t *count = &all->count, taken;
    double number;
    float numbers[64];
    const char *text;
    fuzz_expect(bel_json_member(all->object, name) == value, "each name is found");
    if (bel_json_length(value) <= sizeof numbers / sizeof numbers[0]) {
        taken = bel_json_take_f32(value, numbers);
        for (size_t i = 0; i < taken; i++)
            fuzz_expect(bel_json_value_f64(bel_json_at(value, i), &number) &&
                            (float)number == numbers[i],
                        "the same number as f32");
    }
    int64_t whole;
    *count += strlen(name) + bel_json_length(value);
    for (size_t i = 0; i < bel_json_length(value); i++)
        if (bel_json_value_i64(bel_json_at(value, i), &whole)) ++*count;
    if (bel_json_string(value, "name", &text)) *count += strlen(text);
    if (bel_json_f64(value, "number", &number) && number > 0) ++*count;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_json *json;
    bel_str first = {0}, second = {0}, list = {0};
    if (fuzz_is_good(bel_json_parse((const char *)data, size, "x.json", &json))) {
        members all = {.object = bel_json_root(json)};
        fuzz_expect(fuzz_is_good(bel_json_each(all.object, visit, &all)), "a walk");
        bel_json_write_value(&first, bel_json_root(json));
        bel_json_destroy(json);
        fuzz_expect(fuzz_is_good(bel_json_parse(first.text, first.length, "again", &json)),
                    "a document that was written is read");
        bel_json_write_value(&second, bel_json_root(json));
        bel_json_destroy(json);
        fuzz_expect(strcmp(first.text, second.text) == 0, "the same document, written again");
    }
    char *text = bel_xstrndup((const char *)data, size);
    bel_str_puts(&list, "[");
    bel_json_write_string(&list, text);
    bel_str_puts(&list, "]");
    fuzz_expect(fuzz_is_good(bel_json_parse(list.text, list.length, "list", &json)),
                "any string that was written is read");
    bel_json_destroy(json);
    bel_free(text);
    bel_str_deinit(&first);
    bel_str_deinit(&second);
    bel_str_deinit(&list);
    return 0;
}
