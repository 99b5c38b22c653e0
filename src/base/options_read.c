// Check for given flags without an effect. A row's `when` has one or several conditions with " or "
// between them; the flag is read if one of them holds. Conditions on options of other commands are
// ignored, and those on an option of unknown value hold.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/options_inner.h"
#include "base/str.h"

#define OR " or "

// Condition: `name` has one of `values`, has another value, is not at its default, or is.
typedef enum kind { ONE_OF, NONE_OF, GIVEN, NOT_GIVEN } kind;

typedef struct condition {
    kind kind;
    char *name, *values; // values: "a|b"; NULL for GIVEN and NOT_GIVEN
} condition;

// Parses a condition and moves *at to the next one, or to the end of the text.
static condition next_condition(const char **at)
{
    const char *start = *at, *end = strstr(start, OR);
    size_t length = end != NULL ? (size_t)(end - start) : strlen(start);
    *at = end != NULL ? end + strlen(OR) : start + length;
    if (start[0] == '!')
        return (condition){.kind = NOT_GIVEN, .name = bel_xstrndup(start + 1, length - 1)};
    char *name = bel_xstrndup(start, length), *equals = strchr(name, '=');
    if (equals == NULL) return (condition){.kind = GIVEN, .name = name};
    bool negated = equals > name && equals[-1] == '!';
    condition found = {.kind = negated ? NONE_OF : ONE_OF, .values = bel_xstrdup(equals + 1)};
    equals[negated ? -1 : 0] = '\0';
    found.name = name;
    return found;
}

static void condition_deinit(condition *c)
{
    bel_free(c->name);
    bel_free(c->values);
}

// Returns the caller's value of the option; NULL: unknown.
static const char *meaning_of(const bel_options *options, const char *name,
                              const bel_option_meaning *meanings)
{
    for (; meanings->name != NULL; meanings++)
        if (strcmp(meanings->name, name) == 0) return meanings->text;
    return bel_options_text(options, name);
}

static bool is_met(const bel_options *options, const condition *c, const char *text)
{
    if (c->values != NULL) return (bel_list_find(c->values, "|", text) >= 0) == (c->kind == ONE_OF);
    int row = bel_option_row(options, c->name);
    bool is_default = strcmp(text, options->table[row].otherwise) == 0;
    return is_default == (c->kind == NOT_GIVEN);
}

// "--mode bounded or --port".
static void append_needs(bel_str *out, const condition *c)
{
    bel_str_printf(out, "%s--%s", out->length > 0 ? OR : "", c->name);
    for (const char *rest = c->values; rest != NULL && *rest != '\0';) {
        size_t length = strcspn(rest, "|");
        bel_str_printf(out, "%s%.*s", rest == c->values ? " " : OR, (int)length, rest);
        rest += length + (rest[length] == '|');
    }
}

// `no`: "no_" if the flag is negated. `only` is the condition if there is exactly one, and `text`
// the value of its option.
static bel_status *not_read(const bel_option *option, const char *no, const char *needs,
                            const condition *only, const char *text)
{
    if (only != NULL && only->kind == NOT_GIVEN) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s%s has no effect with --%s: give one of the two",
                       no, option->name, only->name);
    }
    if (only != NULL && only->kind == NONE_OF) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s%s has no effect with --%s %s", no, option->name,
                       only->name, text);
    }
    bool chosen = only != NULL && only->kind == ONE_OF;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s%s has no effect without %s%s%s", no, option->name,
                   needs, chosen ? ", and that is " : "", chosen ? text : "");
}

static bel_status *check_row(const bel_options *options, const bel_option *option,
                             const bel_option_meaning *meanings)
{
    bel_str needs = {0};
    int count = 0; // relevant conditions
    bool met = false;
    condition last = {0};
    const char *value = NULL;
    for (const char *at = option->when; *at != '\0' && !met;) {
        condition c = next_condition(&at);
        if (!bel_options_has(options, c.name)) {
            condition_deinit(&c);
            continue;
        }
        condition_deinit(&last);
        last = c;
        count++;
        value = meaning_of(options, c.name, meanings);
        met = value == NULL || is_met(options, &c, value);
        append_needs(&needs, &c);
    }
    bool negated = option->type == BEL_OPTION_BOOL && !bel_options_bool(options, option->name);
    bel_status *status = NULL;
    if (!met && count > 0)
        status =
            not_read(option, negated ? "no_" : "", needs.text, count == 1 ? &last : NULL, value);
    condition_deinit(&last);
    bel_str_deinit(&needs);
    return status;
}

bel_status *bel_options_check_read(const bel_options *options, const bel_option_meaning *meanings)
{
    for (size_t i = 0; i < options->count; i++) {
        const bel_option *option = &options->table[i];
        bool given = options->values[i].source != BEL_OPTION_FROM_TABLE;
        if (!given || option->when == NULL || (option->uses & options->use) == 0) continue;
        BEL_TRY(check_row(options, option, meanings));
    }
    return NULL;
}
