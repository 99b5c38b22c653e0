// The choice of the opener by the kind of description; a further kind of source is a case here
// and a file source_<kind>.c. It has no table of openers because each takes a description of its
// own type. A source whose opening fails frees itself, so bel_source_destroy is only for those
// that were opened.
#include "input/source.h"

bel_status *bel_source_open(const bel_source_description *description, const bel_column_names *like,
                            bel_source **out_source)
{
    switch (description->kind) {
    case BEL_SOURCE_CSV: return bel_source_open_csv(&description->csv, like, out_source);
    case BEL_SOURCE_IDX: return bel_source_open_idx(&description->idx, out_source);
    case BEL_SOURCE_MEMORY: return bel_source_open_memory(&description->memory, out_source);
    case BEL_SOURCE_TEXT: return bel_source_open_text(&description->text, out_source);
    }
    return BEL_ERR(BEL_INTERNAL, "no source of kind %d", (int)description->kind);
}

void bel_source_destroy(bel_source *source)
{
    if (source != NULL) source->kind->destroy(source);
}
