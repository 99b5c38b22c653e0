// JSON through jansson; no other file includes it. A bel_json_value is an opaque json_t. Numbers
// are written by base/number.h, and bytes of strings that are no UTF-8 are replaced, so that
// written text can be read in every locale.
#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/number.h"
#include "base/str.h"

struct bel_json {
    json_t *root;
};

static const json_t *json_unwrap(const bel_json_value *value)
{
    return (const json_t *)(const void *)value;
}

static const bel_json_value *wrap(const json_t *value)
{
    return (const bel_json_value *)(const void *)value;
}

// jansson's iteration takes a mutable object but does not change it.
static json_t *as_mutable(const json_t *object)
{
    union {
        const json_t *read;
        json_t *iterated;
    } pointer = {.read = object};
    return pointer.iterated;
}

static void write_character(bel_str *out, const char *text, size_t bytes)
{
    if (*text == '"' || *text == '\\') {
        bel_str_printf(out, "\\%c", *text);
    } else if (*text == '\n') {
        bel_str_puts(out, "\\n");
    } else if ((unsigned char)*text < 0x20) {
        bel_str_printf(out, "\\u%04x", (unsigned)*text);
    } else {
        bel_str_append(out, text, bytes);
    }
}

void bel_json_write_string(bel_str *out, const char *text)
{
    bel_str_puts(out, "\"");
    while (*text != '\0') {
        int bytes = bel_utf8_bytes(text);
        if (bytes > 0) {
            write_character(out, text, (size_t)bytes);
        } else {
            bel_str_puts(out, "\\ufffd");
        }
        text += bytes > 0 ? bytes : 1;
    }
    bel_str_puts(out, "\"");
}

void bel_json_write_exact(bel_str *out, const char *text)
{
    bel_str_puts(out, "\"");
    while (*text != '\0') {
        const char *end = text;
        while ((unsigned char)*end >= 0x20 && *end != '"' && *end != '\\')
            end++;
        bel_str_append(out, text, (size_t)(end - text));
        text = end;
        if (*text != '\0') write_character(out, text++, 1);
    }
    bel_str_puts(out, "\"");
}

void bel_json_write_number(bel_str *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        bel_str_puts(out, "null");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        double back;
        int length = bel_snprintf(text, sizeof text, "%.*g", digits, value);
        if (bel_parse_f64(text, (size_t)length, &back) && back == value) break;
    }
    bel_str_puts(out, text);
}

static int append_text(const char *text, size_t length, void *out)
{
    bel_str_append(out, text, length);
    return 0;
}

void bel_json_write_value(bel_str *out, const bel_json_value *value)
{
    size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
    json_dump_callback(json_unwrap(value), append_text, out,
                       flags); // fails only when append_text does
}

// jansson allocates each number. While a thread parses into an arena, its memory comes from there,
// and is not freed one by one. It has a budget: an empty object of three bytes needs 200.
static _Thread_local bel_arena *parsing;
static _Thread_local bel_budget budget;
static pthread_once_t allocators_once = PTHREAD_ONCE_INIT;

static void *take_memory(size_t size)
{
    if (parsing == NULL) return malloc(size);
    return bel_budget_spend(&budget, size) ? bel_arena_alloc(parsing, size) : NULL;
}

static void give_memory(void *memory)
{
    if (parsing == NULL) free(memory);
}

static void set_allocators(void)
{
    json_set_alloc_funcs(take_memory, give_memory);
}

static bel_status *load_text(const char *text, size_t length, const char *source, bool is_secret,
                             json_t **out_root)
{
    json_error_t error;
    pthread_once(&allocators_once, set_allocators); // before another thread reads them
    *out_root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (*out_root != NULL) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s:%d:%d: not valid JSON%s%s", source, error.line, error.column,
                   is_secret ? "" : ": ", is_secret ? "" : error.text);
}

