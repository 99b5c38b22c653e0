// Makes an estimator from flags. When a checkpoint is read, its settings come first and flags
// change them, so that `belfry evaluate --model_dir D --eval_files F` is enough. The reader is
// closed before the estimator opens the checkpoint. Only its folder's name is kept, so both use the
// same checkpoint even if a newer one is saved meanwhile.
//
// Flags that the chosen model, optimizer or mode does not read are refused as soon as the model is
// known, which may be after the checkpoint was opened. For models of Belfry this file lists the
// parameters that are read; a package's model function reports them. The setup owns the texts to
// which the input points: it must outlive the estimator's calls.
#include "setup/setup.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/best.h"
#include "columns/description.h"
#include "command/flags.h"
#include "driver/hear_input.h"
#include "estimator/estimator_inner.h"
#include "estimator/run_flags.h"
#include "input/table/column_names.h"
#include "launch/supervise/trials.h"
#include "launch/task/task.h"
#include "model/settings.h"
#include "package/package.h"
#include "setup/follow.h"
#include "setup/held_out.h"
#include "setup/params.h"
#include "setup/setup_onnx.h"
#include "setup/setup_text.h"
#include "setup/tables.h"
#include "setup/warm_start.h"

// --- The model ----------------------------------------------------------------------------------

static bel_status *choose_model(const bel_options *options, const bel_params *params,
                                bel_setup *setup)
{
    const char *package = bel_options_string(options, "package");
    bool named = bel_options_is_given(options, "model");
    if (package != NULL && named) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--model and --package exclude each other");
    }
    if (package != NULL) {
        BEL_TRY(bel_package_open(package, &setup->model));
        const char *about = setup->model->description;
        bel_log_write(BEL_LOG_DEBUG, "package %s: model %s%s%s", package, setup->model->name,
                      about != NULL ? ", " : "", about != NULL ? about : "");
        return NULL;
    }
    const char *stored = bel_params_get(params, "model");
    const char *name = named || stored == NULL ? bel_options_string(options, "model") : stored;
    if (bel_is_onnx_file(name)) {
        setup->onnx_file = bel_xstrdup(name);
        name = "onnx";
    }
    setup->model = bel_model_find(name);
    if (setup->model != NULL) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "%s was trained with a package's model, \"%s\": give that --package",
                   setup->checkpoint, name);
}

// Refuses a flag that has no effect with the chosen model, optimizer, schedule or mode. Only a
// package knows which parameters it reads (training warns of the rest), and it may bring data to
// evaluate on. A checkpoint may set the model and its columns. The format of the data is that of
// its files. `belfry tune` compares its trials by --best_metric and --best_goal.
static bel_status *check_flags(const bel_options *options, const bel_params *params,
                               bool is_package, const bel_setup *setup)
{
    static const char *const of_package[] = {"optimizer", "weight_decay", "moving_average_decay"};
    enum { OF_PACKAGE = sizeof of_package / sizeof of_package[0] };
    bool reading = setup->checkpoint != NULL;
    bool text = !is_package && bel_is_text_model(setup->model->name);
    bool contexts = text && setup->columns == NULL;
    bool stored = reading && !bel_options_is_given(options, "model");
    if (bel_flag_inputs_hold_out(options) && setup->model->input_fn != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--eval_share: the package reads its data itself, and does not use it");
    }
    if (bel_follows(options) &&
        (setup->model->input_fn != NULL || setup->model->feature_fn != NULL || contexts)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--follow: expected a model that reads the columns of "
                                             "a CSV file; this one reads other data");
    }
    if (is_package && setup->model->feature_fn == NULL && setup->model->input_fn == NULL &&
        bel_options_is_given(options, "path_column")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--path_column has no effect here: the package makes no features of files");
    }
    const char *schedule = bel_params_get(params, "schedule"); // tables have other defaults
    const char *objective = bel_params_get(params, "objective");
    if (objective == NULL && bel_options_has(options, "objective"))
        objective = bel_options_text(options, "objective");
    bel_option_meaning meanings[OF_PACKAGE + 11] = {
        {"input_format", bel_flag_inputs_format(options, contexts)},
        {"model", is_package || stored ? NULL : setup->model->name},
        {"schedule", is_package ? NULL : schedule},
        {"objective", objective}};
    bel_option_meaning *next = meanings + 4;
    static const char *const of_text[] = {"optimizer", "weight_decay", "clip_global_norm"};
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text && text; i++)
        *next++ = (bel_option_meaning){of_text[i], bel_params_get(params, of_text[i])};
    int place, places;
    bel_trials_place(&place, &places);
    if (places > 0) (next++)->name = "early_stopping";
    if (reading) (next++)->name = "id_list_columns";
    if (reading && setup->model->input_fn != NULL) (next++)->name = "eval_files";
    for (int i = 0; i < OF_PACKAGE && is_package; i++)
        (next++)->name = of_package[i];
    return bel_options_check_read(options, meanings);
}

