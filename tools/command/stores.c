// Every verb finds a path of this host where a flag named a URL. So no verb knows stores. A dump of
// the flags keeps the URL, since job.yaml may be used on another host.
#include "command/stores.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "launch/folder/stored.h"
#include "launch/task/task.h"
#include "store/store.h"

static const char *const folder_flags[] = {"model_dir",  "job_dir",    "checkpoint",
                                           "warm_start", "export_dir", "model"};
enum { FOLDER_FLAGS = sizeof folder_flags / sizeof *folder_flags };

// Whether this process has other roles than those that read the folder: workers, parameter servers
// and a cluster's evaluator get what they need from the master.
static bool is_member(void)
{
    bel_task *task = NULL;
    bel_status *status = bel_task_from_environment(false, &task);
    bool member = task != NULL && task->role != BEL_ROLE_MASTER && !task->follows;
    bel_status_ignore(status); // reported when the run begins
    bel_task_destroy(task);
    return member;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);
    return length > size && strcmp(text + length - size, end) == 0;
}

static bool is_model_file(const char *url)
{
    return ends_with(url, ".onnx") || ends_with(url, ".safetensors");
}

// The model, or a file of its weights: model.onnx.data, model.onnx_data.
static bool is_of_model(const char *end)
{
    return end[0] == '\0' || strncmp(end, ".data", 5) == 0 || strncmp(end, "_data", 5) == 0;
}

// Copies an ONNX model and the files of its weights, whose names begin with the model's:
// model.onnx.data.
static bel_status *fetch_model(const char *url, char **out_path)
{
    const char *name = strrchr(url, '/') + 1;
    char *folder = NULL;
    bel_store_entry *entries = NULL;
    size_t count = 0;
    BEL_TRY(bel_stored_place(url, &folder));
    bel_status *status = bel_dir_create(folder);
    bool web = status == NULL && strncasecmp(url, "http", 4) == 0; // it lists no files
    if (status == NULL && !web) status = bel_store_list(url, false, &entries, &count);
    bool found = web;
    for (size_t i = 0; i < (web ? 1 : count) && status == NULL; i++) {
        const char *end = web ? "" : entries[i].name + strlen(name);
        if (!is_of_model(end) || strchr(end, '/') != NULL) continue;
        found = found || end[0] == '\0';
        char *from = bel_strf("%s%s", url, end), *path = bel_strf("%s/%s%s", folder, name, end);
        status = bel_store_download(from, path, NULL);
        bel_free(from);
        bel_free(path);
    }
    bel_store_entries_free(entries, count);
    if (status == NULL && !found)
        status = BEL_ERR(BEL_NOT_FOUND, "%s: there is no such object", url);
    if (status == NULL) *out_path = bel_path_join(folder, name);
    bel_free(folder);
    return status;
}

// A checkpoint is in the folder of a model.
// `which`: of bel_stored_pull. `needs`: an empty folder is an error.
static bel_status *store_path(const char *text, bool reads, const char *which, bool needs,
                              char **out_path)
{
    if (!bel_store_is_url(text)) {
        *out_path = bel_xstrdup(text);
        return NULL;
    }
    if (is_model_file(text)) return fetch_model(text, out_path);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '/')
        length--;
    char *url = bel_xstrndup(text, length), *folder = NULL;
    char *slash = strrchr(url, '/'), *checkpoint = NULL;
    if (slash != NULL && strncmp(slash + 1, "ckpt-", 5) == 0) {
        checkpoint = bel_xstrdup(slash + 1);
        *slash = '\0';
    }
    bel_status *status = bel_stored_folder(url, &folder);
    if (status == NULL && reads)
        status = bel_stored_pull(folder, checkpoint != NULL ? checkpoint : which);
    if (status == NULL && needs && !bel_dir_exists(folder))
        status = BEL_ERR(BEL_NOT_FOUND, "%s: the store has no files there", url);
    if (status == NULL) {
        *out_path = checkpoint != NULL ? bel_path_join(folder, checkpoint) : bel_xstrdup(folder);
    }
    bel_free(folder);
    bel_free(checkpoint);
    bel_free(url);
    return status;
}

bel_status *bel_store_path(const char *text, char **out_path)
{
    return store_path(text, false, NULL, false, out_path);
}

bel_status *bel_store_path_to_read(const char *text, bool all, char **out_path)
{
    return store_path(text, true, all ? BEL_STORED_ALL : NULL, true, out_path);
}

// Models of language take sizes and a tokenizer from the folder of a warm start in every process.
static bool members_read(const bel_options *options, const char *flag)
{
    return strcmp(flag, "warm_start") == 0 && bel_options_has(options, "model") &&
           bel_list_find("gpt|encoder", "|", bel_options_text(options, "model")) >= 0;
}

bel_status *bel_stores_from_flags(bel_options *options)
{
    bool trains = !bel_options_has(options, "checkpoint"), member = is_member();
    for (int i = 0; i < FOLDER_FLAGS; i++) {
        const char *flag = folder_flags[i];
        const char *text = bel_options_has(options, flag) ? bel_options_text(options, flag) : "";
        if (!bel_store_is_url(text)) continue;
        char *path;
        bool is_written =
            trains && (strcmp(flag, "model_dir") == 0 || strcmp(flag, "job_dir") == 0);
        bool needs = !is_written && strcmp(flag, "export_dir") != 0;
        bool reads = !member || members_read(options, flag);
        BEL_TRY_CTX(store_path(text, reads, NULL, needs, &path), "--%s", flag);
        bel_options_mean(options, flag, path);
        bel_free(path);
    }
    return NULL;
}

bel_status *bel_stores_explain(const bel_options *options, bel_status *status)
{
    for (int i = 0; i < FOLDER_FLAGS && bel_status_code(status) == BEL_DATA_LOSS; i++) {
        const char *flag = folder_flags[i];
        if (!bel_options_has(options, flag) || !bel_store_is_url(bel_options_text(options, flag)))
            continue;
        bel_status *explained = BEL_ERR(
            BEL_DATA_LOSS,
            "%s; hint: if the files of %s are good, remove the damaged ones below %s: they are "
            "fetched again",
            bel_status_message(status), bel_options_text(options, flag),
            bel_options_string(options, flag));
        bel_status_destroy(status);
        return explained;
    }
    return status;
}

bel_status *bel_stores_add(const bel_options *options)
{
    if (!bel_options_has(options, "checkpoint")) return NULL; // a training sends its files
    for (int i = 0; i < FOLDER_FLAGS; i++) {
        const char *flag = folder_flags[i];
        if (!bel_options_has(options, flag) || !bel_store_is_url(bel_options_text(options, flag)))
            continue;
        bool exports = strcmp(flag, "export_dir") == 0;
        BEL_TRY_CTX(bel_stored_add(bel_options_string(options, flag),
                                   exports ? BEL_STORED_EXPORTER : BEL_STORED_VERB),
                    "--%s", flag);
    }
    return NULL;
}
