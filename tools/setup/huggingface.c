// One table has the lines of config.json: an export writes them, and a warm start compares them. So
// both know the same settings. One function has the names of tensors: an export turns and divides
// kernels by it, a warm start turns and joins them.
#include "setup/huggingface.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "master/job/warm_file.h"
#include "models/gpt.h"

#define CONFIG_FILE "config.json"
#define WEIGHTS_FILE "model.safetensors"

// --- The model ----------------------------------------------------------------------------------

typedef struct form {
    bool llama;
    int64_t layers, heads, kv_heads, width, context, vocabulary;
    int64_t hidden; // Llama: width between the two kernels of a feed-forward part
    bool tied;
} form;

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

static bel_status *find_family(const bel_estimator *estimator, form *f)
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

static bel_status *form_read(const bel_estimator *estimator, form *f)
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
static config config_of(const form *f)
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

static bel_status *write_config(const form *f, const bel_tokenizer *tokenizer, const char *folder)
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
    char *path = bel_path_join(folder, CONFIG_FILE);
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

static bel_status *parse_file(const char *path, bel_json **out_json)
{
    char *text;
    size_t size;
    BEL_TRY(bel_file_read(path, &text, &size));
    bel_status *status = bel_json_parse(text, size, path, out_json);
    bel_free(text);
    return status;
}

static bel_status *check_config(const form *f, const char *folder)
{
    char *path = bel_path_join(folder, CONFIG_FILE);
    bel_json *json = NULL;
    const config c = config_of(f);
    bel_status *status = parse_file(path, &json);
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
    char *path = bel_path_join(folder, CONFIG_FILE);
    bel_json *json = NULL;
    const char *type = "";
    *out = (bel_huggingface_settings){.count = 0};
    bel_status *status = parse_file(path, &json);
    if (status == NULL) (void)bel_json_string(bel_json_root(json), "model_type", &type);
    form f = {.llama = strcmp(type, "llama") == 0};
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

// --- Names of tensors ---------------------------------------------------------------------------

enum { MOST_PIECES = 3, NAME_BYTES = 128 };

typedef struct piece { // a tensor: columns [first, first + count) of a kernel, or the variable
    char name[NAME_BYTES];
    int64_t first, count;
} piece;

// Finds the tensors of a variable, one or three. *out_turned: each is the transpose of its columns.
static bel_status *find_pieces(const form *f, const char *variable, piece *out_pieces,
                               int *out_count, bool *out_turned)
{
    static const struct {
        const char *here, *there;
        bool turned;
    } names[] = {{"wte.weight", "model.embed_tokens.weight", false},
                 {"ln_f.weight", "model.norm.weight", false},
                 {"lm_head.weight", "lm_head.weight", false},
                 {"ln_1.weight", "input_layernorm.weight", false},
                 {"ln_2.weight", "post_attention_layernorm.weight", false},
                 {"attn.c_proj.weight", "self_attn.o_proj.weight", true},
                 {"mlp.c_fc.weight", "mlp.up_proj.weight", true},
                 {"mlp.c_gate.weight", "mlp.gate_proj.weight", true},
                 {"mlp.c_proj.weight", "mlp.down_proj.weight", true}};
    long long layer = -1;
    int skip = 0;
    *out_count = 1;
    *out_turned = false;
    bel_snprintf(out_pieces[0].name, NAME_BYTES, "%s", variable);
    if (!f->llama) return NULL;
    if (sscanf(variable, "h.%lld.%n", &layer, &skip) < 1) skip = 0;
    const char *part = variable + skip;
    if (strcmp(part, "attn.c_attn.weight") == 0) {
        int64_t each = f->width / f->heads, kv = f->kv_heads * each;
        const int64_t counts[] = {f->width, kv, kv};
        for (int64_t i = 0, first = 0; i < MOST_PIECES; first += counts[i++]) {
            out_pieces[i].first = first;
            out_pieces[i].count = counts[i];
            bel_snprintf(out_pieces[i].name, NAME_BYTES,
                         "model.layers.%lld.self_attn.%c_proj.weight", layer, "qkv"[i]);
        }
        *out_turned = true;
        *out_count = MOST_PIECES;
        return NULL;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(part, names[i].here) != 0) continue;
        *out_turned = names[i].turned;
        if (skip > 0)
            bel_snprintf(out_pieces[0].name, NAME_BYTES, "model.layers.%lld.%s", layer,
                         names[i].there);
        else
            bel_snprintf(out_pieces[0].name, NAME_BYTES, "%s", names[i].there);
        return NULL;
    }
    return BEL_ERR(BEL_FAILED_PRECONDITION, "Llama has no variable \"%s\"", variable);
}

