// Reader of a description from its text. A table lists the keys that a column of each kind may
// have, their types and their destinations. An unknown key, or one of another kind, is refused with
// the nearest name, as an ignored setting would be silently wrong.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "base/str.h"
#include "base/yaml.h"
#include "columns/description.h"

typedef enum value_type {
    NUMBER,  // double
    WHOLE,   // int, 1 to a limit
    SWITCH,  // bool: true or false
    CHOICE,  // int, the index of a name
    BYTE,    // char
    TEXT,    // const char *
    TEXTS,   // a list of texts
    NUMBERS, // bounds
    PARTS,   // parts of a date
    VALUE,   // `missing: value` of a category
} value_type;

typedef struct key {
    const char *name;
    unsigned kinds; // bits of the kinds that have it
    value_type type;
    size_t offset, count_offset; // count_offset: TEXTS
    const char *const *names;    // CHOICE
    int limit;                   // CHOICE: number of names; WHOLE: maximum; NUMBERS: maximum count
} key;

static const char *const ways[] = {"one_hot", "embedding"};

#define ANY ((1U << BEL_COLUMN_KINDS) - 1)
#define OF(kind) (1U << BEL_COLUMN_##kind)
#define FIELD(field) offsetof(bel_column, field)

static const key keys[] = {
    {"note", ANY, TEXT, FIELD(note), 0, NULL, 0},
    {"warning", ANY, TEXT, FIELD(warning), 0, NULL, 0},
    {"scale", OF(NUMBER), CHOICE, FIELD(scale), 0, bel_column_scale_names, BEL_SCALES},
    {"mean", OF(NUMBER) | OF(DATE) | OF(LABEL) | OF(WEIGHT), NUMBER, FIELD(mean), 0, NULL, 0},
    {"deviation", OF(NUMBER) | OF(DATE) | OF(LABEL), NUMBER, FIELD(deviation), 0, NULL, 0},
    {"low", OF(NUMBER) | OF(LABEL), NUMBER, FIELD(low), 0, NULL, 0},
    {"high", OF(NUMBER), NUMBER, FIELD(high), 0, NULL, 0},
    {"missing", OF(NUMBER), CHOICE, FIELD(missing), 0, bel_column_missing_names, BEL_MISSINGS},
    {"missing", OF(CATEGORY), VALUE, FIELD(missing_value), 0, NULL, 0},
    {"missing_texts", OF(NUMBER) | OF(DATE), TEXTS, FIELD(absent.texts), FIELD(absent.count), NULL,
     0},
    {"unit", OF(NUMBER) | OF(LABEL), TEXT, FIELD(unit), 0, NULL, 0},
    {"thousands", OF(NUMBER) | OF(LABEL), BYTE, FIELD(thousands), 0, NULL, 0},
    {"fill", OF(NUMBER), NUMBER, FIELD(fill), 0, NULL, 0},
    {"indicator", OF(NUMBER) | OF(DATE), SWITCH, FIELD(indicator), 0, NULL, 0},
    {"clip", OF(NUMBER) | OF(DATE), NUMBER, FIELD(clip), 0, NULL, 0},
    {"bounds", OF(NUMBER), NUMBERS, FIELD(bounds), FIELD(bound_count), NULL,
     BEL_COLUMN_MOST_BOUNDS},
    {"as", OF(CATEGORY), CHOICE, FIELD(embedded), 0, ways, 2},
    {"values", OF(CATEGORY), TEXTS, FIELD(values), FIELD(value_count), NULL, 0},
    {"classes", OF(LABEL), TEXTS, FIELD(values), FIELD(value_count), NULL, 0},
    {"rows", OF(LABEL), NUMBERS, FIELD(rows), FIELD(row_count), NULL, 1 << 20},
    {"separator", OF(LIST), BYTE, FIELD(separator), 0, NULL, 0},
    {"most", OF(LIST) | OF(TEXT), WHOLE, FIELD(most), 0, NULL, 4096},
    {"most", OF(TOKENS), WHOLE, FIELD(most), 0, NULL, BEL_COLUMN_MOST_TOKENS},
    {"grams", OF(TEXT), WHOLE, FIELD(grams), 0, NULL, BEL_TEXT_MOST_GRAMS},
    {"day_first", OF(DATE), SWITCH, FIELD(day_first), 0, NULL, 0},
    {"parts", OF(DATE), PARTS, FIELD(parts), 0, NULL, 0},
    {"of", OF(CROSS), TEXTS, FIELD(of), FIELD(of_count), NULL, 0},
};

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

