// Resolution of option names, and suggestions for unknown ones: a synonym (bel_options_know_words)
// before the name with the most similar spelling. Dashes and underscores are equivalent, and among
// rows with one name this command's applies.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/options_inner.h"
#include "base/str.h"

int bel_option_row(const bel_options *options, const char *name)
{
    int found = -1;
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->table[i].name, name) != 0) continue;
        if ((options->table[i].uses & options->use) != 0) return (int)i;
        if (found < 0) found = (int)i;
    }
    return found;
}

int bel_option_typed_row(const bel_options *options, const char *typed, size_t length,
                         bool *out_negated)
{
    char name[BEL_OPTION_MAX_NAME + 1];
    *out_negated = false;
    if (length > BEL_OPTION_MAX_NAME) return -1;
    for (size_t i = 0; i < length; i++)
        name[i] = typed[i] == '-' ? '_' : typed[i];
    name[length] = '\0';
    int row = bel_option_row(options, name);
    if (row >= 0 || strncmp(name, "no_", 3) != 0) return row;
    row = bel_option_row(options, name + 3);
    *out_negated = row >= 0 && options->table[row].type == BEL_OPTION_BOOL;
    return *out_negated ? row : -1;
}

const bel_option *bel_options_at(const bel_options *options, size_t index)
{
    for (size_t i = 0; i < options->count; i++)
        if ((options->table[i].uses & options->use) != 0 && index-- == 0) return &options->table[i];
    return NULL;
}

const bel_option *bel_options_find(const bel_options *options, const char *name)
{
    bool negated;
    int row = bel_option_typed_row(options, name, strlen(name), &negated);
    bool ours = row >= 0 && (options->table[row].uses & options->use) != 0;
    return ours ? &options->table[row] : NULL;
}

void bel_options_say_elsewhere(bel_options *options, const char *hint)
{
    options->elsewhere = hint;
}

void bel_options_know_words(bel_options *options, const bel_option_word *words)
{
    bool negated;
    options->words = words;
    for (const bel_option_word *w = words; w->word != NULL; w++)
        BEL_CHECK(bel_option_typed_row(options, w->name, strlen(w->name), &negated) >= 0);
}

void bel_options_know_common(bel_options *options, const char *const *names)
{
    options->common = names;
    for (; *names != NULL; names++)
        BEL_CHECK(bel_option_row(options, *names) >= 0);
}

const char *bel_option_of_word(const bel_options *options, const char *typed)
{
    for (const bel_option_word *w = options->words; w != NULL && w->word != NULL; w++)
        if (strcmp(w->word, typed) == 0 && bel_options_find(options, w->name) != NULL)
            return w->name;
    return NULL;
}

char *bel_option_suggestion(const bel_options *options, const char *typed, size_t length,
                            const char *dashes)
{
    const char **names = bel_xcalloc(options->count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < options->count; i++)
        if ((options->table[i].uses & options->use) != 0) names[count++] = options->table[i].name;
    char *word = bel_xstrndup(typed, length);
    for (char *dash = word; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    const char *name = bel_option_of_word(options, word);
    int nearest = name == NULL ? bel_nearest_name(word, names, count) : -1;
    if (nearest >= 0) name = names[nearest];
    char *text = name == NULL ? bel_xstrdup("; --help lists all flags")
                              : bel_strf("; did you mean %s%s?", dashes, name);
    bel_free(word);
    bel_free(names);
    return text;
}
