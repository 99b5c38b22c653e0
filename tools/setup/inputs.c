// Makes datasets from data flags: names below --data_dir, the format by name, the label column and
// the labels' file by convention. The checkpoint stores the training's scale, ids, lists, length
// and label, so reading needs only the files.
//
// Shuffling comes before repeating: each epoch has a different order and holds each record once.
// Without --num_epochs the data is endless only if --train_steps ends the training.
#include "setup/inputs.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "input/files/paths.h"
#include "input/table/csv_jsonl.h"
#include "setup/follow.h"
#include "store/store.h"

// Files of a list flag, below --data_dir if they are relative, with patterns replaced by their
// matches.
typedef struct file_list {
    const char *flag;
    bel_arena *arena; // owns the paths
    const char *const *paths;
    int count;
    const char *first; // the list's, with its pattern, for --follow
} file_list;

static void file_list_deinit(file_list *files)
{
    bel_arena_destroy(files->arena);
    *files = (file_list){0};
}

// Returns the value of --eval_share; NULL: no rows are held out.
static const char *share_of(const bel_options *options)
{
    return bel_options_has(options, "eval_share") ? bel_options_string(options, "eval_share")
                                                  : NULL;
}

static bel_status *file_list_init(const bel_options *options, bel_mode mode, file_list *files)
{
    size_t count;
    bool training = mode == BEL_MODE_TRAIN || share_of(options) != NULL;
    files->flag = training ? "train_files" : "eval_files";
    const char *const *names = bel_options_list(options, files->flag, &count);
    if (count == 0 || count > INT_MAX) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s is needed: the files to %s", files->flag,
                       training ? "train on" : "read");
    }
    const char *folder = bel_options_string(options, "data_dir");
    files->arena = bel_arena_create();
    const char **paths = bel_arena_alloc(files->arena, count * sizeof *paths);
    for (size_t i = 0; i < count; i++) {
        bool below = folder != NULL && names[i][0] != '/' && !bel_store_is_url(names[i]);
        char *path = below ? bel_path_join(folder, names[i]) : bel_xstrdup(names[i]);
        paths[i] = bel_arena_strdup(files->arena, path);
        bel_free(path);
    }
    files->first = paths[0];
    bel_status *status =
        bel_paths_expand(files->arena, paths, (int)count, &files->paths, &files->count);
    if (status != NULL) file_list_deinit(files);
    return status;
}

// Whether this host can read a file, or the store has an object. *out_bytes may be NULL.
static bel_status *look_at_file(const char *path, int64_t *out_bytes)
{
    bel_store_info object;
    struct stat info;
    if (bel_store_is_url(path)) {
        BEL_TRY(bel_store_stat(path, &object));
        if (out_bytes != NULL) *out_bytes = (int64_t)object.size_bytes;
        return NULL;
    }
    if (access(path, R_OK) != 0 || stat(path, &info) != 0)
        return bel_file_error(errno, "open", path);
    if (out_bytes != NULL) *out_bytes = (int64_t)info.st_size;
    return NULL;
}

static bel_status *check_files(const bel_options *options, bel_mode mode)
{
    file_list files = {0};
    bel_status *status = file_list_init(options, mode, &files);
    for (int i = 0; i < files.count && status == NULL; i++)
        status = look_at_file(files.paths[i], NULL);
    file_list_deinit(&files);
    return status;
}

bel_status *bel_flag_inputs_check(const bel_options *options)
{
    if (bel_options_is_given(options, "train_files")) BEL_TRY(check_files(options, BEL_MODE_TRAIN));
    if (bel_options_is_given(options, "eval_files")) BEL_TRY(check_files(options, BEL_MODE_EVAL));
    return NULL;
}

bool bel_flag_inputs_are_elsewhere(const bel_options *options)
{
    if (!bel_options_is_given(options, "train_files")) return false;
    file_list files = {0};
    bel_status *status = file_list_init(options, BEL_MODE_TRAIN, &files);
    bool elsewhere = bel_status_code(status) == BEL_NOT_FOUND ||
                     bel_paths_are_elsewhere(files.paths, files.count);
    bel_status_ignore(status); // any other error is reported when the files are opened
    file_list_deinit(&files);
    return elsewhere;
}

