// Lists of settings that do not matter. A setting counts unless it is listed, so an omission at
// worst refuses a valid resume and never continues silently under other rules. Names are part of
// the checkpoint's format.
#include "checkpoint/setting_names.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "checkpoint/reader.h"

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

bool bel_setting_is_of_job(const char *name)
{
    static const char *const names[] = {BEL_SETTING_MODE,        BEL_SETTING_BACKUPS,
                                        BEL_SETTING_PRODUCTS,    BEL_SETTING_GPU_MATH,
                                        BEL_SETTING_LOCAL_STEPS, BEL_SETTING_EXCHANGE};
    return is_among(name, names, sizeof names / sizeof names[0]);
}

bool bel_setting_is_of_step(const char *name)
{
    static const char *const names[] = {
        BEL_SETTING_COLUMNS,  BEL_SETTING_TABLE,     BEL_SETTING_FEATURES,  BEL_SETTING_INPUT,
        BEL_SETTING_EPOCHS,   BEL_SETTING_AVERAGE,   BEL_SETTING_ELASTIC,   BEL_SETTING_RATE_SCALE,
        BEL_SETTING_REPLICAS, BEL_SETTING_REMAINDER, BEL_SETTING_TABLE_DISK};
    return !bel_setting_is_of_job(name) && !is_among(name, names, sizeof names / sizeof names[0]);
}

// The epochs are part of the input's fingerprint, and so not compared.
bool bel_setting_is_compared(const char *name)
{
    static const char *const names[] = {BEL_SETTING_RUNS, BEL_SETTING_FEATURES, BEL_SETTING_EPOCHS,
                                        BEL_SETTING_FOLLOWED, BEL_SETTING_TABLE_DISK};
    return !is_among(name, names, sizeof names / sizeof names[0]);
}

enum { SHOWN = 100 }; // bytes of a value in a message

// Writes the line of `text` that contains byte `at`, cut to SHOWN bytes.
static void put_line(bel_str *out, const char *text, size_t at)
{
    size_t begin = at;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    if (at - begin > SHOWN / 2) begin = at - SHOWN / 2;
    int length = (int)strcspn(text + begin, "\n");
    bel_str_printf(out, "\"%.*s\"", length < SHOWN ? length : SHOWN, text + begin);
}

void bel_setting_note_difference(bel_str *list, const char *name, const char *was, const char *is)
{
    bool both = was != NULL && is != NULL;
    if (strcmp(name, BEL_SETTING_INPUT) == 0)
        name = "input (the data, their order, the number of epochs)";
    if (strcmp(name, BEL_SETTING_TABLE) == 0) name = "the description of the table's columns";
    bel_str_printf(list, "%s%s was ", list->length > 0 ? "; " : "", name);
    if (both && (strlen(was) > SHOWN || strlen(is) > SHOWN)) {
        size_t at = 0;
        while (was[at] == is[at] && was[at] != '\0')
            at++;
        put_line(list, was, at);
        bel_str_puts(list, " and is ");
        put_line(list, is, at);
    } else {
        bool was_set = was != NULL && was[0] != '\0', is_set = is != NULL && is[0] != '\0';
        bel_str_printf(list, "%.*s and is %.*s", SHOWN, was_set ? was : "not set", SHOWN,
                       is_set ? is : "not set");
    }
}

void bel_settings_differences(const bel_ckpt_reader *reader, char *const *names,
                              char *const *values, int count, bool (*counts)(const char *name),
                              bel_str *list)
{
    const bel_ckpt_info *info = &reader->manifest.info;
    for (int i = 0; i < count; i++) {
        const char *was = bel_ckpt_setting(reader, names[i]);
        if (!counts(names[i]) || (was != NULL && strcmp(was, values[i]) == 0)) continue;
        bel_setting_note_difference(list, names[i], was, values[i]);
    }
    for (int i = 0; i < info->setting_count; i++) {
        const char *name = info->setting_names[i];
        if (counts(name) && !is_among(name, (const char *const *)names, (size_t)count))
            bel_setting_note_difference(list, name, info->setting_values[i], NULL);
    }
}

const char *bel_ckpt_setting(const bel_ckpt_reader *reader, const char *name)
{
    const bel_ckpt_info *info = &reader->manifest.info;
    for (int i = 0; i < info->setting_count; i++) {
        if (strcmp(info->setting_names[i], name) == 0) return info->setting_values[i];
    }
    return NULL;
}
