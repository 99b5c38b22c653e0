// One struct has the program's options, overwritten by the variable's words; ranges are checked
// once, after both. A text has the settings that must be equal on all ranks, which compare it when
// they meet and in their first call.
#include "ddl/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"

#define VARIABLE "BELFRY_DDL_OPTIONS"
static const char ORDERS[] = "fixed|fast";

static const bel_ddl_options defaults = {.size = sizeof defaults,
                                         .timeout_secs = 600,
                                         .device = -1,
                                         .pci = true,
                                         .order = BEL_DDL_FIXED};

void bel_ddl_options_init(bel_ddl_options *options, size_t size)
{
    options->size = size;
    bel_sized_give(options, &defaults, sizeof defaults);
}

// Reads one word of the variable over the program's option. False: unknown word, or a value of
// another type; ranges are checked with the program's options.
static bool read_word(const char *name, const char *value, bel_ddl_options *out)
{
    static const char names[] = "mode|order|check|timeout|device|pci";
    enum { MODE, ORDER, CHECK, TIMEOUT, DEVICE, PCI };
    size_t length = strlen(value);
    int64_t number;
    int order;
    switch (bel_list_find(names, "|", name)) {
    case MODE: out->mode = value; return true;
    case ORDER:
        order = bel_list_find(ORDERS, "|", value);
        out->order = (bel_ddl_order)order;
        return order >= 0;
    case CHECK: return bel_parse_f64(value, length, &out->check);
    case TIMEOUT: return bel_parse_f64(value, length, &out->timeout_secs);
    case DEVICE:
        if (!bel_parse_i64(value, length, &number) || number < 0 || number > INT_MAX) return false;
        out->device = (int)number;
        return true;
    case PCI: out->pci = strcmp(value, "true") == 0; return out->pci || strcmp(value, "false") == 0;
    default: return false;
    }
}

// `text` is the variable's, and is split into words in place.
static bel_status *read_words(char *text, bel_ddl_options *out)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " ,", &rest); word != NULL;
         word = strtok_r(NULL, " ,", &rest)) {
        char *equals = strchr(word, '=');
        if (equals != NULL) *equals = '\0';
        if (equals != NULL && read_word(word, equals + 1, out)) continue;
        if (equals != NULL) *equals = '=';
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "environment variable " VARIABLE
                       ": expected words such as mode=s:4x2, order=fixed or fast, check=1e-5, "
                       "timeout=60, device=0, pci=true, got %s",
                       word);
    }
    return NULL;
}

static bel_status *check_ranges(const bel_ddl_options *options)
{
    if (!(options->timeout_secs > 0 && options->timeout_secs < 1e9)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "timeout_secs: expected seconds above 0, got %g",
                       options->timeout_secs);
    }
    if (!(options->check >= 0 && options->check <= 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "check: expected a tolerance from 0 to 1, got %g",
                       options->check);
    }
    if (options->order != BEL_DDL_FIXED && options->order != BEL_DDL_FAST) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "order: expected BEL_DDL_FIXED or BEL_DDL_FAST, got %d",
                       (int)options->order);
    }
    return NULL;
}

bel_status *bel_ddl_settings_read(const bel_ddl_options *options, bel_ddl_settings *out)
{
    const char *variable = getenv(VARIABLE);
    char words[512];
    bel_ddl_options *own = &out->options;
    *out = (bel_ddl_settings){.options = defaults};
    BEL_TRY(bel_sized_take_over(own, sizeof *own, options, "bel_ddl_options"));
    if (variable != NULL) {
        if (strlen(variable) >= sizeof words)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable " VARIABLE ": too long");
        bel_snprintf(words, sizeof words, "%s", variable);
        BEL_TRY(read_words(words, &out->options));
    }
    BEL_TRY(check_ranges(&out->options));
    const char *mode = out->options.mode;
    out->options.mode = NULL; // points into the variable's words
    return bel_ddl_mode_parse(mode == NULL ? "s" : mode, &out->mode);
}

const char *bel_ddl_settings_text(const bel_ddl_settings *settings, char out[BEL_DDL_SETTINGS_TEXT])
{
    char mode[BEL_DDL_MODE_TEXT];
    const bel_ddl_options *options = &settings->options;
    bel_snprintf(out, BEL_DDL_SETTINGS_TEXT, "mode %s, order %s, check %g",
                 bel_ddl_mode_text(&settings->mode, mode),
                 options->order == BEL_DDL_FIXED ? "fixed" : "fast", options->check);
    return out;
}
