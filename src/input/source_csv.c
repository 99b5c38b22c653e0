// CSV files as a source: which column goes where is decided once; a row is then read in one pass.
// Reading a plain number does not look for the end of its field first: the parser stops at the
// delimiter by itself, and only what it does not understand takes the careful way.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "input/csv_file.h"
#include "input/decimal.h"
#include "input/source.h"

// What becomes of a column.
typedef enum column_use {
    USE_NOTHING,
    USE_VECTOR, // an element of the vector field
    USE_FIELD,  // a field of its own
    USE_ID,     // an element of the ids
    USE_LABEL,
} column_use;

typedef struct column {
    const char *name;
    column_use use;
    int field;     // index among the source's fields; VECTOR, ID: among the elements
    uint64_t seed; // USE_ID: of its values' hashes
} column;

typedef struct csv_source {
    bel_source base;
    bel_arena *arena;
    const bel_csv_options *options;
    const bel_column_names *like; // what the model was trained with; NULL: nothing is known
    bel_column_names names;
    bel_csv_file *files;
    int64_t *first_record; // of each file
    column *columns;
    int column_count;
    int used_count;             // columns up to the last one that is used
    int vector_field, id_field; // -1: there is none
    bel_csv_label label;
} csv_source;

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
    return value_error(file, field, name, "a number");
}

// Adds an element to the vector, in F32.
static bel_status *store_number(const csv_source *source, const bel_csv_file *file,
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

// The value of a typed column, into the field that was made for it.
static bel_status *read_typed(const bel_csv_file *file, const bel_csv_field *field,
                              const bel_source_field *to, void *data)
{
    if (to->dtype == BEL_DTYPE_F32) {
        double value;
        BEL_TRY(parse_number(file, field, to->name, &value));
        float number = (float)value;
        if (!isfinite(number)) return value_error(file, field, to->name, "a number that fits f32");
        *(float *)data = number;
        return NULL;
    }
    bel_csv_field trimmed = bel_csv_trim(field);
    int64_t value;
    bool number = bel_parse_i64(trimmed.text, trimmed.length, &value);
    if (to->dtype == BEL_DTYPE_I64) {
        if (!number) return value_error(file, field, to->name, "a whole number");
        *(int64_t *)data = value;
        return NULL;
    }
    if (!number || value < INT32_MIN || value > INT32_MAX) {
        return value_error(file, field, to->name, "a whole number of 32 bits");
    }
    *(int32_t *)data = (int32_t)value;
    return NULL;
}

// A column that is a field of its own.
static bel_status *read_field(const csv_source *source, const bel_csv_file *file,
                              const bel_csv_field *field, int index, const bel_sink *sink)
{
    const bel_source_field *to = &source->base.fields[index];
    if (to->dtype != BEL_DTYPE_STRING) {
        return read_typed(file, field, to, bel_sink_place(sink, &source->base, index, 0));
    }
    int64_t length = (int64_t)bel_csv_value_length(field);
    bel_csv_copy_value(field, bel_sink_place(sink, &source->base, index, length));
    return NULL;
}

// The fast way for an element of the vector: false when the field is not a bare number.
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

// Equal texts of one column have equal ids; those of different columns do not meet but by chance.
static int64_t id_of(const bel_csv_field *field, uint64_t seed)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    size_t length = bel_csv_value_length(&trimmed);
    if (length == trimmed.length) return (int64_t)bel_hash128_of(trimmed.text, length, seed).low;
    char *text = bel_xmalloc(length + 1); // it has doubled quotes
    bel_csv_copy_value(&trimmed, text);
    uint64_t hash = bel_hash128_of(text, length, seed).low;
    bel_free(text);
    return (int64_t)hash;
}

