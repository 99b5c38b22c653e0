// Where a record of a batch goes, for all kinds of sources: into the rows of a batch, or into a
// record that maps and filters can look at. Sources write through it without knowing which. It
// is a file of its own because source.c calls the openers of all kinds, and these call the sink:
// in one file they would be a circle.
#include "input/source.h"

void *bel_sink_place(const bel_sink *sink, const bel_source *source, int field, int64_t length)
{
    if (sink->record == NULL) return sink->rows[field];
    const bel_source_field *spec = &source->fields[field];
    bel_shape shape = spec->shape;
    if (spec->dtype == BEL_DTYPE_STRING) shape.dims[0] = length;
    return bel_record_append(sink->record, spec->name, spec->dtype, &shape);
}

bel_status *bel_source_read_record(const bel_source *source, struct bel_cursor *cursor,
                                   bel_position at, bel_record *record, bool *out_skip)
{
    bel_record_begin(record, source, at.number);
    if (source->kind->combine != NULL) {
        return source->kind->combine(source, cursor, at, record, out_skip);
    }
    return source->kind->read(source, at.number, &(bel_sink){.record = record});
}
