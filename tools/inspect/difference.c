// Tensors are read block by block and compared as bytes. Only blocks that differ are looked at as
// numbers. Tables are merged by key, so their rows may be in any files. Memory is bounded for both:
// a block of a tensor, and bel_ckpt_cursor's blocks of a table.
#include "inspect/difference.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "checkpoint/setting_names.h"
#include "checkpoint/table.h"

enum { BLOCK_BYTES = 1 << 20 };

// --- Numbers -------------------------------------------------------------------------------------

// Maps floats to integers in the same order, so that the distance of two of them is that in units
// in the last place. Both zeros are the same.
static uint64_t order_of(double value)
{
    uint64_t bits, sign = UINT64_C(1) << 63;
    memcpy(&bits, &value, sizeof bits);
    return bits & sign ? sign - (bits & ~sign) : sign + bits;
}

static uint64_t order_of_f32(float value)
{
    uint32_t bits, sign = UINT32_C(1) << 31;
    memcpy(&bits, &value, sizeof bits);
    return bits & sign ? sign - (bits & ~sign) : (uint64_t)sign + bits;
}

static uint64_t distance(uint64_t x, uint64_t y)
{
    return x > y ? x - y : y - x;
}

static bool is_float(bel_dtype dtype)
{
    return dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64;
}

static double float_at(bel_dtype dtype, const void *element)
{
    float f32;
    double f64;
    if (dtype == BEL_DTYPE_F32) {
        memcpy(&f32, element, sizeof f32);
        return (double)f32;
    }
    memcpy(&f64, element, sizeof f64);
    return f64;
}

static int64_t integer_at(bel_dtype dtype, const void *element)
{
    int32_t i32;
    int64_t i64;
    switch (dtype) {
    case BEL_DTYPE_I32: memcpy(&i32, element, sizeof i32); return i32;
    case BEL_DTYPE_I64: memcpy(&i64, element, sizeof i64); return i64;
    default: return *(const uint8_t *)element;
    }
}

static void write_value(bel_dtype dtype, const void *element, char out[BEL_VALUE_TEXT])
{
    if (is_float(dtype)) {
        bel_snprintf(out, BEL_VALUE_TEXT, dtype == BEL_DTYPE_F32 ? "%.9g" : "%.17g",
                     float_at(dtype, element));
    } else {
        bel_snprintf(out, BEL_VALUE_TEXT, "%lld", (long long)integer_at(dtype, element));
    }
}

static void note_floats(bel_value_difference *d, bel_dtype dtype, const void *a, const void *b)
{
    double x = float_at(dtype, a), y = float_at(dtype, b);
    d->floats = true;
    if (!isfinite(x) || !isfinite(y)) {
        d->not_finite++;
        return;
    }
    uint64_t ulps = dtype == BEL_DTYPE_F32
                        ? distance(order_of_f32((float)x), order_of_f32((float)y))
                        : distance(order_of(x), order_of(y));
    d->finite = true;
    if (ulps > d->ulps) d->ulps = ulps;
    if (fabs(x - y) > d->apart) d->apart = fabs(x - y);
}

static void note_integers(bel_value_difference *d, bel_dtype dtype, const void *a, const void *b)
{
    int64_t x = integer_at(dtype, a), y = integer_at(dtype, b);
    uint64_t apart = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
    d->finite = true;
    if (apart > d->ulps) d->ulps = apart;
}

// Notes two elements whose bytes differ; returns true for the first of all.
static bool note_pair(bel_value_difference *d, bel_dtype dtype, const void *a, const void *b)
{
    bool first = d->a[0] == '\0';
    if (first) {
        write_value(dtype, a, d->a);
        write_value(dtype, b, d->b);
    }
    (is_float(dtype) ? note_floats : note_integers)(d, dtype, a, b);
    return first;
}

// --- Tensors -------------------------------------------------------------------------------------

static bel_difference *add(bel_differences *all, const char *name)
{
    all->items = bel_xgrow(all->items, &all->capacity, all->count + 1, sizeof *all->items);
    bel_difference *item = &all->items[all->count++];
    *item = (bel_difference){.name = bel_arena_strdup(all->arena, name)};
    return item;
}