// Reads the row at `at`, whose structure was checked when the file was opened.
static bel_status *read_row(const csv_source *source, const bel_csv_file *file, const char *at,
                            const bel_sink *sink)
{
    float *vector = NULL;
    int64_t *ids = NULL;
    if (source->vector_field >= 0) {
        vector = bel_sink_place(sink, &source->base, source->vector_field, 0);
    }
    if (source->id_field >= 0) ids = bel_sink_place(sink, &source->base, source->id_field, 0);
    for (int i = 0; i < source->used_count; i++) {
        const column *use = &source->columns[i];
        const char *place = at;
        double value;
        if (use->use == USE_VECTOR && parse_bare_number(file, &at, &value)) {
            BEL_TRY(store_number(source, file, place, use->name, value, &vector[use->field]));
            continue;
        }
        bel_csv_field field;
        bel_csv_stop stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (stop > BEL_CSV_ROW_END) { // only when the file was changed behind our back
            return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(stop));
        }
        switch (use->use) {
        case USE_NOTHING: break;
        case USE_VECTOR:
            BEL_TRY(parse_number(file, &field, use->name, &value));
            BEL_TRY(store_number(source, file, place, use->name, value, &vector[use->field]));
            break;
        case USE_ID: ids[use->field] = id_of(&field, use->seed); break;
        case USE_FIELD: BEL_TRY(read_field(source, file, &field, use->field, sink)); break;
        case USE_LABEL:
            BEL_TRY(bel_csv_file_read_label(file, &source->label, &field,
                                            bel_sink_place(sink, &source->base, use->field, 0)));
            break;
        }
    }
    return NULL;
}

// The file of a record and the start of its row.
static const bel_csv_file *find_row(const csv_source *source, int64_t number, const char **out_row)
{
    int file = 0, behind = source->options->path_count; // the last file that begins at or before it
    while (behind - file > 1) {
        int middle = file + (behind - file) / 2;
        if (source->first_record[middle] <= number) {
            file = middle;
        } else {
            behind = middle;
        }
    }
    const bel_csv_file *found = &source->files[file];
    *out_row = found->text + found->row_starts.items[number - source->first_record[file]];
    return found;
}

static bel_status *csv_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const csv_source *source = (const csv_source *)base;
    const char *row;
    const bel_csv_file *file = find_row(source, number, &row);
    return read_row(source, file, row, sink);
}

// Of many files only some at a time: looking at each costs a system call.
static bel_status *csv_check(const bel_source *base, int64_t block)
{
    enum { FILES_AT_A_TIME = 8 };
    const csv_source *source = (const csv_source *)base;
    int count = source->options->path_count;
    int first = count > FILES_AT_A_TIME ? (int)(block * FILES_AT_A_TIME % count) : 0;
    for (int i = first; i < count && i < first + FILES_AT_A_TIME; i++)
        BEL_TRY(bel_file_view_check(&source->files[i].view, source->files[i].path));
    return NULL;
}

static void csv_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const csv_source *source = (const csv_source *)base;
    const char *row;
    const bel_csv_file *file = find_row(source, number, &row);
    bel_str_printf(out_text, "%s:%lld", file->path, (long long)bel_csv_file_line(file, row));
}

static void csv_describe(const bel_source *base, bel_str *out_text)
{
    const csv_source *source = (const csv_source *)base;
    bel_str_printf(out_text, "delimiter=%d header=%d columns=%d label=%d classes=%lld scale=%a",
                   source->options->delimiter, !source->options->no_header, source->column_count,
                   source->label.column, (long long)source->label.class_count,
                   source->options->scale);
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use == USE_ID) {
            bel_str_printf(out_text, " id%d=%d", source->columns[i].field, i);
        }
        bool length = source->columns[i].use == USE_FIELD && source->options->length_column != NULL;
        if (length) bel_str_printf(out_text, " length=%d", i);
    }
}

