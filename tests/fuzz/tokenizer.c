// Fuzz target for tokenizer.json. A tokenizer that is read is written and read again to the same
// text, and the tokens of a text have its bytes.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "tokens/tokenizer.h"

static void encode(const bel_tokenizer *tokenizer)
{
    static const char text[] = "a low 12 lower's \xe2\x82\xac \xff\n\n  b";
    int64_t *tokens;
    size_t count, length = 0;
    if (!fuzz_is_good(bel_tokenizer_encode(tokenizer, text, sizeof text - 1, &tokens, &count)))
        return;
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *bytes = bel_tokenizer_bytes(tokenizer, tokens[i], &size);
        fuzz_expect(length + size < sizeof text && memcmp(bytes, text + length, size) == 0,
                    "the bytes of the text");
        length += size;
    }
    fuzz_expect(length == sizeof text - 1, "all bytes of the text");
    bel_tokens_free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_tokenizer *tokenizer, *again;
    bel_str first = {0}, second = {0};
    if (!fuzz_is_good(bel_tokenizer_read_json(fuzz_file(0, data, size), &tokenizer))) return 0;
    encode(tokenizer);
    bel_tokenizer_write(tokenizer, &first);
    const char *path = fuzz_file(1, (const uint8_t *)first.text, first.length);
    bool read = fuzz_is_good(bel_tokenizer_read_json(path, &again));
    fuzz_expect(read, "a tokenizer that was written is read");
    if (read) {
        bel_tokenizer_write(again, &second);
        fuzz_expect(first.length == second.length &&
                        memcmp(first.text, second.text, first.length) == 0,
                    "the same text again");
        bel_tokenizer_destroy(again);
    }
    bel_str_deinit(&first);
    bel_str_deinit(&second);
    bel_tokenizer_destroy(tokenizer);
    return 0;
}
