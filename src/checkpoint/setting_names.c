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
    static const char *const names[] = {BEL_SETTING_MODE, BEL_SETTING_BACKUPS,
                                        BEL_SETTING_PRODUCTS};
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