static void csv_destroy(bel_source *base)
{
    csv_source *source = (csv_source *)base;
    for (int i = 0; i < source->options->path_count; i++)
        bel_csv_file_close(&source->files[i]);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind csv_kind = {
    .name = "csv",
    .check = csv_check,
    .read = csv_read,
    .origin = csv_origin,
    .describe = csv_describe,
    .destroy = csv_destroy,
};

// --- Columns -------------------------------------------------------------------------------------

static char *field_text(bel_arena *arena, const bel_csv_field *field)
{
    char *text = bel_arena_alloc(arena, bel_csv_value_length(field) + 1);
    bel_csv_copy_value(field, text);
    return text;
}

// Names of the columns: from the header, from the user, or their numbers.
static bel_status *name_columns(csv_source *source, const bel_csv_field *fields, int count)
{
    const bel_csv_options *options = source->options;
    if (options->column_names != NULL && options->column_name_count != count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: expected %d column names for its %d columns, got %d", options->paths[0],
                       count, count, options->column_name_count);
    }
    source->column_count = count;
    source->columns = bel_arena_alloc(source->arena, (size_t)count * sizeof *source->columns);
    for (int i = 0; i < count; i++) {
        column *named = &source->columns[i];
        if (!options->no_header) {
            char *text = field_text(source->arena, &fields[i]);
            named->name = bel_column_name_utf8(text, source->arena);
        } else if (options->column_names != NULL) {
            named->name = bel_column_name_utf8(options->column_names[i], source->arena);
        } else {
            char *number = bel_strf("%d", i);
            named->name = bel_arena_strdup(source->arena, number);
            bel_free(number);
        }
    }
    return NULL;
}

// The header of a further file must be that of the first.
static bel_status *compare_header(const csv_source *source, const bel_csv_file *file,
                                  const bel_csv_field *fields, int count)
{
    const char *first = source->options->paths[0];
    if (count != source->column_count) {
        return bel_csv_file_error(file, file->text,
                                  "expected a header of %d columns as in %s, got %d",
                                  source->column_count, first, count);
    }
    for (int i = 0; i < count; i++) {
        const char *expected = source->columns[i].name;
        char *got = field_text(source->arena, &fields[i]);
        bool same = strcmp(bel_column_name_utf8(got, source->arena), expected) == 0;
        if (same) continue;
        char *quoted = bel_csv_quote(&fields[i]);
        bel_status *status =
            bel_csv_file_error(file, fields[i].text, "expected column \"%s\" as in %s, got %s",
                               expected, first, quoted);
        bel_free(quoted);
        return status;
    }
    return NULL;
}

static bel_status *read_header(csv_source *source, bel_csv_file *file)
{
    bel_csv_field *fields;
    int count;
    const char *next;
    BEL_TRY(bel_csv_file_split(file, file->text, &fields, &count, &next));
    bel_status *status = NULL;
    if (source->columns == NULL) {
        status = name_columns(source, fields, count);
    } else if (!source->options->no_header) {
        status = compare_header(source, file, fields, count);
    }
    if (!source->options->no_header) file->rows = next;
    bel_free(fields);
    return status;
}

// The one column called `name`; NULL: there is none.
static bel_status *look_for_column(const csv_source *source, const char *name, column **out_column)
{
    column *found = NULL;
    for (int i = 0; i < source->column_count; i++) {
        column *candidate = &source->columns[i];
        if (strcmp(candidate->name, name) != 0) continue;
        if (found != NULL) {
            return BEL_ERR(
                BEL_INVALID_ARGUMENT, "%s: expected one column \"%s\", got two (columns %d and %d)",
                source->options->paths[0], name, (int)(found - source->columns) + 1, i + 1);
        }
        found = candidate;
    }
    *out_column = found;
    return NULL;
}

static bel_status *find_column(const csv_source *source, const char *name, column **out_column)
{
    BEL_TRY(look_for_column(source, bel_column_name_utf8(name, source->arena), out_column));
    if (*out_column != NULL) return NULL;
    size_t count = (size_t)source->column_count;
    const char **names = bel_xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = source->columns[i].name;
    int nearest = bel_nearest_name(name, names, count);
    const char *hint = nearest < 0 ? NULL : names[nearest];
    bel_free(names);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no column \"%s\"%s%s%s", source->options->paths[0],
                   name, hint == NULL ? "" : "; did you mean \"", hint == NULL ? "" : hint,
                   hint == NULL ? "" : "\"?");
}

// The label must be what it was in training. (Prediction needs none.)
static bel_status *check_label(const csv_source *source)
{
    const char *label = source->options->label_column;
    const char *was = source->like != NULL ? source->like->label : NULL;
    if (was == NULL || label == NULL) return NULL;
    if (strcmp(bel_column_name_utf8(label, source->arena), was) == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: the label is column \"%s\" here, but it was \"%s\" in training; hint: "
                   "--label_column \"%s\"",
                   source->options->paths[0], label, was, was);
}

