// Plain structs to protobuf-c's and back: the only file of this room that knows protobuf-c. A
// message that is written is borrowed: protobuf-c points into it. One that is read is copied
// whole, so that nothing of it depends on the bytes that came.
//
// Bytes come from the network, so what is taken for them is bounded: protobuf-c allocates from a
// budget, lists and texts have their lengths from it, and what has a fixed room here is refused
// when it does not fit. Parts that are missing read as zeros. Whether numbers make sense is
// asked by those who use them.
#include "wire/message.h"

#include <string.h>

#include "base/alloc.h"
#include "belfry.pb-c.h"

static char empty[1];

static char *text_or_empty(char *text)
{
    return text != NULL ? text : empty;
}

// --- Writing -------------------------------------------------------------------------------------

typedef struct lists {
    Belfry__Setting *settings, **setting_pointers;
    Belfry__Point *points, **point_pointers;
    Belfry__Variable *variables, **variable_pointers;
    Belfry__Table *tables, **table_pointers;
} lists;

static void fill_tables(const bel_message *m, Belfry__Control *control, lists *l)
{
    l->tables = bel_xcalloc(m->table_count + 1, sizeof *l->tables);
    l->table_pointers = bel_xcalloc(m->table_count + 1, sizeof *l->table_pointers);
    for (size_t i = 0; i < m->table_count; i++) {
        const bel_message_table *from = &m->tables[i];
        belfry__table__init(&l->tables[i]);
        l->tables[i].name = from->name;
        l->tables[i].width = from->width;
        l->tables[i].start = from->start;
        l->tables[i].start_value = from->start_value;
        l->tables[i].ids = from->ids;
        l->table_pointers[i] = &l->tables[i];
    }
    control->n_tables = m->table_count;
    control->tables = l->table_pointers;
}

static void fill_lists(const bel_message *m, Belfry__Control *control, lists *l)
{
    l->settings = bel_xcalloc(m->setting_count + 1, sizeof *l->settings);
    l->setting_pointers = bel_xcalloc(m->setting_count + 1, sizeof *l->setting_pointers);
    for (size_t i = 0; i < m->setting_count; i++) {
        belfry__setting__init(&l->settings[i]);
        l->settings[i].name = m->settings[i].name;
        l->settings[i].value = m->settings[i].value;
        l->setting_pointers[i] = &l->settings[i];
    }
    l->points = bel_xcalloc(m->point_count + 1, sizeof *l->points);
    l->point_pointers = bel_xcalloc(m->point_count + 1, sizeof *l->point_pointers);
    for (size_t i = 0; i < m->point_count; i++) {
        belfry__point__init(&l->points[i]);
        l->points[i].step = m->points[i].step;
        l->points[i].loss = m->points[i].loss;
        l->points[i].examples_per_second = m->points[i].examples_per_second;
        l->point_pointers[i] = &l->points[i];
    }
    l->variables = bel_xcalloc(m->variable_count + 1, sizeof *l->variables);
    l->variable_pointers = bel_xcalloc(m->variable_count + 1, sizeof *l->variable_pointers);
    for (size_t i = 0; i < m->variable_count; i++) {
        bel_message_variable *from = &m->variables[i];
        belfry__variable__init(&l->variables[i]);
        l->variables[i].name = from->name;
        l->variables[i].kind = from->kind;
        l->variables[i].n_dims = (size_t)from->shape.rank;
        l->variables[i].dims = from->shape.dims;
        l->variable_pointers[i] = &l->variables[i];
    }
    fill_tables(m, control, l);
    control->n_variables = m->variable_count;
    control->variables = l->variable_pointers;
    control->n_replicas = m->replica_count;
    control->replicas = m->replicas;
    control->n_numbers = m->number_count;
    control->numbers = m->numbers;
    control->n_stale = m->stale_count;
    control->stale = m->stale;
    control->n_incarnations = m->incarnation_count;
    control->incarnations = m->incarnations;
    control->n_settings = m->setting_count;
    control->settings = l->setting_pointers;
    control->n_points = m->point_count;
    control->points = l->point_pointers;
    control->n_addresses = m->address_count;
    control->addresses = m->addresses;
}

static void free_lists(lists *l)
{
    bel_free(l->settings);
    bel_free(l->setting_pointers);
    bel_free(l->points);
    bel_free(l->point_pointers);
    bel_free(l->variables);
    bel_free(l->variable_pointers);
    bel_free(l->tables);
    bel_free(l->table_pointers);
}

