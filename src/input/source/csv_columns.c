// Columns are assigned in three ways: by name, if the model was trained with names; by position, if
// it was trained with only a number of columns; and freely in a first training. A file with the
// columns of training in the same order is accepted as it is, so two columns may have the same
// name.
//
// Columns are assigned in a fixed order: the label, ids, lists of ids, the length, then the vector,
// which gets the rest. A second use of a column is refused. Names that consist of digits count as
// positions. Everything lives in the source's arena, which outlives the rows.
#include "input/source/csv_columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "input/table/csv_table.h"

// --- Columns -------------------------------------------------------------------------------------

static char *field_text(bel_arena *arena, const bel_csv_field *field)
{
    char *text = bel_arena_alloc(arena, bel_csv_value_length(field) + 1);
    bel_csv_copy_value(field, text);
    return text;
}

// Names the columns: from the header, by the user, or by their numbers.
static bel_status *name_columns(bel_csv_source *source, const bel_csv_field *fields, int count)
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
        bel_csv_place *named = &source->columns[i];
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

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Warns of a likely mistake in a header, once for the first file.
static void warn_of_header(const bel_csv_source *source)
{
    const char *path = source->options->paths[0];
    size_t count = (size_t)source->column_count;
    const char **names = bel_xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = source->columns[i].name;
    bel_csv_table_warn_of_numbers(path, names, source->column_count);
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) != 0) continue;
        bel_log_write(BEL_LOG_WARN,
                      "%s: two columns are called \"%s\", so other files must have all columns in "
                      "the same order",
                      path, names[i]);
        break;
    }
    bel_free(names);
}

// Checks that the header of a further file equals that of the first.
static bel_status *compare_header(const bel_csv_source *source, const bel_csv_file *file,
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

bel_status *bel_csv_columns_read_header(bel_csv_source *source, bel_csv_file *file)
{
    bel_csv_field *fields;
    int count;
    const char *next;
    BEL_TRY(bel_csv_file_split(file, file->text, &fields, &count, &next));
    bel_status *status = NULL;
    const char *zero = memchr(file->text, '\0', (size_t)(next - file->text));
    if (zero != NULL) { // a name would end there
        status = bel_csv_file_error(file, zero, "expected text, got a zero byte in the first row");
    } else if (source->columns == NULL) {
        status = name_columns(source, fields, count);
        if (status == NULL && !source->options->no_header) warn_of_header(source);
    } else if (!source->options->no_header) {
        status = compare_header(source, file, fields, count);
    }
    file->column_count = count;
    if (!source->options->no_header) file->rows = next;
    bel_free(fields);
    return status;
}

// Finds the only column called `name`; NULL: absent.
static bel_status *look_for_column(const bel_csv_source *source, const char *name,
                                   bel_csv_place **out_column)
{
    bel_csv_place *found = NULL;
    for (int i = 0; i < source->column_count; i++) {
        bel_csv_place *candidate = &source->columns[i];
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

static bel_status *find_column(const bel_csv_source *source, const char *name,
                               bel_csv_place **out_column)
{
    BEL_TRY(look_for_column(source, bel_column_name_utf8(name, source->arena), out_column));
    if (*out_column != NULL) return NULL;
    size_t count = (size_t)source->column_count;
    const char **names = bel_xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = source->columns[i].name;
    int nearest = bel_nearest_name(name, names, count);
    const char *hint = nearest < 0 ? NULL : names[nearest];
    bool one = count == 1 && strpbrk(names[0], ";\t|") != NULL;
    bel_free(names);
    if (one)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: no column \"%s\": \"%s\" is one, as files of numbers have commas "
                       "between fields; hint: a table may have others (--columns auto)",
                       source->options->paths[0], name, source->columns[0].name);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no column \"%s\"%s%s%s", source->options->paths[0],
                   name, hint == NULL ? "" : "; did you mean \"", hint == NULL ? "" : hint,
                   hint == NULL ? "" : "\"?");
}

// Checks that the label is the same as in training. (Prediction needs none.)
static bel_status *check_label(const bel_csv_source *source, const char *label)
{
    const char *was = source->like != NULL ? source->like->label : NULL;
    if (was == NULL) return NULL;
    if (strcmp(bel_column_name_utf8(label, source->arena), was) == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: the label is column \"%s\" here, but it was \"%s\" in training; hint: "
                   "--label_column \"%s\"",
                   source->options->paths[0], label, was, was);
}

static bel_status *use_label(bel_csv_source *source)
{
    const bel_csv_options *options = source->options;
    const char *name = options->label_column;
    if (name == NULL && options->last_is_label)
        name = source->columns[source->column_count - 1].name;
    source->label = (bel_csv_label){
        .column = -1,
        .name = name,
        .class_count = options->class_count,
    };
    if (name == NULL) return NULL;
    BEL_TRY(check_label(source, name));
    bel_csv_place *label = NULL;
    BEL_TRY(find_column(source, name, &label));
    label->use = BEL_CSV_USE_LABEL;
    source->label.column = (int)(label - source->columns);
    return NULL;
}

// Assigns the columns whose values are hashed, in the order in which they are named.
static bel_status *use_hashed(bel_csv_source *source, const char *const *names, int count,
                              bel_csv_use use)
{
    for (int i = 0; i < count; i++) {
        bel_csv_place *found = NULL;
        BEL_TRY(find_column(source, names[i], &found));
        if (found->use != BEL_CSV_USE_NOTHING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice",
                           source->options->paths[0], found->name);
        }
        found->use = use;
        found->field = i;
        found->seed = bel_hash_name_seed(found->name);
    }
    return NULL;
}

