// Tables in files and in memory have the same fields in the same order, so a model trained on one
// reads the other. A class and a number are two readings of the label's place: the description has
// only one of them.
#include "input/source/table_fields.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/graph.h"

static int add_field(bel_source *source, bel_source_field *fields, const char *name,
                     bel_dtype dtype, bel_shape shape)
{
    fields[source->field_count] = (bel_source_field){.name = name, .dtype = dtype, .shape = shape};
    return source->field_count++;
}

bel_table_fields bel_table_fields_make(const bel_columns *columns, bool labeled, bel_source *source,
                                       bel_arena *arena)
{
    bel_table_fields at = {-1, -1, -1, -1, -1, -1, -1};
    bel_source_field *fields = bel_arena_alloc(arena, BEL_TABLE_MOST_FIELDS * sizeof *fields);
    source->fields = fields;
    if (columns->x_width > 0)
        at.x = add_field(source, fields, "x", BEL_DTYPE_F32, BEL_SHAPE(columns->x_width));
    if (columns->id_count > 0)
        at.ids =
            add_field(source, fields, BEL_ID_FIELD, BEL_DTYPE_I64, BEL_SHAPE(columns->id_count));
    if (columns->list_count > 0)
        at.lists = add_field(source, fields, BEL_ID_LIST_FIELD, BEL_DTYPE_I64,
                             BEL_SHAPE(columns->list_count, columns->list_most));
    if (columns->tokens >= 0) {
        at.tokens = add_field(source, fields, BEL_TOKENS_FIELD, BEL_DTYPE_I64,
                              BEL_SHAPE(columns->items[columns->tokens].most));
        at.lengths = add_field(source, fields, BEL_LENGTH_FIELD, BEL_DTYPE_I64, bel_shape_scalar());
    }
    if (!labeled) return at;
    if (columns->weight >= 0)
        at.weight = add_field(source, fields, BEL_WEIGHT_FIELD, BEL_DTYPE_F32, bel_shape_scalar());
    bel_label_kind kind = bel_columns_label_kind(columns);
    at.label = add_field(
        source, fields, BEL_LABEL_FIELD, kind == BEL_LABEL_NUMBER ? BEL_DTYPE_F64 : BEL_DTYPE_I64,
        kind == BEL_LABEL_SEVERAL ? BEL_SHAPE(columns->label_count) : bel_shape_scalar());
    return at;
}

void bel_table_fields_tell_cut(const bel_columns *columns, const bel_category_cells *seen,
                               const char *source)
{
    if (columns->tokens < 0) return;
    const bel_column *column = &columns->items[columns->tokens];
    const bel_category_cells *texts = &seen[columns->tokens];
    bel_str line = {0};
    if (texts->unknown > 0)
        bel_str_printf(&line, "%lld of %lld texts \"%s\" have more than %d tokens, and are cut",
                       (long long)texts->unknown, (long long)texts->cells, column->name,
                       column->most);
    if (texts->unknown > 0 && texts->empty > 0)
        bel_str_printf(&line, "; %lld have no token", (long long)texts->empty);
    if (texts->unknown == 0 && texts->empty > 0)
        bel_str_printf(&line, "%lld of %lld texts \"%s\" have no token", (long long)texts->empty,
                       (long long)texts->cells, column->name);
    if (line.length > 0) bel_log_write(BEL_LOG_INFO, "%s: %s", source, line.text);
    bel_str_deinit(&line);
}

static void *place_of(void *const *places, int field)
{
    return field < 0 ? NULL : places[field];
}

bel_columns_block bel_table_fields_block(const bel_table_fields *fields, void *const *places)
{
    void *label = place_of(places, fields->label);
    return (bel_columns_block){.x = place_of(places, fields->x),
                               .ids = place_of(places, fields->ids),
                               .lists = place_of(places, fields->lists),
                               .tokens = place_of(places, fields->tokens),
                               .lengths = place_of(places, fields->lengths),
                               .class_number = label,
                               .number = label,
                               .weight = place_of(places, fields->weight)};
}
