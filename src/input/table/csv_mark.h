// Mark of rows of a followed set of CSV files: it tells them from those of other files, and says
// where the next row begins. Checkpoints and setups of workers have it as text:
//   4000 rows, 81205 bytes, 4001 lines, 9a0c11d3aa120b41
//   400 rows, 4071 bytes, 201 lines, 62fd08bb20a9b7e4, 8 rows of 2 files 0f5ca38ee2b1d970 before c
#ifndef BELFRY_INPUT_TABLE_CSV_MARK_H
#define BELFRY_INPUT_TABLE_CSV_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "input/files/file_view.h"

typedef struct bel_str bel_str; // base/str.h

typedef struct bel_csv_mark {
    int64_t rows;         // at least one
    int64_t bytes, lines; // in the file with the last of them, up to the end of that row
    uint64_t hash;        // covers the first and last 64 KiB of these bytes, and `before`
    // For files that appear:
    int64_t rows_before, files_before; // those before that file
    uint64_t before;                   // hash of those files; not used without one
    const char *name;                  // the file's, in the text; NULL: a file that grows
} bel_csv_mark;

// Bytes at each end of a file that a hash contains.
enum { BEL_CSV_MARKED = BEL_GROWING_HEAD };

// The hash of a mark whose bytes the view shows.
uint64_t bel_csv_mark_hash(const bel_csv_mark *mark, const bel_file_view *view);

void bel_csv_mark_write(const bel_csv_mark *mark, bel_str *out_text);

// False: the text is no mark of this form.
bool bel_csv_mark_read(const char *text, bel_csv_mark *out_mark);

// The same for a file that grows in the form of earlier versions, without lines: `bytes` and
// `hash` leave out a byte order mark, and the bytes end with the last row's first line feed.
//   4000 rows, 81205 bytes, 9a0c11d3aa120b41
bool bel_csv_mark_read_old(const char *text, bel_csv_mark *out_mark);

// The hash of such a mark whose bytes begin at `text`.
uint64_t bel_csv_mark_hash_old(const bel_csv_mark *mark, const char *text);

#endif
