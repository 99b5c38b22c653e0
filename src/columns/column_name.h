// Tests of a column's name: whether a tool added the column, or it numbers the rows.
#ifndef BELFRY_COLUMNS_COLUMN_NAME_H
#define BELFRY_COLUMNS_COLUMN_NAME_H

#include <stdbool.h>

// Whether a tool gives this name to a column that it adds: pandas writes an empty name for the
// index, and reads it as "Unnamed: 0".
bool bel_column_name_is_added(const char *name);

// Whether the name is "id" or has it as its last word: "order_id", "PassengerId".
bool bel_column_name_is_id(const char *name);

// Whether the name is "index", which may also be a measured number.
bool bel_column_name_is_index(const char *name);

// Whether it is one of these three.
bool bel_column_name_may_number(const char *name);

#endif
