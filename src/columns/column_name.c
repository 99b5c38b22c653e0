// A name is only a reason to look closer: guess.c asks for whole numbers, each another, as well. So
// a test may take in a name too many, and what has no such name is never left out for one. Words
// are told apart by what stands in front of them, as "paid" is no "id".
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
