// Vocabulary and merges. A merge is found by the hash of its pair, a token by the hash of its
// bytes. A special token is in no index, so that no text becomes one.
#include "tokens/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { MOST_TOKENS = 1 << 22 };

bel_tokenizer *bel_tokenizer_create(bool by_character, bool splits)
{
    bel_tokenizer *tokenizer = bel_xcalloc(1, sizeof *tokenizer);
    tokenizer->arena = bel_arena_create();
    tokenizer->by_character = by_character;
    tokenizer->splits = splits;
    tokenizer->end = -1;
    return tokenizer;
}

void bel_tokenizer_destroy(bel_tokenizer *tokenizer)
{
    if (tokenizer == NULL) return;
    bel_arena_destroy(tokenizer->arena);
    bel_index_deinit(&tokenizer->by_bytes);
    bel_index_deinit(&tokenizer->by_pair);
    bel_free(tokenizer->tokens);
    bel_free(tokenizer->merges);
    bel_free(tokenizer);
}

int64_t bel_tokenizer_size(const bel_tokenizer *tokenizer)
{
    return (int64_t)tokenizer->token_count;
}

int64_t bel_tokenizer_end(const bel_tokenizer *tokenizer)
{
    return tokenizer->end;
}

int64_t bel_tokenizer_mask(const bel_tokenizer *tokenizer)
{
    static const char *const names[] = {"[MASK]", "<mask>"};
    for (size_t i = 0; i < tokenizer->token_count; i++) {
        const bel_token *token = &tokenizer->tokens[i];
        for (size_t n = 0; n < sizeof names / sizeof *names && token->special; n++)
            if (token->size == strlen(names[n]) && memcmp(token->bytes, names[n], token->size) == 0)
                return (int64_t)i;
    }
    return -1;
}

const char *bel_tokenizer_bytes(const bel_tokenizer *tokenizer, int64_t token, size_t *out_size)
{
    *out_size = 0;
    if (token < 0 || (uint64_t)token >= tokenizer->token_count) return "";
    const bel_token *its = &tokenizer->tokens[token];
    if (its->bytes == NULL || its->special) return "";
    *out_size = its->size;
    return its->bytes;
}

bel_status *bel_tokenizer_set(bel_tokenizer *tokenizer, int64_t number, const char *bytes,
                              size_t size, bool special)
{
    if (number < 0 || number >= MOST_TOKENS) {
        return BEL_ERR(BEL_DATA_LOSS, "expected tokens in 0..%d, got %lld", MOST_TOKENS - 1,
                       (long long)number);
    }
    size_t place = (size_t)number;
    if (place >= tokenizer->token_count) {
        size_t had = tokenizer->token_capacity;
        tokenizer->tokens = bel_xgrow(tokenizer->tokens, &tokenizer->token_capacity, place + 1,
                                      sizeof *tokenizer->tokens);
        memset(tokenizer->tokens + had, 0,
               (tokenizer->token_capacity - had) * sizeof *tokenizer->tokens);
        tokenizer->token_count = place + 1;
    }
    bool taken = tokenizer->tokens[place].bytes != NULL;
    if (taken || (!special && bel_tokenizer_find(tokenizer, bytes, size) >= 0)) {
        return BEL_ERR(BEL_DATA_LOSS, "token %lld: %s", (long long)number,
                       taken ? "two tokens have this number" : "another token has the same bytes");
    }
    char *kept = bel_arena_alloc(tokenizer->arena, size + 1);
    if (size > 0) memcpy(kept, bytes, size);
    tokenizer->tokens[place] = (bel_token){.bytes = kept, .size = size, .special = special};
    if (!special) bel_index_put(&tokenizer->by_bytes, bel_hash64(kept, size), (int)number);
    return NULL;
}

int bel_tokenizer_find(const bel_tokenizer *tokenizer, const char *bytes, size_t size)
{
    size_t at = 0;
    uint64_t hash = bel_hash64(bytes, size);
    for (int n; (n = bel_index_next(&tokenizer->by_bytes, hash, &at)) >= 0;) {
        const bel_token *token = &tokenizer->tokens[n];
        if (token->size == size && memcmp(token->bytes, bytes, size) == 0) return n;
    }
    return -1;
}

static uint64_t hash_of_pair(int left, int right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    pair *= UINT64_C(0x9E3779B97F4A7C15);
    return pair ^ pair >> 29;
}

int bel_tokenizer_merge_of(const bel_tokenizer *tokenizer, int left, int right)
{
    size_t at = 0;
    uint64_t hash = hash_of_pair(left, right);
    for (int n; (n = bel_index_next(&tokenizer->by_pair, hash, &at)) >= 0;)
        if (tokenizer->merges[n].left == left && tokenizer->merges[n].right == right) return n;
    return -1;
}

bel_status *bel_tokenizer_add_merge(bel_tokenizer *tokenizer, int left, int right)
{
    const bel_token *a = &tokenizer->tokens[left], *b = &tokenizer->tokens[right];
    char *joined = bel_xmalloc(a->size + b->size + 1);
    memcpy(joined, a->bytes, a->size);
    memcpy(joined + a->size, b->bytes, b->size);
    int result = bel_tokenizer_find(tokenizer, joined, a->size + b->size);
    bel_free(joined);
    if (result < 0) {
        return BEL_ERR(BEL_DATA_LOSS, "merge %zu: tokens %d and %d together are no token",
                       tokenizer->merge_count, left, right);
    }
    if (bel_tokenizer_merge_of(tokenizer, left, right) >= 0) return NULL; // the better one counts
    tokenizer->merges = bel_xgrow(tokenizer->merges, &tokenizer->merge_capacity,
                                  tokenizer->merge_count + 1, sizeof *tokenizer->merges);
    bel_index_put(&tokenizer->by_pair, hash_of_pair(left, right), (int)tokenizer->merge_count);
    tokenizer->merges[tokenizer->merge_count++] = (bel_merge){left, right, result};
    return NULL;
}

bel_status *bel_tokenizer_finish(bel_tokenizer *tokenizer, const char *source)
{
    for (int byte = 0; byte < 256 && !tokenizer->by_character; byte++) {
        tokenizer->first[byte] = bel_tokenizer_find(tokenizer, (char[]){(char)byte}, 1);
        if (tokenizer->first[byte] >= 0) continue;
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a token for each byte, got none for %02x",
                       source, (unsigned)byte);
    }
    return NULL;
}

// --- Characters that stand for bytes ------------------------------------------------------------

// Printable bytes of Latin-1 stand for themselves, the other 68 for the characters from 256 on.
static bool is_printable(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

uint32_t bel_token_character_of(unsigned char byte)
{
    uint32_t others = 0;
    if (is_printable(byte)) return byte;
    for (int b = 0; b < byte; b++)
        others += !is_printable(b);
    return 256 + others;
}

int bel_token_byte_of(uint32_t character)
{
    if (character < 256) return is_printable((int)character) ? (int)character : -1;
    uint32_t others = 256;
    for (int b = 0; b < 256; b++)
        if (!is_printable(b) && others++ == character) return b;
    return -1;
}

void bel_tokenizer_add_bytes(bel_tokenizer *tokenizer)
{
    for (int pass = 0, number = 0; pass < 2; pass++)
        for (int byte = 0; byte < 256; byte++)
            if (is_printable(byte) == (pass == 0))
                bel_status_ignore( // all are new
                    bel_tokenizer_set(tokenizer, number++, (char[]){(char)byte}, 1, false));
}
