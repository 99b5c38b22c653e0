// Files of a checkpoint to and from a process that does not see the model's folder: whoever needs a
// file asks for it, piece by piece, over the control stream, and has it when its size and CRC-32C
// are right. The two ends are alike: a shard asks the master for what it loads, the master asks a
// shard for what that has written. One thread.
#ifndef BELFRY_FETCH_FETCH_H
#define BELFRY_FETCH_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"
#include "wire/message.h"

typedef struct bel_fetch bel_fetch;

// A file of the checkpoint of `step`, which goes to folder/name; bel_fetch_destroy unless it is
// whole leaves nothing there. The folder is there. Errors of files.
bel_status *bel_fetch_begin(const char *folder, int64_t step, const char *name,
                            bel_fetch **out_fetch) BEL_MUST_USE;
void bel_fetch_destroy(bel_fetch *fetch); // NULL is fine

// The next request to send; false: enough are under way. *out_request points into the fetch.
bool bel_fetch_next(bel_fetch *fetch, Bel__Fetch *out_request);
// What was asked for over a connection that has broken is asked for again; what has come stays.
void bel_fetch_again(bel_fetch *fetch);

// True when it is of this file.
bool bel_fetch_is_of(const bel_fetch *fetch, int64_t step, const char *name);
// Takes a piece of it; one that was asked for before and has come already is passed over. The
// error of the other end, or INVALID_ARGUMENT: a piece that was not asked for.
bel_status *bel_fetch_take(bel_fetch *fetch, const Bel__Piece *piece) BEL_MUST_USE;
bool bel_fetch_is_whole(const bel_fetch *fetch);
// Puts the whole file, synced, into its place. DATA_LOSS, and nothing is there: it has another size
// or checksum than expected. Negative size: any.
bel_status *bel_fetch_end(bel_fetch *fetch, int64_t size, uint32_t crc32c) BEL_MUST_USE;

// The answer to a request, from the checkpoints below `folder`: data, or code and text. Send it,
// then free what it holds with bel_fetch_free_answer.
void bel_fetch_answer(const char *folder, Bel__Fetch *request, Bel__Piece *out_piece);
void bel_fetch_free_answer(Bel__Piece *piece);

#endif
