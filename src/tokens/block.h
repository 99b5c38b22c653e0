// Tokens of a file, as nanoGPT and llm.c write them.
#ifndef BELFRY_TOKENS_BLOCK_H
#define BELFRY_TOKENS_BLOCK_H

#include "input/files/file_view.h"
#include "tokens/encoder.h"

// Points into a file's view. The file is little-endian, as are the processors that Belfry runs on.
typedef struct bel_token_block {
    const void *tokens;
    int width; // bytes of a token, 2 or 4
    int64_t count;
} bel_token_block;

// Finds the tokens of an opened file. `wide`: without a header they are uint32, else uint16.
// DATA_LOSS: another version in the header, or its number of tokens is not that of the file, which
// has a part of a token.
bel_status *bel_token_block_find(const bel_file_view *view, const char *path, bool wide,
                                 bel_token_block *out_block) BEL_MUST_USE;

// Writes a file of tokens: `narrow`: below 65,536, with llm.c's header; else uint32 without a
// header. INVALID_ARGUMENT: a header cannot hold their number.
bel_status *bel_token_block_write(const char *path, const bel_token_list *list,
                                  bool narrow) BEL_MUST_USE;

static inline int64_t bel_token_block_at(const bel_token_block *block, int64_t index)
{
    return block->width == 2 ? (int64_t)((const uint16_t *)block->tokens)[index]
                             : (int64_t)((const uint32_t *)block->tokens)[index];
}

#endif
