// Values of folders of Hugging Face. One function has the names of tensors: an export turns and
// divides kernels by it, a warm start turns and joins them.
#include "setup/huggingface_inner.h"

#include <stdio.h>
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

#define WEIGHTS_FILE "model.safetensors"

// --- Names of tensors ---------------------------------------------------------------------------

enum { MOST_PIECES = 3, NAME_BYTES = 128 };

typedef struct piece { // a tensor: columns [first, first + count) of a kernel, or the variable
    char name[NAME_BYTES];
    int64_t first, count;
} piece;

// Finds the tensors of a variable, one or three. *out_turned: each is the transpose of its columns.
static bel_status *find_pieces(const bel_huggingface_form *f, const char *variable,
                               piece *out_pieces, int *out_count, bool *out_turned)
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
    bel_huggingface_form form;
    bel_warm_file *files; // one, or those of the index
    int file_count;
    int tensors;        // in all files
    const char *prefix; // before GPT-2's names
};

bool bel_is_huggingface(const char *folder)
{
    char *path = bel_path_join(folder, BEL_HUGGINGFACE_CONFIG);
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
    BEL_TRY(bel_huggingface_parse(path, &json));
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
    BEL_TRY_CTX(bel_huggingface_read_form(estimator, &model->form), "--warm_start %s",
                model->folder);
    BEL_TRY(bel_huggingface_check_config(&model->form, model->folder));
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
    bel_huggingface_form form;
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
    BEL_TRY(bel_huggingface_read_form(estimator, &w.form));
    BEL_TRY(bel_ckpt_open(checkpoint, &reader));
    w.reader = reader;
    w.arena = bel_arena_create();
    bel_status *status = write_values(&w, folder);
    if (status == NULL) status = bel_huggingface_write_config(&w.form, tokenizer, folder);
    char *path = bel_path_join(folder, "tokenizer.json");
    if (status == NULL && tokenizer != NULL) status = bel_tokenizer_save(tokenizer, path);
    bel_free(path);
    bel_arena_destroy(w.arena);
    bel_ckpt_close(reader);
    return status;
}
