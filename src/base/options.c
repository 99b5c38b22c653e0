// Options: their values, and the readers of the command line and of YAML.
//
// Both readers end in give(), so that a text is checked against its row in one place. give() keeps
// the value of a stronger source: the command line is stronger than YAML.
#include "base/options.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/number.h"
#include "base/options_inner.h"
#include "base/str.h"

// --- Storing values -----------------------------------------------------------------------------

static void value_clear(bel_option_value *value)
{
    for (size_t i = 0; i < value->count; i++)
        bel_free(value->items[i]);
    value->count = 0;
}

static void value_add(bel_option_value *value, const char *text, size_t length)
{
    value->items =
        bel_xgrow(value->items, &value->capacity, value->count + 1, sizeof *value->items);
    value->items[value->count++] = bel_xstrndup(text, length);
}

// Joins the items to one text, which bel_options_text returns.
static void value_join(bel_option_value *value)
{
    bel_str joined = {0};
    bel_str_puts(&joined, "");
    for (size_t i = 0; i < value->count; i++)
        bel_str_printf(&joined, "%s%s", i > 0 ? "," : "", value->items[i]);
    bel_free(value->joined);
    value->joined = joined.text;
}

static void value_set_origin(bel_option_value *value, bel_option_source source, const char *origin)
{
    value->source = source;
    bel_free(value->origin);
    value->origin = bel_xstrdup(origin);
}

static void value_deinit(bel_option_value *value)
{
    value_clear(value);
    bel_free(value->meant);
    bel_free(value->items);
    bel_free(value->joined);
    bel_free(value->origin);
}

// Splits one text into items: a list at commas, any other type not at all. An empty text is no
// item.
static bel_status *options_split(const bel_option *option, const char *place, const char *text,
                                 bel_option_value *out_items)
{
    bool cut = bel_option_is_list(option) && option->type != BEL_OPTION_PAIRS;
    bool is_text = option->type == BEL_OPTION_STRING &&
                   (option->accepts == NULL || option->otherwise[0] == '\0');
    bool may_be_empty = bel_option_is_list(option) || is_text;
    if (text[0] == '\0' && may_be_empty) return NULL;
    for (const char *item = text;; item++) {
        size_t length = cut ? strcspn(item, ",") : strlen(item);
        value_add(out_items, item, length);
        BEL_TRY(bel_option_check(option, place, out_items->items[out_items->count - 1]));
        item += length;
        if (*item == '\0') return NULL;
    }
}

// Moves checked items into row `row`, replacing a weaker source; a list from the same source grows
// when `append` is set.
static void options_give(bel_options *options, size_t row, bel_option_value *items,
                         bel_option_source source, const char *origin, bool append)
{
    bel_option_value *value = &options->values[row];
    if (source < value->source) return;
    bool grow = append && source == value->source && bel_option_is_list(&options->table[row]);
    if (!grow) value_clear(value);
    for (size_t i = 0; i < items->count; i++)
        value_add(value, items->items[i], strlen(items->items[i]));
    value_join(value);
    value_set_origin(value, source, origin);
}

// Checks the text before it replaces or extends the old value; see `give` for the precedence.
static bel_status *give_text(bel_options *options, size_t row, const char *place, const char *text,
                             bel_option_source source, const char *origin)
{
    bel_option_value items = {0};
    bel_status *status = options_split(&options->table[row], place, text, &items);
    if (status == NULL) options_give(options, row, &items, source, origin, true);
    value_deinit(&items);
    return status;
}

bel_options *bel_options_create(const bel_option *table, size_t count, uint64_t use)
{
    bel_options *options = bel_xcalloc(1, sizeof *options);
    options->table = table;
    options->count = count;
    options->use = use;
    options->values = bel_xcalloc(count, sizeof *options->values);
    for (size_t i = 0; i < count; i++) {
        bel_status *status = give_text(options, i, table[i].name, table[i].otherwise,
                                       BEL_OPTION_FROM_TABLE, "default");
        BEL_CHECK(status == NULL); // the row refuses its default
    }
    return options;
}

bel_options *bel_options_create_like(const bel_options *options)
{
    bel_options *like = bel_options_create(options->table, options->count, options->use);
    like->words = options->words;
    like->common = options->common;
    like->elsewhere = options->elsewhere;
    return like;
}

static bool is_name(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return text[0] >= 'a' && text[0] <= 'z' && text[length] == '\0' &&
           length <= BEL_OPTION_MAX_NAME;
}