bel_status *bel_flag_inputs_paths(const bel_options *options, bel_mode mode, bel_arena *arena,
                                  const char *const **out_paths, int *out_count)
{
    file_list files = {0};
    BEL_TRY(file_list_init(options, mode, &files));
    const char **paths = bel_arena_alloc(arena, (size_t)files.count * sizeof *paths);
    for (int i = 0; i < files.count; i++)
        paths[i] = bel_arena_strdup(arena, files.paths[i]);
    *out_paths = paths;
    *out_count = files.count;
    file_list_deinit(&files);
    return NULL;
}

bool bel_flag_inputs_hold_out(const bel_options *options)
{
    return share_of(options) != NULL;
}

bool bel_flag_inputs_evaluates(const bel_options *options)
{
    size_t count;
    bel_options_list(options, "eval_files", &count);
    return count > 0 || share_of(options) != NULL;
}

// Returns true if two paths name one file.
static bool are_one_file(const char *a, const char *b)
{
    struct stat x, y;
    if (bel_store_is_url(a)) return strcmp(a, b) == 0;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void say_common_files(const bel_options *options)
{
    bel_arena *arena = bel_arena_create();
    const char *const *trained, *const *evaluated;
    int train_count = 0, eval_count = 0;
    bel_status *status =
        bel_flag_inputs_paths(options, BEL_MODE_TRAIN, arena, &trained, &train_count);
    if (status == NULL)
        status = bel_flag_inputs_paths(options, BEL_MODE_EVAL, arena, &evaluated, &eval_count);
    const char *common = NULL;
    for (int t = 0; t < train_count && status == NULL; t++)
        for (int e = 0; e < eval_count && common == NULL; e++)
            if (are_one_file(trained[t], evaluated[e])) common = evaluated[e];
    if (common != NULL) {
        bel_log_write(BEL_LOG_WARN,
                      "%s is trained on and evaluated on: that says nothing of other examples; "
                      "hint: --eval_share 0.2 instead of --eval_files holds rows out",
                      common);
    }
    bel_status_ignore(status); // reported when the files are opened
    bel_arena_destroy(arena);
}

void bel_flag_inputs_say(const bel_options *options)
{
    if (!bel_options_has(options, "eval_files")) return;
    if (bel_options_is_given(options, "eval_files")) {
        if (bel_options_is_given(options, "train_files")) say_common_files(options);
    } else if (!bel_flag_inputs_evaluates(options)) {
        bel_log_write(BEL_LOG_INFO, "nothing is evaluated: neither --eval_files nor --eval_share "
                                    "is given");
    }
}

static bool read_share(const char *text, bel_holdout *holdout)
{
    int64_t fold, count;
    const char *slash = strchr(text, '/');
    if (slash == NULL)
        return bel_parse_f64(text, strlen(text), &holdout->share) && holdout->share > 0 &&
               holdout->share < 1;
    if (!bel_parse_i64(text, (size_t)(slash - text), &fold) ||
        !bel_parse_i64(slash + 1, strlen(slash + 1), &count) || count < 2 || count > INT_MAX ||
        fold < 0 || fold >= count) {
        return false;
    }
    holdout->fold = (int)fold;
    holdout->fold_count = (int)count;
    return true;
}

// Held out rows are found when files are opened, once to train on and once to evaluate on.
static bel_status *check_regular(const bel_options *options)
{
    file_list files;
    BEL_TRY(file_list_init(options, BEL_MODE_TRAIN, &files));
    bel_status *status = NULL;
    for (int i = 0; i < files.count && status == NULL; i++) {
        struct stat info;
        if (stat(files.paths[i], &info) != 0 || S_ISREG(info.st_mode)) continue;
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "--eval_share: %s is no regular file, and can be read only once",
                         files.paths[i]);
    }
    file_list_deinit(&files);
    return status;
}

bel_status *bel_flag_inputs_holdout(const bel_options *options, bool held, bel_holdout *out_holdout)
{
    size_t count;
    const char *share = share_of(options);
    bel_options_list(options, "eval_files", &count);
    *out_holdout = (bel_holdout){.held = held};
    if (share == NULL) return NULL;
    if (count > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--eval_share and --eval_files exclude each other");
    }
    if (!read_share(share, out_holdout)) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "--eval_share: expected a share in (0, 1) such as 0.2, or K/N such as 0/5, K "
            "from 0 to N - 1, got \"%s\"",
            share);
    }
    out_holdout->seed = (uint64_t)bel_options_int(options, "eval_seed");
    return check_regular(options);
}

