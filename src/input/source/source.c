// Chooses the opener by the kind of description; a further kind of source is a case here and a file
// source_<kind>.c. There is no table of openers because each takes a different type of description.
// A source made of datasets opens these first. A source whose opening fails frees itself, so
// bel_source_destroy is only for opened ones.
#include "base/alloc.h"
#include "input/source/record_stream.h"

// Options for opening dataset `index`. Datasets whose records replace each other have the same
// columns, bound by the names of the first; if their fields are put side by side, only the first is
// bound.
static bel_opening opening_for(const bel_source_description *description, int index,
                               bel_record_stream *const *inner, const bel_opening *opening)
{
    bel_opening its = *opening;
    bool beside = description->kind == BEL_SOURCE_ZIP;
    if (index > 0 && beside) its.like = NULL;
    if (index > 0 && !beside && its.like == NULL) its.like = inner[0]->source->names;
    return its;
}

static void destroy_inner(bel_record_stream **inner, int count)
{
    for (int i = 0; i < count; i++)
        bel_record_stream_destroy(inner[i]);
    bel_free(inner);
}

static bel_status *open_made(const bel_source_description *description, bel_record_stream **inner,
                             bel_source **out_source)
{
    switch (description->kind) {
    case BEL_SOURCE_CONCATENATE:
    case BEL_SOURCE_INTERLEAVE:
    case BEL_SOURCE_SAMPLE: return bel_source_open_join(description, inner, out_source);
    case BEL_SOURCE_ZIP:
    case BEL_SOURCE_ENUMERATE: return bel_source_open_zip(description, inner, out_source);
    case BEL_SOURCE_WINDOW: return bel_source_open_window(description, inner, out_source);
    case BEL_SOURCE_FLAT: return bel_source_open_flat(description, inner, out_source);
    case BEL_SOURCE_CACHE: return bel_source_open_cache(description, inner, out_source);
    default:
        return BEL_ERR(BEL_INTERNAL, "no source of kind %d reads datasets", (int)description->kind);
    }
}

static bel_status *open_with_datasets(const bel_source_description *description,
                                      const bel_opening *opening, bel_source **out_source)
{
    int count = description->inner_count;
    bel_record_stream **inner = bel_xcalloc((size_t)count, sizeof *inner);
    bel_status *status = NULL;
    for (int i = 0; i < count && status == NULL; i++) {
        bel_opening its = opening_for(description, i, inner, opening);
        status = bel_record_stream_open(&description->inner[i], &its, &inner[i]);
        if (status != NULL && count > 1)
            status = bel_status_wrap(status, __FILE__, __LINE__, "dataset %d", i);
    }
    if (status == NULL) status = open_made(description, inner, out_source);
    if (status != NULL) {
        destroy_inner(inner, count);
        return status;
    }
    for (int i = 0; i < count; i++)
        (*out_source)->may_lack = (*out_source)->may_lack || inner[i]->source->may_lack;
    return NULL;
}

bel_status *bel_source_open(const bel_source_description *description, const bel_opening *opening,
                            bel_source **out_source)
{
    switch (description->kind) {
    case BEL_SOURCE_CSV:
        return (description->csv.table != NULL ? bel_source_open_table : bel_source_open_csv)(
            &description->csv, opening, out_source);
    case BEL_SOURCE_IDX: return bel_source_open_idx(&description->idx, out_source);
    case BEL_SOURCE_MEMORY: return bel_source_open_memory(&description->memory, out_source);
    case BEL_SOURCE_MEMORY_TABLE:
        return bel_source_open_memory_table(&description->memory_table, out_source);
    case BEL_SOURCE_TEXT: return bel_source_open_text(&description->text, out_source);
    case BEL_SOURCE_TFRECORD:
        return bel_source_open_tfrecord(&description->tfrecord, opening, out_source);
    case BEL_SOURCE_TOKENS: return bel_source_open_tokens(&description->tokens, out_source);
    case BEL_SOURCE_GENERATOR:
        return bel_source_open_generator(&description->generator, opening, out_source);
    default: return open_with_datasets(description, opening, out_source);
    }
}

void bel_source_destroy(bel_source *source)
{
    if (source == NULL) return;
    bel_record_stream **inner = source->inner;
    int inner_count = source->inner_count;
    source->kind->destroy(source);
    destroy_inner(inner, inner_count);
}
