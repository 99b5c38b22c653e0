// Splits a text into the pieces inside of which a tokenizer merges: the pattern of GPT-2 (Radford
// et al. 2019, encoder.py),
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#ifndef BELFRY_TOKENS_SPLIT_H
#define BELFRY_TOKENS_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Classes of characters in the pattern. \s is Unicode's property White_Space.
typedef enum bel_text_class {
    BEL_TEXT_OTHER,
    BEL_TEXT_LETTER,
    BEL_TEXT_NUMBER,
    BEL_TEXT_SPACE,
} bel_text_class;

bel_text_class bel_text_class_of(uint32_t character);

// Returns the bytes of the character at `text`, and the character; a byte that is no part of valid
// UTF-8 counts as one character, 0x110000, of class OTHER. size > 0.
size_t bel_text_character(const char *text, size_t size, uint32_t *out_character);

// Returns the bytes of the first piece of a text; size > 0.
size_t bel_text_piece(const char *text, size_t size);

#endif
