// JSON: written texts, and look-ups in parsed values (json_parse.c). Numbers are written by
// base/number.h, and bytes of strings that are no UTF-8 are replaced, so that written text can be
// read in every locale.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json_value.h"
#include "base/number.h"
#include "base/str.h"

struct bel_json {
    bel_arena *arena;
    const bel_json_value *root;
};

// --- Writing ------------------------------------------------------------------------------------

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

// Writes a number with a point or an exponent, so that it is read as a real one.
static void write_real(bel_str *out, double value)
{
    size_t before = out->length;
    bel_json_write_number(out, value);
    if (strpbrk(out->text + before, ".e") == NULL) bel_str_puts(out, ".0");
}

static void write_items(bel_str *out, const bel_json_value *value, bool named)
{
    for (uint32_t i = 0; i < value->count; i++) {
        const bel_json_value *item = &value->items[named ? 2 * i : i];
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_value(out, item);
        if (!named) continue;
        bel_str_puts(out, ":");
        bel_json_write_value(out, item + 1);
    }
}

void bel_json_write_value(bel_str *out, const bel_json_value *value)
{
    if (value == NULL) return;
    switch ((bel_json_kind)value->kind) {
    case BEL_JSON_NULL: bel_str_puts(out, "null"); break;
    case BEL_JSON_FALSE: bel_str_puts(out, "false"); break;
    case BEL_JSON_TRUE: bel_str_puts(out, "true"); break;
    case BEL_JSON_INTEGER: bel_str_put_i64(out, value->integer); break;
    case BEL_JSON_REAL: write_real(out, value->real); break;
    case BEL_JSON_TEXT: bel_json_write_string(out, value->text); break;
    case BEL_JSON_LIST:
    case BEL_JSON_OBJECT: {
        bool named = value->kind == BEL_JSON_OBJECT;
        bel_str_puts(out, named ? "{" : "[");
        write_items(out, value, named);
        bel_str_puts(out, named ? "}" : "]");
    }
    }
}

// --- Documents ----------------------------------------------------------------------------------

bel_status *bel_json_parse_in(bel_arena *arena, const char *text, size_t length, const char *source,
                              const bel_json_value **out_root)
{
    return bel_json_parse_values(arena, text, length, source, false, out_root);
}

static bel_status *parse(const char *text, size_t length, const char *source, bool is_secret,
                         bel_json **out_json)
{
    bel_json made = {.arena = bel_arena_create()};
    bel_status *status =
        bel_json_parse_values(made.arena, text, length, source, is_secret, &made.root);
    if (status != NULL) {
        bel_arena_destroy(made.arena);
        return status;
    }
    *out_json = bel_xmalloc(sizeof made);
    **out_json = made;
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
    return json->root;
}

void bel_json_destroy(bel_json *json)
{
    if (json == NULL) return;
    bel_arena_destroy(json->arena);
    bel_free(json);
}

// --- Look-ups -----------------------------------------------------------------------------------

static inline bool is_kind(const bel_json_value *value, bel_json_kind kind)
{
    return value != NULL && value->kind == (uint32_t)kind;
}

// Returns a name among many, which are sorted; NULL: absent.
static const bel_json_value *find_name(const bel_json_value *object, const bel_json_value *name)
{
    const bel_json_value *const *names = (const void *)(object->items + 2 * object->count);
    uint32_t low = 0, high = object->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = bel_json_compare(names[middle], name);
        if (order == 0) return names[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const bel_json_value *bel_json_member(const bel_json_value *object, const char *name)
{
    if (!is_kind(object, BEL_JSON_OBJECT)) return NULL;
    const size_t length = strlen(name);
    const bel_json_value key = {.count = (uint32_t)length, .text = name};
    if (length > UINT32_MAX) return NULL;
    if (object->count > BEL_JSON_FEW) {
        const bel_json_value *found = find_name(object, &key);
        return found != NULL ? found + 1 : NULL;
    }
    for (uint32_t i = 0; i < object->count; i++)
        if (bel_json_compare(&object->items[2 * i], &key) == 0) return &object->items[2 * i + 1];
    return NULL;
}

bool bel_json_string(const bel_json_value *object, const char *name, const char **out_text)
{
    const char *text = bel_json_value_string(bel_json_member(object, name));
    if (text == NULL) return false;
    *out_text = text;
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
    return is_kind(array, BEL_JSON_LIST) ? array->count : 0;
}

const bel_json_value *bel_json_at(const bel_json_value *array, size_t index)
{
    return index < bel_json_length(array) ? &array->items[index] : NULL;
}

bool bel_json_value_i64(const bel_json_value *value, int64_t *out_number)
{
    if (!is_kind(value, BEL_JSON_INTEGER)) return false;
    *out_number = value->integer;
    return true;
}

bool bel_json_value_f64(const bel_json_value *value, double *out_number)
{
    if (is_kind(value, BEL_JSON_REAL)) {
        *out_number = value->real;
    } else if (is_kind(value, BEL_JSON_INTEGER)) {
        *out_number = (double)value->integer;
    } else {
        return false;
    }
    return true;
}

size_t bel_json_take_f32(const bel_json_value *array, float *out_numbers)
{
    const size_t count = bel_json_length(array);
    double number;
    for (size_t i = 0; i < count; i++) {
        if (!bel_json_value_f64(&array->items[i], &number)) return i;
        out_numbers[i] = (float)number;
    }
    return count;
}

bool bel_json_value_bool(const bel_json_value *value, bool *out_flag)
{
    if (!is_kind(value, BEL_JSON_TRUE) && !is_kind(value, BEL_JSON_FALSE)) return false;
    *out_flag = value->kind == BEL_JSON_TRUE;
    return true;
}

const char *bel_json_value_string(const bel_json_value *value)
{
    return is_kind(value, BEL_JSON_TEXT) ? value->text : NULL;
}

bool bel_json_is_array(const bel_json_value *value)
{
    return is_kind(value, BEL_JSON_LIST);
}

bool bel_json_is_object(const bel_json_value *value)
{
    return is_kind(value, BEL_JSON_OBJECT);
}

bool bel_json_is_null(const bel_json_value *value)
{
    return is_kind(value, BEL_JSON_NULL);
}

bel_status *bel_json_each(const bel_json_value *object,
                          bel_status *(*visit)(void *context, const char *name,
                                               const bel_json_value *value),
                          void *context)
{
    const uint32_t count = is_kind(object, BEL_JSON_OBJECT) ? object->count : 0;
    bel_status *status = NULL;
    for (uint32_t i = 0; i < count && status == NULL; i++)
        status = visit(context, object->items[2 * i].text, &object->items[2 * i + 1]);
    return status;
}