// --- How to run ---------------------------------------------------------------------------------

// Sets the towers of workers: one number for all, or a list. *out_list is NULL or must be freed.
static bel_status *set_towers(const bel_options *options, bel_run_config *config, int **out_list)
{
    size_t count;
    bel_options_list(options, "towers_of_workers", &count);
    int64_t gpus = bel_options_int(options, "num_gpus");
    *out_list = NULL;
    if (count == 0) return NULL;
    if (gpus > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--num_gpus and --towers_of_workers exclude each other");
    }
    bool counted = bel_options_is_given(options, "num_workers");
    if (counted && count != (size_t)config->num_workers) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--towers_of_workers: expected a number for each of %d workers, got %zu",
                       config->num_workers, count);
    }
    int *list = bel_xcalloc(count, sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (int)bel_options_list_int(options, "towers_of_workers", i);
    config->num_workers = (int)count;
    config->towers_of = list;
    *out_list = list;
    return NULL;
}

// Sets the part of a prediction: --part K/N, or the rank of this process.
static bel_status *set_part(const bel_options *options, bel_run_config *config)
{
    const char *text = bel_options_string(options, "part"); // NULL: the verb has no such flag
    int64_t part = 0, parts = 0;
    if (text == NULL || text[0] == '\0') return NULL;
    if (strcmp(text, BEL_PART_OF_RANKS) == 0) {
        bel_launch launch;
        BEL_TRY(bel_launch_find(INT_MAX, &launch));
        config->predict_part = launch.rank;
        config->predict_parts = launch.size;
        return NULL;
    }
    const char *slash = strchr(text, '/');
    if (slash == NULL || !bel_parse_i64(text, (size_t)(slash - text), &part) ||
        !bel_parse_i64(slash + 1, strlen(slash + 1), &parts) || part < 0 || part >= parts ||
        parts > INT_MAX) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--part: expected K/N such as 0/4, K from 0 to N - 1, or " BEL_PART_OF_RANKS
                       ", got %s",
                       text);
    }
    config->predict_part = (int)part;
    config->predict_parts = (int)parts;
    return NULL;
}

// Sets the run without its folder, which may follow from a checkpoint.
static bel_status *set_run(const bel_options *options, bel_run_config *config)
{
    const char *name;
    for (size_t i = 0; (name = bel_run_flag(i)) != NULL; i++) {
        if (strcmp(name, "model_dir") == 0 || !bel_options_has(options, name)) continue;
        BEL_TRY(bel_run_config_set(config, name, bel_options_text(options, name)));
    }
    return NULL;
}

// Reads the flags of the run, without its folder. Free *out_towers after the last use of
// *out_config, which points to it.
static bel_status *read_run(const bel_options *options, bel_run_config *out_config,
                            int **out_towers)
{
    bel_run_config_init(out_config, sizeof *out_config);
    BEL_TRY(set_run(options, out_config));
    return set_towers(options, out_config, out_towers);
}