// Adds a difference that is not one of values.
static bel_difference *add_other(bel_differences *all, const char *name, bool is_table,
                                 const bel_str *text)
{
    bel_difference *item = add(all, name);
    item->is_table = is_table;
    item->other = bel_arena_strdup(all->arena, text->text);
    return item;
}

// Adds one that only side `only_in` has, and not `from`.
static void add_absent(bel_differences *all, const char *name, bool is_table,
                       const bel_ckpt_reader *from, const char *only_in)
{
    bel_str text = {0};
    bel_str_printf(&text, "is not in %s", bel_ckpt_folder(from));
    add_other(all, name, is_table, &text)->only_in = only_in;
    bel_str_deinit(&text);
}

// Adds one whose kinds differ: "is KIND and KIND".
static void add_kinds(bel_differences *all, const char *name, bool is_table, const bel_str *a,
                      const bel_str *b)
{
    bel_str text = {0};
    bel_str_printf(&text, is_table ? "has %s, and %s" : "is %s and %s", a->text, b->text);
    bel_difference *item = add_other(all, name, is_table, &text);
    item->kind_a = bel_arena_strdup(all->arena, a->text);
    item->kind_b = bel_arena_strdup(all->arena, b->text);
    bel_str_deinit(&text);
}

static void compare_block(bel_value_difference *d, bel_dtype dtype, const char *a, const char *b,
                          int64_t first, int64_t count)
{
    size_t size = bel_dtype_size(dtype);
    if (memcmp(a, b, (size_t)count * size) == 0) return;
    for (int64_t i = 0; i < count; i++) {
        const char *x = a + (size_t)i * size, *y = b + (size_t)i * size;
        if (memcmp(x, y, size) == 0) continue;
        d->different++;
        if (note_pair(d, dtype, x, y)) d->first = first + i;
    }
}

static bel_status *compare_values(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                  const char *name, const bel_tensor *tensor,
                                  bel_value_difference *d)
{
    char *block_a = bel_xmalloc(BLOCK_BYTES), *block_b = bel_xmalloc(BLOCK_BYTES);
    int64_t step = BLOCK_BYTES / (int64_t)bel_dtype_size(tensor->dtype);
    bel_status *status = NULL;
    d->count = bel_shape_elements(&tensor->shape);
    for (int64_t at = 0; at < d->count && status == NULL; at += step) {
        int64_t count = d->count - at < step ? d->count - at : step;
        status = bel_ckpt_read(a, name, tensor->dtype, &tensor->shape, at, count, block_a);
        if (status == NULL)
            status = bel_ckpt_read(b, name, tensor->dtype, &tensor->shape, at, count, block_b);
        if (status == NULL) compare_block(d, tensor->dtype, block_a, block_b, at, count);
    }
    bel_free(block_a);
    bel_free(block_b);
    return status;
}

static void add_tensor_kinds(bel_differences *all, const char *name, const bel_tensor *a,
                             const bel_tensor *b)
{
    char shape[BEL_SHAPE_TEXT];
    bel_str kind_a = {0}, kind_b = {0};
    bel_str_printf(&kind_a, "%s %s", bel_dtype_name(a->dtype), bel_shape_text(&a->shape, shape));
    bel_str_printf(&kind_b, "%s %s", bel_dtype_name(b->dtype), bel_shape_text(&b->shape, shape));
    add_kinds(all, name, false, &kind_a, &kind_b);
    bel_str_deinit(&kind_a);
    bel_str_deinit(&kind_b);
}

// A tensor that both have.
static bel_status *compare_tensor(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                  const char *name, const bel_tensor *tensor,
                                  const bel_tensor *other, bel_differences *all)
{
    if (tensor->dtype != other->dtype || !bel_shape_equal(&tensor->shape, &other->shape)) {
        add_tensor_kinds(all, name, tensor, other);
        return NULL;
    }
    bel_value_difference values = {0};
    BEL_TRY(compare_values(a, b, name, tensor, &values));
    if (values.different == 0) {
        all->equal++;
        return NULL;
    }
    bel_difference *item = add(all, name);
    item->shape = tensor->shape;
    item->values = values;
    return NULL;
}

