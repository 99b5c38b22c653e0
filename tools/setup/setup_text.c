// Tokenizer and defaults of models of language. The tokenizer is kept in the model's folder, as
// tokenizer.json, and its digest among the parameters. So a resumed training, an evaluation and a
// generation use the one of the training, and a folder with another one is refused. Defaults are
// those of nanoGPT: they are parameters that flags replace, so checkpoints have them.
#include "setup/setup_text.h"
#include "setup/follow.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/setting_names.h"
#include "columns/description.h"
#include "models/gpt.h"
#include "setup/huggingface.h"
#include "setup/tables.h"
#include "setup/warm_start.h"
#include "tokens/documents.h"

#define TOKENIZER_FILE "tokenizer.json"
#define DIGEST "tokenizer" // parameter: the digest of its file
#define MASK "mask_token"  // parameter: the token that a hidden one becomes

bool bel_is_text_model(const char *model)
{
    return strcmp(model, "gpt") == 0 || strcmp(model, "encoder") == 0;
}

static bool hides_tokens(const bel_setup *setup)
{
    return strcmp(setup->model->name, "encoder") == 0;
}

// Whether the training reads token files. Texts of a table are in CSV files.
static bool reads_ids(const bel_options *options, const bel_setup *setup)
{
    return setup->columns == NULL && strcmp(bel_flag_inputs_format(options, true), "tokens") == 0;
}

// --- Tokenizer ----------------------------------------------------------------------------------

bel_status *bel_make_tokenizer(const char *name, const char *const *paths, int path_count,
                               const char *key, bel_tokenizer **out_tokenizer)
{
    bel_documents documents = {0};
    if (strcmp(name, "chars") != 0) return bel_tokenizer_open(name, out_tokenizer);
    bel_status *status = bel_documents_open(&documents, paths, path_count, key);
    if (status == NULL) status = bel_documents_characters(&documents, out_tokenizer);
    bel_documents_close(&documents);
    return status;
}

// Opens the tokenizer in the model's folder; FAILED_PRECONDITION: it is not the one of the digest.
static bel_status *open_kept(const char *model_dir, const char *digest,
                             bel_tokenizer **out_tokenizer)
{
    char *path = bel_path_join(model_dir, TOKENIZER_FILE);
    bel_status *status = bel_tokenizer_open_same(path, digest, out_tokenizer);
    bel_free(path);
    return status;
}

static bel_status *new_tokenizer(const bel_options *options, const char *name,
                                 bel_tokenizer **out_tokenizer)
{
    bel_arena *arena = bel_arena_create();
    const char *const *paths;
    int count;
    bool lines = strcmp(bel_flag_inputs_format(options, true), "jsonl") == 0;
    const char *key = lines ? bel_options_string(options, "text_key") : NULL;
    bel_status *status = bel_flag_inputs_paths(options, BEL_MODE_TRAIN, arena, &paths, &count);
    if (status == NULL) status = bel_make_tokenizer(name, paths, count, key, out_tokenizer);
    bel_arena_destroy(arena);
    return status;
}

// Returns the path of the tokenizer in the folder that the training begins with; NULL: there is no
// such file.
static char *tokenizer_of_start(const bel_options *options)
{
    if (!bel_options_has(options, "warm_start")) return NULL;
    const char *folder = bel_options_string(options, "warm_start");
    for (int i = 0; i < 2 && folder != NULL; i++) { // a checkpoint is in the model's folder
        char *path = bel_path_join(folder, i == 0 ? TOKENIZER_FILE : "../" TOKENIZER_FILE);
        char *manifest = bel_path_join(folder, "manifest.json");
        bool found = bel_file_exists(path) && (i == 0 || bel_file_exists(manifest));
        bel_free(manifest);
        if (found) return path;
        bel_free(path);
    }
    return NULL;
}

// The same if the training takes it: it begins, and no flag names another one.
static char *taken_tokenizer(const bel_options *options, const bel_setup *setup, const char *was)
{
    bool takes =
        was == NULL && !reads_ids(options, setup) && !bel_options_is_given(options, "tokenizer");
    return takes ? tokenizer_of_start(options) : NULL;
}