static bel_status *count_blocks(const bel_options *options, const char *model_dir,
                                int64_t *out_blocks)
{
    bel_run_config config;
    int *towers;
    BEL_TRY(read_run(options, &config, &towers));
    config.model_dir = model_dir;
    bel_status *status = bel_run_config_blocks_per_step(&config, out_blocks);
    bel_free(towers);
    return status;
}

// --- The parameters ----------------------------------------------------------------------------

// Sets the parameters of a table. A checkpoint that is read has them already.
static bel_status *set_table(const bel_options *options, bel_params *params, bel_setup *setup,
                             int64_t blocks)
{
    BEL_TRY(bel_table_check_label(options, setup->columns));
    if (setup->checkpoint != NULL) return bel_table_check_reading(options);
    setup->eval_every_steps = bel_table_eval_steps(options, setup->columns, blocks);
    return bel_table_set_params(params, options, setup->columns,
                                setup->remembers ? setup->model_dir : NULL, blocks);
}

static bel_status *gather_params(const bel_options *options, bel_params *params, bel_setup *setup)
{
    BEL_TRY(choose_model(options, params, setup));
    bool is_package = bel_options_string(options, "package") != NULL;
    bel_params_set(params, "model", setup->model->name);
    if (strcmp(setup->model->name, "onnx") == 0)
        BEL_TRY(bel_setup_onnx_file(options, params, setup));
    bool text = !is_package && bel_is_text_model(setup->model->name);
    bool contexts = text && setup->columns == NULL;
    int64_t blocks = 1;
    if (setup->columns != NULL && setup->checkpoint == NULL)
        BEL_TRY(count_blocks(options, setup->model_dir, &blocks));
    if (setup->columns != NULL && !is_package)
        BEL_TRY(bel_table_check_model(setup->columns, setup->model->name));
    BEL_TRY(bel_warm_start_check_columns(options, setup));
    if (text) BEL_TRY(bel_setup_text(options, params, blocks, setup));
    BEL_TRY(bel_flag_inputs_check_format(options, contexts ? setup->model->name : NULL));
    BEL_TRY(bel_params_from_flags(params, options, !is_package, setup->model));
    if (setup->columns != NULL) BEL_TRY(set_table(options, params, setup, blocks));
    BEL_TRY(check_flags(options, params, is_package, setup));

    int64_t batch = setup->input.train_batch_size; // a text model's
    setup->input = (bel_flag_input){.options = options,
                                    .training = setup->training,
                                    .feature_scale = 1,
                                    .vector_dtype = setup->vector_dtype,
                                    .label_column = setup->label_column,
                                    .columns = setup->columns,
                                    .train_batch_size = batch};
    if (contexts) BEL_TRY(bel_setup_text_input(params, setup));
    if (setup->columns != NULL) {
        setup->input.train_batch_size = bel_table_batch_size(options, setup->columns);
        setup->input.num_epochs = bel_table_epochs(setup->columns);
    }
    const char *ids = bel_params_get(params, "id_columns");
    setup->input.id_columns = setup->id_columns = ids != NULL ? bel_xstrdup(ids) : NULL;
    const char *lists = bel_params_get(params, "id_list_columns");
    bool has_lists = lists != NULL && lists[0] != '\0';
    setup->id_list_columns = has_lists ? bel_xstrdup(lists) : NULL;
    setup->input.id_list_columns = setup->id_list_columns;
    const char *weights = bel_params_get(params, "id_list_weights");
    setup->input.id_list_weights = weights != NULL && strcmp(weights, "true") == 0;
    const char *length = bel_params_get(params, "length_column");
    bool has_length = length != NULL && length[0] != '\0';
    setup->input.length_column = setup->length_column = has_length ? bel_xstrdup(length) : NULL;
    setup->input.feature_fn = setup->model->feature_fn;
    setup->input.feature_user = setup->model->user;
    bool own_input = setup->model->input_fn != NULL;
    setup->input_fn = own_input ? setup->model->input_fn : bel_flag_input_open;
    setup->input_user = own_input ? setup->model->user : &setup->input;
    const char *scale = bel_params_get(params, "feature_scale");
    const char *classes = bel_params_get(params, "class_count");
    const char *most = bel_params_get(params, "id_list_most");
    const char *threshold = bel_params_get(params, "threshold");
    setup->threshold = 0.5;
    bool ok = scale == NULL || bel_parse_f64(scale, strlen(scale), &setup->input.feature_scale);
    ok = ok &&
         (classes == NULL || bel_parse_i64(classes, strlen(classes), &setup->input.class_count));
    ok =
        ok && (threshold == NULL || bel_parse_f64(threshold, strlen(threshold), &setup->threshold));
    ok = ok && (most == NULL || bel_parse_i64(most, strlen(most), &setup->input.id_list_most));
    if (ok) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: its feature_scale, class_count, threshold or id_list_most is no number",
                   setup->checkpoint);
}

