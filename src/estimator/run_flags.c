// Settings of a run as texts: defaults, checks, and the parser of the command's flags for other
// programs and the command itself. All of it comes from the table in run_settings.h, so a program
// and the command accept the same values. A NaN is in no interval and is refused with the rest.
#include "estimator/run_flags.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "belfry/run.h"
#include "estimator/run_settings.h"

typedef enum form {
    TEXT,     // const char *; empty: NULL
    INT,      // int
    WHOLE,    // int64_t
    UNSIGNED, // uint64_t
    MIB,      // int64_t, bytes
    SECS,     // double
    REAL,     // double
    SWITCH,   // bool
    CHOICE,   // an enumeration: its index in the words
} form;

typedef struct row {
    const char *name;
    form form;
    size_t offset, bytes;
    const char *otherwise, *accepts, *unit;
} row;

// clang-format off
#define ROW_OF(group, name, form, verbs, otherwise, accepts, unit, help, when) \
    {#name, form, offsetof(bel_run_config, name), sizeof(((bel_run_config *)0)->name), otherwise, accepts, unit},
// clang-format on
static const row rows[] = {BEL_EACH_RUN_SETTING(ROW_OF)};
enum { ROWS = sizeof rows / sizeof rows[0] };

// The form of a row decides how its field is read and written.
#define SIZE_OF_TEXT sizeof(const char *)
#define SIZE_OF_INT sizeof(int)
#define SIZE_OF_WHOLE sizeof(int64_t)
#define SIZE_OF_UNSIGNED sizeof(uint64_t)
#define SIZE_OF_MIB sizeof(int64_t)
#define SIZE_OF_SECS sizeof(double)
#define SIZE_OF_REAL sizeof(double)
#define SIZE_OF_SWITCH sizeof(bool)
#define SIZE_OF_CHOICE sizeof(int)
#define CHECK_SIZE(group, name, form, ...)                                                         \
    _Static_assert(sizeof(((bel_run_config *)0)->name) == SIZE_OF_##form, #name);
BEL_EACH_RUN_SETTING(CHECK_SIZE)

const char *bel_run_flag(size_t index)
{
    return index < ROWS ? rows[index].name : NULL;
}

static const row *run_flags_find(const char *name, size_t length)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

void bel_run_flag_word(const char *name, int value, bel_str *out)
{
    const char *word = run_flags_find(name, strlen(name))->accepts;
    while (value-- > 0)
        word = strchr(word, '|') + 1;
    bel_str_append(out, word, strcspn(word, "|"));
}

// --- Ownership of texts --------------------------------------------------------------------------

// Texts are const in the public struct, also those that the library owns.
static void copy_text(char *field)
{
    char *text;
    memcpy(&text, field, sizeof text);
    if (text != NULL) text = bel_xstrdup(text);
    memcpy(field, &text, sizeof text);
}

static void free_text(char *field)
{
    char *text;
    memcpy(&text, field, sizeof text);
    bel_free(text);
}

void bel_run_config_copy_texts(bel_run_config *config)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].form == TEXT) copy_text((char *)config + rows[i].offset);
}

void bel_run_config_free_texts(bel_run_config *config)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].form == TEXT) free_text((char *)config + rows[i].offset);
}

// --- Texts to values -----------------------------------------------------------------------------

static bel_status *row_malformed(const row *r, const char *expected, const char *text)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s: expected %s, got \"%s\"", r->name, expected, text);
}

static bel_status *set_whole(const row *r, void *field, const char *text)
{
    bool wide = r->form == WHOLE || r->form == UNSIGNED;
    int64_t low = wide || r->form == MIB ? INT64_MIN : INT_MIN;
    int64_t high = wide ? INT64_MAX : r->form == MIB ? INT64_MAX >> 20 : INT_MAX;
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    if (rest == text || *rest != '\0' || errno != 0 || value < low || value > high)
        return row_malformed(r, "an integer", text);
    if (wide) *(int64_t *)field = value;
    if (r->form == MIB) *(int64_t *)field = value < 0 ? value : value << 20;
    if (r->form == INT) *(int *)field = (int)value;
    return NULL;
}

static bel_status *set_real(const row *r, double *field, const char *text)
{
    char *rest;
    double value = bel_strtod(text, &rest);
    if (rest == text || *rest != '\0' || !isfinite(value))
        return row_malformed(r, "a number", text);
    *field = value;
    return NULL;
}

static bel_status *set_word(const row *r, void *field, const char *text)
{
    const char *words = r->form == SWITCH ? "false|true" : r->accepts;
    int number = bel_list_find(words, "|", text);
    if (number < 0) return row_malformed(r, words, text);
    if (r->form == SWITCH) {
        *(bool *)field = number == 1;
    } else {
        *(int *)field = number;
    }
    return NULL;
}

// A field beyond the program's struct cannot be set.
static bel_status *run_flags_set(bel_run_config *config, const row *r, const char *text)
{
    BEL_TRY(bel_sized_check(config, "bel_run_config"));
    if (r->offset + r->bytes > config->size) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--%s: the program was compiled for a version that lacks it", r->name);
    }
    void *field = (char *)config + r->offset;
    switch (r->form) {
    case TEXT: *(const char **)field = text[0] != '\0' ? text : NULL; return NULL;
    case SECS:
    case REAL: return set_real(r, field, text);
    case SWITCH:
    case CHOICE: return set_word(r, field, text);
    default: return set_whole(r, field, text);
    }
}

