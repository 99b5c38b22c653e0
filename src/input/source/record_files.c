// Common part of text and TFRecord sources. A file without records is valid and gets no record
// numbers. All bytes are hashed at opening, so that processes can prove that they read the same
// data. Objects of stores are copied first, all at once.
#include "input/source/record_files.h"

#include "base/hash.h"
#include "input/files/fetch_ahead.h"
#include "input/files/paths.h"

bel_status *bel_record_files_open(bel_record_files *files, bel_arena *arena,
                                  const char *const *paths, int path_count,
                                  bel_record_files_index *index, bel_source *source)
{
    const char *const *found;
    int count;
    BEL_TRY(bel_paths_expand(arena, paths, path_count, &found, &count));
    bel_file_views_begin(found, count);
    files->items = bel_arena_alloc(arena, (size_t)count * sizeof *files->items);
    files->first_record = bel_arena_alloc(arena, (size_t)count * sizeof *files->first_record);
    while (files->count < count) {
        bel_indexed_file *file = &files->items[files->count];
        file->path = found[files->count];
        files->first_record[files->count++] = source->record_count;
        BEL_TRY(bel_file_view_open(file->path, &file->view));
        BEL_TRY(index(file));
        source->record_count += (int64_t)file->starts.count;
        source->size_bytes += file->view.size;
        source->content = bel_hash64_more(source->content, file->view.data, file->view.size);
    }
    return NULL;
}

void bel_record_files_close(bel_record_files *files)
{
    for (int i = 0; i < files->count; i++) {
        bel_offset_list_deinit(&files->items[i].starts);
        bel_file_view_close(&files->items[i].view);
    }
    *files = (bel_record_files){0};
}

const bel_indexed_file *bel_record_files_find(const bel_record_files *files, int64_t number,
                                              size_t *out_index)
{
    size_t file = bel_last_at_most(files->first_record, (size_t)files->count, number);
    *out_index = (size_t)(number - files->first_record[file]);
    return &files->items[file];
}

void bel_record_files_ahead(const bel_record_files *files, int64_t number, int step)
{
    size_t index;
    if (step == 0) return;
    const bel_indexed_file *file = bel_record_files_find(files, number, &index);
    bel_ahead_fetch_record(&file->starts, index, step, file->view.data, file->view.size);
}

bel_status *bel_record_files_check(const bel_record_files *files, int64_t block)
{
    int end, first = bel_file_view_turn(block, files->count, &end);
    for (int i = first; i < end; i++)
        BEL_TRY(bel_file_view_check(&files->items[i].view, files->items[i].path));
    return NULL;
}
