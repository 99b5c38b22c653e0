// config.json of a folder of Hugging Face, and the model that it describes. One table has its
// lines: an export writes them, and a warm start compares them. So both know the same settings.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "models/gpt.h"
#include "setup/huggingface_inner.h"

// --- The model ----------------------------------------------------------------------------------

static bel_status *form_size(const bel_estimator *estimator, const char *name,
                             const char *otherwise, int64_t *out_size)
{
    const char *text = bel_estimator_param(estimator, name, otherwise);
    if (text != NULL && bel_parse_i64(text, strlen(text), out_size) && *out_size >= 0) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "parameter %s: expected a size, got %s", name,
                   text != NULL ? text : "nothing");
}

// Both families differ in four settings, of which none may be mixed.
static const struct {
    const char *param, *gpt2, *llama;
} marks[] = {{"positions", "learned", "rotary"},
             {"norm", "layer", "rms"},
             {"activation", "gelu", "swiglu"},
             {"bias", "true", "false"}};

const char *bel_huggingface_flag(int index)
{
    static const char *const sizes[] = {"layers",  "heads",      "kv_heads", "token_width",
                                        "context", "vocabulary", "tied"};
    enum { SIZES = sizeof sizes / sizeof *sizes, MARKS = sizeof marks / sizeof *marks };
    if (index < SIZES) return sizes[index];
    return index < SIZES + MARKS ? marks[index - SIZES].param : NULL;
}

static bel_status *find_family(const bel_estimator *estimator, bel_huggingface_form *f)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *has = bel_estimator_param(estimator, marks[i].param, marks[i].gpt2);
        bool llama = strcmp(has, marks[i].llama) == 0;
        if (i == 0) f->llama = llama;
        if (llama == f->llama) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "Hugging Face has no such model: with positions %s expected %s %s as in %s, "
                       "got %s",
                       f->llama ? "rotary" : "learned", marks[i].param,
                       f->llama ? marks[i].llama : marks[i].gpt2, f->llama ? "Llama" : "GPT-2",
                       has);
    }
    if (f->llama || f->kv_heads == f->heads) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "Hugging Face has no such model: GPT-2 has %lld kv_heads for %lld heads, got "
                   "%lld",
                   (long long)f->heads, (long long)f->heads, (long long)f->kv_heads);
}

bel_status *bel_huggingface_read_form(const bel_estimator *estimator, bel_huggingface_form *f)
{
    const char *model = bel_estimator_param(estimator, "model", "");
    if (strcmp(model, "gpt") != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "a folder of Hugging Face is for --model gpt, got model %s", model);
    }
    BEL_TRY(form_size(estimator, "layers", NULL, &f->layers));
    BEL_TRY(form_size(estimator, "heads", NULL, &f->heads));
    BEL_TRY(form_size(estimator, "kv_heads", "0", &f->kv_heads));
    BEL_TRY(form_size(estimator, "token_width", NULL, &f->width));
    BEL_TRY(form_size(estimator, "context", NULL, &f->context));
    BEL_TRY(form_size(estimator, "vocabulary", NULL, &f->vocabulary));
    if (f->kv_heads == 0) f->kv_heads = f->heads;
    if (f->heads == 0 || f->width % f->heads != 0 || f->heads % f->kv_heads != 0)
        return BEL_ERR(BEL_FAILED_PRECONDITION, "heads %lld do not fit token_width %lld",
                       (long long)f->heads, (long long)f->width);
    f->hidden = bel_gpt_hidden(f->width, true);
    f->tied = strcmp(bel_estimator_param(estimator, "tied", "true"), "true") == 0;
    return find_family(estimator, f);
}

// --- config.json --------------------------------------------------------------------------------

enum { MOST_ROWS = 16, ROW_TEXT = 32 };

typedef struct row {
    const char *name;
    const char *flag;      // sets the value; NULL: Belfry has no other value
    char value[ROW_TEXT];  // as JSON
    const char *otherwise; // value if the row is absent, "": any; NULL: it must be there
} row;

typedef struct config {
    row rows[MOST_ROWS];
    int count;
} config;

