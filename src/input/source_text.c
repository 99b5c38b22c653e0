// Lines of text files. Where each line begins is noted once, at opening, 8 bytes a line; a line
// ends before the next one's beginning, so a record is found and copied without looking for its
// end. The line break behind the last line may be missing; there is no line behind the last break.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "input/file_view.h"
#include "input/number_list.h"
#include "input/paths.h"
#include "input/source.h"

typedef struct text_file {
    const char *path;
    bel_file_view view;
    bel_number_list line_starts; // offsets from the view's first byte
} text_file;

typedef struct text_source {
    bel_source base;
    bel_arena *arena;
    text_file *files;
    int64_t *first_record; // of each file
    int file_count;
    bel_source_field field;
} text_source;

static const text_file *find_line(const text_source *source, int64_t number, size_t *out_line)
{
    size_t file = bel_last_at_most(source->first_record, (size_t)source->file_count, number);
    *out_line = (size_t)(number - source->first_record[file]);
    return &source->files[file];
}

static bel_status *text_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    size_t line;
    const text_file *file = find_line((const text_source *)base, number, &line);
    const bel_number_list *starts = &file->line_starts;
    const char *start = file->view.data + starts->items[line];
    const char *end = file->view.data + file->view.size;
    if (line + 1 < starts->count) end = file->view.data + starts->items[line + 1];
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
    const text_file *file = find_line((const text_source *)base, number, &line);
    bel_str_printf(out_text, "%s:%zu", file->path, line + 1);
}

static bel_status *text_check(const bel_source *base, int64_t block)
{
    const text_source *source = (const text_source *)base;
    int end, first = bel_file_view_turn(block, source->file_count, &end);
    for (int i = first; i < end; i++)
        BEL_TRY(bel_file_view_check(&source->files[i].view, source->files[i].path));
    return NULL;
}

static void text_describe(const bel_source *base, bel_str *out_text)
{
    (void)base; // its content says everything
    (void)out_text;
}

static void text_destroy(bel_source *base)
{
    text_source *source = (text_source *)base;
    for (int i = 0; i < source->file_count; i++) {
        bel_number_list_deinit(&source->files[i].line_starts);
        bel_file_view_close(&source->files[i].view);
    }
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind text_kind = {
    .name = "text",
    .check = text_check,
    .read = text_read,
    .origin = text_origin,
    .describe = text_describe,
    .destroy = text_destroy,
};

static bel_status *index_lines(text_file *file)
{
    const char *data = file->view.data, *end = data + file->view.size, *line = data;
    if (file->view.size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0) line += 3;
    while (line < end) {
        BEL_TRY_CTX(bel_number_list_append(&file->line_starts, line - data), "%s", file->path);
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        line = stop == NULL ? end : stop + 1;
    }
    return NULL;
}

static bel_status *open_files(text_source *source, const bel_text_description *description)
{
    const char *const *paths;
    int count;
    BEL_TRY(bel_paths_expand(source->arena, description->paths, description->path_count, &paths,
                             &count));
    source->files = bel_arena_alloc(source->arena, (size_t)count * sizeof *source->files);
    source->first_record =
        bel_arena_alloc(source->arena, (size_t)count * sizeof *source->first_record);
    while (source->file_count < count) {
        text_file *file = &source->files[source->file_count];
        file->path = paths[source->file_count];
        source->first_record[source->file_count++] = source->base.record_count;
        BEL_TRY(bel_file_view_open(file->path, &file->view));
        BEL_TRY(index_lines(file));
        source->base.record_count += (int64_t)file->line_starts.count;
        source->base.size_bytes += file->view.size;
        source->base.content =
            bel_hash64_more(source->base.content, file->view.data, file->view.size);
    }
    if (source->base.record_count > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: expected lines of text, got none", paths[0]);
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
