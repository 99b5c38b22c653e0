// A name is only a reason to look closer: guess.c also requires distinct integers. So a test may
// accept a name too many, and a column without such a name is never left out because of its name.
// Words are separated by the character before them, as "paid" is no "id".
#include "columns/column_name.h"

#include <string.h>
#include <strings.h>

bool bel_column_name_is_added(const char *name)
{
    static const char unnamed[] = "Unnamed: 0";
    return *name == '\0' || strncmp(name, unnamed, sizeof unnamed - 1) == 0;
}

bool bel_column_name_is_id(const char *name)
{
    size_t length = strlen(name);
    if (length < 2 || strcasecmp(name + length - 2, "id") != 0) return false;
    char before = length == 2 ? ' ' : name[length - 3];
    bool small = before >= 'a' && before <= 'z', letter = small || (before >= 'A' && before <= 'Z');
    return !letter || (small && name[length - 2] == 'I');
}

bool bel_column_name_is_index(const char *name)
{
    return strcasecmp(name, "index") == 0;
}

bool bel_column_name_may_number(const char *name)
{
    return bel_column_name_is_added(name) || bel_column_name_is_id(name) ||
           bel_column_name_is_index(name);
}
