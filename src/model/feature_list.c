// Fields as JSON. The parser checks the whole text: a checkpoint may come from anywhere. The text
// must contain all that a model function can query of a field, as an export builds graphs only from
// it: an addition to a field's description must be added here, too.
#include "model/feature_list.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

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
    for (int32_t d = 1; d < shape.rank; d++) // after the batch
        bel_str_printf(out, "%s%lld", d > 1 ? "," : "", (long long)shape.dims[d]);
    bel_str_puts(out, "]");
    if (scale != 1) {
        bel_str_puts(out, ",\"scale\":");
        bel_json_write_number(out, scale);
    }
    bel_str_printf(out, ",\"role\":\"%s\"}",
                   bel_input_field_is_label(input, field) ? "label" : "feature");
}

void bel_feature_list_write(const bel_input *input, bel_str *out_text)
{
    bel_str_puts(out_text, "[");
    for (int f = 0; f < bel_input_field_count(input); f++) {
        if (f > 0) bel_str_puts(out_text, ",");
        write_one(input, f, out_text);
    }
    bel_str_puts(out_text, "]");
}

void bel_feature_write_port(bel_str *out, const char *name, const bel_spec *spec)
{
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, name);
    bel_str_printf(out, ",\"dtype\":\"%s\",\"shape\":[", bel_dtype_name(spec->dtype));
    for (int32_t d = 0; d < spec->shape.rank; d++) {
        long long size = (long long)spec->shape.dims[d];
        if (d > 0) bel_str_puts(out, ",");
        if (size >= 0) {
            bel_str_printf(out, "%lld", size);
        } else if (size == BEL_DIM_BATCH) {
            bel_str_puts(out, "\"N\"");
        } else {
            bel_str_printf(out, "\"d%lld\"", -size);
        }
    }
    bel_str_puts(out, "]");
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

// Lists as features the fields that are no labels.
static void take_features(bel_feature_list *list)
{
    for (int f = 0; f < list->field_count; f++) {
        if (list->is_label[f]) continue;
        list->items[list->count] = list->fields[f];
        list->scales[list->count++] = list->field_scales[f];
    }
}

bel_status *bel_feature_list_read(const char *text, const char *source, bel_arena *arena,
                                  bel_feature_list *out_list)
{
    bel_json *json;
    BEL_TRY(bel_json_parse(text, strlen(text), source, &json));
    const bel_json_value *root = bel_json_root(json);
    size_t count = bel_json_length(root), room = count + 1;
    bel_feature_list list = {.items = bel_arena_alloc(arena, room * sizeof *list.items),
                             .scales = bel_arena_alloc(arena, room * sizeof *list.scales),
                             .fields = bel_arena_alloc(arena, room * sizeof *list.fields),
                             .field_scales = bel_arena_alloc(arena, room * sizeof(double)),
                             .is_label = bel_arena_alloc(arena, room * sizeof(bool))};
    bool good = bel_json_is_array(root) && count > 0;
    for (size_t i = 0; i < count && good; i++) {
        const bel_json_value *from = bel_json_at(root, i);
        good = read_one(from, arena, &list.fields[i], &list.field_scales[i]);
        const char *role;
        bool has_role = bel_json_string(from, "role", &role);
        list.is_label[i] = has_role && strcmp(role, "label") == 0;
        list.has_labels = list.has_labels || has_role;
        list.field_count++;
    }
    bel_json_destroy(json);
    if (!good) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: its list of features is malformed: %s", source, text);
    }
    take_features(&list);
    *out_list = list;
    return NULL;
}

// --- Datasets ------------------------------------------------------------------------------------

// Describes a record's field. False: it has too many dimensions.
static bool feature_describe(const bel_feature *feature, bel_memory_field *out_field,
                             bool *out_open)
{
    bel_tensor data = {.dtype = feature->dtype, .shape = {.rank = 1, .dims = {1}}};
    if (feature->shape.rank < 0 || feature->shape.rank >= BEL_MAX_RANK) return false;
    for (int32_t d = 0; d < feature->shape.rank; d++) {
        int64_t size = feature->shape.dims[d];
        *out_open = *out_open || size < 0;
        data.shape.dims[data.shape.rank++] = size < 0 ? 1 : size;
    }
    *out_field = (bel_memory_field){feature->name, data};
    return true;
}

static bel_dataset *make_dataset(const bel_memory_field *fields, const bel_feature *features,
                                 const bool *is_label, int count, int64_t batch, bool open)
{
    bel_dataset *dataset = bel_dataset_from_memory(fields, count);
    const char **labels = bel_xcalloc((size_t)count + 1, sizeof *labels);
    bel_padded_shape *padded = bel_xcalloc((size_t)count + 1, sizeof *padded);
    int label_count = 0;
    for (int i = 0; i < count; i++) {
        padded[i] = (bel_padded_shape){features[i].name, features[i].shape};
        bool named =
            is_label != NULL && is_label[i] && strcmp(fields[i].name, BEL_LABEL_FIELD) != 0;
        if (named) labels[label_count++] = fields[i].name;
    }
    if (label_count > 0) bel_dataset_labels(dataset, labels, label_count);
    if (open) {
        bel_dataset_padded_batch(dataset, batch, padded, count);
    } else {
        bel_dataset_batch(dataset, batch);
    }
    bel_free(padded);
    bel_free(labels);
    return dataset;
}

bel_status *bel_feature_dataset(const bel_feature *features, const bool *is_label, int count,
                                int64_t batch, void **out_zeros, size_t *out_bytes,
                                bel_dataset **out_dataset)
{
    bel_memory_field *fields = bel_xcalloc((size_t)count + 1, sizeof *fields);
    bool open = false, whole = true;
    *out_bytes = 1;
    for (int i = 0; i < count && whole; i++) {
        whole = feature_describe(&features[i], &fields[i], &open);
        size_t bytes = whole ? bel_tensor_bytes(&fields[i].data) : 0;
        if (bytes > *out_bytes) *out_bytes = bytes;
    }
    bel_status *status =
        whole ? bel_pages_create(*out_bytes, false, "features", out_zeros)
              : BEL_ERR(BEL_INVALID_ARGUMENT, "expected features of at most %d dimensions",
                        BEL_MAX_RANK - 1);
    for (int i = 0; i < count && status == NULL; i++)
        fields[i].data.data = *out_zeros;
    if (status == NULL) *out_dataset = make_dataset(fields, features, is_label, count, batch, open);
    bel_free(fields);
    return status;
}
