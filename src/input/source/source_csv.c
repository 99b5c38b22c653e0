// CSV files as a source. Each column's use is decided once; a row is then read in one pass. Reading
// a plain number does not search for the end of its field first, because the parser stops at the
// delimiter. Only a text that it does not understand takes the careful way.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/graph.h"
#include "input/source/csv_columns.h"
#include "input/table/holdout.h"

// --- Reading a record ----------------------------------------------------------------------------

static bel_status *value_error(const bel_csv_file *file, const bel_csv_field *field,
                               const char *name, const char *expected)
{
    char *got = bel_csv_quote(field);
    bel_status *status = bel_csv_file_error(file, field->text, "column \"%s\": expected %s, got %s",
                                            name, expected, got);
    bel_free(got);
    return status;
}

static bel_status *parse_number(const bel_csv_file *file, const bel_csv_field *field,
                                const char *name, double *out_value)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    const char *end = trimmed.text + trimmed.length;
    if (bel_decimal_parse(trimmed.text, end, out_value) == end) return NULL;
    char *got = bel_csv_quote(field);
    bel_status *status =
        bel_csv_file_error(file, field->text,
                           "column \"%s\": expected a number, got %s; hint: texts are categories "
                           "unless a flag such as "
                           "--class_count or --feature_scale says what columns are",
                           name, got);
    bel_free(got);
    return status;
}

// Adds an element to the vector, in F32.
static bel_status *store_number(const bel_csv_source *source, const bel_csv_file *file,
                                const char *place, const char *name, double value, float *out)
{
    float number = (float)(value * source->options->scale);
    if (!isfinite(number)) {
        return bel_csv_file_error(file, place,
                                  "column \"%s\": expected a number that fits f32, got %g", name,
                                  value * source->options->scale);
    }
    *out = number;
    return NULL;
}

// Parses an integer, also one that is written with a fraction of zeros.
static bool parse_whole(const bel_csv_field *field, int64_t *out_value)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    const char *end = trimmed.text + trimmed.length;
    double value;
    if (bel_parse_i64(trimmed.text, trimmed.length, out_value)) return true;
    if (bel_decimal_parse(trimmed.text, end, &value) != end) return false;
    if (fabs(value) > 0x1p53 || value != floor(value)) return false;
    *out_value = (int64_t)value;
    return true;
}

// Reads a cell as one value of type `dtype`; `name` is its column's.
static bel_status *read_typed(const bel_csv_file *file, const bel_csv_field *field,
                              const char *name, bel_dtype dtype, double scale, void *data)
{
    if (dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64) {
        double value;
        BEL_TRY(parse_number(file, field, name, &value));
        value *= scale;
        float number = (float)value;
        if (dtype == BEL_DTYPE_F64) {
            *(double *)data = value;
            if (isfinite(value)) return NULL;
        } else {
            *(float *)data = number;
            if (isfinite(number)) return NULL;
        }
        return value_error(file, field, name,
                           dtype == BEL_DTYPE_F64 ? "a number that fits f64"
                                                  : "a number that fits f32");
    }
    int64_t value;
    bool number = parse_whole(field, &value);
    if (dtype == BEL_DTYPE_I64) {
        if (!number) return value_error(file, field, name, "an integer");
        *(int64_t *)data = value;
        return NULL;
    }
    if (!number || value < INT32_MIN || value > INT32_MAX) {
        return value_error(file, field, name, "a 32-bit integer");
    }
    *(int32_t *)data = (int32_t)value;
    return NULL;
}

// Reads a column that is a separate field.
static bel_status *read_field(const bel_csv_source *source, const bel_csv_file *file,
                              const bel_csv_field *field, int index, const bel_sink *sink)
{
    const bel_source_field *to = &source->base.fields[index];
    if (to->dtype != BEL_DTYPE_STRING) {
        return read_typed(file, field, to->name, to->dtype, 1,
                          bel_sink_place(sink, &source->base, index, 0));
    }
    int64_t length = (int64_t)bel_csv_value_length(field);
    bel_csv_copy_value(field, bel_sink_place(sink, &source->base, index, length));
    return NULL;
}

// Reads an element of a vector that is not F32. Its text becomes a double only if necessary.
static bel_status *read_element(const bel_csv_source *source, const bel_csv_file *file,
                                const bel_csv_field *field, const bel_csv_place *use, void *vector)
{
    bel_dtype dtype = source->options->vector_dtype;
    void *element = (char *)vector + (size_t)use->field * bel_dtype_size(dtype);
    return read_typed(file, field, use->name, dtype, source->options->scale, element);
}

