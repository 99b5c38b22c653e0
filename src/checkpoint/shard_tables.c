// Tables of a shard, written and hashed in one pass over each column, in blocks, so that memory
// need not hold a table twice. Keys must ascend, which is checked while writing: readers and the
// merge of files rely on it. The streams are in order: keys first, in a delta after the removed
// ones, then the columns, table after table. bel_ckpt_describe_tables relies on that.
#include "checkpoint/shard_tables.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/index.h"
#include "base/str.h"

struct bel_table_stream {
    const bel_ckpt_rows *rows;
    int column; // or BEL_CKPT_KEYS, BEL_CKPT_REMOVED
    char *name;
    int64_t *keys;
    size_t key_capacity;
    int64_t last_key; // last key of the previous block
    bel_hash128 sum;
};

char *bel_ckpt_column_name(const char *table, const char *const *columns, int column)
{
    if (column == BEL_CKPT_REMOVED) return bel_strf("%s#" BEL_CKPT_REMOVED_NAME, table);
    return bel_strf("%s#%s", table, column == BEL_CKPT_KEYS ? "keys" : columns[column]);
}

// --- Checks --------------------------------------------------------------------------------------

// The fault of a table, or NULL.
static const char *table_fault(const bel_ckpt_rows *rows)
{
    const bel_ckpt_table *table = &rows->table;
    if (table->name[0] == '\0' || strchr(table->name, '#') != NULL) {
        return "its name is empty or holds a \"#\"";
    }
    if (table->width < 1 || table->width > BEL_CKPT_MAX_WIDTH) return "its width is out of range";
    if (rows->row_count < 0) return "it has a negative number of rows";
    if (table->column_count < 1 || table->column_count > BEL_CKPT_MAX_COLUMNS) {
        return "it has no column, or too many";
    }
    for (int c = 0; c < table->column_count; c++) {
        const char *name = table->columns[c];
        if (name[0] == '\0' || strchr(name, '#') != NULL || strcmp(name, "keys") == 0) {
            return "a column's name is empty, \"keys\", or holds a \"#\"";
        }
        if (rows->change != NULL && strcmp(name, BEL_CKPT_REMOVED_NAME) == 0)
            return "a column's name is that of a delta's removed keys";
        for (int other = 0; other < c; other++)
            if (strcmp(name, table->columns[other]) == 0) return "two columns have one name";
    }
    return NULL;
}

// The kind of the item that already has the name, or NULL. `names` numbers pieces first, then
// tables.
static const char *name_taken(const bel_index *names, const char *name, const bel_ckpt_rows *tables,
                              const bel_ckpt_piece *pieces, int piece_count)
{
    size_t at = 0;
    for (int n; (n = bel_index_next_text(names, name, &at)) >= 0;) {
        bool piece = n < piece_count;
        const char *other = piece ? pieces[n].name : tables[n - piece_count].table.name;
        if (strcmp(other, name) != 0) continue;
        return piece ? "there is a tensor of its name" : "there is another one of its name";
    }
    return NULL;
}

bel_status *bel_ckpt_check_tables(const bel_ckpt_rows *tables, int table_count,
                                  const bel_ckpt_piece *pieces, int piece_count)
{
    bel_index names = {.capacity = 0};
    bel_status *status = NULL;
    for (int j = 0; table_count > 0 && j < piece_count; j++)
        bel_index_put_text(&names, pieces[j].name, j);
    for (int i = 0; i < table_count && status == NULL; i++) {
        const char *name = tables[i].table.name;
        const char *fault = name_taken(&names, name, tables, pieces, piece_count);
        if (fault == NULL) fault = table_fault(&tables[i]);
        bel_index_put_text(&names, name, piece_count + i);
        if (fault == NULL) continue;
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "cannot save table \"%s\": %s", name, fault);
    }
    bel_index_deinit(&names);
    return status;
}

// --- Streams -------------------------------------------------------------------------------------

static bel_status *check_ascending(bel_table_stream *stream, const int64_t *keys, int64_t first,
                                   int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if ((first > 0 || i > 0) && keys[i] <= stream->last_key) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "cannot save table \"%s\": row %lld: expected a key above %lld, got "
                           "%lld",
                           stream->rows->table.name, (long long)(first + i),
                           (long long)stream->last_key, (long long)keys[i]);
        }
        stream->last_key = keys[i];
    }
    return NULL;
}