bel_status *bel_options_add(bel_options *options, const bel_option *row)
{
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->table[i].name, row->name) != 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a flag with this name already exists");
    }
    if (!is_name(row->name)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected a name of small letters, digits and underscores");
    }
    bool is_number = row->type == BEL_OPTION_INT || row->type == BEL_OPTION_DOUBLE;
    if (is_number && row->otherwise[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a number needs a default");
    }
    size_t count = options->count + 1;
    bel_option *table = bel_xcalloc(count, sizeof *table);
    memcpy(table, options->table, options->count * sizeof *table);
    table[options->count] = *row;
    options->values = bel_xrealloc(options->values, count * sizeof *options->values);
    options->values[options->count] = (bel_option_value){0};
    bel_free(options->own_table);
    options->table = options->own_table = table;
    options->count = count;
    return give_text(options, count - 1, "its default", row->otherwise, BEL_OPTION_FROM_TABLE,
                     "default");
}

void bel_options_destroy(bel_options *options)
{
    if (options == NULL) return;
    for (size_t i = 0; i < options->count; i++)
        value_deinit(&options->values[i]);
    for (size_t i = 0; i < options->argument_count; i++)
        bel_free(options->arguments[i]);
    bel_free(options->arguments);
    bel_free(options->values);
    bel_free(options->own_table);
    bel_free(options);
}

// --- The command line ---------------------------------------------------------------------------

// Names the flag without its value, and the nearest existing one.
static bel_status *unknown_flag(const bel_options *options, const char *argument)
{
    size_t dashes = strspn(argument, "-");
    size_t length = strcspn(argument + dashes, "=");
    char *hint = bel_option_suggestion(options, argument + dashes, length, "--");
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "unknown flag %.*s%s",
                                 (int)(dashes + length), argument, hint);
    bel_free(hint);
    return status;
}

static bel_status *give_word(bel_options *options, int row, const char *place, const char *word)
{
    return give_text(options, (size_t)row, place, word, BEL_OPTION_FROM_COMMAND_LINE,
                     "command line");
}

// "--x" and "--no_x" are true and false; "--x=true" is read as written.
static bel_status *parse_switch(bel_options *options, size_t row, const char *place, bool negated,
                                const char *value)
{
    if (negated && value != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s takes no value; leave \"=%s\" out", place, value);
    }
    const char *text = value != NULL ? value : negated ? "false" : "true";
    return give_word(options, (int)row, place, text);
}

static bel_status *missing_value(const bel_option *option, const char *place)
{
    bel_str expected = {0};
    bel_option_describe(option, &expected);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected %s, got nothing", place, expected.text);
    bel_str_deinit(&expected);
    return status;
}

// A dash is no flag: it is a name for standard input.
static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

// Parses the flag at *index, and moves *index to its last value that is a separate word.
static bel_status *parse_flag(bel_options *options, int count, char *const *arguments, int *index)
{
    const char *argument = arguments[*index], *name = "";
    if (strncmp(argument, "--", 2) == 0) name = argument + 2;
    if (argument[1] != '-' && argument[2] == '\0') name = argument + 1; // -h
    size_t length = strcspn(name, "=");
    bool negated;
    int row = bel_option_typed_row(options, name, length, &negated);
    if (row < 0) return unknown_flag(options, argument);
    const bel_option *option = &options->table[row];
    if ((option->uses & options->use) == 0) {
        if (bel_option_of_word(options, option->name) != NULL)
            return unknown_flag(options, argument); // this command has another name for it
        return BEL_ERR(
            BEL_INVALID_ARGUMENT, "flag --%s belongs to another command; %s", option->name,
            options->elsewhere != NULL ? options->elsewhere : "--help lists those of this one");
    }
    char place[BEL_OPTION_MAX_NAME + 6];
    bel_snprintf(place, sizeof place, "--%s%s", negated ? "no_" : "", option->name);
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    options->values[row].arguments_before = options->argument_count;
    if (option->type == BEL_OPTION_BOOL) {
        return parse_switch(options, (size_t)row, place, negated, value);
    }
    if (value == NULL) {
        bool is_next = *index + 1 < count && strncmp(arguments[*index + 1], "--", 2) != 0;
        if (!is_next) return missing_value(option, place);
        value = arguments[++*index];
    }
    bool more = option->type == BEL_OPTION_FILES && value == arguments[*index];
    BEL_TRY(give_word(options, row, place, value));
    while (more && *index + 1 < count && !is_flag(arguments[*index + 1]))
        BEL_TRY(give_word(options, row, place, arguments[++*index]));
    return NULL;
}

