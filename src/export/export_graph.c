// Builds a new graph: variables and the rows of tables first, then inputs with their conversion to
// the model's features, then the model's operations, copied one by one. Numbers are computed in
// double and rounded once, as when reading files (src/columns/transform.c,
// src/input/source/source_csv.c), so that the same cells give the same bits. The sticky error of
// the graph is checked once, at the end.
#include "export/export_graph.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/ops.h"
#include "columns/transform.h"

typedef struct maker {
    const bel_saved *saved;
    const bel_feature_list *features;
    const bel_export_tables *tables; // NULL: the graph looks rows up by ids
    const bel_columns *columns;
    bel_export_graph *out;
    bel_value **values;    // by value of the model's graph
    bel_value **rows;      // by table of the model's graph
    bel_value **places;    // by input of the model's graph, for look-ups; NULL: its value
    bel_value **id_inputs; // for columns that are parts of the feature "ids"
    int id_count;
    bool inline_tables;
    bool *needed; // by node of the model's graph: it is copied
} maker;

static const int64_t last_axis[] = {1};

// --- Leaves --------------------------------------------------------------------------------------

static bel_value *maker_variable(maker *m, const char *name, const bel_shape *shape,
                                 const float *data)
{
    bel_graph *g = m->out->graph;
    size_t index = g->variable_count;
    bel_value *value = bel_graph_add_variable(
        g, name, shape, (bel_initializer){.kind = BEL_INIT_ZEROS}, BEL_VARIABLE_FROZEN);
    if (value != NULL) m->out->variables[index] = data;
    return value;
}

static void add_variables(maker *m)
{
    const bel_graph *from = m->saved->built->graph;
    size_t most = from->variable_count + from->table_count + 1;
    m->out->variables = bel_xcalloc(most, sizeof *m->out->variables);
    for (size_t v = 0; v < from->variable_count; v++) {
        const bel_value *value = from->variables[v].value;
        m->values[value->id] =
            maker_variable(m, from->variables[v].name, &value->spec.shape, m->saved->values[v]);
    }
    for (size_t t = 0; t < from->table_count && m->tables != NULL; t++) {
        const bel_key_list *list = bel_export_tables_list(m->tables, (int)t);
        bel_shape shape = BEL_SHAPE(list->count + 1, from->tables[t].width);
        m->rows[t] = maker_variable(m, from->tables[t].name, &shape, m->tables->rows[t]);
    }
}

static bel_value *add_input(maker *m, const char *name, bel_dtype dtype, const bel_shape *shape,
                            const bel_export_input *meaning)
{
    bel_export_graph *out = m->out;
    size_t index = out->graph->input_count;
    bel_value *value = bel_input_value(out->graph, name, dtype, shape);
    if (value == NULL) return NULL;
    out->inputs = bel_xgrow(out->inputs, &out->input_capacity, index + 1, sizeof *out->inputs);
    out->inputs[index] = *meaning;
    out->input_count = (int)index + 1;
    return value;
}

// --- Ids -----------------------------------------------------------------------------------------

// Places of ids of any shape: compares each id with all keys, of which at most one matches.
static bel_value *place_of(bel_graph *g, bel_value *ids, const bel_key_list *list)
{
    int32_t rank = bel_value_shape(ids).rank;
    const int64_t last[] = {rank};
    int64_t none = BEL_NO_ID;
    if (list->count > BEL_EXPORT_INLINE_KEYS) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "%s: %lld keys are too many to look them up in the model, at most %d; hint: "
                       "leave inline tables out",
                       list->name, (long long)list->count, BEL_EXPORT_INLINE_KEYS);
        return NULL;
    }
    bel_tensor of_none = {.dtype = BEL_DTYPE_I64, .data = &none};
    bel_tensor of_count = {.dtype = BEL_DTYPE_I64, .data = (void *)(uintptr_t)&list->count};
    bel_value *absent = bel_constant(g, &of_count), *no_id = bel_constant(g, &of_none);
    bel_value *place = absent;
    if (list->count > 0) {
        bel_tensor keys = {BEL_DTYPE_I64, BEL_SHAPE(list->count), list->keys};
        bel_value *is = bel_equal(g, bel_unsqueeze(g, ids, last, 1), bel_constant(g, &keys));
        bel_value *hits = bel_cast(g, is, BEL_DTYPE_F32);
        bel_value *found = bel_reduce_max(g, hits, last, 1, false);
        bel_value *there = bel_greater(g, found, bel_scalar(g, BEL_DTYPE_F32, 0));
        place = bel_where(g, there, bel_arg_max(g, hits, rank), absent);
    }
    return bel_where(g, bel_equal(g, ids, no_id), no_id, place);
}