bel_status *bel_setup_check_run(const bel_options *options, int worker_count)
{
    bel_run_config config;
    BEL_TRY(bel_follow_check(options));
    bel_run_config_init(&config, sizeof config);
    BEL_TRY(set_run(options, &config));
    config.num_workers = worker_count;
    config.model_dir = "."; // any folder: the launcher knows the real one
    if (config.scale_learning_rate != BEL_SCALE_NONE &&
        bel_options_is_given(options, "rate_scale")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--rate_scale and --scale_learning_rate exclude each other");
    }
    return bel_run_config_check(&config);
}

int bel_setup_card_count(const bel_options *options)
{
    bel_run_config config;
    int *towers = NULL, count = 0;
    bel_status *status = read_run(options, &config, &towers);
    if (status == NULL && bel_estimator_wants_cards(&config)) {
        int each = config.num_gpus > 0 ? config.num_gpus : 1;
        for (int w = 0; w < config.num_workers; w++)
            count += towers != NULL ? towers[w] : each;
    }
    bel_status_ignore(status); // the training process reports it
    bel_free(towers);
    return count;
}

// Marks parameters as read. A model of Belfry receives every flag, also as a default; flags without
// effect were refused. A few of a package's parameters are the command's.
static void mark_read(const bel_options *options, const bel_params *params, bel_setup *setup)
{
    static const char *const own[] = {"model",           "feature_scale",   "class_count",
                                      "id_columns",      "id_list_columns", "id_list_most",
                                      "id_list_weights", "length_column"};
    bool is_package = bel_options_string(options, "package") != NULL;
    for (size_t i = 0; i < params->count && !is_package; i++)
        bel_estimator_param_is_read(setup->estimator, params->items[i].name);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        bel_estimator_param_is_read(setup->estimator, own[i]);
}

// Passes the data flags to a package's input function, under their names. They are not parameters
// of the model: a checkpoint does not store the files that were read.
static void tell_data_flags(const bel_options *options, bel_setup *setup)
{
    static const char *const others[] = {"train_steps", "seed"};
    const char *flag;
    for (size_t i = 0; (flag = bel_flags_in_group(BEL_FLAG_GROUP_DATA, i)) != NULL; i++)
        if (bel_options_has(options, flag)) {
            bel_estimator_tell(setup->estimator, flag, bel_options_text(options, flag),
                               bel_options_is_given(options, flag));
        }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (bel_options_has(options, others[i])) {
            bel_estimator_tell(setup->estimator, others[i], bel_options_text(options, others[i]),
                               false);
        }
}

