// Settings as texts, by their rows. A field is found by its offset, and its form decides how it is
// read and written. Numbers that are read back have 17 digits. Those of a checkpoint have nine, and
// their form is part of its format (model/settings.h): rows of a key in table order.
#include "optim/settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/number.h"
#include "base/str.h"
#include "optim/multiplier.h"
#include "optim/rule.h"

typedef enum form { CHOICE, NUMBER, WHOLE, SWITCH, FACTORS, STEPS, RATES, FORMULA } form;

typedef struct row {
    const char *name;
    form form;
    size_t offset, size; // size of the field
    const char *otherwise, *accepts, *when, *key, *label;
} row;

#define ROW(name, form, field, otherwise, accepts, unit, when, key, label, help)                   \
    {#name,                                                                                        \
     form,                                                                                         \
     offsetof(bel_optimizer, field),                                                               \
     sizeof(((bel_optimizer *)NULL)->field),                                                       \
     otherwise,                                                                                    \
     accepts,                                                                                      \
     when,                                                                                         \
     key,                                                                                          \
     label},
static const row rows[] = {BEL_OPTIMIZER_SETTINGS(ROW)};
#undef ROW
enum { ROWS = sizeof rows / sizeof rows[0] };

static void *field_of(bel_optimizer *optimizer, const row *r)
{
    return (char *)optimizer + r->offset;
}

static const void *value_of(const bel_optimizer *optimizer, const row *r)
{
    return (const char *)optimizer + r->offset;
}

// --- Choices -------------------------------------------------------------------------------------

// An enumeration, or a bool where there are two choices.
static int get_choice(const bel_optimizer *optimizer, const row *r)
{
    const void *value = value_of(optimizer, r);
    return r->size == sizeof(bool) ? *(const bool *)value : *(const int *)value;
}

static void write_choice(const bel_optimizer *optimizer, const row *r, bel_str *out)
{
    const char *choice = r->accepts;
    for (int i = get_choice(optimizer, r); i > 0; i--)
        choice += strcspn(choice, "|") + 1;
    bel_str_append(out, choice, strcspn(choice, "|"));
}

// --- Texts to values -----------------------------------------------------------------------------

static bel_status *row_malformed(const row *r, const char *expected, const char *text)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be %s, got \"%s\"", r->name, expected, text);
}

static bel_status *set_choice(bel_optimizer *optimizer, const row *r, const char *text)
{
    int choice = bel_list_find(r->accepts, "|", text);
    if (choice < 0) {
        bel_str expected = {0};
        bel_str_puts(&expected, "one of ");
        for (const char *c = r->accepts; *c != '\0'; c++)
            *c == '|' ? bel_str_puts(&expected, ", ") : bel_str_append(&expected, c, 1);
        bel_status *status = row_malformed(r, expected.text, text);
        bel_str_deinit(&expected);
        return status;
    }
    void *field = field_of(optimizer, r);
    if (r->size == sizeof(bool)) {
        *(bool *)field = choice == 1;
    } else {
        *(int *)field = choice;
    }
    return NULL;
}

static bel_status *read_whole(const row *r, const char *text, const char *end, int64_t *out)
{
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    if (rest == text || rest != end || errno != 0)
        return row_malformed(r, r->form == STEPS ? "integers such as 100,200" : "an integer", text);
    *out = value;
    return NULL;
}

static bel_status *read_number(const row *r, const char *text, const char *end, double *out)
{
    char *rest;
    *out = bel_strtod(text, &rest);
    if (rest == text || rest != end || !isfinite(*out))
        return row_malformed(r, r->form == RATES ? "numbers such as 0.1,0.01" : "a number", text);
    return NULL;
}

// Parses "100,200", a list that ends with the text; entries after the last piece stay 0.
static bel_status *set_pieces(bel_optimizer *optimizer, const row *r, const char *text)
{
    bel_schedule *schedule = &optimizer->schedule;
    size_t most = r->form == STEPS ? BEL_SCHEDULE_MAX_PIECES - 1 : BEL_SCHEDULE_MAX_PIECES;
    memset(field_of(optimizer, r), 0, r->size);
    size_t count = 0;
    for (const char *piece = text; *piece != '\0'; count++) {
        const char *end = piece + strcspn(piece, ",");
        if (count == most) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be at most %zu numbers, got \"%s\"",
                           r->name, most, text);
        }
        BEL_TRY(r->form == STEPS ? read_whole(r, piece, end, &schedule->boundaries[count])
                                 : read_number(r, piece, end, &schedule->rates[count]));
        piece = *end == ',' ? end + 1 : end;
    }
    return NULL;
}