static void add_text(config *c, const char *name, const char *flag, const char *value,
                     const char *otherwise)
{
    row *r = &c->rows[c->count++];
    *r = (row){.name = name, .flag = flag, .otherwise = otherwise};
    bel_snprintf(r->value, sizeof r->value, "%s", value);
}

static void add_size(config *c, const char *name, const char *flag, int64_t value,
                     const char *otherwise)
{
    char text[ROW_TEXT];
    bel_snprintf(text, sizeof text, "%lld", (long long)value);
    add_text(c, name, flag, text, otherwise);
}

// Values that are absent are those of transformers' classes GPT2Config and LlamaConfig.
static config config_of(const bel_huggingface_form *f)
{
    config c = {.count = 0};
    const char *tied = f->tied ? "true" : "false";
    if (!f->llama) {
        add_text(&c, "model_type", NULL, "\"gpt2\"", NULL);
        add_size(&c, "n_layer", "layers", f->layers, "12");
        add_size(&c, "n_head", "heads", f->heads, "12");
        add_size(&c, "n_embd", "token_width", f->width, "768");
        add_size(&c, "n_positions", "context", f->context, "1024");
        add_size(&c, "vocab_size", "vocabulary", f->vocabulary, "50257");
        add_text(&c, "activation_function", NULL, "\"gelu_new\"", "\"gelu_new\"");
        add_text(&c, "layer_norm_epsilon", NULL, "1e-05", "1e-05");
        add_text(&c, "scale_attn_by_inverse_layer_idx", NULL, "false", "false");
        add_text(&c, "tie_word_embeddings", "tied", tied, "true");
        return c;
    }
    add_text(&c, "model_type", NULL, "\"llama\"", NULL);
    add_size(&c, "num_hidden_layers", "layers", f->layers, "32");
    add_size(&c, "num_attention_heads", "heads", f->heads, "32");
    add_size(&c, "num_key_value_heads", "kv_heads", f->kv_heads, "");
    add_size(&c, "hidden_size", "token_width", f->width, "4096");
    add_size(&c, "intermediate_size", NULL, f->hidden, "11008");
    add_size(&c, "max_position_embeddings", "context", f->context, "2048");
    add_size(&c, "vocab_size", "vocabulary", f->vocabulary, "32000");
    add_text(&c, "hidden_act", NULL, "\"silu\"", "\"silu\"");
    add_text(&c, "rms_norm_eps", NULL, "1e-05", "1e-06");
    add_text(&c, "rope_theta", NULL, "10000.0", "10000.0");
    add_text(&c, "rope_scaling", NULL, "null", "null");
    add_text(&c, "attention_bias", NULL, "false", "false");
    add_text(&c, "mlp_bias", NULL, "false", "false");
    add_text(&c, "tie_word_embeddings", "tied", tied, "false");
    return c;
}

bel_status *bel_huggingface_write_config(const bel_huggingface_form *f,
                                         const bel_tokenizer *tokenizer, const char *folder)
{
    const config c = config_of(f);
    long long end = tokenizer != NULL ? bel_tokenizer_end(tokenizer) : -1;
    bel_str text = {0};
    bel_str_printf(&text, "{\n  \"architectures\": [\"%s\"],\n",
                   f->llama ? "LlamaForCausalLM" : "GPT2LMHeadModel");
    for (int i = 0; i < c.count; i++)
        bel_str_printf(&text, "  \"%s\": %s,\n", c.rows[i].name, c.rows[i].value);
    // Without them, both classes name tokens that this vocabulary need not have.
    for (int i = 0; i < 2; i++) {
        bel_str_printf(&text, "  \"%s_token_id\": ", i == 0 ? "bos" : "eos");
        if (end >= 0) {
            bel_str_printf(&text, "%lld,\n", end);
        } else {
            bel_str_puts(&text, "null,\n");
        }
    }
    bel_str_puts(&text, "  \"torch_dtype\": \"float32\"\n}\n");
    char *path = bel_path_join(folder, BEL_HUGGINGFACE_CONFIG);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

static bool is_same(const char *a, const char *b)
{
    double x, y;
    if (bel_parse_f64(a, strlen(a), &x) && bel_parse_f64(b, strlen(b), &y)) return x == y;
    return strcmp(a, b) == 0;
}

static bel_status *check_row(const row *r, const bel_json_value *root, const char *path)
{
    bel_str found = {0};
    const bel_json_value *value = bel_json_member(root, r->name);
    if (value != NULL && bel_json_is_null(value) && r->flag != NULL) value = NULL; // absent
    double number;
    if (bel_json_f64(root, r->name, &number))
        bel_json_write_number(&found, number);
    else if (value != NULL)
        bel_json_write_value(&found, value);
    const char *has = value != NULL ? found.text : r->otherwise;
    bel_status *status = NULL;
    bool same = has != NULL && (has[0] == '\0' || is_same(has, r->value));
    if (!same && r->flag != NULL)
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "%s: %s is %s, but --%s is %s", path, r->name,
                         has != NULL ? has : "absent", r->flag, r->value);
    else if (!same)
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "%s: %s: expected %s, got %s", path, r->name,
                         r->value, has != NULL ? has : "nothing");
    bel_str_deinit(&found);
    return status;
}