int64_t bel_flag_inputs_bytes(const bel_options *options)
{
    enum { UNPACKED = 5 };
    int64_t bytes = 0;
    file_list files = {0};
    bel_status_ignore(file_list_init(options, BEL_MODE_TRAIN, &files)); // then the list is empty
    for (int i = 0; i < files.count; i++) {
        int64_t size;
        const char *dot = strrchr(files.paths[i], '.');
        bool packed = dot != NULL && strcmp(dot, ".gz") == 0;
        bel_status *status = look_at_file(files.paths[i], &size);
        if (status == NULL) bytes += size * (packed ? UNPACKED : 1);
        bel_status_ignore(status); // reported when the file is opened
    }
    file_list_deinit(&files);
    return bytes;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_idx(const bel_options *options, const char *path)
{
    const char *format = bel_options_string(options, "input_format");
    if (strcmp(format, "auto") != 0) return strcmp(format, "idx") == 0;
    const char *name = base_name(path);
    if (strstr(name, ".csv") != NULL || strstr(name, ".tsv") != NULL) return false;
    return strstr(name, "idx") != NULL || strstr(name, "ubyte") != NULL;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), its = strlen(end);
    return length > its && strcmp(name + length - its, end) == 0;
}

const char *bel_flag_inputs_text_format(const bel_options *options, const char *path)
{
    const char *format = bel_options_string(options, "input_format");
    if (strcmp(format, "auto") != 0) return format;
    if (ends_with(path, ".bin")) return "tokens";
    return bel_csv_is_jsonl(path) ? "jsonl" : "text";
}

// A table of objects is known by its name, as there is a reader for each file of a table. So the
// flag cannot ask for another one.
static bel_status *check_objects(const bel_options *options, bool objects)
{
    static const bel_mode modes[] = {BEL_MODE_TRAIN, BEL_MODE_EVAL};
    static const char *const flags[] = {"train_files", "eval_files"};
    bel_status *status = NULL;
    for (size_t f = 0; f < sizeof flags / sizeof *flags && status == NULL; f++) {
        file_list files = {0};
        if (!bel_options_is_given(options, flags[f])) continue;
        bel_status_ignore(file_list_init(options, modes[f], &files)); // reported when it is opened
        for (int i = 0; i < files.count && status == NULL; i++)
            if (bel_csv_is_jsonl(files.paths[i]) != objects)
                status =
                    BEL_ERR(BEL_INVALID_ARGUMENT,
                            "--%s: %s: with --input_format %s expected names of tables that %s "
                            "with .jsonl or .ndjson",
                            files.flag, files.paths[i], objects ? "jsonl" : "csv",
                            objects ? "end" : "do not end");
        file_list_deinit(&files);
    }
    return status;
}

bel_status *bel_flag_inputs_check_format(const bel_options *options, const char *model)
{
    bool tokens = model != NULL;
    const char *format = bel_options_string(options, "input_format");
    bool of_tokens = bel_list_find("text|jsonl|tokens", "|", format) >= 0;
    if (!tokens && strcmp(format, "csv") == 0) return check_objects(options, false);
    if (strcmp(format, "auto") == 0 || of_tokens == tokens) return NULL;
    if (!tokens && strcmp(format, "jsonl") == 0) return check_objects(options, true);
    if (!tokens)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--input_format %s: this model reads csv or idx; --model gpt reads texts",
                       format);
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--input_format %s: --model %s reads text, jsonl or tokens%s", format, model,
                   strcmp(model, "encoder") == 0 ? "; hint: --text_column reads a table" : "");
}

const char *bel_flag_inputs_format(const bel_options *options, bool tokens)
{
    static const char *const flags[] = {"train_files", "eval_files"};
    size_t tables = 0, files = 0;
    const char *first = NULL;
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
        if (!bel_options_is_given(options, flags[f])) continue;
        size_t count;
        const char *const *names = bel_options_list(options, flags[f], &count);
        files += count;
        tables += count > 0 && !is_idx(options, names[0]);
        if (first == NULL && count > 0) first = names[0];
    }
    if (tokens) return bel_flag_inputs_text_format(options, first != NULL ? first : "");
    return files > 0 && tables == 0 ? "idx" : "csv";
}