// The fast way for an element of the vector. False: the field is not a bare number.
static inline bool parse_bare_number(const bel_csv_file *file, const char **at, double *out_value)
{
    const char *stop = bel_decimal_parse(*at, file->end, out_value);
    if (stop == NULL) return false;
    if (stop < file->end && *stop == file->delimiter) {
        *at = stop + 1;
        return true;
    }
    if (!bel_csv_is_row_end(stop, file->end)) return false;
    *at = stop;
    return true;
}

// The fastest way, for adjacent elements: short numbers with a delimiter after them. Returns the
// first column from `i` on that is something else.
static int read_short_numbers(const bel_csv_source *source, const bel_csv_file *file, int i,
                              const char **at, float *vector)
{
    const bel_csv_place *columns = source->columns;
    const char *here = *at, *end = file->end;
    const double scale = source->options->scale;
    const char delimiter = file->delimiter;
    const int count = source->used_count;
    for (; i < count && columns[i].use == BEL_CSV_USE_VECTOR; i++) {
        double value;
        if (end - here < BEL_DECIMAL_ROOM) break;
        const char *stop = bel_decimal_parse_short(here, &value);
        if (stop == NULL || *stop != delimiter) break;
        float number = (float)(value * scale);
        if (!isfinite(number)) break;
        vector[columns[i].field] = number;
        here = stop + 1;
    }
    *at = here;
    return i;
}

// --- Ids -----------------------------------------------------------------------------------------

// Equal texts of one column have equal ids; ids of different columns are equal only by chance.
static int64_t id_of(const bel_csv_field *field, uint64_t seed)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    size_t length = bel_csv_value_length(&trimmed);
    if (length == trimmed.length) return bel_hash_name(trimmed.text, length, seed);
    char *text = bel_xmalloc(length + 1); // it has doubled quotes
    bel_csv_copy_value(&trimmed, text);
    int64_t id = bel_hash_name(text, length, seed);
    bel_free(text);
    return id;
}

// Removes the weight from an element "id:weight"; 1 if absent. False: it is not a number.
static bool take_weight(bel_csv_field *element, float *out_weight)
{
    const char *colon = element->text + element->length;
    while (colon > element->text && colon[-1] != ':')
        colon--;
    *out_weight = 1;
    if (colon == element->text) return true;
    bel_csv_field number = {.text = colon,
                            .length = (size_t)(element->text + element->length - colon)};
    number = bel_csv_trim(&number);
    const char *end = number.text + number.length;
    double value;
    if (bel_decimal_parse(number.text, end, &value) != end) return false;
    element->length = (size_t)(colon - 1 - element->text);
    *out_weight = (float)value;
    return isfinite(*out_weight);
}

static bel_status *list_error(const bel_csv_source *source, const bel_csv_file *file,
                              const bel_csv_field *field, const char *name)
{
    char expected[160];
    bel_snprintf(expected, sizeof expected, "at most %lld ids%s with '%c' between them",
                 (long long)source->options->id_list_most,
                 source->options->id_list_weights ? ", each as id or id:weight," : "",
                 source->options->id_list_separator);
    return value_error(file, field, name, expected);
}

// Reads a list of ids from `text`, whose quotes were removed. False: it is not a valid list.
static bool read_elements(const bel_csv_source *source, bel_csv_field text, uint64_t seed,
                          int64_t *ids, float *weights)
{
    const bel_csv_options *options = source->options;
    const char *at = text.text, *end = at + text.length;
    for (int64_t i = 0;; i++) {
        const char *stop = memchr(at, options->id_list_separator, (size_t)(end - at));
        bel_csv_field element = {.text = at, .length = (size_t)((stop == NULL ? end : stop) - at)};
        if (i == options->id_list_most) return false;
        if (weights != NULL && !take_weight(&element, &weights[i])) return false;
        element = bel_csv_trim(&element);
        if (element.length == 0) return false;
        ids[i] = id_of(&element, seed);
        if (stop == NULL) return true;
        at = stop + 1;
    }
}

// Reads a list. A record's lists follow each other in `ids`; each is filled up with BEL_NO_ID.
static bel_status *read_list(const bel_csv_source *source, const bel_csv_file *file,
                             const bel_csv_place *use, const bel_csv_field *field, int64_t *ids,
                             float *weights)
{
    int64_t most = source->options->id_list_most, first = use->field * most;
    for (int64_t i = first; i < first + most; i++) {
        ids[i] = BEL_NO_ID;
        if (weights != NULL) weights[i] = 0;
    }
    bel_csv_field text = bel_csv_trim(field);
    if (text.length == 0) return NULL;
    char *copy = NULL;
    if (text.doubled) { // quotes
        copy = bel_xmalloc(text.length);
        bel_csv_copy_value(&text, copy);
        text = (bel_csv_field){.text = copy, .length = bel_csv_value_length(&text)};
    }
    bool fits = read_elements(source, text, use->seed, ids + first,
                              weights == NULL ? NULL : weights + first);
    bel_free(copy);
    return fits ? NULL : list_error(source, file, field, use->name);
}