typedef struct multipliers {
    Belfry__Multiplier items[BEL_MAX_MULTIPLIERS], *pointers[BEL_MAX_MULTIPLIERS];
    size_t count;
} multipliers;

static void fill_multipliers(bel_multiplier *from, multipliers *to)
{
    to->count = 0;
    for (size_t i = 0; i < BEL_MAX_MULTIPLIERS && from[i].pattern[0] != '\0'; i++) {
        belfry__multiplier__init(&to->items[i]);
        to->items[i].pattern = from[i].pattern;
        to->items[i].factor = from[i].factor;
        to->pointers[i] = &to->items[i];
        to->count++;
    }
}

// A message's optimizer and what protobuf-c points at beside it.
typedef struct optimizer_parts {
    bel_optimizer numbers;
    Belfry__Optimizer written;
    multipliers lr_mults, decay_mults;
} optimizer_parts;

static void fill_optimizer(optimizer_parts *parts)
{
    bel_optimizer *from = &parts->numbers;
    Belfry__Optimizer *to = &parts->written;
    belfry__optimizer__init(to);
    to->kind = (int32_t)from->kind;
    to->learning_rate = from->learning_rate;
    to->momentum = from->momentum;
    to->nesterov = from->nesterov;
    to->beta1 = from->beta1;
    to->beta2 = from->beta2;
    to->epsilon = from->epsilon;
    to->initial_accumulator = from->initial_accumulator;
    to->learning_rate_power = from->learning_rate_power;
    to->ftrl_l1 = from->ftrl_l1;
    to->ftrl_l2 = from->ftrl_l2;
    to->ftrl_l2_shrinkage = from->ftrl_l2_shrinkage;
    to->rmsprop_decay = from->rmsprop_decay;
    to->rmsprop_momentum = from->rmsprop_momentum;
    to->rmsprop_centered = from->rmsprop_centered;
    to->weight_decay = from->weight_decay;
    to->lars_trust = from->lars_trust;
    to->moving_average_decay = from->moving_average_decay;
    to->moving_average_ramp = from->moving_average_ramp;
    to->mean_by_contributors = from->mean_by_contributors;
    to->clip_value = from->clip_value;
    to->clip_norm = from->clip_norm;
    to->clip_global_norm = from->clip_global_norm;
    to->schedule = (int32_t)from->schedule.kind;
    to->decay_rate = from->schedule.decay_rate;
    to->decay_steps = from->schedule.decay_steps;
    to->staircase = from->schedule.staircase;
    to->alpha = from->schedule.alpha;
    to->n_boundaries = BEL_SCHEDULE_MAX_PIECES - 1;
    to->boundaries = from->schedule.boundaries;
    to->n_rates = BEL_SCHEDULE_MAX_PIECES;
    to->rates = from->schedule.rates;
    fill_multipliers(from->lr_mults, &parts->lr_mults);
    to->n_lr_mults = parts->lr_mults.count;
    to->lr_mults = parts->lr_mults.pointers;
    fill_multipliers(from->decay_mults, &parts->decay_mults);
    to->n_decay_mults = parts->decay_mults.count;
    to->decay_mults = parts->decay_mults.pointers;
    to->warmup_steps = from->schedule.warmup_steps;
}

static void fill_schedule(const bel_message_schedule *from, Belfry__Schedule *to)
{
    belfry__schedule__init(to);
    to->first_step = from->first_step;
    to->last_step = from->last_step;
    to->save_steps = from->save_steps;
    to->save_secs = from->save_secs;
    to->eval_steps = from->eval_steps;
    to->series_steps = from->series_steps;
    to->segment_first_step = from->segment_first_step;
    to->segment_first_block = from->segment_first_block;
    to->segment_replica_count = from->segment_replica_count;
    to->counting_workers = from->counting_workers;
    to->takes_stale = from->takes_stale;
    to->max_lead = from->max_lead;
    to->block_end = from->block_end;
}

static void fill_times(const bel_message_times *from, Belfry__Times *to)
{
    belfry__times__init(to);
    to->input_ns = from->input_ns;
    to->compute_ns = from->compute_ns;
    to->exchange_ns = from->exchange_ns;
    to->total_ns = from->total_ns;
    to->steps = from->steps;
}