static bel_status *create_estimator(const bel_options *options, bel_params *params,
                                    bel_setup *setup)
{
    BEL_TRY(gather_params(options, params, setup));
    bel_run_config config;
    int *towers;
    BEL_TRY(read_run(options, &config, &towers));
    config.model_dir = setup->model_dir;
    config.job_file = setup->job_file;
    config.model_file = setup->onnx_file;
    config.user = setup->model->user;
    bel_status *status = set_part(options, &config);
    if (status == NULL) {
        status = bel_estimator_create(setup->model->model_fn, &config, params->items,
                                      (int)params->count, &setup->estimator);
    }
    if (status == NULL) setup->estimator->remote_input = setup->remote;
    bel_free(towers);
    if (status == NULL) mark_read(options, params, setup);
    if (status == NULL && setup->onnx_file != NULL)
        bel_estimator_tell(setup->estimator, "onnx_file", setup->onnx_file, false);
    if (status == NULL && setup->model->input_fn != NULL) tell_data_flags(options, setup);
    return status;
}

// --- The checkpoint that is read ----------------------------------------------------------------

// Opens the folder of --checkpoint. A folder that contains checkpoints belongs to --model_dir.
static bel_status *open_named(const char *folder, bel_ckpt_reader **out_reader)
{
    bel_status *status = bel_ckpt_open(folder, out_reader);
    if (bel_status_code(status) != BEL_NOT_FOUND) return status;
    int64_t *steps = NULL;
    size_t count = 0;
    bel_status *listing = bel_ckpt_list(folder, &steps, &count);
    long long newest = listing == NULL && count > 0 ? (long long)steps[count - 1] : -1;
    bel_free(steps);
    bel_status_ignore(listing); // then it has no checkpoints
    if (newest < 0) return status;
    bel_status_ignore(status); // replaced by the error below
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--checkpoint %s: expected one checkpoint, got a folder with %zu of them; hint: "
                   "--model_dir %s for the newest, or --checkpoint %s/ckpt-%08lld",
                   folder, count, folder, folder, newest);
}

static bel_status *open_checkpoint(const bel_options *options, bel_ckpt_reader **out_reader)
{
    const char *folder = bel_options_string(options, "checkpoint");
    const char *model_dir = bel_options_string(options, "model_dir");
    bool best = bel_options_bool(options, "best");
    if (folder != NULL && best) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--best and --checkpoint exclude each other: each names a checkpoint");
    }
    if (folder != NULL) return open_named(folder, out_reader);
    if (model_dir == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--model_dir or --checkpoint is needed: what to read");
    }
    if (best) return bel_ckpt_open_best(model_dir, out_reader);
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open_latest(model_dir, &reader));
    if (reader == NULL) return BEL_ERR(BEL_NOT_FOUND, "%s holds no checkpoint", model_dir);
    *out_reader = reader;
    return NULL;
}

// Returns the folder that contains a checkpoint, if --model_dir is not given.
static char *folder_of(const char *checkpoint)
{
    size_t length = strlen(checkpoint);
    while (length > 1 && checkpoint[length - 1] == '/')
        length--;
    while (length > 0 && checkpoint[length - 1] != '/')
        length--;
    return length == 0 ? bel_xstrdup(".") : bel_xstrndup(checkpoint, length);
}

char *bel_setup_folder(const bel_options *options)
{
    const char *model_dir = bel_options_string(options, "model_dir");
    const char *checkpoint = bel_options_string(options, "checkpoint");
    if (model_dir != NULL) return bel_xstrdup(model_dir);
    return checkpoint != NULL ? folder_of(checkpoint) : NULL;
}

// --- Both ways ----------------------------------------------------------------------------------

static bel_status *setup_finish(const bel_options *options, bel_params *params, bel_setup *setup,
                                bel_setup **out_setup)
{
    bel_status *status = create_estimator(options, params, setup);
    bel_params_deinit(params);
    bel_arena_destroy(params->arena);
    if (status == NULL) {
        *out_setup = setup;
    } else {
        bel_setup_destroy(setup);
    }
    return status;
}