// --- Columns -------------------------------------------------------------------------------------

static bel_value *as_column(bel_graph *g, bel_value *x)
{
    return bel_unsqueeze(g, x, last_axis, 1);
}

static bel_value *f64(bel_graph *g, double value)
{
    return bel_scalar(g, BEL_DTYPE_F64, value);
}

// [first, first + 1, …] as I64 [count].
static bel_value *export_graph_counted(bel_graph *g, int64_t first, int64_t count)
{
    int64_t *numbers = bel_xcalloc((size_t)count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = first + i;
    bel_tensor tensor = {BEL_DTYPE_I64, BEL_SHAPE(count), numbers};
    bel_value *value = bel_constant(g, &tensor);
    bel_free(numbers);
    return value;
}

// F32 [N, count]: 1 at the number, 0 elsewhere.
static bel_value *one_of(bel_graph *g, bel_value *numbers, int64_t count)
{
    bel_value *is = bel_equal(g, as_column(g, numbers), export_graph_counted(g, 0, count));
    return bel_cast(g, is, BEL_DTYPE_F32);
}

// Number of bounds that are at most the value, as I64 [N].
static bel_value *bucket(bel_graph *g, const bel_column *column, bel_value *value)
{
    bel_tensor bounds = {BEL_DTYPE_F64, BEL_SHAPE(column->bound_count),
                         (void *)(uintptr_t)column->bounds}; // copied
    bel_value *reached = bel_greater_or_equal(g, as_column(g, value), bel_constant(g, &bounds));
    bel_value *ones = bel_cast(g, reached, BEL_DTYPE_F32); // at most BEL_COLUMN_MOST_BOUNDS
    return bel_cast(g, bel_reduce_sum(g, ones, last_axis, 1, false), BEL_DTYPE_I64);
}

static bel_value *export_graph_scaled(bel_graph *g, const bel_column *column, bel_value *value)
{
    double from = column->mean, width = column->deviation;
    if (column->scale == BEL_SCALE_AS_IS) return value;
    if (column->scale == BEL_SCALE_MIN_MAX) {
        from = column->low;
        width = column->high - column->low;
    }
    if (column->scale == BEL_SCALE_LOG) {
        bel_value *size = bel_log(g, bel_add(g, bel_abs(g, value), f64(g, 1)));
        value = bel_mul(g, size, bel_sign(g, value));
    }
    return bel_div(g, bel_sub(g, value, f64(g, from)), f64(g, width));
}

// Converts a number [N] to F32 [N, x_width].
static bel_value *number_part(bel_graph *g, const bel_column *column, bel_value *cells)
{
    bel_value *missing = bel_is_nan(g, cells), *parts[2];
    bel_value *value = bel_where(g, missing, f64(g, column->fill), cells);
    if (column->scale == BEL_SCALE_BUCKETS) {
        parts[0] = one_of(g, bucket(g, column, value), column->bound_count + 1);
    } else {
        bel_value *number = export_graph_scaled(g, column, value);
        if (column->clip > 0) number = bel_clip(g, number, -column->clip, column->clip);
        parts[0] = as_column(g, bel_cast(g, number, BEL_DTYPE_F32));
    }
    if (!column->indicator) return parts[0];
    parts[1] = as_column(g, bel_cast(g, missing, BEL_DTYPE_F32));
    return bel_concat(g, parts, 2, 1);
}

// Places [N] of an embedded category's ids; its first value is -1.
static bel_value *category_place(bel_graph *g, const bel_column *column, bel_value *numbers,
                                 const bel_key_list *keys)
{
    int count = column->value_count + 2;
    int64_t *places = bel_xcalloc((size_t)count, sizeof *places);
    for (int value = -1; value <= column->value_count; value++) {
        bool unknown = value == column->value_count && !column->missing_value;
        uint64_t id = bel_columns_category_hash(column, unknown ? -1 : value);
        places[value + 1] = bel_key_list_place(keys, (int64_t)id);
    }
    bel_tensor tensor = {BEL_DTYPE_I64, BEL_SHAPE(count), places};
    bel_value *all = bel_constant(g, &tensor), *one = export_graph_counted(g, 1, 1);
    bel_free(places);
    return bel_gather(g, all, bel_add(g, numbers, one));
}

// The input of a column: [N, width] for dates, [N] for others.
static bel_value *column_input(maker *m, const bel_column *column, const bel_key_list *keys)
{
    bel_export_input meaning = {.scale = 1, .column = column};
    char name[BEL_GRAPH_MAX_NAME]; // an unnamed column has its place
    bel_snprintf(name, sizeof name, "%s", column->name);
    if (name[0] == '\0')
        bel_snprintf(name, sizeof name, "column_%d", (int)(column - m->columns->items) + 1);
    bel_shape row = BEL_SHAPE(BEL_DIM_BATCH), wide = BEL_SHAPE(BEL_DIM_BATCH, column->x_width);
    switch (column->kind) {
    case BEL_COLUMN_NUMBER: return add_input(m, name, BEL_DTYPE_F64, &row, &meaning);
    case BEL_COLUMN_DATE: return add_input(m, name, BEL_DTYPE_F32, &wide, &meaning);
    case BEL_COLUMN_CATEGORY: return add_input(m, name, BEL_DTYPE_I64, &row, &meaning);
    default: // hash or cross
        meaning.keys = m->inline_tables ? NULL : keys;
        return add_input(m, name, BEL_DTYPE_I64, &row, &meaning);
    }
}

static bel_value *x_part(bel_graph *g, const bel_column *column, bel_value *input)
{
    if (column->kind == BEL_COLUMN_NUMBER) return number_part(g, column, input);
    if (column->kind == BEL_COLUMN_DATE) return input;
    return one_of(g, input, column->x_width);
}

static bel_value *id_part(maker *m, const bel_column *column, bel_value *input,
                          const bel_key_list *keys)
{
    bel_graph *g = m->out->graph;
    bool listed = column->kind == BEL_COLUMN_CATEGORY;
    m->id_inputs[m->id_count++] = input;
    if (m->tables == NULL) return as_column(g, input);
    bel_value *place = listed ? category_place(g, column, input, keys) : input;
    if (!listed && m->inline_tables) place = place_of(g, input, keys);
    return as_column(g, place);
}

// Concatenates parts in the order of their places, which is that of the columns.
static bel_value *joined(bel_graph *g, bel_value **parts, int count)
{
    return count == 1 ? parts[0] : bel_concat(g, parts, count, 1);
}

static bool needs_feature(const maker *m, const char *name)
{
    const bel_value *value = bel_graph_find_input(m->saved->built->graph, name);
    return m->tables != NULL || (value != NULL && m->needed[value->node->index]);
}

// Adds the features "x" and "ids" of a table; NULL: absent, or not needed.
static void add_columns(maker *m, const bel_key_list *keys, bel_value **out_x, bel_value **out_ids)
{
    bel_graph *g = m->out->graph;
    size_t most = (size_t)m->columns->count + 1;
    bel_value **x = bel_xcalloc(most, sizeof *x), **ids = bel_xcalloc(most, sizeof *ids);
    int x_count = 0, id_count = 0;
    bool needs_x = needs_feature(m, "x"), needs_ids = needs_feature(m, BEL_ID_FIELD);
    m->id_inputs = bel_xcalloc(most, sizeof *m->id_inputs);
    for (int c = 0; c < m->columns->count; c++) {
        const bel_column *column = &m->columns->items[c];
        bool in_x = needs_x && column->x_place >= 0, in_ids = needs_ids && column->id_place >= 0;
        if (!in_x && !in_ids) continue;
        bel_value *input = column_input(m, column, keys);
        if (input == NULL) break; // the graph has an error
        if (in_x) x[x_count++] = x_part(g, column, input);
        if (in_ids) ids[id_count++] = id_part(m, column, input, keys);
    }
    *out_x = x_count > 0 ? joined(g, x, x_count) : NULL;
    *out_ids = id_count > 0 ? joined(g, ids, id_count) : NULL;
    bel_free(x);
    bel_free(ids);
}

// --- Other uses of ids -----------------------------------------------------------------

static bool is_no_id(const bel_value *value)
{
    const bel_tensor *tensor = &value->node->constant;
    return value->node->op == BEL_OP_CONSTANT && tensor->dtype == BEL_DTYPE_I64 &&
           bel_shape_elements(&tensor->shape) == 1 && *(const int64_t *)tensor->data == BEL_NO_ID;
}

// Places preserve only whether a value is an id.
static bool may_read_places(const bel_node *node)
{
    return node->op == BEL_OP_EQUAL && (is_no_id(node->inputs[0]) || is_no_id(node->inputs[1]));
}

static void check_readers(const maker *m)
{
    const bel_graph *from = m->saved->built->graph;
    bool gets_ids = m->tables == NULL || (m->inline_tables && m->columns == NULL);
    for (size_t n = 0; n < from->node_count && !gets_ids; n++) {
        const bel_node *node = from->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            const bel_value *input = node->inputs[i];
            bool ids = input->node->op == BEL_OP_INPUT &&
                       bel_export_tables_keys(m->tables, input->node->leaf) != NULL;
            if (!ids || may_read_places(node)) continue;
            bel_graph_fail(m->out->graph, BEL_UNIMPLEMENTED,
                           "%s computes with the ids of \"%s\", which an exported model does not "
                           "get, but their places among the keys; hint: --tables inline",
                           node->name, from->inputs[input->node->leaf].name);
        }
    }
}