static bel_status *use_label(csv_source *source)
{
    source->label = (bel_csv_label){
        .column = -1,
        .name = source->options->label_column,
        .class_count = source->options->class_count,
    };
    if (source->label.name == NULL) return NULL;
    BEL_TRY(check_label(source));
    column *label = NULL;
    BEL_TRY(find_column(source, source->label.name, &label));
    label->use = USE_LABEL;
    source->label.column = (int)(label - source->columns);
    return NULL;
}

static bel_status *use_ids(csv_source *source, bel_source_field *fields, int *field_count)
{
    const bel_csv_options *options = source->options;
    if (options->id_column_count == 0) return NULL;
    for (int i = 0; i < options->id_column_count; i++) {
        column *found = NULL;
        BEL_TRY(find_column(source, options->id_columns[i], &found));
        if (found->use != USE_NOTHING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice",
                           options->paths[0], found->name);
        }
        found->use = USE_ID;
        found->field = i;
        found->seed = bel_hash64(found->name, strlen(found->name));
    }
    source->id_field = (*field_count)++;
    fields[source->id_field] = (bel_source_field){
        .name = BEL_ID_FIELD, .dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(options->id_column_count)};
    return NULL;
}

static bel_status *use_length(csv_source *source, bel_source_field *fields, int *field_count)
{
    const char *name = source->options->length_column;
    if (name == NULL) return NULL;
    column *length = NULL;
    BEL_TRY(find_column(source, name, &length));
    if (length->use != USE_NOTHING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice",
                       source->options->paths[0], name);
    }
    length->use = USE_FIELD;
    length->field = (*field_count)++;
    fields[length->field] = (bel_source_field){
        .name = BEL_LENGTH_FIELD, .dtype = BEL_DTYPE_I64, .shape = bel_shape_scalar()};
    return NULL;
}

// --- The vector ----------------------------------------------------------------------------------

// Columns that nothing else has taken, by place. Returns how many.
static int take_the_rest(csv_source *source)
{
    int count = 0;
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use != USE_NOTHING) continue;
        source->columns[i].use = USE_VECTOR;
        source->columns[i].field = count++;
    }
    return count;
}

// True when what nothing else has taken is what the model was trained with, place by place.
static bool is_as_before(const csv_source *source)
{
    int count = 0;
    for (int i = 0; i < source->column_count; i++) {
        const column *c = &source->columns[i];
        if (c->use != USE_NOTHING) continue;
        if (count == source->like->column_count) return false;
        if (strcmp(c->name, source->like->columns[count++]) != 0) return false;
    }
    return count == source->like->column_count;
}

// Names of columns that nothing has taken: the model was not trained with them.
static void list_strangers(const csv_source *source, bel_str *out_names)
{
    const char *label = source->like->label;
    for (int i = 0; i < source->column_count; i++) {
        const column *c = &source->columns[i];
        if (c->use != USE_NOTHING || (label != NULL && strcmp(c->name, label) == 0)) continue;
        bel_str_printf(out_names, "%s\"%s\"", out_names->length > 0 ? ", " : "", c->name);
    }
}

// Names that are places: of a file without a header.
static bool are_places(const bel_column_names *names)
{
    for (int i = 0; i < names->column_count; i++)
        if (strspn(names->columns[i], "0123456789") != strlen(names->columns[i])) return false;
    return true;
}

static bel_status *missing_column(const csv_source *source, const char *name)
{
    bel_str words = {0};
    list_strangers(source, &words);
    bool some = words.length > 0;
    bool places = are_places(source->like);
    bel_status *status = BEL_ERR(
        BEL_INVALID_ARGUMENT, "%s: no column \"%s\", with which the model was trained%s%s%s",
        source->options->paths[0], name, some ? "; here are, and were not there: " : "",
        some ? words.text : "",
        places ? "; hint: it was trained on files without a header (--no_header)" : "");
    bel_str_deinit(&words);
    return status;
}

