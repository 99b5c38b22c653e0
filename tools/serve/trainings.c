// A training is set up as for an export, whose flags say which model a checkpoint has.
#include "serve/trainings.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "command/flags.h"
#include "package/package.h"

bool bel_trainings_is_one(const char *path)
{
    int64_t *steps = NULL;
    size_t count = 0;
    char *model = bel_path_join(path, "model.onnx");
    bool is_export = !bel_dir_exists(path) || bel_file_exists(model);
    bel_free(model);
    if (is_export) return false;
    bel_status_ignore(bel_ckpt_list(path, &steps, &count)); // then the folder is another kind
    bel_free(steps);
    return count > 0;
}

// Reads the name of a training's model. Free *out_name; NULL: unknown.
static bel_status *read_model(const char *path, char **out_name)
{
    bel_ckpt_reader *reader = NULL;
    BEL_TRY(bel_ckpt_latest_setting(path, "param.model", out_name));
    if (*out_name != NULL) return NULL;
    char *folder = bel_ckpt_find_folder(path, 0); // only the initial values are there
    bel_status *status = bel_ckpt_open_lazily(folder, &reader);
    const char *model = status == NULL ? bel_ckpt_setting(reader, "param.model") : NULL;
    if (model != NULL) *out_name = bel_xstrdup(model);
    bel_ckpt_close(reader);
    bel_free(folder);
    bel_status_ignore(status); // the set-up reports it
    return NULL;
}

// The package is for trainings of its model; one of another model would get wrong tensors, or other
// answers. *out_uses: this is one.
static bel_status *uses_package(const char *file, const char *path, bool *out_uses)
{
    const bel_package *package;
    char *name = NULL;
    *out_uses = false;
    if (file == NULL) return NULL;
    BEL_TRY(bel_package_open(file, &package));
    BEL_TRY(read_model(path, &name));
    *out_uses = name == NULL || strcmp(name, package->name) == 0;
    bel_free(name);
    return NULL;
}

bel_status *bel_trainings_add(bel_trainings *trainings, const bel_options *options,
                              const char *path, const bel_estimator **out_estimator)
{
    const char *package = bel_options_string(options, "package");
    char *words[4] = {bel_xstrdup("--model_dir"), bel_xstrdup(path)};
    int count = 2;
    bool uses = false;
    bel_status *status = uses_package(package, path, &uses);
    trainings->uses_package = trainings->uses_package || uses;
    if (uses) {
        words[count++] = bel_xstrdup("--package");
        words[count++] = bel_xstrdup(package);
    }
    bel_options *reading = bel_flags_create(BEL_VERB_EXPORT);
    bel_setup *setup = NULL;
    if (status == NULL) status = bel_options_parse(reading, count, words);
    if (status == NULL) status = bel_setup_for_reading(reading, &setup);
    bel_options_destroy(reading);
    for (int i = 0; i < count; i++)
        bel_free(words[i]);
    if (status != NULL) return status;
    trainings->items = bel_xgrow(trainings->items, &trainings->capacity, trainings->count + 1,
                                 sizeof(bel_setup *));
    trainings->items[trainings->count++] = setup;
    *out_estimator = setup->estimator;
    return NULL;
}

void bel_trainings_deinit(bel_trainings *trainings)
{
    for (size_t i = 0; i < trainings->count; i++)
        bel_setup_destroy(trainings->items[i]);
    bel_free(trainings->items);
}
