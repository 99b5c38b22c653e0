// The base of a delta: where it is, and whether it is the right one. A delta in a model folder has
// its base beside it. One that was shared (share.h) has it in its folder `base`, so that the pair
// stays together.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "checkpoint/folder.h"
#include "checkpoint/reader.h"
#include "checkpoint/share.h"

static bool has_manifest(const char *folder)
{
    char *path = bel_path_join(folder, BEL_MANIFEST_NAME);
    bool found = bel_file_exists(path);
    bel_free(path);
    return found;
}

// The folder that contains `folder`: its name without the last part if that is a plain name.
static char *parent_of(const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/')
        begin--;
    if (folder[begin] == '.' || begin == end) return bel_path_join(folder, "..");
    if (begin == 0) return bel_xstrdup(".");
    return begin == 1 ? bel_xstrdup("/") : bel_xstrndup(folder, begin - 1);
}

char *bel_ckpt_base_path(const char *folder, int64_t base_step)
{
    char *within = bel_path_join(folder, BEL_CKPT_SHARED_BASE);
    if (has_manifest(within)) return within;
    char *parent = parent_of(folder);
    char *beside = bel_ckpt_find_folder(parent, base_step);
    bel_free(parent);
    bel_free(within);
    return beside;
}

static bel_status *check_tables(const bel_manifest *delta, const bel_manifest *base,
                                const char *base_folder)
{
    for (int t = 0; t < delta->table_count; t++) {
        const bel_ckpt_table *table = &delta->tables[t].table;
        int there = bel_ckpt_find_table(base, table->name);
        if (there < base->table_count && bel_ckpt_same_table(table, &base->tables[there].table))
            continue;
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected the table \"%s\" with the delta's columns",
                       base_folder, table->name);
    }
    return NULL;
}

bel_status *bel_ckpt_check_is(const bel_ckpt_base *expected, const bel_ckpt_reader *base)
{
    bel_hash128 got = base->manifest.digest;
    if (base->manifest.info.step != expected->step || got.low != expected->digest.low ||
        got.high != expected->digest.high) {
        char expected_text[33], got_text[33];
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected step %lld and digest %s, got step %lld and digest %s: it was "
                       "replaced",
                       base->folder, (long long)expected->step,
                       bel_hash128_text(expected->digest, expected_text),
                       (long long)base->manifest.info.step, bel_hash128_text(got, got_text));
    }
    if (base->manifest.info.base.step == 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected a full checkpoint, got a delta", base->folder);
}

bel_status *bel_ckpt_check_base(const bel_ckpt_reader *delta, const bel_ckpt_reader *base)
{
    BEL_TRY(bel_ckpt_check_is(&delta->manifest.info.base, base));
    if (base->manifest.file_count != delta->manifest.file_count) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected as the delta %d files, got %d", base->folder,
                       delta->manifest.file_count, base->manifest.file_count);
    }
    return check_tables(&delta->manifest, &base->manifest, base->folder);
}