// Completes the columns of a kernel's only piece, and returns the shape of a piece's tensor.
static bel_shape piece_shape(const bel_shape *shape, bool turned, int pieces, piece *p)
{
    if (!turned) return *shape;
    if (pieces == 1) p->count = shape->dims[1];
    return BEL_SHAPE(p->count, shape->dims[0]);
}

// --- Reading ------------------------------------------------------------------------------------

struct bel_huggingface {
    char *folder;
    form form;
    bel_warm_file *files; // one, or those of the index
    int file_count;
    int tensors;        // in all files
    const char *prefix; // before GPT-2's names
};

bool bel_is_huggingface(const char *folder)
{
    char *path = bel_path_join(folder, CONFIG_FILE);
    bool is = bel_file_exists(path);
    bel_free(path);
    return is;
}

bel_huggingface *bel_huggingface_create(const char *folder)
{
    bel_huggingface *model = bel_xcalloc(1, sizeof *model);
    model->folder = bel_xstrdup(folder);
    return model;
}

void bel_huggingface_destroy(bel_huggingface *model)
{
    if (model == NULL) return;
    for (int i = 0; i < model->file_count; i++)
        bel_warm_file_close(&model->files[i]);
    bel_free(model->files);
    bel_free(model->folder);
    bel_free(model);
}

static bel_status *open_file(bel_huggingface *model, const char *name)
{
    char *path = bel_path_join(model->folder, name);
    model->files =
        bel_xrealloc(model->files, (size_t)(model->file_count + 1) * sizeof *model->files);
    bel_warm_file *file = &model->files[model->file_count++]; // to be closed also after a failure
    bel_status *status = bel_warm_file_open(path, file);
    if (status == NULL) model->tensors += file->list.count;
    bel_free(path);
    return status;
}

typedef struct index_names {
    const char *path;
    const char **names; // each file once
    size_t count, capacity;
} index_names;

// Notes the file of a tensor.
static bel_status *note_file(void *user, const char *tensor, const bel_json_value *value)
{
    index_names *to = user;
    const char *name = bel_json_value_string(value);
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: tensor \"%s\": expected the name of a file beside it",
                       to->path, tensor);
    }
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->names[i], name) == 0) return NULL;
    to->names = bel_xgrow(to->names, &to->capacity, to->count + 1, sizeof *to->names);
    to->names[to->count++] = name;
    return NULL;
}

// Opens the files that an index names.
static bel_status *open_index(bel_huggingface *model, const char *path)
{
    bel_json *json = NULL;
    index_names found = {.path = path};
    BEL_TRY(parse_file(path, &json));
    const bel_json_value *map = bel_json_member(bel_json_root(json), "weight_map");
    bel_status *status = bel_json_is_object(map)
                             ? bel_json_each(map, note_file, &found)
                             : BEL_ERR(BEL_DATA_LOSS, "%s: expected an object weight_map", path);
    for (size_t i = 0; i < found.count && status == NULL; i++)
        status = open_file(model, found.names[i]);
    bel_free(found.names);
    bel_json_destroy(json);
    return status;
}

