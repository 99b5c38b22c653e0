// A dataset belongs to the input as soon as it is opened, even if that fails: an input function
// keeps nothing that other code would have to free. The names of a checkpoint's columns live only
// during the opening; the input copies those that it binds.
#include "model/input_fn.h"

#include "base/arena.h"
#include "input/dataset/description.h"

bel_status *bel_input_fn_open(bel_input_fn *input_fn, void *user, const bel_estimator *estimator,
                              bel_mode mode, const bel_column_names *like, bel_input **out_input)
{
    static const char *const names[] = {"training input", "evaluation input", "prediction input"};
    bel_dataset *dataset = NULL;
    BEL_TRY_CTX(input_fn(user, estimator, mode, &dataset), "%s", names[mode]);
    if (dataset == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the input function gave no dataset", names[mode]);
    }
    bel_input_use use = {.like = like, .at_once = mode == BEL_MODE_PREDICT};
    bel_status *status = bel_input_open(dataset, &use, out_input);
    bel_dataset_destroy(dataset);
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", names[mode]);
}

bel_status *bel_input_fn_open_like(bel_input_fn *input_fn, void *user,
                                   const bel_estimator *estimator, bel_mode mode,
                                   const char *columns, bel_input **out_input)
{
    if (columns == NULL) return bel_input_fn_open(input_fn, user, estimator, mode, NULL, out_input);
    bel_arena *arena = bel_arena_create();
    bel_column_names names;
    bel_status *status = bel_column_names_read(columns, "columns of the checkpoint", arena, &names);
    if (status == NULL)
        status = bel_input_fn_open(input_fn, user, estimator, mode, &names, out_input);
    bel_arena_destroy(arena);
    return status;
}

bool bel_input_fn_is_elsewhere(bel_input_fn *input_fn, void *user, const bel_estimator *estimator,
                               bel_str *out_error)
{
    bel_dataset *dataset = NULL;
    const bel_description *description = NULL;
    bel_status *status = input_fn(user, estimator, BEL_MODE_TRAIN, &dataset);
    if (status == NULL && dataset != NULL) status = bel_dataset_describe(dataset, &description);
    bool elsewhere = bel_status_code(status) == BEL_NOT_FOUND;
    if (elsewhere) bel_str_puts(out_error, bel_status_message(status));
    bel_status_ignore(status); // any other error is reported when the data is opened
    if (description != NULL) elsewhere = bel_description_is_elsewhere(description);
    bel_dataset_destroy(dataset);
    return elsewhere;
}
