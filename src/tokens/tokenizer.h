// Internals of a tokenizer: its vocabulary, how a text becomes first symbols, and its merges.
#ifndef BELFRY_TOKENS_TOKENIZER_H
#define BELFRY_TOKENS_TOKENIZER_H

#include "base/arena.h"
#include "base/index.h"
#include "belfry/tokens.h"

typedef struct bel_str bel_str; // base/str.h

#define BEL_END_OF_TEXT "<|endoftext|>"

typedef struct bel_token {
    const char *bytes; // NULL: no token has this number
    size_t size;
    bool special; // `bytes` is its name, and it has no text
} bel_token;

typedef struct bel_merge {
    int left, right, result;
} bel_merge;

// Immutable once made.
struct bel_tokenizer {
    bel_arena *arena; // bytes of the tokens
    bel_token *tokens;
    size_t token_count, token_capacity;
    bel_index by_bytes; // hash of the bytes of a token that is not special -> its number
    bool by_character;  // first symbols are characters; else bytes
    bool splits;        // into pieces (split.h); else a document is one piece
    int first[256];     // token of each byte, unless by_character
    bel_merge *merges;  // best first
    size_t merge_count, merge_capacity;
    bel_index by_pair; // hash of the two parts of a merge -> its number
    int end;           // -1: no such token
};

// Makes an empty one.
bel_tokenizer *bel_tokenizer_create(bool by_character, bool splits);

// Makes the 256 bytes tokens, in the order of GPT-2's: those that are printable first.
void bel_tokenizer_add_bytes(bel_tokenizer *tokenizer);

// Sets token `number`. DATA_LOSS: the number is taken or beyond 2^22, or the bytes are another's.
bel_status *bel_tokenizer_set(bel_tokenizer *tokenizer, int64_t number, const char *bytes,
                              size_t size, bool special) BEL_MUST_USE;

// Returns the token with these bytes; -1: no token has them.
int bel_tokenizer_find(const bel_tokenizer *tokenizer, const char *bytes, size_t size);

// Adds a merge after the others. DATA_LOSS: their joined bytes are no token.
bel_status *bel_tokenizer_add_merge(bel_tokenizer *tokenizer, int left, int right) BEL_MUST_USE;

// Returns the number of the merge of a pair; -1: the pair is not merged.
int bel_tokenizer_merge_of(const bel_tokenizer *tokenizer, int left, int right);

// Completes a byte-level tokenizer whose tokens are set. DATA_LOSS: a byte is no token.
bel_status *bel_tokenizer_finish(bel_tokenizer *tokenizer, const char *source) BEL_MUST_USE;

// The character that stands for a byte in files of vocabularies (GPT-2's bytes_to_unicode), and
// the byte of a character; -1: it stands for no byte.
uint32_t bel_token_character_of(unsigned char byte);
int bel_token_byte_of(uint32_t character);

// Appends the text of tokenizer.json.
void bel_tokenizer_write(const bel_tokenizer *tokenizer, bel_str *out);

// The digest of that text, which a training keeps among its parameters.
enum { BEL_TOKENIZER_DIGEST = 33 }; // bytes of the text
void bel_tokenizer_digest(const bel_tokenizer *tokenizer, char out_digest[BEL_TOKENIZER_DIGEST]);

// Opens the file of a training's tokenizer. FAILED_PRECONDITION: it has another digest.
bel_status *bel_tokenizer_open_same(const char *path, const char *digest,
                                    bel_tokenizer **out_tokenizer) BEL_MUST_USE;

// Parses the files of a vocabulary; `source` and the paths are for messages.
bel_status *bel_tokenizer_read_json(const char *path, bel_tokenizer **out_tokenizer) BEL_MUST_USE;
bel_status *bel_tokenizer_read_gpt2(const char *folder, bel_tokenizer **out_tokenizer) BEL_MUST_USE;

#endif