// --- Features ------------------------------------------------------------------------------------

// The keys of an input; NULL: it is looked up in no table, or by ids.
static const bel_key_list *keys_of(const maker *m, int input)
{
    return m->tables != NULL ? bel_export_tables_keys(m->tables, input) : NULL;
}

static bel_value *feature_input(maker *m, const bel_graph_input *from, int index, double scale)
{
    bel_graph *g = m->out->graph;
    const bel_spec *spec = &from->value->spec;
    const bel_key_list *keys = keys_of(m, index);
    const bel_export_input meaning = {.scale = scale, .keys = m->inline_tables ? NULL : keys};
    bel_value *value = add_input(m, from->name, spec->dtype, &spec->shape, &meaning);
    if (keys != NULL && m->inline_tables) m->places[index] = place_of(g, value, keys);
    if (scale == 1) return value;
    bel_value *product = bel_mul(g, bel_cast(g, value, BEL_DTYPE_F64), f64(g, scale));
    return bel_cast(g, product, spec->dtype);
}

// Rows are inputs of the model's graph, and are gathered here. The place of BEL_NO_ID is -1, the
// last row, which is zeros.
static void gather_rows(maker *m)
{
    const bel_graph *from = m->saved->built->graph;
    for (size_t l = 0; l < from->lookup_count; l++) {
        const bel_graph_lookup *lookup = &from->lookups[l];
        bel_value *places = m->places[lookup->ids];
        if (places == NULL) places = m->values[from->inputs[lookup->ids].value->id];
        m->values[from->inputs[lookup->rows].value->id] =
            bel_gather(m->out->graph, m->rows[lookup->table], places);
    }
}

