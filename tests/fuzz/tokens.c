// Fuzz target for files of tokens, and for texts and JSONL that become tokens.
#include "belfry/tokens.h"
#include "fuzz/read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    unsigned first = (unsigned)fuzz_take(&input, 1);
    size_t count;
    const uint8_t *bytes = fuzz_take_bytes(&input, size, &count);
    const char *path = fuzz_file(0, bytes, count);
    bel_tokenizer *tokenizer;
    if (!fuzz_is_good(bel_tokenizer_open("bytes", &tokenizer))) return 0;
    bel_token_format format = first % 3 == 0   ? BEL_TOKENS_IDS
                              : first % 3 == 1 ? BEL_TOKENS_JSONL
                                               : BEL_TOKENS_TEXT;
    bel_dataset *dataset =
        bel_dataset_from_tokens(&(bel_token_options){.size = sizeof(bel_token_options),
                                                     .paths = &path,
                                                     .path_count = 1,
                                                     .format = format,
                                                     .tokenizer = tokenizer,
                                                     .wide = (first & 64) != 0,
                                                     .context = 1 + (first >> 3) % 8,
                                                     .holdout = {.share = first & 128 ? 0.3 : 0}});
    fuzz_read_all(dataset, false);
    bel_tokenizer_destroy(tokenizer);
    return 0;
}
