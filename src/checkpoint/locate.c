// Finds a piece of an array in an opened shard file, and checks it against the manifest. Pieces of
// dense variables (reader.c) and blocks of tables (table_reader.c) are found alike. The reader
// counts the pieces found, to notice a file with more in it than the manifest names.
#include "checkpoint/reader.h"

bel_status *bel_ckpt_locate(bel_reader_file *file, const char *name, bel_dtype dtype,
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

bel_status *bel_ckpt_read_here(const bel_ckpt_reader *reader, int file, uint64_t offset, void *out,
                               size_t bytes)
{
    const bel_reader_file *from = &reader->files[file];
    if (!from->missing) return bel_disk_file_read(&from->disk, offset, out, bytes);
    return BEL_ERR(BEL_NOT_FOUND, "%s/%s is not here", reader->folder,
                   reader->manifest.files[file].name);
}
