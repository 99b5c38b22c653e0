// Lines of text files. A line ends before the start of the next one, so a record is found and
// copied without a search for its end. The last line may lack its line break, and no line follows
// the last break.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "input/source/record_files.h"

typedef struct text_source {
    bel_source base;
    bel_arena *arena;
    bel_record_files files;
    bel_source_field field;
} text_source;

static bel_status *text_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    size_t line;
    const bel_indexed_file *file =
        bel_record_files_find(&((const text_source *)base)->files, number, &line);
    const char *start = file->view.data + bel_offset_list_at(&file->starts, line);
    const char *end = file->view.data + file->view.size;
    if (line + 1 < file->starts.count)
        end = file->view.data + bel_offset_list_at(&file->starts, line + 1);
    if (end > start && end[-1] == '\n') {
        end--;
        if (end > start && end[-1] == '\r') end--;
    }
    char *text = bel_sink_place(sink, base, 0, end - start);
    if (end > start) memcpy(text, start, (size_t)(end - start));
    return NULL;
}

static void text_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    size_t line;
    const bel_indexed_file *file =
        bel_record_files_find(&((const text_source *)base)->files, number, &line);
    bel_str_printf(out_text, "%s:%zu", file->path, line + 1);
}

static void text_ahead(const bel_source *base, int64_t number, int step)
{
    bel_record_files_ahead(&((const text_source *)base)->files, number, step);
}

static bel_status *text_check(const bel_source *base, int64_t block)
{
    return bel_record_files_check(&((const text_source *)base)->files, block);
}

static void text_describe(const bel_source *base, bel_str *out_text)
{
    (void)base; // its content says everything
    (void)out_text;
}

static void text_destroy(bel_source *base)
{
    text_source *source = (text_source *)base;
    bel_record_files_close(&source->files);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind text_kind = {
    .name = "text",
    .check = text_check,
    .read = text_read,
    .ahead = text_ahead,
    .origin = text_origin,
    .describe = text_describe,
    .destroy = text_destroy,
};

static bel_status *index_lines(bel_indexed_file *file)
{
    const char *data = file->view.data, *end = data + file->view.size;
    const char *line = data + bel_utf8_mark_bytes(data, file->view.size);
    while (line < end) {
        BEL_TRY_CTX(bel_offset_list_append(&file->starts, &(int64_t){line - data}, 1), "%s",
                    file->path);
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        line = stop == NULL ? end : stop + 1;
    }
    return NULL;
}

static bel_status *open_files(text_source *source, const bel_text_description *description)
{
    BEL_TRY(bel_record_files_open(&source->files, source->arena, description->paths,
                                  description->path_count, index_lines, &source->base));
    if (source->base.record_count > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected lines of text, got none",
                   source->files.items[0].path);
}

bel_status *bel_source_open_text(const bel_text_description *description, bel_source **out_source)
{
    text_source *source = bel_xcalloc(1, sizeof *source);
    source->arena = bel_arena_create();
    source->field = (bel_source_field){
        .name = BEL_TEXT_FIELD, .dtype = BEL_DTYPE_STRING, .shape = BEL_SHAPE(-1)};
    source->base.kind = &text_kind;
    source->base.fields = &source->field;
    source->base.field_count = 1;
    bel_status *status = open_files(source, description);
    if (status != NULL) {
        text_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
