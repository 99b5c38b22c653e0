// Lists of what does not matter: a setting that is new counts until somebody says otherwise, so
// that at worst something is refused for nothing, and nothing goes on silently by other rules.
// Names are part of the checkpoint's format.
#include "checkpoint/setting_names.h"

#include <stddef.h>
#include <string.h>

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

bool bel_setting_is_of_job(const char *name)
{
    static const char *const names[] = {BEL_SETTING_MODE, BEL_SETTING_BACKUPS, BEL_SETTING_PRODUCTS,
                                        BEL_SETTING_GPU_MATH};
    return is_among(name, names, sizeof names / sizeof names[0]);
}

bool bel_setting_is_of_step(const char *name)
{
    static const char *const names[] = {
        BEL_SETTING_COLUMNS,    BEL_SETTING_TABLE,    BEL_SETTING_FEATURES,
        BEL_SETTING_INPUT,      BEL_SETTING_AVERAGE,  BEL_SETTING_ELASTIC,
        BEL_SETTING_RATE_SCALE, BEL_SETTING_REPLICAS, BEL_SETTING_REMAINDER};
    return !bel_setting_is_of_job(name) && !is_among(name, names, sizeof names / sizeof names[0]);
}

// What people cannot read is named by what it stands for.
static void note(bel_str *list, const char *name, const char *was, const char *is)
{
    if (strcmp(name, BEL_SETTING_INPUT) == 0)
        name = "input (the data, their order, the number of epochs)";
    if (strcmp(name, BEL_SETTING_TABLE) == 0) was = "another description", is = "this one";
    bel_str_printf(list, "%s%s was %s and is %s", list->length > 0 ? "; " : "", name,
                   was != NULL ? was : "not set", is != NULL ? is : "not set");
}

void bel_settings_differences(const bel_ckpt_reader *reader, char *const *names,
                              char *const *values, int count, bool (*counts)(const char *name),
                              bel_str *list)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    for (int i = 0; i < count; i++) {
        const char *was = bel_ckpt_setting(reader, names[i]);
        if (!counts(names[i]) || (was != NULL && strcmp(was, values[i]) == 0)) continue;
        note(list, names[i], was, values[i]);
    }
    for (int i = 0; i < info->setting_count; i++) {
        const char *name = info->setting_names[i];
        if (counts(name) && !is_among(name, (const char *const *)names, (size_t)count))
            note(list, name, info->setting_values[i], NULL);
    }
}