// Returns the first token that is another text in `b`; -1: no token.
static int64_t find_difference(const bel_tokenizer *a, const bel_tokenizer *b)
{
    int64_t sizes[] = {bel_tokenizer_size(a), bel_tokenizer_size(b)};
    int64_t both = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
    for (int64_t token = 0; token < both; token++) {
        size_t here, there;
        const char *x = bel_tokenizer_bytes(a, token, &here);
        const char *y = bel_tokenizer_bytes(b, token, &there);
        if (here != there || memcmp(x, y, here) != 0) return token;
    }
    return sizes[0] == sizes[1] ? -1 : both;
}

// Warns if the values with which the training begins were learned with other tokens.
static void compare_with_start(const bel_options *options, const bel_setup *setup)
{
    char *path = tokenizer_of_start(options);
    bel_tokenizer *there = NULL;
    bel_status *status = path != NULL ? bel_tokenizer_open(path, &there) : NULL;
    int64_t token =
        there != NULL && setup->tokenizer != NULL ? find_difference(setup->tokenizer, there) : -1;
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "the tokenizer of the warm start is not compared: %s",
                      bel_status_message(status));
    } else if (token >= 0) {
        bel_log_write(BEL_LOG_WARN,
                      "--tokenizer %s has other tokens than %s, from token %lld on: the values of "
                      "the warm start belong to other texts",
                      bel_options_string(options, "tokenizer"), path, (long long)token);
    }
    bel_status_ignore(status); // only the comparison is left out
    bel_tokenizer_destroy(there);
    bel_free(path);
}

// Chooses the tokenizer of a training. Its characters are those of the data with which it began.
static bel_status *choose_tokenizer(const bel_options *options, const char *was, bel_setup *setup)
{
    bool tokens = reads_ids(options, setup);
    bool given = bel_options_is_given(options, "tokenizer");
    const char *name = bel_options_string(options, "tokenizer");
    if (tokens && !given) return NULL;
    bool chars = strcmp(name, "chars") == 0;
    if (was != NULL && !given && bel_options_has(options, "warm_start") &&
        bel_options_string(options, "warm_start") != NULL)
        return open_kept(setup->model_dir, was, &setup->tokenizer); // the folder may be gone
    char *start = taken_tokenizer(options, setup, was);
    if (start != NULL) {
        bel_status *status = bel_tokenizer_open(start, &setup->tokenizer);
        bel_free(start);
        return status;
    }
    if (chars && tokens) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--tokenizer chars is for texts; token files need the tokenizer that made "
                       "them");
    }
    if (chars && setup->columns != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--tokenizer chars is for files of texts, and these are in a table; hint: "
                       "belfry tokens train");
    }
    if (chars && was != NULL) {
        BEL_TRY(open_kept(setup->model_dir, was, &setup->tokenizer));
        if (setup->tokenizer->by_character) return NULL;
        bel_tokenizer_destroy(setup->tokenizer); // its settings refuse the resumed training
        setup->tokenizer = NULL;
    }
    if (chars && setup->remote != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--tokenizer chars needs the files here, and they are on other hosts; hint: "
                       "belfry tokens train");
    }
    return new_tokenizer(options, name, &setup->tokenizer);
}

// A checkpoint of another tokenizer is refused later, by its settings, and keeps its file.
static bel_status *keep_tokenizer(const bel_options *options, const bel_setup *setup,
                                  const char *was, const char *digest)
{
    bool other = was == NULL || strcmp(was, digest) != 0;
    bool replaces = was == NULL || bel_options_bool(options, "allow_changes");
    if (!setup->is_master || !other || !replaces) return NULL;
    BEL_TRY(bel_dir_create(setup->model_dir));
    char *path = bel_path_join(setup->model_dir, TOKENIZER_FILE);
    bel_status *status = bel_tokenizer_save(setup->tokenizer, path);
    bel_free(path);
    return status;
}

// --- Parameters ---------------------------------------------------------------------------------

static void set_whole(bel_params *params, const char *name, int64_t value)
{
    char text[24];
    bel_snprintf(text, sizeof text, "%lld", (long long)value);
    bel_params_set(params, name, text);
}

// A flag that is given, or follows from one that is.
static bool is_set(const bel_options *options, const char *flag)
{
    bool of_preset = bel_list_find("layers|heads|token_width|context", "|", flag) >= 0;
    return bel_options_is_given(options, flag) ||
           (of_preset && bel_options_is_given(options, "preset"));
}