// Returns the file that has a tensor; the first one if no file has it.
static const bel_warm_file *file_of(const bel_huggingface *model, const char *name)
{
    for (int i = 0; i < model->file_count; i++)
        if (bel_safetensors_find(&model->files[i].list, name) != NULL) return &model->files[i];
    return &model->files[0];
}

// Refuses files with a layer that config.json lacks: the model would be another one.
static bel_status *check_layers(const bel_huggingface *model)
{
    for (int i = 0; i < model->file_count; i++) {
        const bel_safetensors_list *list = &model->files[i].list;
        for (int64_t k = 0; k < (int64_t)list->count; k++) {
            const char *name = list->entries[k].name;
            const char *at = strstr(name, model->form.llama ? "layers." : "h.");
            long long layer = -1;
            bool begins = at == name || (at != NULL && at[-1] == '.');
            if (!begins || sscanf(strchr(at, '.'), ".%lld.", &layer) < 1) continue;
            if (layer < model->form.layers) continue;
            return BEL_ERR(BEL_DATA_LOSS,
                           "%s: config.json describes %lld layers, and the values have a tensor %s",
                           model->folder, (long long)model->form.layers, name);
        }
    }
    return NULL;
}

static bel_status *open_values(bel_huggingface *model, const bel_estimator *estimator)
{
    BEL_TRY_CTX(form_read(estimator, &model->form), "--warm_start %s", model->folder);
    BEL_TRY(check_config(&model->form, model->folder));
    char *path = bel_path_join(model->folder, WEIGHTS_FILE);
    char *index = bel_path_join(model->folder, WEIGHTS_FILE ".index.json");
    bool many = !bel_file_exists(path) && bel_file_exists(index);
    bel_status *status = many ? open_index(model, index) : open_file(model, WEIGHTS_FILE);
    if (status == NULL && model->file_count == 0)
        status = BEL_ERR(BEL_DATA_LOSS, "%s names no file", index);
    if (status == NULL) status = check_layers(model);
    if (status == NULL) {
        const char *mark = "transformer.wte.weight";
        bool long_names = bel_safetensors_find(&file_of(model, mark)->list, mark) != NULL;
        model->prefix = long_names ? "transformer." : "";
        bel_log_write(BEL_LOG_INFO, "warm start: the values of %s, which has %d tensors in %d %s",
                      many ? index : path, model->tensors, model->file_count,
                      model->file_count == 1 ? "file" : "files");
    }
    bel_free(index);
    bel_free(path);
    return status;
}

// Reads a tensor [count, in] and puts it as columns of a kernel [in, out].
static bel_status *read_turned(const bel_huggingface *model, const piece *p,
                               const bel_shape *tensor, const bel_shape *shape, float *values)
{
    int64_t in = shape->dims[0], out = shape->dims[1];
    float *turned = bel_xcalloc((size_t)(p->count * in), sizeof *turned);
    bel_status *status = bel_warm_file_read(file_of(model, p->name), p->name, tensor, turned);
    for (int64_t i = 0; i < in && status == NULL; i++)
        for (int64_t j = 0; j < p->count; j++)
            values[i * out + p->first + j] = turned[j * in + i];
    bel_free(turned);
    return status;
}

bel_status *bel_huggingface_init(void *user, const bel_estimator *estimator, const char *variable,
                                 const bel_shape *shape, float *values)
{
    bel_huggingface *model = user;
    piece pieces[MOST_PIECES] = {{.first = 0}};
    int count;
    bool turned;
    if (model->prefix == NULL) BEL_TRY(open_values(model, estimator));
    BEL_TRY(find_pieces(&model->form, variable, pieces, &count, &turned));
    for (int i = 0; i < count; i++) {
        bel_shape tensor = piece_shape(shape, turned, count, &pieces[i]);
        if (turned) {
            BEL_TRY(read_turned(model, &pieces[i], &tensor, shape, values));
            continue;
        }
        bool prefixed = !model->form.llama && strcmp(variable, "lm_head.weight") != 0;
        char *name = bel_strf("%s%s", prefixed ? model->prefix : "", pieces[i].name);
        bel_status *status = bel_warm_file_read(file_of(model, name), name, &tensor, values);
        bel_free(name);
        BEL_TRY(status);
    }
    return NULL;
}

