// Tables of an opened checkpoint, by its manifest. Ages and counts of waiting keys are tables
// beside that of their rows. The run's settings tell them from a user's table with such a name, as
// readers add the steps since the base to ages and to nothing else.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "checkpoint/reader.h"
#include "checkpoint/setting_names.h"
#include "checkpoint/table.h"

int bel_ckpt_table_count(const bel_ckpt_reader *reader)
{
    return reader->manifest.table_count;
}

bel_ckpt_table bel_ckpt_table_at(const bel_ckpt_reader *reader, int index, int64_t *out_row_count)
{
    const bel_manifest_table *table = &reader->manifest.tables[index];
    *out_row_count = table->all;
    return table->table;
}

void bel_ckpt_table_change(const bel_ckpt_reader *reader, int index, int64_t *out_row_count,
                           int64_t *out_removed)
{
    const bel_manifest_table *table = &reader->manifest.tables[index];
    *out_row_count = *out_removed = 0;
    for (int f = 0; f < reader->manifest.file_count; f++) {
        *out_row_count += table->rows[f];
        *out_removed += table->removed != NULL ? table->removed[f] : 0;
    }
}

int bel_ckpt_file_count(const bel_ckpt_reader *reader)
{
    return reader->manifest.file_count;
}

static int by_name(const void *a, const void *b)
{
    const bel_manifest_table *left = a, *right = b;
    return strcmp(left->table.name, right->table.name);
}

// Bisects the ascending names.
int bel_ckpt_find_table(const bel_manifest *manifest, const char *name)
{
    bel_manifest_table key = {.table = {.name = name}};
    size_t count = (size_t)manifest->table_count;
    const bel_manifest_table *found =
        count == 0 ? NULL : bsearch(&key, manifest->tables, count, sizeof key, by_name);
    return found == NULL ? manifest->table_count : (int)(found - manifest->tables);
}

bool bel_ckpt_has_table(const bel_ckpt_reader *reader, const char *name)
{
    return bel_ckpt_find_table(&reader->manifest, name) < reader->manifest.table_count;
}

// Whether the name is "OWNER/<kind>", there is a table OWNER, and the run had such tables by its
// setting: without it the name is a table of the model. Their rows are one float.
static bool is_beside(const bel_ckpt_reader *reader, const char *name, const char *kind,
                      const char *setting)
{
    const char *last = strrchr(name, '/');
    if (last == NULL || strcmp(last + 1, kind) != 0) return false;
    if (bel_ckpt_setting(reader, setting) == NULL || !bel_ckpt_has_table(reader, name))
        return false;
    int index = bel_ckpt_find_table(&reader->manifest, name);
    const bel_ckpt_table *table = &reader->manifest.tables[index].table;
    if (table->width != 1 || table->column_count != 1) return false;
    char *owner = bel_strf("%.*s", (int)(last - name), name);
    bool found = bel_ckpt_has_table(reader, owner);
    bel_free(owner);
    return found;
}

bool bel_ckpt_is_age_table(const bel_ckpt_reader *reader, const char *name)
{
    return is_beside(reader, name, BEL_CKPT_AGE, BEL_SETTING_EXPIRE);
}

bool bel_ckpt_is_model_table(const bel_ckpt_reader *reader, const char *name)
{
    return !bel_ckpt_is_age_table(reader, name) &&
           !is_beside(reader, name, BEL_CKPT_USES, BEL_SETTING_ADMIT);
}

bool bel_ckpt_same_table(const bel_ckpt_table *a, const bel_ckpt_table *b)
{
    if (a->width != b->width || a->column_count != b->column_count) return false;
    for (int c = 0; c < a->column_count; c++)
        if (strcmp(a->columns[c], b->columns[c]) != 0) return false;
    return true;
}