static void fill_scalars(const bel_message *m, Belfry__Control *control)
{
    control->kind = (int32_t)m->kind;
    control->protocol = m->protocol;
    control->role = m->role;
    control->index = m->index;
    control->generation = m->generation;
    control->incarnation = m->incarnation;
    control->step = m->step;
    control->code = m->code;
    control->text = text_or_empty(m->text);
    control->host = text_or_empty(m->host);
    control->pid = m->pid;
    control->address = text_or_empty(m->address);
    control->folder = text_or_empty(m->folder);
    control->loss = m->loss;
    control->examples = m->examples;
    control->save = m->save;
    control->eval = m->eval;
    control->interrupted = m->interrupted;
    control->paused = m->paused;
    control->over = m->over;
    control->leased = m->leased;
    control->counted = m->counted;
    control->clock = m->clock_ns;
    control->clock_lead = m->clock_lead_ns;
    control->seed = m->seed;
    control->data.data = m->data;
    control->data.len = m->data_bytes;
}

uint8_t *bel_message_write(const bel_message *message, size_t *out_bytes)
{
    enum { LENGTH = 4 };
    Belfry__Control control;
    Belfry__Schedule schedule;
    Belfry__Times times;
    optimizer_parts optimizer = {.numbers = message->optimizer};
    lists l;
    belfry__control__init(&control);
    fill_scalars(message, &control);
    fill_schedule(&message->schedule, &schedule);
    fill_times(&message->times, &times);
    control.schedule = &schedule;
    control.times = &times;
    fill_optimizer(&optimizer);
    control.optimizer = &optimizer.written;
    fill_lists(message, &control, &l);
    size_t size = belfry__control__get_packed_size(&control);
    uint8_t *bytes = bel_xmalloc(LENGTH + size);
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(size >> (8 * i));
    belfry__control__pack(&control, bytes + LENGTH);
    free_lists(&l);
    *out_bytes = LENGTH + size;
    return bytes;
}

// --- Reading -------------------------------------------------------------------------------------

static void read_scalars(const Belfry__Control *control, bel_message *m)
{
    m->kind = (bel_message_kind)control->kind;
    m->protocol = control->protocol;
    m->role = control->role;
    m->index = control->index;
    m->generation = control->generation;
    m->incarnation = control->incarnation;
    m->step = control->step;
    m->code = control->code;
    m->text = bel_xstrdup(control->text);
    m->host = bel_xstrdup(control->host);
    m->pid = control->pid;
    m->address = bel_xstrdup(control->address);
    m->folder = bel_xstrdup(control->folder);
    m->loss = control->loss;
    m->examples = control->examples;
    m->save = control->save != 0;
    m->eval = control->eval != 0;
    m->interrupted = control->interrupted != 0;
    m->paused = control->paused != 0;
    m->over = control->over != 0;
    m->leased = control->leased;
    m->counted = control->counted;
    m->clock_ns = control->clock;
    m->clock_lead_ns = control->clock_lead;
    m->seed = control->seed;
}

static void read_lists(const Belfry__Control *control, bel_message *m)
{
    m->address_count = control->n_addresses;
    m->addresses = bel_xcalloc(m->address_count + 1, sizeof *m->addresses);
    for (size_t i = 0; i < m->address_count; i++)
        m->addresses[i] = bel_xstrdup(control->addresses[i]);
    m->setting_count = control->n_settings;
    m->settings = bel_xcalloc(m->setting_count + 1, sizeof *m->settings);
    for (size_t i = 0; i < m->setting_count; i++) {
        m->settings[i] = (bel_message_setting){bel_xstrdup(control->settings[i]->name),
                                               bel_xstrdup(control->settings[i]->value)};
    }
    m->point_count = control->n_points;
    m->points = bel_xcalloc(m->point_count + 1, sizeof *m->points);
    for (size_t i = 0; i < m->point_count; i++) {
        const Belfry__Point *point = control->points[i];
        m->points[i] = (bel_message_point){point->step, point->loss, point->examples_per_second};
    }
    m->replica_count = control->n_replicas;
    m->replicas = bel_xcalloc(m->replica_count + 1, sizeof *m->replicas);
    for (size_t i = 0; i < m->replica_count; i++)
        m->replicas[i] = control->replicas[i];
    m->number_count = control->n_numbers;
    m->numbers = bel_xcalloc(m->number_count + 1, sizeof *m->numbers);
    for (size_t i = 0; i < m->number_count; i++)
        m->numbers[i] = control->numbers[i];
    m->stale_count = control->n_stale;
    m->stale = bel_xcalloc(m->stale_count + 1, sizeof *m->stale);
    for (size_t i = 0; i < m->stale_count; i++)
        m->stale[i] = control->stale[i];
    m->incarnation_count = control->n_incarnations;
    m->incarnations = bel_xcalloc(m->incarnation_count + 1, sizeof *m->incarnations);
    for (size_t i = 0; i < m->incarnation_count; i++)
        m->incarnations[i] = control->incarnations[i];
    m->data_bytes = control->data.len;
    m->data = bel_xmalloc(m->data_bytes + 1);
    if (m->data_bytes > 0) memcpy(m->data, control->data.data, m->data_bytes);
}