// By name: each element is the column that it was in training, wherever that stands in this file.
static bel_status *take_by_name(csv_source *source)
{
    const bel_column_names *like = source->like;
    const char *missing = NULL;
    for (int i = 0; i < like->column_count; i++) {
        column *found = NULL;
        BEL_TRY(look_for_column(source, like->columns[i], &found));
        if (found == NULL) {
            if (missing == NULL) missing = like->columns[i];
            continue;
        }
        if (found->use == USE_VECTOR) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: expected two columns \"%s\" as in training, got one",
                           source->options->paths[0], found->name);
        }
        if (found->use != USE_NOTHING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: column \"%s\" was a number that the model was trained with, and is "
                           "something else here",
                           source->options->paths[0], found->name);
        }
        found->use = USE_VECTOR;
        found->field = i;
    }
    if (missing != NULL) return missing_column(source, missing);
    bel_str strangers = {0};
    list_strangers(source, &strangers);
    if (strangers.length > 0) {
        bel_log_write(BEL_LOG_INFO, "%s: left out, as the model was not trained with them: %s",
                      source->options->paths[0], strangers.text);
    }
    bel_str_deinit(&strangers);
    return NULL;
}

// Columns without names are bound by place. The label's may be missing, or stand where it stood.
static bel_status *take_by_place(csv_source *source)
{
    const bel_column_names *like = source->like;
    const char *path = source->options->paths[0];
    if (!are_places(like)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the model was trained with columns that have names, and this file has "
                       "no header",
                       path);
    }
    int rest = 0;
    for (int i = 0; i < source->column_count; i++)
        rest += source->columns[i].use == USE_NOTHING;
    bool labelled = like->label != NULL && source->label.column < 0;
    if (rest == like->column_count) {
        (void)take_the_rest(source);
        return NULL;
    }
    if (labelled && rest == like->column_count + 1) return take_by_name(source);
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: expected %d columns of numbers as in training%s, got %d", path,
                   like->column_count, labelled ? ", or one more with the label" : "", rest);
}

// Without typed columns: everything but ids, the length and the label goes into one vector.
static bel_status *use_vector(csv_source *source, bel_source_field *fields, int *field_count)
{
    const bel_csv_options *options = source->options;
    int length = 0;
    if (source->like == NULL || is_as_before(source)) {
        length = take_the_rest(source);
    } else {
        bool places = options->no_header && options->column_names == NULL;
        BEL_TRY(places ? take_by_place(source) : take_by_name(source));
        length = source->like->column_count;
    }
    if (length == 0 && source->id_field >= 0) return NULL;
    if (length == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: expected number columns besides the label, got none",
                       source->options->paths[0]);
    }
    source->vector_field = (*field_count)++;
    fields[source->vector_field] = (bel_source_field){
        .name = source->options->vector_name,
        .dtype = BEL_DTYPE_F32,
        .shape = BEL_SHAPE(length),
    };
    return NULL;
}

static bel_status *use_typed(csv_source *source, bel_source_field *fields, int *field_count)
{
    const bel_csv_options *options = source->options;
    for (int i = 0; i < options->column_count; i++) {
        const bel_csv_column *typed = &options->columns[i];
        column *found = NULL;
        BEL_TRY(find_column(source, typed->name, &found));
        if (found->use != USE_NOTHING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice",
                           options->paths[0], typed->name);
        }
        fields[i] = (bel_source_field){
            .name = typed->name,
            .dtype = typed->dtype,
            .shape = typed->dtype == BEL_DTYPE_STRING ? BEL_SHAPE(-1) : bel_shape_scalar(),
        };
        found->use = USE_FIELD;
        found->field = i;
    }
    *field_count = options->column_count;
    return NULL;
}