// A resumed training has the sizes of its checkpoint: the folder of the warm start may be gone.
static bel_status *keep_settings(const bel_options *options, const char *model_dir,
                                 bel_params *params)
{
    for (int i = 0; bel_huggingface_flag(i) != NULL; i++) {
        const char *flag = bel_huggingface_flag(i);
        char *name = bel_strf("param.%s", flag), *value = NULL;
        bel_status *status = bel_ckpt_latest_setting(model_dir, name, &value);
        if (status == NULL && value != NULL && !is_set(options, flag))
            bel_params_set(params, flag, value);
        bel_free(name);
        bel_free(value);
        BEL_TRY(status);
    }
    return NULL;
}

// Takes the settings of the folder that the training begins with, except those that flags set. The
// warm start refuses those that differ. A table's texts have their context already.
static void take_settings(const bel_options *options, const bel_setup *setup,
                          const bel_huggingface_settings *settings, bel_params *params)
{
    bel_str taken = {0};
    for (int i = 0; i < settings->count; i++) {
        const char *flag = settings->items[i].flag, *value = settings->items[i].value;
        bool set = setup->columns != NULL && strcmp(flag, "context") == 0;
        bool is_switch = strcmp(flag, "tied") == 0 || strcmp(flag, "bias") == 0;
        if (set || is_set(options, flag) || strcmp(value, bel_options_text(options, flag)) == 0)
            continue;
        bel_params_set(params, flag, value);
        if (is_switch) {
            bel_str_printf(&taken, " --no_%s", flag);
        } else {
            bel_str_printf(&taken, " --%s %s", flag, value);
        }
    }
    if (taken.length > 0)
        bel_log_write(BEL_LOG_INFO, "taken from --warm_start %s:%s",
                      bel_options_string(options, "warm_start"), taken.text);
    bel_str_deinit(&taken);
}

// Sets what a training begins with: the settings of its checkpoint, or of its warm start.
static bel_status *begin_settings(const bel_options *options, const bel_setup *setup,
                                  const char *was, bel_params *params, bel_warm_settings *out_start)
{
    char *model = NULL;
    *out_start = (bel_warm_settings){.has_tokenizer = false};
    const char *folder =
        bel_options_has(options, "warm_start") ? bel_options_string(options, "warm_start") : NULL;
    if (folder == NULL) return NULL;
    if (hides_tokens(setup) && bel_is_huggingface(folder))
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "--warm_start %s is a folder of Hugging Face, which only --model gpt reads",
                       folder);
    BEL_TRY(bel_ckpt_latest_setting(setup->model_dir, "param.model", &model));
    bool resumes = model != NULL;
    bel_free(model);
    if (resumes) return keep_settings(options, setup->model_dir, params);
    BEL_TRY(bel_warm_start_read_settings(options, setup->model->name, out_start));
    char *start = taken_tokenizer(options, setup, was);
    bool missing = start == NULL && out_start->has_tokenizer && !reads_ids(options, setup) &&
                   !bel_options_is_given(options, "tokenizer");
    bel_free(start);
    if (missing)
        return BEL_ERR(BEL_NOT_FOUND,
                       "--warm_start %s: there is no " TOKENIZER_FILE
                       ", which its training had; hint: --tokenizer",
                       bel_options_string(options, "warm_start"));
    take_settings(options, setup, &out_start->list, params);
    return NULL;
}

static bool is_taken(const bel_params *params, const char *flag)
{
    const char *text = bel_params_get(params, flag);
    return text != NULL && strcmp(text, "0") != 0;
}

// Returns the tokens that the model must have; 0: unknown. A model that hides tokens has one more
// for those, if the tokenizer has none.
static int64_t token_count(const bel_setup *setup)
{
    const bel_tokenizer *tokenizer = setup->tokenizer;
    if (tokenizer == NULL) return 0;
    bool more = hides_tokens(setup) && bel_tokenizer_mask(tokenizer) < 0;
    return bel_tokenizer_size(tokenizer) + more;
}