// Without --model, a table has another default model than other data.
static bel_status *finish_training(const bel_options *options, bel_setup *setup,
                                   bel_setup **out_setup)
{
    bel_params params = {.arena = bel_arena_create()};
    bel_status *status = bel_table_for_training(options, setup->model_dir, setup->remote,
                                                &setup->columns, &setup->remembers);
    if (status != NULL) {
        bel_arena_destroy(params.arena);
        bel_setup_destroy(setup);
        return status;
    }
    if (setup->columns != NULL) bel_params_set(&params, "model", "wide_deep");
    return setup_finish(options, &params, setup, out_setup);
}

// The master sends a parameter server names, shapes and optimizers. Its host may lack the data and
// the package, so this process opens neither; the other processes check their flags.
static bel_status *finish_serving(const bel_options *options, bel_setup *setup,
                                  bel_setup **out_setup)
{
    bel_run_config config;
    int *towers = NULL;
    bel_status *status = read_run(options, &config, &towers);
    setup->model = bel_model_find("linear"); // any model: it is not built
    setup->input = (bel_flag_input){.options = options};
    setup->input_fn = bel_flag_input_open;
    setup->input_user = &setup->input;
    config.model_dir = setup->model_dir;
    if (status == NULL)
        status = bel_estimator_create(setup->model->model_fn, &config, NULL, 0, &setup->estimator);
    bel_free(towers);
    if (status == NULL) {
        *out_setup = setup;
    } else {
        bel_setup_destroy(setup);
    }
    return status;
}

// Finds the role of this process. A master that does not train needs no access to the data: then it
// takes a worker's description of them.
static bel_status *find_role(const bel_options *options, bel_setup *setup, bel_role *out_role)
{
    bel_task *task;
    bel_status *status = NULL;
    BEL_TRY(bel_task_from_environment(bel_options_bool(options, "chief_trains"), &task));
    *out_role = task != NULL ? task->role : BEL_ROLE_MASTER;
    if (bel_may_hear_input(task) && bel_flag_inputs_are_elsewhere(options))
        status = bel_hear_input(task, BEL_INPUT_ELSEWHERE, &setup->remote);
    bel_task_destroy(task);
    return status;
}

bel_status *bel_setup_for_training(const bel_options *options, const char *job_file,
                                   bel_setup **out_setup)
{
    const char *model_dir = bel_options_string(options, "model_dir");
    if (model_dir == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--model_dir is needed: the folder for checkpoints");
    }
    bel_role role;
    BEL_TRY(bel_follow_check(options));
    bel_setup *setup = bel_xcalloc(1, sizeof *setup);
    bel_status *status = find_role(options, setup, &role);
    if (status == NULL && bel_follows(options) && setup->remote != NULL)
        status =
            BEL_ERR(BEL_NOT_FOUND, "--follow: the master must see the file, and %s is not here",
                    bel_options_text(options, "train_files"));
    if (status != NULL) {
        bel_setup_destroy(setup);
        return status;
    }
    setup->model_dir = bel_xstrdup(model_dir);
    setup->is_master = role == BEL_ROLE_MASTER;
    if (job_file != NULL) setup->job_file = bel_xstrdup(job_file);
    return role == BEL_ROLE_PS ? finish_serving(options, setup, out_setup)
                               : finish_training(options, setup, out_setup);
}

bel_status *bel_setup_for_looking(const bel_options *options, bel_setup **out_setup)
{
    const char *model_dir = bel_options_string(options, "model_dir");
    bel_setup *setup = bel_xcalloc(1, sizeof *setup);
    setup->model_dir = bel_xstrdup(model_dir != NULL ? model_dir : ".");
    return finish_training(options, setup, out_setup);
}

