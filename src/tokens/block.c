// A file with llm.c's magic has its header. As two tokens the magic would be 55432 and 308; a file
// without a header that begins with these is not recognized. Else the user says how wide tokens
// are.
#include "tokens/block.h"

#include "base/file.h"

enum { HEADER_BYTES = 1024, MAGIC = 20240520, VERSION = 1 };

static uint32_t little_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

bel_status *bel_token_block_find(const bel_file_view *view, const char *path, bool wide,
                                 bel_token_block *out_block)
{
    bool headed = view->size >= HEADER_BYTES && little_endian(view->data) == MAGIC;
    size_t bytes = headed ? view->size - HEADER_BYTES : view->size;
    const void *tokens = headed ? view->data + HEADER_BYTES : view->data;
    int width = headed || !wide ? 2 : 4;
    int64_t count = (int64_t)(bytes / (size_t)width);
    *out_block = (bel_token_block){tokens, width, count};
    if (headed && little_endian(view->data + 4) != VERSION) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected version %d of llm.c's header, got %u", path,
                       VERSION, (unsigned)little_endian(view->data + 4));
    }
    if (headed && little_endian(view->data + 8) != count) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: its header promises %u tokens, and %lld follow", path,
                       (unsigned)little_endian(view->data + 8), (long long)count);
    }
    if (bytes % (size_t)width == 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected tokens of %d bytes, got %zu bytes; hint: %s", path,
                   width, bytes,
                   wide ? "without --wide_tokens they are 2 bytes"
                        : "a text is read with --input_format text");
}

static void put_number(unsigned char *out, uint32_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(number >> (8 * i));
}

bel_status *bel_token_block_write(const char *path, const bel_token_list *list, bool narrow)
{
    enum { TOGETHER = 16384 };
    unsigned char header[HEADER_BYTES] = {0}, bytes[4 * TOGETHER];
    int width = narrow ? 2 : 4;
    bel_file_writer *writer;
    if (narrow && list->count > INT32_MAX) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "a file with a header has at most %d tokens, got %zu; hint: encode the files "
            "in several parts",
            INT32_MAX, list->count);
    }
    put_number(header, MAGIC, 4);
    put_number(header + 4, VERSION, 4);
    put_number(header + 8, (uint32_t)list->count, 4);
    BEL_TRY(bel_file_writer_open_beside(path, &writer));
    if (narrow) bel_file_writer_write(writer, header, sizeof header);
    for (size_t i = 0, first = 0; i < list->count; i++) {
        put_number(bytes + (i - first) * (size_t)width, (uint32_t)list->items[i], width);
        if (i + 1 - first < TOGETHER && i + 1 < list->count) continue;
        bel_file_writer_write(writer, bytes, (i + 1 - first) * (size_t)width);
        first = i + 1;
    }
    return bel_file_writer_finish(writer, NULL, NULL);
}