// Rows [N, count, width] of ids that are `count` inputs [N].
static bel_value *rows_of_columns(const maker *m, const bel_graph_table *table)
{
    bel_graph *g = m->out->graph;
    bel_value **parts = bel_xcalloc((size_t)m->id_count + 1, sizeof *parts);
    for (int c = 0; c < m->id_count; c++)
        parts[c] = as_column(
            g, bel_embedding(g, table->name, m->id_inputs[c], table->width, table->initializer));
    bel_value *rows = joined(g, parts, m->id_count);
    bel_free(parts);
    return rows;
}

// Looks rows up by ids, which must be inputs. Tables have the names of the model's, and perhaps
// other numbers.
static void look_up_rows(maker *m)
{
    const bel_graph *from = m->saved->built->graph;
    for (size_t l = 0; l < from->lookup_count; l++) {
        const bel_graph_lookup *lookup = &from->lookups[l];
        const bel_graph_table *table = &from->tables[lookup->table];
        const bel_graph_input *ids = &from->inputs[lookup->ids];
        if (!m->needed[from->inputs[lookup->rows].value->node->index]) continue;
        bool by_column = m->id_count > 0 && strcmp(ids->name, BEL_ID_FIELD) == 0;
        m->values[from->inputs[lookup->rows].value->id] =
            by_column ? rows_of_columns(m, table)
                      : bel_embedding(m->out->graph, table->name, m->values[ids->value->id],
                                      table->width, table->initializer);
    }
}