// Order of two names, of which one may be missing (NULL) at the end of its list.
static int order_of_names(const char *a, const char *b)
{
    if (a == NULL || b == NULL) return (a == NULL) - (b == NULL);
    return strcmp(a, b);
}

// Gets a tensor of the ascending list; NULL at its end.
static const char *tensor_at(const bel_ckpt_reader *reader, int index, bel_tensor *out)
{
    const char *name = NULL;
    if (index < bel_ckpt_tensor_count(reader))
        bel_ckpt_tensor(reader, index, &name, &out->dtype, &out->shape);
    return name;
}

static bel_status *compare_tensors(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                   bel_differences *all)
{
    for (int i = 0, k = 0;;) {
        bel_tensor tensor = {0}, other = {0};
        const char *name = tensor_at(a, i, &tensor), *name_b = tensor_at(b, k, &other);
        if (name == NULL && name_b == NULL) return NULL;
        int order = order_of_names(name, name_b);
        if (order < 0) add_absent(all, name, false, b, "a");
        if (order > 0) add_absent(all, name_b, false, a, "b");
        if (order == 0) BEL_TRY(compare_tensor(a, b, name, &tensor, &other, all));
        i += order <= 0;
        k += order >= 0;
    }
}

// --- Tables --------------------------------------------------------------------------------------

// Rows that only one of the two has.
typedef struct lone_rows {
    int64_t count, first; // key of the first
} lone_rows;

typedef struct table_pair {
    bel_ckpt_table table;
    bel_ckpt_cursor *cursor_a, *cursor_b;
    bel_ckpt_row row_a, row_b;
    bool more_a, more_b;
    lone_rows only_a, only_b;
    bel_value_difference columns[BEL_CKPT_MAX_COLUMNS];
} table_pair;

static void note_lone(lone_rows *rows, int64_t key)
{
    if (rows->count++ == 0) rows->first = key;
}

static void compare_rows(table_pair *pair)
{
    size_t size = (size_t)pair->table.width * sizeof(float);
    for (int c = 0; c < pair->table.column_count; c++) {
        const float *a = pair->row_a.columns[c], *b = pair->row_b.columns[c];
        bel_value_difference *d = &pair->columns[c];
        d->count++;
        if (memcmp(a, b, size) == 0) continue;
        d->different++;
        for (int i = 0; i < pair->table.width; i++) {
            if (memcmp(a + i, b + i, sizeof(float)) == 0) continue;
            if (!note_pair(d, BEL_DTYPE_F32, a + i, b + i)) continue;
            d->first = pair->row_a.key;
            d->first_element = i;
        }
    }
}

static bel_status *merge_rows(table_pair *pair)
{
    BEL_TRY(bel_ckpt_cursor_next(pair->cursor_a, &pair->row_a, &pair->more_a));
    BEL_TRY(bel_ckpt_cursor_next(pair->cursor_b, &pair->row_b, &pair->more_b));
    while (pair->more_a || pair->more_b) {
        bool takes_a = pair->more_a && (!pair->more_b || pair->row_a.key <= pair->row_b.key);
        bool takes_b = pair->more_b && (!pair->more_a || pair->row_b.key <= pair->row_a.key);
        if (takes_a && takes_b) {
            compare_rows(pair);
        } else if (takes_a) {
            note_lone(&pair->only_a, pair->row_a.key);
        } else {
            note_lone(&pair->only_b, pair->row_b.key);
        }
        if (takes_a) BEL_TRY(bel_ckpt_cursor_next(pair->cursor_a, &pair->row_a, &pair->more_a));
        if (takes_b) BEL_TRY(bel_ckpt_cursor_next(pair->cursor_b, &pair->row_b, &pair->more_b));
    }
    return NULL;
}