bel_status *bel_run_config_set(bel_run_config *config, const char *name, const char *text)
{
    const row *r = run_flags_find(name, strlen(name));
    if (r != NULL) return run_flags_set(config, r, text);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no setting \"%s\" of a run", name);
}

// --- Defaults and checks -------------------------------------------------------------------------

void bel_run_config_init(bel_run_config *config, size_t size)
{
    bel_run_config defaults = {.size = sizeof defaults};
    for (size_t i = 0; i < ROWS; i++)
        bel_status_ignore(run_flags_set(&defaults, &rows[i], rows[i].otherwise)); // tested
    config->size = size;
    bel_sized_give(config, &defaults, sizeof defaults);
}

// The field as a number in the unit of the flag.
static double number_of(const row *r, const bel_run_config *config)
{
    const void *field = (const char *)config + r->offset;
    switch (r->form) {
    case INT:
    case CHOICE: return *(const int *)field;
    case WHOLE: return (double)*(const int64_t *)field;
    case UNSIGNED: return (double)*(const uint64_t *)field;
    case MIB: return (double)*(const int64_t *)field / (1 << 20);
    case SECS:
    case REAL: return *(const double *)field;
    case TEXT:
    case SWITCH: break;
    }
    return 0;
}

static bel_status *check_row(const row *r, const bel_run_config *config)
{
    double value = number_of(r, config);
    if (r->form == CHOICE) {
        int last = 0;
        for (const char *bar = r->accepts; (bar = strchr(bar, '|')) != NULL; bar++)
            last++;
        if (value >= 0 && value <= last) return NULL;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be from 0 to %d (%s), got %g", r->name, last,
                       r->accepts, value);
    }
    bool number = r->form != TEXT && r->form != SWITCH;
    if (!number || bel_in_interval(r->accepts, value)) return NULL;
    const char *unit = r->unit != NULL ? r->unit : "", *gap = r->unit != NULL ? " " : "";
    if (r->form == MIB) // the field has bytes
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be in %s MiB, got %.0f bytes", r->name,
                       r->accepts, value * (1 << 20));
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be in %s%s%s, got %.15g", r->name, r->accepts,
                   gap, unit, value);
}

bel_status *bel_run_config_check_rows(const bel_run_config *config)
{
    for (size_t i = 0; i < ROWS; i++)
        BEL_TRY(check_row(&rows[i], config));
    return NULL;
}

// --- Arguments -----------------------------------------------------------------------------------

// Parses "--NAME=VALUE" or "--NAME VALUE", and for a switch "--NAME" and "--no_NAME". *out_used:
// number of consumed arguments; 0: no such flag.
static bel_status *take_flag(bel_run_config *config, int count, char **arguments, int *out_used)
{
    *out_used = 0;
    if (strncmp(arguments[0], "--", 2) != 0) return NULL;
    const char *name = arguments[0] + 2, *value = strchr(name, '=');
    size_t length = value != NULL ? (size_t)(value - name) : strlen(name);
    const row *r = run_flags_find(name, length);
    bool refused = r == NULL && value == NULL && strncmp(name, "no_", 3) == 0;
    if (refused) r = run_flags_find(name + 3, length - 3);
    if (r == NULL || (refused && r->form != SWITCH)) return NULL;
    *out_used = 1;
    if (value != NULL) return run_flags_set(config, r, value + 1);
    if (r->form == SWITCH) return run_flags_set(config, r, refused ? "false" : "true");
    if (count < 2) return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s: its value is missing", r->name);
    *out_used = 2;
    return run_flags_set(config, r, arguments[1]);
}

bel_status *bel_run_config_flags(bel_run_config *config, int *count, char **arguments)
{
    int left = 0;
    for (int i = 0; i < *count;) {
        int used = 0;
        if (strcmp(arguments[i], "--") == 0) { // no flags follow
            while (i < *count)
                arguments[left++] = arguments[i++];
            break;
        }
        if (i > 0) BEL_TRY(take_flag(config, *count - i, arguments + i, &used));
        if (used == 0) arguments[left++] = arguments[i++];
        i += used;
    }
    *count = left;
    arguments[left] = NULL;
    return NULL;
}

// `argument` begins with "--" and may end with "=VALUE".
static bel_status *unknown_flag(const char *argument)
{
    const char *names[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    char *name = bel_xstrndup(argument + 2, strcspn(argument + 2, "="));
    int nearest = bel_nearest_name(name, names, ROWS);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "--%s: there is no such flag%s%s%s", name,
                                 nearest < 0 ? "" : "; did you mean --",
                                 nearest < 0 ? "" : names[nearest], nearest < 0 ? "" : "?");
    bel_free(name);
    return status;
}

bel_status *bel_refuse_flags(int count, char *const *arguments)
{
    for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++)
        if (strncmp(arguments[i], "--", 2) == 0) return unknown_flag(arguments[i]);
    return NULL;
}