// --- Writing ------------------------------------------------------------------------------------

typedef struct writing {
    form form;
    const bel_ckpt_reader *reader;
    bool averages;
    bel_safetensors_input *tensors;
    int count;
    bel_arena *arena; // names and values
} writing;

static void add_tensor(writing *w, const char *name, const bel_shape *shape, const float *values)
{
    w->tensors[w->count++] = (bel_safetensors_input){.name = bel_arena_strdup(w->arena, name),
                                                     .dtype = BEL_DTYPE_F32,
                                                     .shape = *shape,
                                                     .data = values};
}

static float *room_of(const writing *w, const bel_shape *shape)
{
    return bel_arena_alloc(w->arena, (size_t)bel_shape_elements(shape) * sizeof(float));
}

static bel_status *take_variable(writing *w, const char *name, const bel_shape *shape)
{
    piece pieces[MOST_PIECES] = {{.first = 0}};
    int count;
    bool turned;
    int64_t elements = bel_shape_elements(shape);
    float *values = room_of(w, shape);
    BEL_TRY(w->averages
                ? bel_ckpt_read_average(w->reader, name, BEL_DTYPE_F32, shape, 0, elements, values)
                : bel_ckpt_read(w->reader, name, BEL_DTYPE_F32, shape, 0, elements, values));
    BEL_TRY(find_pieces(&w->form, name, pieces, &count, &turned));
    for (int i = 0; i < count; i++) {
        bel_shape tensor = piece_shape(shape, turned, count, &pieces[i]);
        if (!turned) {
            add_tensor(w, pieces[i].name, &tensor, values);
            continue;
        }
        int64_t in = shape->dims[0], out = shape->dims[1];
        float *columns = room_of(w, &tensor);
        for (int64_t j = 0; j < pieces[i].count; j++)
            for (int64_t k = 0; k < in; k++)
                columns[j * in + k] = values[k * out + pieces[i].first + j];
        add_tensor(w, pieces[i].name, &tensor, columns);
    }
    return NULL;
}

// Slots and averages have names with a slash; variables of model "gpt" do not.
static bel_status *write_values(writing *w, const char *folder)
{
    int tensors = bel_ckpt_tensor_count(w->reader);
    w->tensors = bel_arena_alloc(w->arena, (size_t)tensors * MOST_PIECES * sizeof *w->tensors);
    for (int i = 0; i < tensors; i++) {
        const char *name;
        bel_dtype dtype;
        bel_shape shape;
        bel_ckpt_tensor(w->reader, i, &name, &dtype, &shape);
        if (strchr(name, '/') == NULL) BEL_TRY(take_variable(w, name, &shape));
    }
    const bel_safetensors_text format = {"format", "pt"};
    char *path = bel_path_join(folder, WEIGHTS_FILE);
    bel_status *status = bel_safetensors_write(path, &format, 1, w->tensors, w->count, NULL, NULL);
    bel_free(path);
    return status;
}

bel_status *bel_huggingface_write(const bel_estimator *estimator, const char *checkpoint,
                                  bool averages, const bel_tokenizer *tokenizer, const char *folder)
{
    writing w = {.averages = averages};
    bel_ckpt_reader *reader;
    BEL_TRY(form_read(estimator, &w.form));
    BEL_TRY(bel_ckpt_open(checkpoint, &reader));
    w.reader = reader;
    w.arena = bel_arena_create();
    bel_status *status = write_values(&w, folder);
    if (status == NULL) status = write_config(&w.form, tokenizer, folder);
    char *path = bel_path_join(folder, "tokenizer.json");
    if (status == NULL && tokenizer != NULL) status = bel_tokenizer_save(tokenizer, path);
    bel_free(path);
    bel_arena_destroy(w.arena);
    bel_ckpt_close(reader);
    return status;
}