bel_status *bel_optimizer_set(bel_optimizer *optimizer, const char *name, const char *text)
{
    const row *r = rows;
    while (r < rows + ROWS && strcmp(r->name, name) != 0)
        r++;
    if (r == rows + ROWS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "an optimizer has no setting \"%s\"", name);
    }
    const char *end = text + strlen(text);
    bool on = strcmp(text, "true") == 0;
    switch (r->form) {
    case CHOICE: return set_choice(optimizer, r, text);
    case NUMBER: return read_number(r, text, end, field_of(optimizer, r));
    case WHOLE: return read_whole(r, text, end, field_of(optimizer, r));
    case SWITCH:
        if (!on && strcmp(text, "false") != 0) return row_malformed(r, "true or false", text);
        *(bool *)field_of(optimizer, r) = on;
        return NULL;
    case FACTORS:
        BEL_TRY_CTX(bel_multipliers_parse(text, field_of(optimizer, r)), "%s", r->name);
        return NULL;
    case STEPS:
    case RATES: return set_pieces(optimizer, r, text);
    case FORMULA:
        if (strlen(text) >= r->size) return row_malformed(r, "shorter than 256 bytes", text);
        memset(field_of(optimizer, r), 0, r->size);
        memcpy(field_of(optimizer, r), text, strlen(text));
        return NULL;
    }
    return NULL;
}

const char *bel_optimizer_setting(size_t index, const char **out_otherwise)
{
    if (index >= ROWS) return NULL;
    *out_otherwise = rows[index].otherwise;
    return rows[index].name;
}

static void set_default(bel_optimizer *optimizer, const row *r)
{
    bel_status *status = bel_optimizer_set(optimizer, r->name, r->otherwise);
    BEL_CHECK(status == NULL); // a row that refuses its default is a defect of the table
}

bel_optimizer bel_optimizer_default(void)
{
    bel_optimizer optimizer = {0};
    for (const row *r = rows; r < rows + ROWS; r++)
        set_default(&optimizer, r);
    return optimizer;
}

// --- Values to texts -----------------------------------------------------------------------------

static void write_number(bel_str *out, double value, int digits)
{
    bel_str_printf(out, "%.*g", digits, value);
}

static void write_value(const bel_optimizer *optimizer, const row *r, int digits, bel_str *out)
{
    const bel_schedule *schedule = &optimizer->schedule;
    const void *value = value_of(optimizer, r);
    char factors[BEL_MULTIPLIERS_TEXT];
    switch (r->form) {
    case CHOICE: write_choice(optimizer, r, out); break;
    case NUMBER: write_number(out, *(const double *)value, digits); break;
    case WHOLE: bel_str_printf(out, "%lld", (long long)*(const int64_t *)value); break;
    case SWITCH: bel_str_puts(out, *(const bool *)value ? "true" : "false"); break;
    case FACTORS: bel_str_puts(out, bel_multipliers_text(value, digits, factors)); break;
    case STEPS: // one fewer than rates
        for (int i = 0; i + 1 < BEL_SCHEDULE_MAX_PIECES && schedule->rates[i + 1] != 0; i++)
            bel_str_printf(out, "%s%lld", i > 0 ? "," : "", (long long)schedule->boundaries[i]);
        break;
    case RATES:
        for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES && schedule->rates[i] != 0; i++) {
            if (i > 0) bel_str_puts(out, ",");
            write_number(out, schedule->rates[i], digits);
        }
        break;
    case FORMULA: bel_str_puts(out, value); break;
    }
}

static bool is_default(const bel_optimizer *optimizer, const row *r)
{
    bel_optimizer others = {0};
    set_default(&others, r);
    bel_str one = {0}, other = {0};
    bel_str_puts(&one, "");
    bel_str_puts(&other, "");
    write_value(optimizer, r, 17, &one);
    write_value(&others, r, 17, &other);
    bool same = strcmp(one.text, other.text) == 0;
    bel_str_deinit(&one);
    bel_str_deinit(&other);
    return same;
}

void bel_optimizer_list(const bel_optimizer *optimizer, bel_setting_take *take, void *context)
{
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (is_default(optimizer, r)) continue;
        bel_str text = {0};
        bel_str_puts(&text, "");
        write_value(optimizer, r, 17, &text);
        take(context, r->name, text.text);
        bel_str_deinit(&text);
    }
}

// --- Conditions under which a setting is read ---------------------------------------------------

static const row *find_row(const char *name, size_t length)
{
    for (const row *r = rows; r < rows + ROWS; r++)
        if (strlen(r->name) == length && strncmp(r->name, name, length) == 0) return r;
    return NULL;
}

#define OR " or " // between conditions of `when`

// Whether a condition of `when` holds. A condition on a model's setting always holds here.
static bool settings_holds(const bel_optimizer *optimizer, const char *condition)
{
    size_t length = strcspn(condition, "= ");
    const row *on = find_row(condition, length);
    if (on == NULL) return true;
    if (condition[length] != '=') return !is_default(optimizer, on);
    bel_str choice = {0};
    write_choice(optimizer, on, &choice);
    bool read = bel_list_find(condition + length + 1, "|", choice.text) >= 0;
    bel_str_deinit(&choice);
    return read;
}

