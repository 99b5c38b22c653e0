// View of a file's bytes, for random access by any thread.
#ifndef BELFRY_INPUT_FILES_FILE_VIEW_H
#define BELFRY_INPUT_FILES_FILE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/files/unpacked_file.h"
#include "store/cache.h"
#include "store/partial.h"

// Immutable once opened. No zero byte follows `data`.
typedef struct bel_file_view {
    const char *data;
    size_t size;
    void *memory; // to unmap or free
    bool mapped;
    // For a file that grows; 0 and NULL for others:
    size_t reserved; // bytes of the mapping, of which the file has `size`
    uint64_t base;   // offset of `data` in the file
    char *head;      // its first BEL_GROWING_HEAD bytes

    bel_file_version version;     // the file's, if it is a regular file
    uint64_t sample;              // hash of some of the file's bytes, if the file itself is mapped
    bel_host_file mapped_instead; // the unpacked file, or the copy of an object
    bel_partial *partial;         // the copy of which a part may be absent; NULL: all is present
    uint64_t identity;            // names the object's state, and so its bytes; 0: the bytes do
} bel_file_view;

// Opens a file, or an object by its URL (store/store.h), whose copy on this host is mapped. A plain
// file is mapped, so that only the pages in use are read. It must not become
// shorter while it is open: reading past its new end is a bus error. A packed file (with gzip's
// magic) of at most BEL_UNPACKED_IN_MEMORY unpacked bytes is unpacked into memory. A larger one is
// unpacked into a file that is mapped (unpacked_file.h). A pipe is read into memory. One log line
// reports each of these. Errors: those of bel_file_read, bel_unpacked_file_open and
// bel_store_copy_open.
enum { BEL_UNPACKED_IN_MEMORY = 256 << 20 };
bel_status *bel_file_view_open(const char *path, bel_file_view *out_view) BEL_MUST_USE;

// The same for a reader that calls bel_file_view_need before it reads bytes, and
// bel_file_view_content for their hash: a large object may be copied while it is read.
bel_status *bel_file_view_open_partial(const char *path, bel_file_view *out_view) BEL_MUST_USE;

// Waits until the range is present. Errors: those of bel_partial_need, but ABORTED instead of codes
// that tell of a bad record (source/bad_records.h): a store's error leaves out none.
bel_status *bel_file_view_need_partial(const bel_file_view *view, uint64_t offset,
                                       uint64_t size) BEL_MUST_USE;
static inline bel_status *bel_file_view_need(const bel_file_view *view, uint64_t offset,
                                             uint64_t size)
{
    return view->partial == NULL ? NULL : bel_file_view_need_partial(view, offset, size);
}
// Begins to fetch the range if it is absent, and returns at once.
static inline void bel_file_view_want(const bel_file_view *view, uint64_t offset, uint64_t size)
{
    if (view->partial != NULL) bel_partial_want(view->partial, offset, size);
}

// Continues a hash by the view's bytes. For one of bel_file_view_open_partial the size and tag of a
// large object stand for them, so that they need not be read.
uint64_t bel_file_view_content(const bel_file_view *view, uint64_t hash);

// Maps a plain file that grows, through a window of BEL_GROWING_ROOM bytes: `data` stays where it
// is until the window is moved. INVALID_ARGUMENT: a URL, a pipe or a packed file.
#define BEL_GROWING_ROOM ((size_t)1 << 38)
enum { BEL_GROWING_HEAD = 64 << 10 };
bel_status *bel_file_view_open_growing(const char *path, bel_file_view *out_view) BEL_MUST_USE;
// Sets `size` to that of the file in the window. DATA_LOSS: the file became shorter, was removed,
// holds other bytes, or another one has its name. Others: the file cannot be looked at now. One
// thread at a time, bel_file_view_check of the same view included.
bel_status *bel_file_view_grow(bel_file_view *view, const char *path) BEL_MUST_USE;
// Moves the window, so that it begins at most BEL_GROWING_HEAD bytes and a page before byte `from`
// of the file, and not after that. Pointers into `data` become invalid; the view is as it was after
// an error. Also sets `size`. NOT_FOUND: the file has fewer bytes. Other errors: those of
// bel_file_view_grow. No other thread may use the view.
bel_status *bel_file_view_move(bel_file_view *view, const char *path, uint64_t from) BEL_MUST_USE;

// Hash of the first `piece` bytes, at most BEL_GROWING_HEAD, and of the last `piece` bytes before
// byte `end` of the file, which the window shows.
uint64_t bel_file_view_ends(const bel_file_view *view, uint64_t end, size_t piece);

// Maps a file of this host's cache, which is made first if it does not exist. Errors: those of
// bel_cache_open.
bel_status *bel_file_view_open_made(const bel_cache_request *request,
                                    bel_file_view *out_view) BEL_MUST_USE;
// Begins to copy the objects among these paths, all at once, before each is opened.
void bel_file_views_begin(const char *const *paths, int count);
// Replaces the view of a packed file by a view of the unpacked bytes. Errors as above.
bel_status *bel_file_view_unpack(bel_file_view *view, const char *path) BEL_MUST_USE;
void bel_file_view_close(bel_file_view *view); // accepts a zeroed view

// Waits until all bytes of a partial view are compared with their checksum, as bel_partial_finish.
// *out_compared is true for other views. ABORTED: they do not match.
bel_status *bel_file_view_finish(const bel_file_view *view, int64_t deadline_ns,
                                 bool *out_compared) BEL_MUST_USE;

// Call before reading. ABORTED: an object that is being copied has changed, or its bytes do not
// match their checksum. DATA_LOSS: the mapped file became shorter, holds other bytes or was removed
// (a restarted process could not read it). A file that was replaced by another one of its name
// passes, since the old one is still mapped. A growing file that was replaced does not pass, as its
// rows would come from the new one.
bel_status *bel_file_view_check(const bel_file_view *view, const char *path) BEL_MUST_USE;

// The same for a file or object that was read as a whole and must stay as it is: DATA_LOSS also if
// it became longer, or was replaced. It asks the store for an object. Other errors may pass.
bel_status *bel_file_view_check_whole(const bel_file_view *view, const char *path) BEL_MUST_USE;

// The path of the mapped file that contains an address, for a handler of bus errors. NULL: no known
// file. Safe in signal handlers. The text is valid until the file is closed. A long path lacks its
// beginning.
const char *bel_file_view_at(const void *address);

// Selects the files to check before block `block`: those from the result to *out_end - 1, of
// `count`. With many files a block checks only some, in turn, since each check costs a system call.
int bel_file_view_turn(int64_t block, int count, int *out_end);

#endif
