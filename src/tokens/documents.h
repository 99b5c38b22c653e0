// Documents of files: each file, or each line of a JSONL file. And what is done with all of them:
// their tokens, the characters that occur, and merges that are learned from them.
#ifndef BELFRY_TOKENS_DOCUMENTS_H
#define BELFRY_TOKENS_DOCUMENTS_H

#include "base/thread.h"
#include "input/files/file_view.h"
#include "tokens/encoder.h"

typedef struct bel_document {
    const char *text;
    size_t size;
    const char *path;
    int64_t line; // from 1 on; 0: the document is the file
} bel_document;

// Documents in their order, which is that of the files. Zero to begin; immutable once opened.
typedef struct bel_documents {
    bel_arena *arena; // paths, and texts of JSONL
    bel_file_view *views;
    const char *const *paths;
    int file_count;
    bel_document *items;
    size_t count, capacity;
    uint64_t size_bytes; // size of the files, unpacked
    uint64_t content;    // hash of their bytes
} bel_documents;

// Opens the files that the paths or patterns name. `key` NULL: a document for each file; else JSONL
// with the text in this member. Close also after a failure. Errors: NOT_FOUND, those of
// bel_file_view_open; DATA_LOSS: a line is no object with such a text (its place is named).
bel_status *bel_documents_open(bel_documents *documents, const char *const *paths, int path_count,
                               const char *key) BEL_MUST_USE;
void bel_documents_close(bel_documents *documents);

// For a source's check, with the errors of bel_file_view_check.
bel_status *bel_documents_check(const bel_documents *documents, int64_t block) BEL_MUST_USE;

// Appends the tokens of documents [first, first + count), each followed by the tokenizer's end,
// computed by the team. Errors: those of bel_encoder_encode, with the document's place.
bel_status *bel_documents_encode(const bel_documents *documents, size_t first, size_t count,
                                 const bel_tokenizer *tokenizer, bel_team *team,
                                 bel_token_list *out_list) BEL_MUST_USE;

// Makes a tokenizer of the characters that occur, ordered by their numbers, and the end. DATA_LOSS:
// a text is no UTF-8, or has a zero byte (its place is named).
bel_status *bel_documents_characters(const bel_documents *documents,
                                     bel_tokenizer **out_tokenizer) BEL_MUST_USE;

// Learns merges until the vocabulary has `size` tokens (bytes, merges and the end), or no pair
// occurs twice. The result does not depend on the team. INVALID_ARGUMENT: size is below 257.
bel_status *bel_documents_train(const bel_documents *documents, int64_t size, bel_team *team,
                                bel_tokenizer **out_tokenizer) BEL_MUST_USE;

#endif