static void read_tables(const Belfry__Control *control, bel_message *m)
{
    m->table_count = control->n_tables;
    m->tables = bel_xcalloc(m->table_count + 1, sizeof *m->tables);
    for (size_t i = 0; i < m->table_count; i++) {
        const Belfry__Table *from = control->tables[i];
        m->tables[i] = (bel_message_table){.name = bel_xstrdup(from->name),
                                           .width = from->width,
                                           .start = from->start,
                                           .start_value = from->start_value,
                                           .ids = from->ids};
    }
}

static bel_status *read_variables(const Belfry__Control *control, bel_message *m)
{
    m->variables = bel_xcalloc(control->n_variables + 1, sizeof *m->variables);
    for (size_t i = 0; i < control->n_variables; i++) {
        const Belfry__Variable *from = control->variables[i];
        bel_message_variable *to = &m->variables[m->variable_count++];
        to->name = bel_xstrdup(from->name);
        to->kind = from->kind;
        if (from->n_dims > BEL_MAX_RANK) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed control message: a variable's shape");
        }
        to->shape.rank = (int32_t)from->n_dims;
        for (size_t d = 0; d < from->n_dims; d++)
            to->shape.dims[d] = from->dims[d];
    }
    return NULL;
}

static bel_status *read_multipliers(Belfry__Multiplier *const *from, size_t count,
                                    bel_multiplier *to)
{
    if (count > BEL_MAX_MULTIPLIERS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed control message: %zu multipliers", count);
    }
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(from[i]->pattern);
        if (length == 0 || length >= sizeof to[i].pattern) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "malformed control message: a multiplier's pattern of %zu bytes",
                           length);
        }
        memcpy(to[i].pattern, from[i]->pattern, length);
        to[i].factor = from[i]->factor;
    }
    return NULL;
}

// Whether the numbers make sense is bel_optimizer_check's question.
static bel_status *read_optimizer(const Belfry__Optimizer *from, bel_optimizer *to)
{
    if (from->n_boundaries > BEL_SCHEDULE_MAX_PIECES - 1 ||
        from->n_rates > BEL_SCHEDULE_MAX_PIECES) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed control message: a schedule of %zu rates and %zu boundaries",
                       from->n_rates, from->n_boundaries);
    }
    *to = (bel_optimizer){.kind = (bel_optimizer_kind)from->kind,
                          .learning_rate = from->learning_rate,
                          .momentum = from->momentum,
                          .nesterov = from->nesterov != 0,
                          .beta1 = from->beta1,
                          .beta2 = from->beta2,
                          .epsilon = from->epsilon,
                          .initial_accumulator = from->initial_accumulator,
                          .learning_rate_power = from->learning_rate_power,
                          .ftrl_l1 = from->ftrl_l1,
                          .ftrl_l2 = from->ftrl_l2,
                          .ftrl_l2_shrinkage = from->ftrl_l2_shrinkage,
                          .rmsprop_decay = from->rmsprop_decay,
                          .rmsprop_momentum = from->rmsprop_momentum,
                          .rmsprop_centered = from->rmsprop_centered != 0,
                          .weight_decay = from->weight_decay,
                          .lars_trust = from->lars_trust,
                          .moving_average_decay = from->moving_average_decay,
                          .moving_average_ramp = from->moving_average_ramp != 0,
                          .mean_by_contributors = from->mean_by_contributors != 0,
                          .clip_value = from->clip_value,
                          .clip_norm = from->clip_norm,
                          .clip_global_norm = from->clip_global_norm,
                          .schedule = {.kind = (bel_schedule_kind)from->schedule,
                                       .decay_rate = from->decay_rate,
                                       .decay_steps = from->decay_steps,
                                       .staircase = from->staircase != 0,
                                       .alpha = from->alpha,
                                       .warmup_steps = from->warmup_steps}};
    for (size_t i = 0; i < from->n_boundaries; i++)
        to->schedule.boundaries[i] = from->boundaries[i];
    for (size_t i = 0; i < from->n_rates; i++)
        to->schedule.rates[i] = from->rates[i];
    BEL_TRY(read_multipliers(from->lr_mults, from->n_lr_mults, to->lr_mults));
    return read_multipliers(from->decay_mults, from->n_decay_mults, to->decay_mults);
}