// --- CSV ----------------------------------------------------------------------------------------

// Splits "a,b" into a list of names in *out_text; free both with bel_free.
static const char **split_names(const char *names, char **out_text, int *out_count)
{
    int most = 1;
    for (const char *c = names; *c != '\0'; c++)
        most += *c == ',';
    const char **list = bel_xcalloc((size_t)most, sizeof *list);
    char *text = *out_text = bel_xstrdup(names), *rest = NULL;
    for (char *name = strtok_r(text, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
        list[(*out_count)++] = name;
    return list;
}

// --- Rows that name files ------------------------------------------------------------------------

// A bel_map_fn: calls the package's feature function with the path in the row. A relative path
// begins at the CSV file's folder.
static bel_status *add_features(void *flag_input, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const bel_flag_input *input = flag_input;
    const char *column = bel_options_string(input->options, "path_column");
    const char *path = bel_record_path(record, column, NULL);
    if (path != NULL) return input->feature_fn(input->feature_user, path, record);
    return BEL_ERR(BEL_DATA_LOSS, "column \"%s\": expected the path of a file, got %s", column,
                   bel_record_get(record, column)->shape.dims[0] == 0
                       ? "nothing"
                       : "a text with a zero byte in it");
}

static bel_status *check_path_flags(const bel_flag_input *input)
{
    const char *path = bel_options_string(input->options, "path_column");
    if (path == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--path_column: expected the name of the column with "
                                             "the paths, got nothing");
    }
    if (input->id_columns == NULL && input->id_list_columns == NULL &&
        input->length_column == NULL && input->feature_scale == 1) {
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--id_columns, --id_list_columns, --length_column and --feature_scale are for "
                   "numbers of a CSV "
                   "file; this package makes its features from the files that rows name");
}

static bel_status *open_paths(const bel_flag_input *input, const char *label, bool last_is_label,
                              const bel_holdout *holdout, const file_list *files,
                              bel_dataset **out_dataset)
{
    BEL_TRY(check_path_flags(input));
    const char *path = bel_options_string(input->options, "path_column");
    bel_dataset *dataset = bel_dataset_from_csv(&(bel_csv_options){
        .size = sizeof(bel_csv_options),
        .paths = files->paths,
        .path_count = files->count,
        .no_header = !bel_options_bool(input->options, "header"),
        .label_column = label,
        .last_is_label = last_is_label,
        .class_count = input->class_count,
        .columns = (const bel_csv_column[]){{path, BEL_DTYPE_STRING}},
        .column_count = 1,
        .holdout = *holdout,
    });
    *out_dataset = dataset;
    return NULL;
}

// Returns the flags that name the files: those of the training whose held out rows are read, or
// this command's.
static const bel_options *naming(const bel_flag_input *input)
{
    return input->training != NULL ? input->training : input->options;
}

// The time to wait for rows of a growing file; 0: the file does not grow.
static double follow_secs(const bel_flag_input *input, bel_mode mode)
{
    bool follows = mode == BEL_MODE_TRAIN && bel_follows(input->options);
    return follows ? bel_options_double(input->options, "follow_timeout") : 0;
}

static bel_status *open_csv(const bel_flag_input *input, bel_mode mode, const file_list *files,
                            bel_dataset **out_dataset)
{
    bel_holdout holdout;
    const bel_options *options = naming(input);
    bool again = input->training != NULL, follows = follow_secs(input, mode) > 0;
    BEL_TRY(bel_flag_inputs_holdout(options, mode == BEL_MODE_EVAL || again, &holdout));
    bool unchecked = bel_options_has(input->options, "check_input") &&
                     !bel_options_bool(input->options, "check_input");
    if (input->columns != NULL) {
        *out_dataset = bel_dataset_from_csv(
            &(bel_csv_options){.size = sizeof(bel_csv_options),
                               .paths = follows ? &files->first : files->paths,
                               .path_count = follows ? 1 : files->count,
                               .holdout = holdout,
                               .table = input->columns,
                               .follow_secs = follow_secs(input, mode),
                               .unchecked = unchecked,
                               .unchanged = mode != BEL_MODE_PREDICT && !follows,
                               .unlabeled = mode == BEL_MODE_PREDICT});
        return NULL;
    }
    bool header = bel_options_bool(options, "header");
    const char *label = bel_options_string(options, "label_column");
    bool labeled = mode == BEL_MODE_EVAL || again; // the choice of held out rows depends on labels
    if (label == NULL && labeled) label = input->label_column;
    bool last_is_label = label == NULL && mode != BEL_MODE_PREDICT;
    if (input->feature_fn != NULL)
        return open_paths(input, label, last_is_label, &holdout, files, out_dataset);
    char *id_text = NULL, *list_text = NULL;
    int id_count = 0, list_count = 0;
    const char **ids = NULL, **lists = NULL;
    if (input->id_columns != NULL) ids = split_names(input->id_columns, &id_text, &id_count);
    if (input->id_list_columns != NULL)
        lists = split_names(input->id_list_columns, &list_text, &list_count);
    *out_dataset = bel_dataset_from_csv(&(bel_csv_options){
        .size = sizeof(bel_csv_options),
        .paths = follows ? &files->first : files->paths,
        .path_count = follows ? 1 : files->count,
        .no_header = !header,
        .label_column = label,
        .last_is_label = last_is_label,
        .id_columns = ids,
        .id_column_count = id_count,
        .id_list_columns = lists,
        .id_list_column_count = list_count,
        .id_list_most = list_count > 0 ? input->id_list_most : 0,
        .id_list_weights = list_count > 0 && input->id_list_weights,
        .length_column = input->length_column,
        .class_count = input->class_count,
        .scale = input->feature_scale,
        .vector_dtype = input->vector_dtype,
        .holdout = holdout,
        .follow_secs = follow_secs(input, mode),
    });
    bel_free(id_text);
    bel_free(ids);
    bel_free(list_text);
    bel_free(lists);
    return NULL;
}

// --- IDX ----------------------------------------------------------------------------------------

// Turns "train-images-idx3-ubyte.gz" into "train-labels-idx1-ubyte.gz"; NULL if the name does not
// follow the convention. Free with bel_free.
static char *labels_beside(const char *images)
{
    const char *place = strstr(base_name(images), "-images");
    if (place == NULL) return NULL;
    char *labels = bel_xstrdup(images);
    char *tail = labels + (place - images);
    tail[1] = 'l', tail[2] = 'a', tail[3] = 'b', tail[4] = 'e', tail[5] = 'l'; // images -> labels
    char *rank = strstr(tail, "idx3");
    if (rank != NULL) rank[3] = '1';
    return labels;
}

static bel_status *open_idx(const bel_flag_input *input, bel_mode mode, const file_list *files,
                            bel_dataset **out_dataset)
{
    if (files->count > 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s: expected one pair of IDX files (images,labels), got %d files",
                       files->flag, files->count);
    }
    const char *columns = input->id_columns != NULL        ? "id_columns"
                          : input->id_list_columns != NULL ? "id_list_columns"
                          : input->length_column != NULL   ? "length_column"
                                                           : NULL;
    if (columns != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s: IDX files have no columns, and --%s, given or remembered by the "
                       "checkpoint, names some",
                       files->flag, columns);
    }
    char *beside = labels_beside(files->paths[0]);
    const char *labels = files->count == 2 ? files->paths[1] : beside;
    bel_status *status = NULL;
    if (mode == BEL_MODE_PREDICT) labels = NULL;
    if (labels == NULL && mode != BEL_MODE_PREDICT) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "--%s: IDX images need labels: --%s IMAGES,LABELS, or a file name with "
                         "\"-images\" whose \"-labels\" is beside it",
                         files->flag, files->flag);
    } else {
        *out_dataset =
            bel_dataset_from_idx(files->paths[0], labels, input->feature_scale, input->class_count);
    }
    bel_free(beside);
    return status;
}

