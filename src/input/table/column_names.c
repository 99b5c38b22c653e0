// Converts names to JSON and back: the text that is kept with a checkpoint, which must be UTF-8. So
// names are converted before they are written and before they are compared: in a name that is not
// UTF-8, every byte above 0x7f becomes the character of that number in ISO 8859-1. This cannot
// fail, and gives different names for different bytes.
#include "input/table/column_names.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

void bel_column_names_write(const bel_column_names *names, bel_str *out_text)
{
    bel_str_puts(out_text, "{");
    if (names->label != NULL) {
        bel_str_puts(out_text, "\"label\":");
        bel_json_write_string(out_text, names->label);
        bel_str_puts(out_text, ",");
    }
    bel_str_puts(out_text, "\"columns\":[");
    for (int i = 0; i < names->column_count; i++) {
        if (i > 0) bel_str_puts(out_text, ",");
        bel_json_write_string(out_text, names->columns[i]);
    }
    bel_str_puts(out_text, "]}");
}

static bel_status *read_columns(const bel_json_value *list, const char *source, bel_arena *arena,
                                bel_column_names *out_names)
{
    size_t count = bel_json_length(list);
    const char **columns = bel_arena_alloc(arena, (count + 1) * sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        const char *name = bel_json_value_string(bel_json_at(list, i));
        if (name == NULL) {
            return BEL_ERR(BEL_DATA_LOSS, "%s: column %zu: expected a name", source, i);
        }
        columns[i] = bel_arena_strdup(arena, name);
    }
    out_names->columns = columns;
    out_names->column_count = (int)count;
    return NULL;
}

bel_status *bel_column_names_read(const char *text, const char *source, bel_arena *arena,
                                  bel_column_names *out_names)
{
    bel_json *json;
    const char *label;
    bel_column_names names = {0};
    BEL_TRY(bel_json_parse(text, strlen(text), source, &json));
    const bel_json_value *root = bel_json_root(json), *list = bel_json_member(root, "columns");
    bel_status *status = NULL;
    if (!bel_json_is_array(list)) {
        status = BEL_ERR(BEL_DATA_LOSS, "%s: expected the names of columns", source);
    }
    if (status == NULL) status = read_columns(list, source, arena, &names);
    if (bel_json_string(root, "label", &label)) names.label = bel_arena_strdup(arena, label);
    bel_json_destroy(json);
    if (status == NULL) *out_names = names;
    return status;
}

const char *bel_column_name_utf8(const char *name, bel_arena *arena)
{
    const unsigned char *at = (const unsigned char *)name;
    int bytes = 1;
    while (*at != '\0' && (bytes = bel_utf8_bytes((const char *)at)) > 0)
        at += bytes;
    if (bytes > 0) return bel_arena_strdup(arena, name);
    char *text = bel_arena_alloc(arena, 2 * strlen(name) + 1), *to = text;
    for (at = (const unsigned char *)name; *at != '\0'; at++) {
        if (*at >= 0x80) *to++ = (char)(0xC0 | *at >> 6);
        *to++ = (char)(*at >= 0x80 ? 0x80 | (*at & 0x3F) : *at);
    }
    *to = '\0';
    return text;
}
