// Numbers have four significant digits: users read and type them, and a search needs no more.
#include "studies/search_space.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/str.h"

typedef enum kind { CHOICE, EVEN, WHOLE, LOGARITHM } kind;

typedef struct dimension {
    char *name;
    kind kind;
    double low, high;
    char **choices;
    int choice_count;
} dimension;

struct bel_search_space {
    dimension *items;
    int count;
};

// --- Parsing ------------------------------------------------------------------------------------

// Parses "LOW:HIGH".
static bool read_range(const char *text, double *out_low, double *out_high)
{
    const char *colon = strchr(text, ':');
    return colon != NULL && bel_parse_f64(text, (size_t)(colon - text), out_low) &&
           bel_parse_f64(colon + 1, strlen(colon + 1), out_high) && isfinite(*out_low) &&
           isfinite(*out_high) && *out_low < *out_high;
}

static void read_choices(const char *text, dimension *d)
{
    size_t capacity = 0;
    d->kind = CHOICE;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "|");
        d->choices =
            bel_xgrow(d->choices, &capacity, (size_t)d->choice_count + 1, sizeof *d->choices);
        d->choices[d->choice_count++] = bel_xstrndup(at, length);
        at += length;
        if (*at == '\0') return;
    }
}

static bool read_values(const char *text, dimension *d)
{
    enum { MOST_WHOLE = 1 << 30 };
    static const struct {
        const char *prefix;
        kind kind;
    } kinds[] = {{"log:", LOGARITHM}, {"int:", WHOLE}, {"", EVEN}};
    if (strchr(text, '|') != NULL) {
        read_choices(text, d);
        return true;
    }
    size_t k = 0;
    while (strncmp(text, kinds[k].prefix, strlen(kinds[k].prefix)) != 0)
        k++;
    d->kind = kinds[k].kind;
    if (!read_range(text + strlen(kinds[k].prefix), &d->low, &d->high)) return false;
    if (d->kind == LOGARITHM) return d->low > 0;
    bool whole = floor(d->low) == d->low && floor(d->high) == d->high;
    return d->kind != WHOLE || (whole && fabs(d->low) <= MOST_WHOLE && fabs(d->high) <= MOST_WHOLE);
}

static bel_status *read_text(const char *text, bel_search_space *space)
{
    dimension *d = &space->items[space->count];
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : 0;
    d->name = bel_xstrndup(text, length);
    for (char *c = d->name; *c != '\0'; c++)
        if (*c == '-') *c = '_';
    space->count++;
    for (int i = 0; i < space->count - 1; i++) {
        if (strcmp(space->items[i].name, d->name) != 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--try: %s is there twice", d->name);
    }
    if (length > 0 && read_values(equals + 1, d)) return NULL;
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "--try: expected NAME=LOW:HIGH, NAME=log:LOW:HIGH with LOW > 0, NAME=int:LOW:HIGH "
        "or NAME=A|B|C, got \"%s\"",
        text);
}

bel_status *bel_search_space_create(const char *const *texts, int count,
                                    bel_search_space **out_space)
{
    bel_search_space *space = bel_xcalloc(1, sizeof *space);
    space->items = bel_xcalloc((size_t)count, sizeof *space->items);
    for (int i = 0; i < count; i++) {
        bel_status *status = read_text(texts[i], space);
        if (status == NULL) continue;
        bel_search_space_destroy(space);
        return status;
    }
    *out_space = space;
    return NULL;
}

void bel_search_space_destroy(bel_search_space *space)
{
    if (space == NULL) return;
    for (int i = 0; i < space->count; i++) {
        dimension *d = &space->items[i];
        for (int k = 0; k < d->choice_count; k++)
            bel_free(d->choices[k]);
        bel_free(d->choices);
        bel_free(d->name);
    }
    bel_free(space->items);
    bel_free(space);
}

int bel_search_space_count(const bel_search_space *space)
{
    return space->count;
}

const char *bel_search_space_name(const bel_search_space *space, int flag)
{
    return space->items[flag].name;
}

// --- Drawing -------------------------------------------------------------------------------------

// Returns a number in [0, 1) with 32 random bits.
static double unit(uint64_t seed, const dimension *d, int64_t draw)
{
    uint32_t words[4];
    bel_rng_block(bel_rng_key_make(seed, d->name, 0), 0, (uint64_t)draw, words);
    return words[0] * 0x1p-32;
}

static char *value_of(const dimension *d, double u)
{
    double width = d->high - d->low;
    switch (d->kind) {
    case CHOICE: return bel_xstrdup(d->choices[(int)(u * d->choice_count)]);
    case WHOLE: return bel_strf("%lld", (long long)(d->low + floor(u * (width + 1))));
    case LOGARITHM: return bel_strf("%.4g", d->low * pow(d->high / d->low, u));
    case EVEN: break;
    }
    return bel_strf("%.4g", d->low + u * width);
}

static bool is_new(char **values, int trials, int flags)
{
    const char *const *last = (const char *const *)values + (size_t)trials * (size_t)flags;
    for (int t = 0; t < trials; t++) {
        bool same = true;
        for (int f = 0; f < flags && same; f++)
            same = strcmp(values[t * flags + f], last[f]) == 0;
        if (same) return false;
    }
    return true;
}

// A value drawn before is drawn again; with few values, many draws may precede the last new one.
char **bel_search_space_draw(const bel_search_space *space, uint64_t seed, int count,
                             int *out_count)
{
    enum { DRAWS_A_TRIAL = 200 };
    int flags = space->count, trials = 0;
    char **values = bel_xcalloc((size_t)count * (size_t)flags + 1, sizeof *values);
    for (int64_t draw = 0; trials < count && draw < (int64_t)count * DRAWS_A_TRIAL; draw++) {
        char **row = &values[trials * flags];
        for (int f = 0; f < flags; f++)
            row[f] = value_of(&space->items[f], unit(seed, &space->items[f], draw));
        if (is_new(values, trials, flags)) {
            trials++;
            continue;
        }
        for (int f = 0; f < flags; f++) {
            bel_free(row[f]);
            row[f] = NULL;
        }
    }
    *out_count = trials;
    return values;
}
