// Items and their names are one piece of memory, so that a list has one owner.
#include "predict/gpt_features.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"

// --- Sizes ---------------------------------------------------------------------------------------

static bel_status *read_size(const bel_setup *setup, const char *name, int64_t *out_size)
{
    const char *text = bel_estimator_param(setup->estimator, name, NULL);
    if (text != NULL && bel_parse_i64(text, strlen(text), out_size) && *out_size >= 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: its parameter %s: expected a size, got %s",
                   setup->checkpoint, name, text != NULL ? text : "nothing");
}

bel_status *bel_gpt_sizes_read(const bel_setup *setup, const char *verb, bel_gpt_sizes *out_sizes)
{
    bel_gpt_sizes s = {0};
    int64_t heads, width;
    if (setup->model != bel_model_find("gpt"))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s has model %s; %s is for model gpt",
                       setup->checkpoint, setup->model->name, verb);
    BEL_TRY(read_size(setup, "layers", &s.layers));
    BEL_TRY(read_size(setup, "heads", &heads));
    BEL_TRY(read_size(setup, "token_width", &width));
    BEL_TRY(read_size(setup, "context", &s.context));
    BEL_TRY(read_size(setup, "vocabulary", &s.vocabulary));
    if (bel_estimator_param(setup->estimator, "kv_heads", NULL) != NULL)
        BEL_TRY(read_size(setup, "kv_heads", &s.kv_heads));
    if (s.kv_heads == 0) s.kv_heads = heads;
    s.width = heads > 0 ? width / heads : 0;
    size_t floats;
    bool fits = s.layers > 0 && s.layers <= BEL_GPT_MOST_LAYERS && s.context > 0 && s.width > 0 &&
                s.vocabulary > 0 && s.context <= INT32_MAX && s.width <= INT32_MAX &&
                bel_size_mul((size_t)s.layers, (size_t)s.kv_heads, &floats) &&
                bel_size_mul(floats, (size_t)(s.context * s.width), &floats) &&
                bel_size_mul(floats, sizeof(float), &s.kept_bytes);
    if (!fits) return BEL_ERR(BEL_DATA_LOSS, "%s: its sizes are no model's", setup->checkpoint);
    *out_sizes = s;
    return NULL;
}

// --- Features ------------------------------------------------------------------------------------

typedef char feature_name[BEL_GPT_NAME];

// Allocates `first` features and two for each layer, whose names it returns.
static bel_gpt_features make_list(const bel_gpt_sizes *sizes, int first, feature_name **out_names)
{
    bel_gpt_features list = {.count = first + 2 * (int)sizes->layers};
    size_t bytes = (size_t)list.count * sizeof *list.items;
    char *memory = bel_xcalloc(1, bytes + 2 * (size_t)sizes->layers * sizeof(feature_name));
    list.items = (bel_feature *)(void *)memory;
    *out_names = (feature_name *)(void *)(memory + bytes);
    return list;
}

bel_gpt_features bel_gpt_features_of_step(const bel_gpt_sizes *sizes)
{
    static const char *const kinds[] = {BEL_GPT_KEYS, BEL_GPT_VALUES};
    const bel_shape one = BEL_SHAPE(1),
                    kept = BEL_SHAPE(sizes->kv_heads, sizes->context, sizes->width);
    feature_name *names;
    bel_gpt_features list = make_list(sizes, 2, &names);
    list.items[0] = (bel_feature){BEL_TOKENS_FIELD, BEL_DTYPE_I64, one};
    list.items[1] = (bel_feature){BEL_GPT_POSITION, BEL_DTYPE_I64, one};
    for (int i = 0; i < 2 * (int)sizes->layers; i++) {
        bel_snprintf(names[i], BEL_GPT_NAME, BEL_GPT_OF_LAYER, kinds[i % 2], (long long)i / 2);
        list.items[2 + i] = (bel_feature){names[i], BEL_DTYPE_F32, kept};
    }
    return list;
}

bel_gpt_features bel_gpt_features_of_past(const bel_gpt_sizes *sizes)
{
    static const char *const kinds[] = {"key", "value"};
    enum { NEW = -2, TOTAL = -3, KEPT = -4 }; // open dimensions; -1 is the batch
    const bel_shape new = BEL_SHAPE(NEW), total = BEL_SHAPE(TOTAL);
    const bel_shape kept = BEL_SHAPE(sizes->kv_heads, KEPT, sizes->width);
    feature_name *names;
    bel_gpt_features list = make_list(sizes, 3, &names);
    list.items[0] = (bel_feature){BEL_GPT_INPUT_IDS, BEL_DTYPE_I64, new};
    list.items[1] = (bel_feature){BEL_GPT_MASK, BEL_DTYPE_I64, total};
    list.items[2] = (bel_feature){BEL_GPT_PLACES, BEL_DTYPE_I64, new};
    for (int i = 0; i < 2 * (int)sizes->layers; i++) {
        bel_snprintf(names[i], BEL_GPT_NAME, BEL_GPT_PAST, (long long)i / 2, kinds[i % 2]);
        list.items[3 + i] = (bel_feature){names[i], BEL_DTYPE_F32, kept};
    }
    return list;
}
