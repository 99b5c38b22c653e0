// Elements are read in one walk over the lists. The walk descends where it meets a list, so nested
// and flat lists take the same path; at each list of the shape's depth its length is compared. The
// numbers of a list become f32 at once; only the first other element is visited.
#include "serve/json_tensor.h"

#include <math.h>

#include "base/number.h"
#include "ops/kernels/elements.h"

bel_status *bel_json_tensor_shape(const bel_json_value *value, const char *name,
                                  bel_shape *out_shape)
{
    bel_shape shape = {0};
    for (; bel_json_is_array(value); value = bel_json_at(value, 0)) {
        if (shape.rank == BEL_MAX_RANK)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected at most %d dimensions, got more",
                           name, BEL_MAX_RANK);
        shape.dims[shape.rank++] = (int64_t)bel_json_length(value);
    }
    *out_shape = shape;
    return NULL;
}

typedef struct walk {
    const char *name;
    const bel_shape *shape;
    int64_t count, seen;
    float *floats; // takes elements without a visit; NULL: all are visited
    bel_json_visit *visit;
    void *context;
} walk;

static bel_status *visit_one(walk *w, const bel_json_value *element)
{
    if (w->seen == w->count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %lld elements, got more", w->name,
                       (long long)w->count);
    }
    return w->visit(w->context, w->seen++, element);
}

static bel_status *walk_list(walk *w, const bel_json_value *list, int depth)
{
    size_t length = bel_json_length(list);
    char text[BEL_SHAPE_TEXT];
    bool nested = length > 0 && bel_json_is_array(bel_json_at(list, 0));
    bool fits = depth < w->shape->rank &&
                ((!nested && depth == 0) || (int64_t)length == w->shape->dims[depth]);
    if (!fits) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "\"%s\": expected lists of the shape %s, got one of %zu at depth %d",
                       w->name, bel_shape_text(w->shape, text), length, depth);
    }
    size_t done = 0;
    if (w->floats != NULL && !nested && (int64_t)length <= w->count - w->seen) {
        done = bel_json_take_f32(list, w->floats + w->seen);
        w->seen += (int64_t)done;
    }
    for (size_t i = done; i < length; i++) {
        const bel_json_value *item = bel_json_at(list, i);
        bool is_list = bel_json_is_array(item);
        if (is_list != nested) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %s, got the other at %zu",
                           w->name, nested ? "lists beside lists" : "elements beside elements", i);
        }
        BEL_TRY(is_list ? walk_list(w, item, depth + 1) : visit_one(w, item));
    }
    return NULL;
}

static bel_status *walk_all(walk *w, const bel_json_value *value)
{
    w->count = bel_shape_elements(w->shape);
    BEL_TRY(bel_json_is_array(value) ? walk_list(w, value, 0) : visit_one(w, value));
    if (w->seen == w->count) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %lld elements, got %lld", w->name,
                   (long long)w->count, (long long)w->seen);
}

bel_status *bel_json_tensor_each(const bel_json_value *value, const char *name,
                                 const bel_shape *shape, bel_json_visit *visit, void *context)
{
    walk w = {.name = name, .shape = shape, .visit = visit, .context = context};
    return walk_all(&w, value);
}

typedef struct target {
    const char *name;
    const bel_tensor *tensor;
} target;

static bool take_float(const bel_tensor *tensor, int64_t i, const bel_json_value *element)
{
    double number;
    if (!bel_json_value_f64(element, &number)) return false;
    bel_element_set(tensor, i, number);
    return true;
}

// An integer of the type's range, also as 3.0. A BOOL may be true or false.
static bool take_whole(const bel_tensor *tensor, int64_t i, const bel_json_value *element)
{
    const double exact = 0x1p53;
    int64_t integer;
    double number;
    bool flag;
    if (tensor->dtype == BEL_DTYPE_BOOL && bel_json_value_bool(element, &flag)) {
        integer = flag;
    } else if (!bel_json_value_i64(element, &integer)) {
        if (!bel_json_value_f64(element, &number)) return false;
        if (trunc(number) != number || number < -exact || number > exact) return false;
        integer = (int64_t)number;
    }
    bel_element_set_whole(tensor, i, integer);
    return bel_element_get_whole(tensor, i) == integer;
}

static bel_status *take_number(void *context, int64_t i, const bel_json_value *element)
{
    const target *to = context;
    bool fits = bel_element_is_whole(to->tensor->dtype) ? take_whole(to->tensor, i, element)
                                                        : take_float(to->tensor, i, element);
    if (fits) return NULL;
    bel_str got = {0};
    bel_str_puts(&got, element == NULL ? "nothing" : "");
    bel_json_write_value(&got, element);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\", element %lld: expected a number of type %s, got %s",
                to->name, (long long)i, bel_dtype_name(to->tensor->dtype), got.text);
    bel_str_deinit(&got);
    return status;
}

bel_status *bel_json_tensor_read(const bel_json_value *value, const char *name,
                                 const bel_tensor *out_tensor)
{
    target to = {name, out_tensor};
    walk w = {.name = name, .shape = &out_tensor->shape, .visit = take_number, .context = &to};
    if (out_tensor->dtype == BEL_DTYPE_F32) w.floats = out_tensor->data;
    return walk_all(&w, value);
}

static void put_element(bel_str *out, const bel_tensor *tensor, int64_t i)
{
    double value = tensor->dtype == BEL_DTYPE_I64 ? 0 : bel_element_get(tensor, i);
    switch (tensor->dtype) {
    case BEL_DTYPE_I64: bel_str_put_i64(out, ((const int64_t *)tensor->data)[i]); break;
    case BEL_DTYPE_I32: bel_str_put_i64(out, ((const int32_t *)tensor->data)[i]); break;
    case BEL_DTYPE_BOOL: bel_str_puts(out, value != 0 ? "true" : "false"); break;
    case BEL_DTYPE_F64: bel_json_write_number(out, value); break;
    default:
        if (!isfinite(value)) {
            bel_str_puts(out, "null");
        } else {
            out->length += bel_format_f32((float)value, bel_str_room(out, BEL_F32_TEXT));
        }
    }
}

// Writes the lists of dimension `d` that begin with element *at.
static void put_lists(bel_str *out, const bel_tensor *tensor, int32_t d, int64_t *at)
{
    if (d == tensor->shape.rank) {
        put_element(out, tensor, (*at)++);
        return;
    }
    bel_str_puts(out, "[");
    for (int64_t i = 0; i < tensor->shape.dims[d]; i++) {
        if (i > 0) bel_str_puts(out, ",");
        put_lists(out, tensor, d + 1, at);
    }
    bel_str_puts(out, "]");
}

void bel_json_tensor_write(bel_str *out, const bel_tensor *tensor, bool flat)
{
    bel_tensor form = *tensor;
    if (flat) form.shape = BEL_SHAPE(bel_shape_elements(&tensor->shape));
    int64_t at = 0;
    put_lists(out, &form, 0, &at);
}
