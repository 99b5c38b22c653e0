// The settings in a worker's join already describe its input: fields, names of columns, the table,
// batch size, epochs, fingerprint. When the workers join the job, the master compares the settings
// of each with those of this one, so it refuses inputs that differ as in any job.
#include "model/remote_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/number.h"
#include "base/str.h"
#include "model/feature_list.h"

struct bel_remote_input {
    bel_arena *arena;
    bel_feature_list fields;
    bel_column_names names;
    bel_columns *table; // NULL: none
    bel_input_facts facts;
    int64_t batch_size;
    bel_dataset *dataset; // has one empty record
    void *zeros;          // the record's memory
    size_t zero_bytes;
};

static const char *remote_input_words_find(const bel_remote_input_words *words, const char *name)
{
    const bel_settings *settings = words->settings;
    for (int i = 0; i < settings->count; i++)
        if (strcmp(settings->names[i], name) == 0) return settings->values[i];
    return NULL;
}

static bool read_fingerprint(const char *text, uint64_t *out_fingerprint)
{
    char *end;
    errno = 0;
    *out_fingerprint = strtoull(text, &end, 16);
    return errno == 0 && end != text && *end == '\0';
}

static bool read_numbers(const bel_remote_input_words *words, bel_remote_input *remote)
{
    const char *batch = remote_input_words_find(words, BEL_SETTING_BATCH),
               *epochs = remote_input_words_find(words, BEL_SETTING_EPOCHS);
    const char *fingerprint = remote_input_words_find(words, BEL_SETTING_INPUT);
    bel_input_facts *facts = &remote->facts;
    facts->epoch_records = words->epoch_records;
    facts->records = words->records;
    return words->epoch_records >= 0 && words->records >= 0 && batch != NULL &&
           bel_parse_i64(batch, strlen(batch), &remote->batch_size) && remote->batch_size > 0 &&
           (epochs == NULL || bel_parse_i64(epochs, strlen(epochs), &facts->epochs)) &&
           fingerprint != NULL && read_fingerprint(fingerprint, &facts->fingerprint);
}

static bel_status *read_words(const bel_remote_input_words *words, const char *source,
                              bel_remote_input *remote)
{
    const char *features = remote_input_words_find(words, BEL_SETTING_FEATURES);
    const char *names = remote_input_words_find(words, BEL_SETTING_COLUMNS),
               *table = remote_input_words_find(words, BEL_SETTING_TABLE);
    if (features == NULL || !read_numbers(words, remote))
        return BEL_ERR(BEL_DATA_LOSS, "%s describes no training input", source);
    BEL_TRY(bel_feature_list_read(features, source, remote->arena, &remote->fields));
    if (names != NULL) BEL_TRY(bel_column_names_read(names, source, remote->arena, &remote->names));
    if (table != NULL) BEL_TRY(bel_columns_parse(table, source, &remote->table));
    bel_input_facts *facts = &remote->facts;
    facts->names = names != NULL ? &remote->names : NULL;
    facts->table = remote->table;
    facts->file = words->file[0] != '\0' ? bel_arena_strdup(remote->arena, words->file) : NULL;
    facts->scales = remote->fields.field_scales;
    const bel_feature_list *fields = &remote->fields;
    return bel_feature_dataset(fields->fields, fields->is_label, fields->field_count,
                               remote->batch_size, &remote->zeros, &remote->zero_bytes,
                               &remote->dataset);
}

bel_status *bel_remote_input_create(const bel_remote_input_words *words, const char *source,
                                    bel_remote_input **out_remote)
{
    bel_remote_input *remote = bel_xcalloc(1, sizeof *remote);
    remote->arena = bel_arena_create();
    bel_status *status = read_words(words, source, remote);
    if (status != NULL) {
        bel_remote_input_destroy(remote);
        return status;
    }
    *out_remote = remote;
    return NULL;
}

void bel_remote_input_destroy(bel_remote_input *remote)
{
    if (remote == NULL) return;
    bel_dataset_destroy(remote->dataset);
    if (remote->zeros != NULL) bel_pages_destroy(remote->zeros, remote->zero_bytes);
    bel_columns_destroy(remote->table);
    bel_arena_destroy(remote->arena);
    bel_free(remote);
}

const char *bel_remote_input_table(const bel_remote_input *remote)
{
    return remote->table != NULL ? bel_columns_text(remote->table) : NULL;
}

bel_status *bel_remote_input_open(const bel_remote_input *remote, bel_input **out_input)
{
    return bel_input_open(remote->dataset, &(bel_input_use){.facts = &remote->facts}, out_input);
}