bel_status *bel_json_parse_in(bel_arena *arena, const char *text, size_t length, const char *source,
                              const bel_json_value **out_root)
{
    json_t *root;
    parsing = arena;
    budget = bel_budget_of(length);
    bel_status *status = load_text(text, length, source, false, &root);
    parsing = NULL;
    if (status == NULL) {
        *out_root = wrap(root);
    } else if (budget.is_spent) {
        bel_status_ignore(status); // jansson's is about memory
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                         "%s: its JSON needs too much memory once it is read", source);
    }
    return status;
}

static bel_status *parse(const char *text, size_t length, const char *source, bool is_secret,
                         bel_json **out_json)
{
    json_t *root;
    BEL_TRY(load_text(text, length, source, is_secret, &root));
    bel_json *json = bel_xmalloc(sizeof *json);
    json->root = root;
    *out_json = json;
    return NULL;
}

bel_status *bel_json_parse(const char *text, size_t length, const char *source, bel_json **out_json)
{
    return parse(text, length, source, false, out_json);
}

bel_status *bel_json_parse_secret(const char *text, size_t length, const char *source,
                                  bel_json **out_json)
{
    return parse(text, length, source, true, out_json);
}

const bel_json_value *bel_json_root(const bel_json *json)
{
    return wrap(json->root);
}

void bel_json_destroy(bel_json *json)
{
    if (json == NULL) return;
    json_decref(json->root);
    bel_free(json);
}

const bel_json_value *bel_json_member(const bel_json_value *object, const char *name)
{
    return wrap(json_object_get(json_unwrap(object), name));
}

bool bel_json_string(const bel_json_value *object, const char *name, const char **out_text)
{
    const json_t *value = json_object_get(json_unwrap(object), name);
    if (!json_is_string(value)) return false;
    *out_text = json_string_value(value);
    return true;
}

bool bel_json_i64(const bel_json_value *object, const char *name, int64_t *out_number)
{
    return bel_json_value_i64(bel_json_member(object, name), out_number);
}

bool bel_json_f64(const bel_json_value *object, const char *name, double *out_number)
{
    return bel_json_value_f64(bel_json_member(object, name), out_number);
}

size_t bel_json_length(const bel_json_value *array)
{
    return json_array_size(json_unwrap(array));
}

const bel_json_value *bel_json_at(const bel_json_value *array, size_t index)
{
    return wrap(json_array_get(json_unwrap(array), index));
}

bool bel_json_value_i64(const bel_json_value *value, int64_t *out_number)
{
    if (!json_is_integer(json_unwrap(value))) return false;
    *out_number = (int64_t)json_integer_value(json_unwrap(value));
    return true;
}

bool bel_json_value_f64(const bel_json_value *value, double *out_number)
{
    if (!json_is_number(json_unwrap(value))) return false;
    *out_number = json_number_value(json_unwrap(value));
    return true;
}

bool bel_json_value_bool(const bel_json_value *value, bool *out_flag)
{
    if (!json_is_boolean(json_unwrap(value))) return false;
    *out_flag = json_is_true(json_unwrap(value));
    return true;
}

const char *bel_json_value_string(const bel_json_value *value)
{
    return json_string_value(json_unwrap(value));
}

bool bel_json_is_array(const bel_json_value *value)
{
    return json_is_array(json_unwrap(value));
}

bool bel_json_is_object(const bel_json_value *value)
{
    return json_is_object(json_unwrap(value));
}

bool bel_json_is_null(const bel_json_value *value)
{
    return json_is_null(json_unwrap(value));
}

bel_status *bel_json_each(const bel_json_value *object,
                          bel_status *(*visit)(void *context, const char *name,
                                               const bel_json_value *value),
                          void *context)
{
    bel_status *status = NULL;
    json_t *all = as_mutable(json_unwrap(object));
    for (void *step = json_object_iter(all); step != NULL && status == NULL;
         step = json_object_iter_next(all, step))
        status = visit(context, json_object_iter_key(step), wrap(json_object_iter_value(step)));
    return status;
}