static bel_status *produce(void *context, int64_t first, int64_t n, void *out_data)
{
    bel_table_stream *stream = context;
    const bel_ckpt_rows *rows = stream->rows;
    if (stream->column == BEL_CKPT_REMOVED) {
        memcpy(out_data, rows->change->removed + first, (size_t)n * sizeof(int64_t));
        return check_ascending(stream, out_data, first, n);
    }
    if (stream->column == BEL_CKPT_KEYS) {
        BEL_TRY(rows->read(rows->context, first, n, out_data, BEL_CKPT_KEYS, NULL));
        return check_ascending(stream, out_data, first, n);
    }
    stream->keys = bel_xgrow(stream->keys, &stream->key_capacity, (size_t)n, sizeof *stream->keys);
    BEL_TRY(rows->read(rows->context, first, n, stream->keys, stream->column, out_data));
    bel_ckpt_hash_rows(stream->keys, out_data, rows->table.width, n, &stream->sum);
    return NULL;
}

static void open_stream(const bel_ckpt_rows *rows, int column, bel_table_stream *stream,
                        bel_safetensors_input *input)
{
    const bel_ckpt_table *table = &rows->table;
    bool keys = column < 0;
    int64_t count = column == BEL_CKPT_REMOVED ? rows->change->removed_count : rows->row_count;
    *stream = (bel_table_stream){.rows = rows, .column = column};
    stream->name = bel_ckpt_column_name(table->name, table->columns, column);
    *input = (bel_safetensors_input){
        .name = stream->name,
        .dtype = keys ? BEL_DTYPE_I64 : BEL_DTYPE_F32,
        .shape = keys ? BEL_SHAPE(count) : BEL_SHAPE(count, table->width),
        .produce = produce,
        .context = stream,
    };
}

// The first column of a table's streams.
static int first_column(const bel_ckpt_rows *rows)
{
    return rows->change != NULL ? BEL_CKPT_REMOVED : BEL_CKPT_KEYS;
}

void bel_ckpt_open_streams(const bel_ckpt_rows *tables, int table_count,
                           bel_table_streams *out_streams)
{
    int count = 0;
    for (int i = 0; i < table_count; i++)
        count += tables[i].table.column_count - first_column(&tables[i]);
    *out_streams = (bel_table_streams){
        .streams = bel_xcalloc((size_t)count, sizeof *out_streams->streams),
        .inputs = bel_xcalloc((size_t)count, sizeof *out_streams->inputs),
    };
    for (int i = 0; i < table_count; i++) {
        for (int c = first_column(&tables[i]); c < tables[i].table.column_count; c++) {
            int at = out_streams->count++;
            open_stream(&tables[i], c, &out_streams->streams[at], &out_streams->inputs[at]);
        }
    }
}

void bel_ckpt_close_streams(bel_table_streams *streams)
{
    for (int i = 0; i < streams->count; i++) {
        bel_free(streams->streams[i].name);
        bel_free(streams->streams[i].keys);
    }
    bel_free(streams->streams);
    bel_free(streams->inputs);
}

bel_status *bel_ckpt_describe_tables(const bel_ckpt_rows *tables, int table_count,
                                     const bel_table_streams *streams, bel_ckpt_shard *shard)
{
    bel_arena *arena = shard->arena;
    shard->tables = bel_arena_alloc(arena, (size_t)table_count * sizeof *shard->tables);
    shard->table_count = table_count;
    const bel_table_stream *stream = streams->streams;
    for (int i = 0; i < table_count; i++) {
        const bel_ckpt_table *table = &tables[i].table;
        const bel_ckpt_change *change = tables[i].change;
        size_t columns = (size_t)table->column_count;
        const char **names = bel_arena_alloc(arena, columns * sizeof *names);
        bel_hash128 *sums = bel_arena_alloc(arena, columns * sizeof *sums);
        stream += -first_column(&tables[i]); // skips keys, which are part of each row's hash
        for (size_t c = 0; c < columns; c++) {
            names[c] = bel_arena_strdup(arena, table->columns[c]);
            sums[c] = (stream++)->sum;
        }
        if (change != NULL) BEL_TRY(change->add_rest(tables[i].context, sums));
        shard->tables[i] = (bel_ckpt_table_run){
            .name = bel_arena_strdup(arena, table->name),
            .width = table->width,
            .column_count = table->column_count,
            .columns = names,
            .row_count = change != NULL ? change->all : tables[i].row_count,
            .sums = sums,
            .file_rows = tables[i].row_count,
            .removed = change != NULL ? change->removed_count : -1,
            .shard_index = shard->shard_index,
        };
    }
    return NULL;
}

const bel_hash128 *bel_ckpt_shard_sums(const bel_ckpt_shard *shard, const char *table)
{
    int i = 0;
    while (i < shard->table_count && strcmp(shard->tables[i].name, table) != 0)
        i++;
    BEL_CHECK(i < shard->table_count);
    return shard->tables[i].sums;
}
