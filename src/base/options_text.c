// Texts of options: accepted values, the help text, the dump. A row accepts a choice of words,
// `a|b` (`*.c`: any word with this end), or an interval in mathematical notation. The same text is
// checked against, shown in the help and named in errors. A dump is a valid settings file: defaults
// are comments, since an explicit default would exclude other flags, and texts are JSON strings,
// which YAML reads alike. A file's name cannot break a line.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/options_inner.h"
#include "base/str.h"

enum { FLAG_COLUMN = 30, LINE_WIDTH = 100 };

// --- Accepted values ----------------------------------------------------------------------------

void bel_option_describe(const bel_option *option, bel_str *out)
{
    static const char *const nouns[] = {
        [BEL_OPTION_STRING] = "a text",   [BEL_OPTION_INT] = "an integer",
        [BEL_OPTION_DOUBLE] = "a number", [BEL_OPTION_BOOL] = "true or false",
        [BEL_OPTION_STRINGS] = "a text",  [BEL_OPTION_FILES] = "names of files",
        [BEL_OPTION_INTS] = "integers",   [BEL_OPTION_PAIRS] = "NAME=VALUE",
    };
    if (option->type == BEL_OPTION_STRING && option->accepts != NULL) {
        bel_str_puts(out, "one of ");
        for (const char *c = option->accepts; *c != '\0'; c++)
            *c == '|' ? bel_str_puts(out, ", ") : bel_str_append(out, c, 1);
        return;
    }
    bool is_named = option->type == BEL_OPTION_PAIRS && option->unit != NULL;
    bel_str_puts(out, is_named ? option->unit : nouns[option->type]);
    if (option->accepts != NULL) bel_str_printf(out, " in %s", option->accepts);
}

// Returns true for one of the words, or a text with the end of a choice "*.onnx".
static bool is_choice(const char *choices, const char *text)
{
    if (bel_list_find(choices, "|", text) >= 0) return true;
    const char *star = strchr(choices, '*');
    if (star == NULL) return false;
    size_t length = strcspn(++star, "|"), has = strlen(text);
    return has > length && strncmp(text + has - length, star, length) == 0;
}

// Checks by the type of the option, and by its choices or interval.
static bool is_accepted(const bel_option *option, const char *text)
{
    size_t length = strlen(text);
    double number = 0;
    int64_t whole;
    switch (option->type) {
    case BEL_OPTION_STRING: return option->accepts == NULL || is_choice(option->accepts, text);
    case BEL_OPTION_STRINGS:
    case BEL_OPTION_FILES: return length > 0;
    case BEL_OPTION_BOOL: return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    case BEL_OPTION_PAIRS: return text[0] != '=' && strchr(text, '=') != NULL;
    case BEL_OPTION_INT:
    case BEL_OPTION_INTS:
        if (!bel_parse_i64(text, length, &whole)) return false;
        number = (double)whole;
        break;
    case BEL_OPTION_DOUBLE:
        if (!bel_parse_f64(text, length, &number) || !isfinite(number)) return false;
        break;
    }
    return option->accepts == NULL || bel_in_interval(option->accepts, number);
}

bel_status *bel_option_check(const bel_option *option, const char *place, const char *text)
{
    if (is_accepted(option, text)) return NULL;
    bel_str expected = {0};
    bel_option_describe(option, &expected);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected %s, got \"%s\"", place, expected.text, text);
    bel_str_deinit(&expected);
    return status;
}

// --- Help ---------------------------------------------------------------------------------------

// Appends words of `text`, wrapped at spaces; later lines are indented to the first.
static void append_wrapped(bel_str *out, const char *text)
{
    size_t column = FLAG_COLUMN;
    for (const char *word = text; *word != '\0';) {
        size_t length = strcspn(word, " ");
        if (column + length + 1 > LINE_WIDTH) {
            bel_str_printf(out, "\n%*s", FLAG_COLUMN, "");
            column = FLAG_COLUMN;
        } else if (word != text) {
            bel_str_puts(out, " ");
            column++;
        }
        bel_str_append(out, word, length);
        column += length;
        word += length + (word[length] == ' ');
    }
    bel_str_puts(out, "\n");
}

