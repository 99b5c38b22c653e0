// Checks a shard file of an opened checkpoint, and finds the pieces in it that the manifest names:
// those of dense variables and the columns of tables. They are counted, to notice a file with more
// in it.
#include "base/alloc.h"
#include "checkpoint/reader.h"
#include "checkpoint/shard.h"
#include "checkpoint/table.h"

void bel_ckpt_make_table_offsets(bel_ckpt_reader *reader)
{
    const bel_manifest *manifest = &reader->manifest;
    bel_arena *arena = reader->arena;
    size_t files = (size_t)manifest->file_count;
    reader->table_offset =
        bel_arena_alloc(arena, (size_t)manifest->table_count * sizeof *reader->table_offset);
    for (int i = 0; i < manifest->table_count; i++) {
        size_t columns = (size_t)(manifest->tables[i].table.column_count - BEL_CKPT_REMOVED);
        uint64_t **offsets = bel_arena_alloc(arena, files * sizeof *offsets);
        for (size_t f = 0; f < files; f++)
            offsets[f] = bel_arena_alloc(arena, columns * sizeof **offsets);
        reader->table_offset[i] = offsets;
    }
}

// Finds an entry of a file that the manifest names, and counts it.
static bel_status *locate_entry(bel_reader_file *file, const char *name, bel_dtype dtype,
                                const bel_shape *shape, uint64_t *out_offset)
{
    const bel_safetensors_entry *entry = bel_safetensors_find(&file->list, name);
    if (entry == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a tensor \"%s\", which the manifest names",
                       file->disk.path, name);
    }
    if (entry->dtype != dtype || !bel_shape_equal(&entry->shape, shape)) {
        char expected_text[BEL_SHAPE_TEXT], got_text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_DATA_LOSS, "%s: tensor \"%s\": expected %s %s, got %s %s",
                       file->disk.path, name, bel_dtype_name(dtype),
                       bel_shape_text(shape, expected_text), bel_dtype_name(entry->dtype),
                       bel_shape_text(&entry->shape, got_text));
    }
    file->pieces_used++;
    *out_offset = entry->offset;
    return NULL;
}

// Finds the keys, I64 [rows], a delta's removed keys, I64 [removed], and the other columns, F32
// [rows, width].
static bel_status *locate_in_file(const bel_ckpt_reader *reader, const bel_manifest_table *table,
                                  int file, uint64_t *offsets)
{
    const bel_ckpt_table *info = &table->table;
    for (int c = table->removed != NULL ? BEL_CKPT_REMOVED : BEL_CKPT_KEYS; c < info->column_count;
         c++) {
        bool keys = c < 0;
        int64_t rows = c == BEL_CKPT_REMOVED ? table->removed[file] : table->rows[file];
        bel_shape shape = keys ? BEL_SHAPE(rows) : BEL_SHAPE(rows, info->width);
        char *name = bel_ckpt_column_name(info->name, info->columns, c);
        bel_status *status =
            locate_entry(&reader->files[file], name, keys ? BEL_DTYPE_I64 : BEL_DTYPE_F32, &shape,
                         &offsets[c - BEL_CKPT_REMOVED]);
        bel_free(name);
        BEL_TRY(status);
    }
    return NULL;
}

static bel_status *locate_tables(const bel_ckpt_reader *reader, int file)
{
    const bel_manifest *manifest = &reader->manifest;
    for (int i = 0; i < manifest->table_count; i++)
        BEL_TRY(locate_in_file(reader, &manifest->tables[i], file, reader->table_offset[i][file]));
    return NULL;
}

// Finds a piece in its file's header.
static bel_status *locate_piece(const bel_ckpt_reader *reader, const bel_manifest_tensor *tensor,
                                const bel_manifest_piece *piece, uint64_t *out_offset)
{
    bool whole = tensor->piece_count == 1;
    bel_shape shape = whole ? tensor->shape : BEL_SHAPE(piece->count);
    char *name = bel_ckpt_stored_name(tensor->name, whole, piece->first);
    bel_status *status =
        locate_entry(&reader->files[piece->file_index], name, tensor->dtype, &shape, out_offset);
    bel_free(name);
    return status;
}

// Each piece that the manifest has in a file must be there, and the file may hold no other one.
static bel_status *locate_pieces(const bel_ckpt_reader *reader, int file)
{
    const bel_manifest *manifest = &reader->manifest;
    reader->files[file].pieces_used = 0;
    for (int i = 0; i < manifest->tensor_count; i++) {
        const bel_manifest_tensor *tensor = &manifest->tensors[i];
        for (int j = 0; j < tensor->piece_count; j++) {
            if (tensor->pieces[j].file_index != file) continue;
            BEL_TRY(locate_piece(reader, tensor, &tensor->pieces[j], &reader->piece_offset[i][j]));
        }
    }
    BEL_TRY(locate_tables(reader, file));
    const bel_reader_file *of = &reader->files[file];
    if (of->list.count == of->pieces_used) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected %d tensors, got %d", of->disk.path, of->pieces_used,
                   of->list.count);
}

// Checks size, checksum and header, so that later reads need no checks.
static bel_status *check_file(const bel_ckpt_reader *reader, const bel_manifest_file *expected,
                              bel_reader_file *file)
{
    if (file->disk.size_bytes != expected->size_bytes) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected %llu bytes, got %llu", file->disk.path,
                       (unsigned long long)expected->size_bytes,
                       (unsigned long long)file->disk.size_bytes);
    }
    uint32_t crc;
    BEL_TRY(bel_disk_file_crc32c(&file->disk, &crc));
    if (crc != expected->crc32c) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: corrupt: its CRC-32C should be %08x, is %08x",
                       file->disk.path, expected->crc32c, crc);
    }
    return bel_safetensors_read_header(&file->disk, reader->arena, &file->list);
}

bel_status *bel_ckpt_use_file(const bel_ckpt_reader *reader, int file)
{
    bel_reader_file *of = &reader->files[file];
    const bel_manifest_file *expected = &reader->manifest.files[file];
    if (of->checked) return NULL;
    if (!of->missing) {
        bel_status *status = check_file(reader, expected, of);
        if (status == NULL) status = locate_pieces(reader, file);
        of->checked = status == NULL;
        of->missing = reader->partial && bel_status_code(status) == BEL_DATA_LOSS; // another run's
        if (!of->missing) return status;
        bel_status_destroy(status);
    }
    return BEL_ERR(BEL_NOT_FOUND, "%s/%s is not here", reader->folder, expected->name);
}
