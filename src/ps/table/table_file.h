// File of the records that a table has no room for in memory. It has no name: it goes when the
// process ends, however it ends.
//
// A record is written to the next free cell of a segment, with its row number and a checksum, and
// never changed there. Records that are written together are neighbors, so a batch costs one write.
// A record that is read for an update is dropped, and its cell becomes free with all others of its
// segment. When more than half of the cells have no record, or more than an eighth if few segments
// are left, the segment with the fewest is emptied: its records are written again, elsewhere.
//
// Reads use the system's cache: those that it has first, while the disk reads the others, all at
// once. Thread rule: several threads may fetch, also while one thread appends and drops, except
// that a cell which is dropped meanwhile may have another record.
#ifndef BELFRY_PS_TABLE_TABLE_FILE_H
#define BELFRY_PS_TABLE_TABLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sort.h"
#include "belfry/status.h"

#define BEL_TABLE_CELLS (UINT32_C(1) << 31) // most cells of a file
#define BEL_TABLE_NOBODY UINT32_MAX         // no row has this number

typedef struct bel_table_file bel_table_file;

// Creates the file in a folder, which must exist. `segment_bytes`: about the size of a segment;
// most_cells ≤ BEL_TABLE_CELLS: whole segments of at most that many cells.
// NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED: the folder's path and the reason.
bel_status *bel_table_file_create(const char *folder, size_t record_bytes, size_t segment_bytes,
                                  int64_t most_cells, bel_table_file **out_file) BEL_MUST_USE;
void bel_table_file_destroy(bel_table_file *file);                   // accepts NULL
bel_status *bel_table_file_clear(bel_table_file *file) BEL_MUST_USE; // frees the disk, too

int64_t bel_table_file_segment(const bel_table_file *file); // cells of a segment
int64_t bel_table_file_count(const bel_table_file *file);   // records
int64_t bel_table_file_bytes(const bel_table_file *file);   // the file's

// Writes n records of the given rows, of any number of segments: their cells to *out_cells.
// RESOURCE_EXHAUSTED: a full disk, or no cell; else the system's reason.
bel_status *bel_table_file_append(bel_table_file *file, const uint32_t *rows,
                                  const float *const *records, int64_t n,
                                  uint32_t *out_cells) BEL_MUST_USE;
void bel_table_file_drop(bel_table_file *file, uint32_t cell);

// Called for each record that was read: the number that the caller gave its cell, and the row that
// the cell names, BEL_TABLE_NOBODY if the record is damaged.
typedef bel_status *bel_table_file_take(void *context, uint32_t number, uint32_t row,
                                        const float *record);

// Reads cells, which ascend: keys of `cells` are cells, numbers are the caller's. Any order of the
// calls to `take`. Errors: those of the system, and of `take`.
bel_status *bel_table_file_fetch(const bel_table_file *file, const bel_keyed *cells, int64_t n,
                                 bel_table_file_take *take, void *context) BEL_MUST_USE;

// Names the file and a cell whose record is damaged: DATA_LOSS.
bel_status *bel_table_file_damage(const bel_table_file *file, uint32_t cell) BEL_MUST_USE;

// Empties the segment with the fewest records, if too many cells have none. `is_at`: true if the
// row's record is in that cell; `moved`: it is now in another one, and the old one is dropped.
typedef struct bel_table_file_owner {
    bool (*is_at)(void *context, uint32_t row, uint32_t cell);
    void (*moved)(void *context, uint32_t row, uint32_t cell);
    void *context;
} bel_table_file_owner;
bel_status *bel_table_file_tidy(bel_table_file *file,
                                const bel_table_file_owner *owner) BEL_MUST_USE;

#endif
