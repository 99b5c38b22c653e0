// Encoder: turns texts into tokens, with memory that one thread reuses.
#ifndef BELFRY_TOKENS_ENCODER_H
#define BELFRY_TOKENS_ENCODER_H

#include "tokens/tokenizer.h"

// List of tokens; zeros: empty.
typedef struct bel_token_list {
    int32_t *items;
    size_t count, capacity;
} bel_token_list;

void bel_token_list_add(bel_token_list *list, int token);

typedef struct bel_encoder bel_encoder;
bel_encoder *bel_encoder_create(const bel_tokenizer *tokenizer); // which must outlive it
void bel_encoder_destroy(bel_encoder *encoder);                  // accepts NULL

// Appends the tokens of a text. Stops after the piece with which the list has more than `most`
// tokens (SIZE_MAX: never), and ignores the rest of the text. DATA_LOSS: the vocabulary lacks a
// character; the message has its place in the text. The list then has the tokens before it.
bel_status *bel_encoder_encode(bel_encoder *encoder, const char *text, size_t size, size_t most,
                               bel_token_list *out_list) BEL_MUST_USE;

#endif