static bel_status *use_columns(csv_source *source)
{
    enum { BESIDE = 4 }; // vector, ids, length, label
    const bel_csv_options *options = source->options;
    size_t most = (size_t)options->column_count + BESIDE;
    bel_source_field *fields = bel_arena_alloc(source->arena, most * sizeof *fields);
    int count = 0;
    source->vector_field = source->id_field = -1;
    BEL_TRY(use_label(source));
    if (options->columns != NULL) {
        BEL_TRY(use_typed(source, fields, &count));
    } else {
        BEL_TRY(use_ids(source, fields, &count));
        BEL_TRY(use_length(source, fields, &count));
        BEL_TRY(use_vector(source, fields, &count));
    }
    for (int i = 0; i < count && source->label.column >= 0; i++) {
        if (strcmp(fields[i].name, BEL_LABEL_FIELD) != 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the name \"%s\" is taken by the label column",
                       source->options->paths[0], BEL_LABEL_FIELD);
    }
    if (source->label.column >= 0) {
        source->columns[source->label.column].field = count;
        fields[count++] = (bel_source_field){
            .name = BEL_LABEL_FIELD,
            .dtype = BEL_DTYPE_I64,
            .shape = bel_shape_scalar(),
        };
    }
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use != USE_NOTHING) source->used_count = i + 1;
    }
    source->base.fields = fields;
    source->base.field_count = count;
    return NULL;
}

// What later files of this model are bound to.
static void keep_names(csv_source *source)
{
    int count = 0;
    const char **columns =
        bel_arena_alloc(source->arena, (size_t)source->column_count * sizeof *columns);
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use != USE_VECTOR) continue;
        columns[source->columns[i].field] = source->columns[i].name;
        count++;
    }
    int label = source->label.column;
    source->names = (bel_column_names){.label = label >= 0 ? source->columns[label].name : NULL,
                                       .columns = columns,
                                       .column_count = count};
    source->base.names = &source->names;
}

// --- Opening -------------------------------------------------------------------------------------

static bel_status *check_rows(const csv_source *source, int64_t first, int64_t end,
                              bel_record *record)
{
    for (int64_t i = first; i < end; i++) {
        bel_arena_reset(record->arena);
        BEL_TRY(bel_source_read_record(&source->base, i, record));
    }
    return NULL;
}

// Reads rows once, so that a value that is no number is not found when hours of training are over:
// all of them, or of large files so many at the beginning and at the end that it takes half a
// second.
static bel_status *check_values(const csv_source *source)
{
    enum { CHECKED_BYTES = 64 << 20 };
    int64_t count = source->base.record_count, half = count;
    if (source->base.size_bytes > CHECKED_BYTES) {
        half = (int64_t)((double)count * (CHECKED_BYTES / 2) / (double)source->base.size_bytes);
    }
    int64_t second = half < count - half ? count - half : half;
    bel_arena *arena = bel_arena_create();
    bel_record record;
    bel_record_init(&record, arena);
    bel_status *status = check_rows(source, 0, half, &record);
    if (status == NULL) status = check_rows(source, second, count, &record);
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    return status;
}

static bel_status *open_files(csv_source *source)
{
    const bel_csv_options *options = source->options;
    for (int i = 0; i < options->path_count; i++) {
        bel_csv_file *file = &source->files[i];
        BEL_TRY(bel_csv_file_open(file, options->paths[i], options->delimiter));
        BEL_TRY(read_header(source, file));
        source->base.size_bytes += file->view.size;
        source->base.content =
            bel_hash64_more(source->base.content, file->view.data, file->view.size);
    }
    BEL_TRY(use_columns(source));
    keep_names(source);
    for (int i = 0; i < options->path_count; i++) {
        bel_csv_file *file = &source->files[i];
        BEL_TRY(bel_csv_file_index(file, source->column_count, &source->label));
        source->first_record[i] = source->base.record_count;
        source->base.record_count += (int64_t)file->row_starts.count;
    }
    if (source->base.record_count == 0) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected records behind the header, got none",
                       options->paths[0]);
    }
    return check_values(source);
}

bel_status *bel_source_open_csv(const bel_csv_options *options, const bel_column_names *like,
                                bel_source **out_source)
{
    csv_source *source = bel_xcalloc(1, sizeof *source);
    size_t path_count = (size_t)options->path_count;
    source->base.kind = &csv_kind;
    source->arena = bel_arena_create();
    source->options = options;
    source->like = like;
    source->files = bel_arena_alloc(source->arena, path_count * sizeof *source->files);
    source->first_record =
        bel_arena_alloc(source->arena, path_count * sizeof *source->first_record);
    bel_status *status = open_files(source);
    source->like = NULL; // the caller's
    if (status != NULL) {
        csv_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