static bool is_read(const bel_optimizer *optimizer, const row *r)
{
    bool read = r->when == NULL;
    for (const char *at = r->when; at != NULL && !read;) {
        read = settings_holds(optimizer, at);
        at = strstr(at, OR);
        if (at != NULL) at += strlen(OR);
    }
    return read;
}

// --- Checks --------------------------------------------------------------------------------------

static bool belongs_to_schedule(const row *r)
{
    return r->offset >= offsetof(bel_optimizer, schedule) &&
           r->offset < offsetof(bel_optimizer, schedule) + sizeof(bel_schedule);
}

// Fills in a default and checks the range of a number. Skips rows that only an unselected schedule
// reads.
static bel_status *check_number(bel_optimizer *optimizer, const row *r)
{
    if (belongs_to_schedule(r) && !is_read(optimizer, r)) return NULL;
    bool must_be_set = belongs_to_schedule(r) || strcmp(r->name, "learning_rate") == 0;
    double value;
    if (r->form == WHOLE) {
        value = (double)*(int64_t *)field_of(optimizer, r);
    } else {
        double *field = field_of(optimizer, r);
        if (*field == 0 && !must_be_set) *field = bel_strtod(r->otherwise, NULL);
        value = (double)(float)*field;
    }
    if (bel_in_interval(r->accepts, value)) return NULL;
    bel_str text = {0};
    write_value(optimizer, r, 6, &text);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: %s must be in %s, got %s",
                                 r->name, r->accepts, text.text);
    bel_str_deinit(&text);
    return status;
}

static int count_choices(const char *accepts)
{
    int count = 1;
    for (const char *c = accepts; *c != '\0'; c++)
        count += *c == '|';
    return count;
}

bel_status *bel_optimizer_check_rows(bel_optimizer *optimizer)
{
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (r->form != CHOICE) continue;
        int choice = get_choice(optimizer, r);
        if (choice >= 0 && choice < count_choices(r->accepts)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: there is no %s %d",
                       strcmp(r->name, "optimizer") == 0 ? "kind" : r->name, choice);
    }
    for (const row *r = rows; r < rows + ROWS; r++)
        if (r->form == NUMBER || r->form == WHOLE) BEL_TRY(check_number(optimizer, r));
    return NULL;
}

// --- Checkpoints ---------------------------------------------------------------------------------

// Appends "piecewise: 0.1 up to step 1000, 0.01 up to step 2000, 0.001".
static void describe_pieces(const bel_schedule *schedule, bel_str *out)
{
    bel_str_puts(out, ": ");
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES && schedule->rates[i] != 0; i++) {
        if (i > 0)
            bel_str_printf(out, " up to step %lld, ", (long long)schedule->boundaries[i - 1]);
        write_number(out, schedule->rates[i], 9);
    }
}

// Adds a row to the text of its key.
static void describe_row(const bel_optimizer *optimizer, const row *r, const char *key,
                         bel_str *out)
{
    enum { DIGITS = 9 };
    if (r->form == STEPS) return; // written with the rates
    if (r->form == RATES) {
        describe_pieces(&optimizer->schedule, out);
        return;
    }
    if (r->form == SWITCH && !*(const bool *)value_of(optimizer, r)) return;
    bool first = out->length == 0;
    if (!first) bel_str_puts(out, strcmp(key, "optimizer") == 0 ? " " : ", ");
    bool says_label =
        r->label != NULL && strcmp(r->label, key) != 0; // "momentum" is the key itself
    if (says_label) bel_str_puts(out, r->label);
    if (r->form == SWITCH) return;
    if (says_label) bel_str_puts(out, " ");
    write_value(optimizer, r, DIGITS, out);
}

static const char *key_of(const bel_optimizer *optimizer, const row *r)
{
    return r->key != NULL ? r->key : bel_rule_get(optimizer)->name;
}

static bool is_described(const bel_optimizer *optimizer, const row *r)
{
    if (r->form == FACTORS) return !is_default(optimizer, r);
    if (!is_read(optimizer, r)) return false;
    bool depends = r->when != NULL && strstr(r->when, OR) == NULL; // on one other setting
    bool always = depends || strcmp(r->name, "optimizer") == 0;
    bool choice = r->form == CHOICE && strcmp(r->name, "optimizer") != 0;
    return (always && !choice) || !is_default(optimizer, r);
}

void bel_optimizer_describe(const bel_optimizer *optimizer, bel_setting_take *take, void *context)
{
    bool told[ROWS] = {false};
    for (int i = 0; i < ROWS; i++) {
        if (told[i] || !is_described(optimizer, &rows[i])) continue;
        const char *key = key_of(optimizer, &rows[i]);
        bel_str text = {0};
        for (int k = i; k < ROWS; k++) {
            bool same = strcmp(key_of(optimizer, &rows[k]), key) == 0;
            if (told[k] || !same || !is_described(optimizer, &rows[k])) continue;
            describe_row(optimizer, &rows[k], key, &text);
            told[k] = true;
        }
        take(context, key, text.text);
        bel_str_deinit(&text);
    }
}