// "(default: 128; examples; [1, 1024])"
static void append_remarks(const bel_option *option, bel_str *out)
{
    bool is_text = bel_option_is_text(option);
    bool none = option->otherwise[0] == '\0';
    bel_str_printf(out, " (default: %s", none ? "none" : option->otherwise);
    if (!is_text && option->unit != NULL) bel_str_printf(out, "; %s", option->unit);
    if (!is_text && option->accepts != NULL) bel_str_printf(out, "; %s", option->accepts);
    bel_str_puts(out, ")");
}

// Appends choices from `column` on, wrapped after a `|`; later lines are indented to the first.
static void append_choices(bel_str *out, const char *choices, size_t column)
{
    for (size_t at = column; *choices != '\0';) {
        size_t length = strcspn(choices, "|");
        length += choices[length] == '|';
        if (at + length > LINE_WIDTH && at > column) {
            bel_str_printf(out, "\n%*s", (int)column, "");
            at = column;
        }
        bel_str_append(out, choices, length);
        at += length;
        choices += length;
    }
}

// Appends "  --optimizer sgd|adam", "  --[no_]report"; returns the number of columns.
static size_t append_flag(const bel_option *option, bel_str *out)
{
    static const char *const placeholders[] = {
        [BEL_OPTION_STRING] = "TEXT",  [BEL_OPTION_INT] = "N",
        [BEL_OPTION_DOUBLE] = "X",     [BEL_OPTION_BOOL] = NULL,
        [BEL_OPTION_STRINGS] = "TEXT", [BEL_OPTION_FILES] = "FILE",
        [BEL_OPTION_INTS] = "N",       [BEL_OPTION_PAIRS] = "NAME=VALUE",
    };
    bool is_text = bel_option_is_text(option);
    bool is_cut = option->type == BEL_OPTION_STRINGS || option->type == BEL_OPTION_INTS;
    bool is_on = option->type == BEL_OPTION_BOOL && strcmp(option->otherwise, "true") == 0;
    const char *placeholder = placeholders[option->type];
    if (is_text && option->unit != NULL) placeholder = option->unit;
    if (is_text && option->accepts != NULL) placeholder = option->accepts;
    size_t start = out->length;
    const char *dashes = option->name[1] == '\0' ? "-" : "--";
    bel_str_printf(out, "  %s%s%s", dashes, is_on ? "[no_]" : "", option->name);
    if (placeholder != NULL) {
        bel_str_puts(out, " ");
        append_choices(out, placeholder, out->length - start);
        if (is_cut) bel_str_puts(out, ",..");
        if (option->type == BEL_OPTION_FILES) bel_str_puts(out, " ..");
    }
    return out->length - start;
}

// Appends "momentum, lars: " if values of another option determine whether this one has an effect.
static void append_when(const bel_option *option, bel_str *out)
{
    if (option->when == NULL || strstr(option->when, " or ") != NULL) return;
    const char *rest = strchr(option->when, '=');
    if (rest != NULL && rest[-1] == '!') return;
    while (rest != NULL && *rest != '\0') {
        size_t length = strcspn(++rest, "|");
        bool last = rest[length] == '\0';
        bel_str_printf(out, "%.*s%s", (int)length, rest, last ? ": " : ", ");
        rest += length;
    }
}

// Appends the flag in the first column and its help, wrapped, in the second; a flag that is too
// long has a separate line.
static void append_row(const bel_option *option, bel_str *out)
{
    size_t column = append_flag(option, out);
    if (column + 2 > FLAG_COLUMN) {
        bel_str_puts(out, "\n");
        column = 0;
    }
    bel_str_printf(out, "%*s", (int)(FLAG_COLUMN - column), "");
    bel_str text = {0};
    append_when(option, &text);
    bel_str_puts(&text, option->help);
    append_remarks(option, &text);
    append_wrapped(out, text.text);
    bel_str_deinit(&text);
}

// Returns true if a text contains the word, which may be typed with dashes, as names of flags are.
static bool options_text_holds(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (; text != NULL && *text != '\0'; text++) {
        size_t same = 0;
        while (same < length &&
               (tolower((unsigned char)text[same]) == tolower((unsigned char)word[same]) ||
                (text[same] == '_' && word[same] == '-')))
            same++;
        if (same == length) return true;
    }
    return false;
}

