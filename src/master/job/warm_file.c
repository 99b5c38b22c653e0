// Tensors are read in pieces, so that a file of half floats needs no second copy of a variable. The
// file may come from any program, so its header is checked as that of a stranger's checkpoint is,
// and a tensor counts only if its name and shape are a variable's.
#include "master/job/warm_file.h"

#include <string.h>

#include "base/alloc.h"
#include "tensor/half.h"

bool bel_is_warm_file(const char *path)
{
    static const char end[] = ".safetensors";
    size_t length = strlen(path);
    return length > sizeof end - 1 && strcmp(path + length - (sizeof end - 1), end) == 0;
}

bel_status *bel_warm_file_open(const char *path, bel_warm_file *file)
{
    *file = (bel_warm_file){.arena = bel_arena_create()};
    BEL_TRY(bel_disk_file_open(path, &file->file));
    return bel_safetensors_read_header(&file->file, file->arena, &file->list);
}

void bel_warm_file_close(bel_warm_file *file)
{
    bel_disk_file_close(&file->file);
    bel_arena_destroy(file->arena);
}

static float number_at(const void *elements, bel_dtype dtype, size_t index)
{
    switch (dtype) {
    case BEL_DTYPE_F16: return (float)bel_half_get(((const uint16_t *)elements)[index]);
    case BEL_DTYPE_BF16: return (float)bel_bfloat_get(((const uint16_t *)elements)[index]);
    case BEL_DTYPE_F64: return (float)((const double *)elements)[index];
    default: return ((const float *)elements)[index];
    }
}

static bel_status *check(const bel_warm_file *file, const bel_safetensors_entry *entry,
                         const bel_shape *shape)
{
    char has[BEL_SHAPE_TEXT], wants[BEL_SHAPE_TEXT];
    bool real = entry->dtype == BEL_DTYPE_F32 || entry->dtype == BEL_DTYPE_F16 ||
                entry->dtype == BEL_DTYPE_BF16 || entry->dtype == BEL_DTYPE_F64;
    if (real && bel_shape_equal(&entry->shape, shape)) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: tensor \"%s\": expected floats %s, got %s %s",
                   file->file.path, entry->name, bel_shape_text(shape, wants),
                   bel_dtype_name(entry->dtype), bel_shape_text(&entry->shape, has));
}

bel_status *bel_warm_file_read(const bel_warm_file *file, const char *name, const bel_shape *shape,
                               float *out_values)
{
    enum { PIECE = 1 << 16 };
    const bel_safetensors_entry *entry = bel_safetensors_find(&file->list, name);
    if (entry == NULL)
        return BEL_ERR(BEL_NOT_FOUND, "%s has no tensor \"%s\"", file->file.path, name);
    BEL_TRY(check(file, entry, shape));
    size_t count = (size_t)bel_shape_elements(shape), each = bel_dtype_size(entry->dtype);
    char *piece = bel_xmalloc(PIECE * each);
    bel_status *status = NULL;
    for (size_t done = 0; done < count && status == NULL;) {
        size_t some = count - done < PIECE ? count - done : PIECE;
        status = bel_disk_file_read(&file->file, entry->offset + done * each, piece, some * each);
        for (size_t i = 0; i < some && status == NULL; i++)
            out_values[done + i] = number_at(piece, entry->dtype, i);
        done += some;
    }
    bel_free(piece);
    return status;
}
