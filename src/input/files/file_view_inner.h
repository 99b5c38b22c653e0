// Parts of file views that files which grow share with all others.
#ifndef BELFRY_INPUT_FILES_FILE_VIEW_INNER_H
#define BELFRY_INPUT_FILES_FILE_VIEW_INNER_H

#include "input/files/file_view.h"

struct stat;

// Makes a mapping known to bel_file_view_at, until it is forgotten.
void bel_file_view_note(const char *start, size_t size, const char *path);
void bel_file_view_forget(const char *start);

bel_file_version bel_file_view_version(const struct stat *info);

// bel_file_view_check of a file that grows.
bel_status *bel_file_view_check_growing(const bel_file_view *view, const char *path) BEL_MUST_USE;

#endif
