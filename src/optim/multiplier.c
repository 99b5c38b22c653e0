// Factors of learning rate and weight decay by name. Patterns are fnmatch's, so "*" also matches
// "/": "*/bias" is every bias at any depth. A backslash is a plain character. The last matching
// pattern wins, so general ones come first. A list ends at the first empty pattern. A pattern after
// that end is refused, as is one that matches no variable: a mistyped name must not silently train
// with the factor 1.
#include "optim/multiplier.h"

#include <fnmatch.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

static bool multiplier_matches(const bel_multiplier *multiplier, const char *name)
{
    return fnmatch(multiplier->pattern, name, FNM_NOESCAPE) == 0;
}

double bel_multiplier_get(const bel_multiplier list[BEL_MAX_MULTIPLIERS], const char *name)
{
    double factor = 1;
    for (int i = 0; i < BEL_MAX_MULTIPLIERS && list[i].pattern[0] != '\0'; i++)
        if (multiplier_matches(&list[i], name)) factor = list[i].factor;
    return factor;
}

static bel_status *check_list(const bel_multiplier *list, const char *what)
{
    bool ended = false;
    for (int i = 0; i < BEL_MAX_MULTIPLIERS; i++) {
        const bel_multiplier *m = &list[i];
        if (memchr(m->pattern, '\0', sizeof m->pattern) == NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "optimizer: %s: pattern %d must be shorter than %d bytes", what, i,
                           BEL_PATTERN_BYTES);
        }
        if (ended && m->pattern[0] != '\0') {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "optimizer: %s: \"%s\" comes after an empty pattern, which ends the "
                           "list",
                           what, m->pattern);
        }
        if (strpbrk(m->pattern, "=,") != NULL) { // lists are sent as texts
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "optimizer: %s: pattern \"%s\" must hold neither = nor a comma; hint: ? "
                           "stands for any character",
                           what, m->pattern);
        }
        ended = m->pattern[0] == '\0';
        if (ended || (m->factor >= 0 && m->factor <= 1e6)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: %s of \"%s\" must be from 0 to 1000000, got %g", what,
                       m->pattern, m->factor);
    }
    return NULL;
}

bel_status *bel_multipliers_check(const bel_optimizer *optimizer)
{
    BEL_TRY(check_list(optimizer->lr_mults, "lr_mult"));
    BEL_TRY(check_list(optimizer->decay_mults, "decay_mult"));
    for (int i = 0; i < BEL_MAX_MULTIPLIERS && optimizer->kind == BEL_OPTIMIZER_FTRL; i++) {
        const bel_multiplier *m = &optimizer->lr_mults[i];
        if (m->pattern[0] == '\0' || m->factor > 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: lr_mult of \"%s\" must be above 0 with ftrl, which divides by "
                       "the learning rate, got 0",
                       m->pattern);
    }
    return NULL;
}

static bel_status *matches_none(const char *what, const char *pattern, const char *const *names,
                                size_t count)
{
    enum { SHOWN = 6 };
    bel_str hint = {0};
    int nearest = bel_nearest_name(pattern, names, count);
    if (nearest >= 0) bel_str_printf(&hint, "did you mean \"%s\"?", names[nearest]);
    for (size_t i = 0; nearest < 0 && i < count && i <= SHOWN; i++) {
        if (i == SHOWN) {
            bel_str_puts(&hint, ", ...");
        } else {
            bel_str_printf(&hint, "%s%s", i == 0 ? "there are " : ", ", names[i]);
        }
    }
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: %s: \"%s\" matches no trainable variable%s%s",
                what, pattern, count > 0 ? "; " : "", count > 0 ? hint.text : "");
    bel_str_deinit(&hint);
    return status;
}

static const char *find_idle(const bel_multiplier *list, const char *const *names, size_t count)
{
    for (int i = 0; i < BEL_MAX_MULTIPLIERS && list[i].pattern[0] != '\0'; i++) {
        bool found = false;
        for (size_t n = 0; n < count && !found; n++)
            found = multiplier_matches(&list[i], names[n]);
        if (!found) return list[i].pattern;
    }
    return NULL;
}

const char *bel_multipliers_find_idle(const bel_optimizer *optimizer, const char *const *names,
                                      size_t count, const char **out_list)
{
    *out_list = "lr_mult";
    const char *idle = find_idle(optimizer->lr_mults, names, count);
    if (idle != NULL) return idle;
    *out_list = "decay_mult";
    return find_idle(optimizer->decay_mults, names, count);
}

bel_status *bel_multipliers_check_names(const bel_optimizer *optimizer, const char *const *names,
                                        size_t count)
{
    const char *list, *idle = bel_multipliers_find_idle(optimizer, names, count, &list);
    return idle != NULL ? matches_none(list, idle, names, count) : NULL;
}

bel_status *bel_multipliers_parse(const char *text, bel_multiplier out_list[BEL_MAX_MULTIPLIERS])
{
    bel_multiplier list[BEL_MAX_MULTIPLIERS] = {0};
    const char *rest = text;
    for (int count = 0; *rest != '\0'; count++) {
        size_t length = strcspn(rest, ","), pattern = strcspn(rest, "=,");
        if (count == BEL_MAX_MULTIPLIERS) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "at most %d patterns, got \"%s\"",
                           BEL_MAX_MULTIPLIERS, text);
        }
        bel_multiplier *m = &list[count];
        if (pattern >= sizeof m->pattern) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "a pattern must be shorter than %d bytes, got \"%.*s\"",
                           BEL_PATTERN_BYTES, (int)pattern, rest);
        }
        bool complete = pattern > 0 && pattern < length;
        if (!complete || !bel_parse_f64(rest + pattern + 1, length - pattern - 1, &m->factor)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "expected PATTERN=FACTOR, got \"%.*s\"",
                           (int)length, rest);
        }
        memcpy(m->pattern, rest, pattern);
        rest += length + (rest[length] == ',');
    }
    memcpy(out_list, list, sizeof list);
    return NULL;
}

const char *bel_multipliers_text(const bel_multiplier list[BEL_MAX_MULTIPLIERS], int digits,
                                 char *text)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < BEL_MAX_MULTIPLIERS && list[i].pattern[0] != '\0'; i++) {
        length += (size_t)bel_snprintf(text + length, BEL_MULTIPLIERS_TEXT - length, "%s%s=%.*g",
                                       i > 0 ? "," : "", list[i].pattern, digits, list[i].factor);
    }
    return text;
}
