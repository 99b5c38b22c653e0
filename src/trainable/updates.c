// Place of the parameter updates of a training: on the GPUs of its towers, or in the memory of the
// process. The settings and the model determine whether GPUs can update; the room is checked when
// everything is allocated.
#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "cuda/updater.h"
#include "runtime/device.h"
#include "trainable/trainable_inner.h"

_Static_assert(BEL_UPDATER_REPLICAS == 64, "as the text of a hindrance says");

// Why GPUs cannot update the parameters of a training. NULL: they can, if all towers are on GPUs.
static const char *hindrance_of(const bel_trainable *t)
{
    const bel_run_config *config = &t->estimator->config;
    const bel_layout *layout = t->layout;
    if (t->estimator->in_job) return "in a job shards update them";
    if (config->num_workers > 1) return "there are several workers";
    if (layout->shard_count > 1) return "there are several shards";
    if (bel_counting_has_ledger(&t->counting)) return "not every replica counts in a step";
    if (config->exchange_precision != BEL_EXCHANGE_F32) return "exchange_precision rounds them";
    if (bel_counting_is_local(&t->counting)) return "replicas update them between exchanges";
    if (t->built->function_count > 1) return "there are several step functions";
    if (layout->table_count > 0) return "the model has tables";
    if (t->estimator->replica_count > BEL_UPDATER_REPLICAS)
        return "there are more than 64 replicas";
    for (int v = 0; v < layout->variable_count; v++)
        if (layout->variables[v].own_elements > 0) return "replicas have separate values";
    return NULL;
}

static bel_status *updates_refuse(const char *why)
{
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "update_device is cuda, but GPUs cannot update the parameters: %s", why);
}

bel_status *bel_trainable_check_updates(const bel_trainable *t)
{
    const char *hindrance = hindrance_of(t);
    bool asked = t->estimator->config.update_device == BEL_DEVICE_CUDA;
    return asked && hindrance != NULL ? updates_refuse(hindrance) : NULL;
}

bel_status *bel_trainable_arena_bytes(const bel_trainable *t, const bel_program_options *options,
                                      int64_t *out_bytes)
{
    const bel_graph *graph = t->built->graph;
    size_t inputs = graph->input_count;
    bel_shape *shapes = bel_xcalloc(inputs, sizeof *shapes);
    for (size_t i = 0; i < inputs; i++) {
        shapes[i] = graph->inputs[i].value->spec.shape;
        for (int32_t d = 0; d < shapes[i].rank; d++)
            if (shapes[i].dims[d] < 0) shapes[i].dims[d] = bel_input_batch_size(t->input);
    }
    int reports, count;
    bel_program_output *outputs = bel_worker_list_outputs(t->layout, t->models, &reports, &count);
    bel_program *program = NULL;
    bel_status *status = bel_program_compile(graph, shapes, outputs, count, options, &program);
    if (status == NULL) *out_bytes = (int64_t)bel_program_arena_bytes(program);
    bel_program_destroy(program);
    bel_free(outputs);
    bel_free(shapes);
    return status;
}

// The devices of worker 0's towers, which follow from the settings. Free with bel_free.
static bel_status *choose_devices(const bel_trainable *t, bel_device ***out_devices)
{
    int towers = bel_estimator_towers(t->estimator, 0);
    const bel_card_choice cards = bel_estimator_cards(t->estimator, 0);
    bel_device **devices = bel_xcalloc((size_t)towers, sizeof(bel_device *));
    bel_status *status = bel_cards_choose(&cards, towers, devices);
    *out_devices = status == NULL ? devices : NULL;
    if (status != NULL) bel_free(devices);
    return status;
}

bel_status *bel_trainable_create_updater(const bel_trainable *t, bel_updater **out_updater)
{
    bel_device_choice where = t->estimator->config.update_device;
    int towers = bel_estimator_towers(t->estimator, 0), on_cards = 0;
    bel_device **devices;
    *out_updater = NULL;
    if (where == BEL_DEVICE_CPU || hindrance_of(t) != NULL) return NULL;
    BEL_TRY(choose_devices(t, &devices));
    while (on_cards < towers && devices[on_cards] != NULL)
        on_cards++;
    bel_status *status = NULL;
    if (on_cards == towers) {
        status = bel_cuda_updater_create(devices, towers, t->estimator->replica_count,
                                         t->layout->size, out_updater);
    } else if (where == BEL_DEVICE_CUDA) {
        status = updates_refuse("towers run on the processor");
    }
    bel_free(devices);
    return status;
}

// Checks the room of a GPU that has `towers` of the training.
static bel_status *check_room_of(const bel_trainable *t, bel_device *device, int towers)
{
    bel_program_options options = bel_estimator_program_options(t->estimator);
    bel_device_use use;
    int64_t step;
    options.device = device;
    options.on_device = true;
    BEL_TRY(bel_trainable_arena_bytes(t, &options, &step));
    if (!device->ops->look(device, &use)) return NULL; // unknown
    size_t limit = atomic_load(&device->memory_limit), room = use.free;
    if (limit > 0) {
        size_t left = limit > use.taken ? limit - use.taken : 0;
        room = left < room ? left : room;
    }
    size_t parameters = (size_t)t->layout->size * sizeof(float);
    size_t needed = (size_t)towers * (2 * (size_t)step + parameters);
    if (needed <= room) return NULL;
    char needed_text[32], room_text[32];
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%s: with them there the programs of steps and evaluations may need %s, but %s "
                   "are free",
                   device->name, bel_bytes_text(needed, needed_text),
                   bel_bytes_text(room, room_text));
}

bel_status *bel_trainable_check_room(const bel_trainable *t)
{
    int towers = bel_estimator_towers(t->estimator, 0);
    bel_device **devices;
    bel_status *status = NULL;
    BEL_TRY(choose_devices(t, &devices));
    for (int i = 0; i < towers && status == NULL; i++) {
        int same = 0, before = 0; // towers on this GPU, and the earlier ones of these
        for (int j = 0; j < towers; j++) {
            same += devices[j] == devices[i];
            before += j < i && devices[j] == devices[i];
        }
        if (before == 0) status = check_room_of(t, devices[i], same);
    }
    bel_free(devices);
    return status;
}
