// Tokenizers by their names, and the file that a tokenizer is saved to. The digest is that of the
// saved text, and not of the file that it came from, so the same tokenizer has one digest in every
// format. Checkpoints and exports contain it: the text that is written must stay the same.
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "tokens/tokenizer.h"

static bel_tokenizer *make_bytes(void)
{
    bel_tokenizer *tokenizer = bel_tokenizer_create(false, false);
    for (int byte = 0; byte < 256; byte++)
        bel_status_ignore( // all are new
            bel_tokenizer_set(tokenizer, byte, (char[]){(char)byte}, 1, false));
    tokenizer->end = 256;
    bel_status_ignore(
        bel_tokenizer_set(tokenizer, 256, BEL_END_OF_TEXT, strlen(BEL_END_OF_TEXT), true)); // new
    bel_status_ignore(bel_tokenizer_finish(tokenizer, "bytes")); // all bytes are there
    return tokenizer;
}

bel_status *bel_tokenizer_open(const char *name, bel_tokenizer **out_tokenizer)
{
    static const char gpt2[] = "gpt2:", json[] = ".json";
    size_t length = strlen(name);
    if (strcmp(name, "bytes") == 0) {
        *out_tokenizer = make_bytes();
        return NULL;
    }
    if (strncmp(name, gpt2, sizeof gpt2 - 1) == 0)
        return bel_tokenizer_read_gpt2(name + sizeof gpt2 - 1, out_tokenizer);
    if (length > sizeof json - 1 && strcmp(name + length - (sizeof json - 1), json) == 0)
        return bel_tokenizer_read_json(name, out_tokenizer);
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "tokenizer: expected bytes, gpt2:FOLDER or FILE.json, got \"%s\"", name);
}

bel_status *bel_tokenizer_save(const bel_tokenizer *tokenizer, const char *path)
{
    bel_str text = {0};
    bel_tokenizer_write(tokenizer, &text);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_str_deinit(&text);
    return status;
}

void bel_tokenizer_digest(const bel_tokenizer *tokenizer, char out_digest[BEL_TOKENIZER_DIGEST])
{
    bel_str text = {0};
    bel_tokenizer_write(tokenizer, &text);
    bel_hash128_text(bel_hash128_of(text.text, text.length, 0), out_digest);
    bel_str_deinit(&text);
}

bel_status *bel_tokenizer_open_same(const char *path, const char *digest,
                                    bel_tokenizer **out_tokenizer)
{
    char is[BEL_TOKENIZER_DIGEST];
    bel_tokenizer *tokenizer;
    BEL_TRY(bel_tokenizer_open(path, &tokenizer));
    bel_tokenizer_digest(tokenizer, is);
    if (strcmp(is, digest) == 0) {
        *out_tokenizer = tokenizer;
        return NULL;
    }
    bel_tokenizer_destroy(tokenizer);
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "%s is not the tokenizer of the training: expected digest %s, got %s", path,
                   digest, is);
}