static void add_argument(bel_options *options, const char *argument)
{
    options->arguments = bel_xgrow(options->arguments, &options->argument_capacity,
                                   options->argument_count + 1, sizeof *options->arguments);
    options->arguments[options->argument_count++] = bel_xstrdup(argument);
}

bel_status *bel_options_parse(bel_options *options, int argument_count, char *const *arguments)
{
    bel_status *first = NULL;
    bool only_arguments = false; // after "--"
    for (int i = 0; i < argument_count; i++) {
        const char *argument = arguments[i];
        if (only_arguments || !is_flag(argument)) {
            add_argument(options, argument);
            if (!only_arguments) options->own_argument_count++;
        } else if (strcmp(argument, "--") == 0) {
            only_arguments = true;
        } else {
            bel_status *status = parse_flag(options, argument_count, arguments, &i);
            if (first == NULL) {
                first = status;
            } else {
                bel_status_ignore(status); // probably caused by the first
            }
        }
    }
    return first;
}

// --- YAML ---------------------------------------------------------------------------------------

static bel_status *wrong_kind(const bel_yaml *yaml, const bel_yaml_node *node,
                              const bel_option *option)
{
    static const char *const kinds[] = {"a value", "a list", "a mapping"};
    bel_str expected = {0};
    bel_option_describe(option, &expected);
    bel_status *status = bel_yaml_error(yaml, node, "%s: expected %s, got %s", option->name,
                                        expected.text, kinds[node->kind]);
    bel_str_deinit(&expected);
    return status;
}

// `key` NULL: an item of a list; else an item of a mapping, as "key=value".
static bel_status *add_yaml_item(const bel_yaml *yaml, const bel_option *option, const char *place,
                                 const bel_yaml_node *key, const bel_yaml_node *node,
                                 bel_option_value *items)
{
    if (node->kind != BEL_YAML_SCALAR) return wrong_kind(yaml, node, option);
    char *text = key == NULL ? bel_xstrdup(node->text) : bel_strf("%s=%s", key->text, node->text);
    bel_status *status = bel_option_check(option, place, text);
    if (status == NULL) value_add(items, text, strlen(text));
    bel_free(text);
    return status;
}

// Reads a list or mapping for options with several values, else one text as on the command line. A
// negated name ("no_x: true") inverts the value.
static bel_status *read_yaml_value(const bel_yaml *yaml, const bel_option *option, bool negated,
                                   const char *place, const bel_yaml_node *node,
                                   bel_option_value *items)
{
    bool is_sequence = node->kind == BEL_YAML_SEQUENCE && bel_option_is_list(option);
    bool is_mapping = node->kind == BEL_YAML_MAPPING && option->type == BEL_OPTION_PAIRS;
    if (is_sequence || is_mapping) {
        for (size_t i = 0; i < node->count; i++) {
            const bel_yaml_node *key = is_mapping ? node->keys[i] : NULL;
            BEL_TRY(add_yaml_item(yaml, option, place, key, node->values[i], items));
        }
        return NULL;
    }
    if (node->kind != BEL_YAML_SCALAR) return wrong_kind(yaml, node, option);
    BEL_TRY(options_split(option, place, node->text, items));
    if (negated) {
        bool was = strcmp(items->items[0], "true") == 0;
        value_clear(items);
        value_add(items, was ? "false" : "true", was ? 5 : 4);
    }
    return NULL;
}

// Keys are names of flags. The entire mapping is one place, so a repeated key is an error.
static bel_status *read_yaml_entry(bel_options *options, const bel_yaml *yaml,
                                   const bel_yaml_node *key, const bel_yaml_node *node, bool *seen)
{
    bool negated;
    int row = bel_option_typed_row(options, key->text, strlen(key->text), &negated);
    if (row < 0) {
        char *hint = bel_option_suggestion(options, key->text, strlen(key->text), "");
        bel_status *status = bel_yaml_error(yaml, key, "unknown key \"%s\"%s", key->text, hint);
        bel_free(hint);
        return status;
    }
    const bel_option *option = &options->table[row];
    if ((option->uses & BEL_OPTION_COMMAND_LINE_ONLY) != 0) {
        return bel_yaml_error(yaml, key, "%s belongs on the command line", option->name);
    }
    if (seen[row]) return bel_yaml_error(yaml, key, "%s is given twice", option->name);
    seen[row] = true;
    if (bel_yaml_is_null(node)) return NULL; // "name:" leaves the default
    char *origin = bel_strf("%s:%d:%d", bel_yaml_source(yaml), node->line, node->column);
    char *place = bel_strf("%s: %s", origin, option->name);
    bel_option_value items = {0};
    bel_status *status = read_yaml_value(yaml, option, negated, place, node, &items);
    if (status == NULL) {
        options_give(options, (size_t)row, &items, BEL_OPTION_FROM_FILE, origin, false);
    }
    value_deinit(&items);
    bel_free(place);
    bel_free(origin);
    return status;
}

