// Files of consecutive records, with an index of the records' offsets that is built once, at
// opening. It finds any record by its number.
#ifndef BELFRY_INPUT_SOURCE_RECORD_FILES_H
#define BELFRY_INPUT_SOURCE_RECORD_FILES_H

#include "base/arena.h"
#include "input/files/file_view.h"
#include "input/files/offset_list.h"
#include "input/source/source.h"

typedef struct bel_indexed_file {
    const char *path;
    bel_file_view view;
    bel_offset_list starts; // offset of each record's first byte
} bel_indexed_file;

// Immutable once opened. Zero-initialize to begin.
typedef struct bel_record_files {
    bel_indexed_file *items;
    int64_t *first_record; // [count], each file's
    int count;
} bel_record_files;

// Fills file->starts with the offsets of an opened file's records.
typedef bel_status *bel_record_files_index(bel_indexed_file *file);

// Opens the files that the paths or patterns name, in order. Sets the source's record_count,
// size_bytes and content. Close also after a failure. Errors: NOT_FOUND, those of `index`.
bel_status *bel_record_files_open(bel_record_files *files, bel_arena *arena,
                                  const char *const *paths, int path_count,
                                  bel_record_files_index *index, bel_source *source) BEL_MUST_USE;
void bel_record_files_close(bel_record_files *files);

// The file of record `number`; *out_index is the record's index in the file.
const bel_indexed_file *bel_record_files_find(const bel_record_files *files, int64_t number,
                                              size_t *out_index);

// Runs a step of fetching a record before it is read (batch/ahead.h).
void bel_record_files_ahead(const bel_record_files *files, int64_t number, int step);

// For a source's check, with the errors of bel_file_view_check.
bel_status *bel_record_files_check(const bel_record_files *files, int64_t block) BEL_MUST_USE;

#endif
