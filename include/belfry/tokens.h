/// Tokens: texts as numbers, for models of language.
///
/// ```c
/// bel_tokenizer *tokenizer;
/// BEL_TRY(bel_tokenizer_open("gpt2/tokenizer.json", &tokenizer));
/// const bel_token_options texts = {.size = sizeof texts, .paths = (const char *[]){"*.txt"},
///                                  .path_count = 1, .tokenizer = tokenizer, .context = 128};
/// bel_dataset *data = bel_dataset_from_tokens(&texts);
/// ```
///
/// **Thread rule.** A tokenizer is immutable, so thread-safe.
#ifndef BELFRY_TOKENS_H
#define BELFRY_TOKENS_H

#include "belfry/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Vocabulary of byte strings, numbered from 0 on, and the rules that split a text into them;
/// opaque.
typedef struct bel_tokenizer bel_tokenizer;

#define BEL_TOKENS_FIELD "tokens"     ///< The tokens of a context, I64.
#define BEL_TOKEN_BYTES_FIELD "bytes" ///< Bytes of text in the labels of a context, F32.

/// Opens a tokenizer by its name, owned by the caller:
/// - "bytes": a token for each byte, 0 … 255, and the end of a document, 256;
/// - "gpt2:FOLDER": the files vocab.bpe and encoder.json of GPT-2 (Radford et al. 2019);
/// - a path that ends with .json: tokenizer.json of Hugging Face, of type BPE: byte level with the
///   pattern of GPT-2 or without a pattern, or characters without merges.
/// Texts never become special tokens such as <|endoftext|>, even if they contain its letters.
/// Errors: NOT_FOUND; DATA_LOSS: malformed; UNIMPLEMENTED: a rule that is not listed here (named);
/// INVALID_ARGUMENT: another name.
BEL_API bel_status *bel_tokenizer_open(const char *name,
                                       bel_tokenizer **out_tokenizer) BEL_MUST_USE;

BEL_API void bel_tokenizer_destroy(bel_tokenizer *tokenizer); ///< accepts NULL

/// Returns the number of tokens: all are below it.
BEL_API int64_t bel_tokenizer_size(const bel_tokenizer *tokenizer);

/// Returns the token after each document; -1: the vocabulary has none, and documents follow each
/// other without a border.
BEL_API int64_t bel_tokenizer_end(const bel_tokenizer *tokenizer);

/// Returns the token that stands for a hidden one (Devlin et al. 2018): the special token "[MASK]"
/// or "<mask>"; -1: the vocabulary has none. Models then take the number after the last token.
BEL_API int64_t bel_tokenizer_mask(const bel_tokenizer *tokenizer);

/// Returns the bytes of a token, which may be a part of a character; *out_size is their number. A
/// special token, or a number that is no token, has none.
BEL_API const char *bel_tokenizer_bytes(const bel_tokenizer *tokenizer, int64_t token,
                                        size_t *out_size);

/// Returns the tokens of a text of `size` bytes in *out_tokens, and their number. Free them with
/// bel_tokens_free. A byte-level tokenizer takes any bytes. DATA_LOSS: the vocabulary lacks a
/// character (its place is named).
BEL_API bel_status *bel_tokenizer_encode(const bel_tokenizer *tokenizer, const char *text,
                                         size_t size, int64_t **out_tokens,
                                         size_t *out_count) BEL_MUST_USE;
BEL_API void bel_tokens_free(int64_t *tokens); ///< accepts NULL

/// Writes tokenizer.json, which bel_tokenizer_open and Hugging Face's `tokenizers` read.
BEL_API bel_status *bel_tokenizer_save(const bel_tokenizer *tokenizer,
                                       const char *path) BEL_MUST_USE;

/// Form of files with texts or tokens.
typedef enum bel_token_format {
    BEL_TOKENS_TEXT,  ///< a document for each file
    BEL_TOKENS_JSONL, ///< a document for each line, a JSON object with a text
    /// Tokens, little-endian uint16 without a header (nanoGPT), or with the header of llm.c: 256
    /// int32 that begin with 20240520, version 1 and the number of tokens.
    BEL_TOKENS_IDS,
} bel_token_format;

/// Options of bel_dataset_from_tokens. Set `size` and the fields you need.
typedef struct bel_token_options {
    size_t size;              ///< sizeof(bel_token_options): fields after it count as 0
    const char *const *paths; ///< files or patterns, read in this order; may be packed with gzip
    int path_count;
    bel_token_format format;
    const char *key; ///< JSONL: the member with the text ["text"]
    /// For TEXT and JSONL; IDS: the tokenizer that made them, or NULL if it is unknown. Not copied.
    const bel_tokenizer *tokenizer;
    int64_t vocabulary; ///< IDS: all tokens are below it [the tokenizer's size, or any]
    bool wide;          ///< IDS without a header are uint32
    int64_t context;    ///< tokens of a record, from 1 on
    /// Contexts left out, or those only: the last `share` of all, or part `fold` of `fold_count`
    /// equal parts. `seed` has no effect: they are neighbors, so that no text is on both sides.
    bel_holdout holdout;
} bel_token_options;

/// Makes a dataset of contexts. All documents form one sequence, each followed by the end token.
/// Record i has the fields "tokens" I64 [context], the tokens from i · context on, and "label" I64
/// [context], the tokens from i · context + 1 on. With a tokenizer "bytes" F32 [] is the number of
/// bytes of the labels' text. Tokens after the last complete context are not read; a line of the
/// log says how many. Errors when opened: NOT_FOUND: no file; DATA_LOSS: a file is malformed, a
/// token is out of the vocabulary, or there are fewer tokens than a context; those of
/// bel_tokenizer_encode.
BEL_API bel_dataset *bel_dataset_from_tokens(const bel_token_options *options);

#ifdef __cplusplus
}
#endif

#endif