// --- Values --------------------------------------------------------------------------------------

static bel_status *expected(const bel_yaml *yaml, const bel_yaml_node *node, const char *what)
{
    if (node->kind != BEL_YAML_SCALAR) {
        return bel_yaml_error(yaml, node, "expected %s, got %s", what,
                              node->kind == BEL_YAML_MAPPING ? "a mapping" : "a list");
    }
    return bel_yaml_error(yaml, node, "expected %s, got \"%s\"", what, node->text);
}

static bel_status *read_double(const bel_yaml *yaml, const bel_yaml_node *node, double *out)
{
    bool good = node->kind == BEL_YAML_SCALAR &&
                bel_parse_f64(node->text, strlen(node->text), out) && isfinite(*out);
    return good ? NULL : expected(yaml, node, "a number");
}

static bel_status *read_switch(const bel_yaml *yaml, const bel_yaml_node *node, bool *out)
{
    bool scalar = node->kind == BEL_YAML_SCALAR;
    *out = scalar && strcmp(node->text, "true") == 0;
    if (*out || (scalar && strcmp(node->text, "false") == 0)) return NULL;
    return expected(yaml, node, "true or false");
}

static bel_status *read_byte(const bel_yaml *yaml, const bel_yaml_node *node, char *out)
{
    bool good = node->kind == BEL_YAML_SCALAR && strlen(node->text) == 1 &&
                strchr("\"\r\n", node->text[0]) == NULL;
    if (!good) return expected(yaml, node, "one character, no quote and no line break");
    *out = node->text[0];
    return NULL;
}

