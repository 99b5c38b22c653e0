// A file that grows has no last row, and is read in order, once. So flags that need all rows, or
// read them in another way, are refused by name instead of having another meaning.
#include "setup/follow.h"

#include <string.h>

#include "input/files/paths.h"
#include "setup/inputs.h"
#include "store/store.h"

bool bel_follows(const bel_options *options)
{
    return bel_options_has(options, "follow") && bel_options_bool(options, "follow");
}

static bool is_given(const bel_options *options, const char *flag)
{
    return bel_options_has(options, flag) && bel_options_is_given(options, flag) &&
           bel_options_text(options, flag)[0] != '\0';
}

static bel_status *check_flags(const bel_options *options)
{
    static const struct {
        const char *flag, *reason;
    } refused[] = {
        {"eval_share", "it chooses among all rows; hint: --eval_files"},
        {"num_epochs", "the file is read once"},
        {"drop_remainder", "each step is whole anyway"},
        {"elastic_rescale", "steps have one number of replicas"},
        {"replicas_to_aggregate", "rows whose report comes late would not be learned"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (!is_given(options, refused[i].flag)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s does not go with --follow: %s", refused[i].flag,
                       refused[i].reason);
    }
    if (is_given(options, "shuffle_buffer") && bel_options_int(options, "shuffle_buffer") != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--shuffle_buffer does not go with --follow: rows are "
                                             "read in the order of the file");
    }
    if (bel_options_has(options, "mode") && strcmp(bel_options_text(options, "mode"), "sync") != 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--mode %s does not go with --follow: the order of "
                       "updates would depend on timing",
                       bel_options_text(options, "mode"));
    return NULL;
}

// Inference from the rows so far would give other columns in each process and in each run.
static bel_status *check_columns(const bel_options *options)
{
    static const char *const others[] = {"feature_scale", "class_count", "id_columns",
                                         "id_list_columns", "length_column"};
    bool described = strcmp(bel_options_text(options, "columns"), "auto") != 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        described = described || is_given(options, others[i]);
    if (described || is_given(options, "package")) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--follow needs a description of the columns; hint: belfry columns FILE > "
                   "columns.yaml, with some rows, and --columns columns.yaml");
}

bel_status *bel_follow_check(const bel_options *options)
{
    size_t count;
    if (!bel_follows(options)) return NULL;
    const char *const *files = bel_options_list(options, "train_files", &count);
    bool is_one = count == 1 && (bel_path_is_pattern(files[0]) || !bel_store_is_url(files[0]));
    if (!is_one) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "--follow: expected one file here in --train_files, or a pattern of files or "
            "objects%s%s; hint: quote a pattern",
            count > 0 ? ", got " : "", count > 0 ? bel_options_text(options, "train_files") : "");
    }
    const char *format = bel_options_text(options, "input_format");
    bool other = strcmp(format, "auto") != 0 && strcmp(format, "csv") != 0;
    if (other || strcmp(bel_flag_inputs_format(options, false), "csv") != 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--follow: expected a CSV file, got %s", files[0]);
    BEL_TRY(check_flags(options));
    return check_columns(options);
}