// --- Tokens --------------------------------------------------------------------------------------

// Refuses files of two formats by their names: the first one's would be wrong for the others.
static bel_status *check_one_format(const bel_options *options, const file_list *files)
{
    const char *format = bel_flag_inputs_text_format(options, files->paths[0]);
    for (int i = 1; i < files->count; i++) {
        const char *its = bel_flag_inputs_text_format(options, files->paths[i]);
        if (strcmp(its, format) == 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s: %s is of format %s by its name, and %s of format %s; hint: "
                       "--input_format, if all are the same",
                       files->flag, files->paths[0], format, files->paths[i], its);
    }
    return NULL;
}

static bel_status *open_tokens(const bel_flag_input *input, bel_mode mode, const file_list *files,
                               bel_dataset **out_dataset)
{
    const bel_options *options = naming(input);
    const char *format = bel_flag_inputs_text_format(options, files->paths[0]);
    bool ids = strcmp(format, "tokens") == 0, lines = strcmp(format, "jsonl") == 0;
    bool held = mode == BEL_MODE_EVAL || input->training != NULL;
    bel_holdout holdout;
    if (!ids && input->tokenizer == NULL) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "--%s: texts need a tokenizer, and the training had token files without one; "
            "hint: --tokenizer when you train",
            files->flag);
    }
    BEL_TRY(check_one_format(options, files));
    BEL_TRY(bel_flag_inputs_holdout(options, held, &holdout));
    *out_dataset = bel_dataset_from_tokens(
        &(bel_token_options){.size = sizeof(bel_token_options),
                             .paths = files->paths,
                             .path_count = files->count,
                             .format = ids     ? BEL_TOKENS_IDS
                                       : lines ? BEL_TOKENS_JSONL
                                               : BEL_TOKENS_TEXT,
                             .key = lines ? bel_options_string(options, "text_key") : NULL,
                             .tokenizer = input->tokenizer,
                             .vocabulary = ids ? input->vocabulary : 0,
                             .wide = ids && bel_options_bool(options, "wide_tokens"),
                             .context = input->context,
                             .holdout = holdout});
    return NULL;
}

