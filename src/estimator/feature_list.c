// Features as JSON. A model gets labels as features in no mode of prediction, so they are left out.
// What is read is checked whole: a checkpoint may come from anywhere. The text must say all that a
// model function can ask of a feature, as an export builds the graph of predictions from it alone.
#include "estimator/feature_list.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

// --- Writing -------------------------------------------------------------------------------------

static void write_one(const bel_input *input, int field, bel_str *out)
{
    bel_dtype dtype;
    bel_shape shape;
    double scale = bel_input_field_scale(input, field);
    bel_input_field_spec(input, field, &dtype, &shape);
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, bel_input_field_name(input, field));
    bel_str_printf(out, ",\"dtype\":\"%s\",\"shape\":[", bel_dtype_name(dtype));
    for (int32_t d = 1; d < shape.rank; d++) // behind the batch
        bel_str_printf(out, "%s%lld", d > 1 ? "," : "", (long long)shape.dims[d]);
    bel_str_puts(out, "]");
    if (scale != 1) {
        bel_str_puts(out, ",\"scale\":");
        bel_json_write_number(out, scale);
    }
    bel_str_puts(out, "}");
}

void bel_feature_list_write(const bel_input *input, bel_str *out_text)
{
    bool first = true;
    bel_str_puts(out_text, "[");
    for (int f = 0; f < bel_input_field_count(input); f++) {
        if (bel_input_field_is_label(input, f)) continue;
        if (!first) bel_str_puts(out_text, ",");
        first = false;
        write_one(input, f, out_text);
    }
    bel_str_puts(out_text, "]");
}

// --- Reading -------------------------------------------------------------------------------------

static bool read_dtype(const char *name, bel_dtype *out_dtype)
{
    for (int d = BEL_DTYPE_F32; d <= BEL_DTYPE_BF16; d++) {
        if (strcmp(bel_dtype_name((bel_dtype)d), name) != 0) continue;
        *out_dtype = (bel_dtype)d;
        return d != BEL_DTYPE_STRING;
    }
    return false;
}

static bool read_shape(const bel_json_value *dims, bel_shape *out_shape)
{
    size_t rank = bel_json_length(dims);
    if (!bel_json_is_array(dims) || rank >= BEL_MAX_RANK) return false;
    *out_shape = (bel_shape){.rank = (int32_t)rank};
    for (size_t d = 0; d < rank; d++)
        if (!bel_json_value_i64(bel_json_at(dims, d), &out_shape->dims[d])) return false;
    return true;
}

static bool read_one(const bel_json_value *from, bel_arena *arena, bel_feature *out, double *scale)
{
    const char *name, *dtype;
    bool ok = bel_json_string(from, "name", &name) && bel_json_string(from, "dtype", &dtype) &&
              read_dtype(dtype, &out->dtype) &&
              read_shape(bel_json_member(from, "shape"), &out->shape);
    if (!ok || name[0] == '\0') return false;
    out->name = bel_arena_strdup(arena, name);
    *scale = 1;
    if (bel_json_member(from, "scale") == NULL) return true;
    return bel_json_f64(from, "scale", scale) && isfinite(*scale);
}

bel_status *bel_feature_list_read(const char *text, const char *source, bel_arena *arena,
                                  bel_feature_list *out_list)
{
    bel_json *json;
    BEL_TRY(bel_json_parse(text, strlen(text), source, &json));
    const bel_json_value *root = bel_json_root(json);
    size_t count = bel_json_length(root);
    bel_feature_list list = {.items = bel_arena_alloc(arena, (count + 1) * sizeof *list.items),
                             .scales = bel_arena_alloc(arena, (count + 1) * sizeof *list.scales)};
    bool good = bel_json_is_array(root) && count > 0;
    for (size_t i = 0; i < count && good; i++) {
        good = read_one(bel_json_at(root, i), arena, &list.items[i], &list.scales[i]);
        list.count++;
    }
    bel_json_destroy(json);
    if (!good) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: its list of features is malformed: %s", source, text);
    }
    *out_list = list;
    return NULL;
}