// Reads the columns, or the label, of the training.
static bel_status *read_columns(const bel_ckpt_reader *reader, bel_setup *setup)
{
    const char *columns = bel_ckpt_setting(reader, BEL_SETTING_COLUMNS);
    const char *table = bel_ckpt_setting(reader, BEL_SETTING_TABLE);
    bel_column_names names;
    if (table != NULL) return bel_columns_parse(table, bel_ckpt_folder(reader), &setup->columns);
    if (columns == NULL) return NULL;
    bel_arena *arena = bel_arena_create();
    bel_status *status = bel_column_names_read(columns, bel_ckpt_folder(reader), arena, &names);
    if (status == NULL && names.label != NULL) setup->label_column = bel_xstrdup(names.label);
    bel_arena_destroy(arena);
    return status;
}

// Adds texts for missing values that are in these files but were not in the training's.
static bel_status *add_missing(const bel_options *options, bel_columns *columns)
{
    size_t count;
    const char *const *texts = bel_options_list(options, "missing", &count);
    if (count == 0) return NULL;
    if (columns == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--missing: the model was trained without a description of its columns");
    }
    bel_columns_add_missing(columns, texts, (int)count);
    return NULL;
}

static bel_status *find_held_out(const bel_options *options, bel_setup *setup)
{
    if (!bel_options_has(options, "held_out") || !bel_options_bool(options, "held_out"))
        return NULL;
    if (bel_options_is_given(options, "eval_files")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--held_out and --eval_files exclude each other");
    }
    return bel_held_out_options(setup->model_dir, &setup->training);
}

bel_status *bel_setup_for_reading(const bel_options *options, bel_setup **out_setup)
{
    bel_ckpt_reader *reader;
    BEL_TRY(open_checkpoint(options, &reader));
    const char *model_dir = bel_options_string(options, "model_dir");
    bel_setup *setup = bel_xcalloc(1, sizeof *setup);
    setup->checkpoint = bel_xstrdup(bel_ckpt_folder(reader));
    setup->model_dir = model_dir != NULL ? bel_xstrdup(model_dir) : folder_of(setup->checkpoint);
    bel_params params = {.arena = bel_arena_create()};
    bel_params_from_checkpoint(&params, reader);
    bel_status *status = read_columns(reader, setup);
    bel_held_out_input input;
    bel_held_out_input_read(reader, &input);
    bel_ckpt_close(reader);
    if (status == NULL) status = add_missing(options, setup->columns);
    if (status == NULL) status = find_held_out(options, setup);
    if (status != NULL) {
        bel_params_deinit(&params);
        bel_arena_destroy(params.arena);
        bel_setup_destroy(setup);
    } else {
        status = setup_finish(options, &params, setup, &setup);
        if (status == NULL && setup->training != NULL) {
            status = bel_held_out_check(setup, &input);
            if (status != NULL) bel_setup_destroy(setup);
        }
    }
    bel_held_out_input_deinit(&input);
    if (status == NULL) *out_setup = setup;
    return status;
}

bel_goal bel_setup_goal(const bel_options *options)
{
    const char *goal = bel_options_string(options, "best_goal");
    if (strcmp(goal, "auto") == 0) return BEL_GOAL_AUTO;
    return strcmp(goal, "max") == 0 ? BEL_GOAL_MAX : BEL_GOAL_MIN;
}

void bel_setup_destroy(bel_setup *setup)
{
    if (setup == NULL) return;
    bel_estimator_destroy(setup->estimator);
    bel_free(setup->id_columns);
    bel_free(setup->id_list_columns);
    bel_free(setup->length_column);
    bel_free(setup->label_column);
    bel_columns_destroy(setup->columns);
    bel_tokenizer_destroy(setup->tokenizer);
    bel_remote_input_destroy(setup->remote);
    bel_options_destroy(setup->training);
    bel_free(setup->checkpoint);
    bel_free(setup->model_dir);
    bel_free(setup->job_file);
    bel_free(setup->onnx_file);
    bel_free(setup);
}