// Reads the index of a name in a list; the error for a wrong one lists all names.
static bel_status *read_choice(const bel_yaml *yaml, const bel_yaml_node *node,
                               const char *const *names, int count, int *out)
{
    bel_str all = {0};
    for (int i = 0; i < count; i++) {
        if (node->kind == BEL_YAML_SCALAR && strcmp(node->text, names[i]) == 0) {
            *out = i;
            bel_str_deinit(&all);
            return NULL;
        }
        bel_str_printf(&all, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", names[i]);
    }
    bel_status *status = expected(yaml, node, all.text);
    bel_str_deinit(&all);
    return status;
}

static bel_status *read_texts(const bel_yaml *yaml, const bel_yaml_node *node, bel_arena *arena,
                              const char *const **out_texts, int *out_count)
{
    if (node->kind != BEL_YAML_SEQUENCE) return expected(yaml, node, "a list of texts");
    const char **texts = bel_arena_alloc(arena, (node->count + 1) * sizeof *texts);
    for (size_t i = 0; i < node->count; i++) {
        const bel_yaml_node *item = node->values[i];
        if (item->kind != BEL_YAML_SCALAR) return expected(yaml, item, "a text");
        texts[i] = bel_arena_strdup(arena, item->text);
    }
    *out_texts = texts;
    *out_count = (int)node->count;
    return NULL;
}

static bel_status *read_numbers(const bel_yaml *yaml, const bel_yaml_node *node, int most,
                                bel_arena *arena, const double **out_numbers, int *out_count)
{
    if (node->kind != BEL_YAML_SEQUENCE || node->count > (size_t)most) {
        char what[64];
        bel_snprintf(what, sizeof what, "a list of at most %d numbers", most);
        return expected(yaml, node, what);
    }
    double *numbers = bel_arena_alloc(arena, (node->count + 1) * sizeof *numbers);
    for (size_t i = 0; i < node->count; i++)
        BEL_TRY(read_double(yaml, node->values[i], &numbers[i]));
    *out_numbers = numbers;
    *out_count = (int)node->count;
    return NULL;
}

static bel_status *read_parts(const bel_yaml *yaml, const bel_yaml_node *node, int *out_parts)
{
    *out_parts = 0;
    if (node->kind != BEL_YAML_SEQUENCE || node->count == 0) {
        return expected(yaml, node, "a list of parts of a date");
    }
    for (size_t i = 0; i < node->count; i++) {
        int part = 0;
        BEL_TRY(read_choice(yaml, node->values[i], bel_date_part_names, BEL_DATE_PARTS, &part));
        *out_parts |= 1 << part;
    }
    return NULL;
}

static bel_status *read_whole(const bel_yaml *yaml, const bel_yaml_node *node, int most, int *out)
{
    int64_t value = 0;
    bool good =
        node->kind == BEL_YAML_SCALAR && bel_parse_i64(node->text, strlen(node->text), &value);
    if (!good || value < 1 || value > most) {
        char what[64];
        bel_snprintf(what, sizeof what, "an integer from 1 to %d", most);
        return expected(yaml, node, what);
    }
    *out = (int)value;
    return NULL;
}

static bel_status *read_value(const bel_yaml *yaml, const key *k, const bel_yaml_node *node,
                              bel_arena *arena, bel_column *column)
{
    void *place = (char *)column + k->offset, *count = (char *)column + k->count_offset;
    int chosen = 0;
    switch (k->type) {
    case NUMBER: return read_double(yaml, node, place);
    case WHOLE: return read_whole(yaml, node, k->limit, place);
    case SWITCH: return read_switch(yaml, node, place);
    case BYTE: return read_byte(yaml, node, place);
    case TEXT:
        if (node->kind != BEL_YAML_SCALAR) return expected(yaml, node, "a text");
        *(const char **)place = bel_arena_strdup(arena, node->text);
        return NULL;
    case TEXTS: return read_texts(yaml, node, arena, place, count);
    case NUMBERS: return read_numbers(yaml, node, k->limit, arena, place, count);
    case PARTS: return read_parts(yaml, node, place);
    case VALUE:
        column->missing_value = true;
        return read_choice(yaml, node, (const char *const[]){"value"}, 1, &chosen);
    case CHOICE: break;
    }
    BEL_TRY(read_choice(yaml, node, k->names, k->limit, &chosen));
    if (k->names == ways) {
        column->embedded = chosen == 1;
    } else if (k->names == bel_column_scale_names) {
        column->scale = (bel_column_scale)chosen;
    } else {
        column->missing = (bel_column_missing)chosen;
    }
    return NULL;
}

// --- Columns -------------------------------------------------------------------------------------

static bel_status *unknown_key(const bel_yaml *yaml, const bel_yaml_node *node,
                               bel_column_kind kind)
{
    const char *names[KEY_COUNT + 2] = {"name", "kind"};
    size_t count = 2;
    for (int i = 0; i < KEY_COUNT; i++)
        if ((keys[i].kinds >> kind & 1) != 0) names[count++] = keys[i].name;
    int nearest = bel_nearest_name(node->text, names, count);
    bool elsewhere = false;
    for (int i = 0; i < KEY_COUNT; i++)
        elsewhere = elsewhere || strcmp(keys[i].name, node->text) == 0;
    if (elsewhere) {
        return bel_yaml_error(yaml, node, "a column of kind %s has no \"%s\"",
                              bel_column_kind_names[kind], node->text);
    }
    return bel_yaml_error(yaml, node, "unknown key \"%s\"%s%s%s", node->text,
                          nearest < 0 ? "" : "; did you mean \"", nearest < 0 ? "" : names[nearest],
                          nearest < 0 ? "" : "\"?");
}

// Sets the replacement of a missing number if `fill` does not.
static bel_status *set_fill(const bel_yaml *yaml, const bel_yaml_node *node, bel_column *column)
{
    if (column->kind != BEL_COLUMN_NUMBER || bel_yaml_member(node, "fill") != NULL) return NULL;
    if (column->missing == BEL_MISSING_MEDIAN || column->missing == BEL_MISSING_CONSTANT) {
        return bel_yaml_error(yaml, bel_yaml_member(node, "missing"),
                              "expected a \"fill\" beside it: what a missing one counts as");
    }
    double mean = column->mean;
    bool log = column->scale == BEL_SCALE_LOG;
    column->fill = log ? copysign(bel_real_expm1(fabs(mean)), mean) : mean;
    return NULL;
}

static bel_status *need_both(const bel_yaml *yaml, const bel_yaml_node *node,
                             const bel_yaml_node *at, const char *one, const char *other)
{
    bool both = bel_yaml_member(node, one) != NULL && bel_yaml_member(node, other) != NULL;
    if (both) return NULL;
    return bel_yaml_error(yaml, at, "expected a \"%s\" and a \"%s\" beside it", one, other);
}

// Checks for keys without which a column would silently be another one: without its values, or with
// numbers that are not scaled. A number without any of these keys is used as it is.
static bel_status *check_needed(const bel_yaml *yaml, const bel_yaml_node *node,
                                const bel_column *column)
{
    const bel_yaml_node *kind = bel_yaml_member(node, "kind");
    const bel_yaml_node *scale = bel_yaml_member(node, "scale");
    if (column->kind == BEL_COLUMN_CATEGORY && column->value_count == 0 && !column->missing_value)
        return bel_yaml_error(yaml, kind, "expected \"values\" beside it: those of a category");
    if (column->kind == BEL_COLUMN_TOKENS && column->most == 0)
        return bel_yaml_error(yaml, kind, "expected a \"most\" beside it: the tokens that count");
    bool timed = column->parts == 0 || (column->parts & BEL_DATE_TIME) != 0;
    if (column->kind == BEL_COLUMN_DATE && timed)
        return need_both(yaml, node, kind, "mean", "deviation");
    if (column->kind != BEL_COLUMN_NUMBER || scale == NULL) return NULL;
    if (column->scale == BEL_SCALE_MIN_MAX) return need_both(yaml, node, scale, "low", "high");
    bool moments = column->scale == BEL_SCALE_STANDARD || column->scale == BEL_SCALE_LOG;
    return moments ? need_both(yaml, node, scale, "mean", "deviation") : NULL;
}

static bel_status *read_column(const bel_yaml *yaml, const bel_yaml_node *node,
                               bel_columns *columns)
{
    const bel_yaml_node *name = bel_yaml_member(node, "name"),
                        *kind = bel_yaml_member(node, "kind");
    if (name == NULL || name->kind != BEL_YAML_SCALAR || kind == NULL) {
        return bel_yaml_error(yaml, node, "expected a column, {name: …, kind: …}");
    }
    int chosen = 0;
    BEL_TRY(read_choice(yaml, kind, bel_column_kind_names, BEL_COLUMN_KINDS, &chosen));
    if (bel_columns_find(columns, name->text) >= 0) {
        return bel_yaml_error(yaml, name, "the column \"%s\" is already there", name->text);
    }
    bel_column *column = bel_columns_add(columns, name->text, (bel_column_kind)chosen);
    column->line = node->line;
    column->place = node->column;
    for (size_t i = 0; i < node->count; i++) {
        const bel_yaml_node *given = node->keys[i];
        if (strcmp(given->text, "name") == 0 || strcmp(given->text, "kind") == 0) continue;
        const key *found = NULL;
        for (int k = 0; k < KEY_COUNT && found == NULL; k++)
            if ((keys[k].kinds >> chosen & 1) != 0 && strcmp(keys[k].name, given->text) == 0)
                found = &keys[k];
        if (found == NULL) return unknown_key(yaml, given, column->kind);
        BEL_TRY(read_value(yaml, found, node->values[i], columns->arena, column));
    }
    BEL_TRY(check_needed(yaml, node, column));
    BEL_TRY(set_fill(yaml, node, column));
    if (column->kind == BEL_COLUMN_LABEL)
        column->label =
            bel_yaml_member(node, "classes") != NULL ? BEL_LABEL_CLASSES : BEL_LABEL_NUMBER;
    if (column->kind == BEL_COLUMN_DATE && column->parts == 0)
        column->parts = BEL_DATE_TIME | BEL_DATE_SEASON;
    return NULL;
}

static bel_status *read_top(const bel_yaml *yaml, const bel_yaml_node *name,
                            const bel_yaml_node *value, bel_columns *columns)
{
    static const char *const names[] = {"delimiter", "header",  "missing",
                                        "rows",      "columns", "decimal"};
    static const char *const decimals[] = {".", ","};
    double rows;
    int place = 0, decimal = 0;
    BEL_TRY(read_choice(yaml, name, names, sizeof names / sizeof names[0], &place));
    switch (place) {
    case 0: return read_byte(yaml, value, &columns->delimiter);
    case 1: return read_switch(yaml, value, &columns->header);
    case 2:
        BEL_TRY(read_texts(yaml, value, columns->arena, &columns->missing.texts,
                           &columns->missing.count));
        bel_missing_texts_prepare(&columns->missing, columns->arena);
        return NULL;
    case 3:
        BEL_TRY(read_double(yaml, value, &rows));
        if (rows < 0 || rows > (double)INT64_MAX / 2) return expected(yaml, value, "a count");
        columns->rows = (int64_t)rows;
        return NULL;
    case 5:
        BEL_TRY(read_choice(yaml, value, decimals, 2, &decimal));
        columns->decimal = *decimals[decimal];
        return NULL;
    default: break;
    }
    if (value->kind != BEL_YAML_SEQUENCE) return expected(yaml, value, "a list of columns");
    for (size_t i = 0; i < value->count; i++)
        BEL_TRY(read_column(yaml, value->values[i], columns));
    return NULL;
}

static bel_status *read_document(const bel_yaml *yaml, bel_columns *columns)
{
    const bel_yaml_node *root = bel_yaml_root(yaml);
    if (root == NULL || root->kind != BEL_YAML_MAPPING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a description of columns",
                       bel_yaml_source(yaml));
    }
    for (size_t i = 0; i < root->count; i++)
        BEL_TRY(read_top(yaml, root->keys[i], root->values[i], columns));
    return bel_columns_finish(columns, bel_yaml_source(yaml));
}

