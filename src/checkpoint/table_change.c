// The rows that a checkpoint's files have, without those of a base: for a reader that has the base
// already (belfry serve). The files of a delta's base are not read, so a delta costs what it has,
// and its base may be damaged meanwhile.
#include <string.h>

#include "checkpoint/table_rows.h"

// Passes the rows, or keys, of all files to a sink, block by block.
static bel_status *read_files(bel_table_run_reader *run, const bel_ckpt_row_sink *sink)
{
    for (int f = 0; f < run->reader->manifest.file_count; f++) {
        bel_table_run_begin(run, f);
        for (;;) {
            BEL_TRY(bel_table_run_next(run));
            if (run->count == 0) break;
            const float *columns[BEL_CKPT_MAX_COLUMNS];
            memcpy(columns, run->columns, sizeof columns);
            BEL_TRY(sink->take(sink->context, run->count, run->keys, columns));
        }
    }
    return NULL;
}

static bel_status *read_run(const bel_ckpt_reader *reader, int table, int key_column,
                            const bel_ckpt_row_sink *sink)
{
    bel_table_run_reader run;
    bel_table_run_open(reader, table, key_column, key_column == BEL_CKPT_KEYS,
                       bel_table_block_rows(&reader->manifest.tables[table].table, 1), &run);
    bel_status *status = read_files(&run, sink);
    bel_table_run_close(&run);
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "checkpoint %s", reader->folder);
}

bel_status *bel_ckpt_read_change(const bel_ckpt_reader *reader, const char *name, int width,
                                 const bel_ckpt_row_sink *rows, const bel_ckpt_row_sink *removed)
{
    int table = bel_ckpt_find_table(&reader->manifest, name);
    if (table == reader->manifest.table_count)
        return BEL_ERR(BEL_NOT_FOUND, "checkpoint %s has no table \"%s\"", reader->folder, name);
    const bel_manifest_table *found = &reader->manifest.tables[table];
    if (found->table.width != width) {
        return BEL_ERR(BEL_DATA_LOSS, "checkpoint %s: table \"%s\": expected width %d, got %d",
                       reader->folder, name, width, found->table.width);
    }
    BEL_TRY(read_run(reader, table, BEL_CKPT_KEYS, rows));
    if (found->removed == NULL) return NULL;
    return read_run(reader, table, BEL_CKPT_REMOVED, removed);
}