static bel_status *use_ids(bel_csv_source *source, bel_source_field *fields, int *field_count)
{
    const bel_csv_options *options = source->options;
    if (options->id_column_count > 0) {
        BEL_TRY(use_hashed(source, options->id_columns, options->id_column_count, BEL_CSV_USE_ID));
        source->id_field = (*field_count)++;
        fields[source->id_field] = (bel_source_field){.name = BEL_ID_FIELD,
                                                      .dtype = BEL_DTYPE_I64,
                                                      .shape = BEL_SHAPE(options->id_column_count)};
    }
    if (options->id_list_column_count == 0) return NULL;
    bel_shape shape = BEL_SHAPE(options->id_list_column_count, options->id_list_most);
    BEL_TRY(use_hashed(source, options->id_list_columns, options->id_list_column_count,
                       BEL_CSV_USE_LIST));
    source->list_field = (*field_count)++;
    fields[source->list_field] =
        (bel_source_field){.name = BEL_ID_LIST_FIELD, .dtype = BEL_DTYPE_I64, .shape = shape};
    if (!options->id_list_weights) return NULL;
    source->weight_field = (*field_count)++;
    fields[source->weight_field] =
        (bel_source_field){.name = BEL_ID_WEIGHT_FIELD, .dtype = BEL_DTYPE_F32, .shape = shape};
    return NULL;
}

static bel_status *use_length(bel_csv_source *source, bel_source_field *fields, int *field_count)
{
    const char *name = source->options->length_column;
    if (name == NULL) return NULL;
    bel_csv_place *length = NULL;
    BEL_TRY(find_column(source, name, &length));
    if (length->use != BEL_CSV_USE_NOTHING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice",
                       source->options->paths[0], name);
    }
    length->use = BEL_CSV_USE_FIELD;
    length->field = (*field_count)++;
    fields[length->field] = (bel_source_field){
        .name = BEL_LENGTH_FIELD, .dtype = BEL_DTYPE_I64, .shape = bel_shape_scalar()};
    return NULL;
}

// --- Vector --------------------------------------------------------------------------------------

// Assigns the unused columns to the vector, by position. Returns their number.
static int take_the_rest(bel_csv_source *source)
{
    int count = 0;
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use != BEL_CSV_USE_NOTHING) continue;
        source->columns[i].use = BEL_CSV_USE_VECTOR;
        source->columns[i].field = count++;
    }
    return count;
}

// Whether the unused columns are those that the model was trained with, position by position.
static bool is_as_before(const bel_csv_source *source)
{
    int count = 0;
    for (int i = 0; i < source->column_count; i++) {
        const bel_csv_place *c = &source->columns[i];
        if (c->use != BEL_CSV_USE_NOTHING) continue;
        if (count == source->like->column_count) return false;
        if (strcmp(c->name, source->like->columns[count++]) != 0) return false;
    }
    return count == source->like->column_count;
}

// Lists the names of unused columns: the model was not trained with them.
static void list_strangers(const bel_csv_source *source, bel_str *out_names)
{
    const char *label = source->like->label;
    for (int i = 0; i < source->column_count; i++) {
        const bel_csv_place *c = &source->columns[i];
        if (c->use != BEL_CSV_USE_NOTHING || (label != NULL && strcmp(c->name, label) == 0))
            continue;
        bel_str_printf(out_names, "%s\"%s\"", out_names->length > 0 ? ", " : "", c->name);
    }
}

// Whether the names are positions, as in a file without a header.
static bool are_places(const bel_column_names *names)
{
    for (int i = 0; i < names->column_count; i++)
        if (strspn(names->columns[i], "0123456789") != strlen(names->columns[i])) return false;
    return true;
}