bel_status *bel_huggingface_parse(const char *path, bel_json **out_json)
{
    char *text;
    size_t size;
    BEL_TRY(bel_file_read(path, &text, &size));
    bel_status *status = bel_json_parse(text, size, path, out_json);
    bel_free(text);
    return status;
}

bel_status *bel_huggingface_check_config(const bel_huggingface_form *f, const char *folder)
{
    char *path = bel_path_join(folder, BEL_HUGGINGFACE_CONFIG);
    bel_json *json = NULL;
    const config c = config_of(f);
    bel_status *status = bel_huggingface_parse(path, &json);
    for (int i = 0; i < c.count && status == NULL; i++)
        status = check_row(&c.rows[i], bel_json_root(json), path);
    bel_json_destroy(json);
    bel_free(path);
    return status;
}

static void add_setting(bel_huggingface_settings *to, const char *flag, const char *value)
{
    bel_huggingface_setting *s = &to->items[to->count++];
    s->flag = flag;
    bel_snprintf(s->value, sizeof s->value, "%s", value);
}

static bel_status *take_row(const row *r, const bel_json_value *root, const char *path,
                            bel_huggingface_settings *to)
{
    char text[ROW_TEXT];
    const bel_json_value *member = bel_json_member(root, r->name);
    bool flag;
    int64_t size;
    if (member == NULL || bel_json_is_null(member)) {
        if (r->otherwise[0] != '\0') add_setting(to, r->flag, r->otherwise);
        return NULL;
    }
    if (strcmp(r->flag, "tied") == 0 && bel_json_value_bool(member, &flag)) {
        add_setting(to, r->flag, flag ? "true" : "false");
        return NULL;
    }
    if (!bel_json_value_i64(member, &size) || size < 1)
        return BEL_ERR(BEL_DATA_LOSS, "%s: %s: expected a size", path, r->name);
    bel_snprintf(text, sizeof text, "%lld", (long long)size);
    add_setting(to, r->flag, text);
    return NULL;
}

bel_status *bel_huggingface_read_settings(const char *folder, bel_huggingface_settings *out)
{
    char *path = bel_path_join(folder, BEL_HUGGINGFACE_CONFIG);
    bel_json *json = NULL;
    const char *type = "";
    *out = (bel_huggingface_settings){.count = 0};
    bel_status *status = bel_huggingface_parse(path, &json);
    if (status == NULL) (void)bel_json_string(bel_json_root(json), "model_type", &type);
    bel_huggingface_form f = {.llama = strcmp(type, "llama") == 0};
    const config c = config_of(&f);
    bool known = f.llama || strcmp(type, "gpt2") == 0; // else the warm start names the row
    for (int i = 0; i < c.count && known && status == NULL; i++)
        if (c.rows[i].flag != NULL) status = take_row(&c.rows[i], bel_json_root(json), path, out);
    for (size_t i = 0; i < sizeof marks / sizeof *marks && f.llama; i++)
        add_setting(out, marks[i].param, marks[i].llama);
    bel_json_destroy(json);
    bel_free(path);
    return status;
}