// Sets the token that a hidden one becomes.
static void set_mask(const bel_setup *setup, bel_params *params, int64_t vocabulary)
{
    int64_t mask = setup->tokenizer != NULL ? bel_tokenizer_mask(setup->tokenizer) : -1;
    const char *of = mask >= 0 ? "the tokenizer's" : "the one after those of the tokenizer";
    if (setup->tokenizer == NULL) of = "the last of --vocabulary";
    if (mask < 0)
        mask = setup->tokenizer != NULL ? bel_tokenizer_size(setup->tokenizer) : vocabulary - 1;
    set_whole(params, MASK, mask);
    if (setup->columns == NULL)
        bel_log_write(BEL_LOG_INFO, "a hidden token becomes token %lld, %s", (long long)mask, of);
}

static bel_status *set_sizes(const bel_options *options, bel_params *params, const bel_setup *setup,
                             bel_str *set)
{
    const bel_tokenizer *tokenizer = setup->tokenizer;
    const bel_columns *columns = setup->columns;
    int64_t tokens = token_count(setup);
    const bel_gpt_preset *preset = bel_gpt_preset_find(bel_options_string(options, "preset"));
    if (preset == NULL) preset = bel_gpt_preset_at(0); // the flag's check accepts only presets
    const struct {
        const char *flag;
        int64_t value;
    } sizes[] = {
        {"layers", preset->layers},
        {"heads", preset->heads},
        {"token_width", preset->width},
        {"context", columns != NULL ? columns->items[columns->tokens].most : preset->context},
        {"vocabulary", tokenizer != NULL ? tokens : preset->vocabulary}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (bel_options_int(options, sizes[i].flag) > 0 || is_taken(params, sizes[i].flag))
            continue;
        if (strcmp(sizes[i].flag, "vocabulary") == 0 && tokenizer == NULL &&
            !bel_options_is_given(options, "preset"))
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "--vocabulary: expected the number of tokens that the token files may "
                           "have, or the --tokenizer that made them");
        set_whole(params, sizes[i].flag, sizes[i].value);
        bel_str_printf(set, " --%s %lld", sizes[i].flag, (long long)sizes[i].value);
    }
    int64_t vocabulary = bel_options_int(options, "vocabulary");
    const char *text = bel_params_get(params, "vocabulary");
    if (vocabulary == 0 && text != NULL) (void)bel_parse_i64(text, strlen(text), &vocabulary);
    if (tokenizer == NULL || vocabulary >= tokens) {
        if (hides_tokens(setup)) set_mask(setup, params, vocabulary);
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--vocabulary%s: expected at least the %lld tokens of the tokenizer%s, got %lld",
                   bel_options_int(options, "vocabulary") > 0 ? "" : " (from the warm start)",
                   (long long)tokens,
                   tokens > bel_tokenizer_size(tokenizer) ? " and that of hidden ones" : "",
                   (long long)vocabulary);
}

static void set_default(const bel_options *options, bel_params *params, const char *flag,
                        const char *value, bel_str *set)
{
    if (bel_options_is_given(options, flag)) return;
    bel_params_set(params, flag, value);
    bel_str_printf(set, " --%s %s", flag, value);
}

// Sets the steps in which the rate rises. A training that resumes, for longer perhaps, has those of
// its checkpoint.
static bel_status *set_warmup(const bel_options *options, bel_params *params, const char *model_dir,
                              int64_t steps, bel_str *set)
{
    enum { WARMUP_SHARE = 20, MOST_WARMUP = 2000 };
    char *was = NULL, text[24];
    int64_t warmup = steps / WARMUP_SHARE;
    BEL_TRY(bel_ckpt_latest_setting(model_dir, "param.warmup_steps", &was));
    bel_snprintf(text, sizeof text, "%lld",
                 (long long)(warmup < MOST_WARMUP ? warmup : MOST_WARMUP));
    if (was != NULL || warmup > 0)
        set_default(options, params, "warmup_steps", was != NULL ? was : text, set);
    bel_free(was);
    return NULL;
}

// The rate rises, and falls with a cosine to a tenth at the end of the training.
static bel_status *set_schedule(const bel_options *options, bel_params *params, const char *rate,
                                const char *model_dir, int64_t steps, bel_str *set)
{
    set_default(options, params, "learning_rate", rate, set);
    if (steps > 0) set_default(options, params, "schedule", "cosine", set);
    const char *schedule = bel_params_get(params, "schedule");
    if (schedule == NULL) schedule = bel_options_string(options, "schedule");
    bool cosine = strcmp(schedule, "cosine") == 0;
    if (cosine) set_default(options, params, "alpha", "0.1", set);
    if (cosine && steps > 0 && !bel_options_is_given(options, "decay_steps")) {
        set_whole(params, "decay_steps", steps);
        bel_params_set(params, "decay_over", "training");
    }
    if (steps == 0)
        bel_log_write(BEL_LOG_INFO,
                      "the learning rate stays as it is: without --train_steps, no schedule knows "
                      "the end");
    return set_warmup(options, params, model_dir, steps, set);
}

