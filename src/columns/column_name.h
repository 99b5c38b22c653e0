// Reads from the name of a column whether a tool has added the column, or it numbers the rows.
#ifndef BELFRY_COLUMNS_COLUMN_NAME_H
#define BELFRY_COLUMNS_COLUMN_NAME_H

#include <stdbool.h>

// A name that a tool gives to a column of its own: pandas writes an empty one for the index, and
// reads it as "Unnamed: 0".
bool bel_column_name_is_added(const char *name);

// "id", or a name whose last word it is: "order_id", "PassengerId".
bool bel_column_name_is_id(const char *name);

// "index", which may also be a number that was measured.
bool bel_column_name_is_index(const char *name);

#endif
