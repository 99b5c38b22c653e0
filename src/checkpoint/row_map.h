// Rows of a table read in place, from the mapped files of a checkpoint, without loading them. A
// file's rows are in order of keys, so a row is found by bisection. In memory stays one key of 512.
#ifndef BELFRY_CHECKPOINT_ROW_MAP_H
#define BELFRY_CHECKPOINT_ROW_MAP_H

#include "checkpoint/table.h"

// Immutable once opened, so thread-safe. It does not need its reader, and stays when the files are
// removed. A disk that fails while a row is read ends the process by a signal.
typedef struct bel_ckpt_row_map bel_ckpt_row_map;

// Maps the rows and removed keys that the checkpoint's files have; of a delta not those of its base
// (bel_ckpt_base_reader). NOT_FOUND: no such table. DATA_LOSS: another width, keys do not ascend, a
// file is corrupt, or it cannot be mapped. Destroy with bel_ckpt_row_map_destroy.
bel_status *bel_ckpt_row_map_open(const bel_ckpt_reader *reader, const char *name, int width,
                                  bel_ckpt_row_map **out_map) BEL_MUST_USE;
void bel_ckpt_row_map_destroy(bel_ckpt_row_map *map); // accepts NULL

// Copies the values of a key's row; false: it has none here.
bool bel_ckpt_row_map_get(const bel_ckpt_row_map *map, int64_t key, float *out_values);

// Whether a delta removes the key.
bool bel_ckpt_row_map_removes(const bel_ckpt_row_map *map, int64_t key);

// Rows, and removed keys, that the map has.
int64_t bel_ckpt_row_map_count(const bel_ckpt_row_map *map);
int64_t bel_ckpt_row_map_removed(const bel_ckpt_row_map *map);

// Checks that the rows of a delta's map fit its base, so that both have `all` rows together. A key
// that is removed has a row in the base and none here. DATA_LOSS.
bel_status *bel_ckpt_row_map_check(const bel_ckpt_row_map *delta, const bel_ckpt_row_map *base,
                                   int64_t all) BEL_MUST_USE;

#endif
