// JPEG through libjpeg-turbo; its types appear in no other file. Pixels are the same on every
// processor. The integer DCT ("islow") with its scaled forms (1/2, 1/4), upsampling and color
// conversion have vector code that must match the bits of the plain code (test_image_bits.c
// compares them). Errors of the library leave by longjmp. Everything that must survive one is
// therefore in `reading`, and nothing between setjmp and the library's calls owns anything else.
//
// libjpeg continues after damage with guesses. Such a warning is DATA_LOSS here, except for those
// about unused bytes. Two more guards are for malicious files: the size is checked before pixels
// are allocated, and a progressive file may have at most MAX_SCANS scans.
#include <setjmp.h>
#include <stdio.h> // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "features/image.h"

enum { MAX_SCANS = 256 };

typedef struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
    const bel_image_request *request;
    bel_image image;    // pixels are NULL until the size is known
    bel_status *status; // errors found here
} reading;

static reading *reading_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

static void image_jpeg_fail(j_common_ptr jpeg)
{
    reading *r = reading_of(jpeg);
    jpeg->err->format_message(jpeg, r->message);
    longjmp(r->escape, 1);
}

static void image_jpeg_note(j_common_ptr jpeg, int level)
{
    if (level >= 0) return; // not even a warning
    switch (jpeg->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA: // bytes between markers
    case JWRN_JFIF_MAJOR:      // a newer version of the header
    case JWRN_NOT_SEQUENTIAL: return;
    default: image_jpeg_fail(jpeg);
    }
}

static void print_nothing(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void image_jpeg_watch(j_common_ptr jpeg)
{
    reading *r = reading_of(jpeg);
    if (r->jpeg.input_scan_number <= MAX_SCANS) return;
    r->status = BEL_ERR(BEL_DATA_LOSS, "%s: expected at most %d scans, got more", r->request->name,
                        MAX_SCANS);
    longjmp(r->escape, 1);
}

// Chooses the smallest sufficient size of those with a separate fast transform.
static void choose_scale(reading *r)
{
    const bel_image_request *request = r->request;
    if (request->enough_height == 0) return;
    for (unsigned eighths = 1; eighths < 8; eighths *= 2) {
        int64_t height = ((int64_t)r->jpeg.image_height * eighths + 7) / 8;
        int64_t width = ((int64_t)r->jpeg.image_width * eighths + 7) / 8;
        if (height < request->enough_height || width < request->enough_width) continue;
        r->jpeg.scale_num = eighths;
        r->jpeg.scale_denom = 8;
        return;
    }
}

// Converts four inks in `row`, plain or, as Adobe does, inverted, to red, green and blue.
static void convert_inks(const uint8_t *row, int64_t count, bool upside_down, uint8_t *out)
{
    for (int64_t i = 0; i < count; i++, row += 4) {
        for (int c = 0; c < 3; c++) {
            uint32_t ink = upside_down ? row[c] : 255U - row[c];
            uint32_t black = upside_down ? row[3] : 255U - row[3];
            *out++ = (uint8_t)((ink * black + 127) / 255);
        }
    }
}

// Makes all calls that may leave by longjmp.
static void read_all(reading *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    const bel_image_request *request = r->request;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &r->progress;
    jpeg_mem_src(jpeg, request->data, (unsigned long)request->size);
    (void)jpeg_read_header(jpeg, TRUE);
    r->status = bel_image_check_size(request, jpeg->image_height, jpeg->image_width);
    if (r->status != NULL) return;
    bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = request->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (inks) jpeg->out_color_space = JCS_CMYK;
    jpeg->dct_method = JDCT_ISLOW;
    choose_scale(r);
    (void)jpeg_start_decompress(jpeg);
    int64_t width = jpeg->output_width, channels = inks ? 3 : request->channels;
    r->image = bel_image_make(jpeg->output_height, width, channels);
    // A row of inks in the library's memory, which is freed with it.
    JSAMPARRAY ink_row = NULL;
    if (inks) {
        ink_row =
            jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, (JDIMENSION)(width * 4), 1);
    }
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = r->image.pixels + (int64_t)jpeg->output_scanline * width * channels;
        if (inks) {
            (void)jpeg_read_scanlines(jpeg, ink_row, 1);
            convert_inks(ink_row[0], width, jpeg->saw_Adobe_marker, row);
        } else {
            (void)jpeg_read_scanlines(jpeg, &row, 1);
        }
    }
    (void)jpeg_finish_decompress(jpeg);
}

bel_status *bel_jpeg_decode(const bel_image_request *request, bel_image *out_image)
{
    reading *r = bel_xcalloc(1, sizeof *r);
    r->request = request;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->jpeg.client_data = r;
    r->errors.error_exit = image_jpeg_fail;
    r->errors.emit_message = image_jpeg_note;
    r->errors.output_message = print_nothing;
    r->progress.progress_monitor = image_jpeg_watch;
    if (setjmp(r->escape) == 0) {
        read_all(r);
    } else if (r->status == NULL) {
        r->status = BEL_ERR(BEL_DATA_LOSS, "%s: expected a whole JPEG file, got a damaged one: %s",
                            request->name, r->message);
    }
    jpeg_destroy_decompress(&r->jpeg);
    bel_status *status = r->status;
    if (status != NULL) {
        bel_image_deinit(&r->image);
    } else {
        *out_image = bel_image_with_channels(r->image, request->channels);
    }
    bel_free(r);
    return status;
}