static void add_lone(bel_differences *all, const char *name, const lone_rows *rows,
                     const bel_ckpt_reader *reader, const char *only_in)
{
    if (rows->count == 0) return;
    bel_str text = {0};
    bel_str_printf(&text, "has %lld rows only in %s, the first with key %lld",
                   (long long)rows->count, bel_ckpt_folder(reader), (long long)rows->first);
    bel_difference *item = add_other(all, name, true, &text);
    item->only_in = only_in;
    item->lone_rows = rows->count;
    item->first_lone = rows->first;
    bel_str_deinit(&text);
}

static void add_table(bel_differences *all, const table_pair *pair, const bel_ckpt_reader *a,
                      const bel_ckpt_reader *b)
{
    size_t before = all->count;
    add_lone(all, pair->table.name, &pair->only_a, a, "a");
    add_lone(all, pair->table.name, &pair->only_b, b, "b");
    for (int c = 0; c < pair->table.column_count; c++) {
        if (pair->columns[c].different == 0) continue;
        bel_difference *item = add(all, pair->table.name);
        item->is_table = true;
        item->column = bel_arena_strdup(all->arena, pair->table.columns[c]);
        item->values = pair->columns[c];
    }
    all->equal += all->count == before;
}

static void put_kind(const bel_ckpt_table *table, bel_str *out)
{
    bel_str_printf(out, "rows of %d with", table->width);
    for (int c = 0; c < table->column_count; c++)
        bel_str_printf(out, "%s %s", c > 0 ? "," : "", table->columns[c]);
}

// Table number `index` of `a` and number `other` of `b` have the same name.
static bel_status *compare_table(const bel_ckpt_reader *a, const bel_ckpt_reader *b, int index,
                                 int other, bel_differences *all)
{
    int64_t rows;
    table_pair pair = {.table = bel_ckpt_table_at(a, index, &rows)};
    bel_ckpt_table table = bel_ckpt_table_at(b, other, &rows);
    if (!bel_ckpt_same_table(&pair.table, &table)) {
        bel_str kind_a = {0}, kind_b = {0};
        put_kind(&pair.table, &kind_a);
        put_kind(&table, &kind_b);
        add_kinds(all, table.name, true, &kind_a, &kind_b);
        bel_str_deinit(&kind_a);
        bel_str_deinit(&kind_b);
        return NULL;
    }
    pair.cursor_a = bel_ckpt_cursor_open(a, index, true);
    pair.cursor_b = bel_ckpt_cursor_open(b, other, true);
    bel_status *status = merge_rows(&pair);
    bel_ckpt_cursor_close(pair.cursor_a);
    bel_ckpt_cursor_close(pair.cursor_b);
    if (status == NULL) add_table(all, &pair, a, b);
    return status;
}

// Gets the name of a table of the ascending list; NULL at its end.
static const char *table_at(const bel_ckpt_reader *reader, int index)
{
    int64_t rows;
    bool more = index < bel_ckpt_table_count(reader);
    return more ? bel_ckpt_table_at(reader, index, &rows).name : NULL;
}

static bel_status *compare_tables(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                  bel_differences *all)
{
    for (int i = 0, k = 0;;) {
        const char *name = table_at(a, i), *name_b = table_at(b, k);
        if (name == NULL && name_b == NULL) return NULL;
        int order = order_of_names(name, name_b);
        if (order < 0) add_absent(all, name, true, b, "a");
        if (order > 0) add_absent(all, name_b, true, a, "b");
        if (order == 0) BEL_TRY(compare_table(a, b, i, k, all));
        i += order <= 0;
        k += order >= 0;
    }
}

// --- All -----------------------------------------------------------------------------------------

bel_status *bel_differences_find(const bel_ckpt_reader *a, const bel_ckpt_reader *b,
                                 bel_differences *out)
{
    *out = (bel_differences){.arena = bel_arena_create()};
    BEL_TRY(compare_tensors(a, b, out));
    return compare_tables(a, b, out);
}

void bel_differences_free(bel_differences *differences)
{
    bel_free(differences->items);
    if (differences->arena != NULL) bel_arena_destroy(differences->arena);
    *differences = (bel_differences){0};
}

// --- Settings ------------------------------------------------------------------------------------

