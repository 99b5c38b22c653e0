// Image reading: the first bytes choose the decoder, whatever the file's name. If no decoder fits,
// the error names the kind that the first bytes identify, where possible.
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "features/image.h"
#include "features/record_file.h"

static bool image_begins(const bel_image_request *request, const char *magic, size_t length)
{
    return request->size >= length && memcmp(request->data, magic, length) == 0;
}

static const char *other_kind(const bel_image_request *request)
{
    static const struct {
        const char *magic, *name;
        size_t length;
    } kinds[] = {
        {"GIF8", "a GIF", 4},
        {"BM", "a BMP", 2},
        {"RIFF", "a RIFF (WebP?)", 4},
        {"II*\0", "a TIFF", 4},
        {"MM\0*", "a TIFF", 4},
        {"P1", "a PBM", 2},
        {"P2", "a PGM in letters", 2},
        {"P3", "a PPM in letters", 2},
        {"P4", "a PBM", 2},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (image_begins(request, kinds[i].magic, kinds[i].length)) return kinds[i].name;
    }
    return "another";
}

static bel_status *decode(const bel_image_request *request, bel_image *out_image)
{
    if (image_begins(request, "\xFF\xD8\xFF", 3)) return bel_jpeg_decode(request, out_image);
    if (image_begins(request, "\x89PNG\r\n\x1A\n", 8)) return bel_png_decode(request, out_image);
    if (image_begins(request, "P5", 2) || image_begins(request, "P6", 2)) {
        return bel_pnm_decode(request, out_image);
    }
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected a JPEG, PNG, or binary PGM or PPM file, got %s",
                   request->name, other_kind(request));
}

bel_status *bel_image_parse(const void *data, size_t size, const char *name,
                            const bel_image_read_options *options, bel_image *out_image)
{
    bel_image_read_options o;
    BEL_TRY(bel_sized_take(&o, sizeof o, options, "bel_image_read_options"));
    if (o.channels != 0 && o.channels != 1 && o.channels != 3) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: expected 1 or 3 channels, got %lld",
                       (long long)o.channels);
    }
    if (o.max_pixels < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: expected a max_pixels of 0 or more, got %lld",
                       (long long)o.max_pixels);
    }
    bool enough = o.enough_height > 0 && o.enough_width > 0;
    bel_image_request request = {
        .data = data,
        .size = size,
        .name = name,
        .channels = o.channels == 0 ? 3 : o.channels,
        .max_pixels = o.max_pixels == 0 ? BEL_IMAGE_MAX_PIXELS : o.max_pixels,
        .enough_height = enough ? o.enough_height : 0,
        .enough_width = enough ? o.enough_width : 0,
    };
    return decode(&request, out_image);
}

bel_status *bel_image_read(const char *path, const bel_image_read_options *options,
                           bel_image *out_image)
{
    uint8_t *data;
    size_t size;
    bel_image_read_options o;
    BEL_TRY(bel_sized_take(&o, sizeof o, options, "bel_image_read_options"));
    BEL_TRY(bel_feature_file_read(path, o.max_bytes, &data, &size));
    bel_status *status = bel_image_parse(data, size, path, options, out_image);
    bel_free(data);
    return status;
}