// --- Stages -------------------------------------------------------------------------------------

// Adds the stages. Records of files may have any length.
static void add_stages(bel_flag_input *input, bel_mode mode, bel_dataset *dataset)
{
    const bel_options *options = input->options;
    bool training = mode == BEL_MODE_TRAIN;
    if (training && !bel_follows(options)) {
        int64_t buffer = bel_options_int(options, "shuffle_buffer");
        int64_t epochs = bel_options_int(options, "num_epochs");
        if (epochs == 0 && bel_options_int(options, "train_steps") == 0) epochs = input->num_epochs;
        bool endless = epochs == 0 && bel_options_int(options, "train_steps") > 0;
        uint64_t seed = (uint64_t)bel_options_int(options, "seed");
        if (buffer != 1) bel_dataset_shuffle(dataset, buffer, seed);
        bel_dataset_repeat(dataset, endless ? BEL_REPEAT_FOREVER : epochs > 0 ? epochs : 1);
    }
    const char *batch_flag = training ? "train_batch_size" : "eval_batch_size";
    int64_t batch_size = bel_options_int(options, batch_flag);
    if (training && input->train_batch_size > 0 && !bel_options_is_given(options, batch_flag))
        batch_size = input->train_batch_size;
    if (input->feature_fn != NULL) {
        const char *drop[] = {bel_options_string(options, "path_column"), NULL};
        bel_dataset_named_files(dataset, drop[0], NULL);
        bel_dataset_map(dataset, add_features, input, drop);
        bel_dataset_padded_batch(dataset, batch_size, NULL, 0);
    } else {
        bel_dataset_batch(dataset, batch_size);
    }
    if (mode != BEL_MODE_PREDICT) { // in prediction each record must keep its line
        bel_dataset_skip_bad_records(dataset, bel_options_int(options, "skip_bad_records"));
    }
    int depth = (int)bel_options_int(options, "prefetch");
    int threads = (int)bel_options_int(options, "input_threads");
    bel_dataset_prefetch(dataset, depth == 0 ? BEL_PREFETCH_AUTO : depth,
                         threads == 0 ? BEL_PREFETCH_AUTO : threads);
}

bel_status *bel_flag_input_open(void *flag_input, const bel_estimator *estimator, bel_mode mode,
                                bel_dataset **out_dataset)
{
    (void)estimator;
    bel_flag_input *input = flag_input;
    file_list files = {0};
    BEL_TRY(file_list_init(naming(input), mode, &files));
    bool idx = is_idx(naming(input), files.paths[0]), tokens = input->reads_tokens;
    bel_dataset *dataset = NULL;
    bel_status *status = (tokens ? open_tokens
                          : idx  ? open_idx
                                 : open_csv)(input, mode, &files, &dataset);
    file_list_deinit(&files);
    if (status != NULL) return status;
    add_stages(input, mode, dataset);
    *out_dataset = dataset;
    return NULL;
}