// --- Rows ----------------------------------------------------------------------------------------

// Reads the row at `at`, whose structure was checked when the file was opened.
static bel_status *read_row(const bel_csv_source *source, const bel_csv_file *file, const char *at,
                            const bel_sink *sink)
{
    float *weights = NULL;
    void *vector = NULL;
    bool plain = source->options->vector_dtype == BEL_DTYPE_F32;
    int64_t *ids = NULL, *lists = NULL;
    if (source->vector_field >= 0) {
        vector = bel_sink_place(sink, &source->base, source->vector_field, 0);
    }
    if (source->id_field >= 0) ids = bel_sink_place(sink, &source->base, source->id_field, 0);
    if (source->list_field >= 0) lists = bel_sink_place(sink, &source->base, source->list_field, 0);
    if (source->weight_field >= 0)
        weights = bel_sink_place(sink, &source->base, source->weight_field, 0);
    for (int i = 0; i < source->used_count; i++) {
        if (plain) i = read_short_numbers(source, file, i, &at, vector);
        if (i == source->used_count) break;
        const bel_csv_place *use = &source->columns[i];
        const char *place = at;
        double value;
        if (plain && use->use == BEL_CSV_USE_VECTOR && parse_bare_number(file, &at, &value)) {
            BEL_TRY(
                store_number(source, file, place, use->name, value, (float *)vector + use->field));
            continue;
        }
        bel_csv_field field;
        bel_csv_stop stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (stop > BEL_CSV_ROW_END) { // only if the file was changed since it was indexed
            return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(stop));
        }
        switch (use->use) {
        case BEL_CSV_USE_NOTHING: break;
        case BEL_CSV_USE_VECTOR: BEL_TRY(read_element(source, file, &field, use, vector)); break;
        case BEL_CSV_USE_ID: ids[use->field] = id_of(&field, use->seed); break;
        case BEL_CSV_USE_LIST: BEL_TRY(read_list(source, file, use, &field, lists, weights)); break;
        case BEL_CSV_USE_FIELD: BEL_TRY(read_field(source, file, &field, use->field, sink)); break;
        case BEL_CSV_USE_LABEL:
            BEL_TRY(bel_csv_file_read_label(file, &source->label, &field,
                                            bel_sink_place(sink, &source->base, use->field, 0)));
            break;
        }
    }
    return NULL;
}

static bel_status *csv_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const bel_csv_source *source = (const bel_csv_source *)base;
    const char *row;
    bel_status *status = NULL;
    BEL_TRY(bel_csv_set_enter(&source->set, number));
    const bel_csv_file *file = bel_csv_set_find(&source->set, number, &row);
    if (source->bad != NULL) status = bel_csv_file_check_row(file, row, &source->label);
    if (status == NULL) status = read_row(source, file, row, sink);
    bel_csv_set_leave(&source->set);
    return status;
}

static bel_status *csv_look(const bel_source *base, int64_t wanted, int64_t *out_records)
{
    return bel_csv_set_look(&((const bel_csv_source *)base)->set, wanted, out_records);
}

static bool csv_reads(const bel_source *base)
{
    const bel_csv_set *set = &((const bel_csv_source *)base)->set;
    return set->growth != NULL && bel_csv_set_reads(set);
}

static bel_status *csv_mark(const bel_source *base, int64_t records, bel_str *out_text)
{
    return bel_csv_set_mark(&((const bel_csv_source *)base)->set, records, out_text);
}

static bel_status *csv_begin(const bel_source *base, int64_t records, const char *mark)
{
    return bel_csv_set_begin(&((const bel_csv_source *)base)->set, records, mark);
}

static void csv_pass(const bel_source *base, int64_t records)
{
    bel_csv_set_pass(&((const bel_csv_source *)base)->set, records);
}

static void csv_unfinished(const bel_source *base, bel_str *out_text)
{
    bel_csv_set_unfinished(&((const bel_csv_source *)base)->set, out_text);
}

static void csv_ahead(const bel_source *base, int64_t number, int step)
{
    bel_csv_set_ahead(&((const bel_csv_source *)base)->set, number, step);
}

static bel_status *csv_check(const bel_source *base, int64_t block)
{
    return bel_csv_set_check(&((const bel_csv_source *)base)->set, block);
}

