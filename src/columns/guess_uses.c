// Uses of columns that options demand, which precede all rules. A name is first that of one column,
// even if it could be a pattern. A column in two lists is an error, as either may be meant. A name
// with a comma in it is joined again, as lists are cut there. The label comes last: without a name
// it is a column that no other option uses.
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "columns/column_name.h"
#include "columns/guess.h"

static bel_status *no_such(const bel_guess_column *columns, int count, const char *source,
                           const char *name)
{
    enum { SHOWN = 8 };
    const char **names = bel_xcalloc((size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = columns[i].name;
    int nearest = bel_nearest_name(name, names, (size_t)count);
    const char *hint = nearest < 0 ? NULL : names[nearest];
    bel_free(names);
    bel_str text = {0};
    if (hint != NULL) bel_str_printf(&text, "; did you mean \"%s\"?", hint);
    for (int i = 0; i < count && i < SHOWN && hint == NULL; i++)
        bel_str_printf(&text, "%s\"%s\"", i > 0 ? ", " : "; expected one of ", columns[i].name);
    if (count > SHOWN && hint == NULL) bel_str_printf(&text, " and %d others", count - SHOWN);
    if (count == 1) bel_str_puts(&text, "; hint: --delimiter, as the file has only this column");
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no column \"%s\"%s", source, name,
                                 text.length > 0 ? text.text : "");
    bel_str_deinit(&text);
    return status;
}

// Looks for the name as it is before it is used as a pattern: it may contain a star.
static bel_status *set_use(const bel_guess_column *columns, int count, const char *pattern,
                           bel_guess_use use, const char *source, bel_guess_use *uses)
{
    bool exact = false, found = false;
    for (int i = 0; i < count; i++)
        exact = exact || strcmp(columns[i].name, pattern) == 0;
    for (int i = 0; i < count; i++) {
        bool fits = exact ? strcmp(columns[i].name, pattern) == 0
                          : fnmatch(pattern, columns[i].name, 0) == 0;
        if (!fits) continue;
        found = true;
        if (uses[i] != BEL_GUESS_FREE && uses[i] != use) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: column \"%s\" is asked for twice", source,
                           columns[i].name);
        }
        uses[i] = use;
    }
    return found ? NULL : no_such(columns, count, source, pattern);
}

int bel_guess_join_name(const char *const *items, int count,
                        bool (*is_name)(const void *user, const char *name), const void *user,
                        char **out_name)
{
    bel_str name = {0};
    bel_str_puts(&name, items[0]);
    for (int i = 1; i < count; i++) {
        bel_str_printf(&name, ",%s", items[i]);
        *out_name = name.text;
        if (is_name(user, name.text)) return i + 1;
    }
    bel_str_deinit(&name);
    *out_name = NULL;
    return 1;
}

typedef struct known_names {
    const bel_guess_column *columns;
    int count;
} known_names;

static bool is_name(const void *user, const char *name)
{
    const known_names *known = user;
    for (int i = 0; i < known->count; i++)
        if (strcmp(known->columns[i].name, name) == 0) return true;
    return false;
}

static bel_status *set_uses(const bel_guess_column *columns, int count, const char *const *patterns,
                            int pattern_count, bel_guess_use use, const char *source,
                            bel_guess_use *uses)
{
    const known_names known = {columns, count};
    for (int i = 0; i < pattern_count;) {
        char *name;
        int items = bel_guess_join_name(patterns + i, pattern_count - i, is_name, &known, &name);
        bel_status *status =
            set_use(columns, count, name != NULL ? name : patterns[i], use, source, uses);
        bel_free(name);
        if (status != NULL) return status;
        i += items;
    }
    return NULL;
}

// Finds a column with a label's name, else the last column without a use. One whose name says that
// it numbers the rows comes after the others, and beside a text it is no label.
static int likely_label(const bel_guess_column *columns, int count, const bel_guess_use *uses,
                        const char *text)
{
    static const char *const names[] = {"label", "target", "class", "y"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (int i = 0; i < count; i++)
            if (uses[i] == BEL_GUESS_FREE && strcasecmp(columns[i].name, names[n]) == 0) return i;
    int numbering = -1;
    for (int i = count - 1; i >= 0; i--) {
        if (uses[i] != BEL_GUESS_FREE) continue;
        if (!bel_column_name_may_number(columns[i].name)) return i;
        if (numbering < 0) numbering = i;
    }
    return text == NULL ? numbering : -1;
}

bel_status *bel_guess_uses(const bel_guess_column *columns, int count,
                           const bel_columns_options *options, const char *source,
                           bel_guess_use *out_uses)
{
    memset(out_uses, 0, (size_t)count * sizeof *out_uses);
    const bel_columns_options *o = options;
    if (o->label != NULL)
        BEL_TRY(set_use(columns, count, o->label, BEL_GUESS_LABEL, source, out_uses));
    BEL_TRY(set_uses(columns, count, o->labels, o->label_count, BEL_GUESS_LABEL, source, out_uses));
    if (o->weight != NULL)
        BEL_TRY(set_use(columns, count, o->weight, BEL_GUESS_WEIGHT, source, out_uses));
    BEL_TRY(set_uses(columns, count, o->ignored, o->ignored_count, BEL_GUESS_IGNORED, source,
                     out_uses));
    BEL_TRY(set_uses(columns, count, o->categories, o->category_count, BEL_GUESS_CATEGORY, source,
                     out_uses));
    BEL_TRY(
        set_uses(columns, count, o->numbers, o->number_count, BEL_GUESS_NUMBER, source, out_uses));
    BEL_TRY(set_uses(columns, count, o->logs, o->log_count, BEL_GUESS_LOG, source, out_uses));
    BEL_TRY(set_uses(columns, count, o->keys, o->key_count, BEL_GUESS_KEY, source, out_uses));
    if (o->text != NULL) {
        if (o->text_most < 1 || o->text_most > BEL_COLUMN_MOST_TOKENS)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "text_most: expected 1 to %d tokens, got %lld",
                           BEL_COLUMN_MOST_TOKENS, (long long)o->text_most);
        BEL_TRY(set_use(columns, count, o->text, BEL_GUESS_TEXT, source, out_uses));
    }
    if (o->label != NULL || o->label_count > 0 || o->no_label) return NULL;
    int label = likely_label(columns, count, out_uses, o->text);
    if (label >= 0) out_uses[label] = BEL_GUESS_LABEL;
    return NULL;
}