static bel_status *read_parts(const Belfry__Control *control, bel_message *m)
{
    const Belfry__Schedule *s = control->schedule;
    if (s != NULL) {
        m->schedule = (bel_message_schedule){.first_step = s->first_step,
                                             .last_step = s->last_step,
                                             .save_steps = s->save_steps,
                                             .save_secs = s->save_secs,
                                             .eval_steps = s->eval_steps,
                                             .series_steps = s->series_steps,
                                             .segment_first_step = s->segment_first_step,
                                             .segment_first_block = s->segment_first_block,
                                             .segment_replica_count = s->segment_replica_count,
                                             .counting_workers = s->counting_workers,
                                             .takes_stale = s->takes_stale != 0,
                                             .max_lead = s->max_lead,
                                             .block_end = s->block_end};
    }
    const Belfry__Times *t = control->times;
    if (t != NULL) {
        m->times =
            (bel_message_times){t->input_ns, t->compute_ns, t->exchange_ns, t->total_ns, t->steps};
    }
    return control->optimizer != NULL ? read_optimizer(control->optimizer, &m->optimizer) : NULL;
}

// Two bytes of a message may be an empty part, which takes a hundred in memory. No message of a job
// comes near this: what is large in one is a single piece of data.
typedef struct budget {
    size_t left;
    bool is_spent; // more was asked for
} budget;

static void *take_memory(void *context, size_t size)
{
    budget *b = context;
    size_t cost = size + 16; // what an allocation takes besides
    b->is_spent = b->is_spent || size > SIZE_MAX - 16 || cost > b->left;
    if (b->is_spent) return NULL;
    b->left -= cost;
    return bel_xmalloc(size);
}

static void give_memory(void *context, void *memory)
{
    (void)context;
    bel_free(memory);
}

bel_status *bel_message_read(const uint8_t *bytes, size_t count, bel_message *out_message)
{
    enum { MIB = 1 << 20, PARTS_MIB = 64 };
    const size_t allowed = 2 * count + (size_t)PARTS_MIB * MIB;
    budget b = {.left = allowed};
    ProtobufCAllocator allocator = {take_memory, give_memory, &b};
    Belfry__Control *control = belfry__control__unpack(&allocator, count, bytes);
    if (control == NULL && b.is_spent) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "control message of %zu bytes is too large once read: its parts need more "
                       "than the %zu bytes of memory that are allowed (twice its size and %d MiB)",
                       count, allowed, PARTS_MIB);
    }
    if (control == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed control message");
    if (control->kind < 1 || control->kind >= BEL_MESSAGE_KIND_COUNT) {
        bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT,
                                     "malformed control message: unknown kind %d", control->kind);
        belfry__control__free_unpacked(control, &allocator);
        return status;
    }
    *out_message = (bel_message){0};
    read_scalars(control, out_message);
    read_lists(control, out_message);
    read_tables(control, out_message);
    bel_status *status = read_parts(control, out_message);
    if (status == NULL) status = read_variables(control, out_message);
    belfry__control__free_unpacked(control, &allocator);
    if (status != NULL) bel_message_deinit(out_message);
    return status;
}

void bel_message_deinit(bel_message *message)
{
    bel_free(message->text);
    bel_free(message->host);
    bel_free(message->address);
    bel_free(message->folder);
    for (size_t i = 0; i < message->address_count; i++)
        bel_free(message->addresses[i]);
    bel_free(message->addresses);
    for (size_t i = 0; i < message->setting_count; i++) {
        bel_free(message->settings[i].name);
        bel_free(message->settings[i].value);
    }
    bel_free(message->settings);
    for (size_t i = 0; i < message->variable_count; i++)
        bel_free(message->variables[i].name);
    bel_free(message->variables);
    for (size_t i = 0; i < message->table_count; i++)
        bel_free(message->tables[i].name);
    bel_free(message->tables);
    bel_free(message->replicas);
    bel_free(message->stale);
    bel_free(message->numbers);
    bel_free(message->incarnations);
    bel_free(message->points);
    bel_free(message->data);
    *message = (bel_message){0};
}

const char *bel_message_kind_name(bel_message_kind kind)
{
    static const char *const names[BEL_MESSAGE_KIND_COUNT] = {
        "?",    "ping",  "join",     "setup",   "status",   "progress", "snapshot",
        "save", "saved", "values",   "release", "stop",     "ended",    "finish",
        "end",  "admit", "admitted", "pause",   "evaluated"};
    return names[kind < BEL_MESSAGE_KIND_COUNT ? kind : 0];
}