static bel_status *read_yaml(bel_yaml *yaml, bel_columns **out_columns)
{
    bel_columns *columns = bel_columns_create();
    bel_status *status = read_document(yaml, columns);
    bel_yaml_destroy(yaml);
    if (status == NULL) {
        *out_columns = columns;
    } else {
        bel_columns_destroy(columns);
    }
    return status;
}

// A thousand columns of a thousand values each are a valid description, if a long one.
static const bel_yaml_limits limits = {.bytes = (size_t)1 << 30, .nodes = 20000000};

bel_status *bel_columns_parse(const char *text, const char *source, bel_columns **out_columns)
{
    bel_yaml *yaml;
    BEL_TRY(bel_yaml_parse_within(text, strlen(text), source, limits, &yaml));
    return read_yaml(yaml, out_columns);
}

bel_status *bel_columns_check_text(const bel_columns *columns, const char *source)
{
    bel_columns *again = NULL;
    bel_status *status = bel_columns_parse(columns->text, source, &again);
    bool same = status == NULL && strcmp(again->text, columns->text) == 0;
    bel_columns_destroy(again);
    if (same) return NULL;
    bel_status *error = BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "%s: the description of its columns would not come back from its text, so no "
        "checkpoint could be read again (%s); hint: fewer columns, or --ignore for odd ones",
        source, status == NULL ? "it comes back as another one" : bel_status_message(status));
    bel_status_ignore(status); // part of the message
    return error;
}

bel_status *bel_columns_read(const char *path, bel_columns **out_columns)
{
    bel_yaml *yaml;
    bel_columns *columns;
    BEL_TRY(bel_yaml_read_within(path, limits, &yaml));
    BEL_TRY(read_yaml(yaml, &columns));
    bel_status *status = bel_columns_check_text(columns, path);
    if (status == NULL) {
        *out_columns = columns;
    } else {
        bel_columns_destroy(columns);
    }
    return status;
}
