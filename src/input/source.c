// What all sources share.
#include "input/source.h"

#include "base/alloc.h"

void bel_source_add_field(bel_source *source, const char *name, bel_dtype dtype,
                          const bel_shape *shape)
{
    size_t count = (size_t)source->field_count;
    source->fields = bel_xrealloc(source->fields, (count + 1) * sizeof *source->fields);
    source->fields[count] =
        (bel_field_spec){.name = bel_xstrdup(name), .dtype = dtype, .shape = *shape};
    source->field_count++;
}

void bel_source_deinit(bel_source *source)
{
    for (int f = 0; f < source->field_count; f++)
        bel_free(source->fields[f].name);
    bel_free(source->fields);
}

bool bel_source_has_fixed_shapes(const bel_source *source)
{
    for (int f = 0; f < source->field_count; f++) {
        if (source->fields[f].dtype == BEL_DTYPE_STRING) return false;
    }
    return true;
}

bel_status *bel_source_read_record(const bel_source *source, int64_t number, bel_record *out_record)
{
    bel_record_begin(out_record, source, number);
    bel_sink sink = {.record = out_record};
    return source->ops->read(source, number, &sink);
}