static bool differs(const bel_ckpt_reader *a, const bel_ckpt_reader *b, const char *name)
{
    const char *was = bel_ckpt_setting(a, name), *is = bel_ckpt_setting(b, name);
    if (was == NULL || is == NULL) return was != is;
    return strcmp(was, is) != 0;
}

// Lists a setting that differs, unless it is a parameter of the model function beside another
// setting of its name that is listed, too.
static void note_setting(const bel_ckpt_reader *a, const bel_ckpt_reader *b, const char *name,
                         bel_str *out)
{
    static const char prefix[] = "param.";
    size_t length = sizeof prefix - 1;
    if (!bel_setting_is_compared(name) || !differs(a, b, name)) return;
    bool is_param = strncmp(name, prefix, length) == 0;
    if (is_param && bel_setting_is_compared(name + length) && differs(a, b, name + length)) return;
    bel_setting_note_difference(out, name, bel_ckpt_setting(a, name), bel_ckpt_setting(b, name));
}

// False if an earlier version wrote the checkpoint.
static bool knows_batches(const bel_ckpt_info *info)
{
    for (int i = 0; i < info->segment_count; i++)
        if (info->segments[i].batch_size == 0) return false;
    return true;
}

// Number of the record from which a segment reads, counted over all epochs.
static uint64_t first_record(const bel_input_segment *segment)
{
    return (uint64_t)segment->origin +
           (uint64_t)segment->first_block * (uint64_t)segment->batch_size;
}

// Number of the record at which a segment ends, if the next one begins at `step`.
static uint64_t record_at(const bel_input_segment *segment, int64_t step)
{
    uint64_t steps = (uint64_t)step - (uint64_t)segment->first_step;
    return first_record(segment) +
           steps * (uint64_t)segment->replica_count * (uint64_t)segment->batch_size;
}

// Appends "2 × 8 from step 0, 4 × 6 from step 10". Names the record of a segment that does not
// continue with the next one. Without batches only "2 from step 0, 4 from step 10".
static void put_segments(const bel_ckpt_info *info, bool batches, bel_str *out)
{
    const bel_input_segment *last = NULL;
    for (int i = 0; i < info->segment_count; i++) {
        const bel_input_segment *segment = &info->segments[i];
        uint64_t expected = i == 0 ? 0 : record_at(segment - 1, segment->first_step);
        bool jumps = batches && first_record(segment) != expected;
        bool same = last != NULL && segment->replica_count == last->replica_count &&
                    (!batches || segment->batch_size == last->batch_size);
        last = segment;
        if (same && !jumps) continue;
        bel_str_printf(out, "%s%lld", out->length > 0 ? ", " : "",
                       (long long)segment->replica_count);
        if (batches) bel_str_printf(out, " × %lld", (long long)segment->batch_size);
        bel_str_printf(out, " from step %lld", (long long)segment->first_step);
        if (jumps)
            bel_str_printf(out, " at record %llu", (unsigned long long)first_record(segment));
    }
}

void bel_differences_settings(const bel_ckpt_reader *a, const bel_ckpt_reader *b, bel_str *out)
{
    const bel_ckpt_info *x = bel_ckpt_reader_info(a), *y = bel_ckpt_reader_info(b);
    for (int i = 0; i < x->setting_count; i++)
        note_setting(a, b, x->setting_names[i], out);
    for (int i = 0; i < y->setting_count; i++)
        if (bel_ckpt_setting(a, y->setting_names[i]) == NULL)
            note_setting(a, b, y->setting_names[i], out);
    bel_str was = {0}, is = {0};
    bool batches = knows_batches(x) && knows_batches(y);
    put_segments(x, batches, &was);
    put_segments(y, batches, &is);
    bool same = was.length == is.length && (was.length == 0 || strcmp(was.text, is.text) == 0);
    if (!same && !differs(a, b, BEL_SETTING_REPLICAS))
        bel_setting_note_difference(out, batches ? "replicas × batch" : "the number of replicas",
                                    was.text, is.text);
    bel_str_deinit(&was);
    bel_str_deinit(&is);
}