static void set_optimizer(const bel_options *options, bel_params *params, bel_str *set)
{
    set_default(options, params, "optimizer", "adamw", set);
    const char *optimizer = bel_params_get(params, "optimizer");
    if (optimizer == NULL) optimizer = bel_options_string(options, "optimizer");
    bool own_norms = bel_list_find("lamb|lars", "|", optimizer) >= 0;
    bool clips = bel_options_is_given(options, "clip_norm");
    if (bel_list_find("adam|adamw|lamb", "|", optimizer) >= 0)
        set_default(options, params, "beta2", "0.95", set);
    set_default(options, params, "weight_decay", "0.1", set);
    if (!own_norms && !clips) set_default(options, params, "clip_global_norm", "1", set);
}

// Refuses flags that this model does not read, and whose rows in the table do not say so.
static bel_status *check_text_flags(const bel_options *options, const bel_setup *setup)
{
    static const char *const flags[] = {"class_count", "objective", "feature_scale", "eval_seed",
                                        "keep_columns"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags && setup->columns == NULL; i++) {
        if (!bel_options_has(options, flags[i]) || !bel_options_is_given(options, flags[i]))
            continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s has no effect with --model %s%s", flags[i],
                       setup->model->name, hides_tokens(setup) ? " and without --text_column" : "");
    }
    return NULL;
}

// Says that a table is read as a text: all its bytes count, also commas and labels.
static void say_table(const bel_options *options, const bel_setup *setup)
{
    static const char *const ends[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};
    size_t count;
    const char *const *files = bel_options_list(options, "train_files", &count);
    if (setup->columns != NULL || !hides_tokens(setup) || !setup->is_master) return;
    for (size_t i = 0; i < count * (sizeof ends / sizeof *ends); i++) {
        const char *file = files[i / (sizeof ends / sizeof *ends)];
        const char *end = ends[i % (sizeof ends / sizeof *ends)];
        size_t length = strlen(file), suffix = strlen(end);
        if (length < suffix || strcasecmp(file + length - suffix, end) != 0) continue;
        bel_log_write(BEL_LOG_INFO,
                      "%s: the whole file is learned as a text, with its commas; hint: "
                      "--text_column names the column of a table with the texts",
                      file);
        return;
    }
}

// The tokens of a table's texts are made by the tokenizer.
static bel_status *give_tokenizer(bel_setup *setup)
{
    if (setup->columns == NULL) return NULL;
    return bel_columns_set_tokenizer(setup->columns, setup->tokenizer);
}

static bel_status *prepare_training(const bel_options *options, bel_params *params, int64_t blocks,
                                    bel_setup *setup, const char *was)
{
    char digest[33];
    bel_str set = {0};
    int64_t steps = bel_options_int(options, "train_steps");
    if (setup->columns != NULL && !bel_follows(options)) // a file that grows has no last step
        steps = bel_table_steps(options, setup->columns, blocks);
    bel_warm_settings start_settings;
    BEL_TRY(begin_settings(options, setup, was, params, &start_settings));
    BEL_TRY(choose_tokenizer(options, was, setup));
    say_table(options, setup);
    BEL_TRY(give_tokenizer(setup));
    if (setup->is_master && was == NULL) compare_with_start(options, setup);
    if (setup->tokenizer != NULL) {
        bel_tokenizer_digest(setup->tokenizer, digest);
        bel_params_set(params, DIGEST, digest);
    }
    const bel_gpt_preset *preset = bel_gpt_preset_find(bel_options_string(options, "preset"));
    if (preset == NULL) preset = bel_gpt_preset_at(0);
    bel_status *status = set_sizes(options, params, setup, &set);
    if (status == NULL) status = bel_warm_start_check_settings(options, params, &start_settings);
    if (status == NULL && setup->tokenizer != NULL)
        status = keep_tokenizer(options, setup, was, digest);
    set_optimizer(options, params, &set);
    if (status == NULL)
        status =
            set_schedule(options, params, preset->learning_rate, setup->model_dir, steps, &set);
    int64_t batch =
        setup->columns != NULL ? bel_table_batch_size(options, setup->columns) : preset->batch;
    setup->input.train_batch_size = batch;
    if (!bel_options_is_given(options, "train_batch_size"))
        bel_str_printf(&set, " --train_batch_size %lld", (long long)batch);
    bool counts = steps > 0 && bel_options_int(options, "train_steps") == 0;
    if (counts && !bel_options_is_given(options, "num_epochs"))
        bel_str_printf(&set, " --num_epochs %lld", (long long)bel_table_epochs(setup->columns));
    char *start = taken_tokenizer(options, setup, was);
    bool plain = !bel_options_is_given(options, "tokenizer") && start == NULL;
    if (start != NULL)
        bel_log_write(BEL_LOG_INFO, "taken from the warm start: --tokenizer %s", start);
    bel_free(start);
    if (status == NULL)
        bel_log_write(BEL_LOG_INFO, "defaults of --model %s%s%s:%s%s%s", setup->model->name,
                      hides_tokens(setup) ? "" : " --preset ",
                      hides_tokens(setup) ? "" : preset->name, plain ? " --tokenizer " : "",
                      !plain                     ? ""
                      : setup->tokenizer != NULL ? "bytes"
                                                 : "unknown (texts need one)",
                      set.text);
    bel_str_deinit(&set);
    return status;
}