static bool row_holds(const bel_options *options, const bel_option *option, const char *word)
{
    const char *texts[] = {option->name, option->help, option->when, option->accepts};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (options_text_holds(texts[i], word)) return true;
    for (const bel_option_word *w = options->words; w != NULL && w->word != NULL; w++)
        if (strcmp(w->name, option->name) == 0 && options_text_holds(w->word, word)) return true;
    return false;
}

static bool is_chosen(const bel_options *options, const bel_option *option,
                      const bel_options_choice *choice)
{
    if ((option->uses & options->use) == 0) return false;
    const char *const *common = choice->common ? options->common : NULL;
    bool found = common == NULL;
    for (; common != NULL && *common != NULL && !found; common++)
        found = strcmp(*common, option->name) == 0;
    for (size_t i = 0; i < choice->word_count && found; i++)
        found = row_holds(options, option, choice->words[i]);
    return found;
}

size_t bel_options_help(const bel_options *options, const bel_options_choice *choice, bel_str *out)
{
    const char *group = "";
    size_t count = 0;
    for (size_t i = 0; i < options->count; i++) {
        const bel_option *option = &options->table[i];
        if (!is_chosen(options, option, choice)) continue;
        if (strcmp(group, option->group) != 0) {
            group = option->group;
            bel_str_printf(out, "\n%s\n", group);
        }
        append_row(option, out);
        count++;
    }
    return count;
}

// --- Manual -------------------------------------------------------------------------------------

void bel_options_manual_text(const char *text, bel_str *out)
{
    bool begins = true; // at the start of a line, where a dot or an apostrophe would be a request
    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\'')) bel_str_puts(out, "\\&");
        if (*text == '\\') {
            bel_str_puts(out, "\\e");
        } else if (*text == '-') {
            bel_str_puts(out, "\\-"); // one that can be copied
        } else {
            bel_str_append(out, text, 1);
        }
        begins = *text == '\n';
    }
}

void bel_options_manual(const bel_options *options, bel_str *out)
{
    const char *group = "";
    for (size_t i = 0; i < options->count; i++) {
        const bel_option *option = &options->table[i];
        if ((option->uses & options->use) == 0) continue;
        if (strcmp(group, option->group) != 0) {
            group = option->group;
            bel_str_printf(out, ".SS %s\n", group);
        }
        bel_str flag = {0}, text = {0};
        append_flag(option, &flag);
        append_when(option, &text);
        bel_str_puts(&text, option->help);
        append_remarks(option, &text);
        bel_str_puts(out, ".TP\n\\fB");
        bel_options_manual_text(flag.text + strspn(flag.text, " "), out);
        bel_str_puts(out, "\\fR\n");
        bel_options_manual_text(text.text, out);
        bel_str_puts(out, "\n");
        bel_str_deinit(&flag);
        bel_str_deinit(&text);
    }
}

// --- Dump ---------------------------------------------------------------------------------------

// A JSON string is also a YAML one in double quotes.
static void append_item(const bel_option *option, const char *text, bel_str *out)
{
    if (bel_option_is_text(option) || option->type == BEL_OPTION_PAIRS) {
        bel_json_write_string(out, text);
    } else {
        bel_str_puts(out, text);
    }
}

void bel_options_dump(const bel_options *options, bel_str *out)
{
    for (size_t i = 0; i < options->count; i++) {
        const bel_option *option = &options->table[i];
        const bel_option_value *value = &options->values[i];
        bool here = (option->uses & options->use) != 0;
        if (!here || (option->uses & BEL_OPTION_COMMAND_LINE_ONLY) != 0) continue;
        bool list = bel_option_is_list(option);
        // Keeps a default a comment: as a setting it would exclude other flags.
        bool is_default = value->source == BEL_OPTION_FROM_TABLE;
        bel_str_printf(out, "%s%s: %s", is_default ? "# " : "", option->name, list ? "[" : "");
        for (size_t k = 0; k < value->count; k++) {
            if (k > 0) bel_str_puts(out, ", ");
            append_item(option, value->items[k], out);
        }
        if (!list && value->count == 0) bel_str_puts(out, "\"\"");
        bel_str_puts(out, list ? "] # " : " # ");
        for (const char *c = value->origin; *c != '\0'; c++) // one line, whatever the file's name
            bel_str_append(out, (unsigned char)*c < 0x20 ? "?" : c, 1);
        bel_str_puts(out, "\n");
    }
}
