// Parts of model "gpt" that the command shares: named sizes, which it records as parameters, and
// the fields of the step that adds one token, with which it generates.
#ifndef BELFRY_MODELS_GPT_H
#define BELFRY_MODELS_GPT_H

#include <stdbool.h>
#include <stdint.h>

// Features besides a token [1]: its place, I64 [1]; for each layer keys and values of the tokens
// before it, "keys.0", "values.0", …, F32 [kv_heads, context, token_width / heads]. Elements from
// the place on are not read. Outputs: the logits of the next token; "keys" and "values" of the
// token, [layers, kv_heads, 1, token_width / heads].
#define BEL_GPT_POSITION "position"
#define BEL_GPT_KEYS "keys"
#define BEL_GPT_VALUES "values"
#define BEL_GPT_LOGITS "logits"
#define BEL_GPT_OF_LAYER "%s.%lld" // format of a feature's name
enum { BEL_GPT_NAME = 32 };        // its bytes
enum { BEL_GPT_MOST_LAYERS = 1000 };

// Instead, for any number of tokens, with the names of Hugging Face's exports: input_ids I64 [t]
// and their places position_ids I64 [t]; attention_mask I64 [total], 0 for a token that nothing
// sees, where total is the number of kept tokens and t; for each layer keys and values of the kept
// ones, "past_key_values.0.key" …, F32 [kv_heads, kept, token_width / heads]. t, kept and total are
// open dimensions. Outputs: logits [t, vocabulary], and "present.0.key" … with those of the new
// tokens, [kv_heads, total, token_width / heads].
#define BEL_GPT_INPUT_IDS "input_ids"
#define BEL_GPT_PLACES "position_ids"
#define BEL_GPT_MASK "attention_mask"
#define BEL_GPT_PAST "past_key_values.%lld.%s" // layer; key or value
#define BEL_GPT_PRESENT "present.%lld.%s"

typedef struct bel_gpt_preset {
    const char *name;
    int64_t layers, heads, width, context, vocabulary;
    int64_t batch;             // contexts of a tower's batch
    const char *learning_rate; // as a flag
} bel_gpt_preset;

// Returns the preset at `index`; NULL after the last. The first is the default.
const bel_gpt_preset *bel_gpt_preset_at(int index);
// Returns the preset of this name; NULL: no such preset.
const bel_gpt_preset *bel_gpt_preset_find(const char *name);

// Returns the width between the two kernels of a block's feed-forward part: 4 · width; with swiglu
// 8/3 of it, a multiple of 64, which needs the same number of floats (Shazeer 2020).
int64_t bel_gpt_hidden(int64_t width, bool swiglu);

#endif
