// PNG through libpng; its types appear in no other file. Unlike stb_image it checks the checksums
// of chunks and of the packed data, and distributions maintain its security. Decoding is integer
// arithmetic throughout; no gamma is applied. Errors leave by longjmp, so everything that must
// survive one is in `reading`.
#include <png.h>

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "features/image.h"

typedef struct reading {
    png_structp png;
    png_infop info;
    const bel_image_request *request;
    size_t at;          // bytes read
    char message[128];  // the library's message
    int passes;         // passes over all rows: above 1 if interlaced
    bel_image image;    // pixels are NULL until the size is known
    bel_status *status; // errors found here
} reading;

static void image_png_fail(png_structp png, png_const_charp message)
{
    reading *r = png_get_error_ptr(png);
    size_t length = strlen(message);
    if (length >= sizeof r->message) length = sizeof r->message - 1;
    memcpy(r->message, message, length);
    r->message[length] = '\0';
    png_longjmp(png, 1);
}

// Ignores warnings: they are about auxiliary chunks, which are not used.
static void ignore(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void read_bytes(png_structp png, png_bytep out, size_t size)
{
    reading *r = png_get_io_ptr(png);
    if (size > r->request->size - r->at) png_error(png, "the file is cut off");
    memcpy(out, r->request->data + r->at, size);
    r->at += size;
}

// Converts all kinds of pixels to 8 bits of gray, or of red, green and blue.
static void set_transforms(reading *r)
{
    png_set_strip_16(r->png);
    png_set_packing(r->png);
    png_set_strip_alpha(r->png);
    png_byte kind = png_get_color_type(r->png, r->info);
    if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (kind == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(r->png);
    r->passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

// Makes all calls that may leave by longjmp.
static void read_all(reading *r)
{
    png_set_read_fn(r->png, r, read_bytes);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); // checked below
    png_read_info(r->png, r->info);
    int64_t height = png_get_image_height(r->png, r->info);
    int64_t width = png_get_image_width(r->png, r->info);
    r->status = bel_image_check_size(r->request, height, width);
    if (r->status != NULL) return;
    set_transforms(r);
    int64_t channels = png_get_channels(r->png, r->info);
    if ((channels != 1 && channels != 3) ||
        (int64_t)png_get_rowbytes(r->png, r->info) != width * channels) {
        png_error(r->png, "pixels of an unknown kind");
    }
    r->image = bel_image_make(height, width, channels);
    for (int pass = 0; pass < r->passes; pass++) {
        for (int64_t y = 0; y < height; y++)
            png_read_row(r->png, r->image.pixels + y * width * channels, NULL);
    }
    png_read_end(r->png, NULL);
}

bel_status *bel_png_decode(const bel_image_request *request, bel_image *out_image)
{
    reading *r = bel_xcalloc(1, sizeof *r);
    r->request = request;
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, image_png_fail, ignore);
    if (r->png != NULL) r->info = png_create_info_struct(r->png);
    if (r->info == NULL) {
        r->status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: no memory, or another version of libpng",
                            request->name);
    } else if (setjmp(png_jmpbuf(r->png)) == 0) {
        read_all(r);
    } else {
        r->status = BEL_ERR(BEL_DATA_LOSS, "%s: expected a whole PNG file, got a damaged one: %s",
                            request->name, r->message);
    }
    png_destroy_read_struct(&r->png, &r->info, NULL);
    bel_status *status = r->status;
    if (status != NULL) {
        bel_image_deinit(&r->image);
    } else {
        *out_image = bel_image_with_channels(r->image, request->channels);
    }
    bel_free(r);
    return status;
}

// --- Writing -------------------------------------------------------------------------------------

bel_status *bel_png_encode(const bel_image *image, bel_str *out)
{
    png_image head = {.version = PNG_IMAGE_VERSION,
                      .width = (png_uint_32)image->width,
                      .height = (png_uint_32)image->height,
                      .format = image->channels == 1   ? PNG_FORMAT_GRAY
                                : image->channels == 3 ? PNG_FORMAT_RGB
                                                       : PNG_FORMAT_RGBA};
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(head);
    uint8_t *bytes = bel_xmalloc(room);
    bool done = png_image_write_to_memory(&head, bytes, &room, 0, image->pixels, 0, NULL) != 0;
    if (done) bel_str_append(out, (const char *)bytes, room);
    bel_free(bytes);
    bel_status *status =
        done ? NULL : BEL_ERR(BEL_INTERNAL, "an image cannot be written: %s", head.message);
    png_image_free(&head);
    return status;
}