bel_status *bel_options_read_yaml(bel_options *options, const char *path)
{
    bel_yaml *yaml;
    BEL_TRY(bel_yaml_read(path, &yaml));
    const bel_yaml_node *root = bel_yaml_root(yaml);
    bel_status *status = NULL;
    if (root != NULL && root->kind != BEL_YAML_MAPPING && !bel_yaml_is_null(root)) {
        status = bel_yaml_error(yaml, root, "expected lines like \"train_steps: 1000\"");
    }
    bool *seen = bel_xcalloc(options->count, sizeof *seen);
    size_t count = root != NULL && root->kind == BEL_YAML_MAPPING ? root->count : 0;
    for (size_t i = 0; status == NULL && i < count; i++)
        status = read_yaml_entry(options, yaml, root->keys[i], root->values[i], seen);
    bel_free(seen);
    bel_yaml_destroy(yaml);
    return status;
}

// --- Reading values -----------------------------------------------------------------------------

static const bel_option_value *find_value(const bel_options *options, const char *name)
{
    int row = bel_option_row(options, name);
    BEL_CHECK(row >= 0);
    return &options->values[row];
}

static const bel_option_value *find_typed_value(const bel_options *options, const char *name,
                                                bel_option_type type)
{
    int row = bel_option_row(options, name);
    BEL_CHECK(row >= 0 && options->table[row].type == type);
    return &options->values[row];
}

const char *bel_options_string(const bel_options *options, const char *name)
{
    const bel_option_value *value = find_typed_value(options, name, BEL_OPTION_STRING);
    if (value->count == 0) return NULL;
    return value->meant != NULL ? value->meant : value->items[0];
}

void bel_options_mean(bel_options *options, const char *name, const char *text)
{
    int row = bel_option_row(options, name);
    BEL_CHECK(row >= 0 && options->table[row].type == BEL_OPTION_STRING);
    bel_free(options->values[row].meant);
    options->values[row].meant = bel_xstrdup(text);
}

int64_t bel_options_int(const bel_options *options, const char *name)
{
    const bel_option_value *value = find_typed_value(options, name, BEL_OPTION_INT);
    int64_t number = 0;
    BEL_CHECK(bel_parse_i64(value->items[0], strlen(value->items[0]), &number));
    return number;
}

double bel_options_double(const bel_options *options, const char *name)
{
    const bel_option_value *value = find_typed_value(options, name, BEL_OPTION_DOUBLE);
    double number = 0;
    BEL_CHECK(bel_parse_f64(value->items[0], strlen(value->items[0]), &number));
    return number;
}

bool bel_options_bool(const bel_options *options, const char *name)
{
    return strcmp(find_typed_value(options, name, BEL_OPTION_BOOL)->items[0], "true") == 0;
}

const char *const *bel_options_list(const bel_options *options, const char *name, size_t *out_count)
{
    const bel_option_value *value = find_value(options, name);
    *out_count = value->count;
    return (const char *const *)value->items;
}

int64_t bel_options_list_int(const bel_options *options, const char *name, size_t index)
{
    const bel_option_value *value = find_typed_value(options, name, BEL_OPTION_INTS);
    int64_t number = 0;
    BEL_CHECK(index < value->count);
    BEL_CHECK(bel_parse_i64(value->items[index], strlen(value->items[index]), &number));
    return number;
}

const char *bel_options_text(const bel_options *options, const char *name)
{
    return find_value(options, name)->joined;
}

const char *bel_options_origin(const bel_options *options, const char *name)
{
    return find_value(options, name)->origin;
}

bool bel_options_has(const bel_options *options, const char *name)
{
    int row = bel_option_row(options, name);
    return row >= 0 && (options->table[row].uses & options->use) != 0;
}

bool bel_options_is_given(const bel_options *options, const char *name)
{
    return find_value(options, name)->source != BEL_OPTION_FROM_TABLE;
}

const char *const *bel_options_arguments(const bel_options *options, size_t *out_count)
{
    *out_count = options->argument_count;
    return (const char *const *)options->arguments;
}

size_t bel_options_own_argument_count(const bel_options *options)
{
    return options->own_argument_count;
}

size_t bel_options_arguments_before(const bel_options *options, const char *name)
{
    return find_value(options, name)->arguments_before;
}