static bel_status *missing_column(const bel_csv_source *source, const char *name)
{
    bel_str words = {0};
    list_strangers(source, &words);
    bool some = words.length > 0;
    bool places = are_places(source->like);
    bel_status *status = BEL_ERR(
        BEL_INVALID_ARGUMENT, "%s: no column \"%s\", with which the model was trained%s%s%s",
        source->options->paths[0], name, some ? "; columns here that training did not have: " : "",
        some ? words.text : "",
        places ? "; hint: it was trained on files without a header (--no_header)" : "");
    bel_str_deinit(&words);
    return status;
}

// Assigns columns by name: each element is the same column as in training, at any position in this
// file.
static bel_status *take_by_name(bel_csv_source *source)
{
    const bel_column_names *like = source->like;
    const char *missing = NULL;
    for (int i = 0; i < like->column_count; i++) {
        bel_csv_place *found = NULL;
        BEL_TRY(look_for_column(source, like->columns[i], &found));
        if (found == NULL) {
            if (missing == NULL) missing = like->columns[i];
            continue;
        }
        if (found->use == BEL_CSV_USE_VECTOR) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: expected two columns \"%s\" as in training, got one",
                           source->options->paths[0], found->name);
        }
        if (found->use != BEL_CSV_USE_NOTHING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: column \"%s\" was a number that the model was trained with, and is "
                           "something else here",
                           source->options->paths[0], found->name);
        }
        found->use = BEL_CSV_USE_VECTOR;
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

// Assigns columns without names by position. The label's may be missing, or be where it was.
static bel_status *take_by_place(bel_csv_source *source)
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
        rest += source->columns[i].use == BEL_CSV_USE_NOTHING;
    bool labeled = like->label != NULL && source->label.column < 0;
    if (rest == like->column_count) {
        (void)take_the_rest(source);
        return NULL;
    }
    if (labeled && rest == like->column_count + 1) return take_by_name(source);
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: expected %d columns of numbers as in training%s, got %d", path,
                   like->column_count, labeled ? ", or one more with the label" : "", rest);
}

// Without typed columns: all columns except ids, the length and the label become one vector.
static bel_status *use_vector(bel_csv_source *source, bel_source_field *fields, int *field_count)
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
    if (length == 0 && (source->id_field >= 0 || source->list_field >= 0)) return NULL;
    if (length == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: expected number columns besides the label, got none",
                       source->options->paths[0]);
    }
    source->vector_field = (*field_count)++;
    fields[source->vector_field] = (bel_source_field){
        .name = source->options->vector_name,
        .dtype = source->options->vector_dtype,
        .shape = BEL_SHAPE(length),
        .scale = source->options->scale,
    };
    return NULL;
}

static bel_status *use_typed(bel_csv_source *source, bel_source_field *fields, int *field_count)
{
    const bel_csv_options *options = source->options;
    for (int i = 0; i < options->column_count; i++) {
        const bel_csv_column *typed = &options->columns[i];
        bel_csv_place *found = NULL;
        BEL_TRY(find_column(source, typed->name, &found));
        if (found->use != BEL_CSV_USE_NOTHING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice",
                           options->paths[0], typed->name);
        }
        fields[i] = (bel_source_field){
            .name = typed->name,
            .dtype = typed->dtype,
            .shape = typed->dtype == BEL_DTYPE_STRING ? BEL_SHAPE(-1) : bel_shape_scalar(),
        };
        found->use = BEL_CSV_USE_FIELD;
        found->field = i;
    }
    *field_count = options->column_count;
    return NULL;
}

bel_status *bel_csv_columns_use(bel_csv_source *source)
{
    enum { BESIDE = 6 }; // vector, ids, lists, weights, length, label
    const bel_csv_options *options = source->options;
    size_t most = (size_t)options->column_count + BESIDE;
    bel_source_field *fields = bel_arena_alloc(source->arena, most * sizeof *fields);
    int count = 0;
    source->vector_field = source->id_field = source->list_field = source->weight_field = -1;
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
        if (source->columns[i].use != BEL_CSV_USE_NOTHING) source->used_count = i + 1;
    }
    source->base.fields = fields;
    source->base.field_count = count;
    return NULL;
}

void bel_csv_columns_keep_names(bel_csv_source *source)
{
    int count = 0;
    const char **columns =
        bel_arena_alloc(source->arena, (size_t)source->column_count * sizeof *columns);
    for (int i = 0; i < source->column_count; i++) {
        if (source->columns[i].use != BEL_CSV_USE_VECTOR) continue;
        columns[source->columns[i].field] = source->columns[i].name;
        count++;
    }
    int label = source->label.column;
    source->names = (bel_column_names){.label = label >= 0 ? source->columns[label].name : NULL,
                                       .columns = columns,
                                       .column_count = count};
    source->base.names = &source->names;
}
