// The bytes of a file, readable at any place by any thread.
#ifndef BELFRY_INPUT_FILE_VIEW_H
#define BELFRY_INPUT_FILE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/unpacked_file.h"

// Immutable once opened. No zero byte stands behind `data`.
typedef struct bel_file_view {
    const char *data;
    size_t size;
    void *memory; // what to give back
    bool mapped;
    bel_file_version version;   // of the file itself, where it is a regular one
    uint64_t sample;            // hash of some bytes of a file that is mapped itself
    bel_unpacked_file unpacked; // what is mapped instead of it
} bel_file_view;

// Plain files are mapped, so that only what is asked for is read; the file must not become shorter
// while it is open: reading what has gone is a bus error. Packed files (with gzip's magic) are
// unpacked into memory up to BEL_UNPACKED_IN_MEMORY bytes, and beyond that into a file that is
// mapped (unpacked_file.h); pipes are read into memory. One log line says so. Errors are those of
// bel_file_read and bel_unpacked_file_open.
enum { BEL_UNPACKED_IN_MEMORY = 256 << 20 };
bel_status *bel_file_view_open(const char *path, bel_file_view *out_view) BEL_MUST_USE;
// What was opened turns out to be packed: what it becomes takes its place. Errors as above.
bel_status *bel_file_view_unpack(bel_file_view *view, const char *path) BEL_MUST_USE;
void bel_file_view_close(bel_file_view *view); // a zeroed view is fine

// Before reading: DATA_LOSS when the mapped file has become shorter, holds other bytes, or has gone
// (a process that is started again could not read it). A file that was replaced by another of its
// name is still mapped, and passes.
bel_status *bel_file_view_check(const bel_file_view *view, const char *path) BEL_MUST_USE;

// The path of the mapped file in which an address lies, as a handler of bus errors asks; NULL: in
// none that is known. Safe in signal handlers. The text stays until the file is closed; long paths
// have lost their beginning.
const char *bel_file_view_at(const void *address);

// Which of `count` files are looked at before block `block`, from the result to *out_end - 1. Of
// many only some at a time, all in turn: looking at one costs a system call.
int bel_file_view_turn(int64_t block, int count, int *out_end);

#endif