static void csv_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    bel_csv_set_origin(&((const bel_csv_source *)base)->set, number, out_text);
}

static const char *csv_file(const bel_source *base, int64_t number)
{
    const bel_csv_set *set = &((const bel_csv_source *)base)->set;
    const char *row;
    if (set->growth != NULL) return bel_csv_set_followed(set);
    return bel_csv_set_find(set, number, &row)->path;
}

static void csv_describe(const bel_source *base, bel_str *out_text)
{
    const bel_csv_source *source = (const bel_csv_source *)base;
    bel_str_printf(out_text, "delimiter=%d header=%d columns=%d label=%d classes=%lld scale=%a",
                   source->options->delimiter, !source->options->no_header, source->column_count,
                   source->label.column, (long long)source->label.class_count,
                   source->options->scale);
    if (source->set.growth != NULL) bel_str_puts(out_text, " follow");
    if (source->options->vector_dtype != BEL_DTYPE_F32)
        bel_str_printf(out_text, " vector=%s", bel_dtype_name(source->options->vector_dtype));
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use == BEL_CSV_USE_ID) {
            bel_str_printf(out_text, " id%d=%d", source->columns[i].field, i);
        }
        if (source->columns[i].use == BEL_CSV_USE_LIST) {
            bel_str_printf(out_text, " list%d=%d,%d", source->columns[i].field, i,
                           source->options->id_list_separator);
        }
        bool length =
            source->columns[i].use == BEL_CSV_USE_FIELD && source->options->length_column != NULL;
        if (length) bel_str_printf(out_text, " length=%d", i);
        bool typed =
            source->columns[i].use == BEL_CSV_USE_FIELD && source->options->columns != NULL;
        if (typed) bel_str_printf(out_text, " typed%d=%d", source->columns[i].field, i);
    }
    bel_holdout_describe(&source->options->holdout, out_text);
}

static void csv_destroy(bel_source *base)
{
    bel_csv_source *source = (bel_csv_source *)base;
    bel_csv_set_close(&source->set);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind csv_kind = {
    .name = "csv",
    .check = csv_check,
    .read = csv_read,
    .ahead = csv_ahead,
    .origin = csv_origin,
    .file = csv_file,
    .describe = csv_describe,
    .destroy = csv_destroy,
};

static const bel_source_kind followed_kind = {
    .name = "csv",
    .check = csv_check,
    .look = csv_look,
    .reads = csv_reads,
    .begin = csv_begin,
    .pass = csv_pass,
    .mark = csv_mark,
    .unfinished = csv_unfinished,
    .read = csv_read,
    .origin = csv_origin,
    .file = csv_file,
    .describe = csv_describe,
    .destroy = csv_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

// Reads all headers before any row. The first file's header gives columns their places, and all
// others must equal it.
static bel_status *open_files(bel_csv_source *source, const bel_opening *opening)
{
    bel_csv_options *given = &source->given;
    bel_csv_set *set = &source->set;
    bool follows = given->follow_secs > 0;
    BEL_TRY((follows ? bel_csv_set_open_growing : bel_csv_set_open)(
        set, source->arena, given->paths, given->path_count, given->delimiter, &given->paths));
    given->path_count = set->count;
    for (int i = 0; i < set->count; i++)
        BEL_TRY(bel_csv_columns_read_header(source, &set->files[i]));
    source->base.size_bytes = set->size_bytes;
    source->base.content = set->content;
    BEL_TRY(bel_csv_columns_use(source));
    bel_csv_columns_keep_names(source);
    if (follows) {
        source->base.record_count = INT64_MAX;
        source->base.endless = true;
        source->base.kind = &followed_kind;
        return bel_csv_set_follow(set, &source->label, source->bad != NULL);
    }
    BEL_TRY(bel_csv_set_index(set, &source->label, source->bad != NULL));
    int *labels = bel_arena_alloc(source->arena, (size_t)set->count * sizeof *labels);
    for (int i = 0; i < set->count; i++)
        labels[i] = source->label.column;
    BEL_TRY(bel_holdout_apply(&given->holdout, set, labels));
    source->base.record_count = set->row_count;
    return bel_source_read_some(&source->base, opening);
}

bel_status *bel_source_open_csv(const bel_csv_options *options, const bel_opening *opening,
                                bel_source **out_source)
{
    bel_csv_source *source = bel_xcalloc(1, sizeof *source);
    source->base.kind = &csv_kind;
    source->arena = bel_arena_create();
    source->given = *options;
    source->options = &source->given;
    source->like = opening->like;
    source->bad = opening->bad;
    bel_status *status = open_files(source, opening);
    source->like = NULL; // the caller's
    if (status != NULL) {
        csv_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
