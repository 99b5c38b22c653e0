// A training is set up as for an export, whose flags say which model a checkpoint has.
#include "serve/trainings.h"

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "command/flags.h"

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

bel_status *bel_trainings_add(bel_trainings *trainings, const bel_options *options,
                              const char *path, const bel_estimator **out_estimator)
{
    const char *package = bel_options_string(options, "package");
    char *words[4] = {bel_xstrdup("--model_dir"), bel_xstrdup(path)};
    int count = 2;
    if (package != NULL) {
        words[count++] = bel_xstrdup("--package");
        words[count++] = bel_xstrdup(package);
    }
    bel_options *reading = bel_flags_create(BEL_VERB_EXPORT);
    bel_setup *setup = NULL;
    bel_status *status = bel_options_parse(reading, count, words);
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