static void add_features(maker *m)
{
    const bel_graph *from = m->saved->built->graph;
    bel_value *x = NULL, *ids = NULL;
    bool described = m->columns != NULL;
    if (described) {
        int number = -1;
        for (size_t i = 0; i < from->input_count; i++)
            if (strcmp(from->inputs[i].name, BEL_ID_FIELD) == 0) number = (int)i;
        const bel_key_list none = {.count = 0};
        const bel_key_list *keys = number < 0 ? NULL : keys_of(m, number);
        add_columns(m, keys != NULL ? keys : &none, &x, &ids);
    }
    for (size_t i = 0; i < from->input_count; i++) {
        const bel_graph_input *input = &from->inputs[i];
        int field = m->saved->built->fields[i];
        bel_value **value = &m->values[input->value->id];
        if (input->lookup > 0 || !m->needed[input->value->node->index]) continue;
        if (described && x != NULL && strcmp(input->name, "x") == 0) {
            *value = x;
        } else if (described && ids != NULL && strcmp(input->name, BEL_ID_FIELD) == 0) {
            *value = ids;
        } else {
            *value = feature_input(m, input, (int)i, m->features->scales[field]);
        }
    }
    if (m->tables != NULL) gather_rows(m);
}

// --- Operations ----------------------------------------------------------------------------------

static void copy_node(maker *m, const bel_node *node)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS], *outputs[BEL_OP_MAX_OUTPUTS] = {NULL};
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = m->values[node->inputs[i]->id];
    bel_graph_copy_node(m->out->graph, node, inputs, outputs);
    for (int o = 0; o < node->output_count; o++)
        m->values[node->outputs[o]->id] = outputs[o];
}

static void copy_nodes(maker *m)
{
    const bel_graph *from = m->saved->built->graph;
    for (size_t n = 0; n < from->node_count && m->out->graph->error_code == BEL_OK; n++) {
        bel_op op = from->nodes[n]->op;
        if (!m->needed[n]) continue;
        if (op != BEL_OP_INPUT && op != BEL_OP_VARIABLE) copy_node(m, from->nodes[n]);
    }
}