static bel_status *read_whole(const bel_params *params, const char *name, int64_t *out_number)
{
    const char *text = bel_params_get(params, name);
    if (text != NULL && bel_parse_i64(text, strlen(text), out_number)) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "the checkpoint's parameter %s: expected an integer, got %s",
                   name, text != NULL ? text : "nothing");
}

bel_status *bel_setup_text(const bel_options *options, bel_params *params, int64_t blocks,
                           bel_setup *setup)
{
    BEL_TRY(check_text_flags(options, setup));
    if (setup->checkpoint != NULL) {
        const char *digest = bel_params_get(params, DIGEST);
        if (digest == NULL) return NULL;
        BEL_TRY(open_kept(setup->model_dir, digest, &setup->tokenizer));
        return give_tokenizer(setup);
    }
    char *was = NULL;
    BEL_TRY(bel_ckpt_latest_setting(setup->model_dir, "param." DIGEST, &was));
    bel_status *status = prepare_training(options, params, blocks, setup, was);
    bel_free(was);
    return status;
}

bel_status *bel_setup_text_start(const bel_options *options, const bel_setup *setup,
                                 const char *const **out_patterns, int *out_count)
{
    static const char head[] = "logits/kernel";
    static const char *const body[] = {"*.*"}; // names of the body have a point
    const char *folder = bel_options_string(options, "warm_start");
    bool classifies = hides_tokens(setup) && setup->columns != NULL;
    bool asks = classifies && folder != NULL && setup->is_master && bel_dir_exists(folder) &&
                !bel_options_is_given(options, "warm_start_variables");
    bel_ckpt_reader *reader;
    char *was = NULL;
    if (!asks) return NULL;
    BEL_TRY(bel_ckpt_latest_setting(setup->model_dir, "param." DIGEST, &was));
    bool resumes = was != NULL;
    bel_free(was);
    if (resumes) return NULL;
    BEL_TRY_CTX(bel_ckpt_open_any(folder, &reader), "--warm_start");
    if (bel_ckpt_find(reader, head) < 0) {
        *out_patterns = body;
        *out_count = 1;
        bel_log_write(BEL_LOG_INFO,
                      "the head, \"%s\", begins anew: --warm_start %s has learned without classes",
                      head, folder);
    }
    bel_ckpt_close(reader);
    return NULL;
}

bel_status *bel_setup_text_input(const bel_params *params, bel_setup *setup)
{
    setup->input.reads_tokens = true;
    setup->input.tokenizer = setup->tokenizer;
    int64_t mask = -1;
    BEL_TRY(read_whole(params, "context", &setup->input.context));
    BEL_TRY(read_whole(params, "vocabulary", &setup->input.vocabulary));
    if (hides_tokens(setup)) BEL_TRY(read_whole(params, MASK, &mask));
    if (mask == setup->input.vocabulary - 1) setup->input.vocabulary = mask; // no text has it
    return NULL;
}
