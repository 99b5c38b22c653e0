// Transfer of checkpoint files to or from a process that does not see the model folder. The
// receiver requests a file piece by piece over the control stream, and has it when size and CRC-32C
// are correct. Both directions work alike: a shard requests the files that it loads from the
// master, and the master requests the files that a shard has written. One thread.
#ifndef BELFRY_FETCH_FETCH_H
#define BELFRY_FETCH_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"
#include "wire/message.h"

typedef struct bel_fetch bel_fetch;

// Begins a transfer of a file of the checkpoint of `step` to folder/name; the folder must exist.
// bel_fetch_destroy removes an incomplete file. File errors.
bel_status *bel_fetch_begin(const char *folder, int64_t step, const char *name,
                            bel_fetch **out_fetch) BEL_MUST_USE;
void bel_fetch_destroy(bel_fetch *fetch); // NULL is fine

// Returns the next request to send; false: enough are outstanding. *out_request points into the
// fetch.
bool bel_fetch_next(bel_fetch *fetch, Bel__Fetch *out_request);
// After a broken connection: repeats the outstanding requests; received pieces are kept.
void bel_fetch_again(bel_fetch *fetch);

// True if it belongs to this file.
bool bel_fetch_is_of(const bel_fetch *fetch, int64_t step, const char *name);
// Stores a received piece; ignores a repeated one. Returns the other end's error, or
// INVALID_ARGUMENT: an unrequested piece.
bel_status *bel_fetch_take(bel_fetch *fetch, const Bel__Piece *piece) BEL_MUST_USE;
bool bel_fetch_is_whole(const bel_fetch *fetch);
// Syncs the complete file and moves it to its place. DATA_LOSS: wrong size or checksum, and no file
// is left. Negative size: any.
bel_status *bel_fetch_end(bel_fetch *fetch, int64_t size, uint32_t crc32c) BEL_MUST_USE;

// Makes the answer to a request, from the checkpoints below `folder`: data, or code and text. Send
// it, then free its content with bel_fetch_free_answer.
void bel_fetch_answer(const char *folder, Bel__Fetch *request, Bel__Piece *out_piece);
void bel_fetch_free_answer(Bel__Piece *piece);

#endif