// Marks the nodes to copy. A server has exactly the inputs that outputs depend on. An exported
// model leaves out the rest later, when it is written.
static void mark_needed(maker *m, const bel_output *outputs, int output_count)
{
    const bel_graph *from = m->saved->built->graph;
    m->needed = bel_xcalloc(from->node_count + 1, sizeof *m->needed);
    for (size_t n = 0; n < from->node_count; n++)
        m->needed[n] = m->tables != NULL;
    if (m->tables != NULL) return;
    bel_value **values = bel_xcalloc((size_t)output_count + 1, sizeof *values);
    for (int o = 0; o < output_count; o++)
        values[o] = outputs[o].value;
    bel_graph_mark(from, values, output_count, m->needed);
    bel_free(values);
    for (size_t l = 0; l < from->lookup_count; l++) {
        const bel_graph_lookup *lookup = &from->lookups[l];
        if (m->needed[from->inputs[lookup->rows].value->node->index])
            m->needed[from->inputs[lookup->ids].value->node->index] = true;
    }
}

static void mark_read(bel_export_graph *out, int output_count)
{
    bool *needed = bel_xcalloc(out->graph->node_count + 1, sizeof *needed);
    bel_graph_mark(out->graph, out->outputs, output_count, needed);
    for (int i = 0; i < out->input_count; i++)
        out->inputs[i].read = needed[out->graph->inputs[i].value->node->index];
    for (size_t l = 0; l < out->graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &out->graph->lookups[l];
        if (needed[out->graph->inputs[lookup->rows].value->node->index])
            out->inputs[lookup->ids].read = true;
    }
    bel_free(needed);
}

// --- Entry point --------------------------------------------------------------------------------

bel_status *bel_export_graph_make(const bel_saved *saved, const bel_feature_list *features,
                                  const bel_export_tables *tables, const bel_columns *columns,
                                  const bel_output *outputs, int output_count, bool inline_tables,
                                  bel_export_graph *out)
{
    const bel_graph *from = saved->built->graph;
    *out = (bel_export_graph){.graph = bel_graph_create()};
    maker m = {.saved = saved,
               .features = features,
               .tables = tables,
               .columns = columns,
               .out = out,
               .inline_tables = inline_tables,
               .values = bel_xcalloc(from->value_count + 1, sizeof(bel_value *)),
               .rows = bel_xcalloc(from->table_count + 1, sizeof(bel_value *)),
               .places = bel_xcalloc(from->input_count + 1, sizeof(bel_value *))};
    out->graph->replica_count = from->replica_count;
    mark_needed(&m, outputs, output_count);
    check_readers(&m);
    add_variables(&m);
    bel_graph_push_scope(out->graph, "features");
    add_features(&m);
    bel_graph_pop_scope(out->graph);
    if (tables == NULL) look_up_rows(&m); // tables have the names of the model's
    copy_nodes(&m);
    for (int o = 0; o < output_count; o++)
        out->outputs[o] = m.values[outputs[o].value->id];
    bel_free(m.values);
    bel_free(m.rows);
    bel_free(m.places);
    bel_free(m.id_inputs);
    bel_free(m.needed);
    BEL_TRY(bel_graph_check(out->graph));
    mark_read(out, output_count);
    return NULL;
}

static bool is_input(const bel_export_graph *x, const char *name)
{
    for (int i = 0; i < x->input_count; i++)
        if (x->inputs[i].read && strcmp(x->graph->inputs[i].name, name) == 0) return true;
    return false;
}

void bel_export_graph_name_outputs(const bel_export_graph *graph, bel_arena *arena,
                                   bel_output *outputs, int output_count)
{
    for (int o = 0; o < output_count; o++) {
        const char *name = outputs[o].name;
        for (int number = 2; is_input(graph, outputs[o].name); number++) {
            char *other = bel_strf("%s_%d", name, number);
            outputs[o].name = bel_arena_strdup(arena, other);
            bel_free(other);
        }
    }
}

void bel_export_graph_deinit(bel_export_graph *graph)
{
    bel_graph_destroy(graph->graph);
    bel_free(graph->variables);
    bel_free(graph->inputs);
    *graph = (bel_export_graph){.graph = NULL};
}
