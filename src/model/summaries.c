// Summaries of a training graph. Scalars are in the step statistics of all replicas. Histograms and
// images are observed only on replica 0 (observer.h), so that nothing large is sent. Series in the
// statistics share their room with metrics of training, which bounds the scalars.
#include "belfry/estimator.h"
#include "model/metrics.h"
#include "model/model.h"

static void summaries_add(bel_model_context *context, bel_estimator_spec *spec, bel_summary summary)
{
    int same = 0;
    for (int i = 0; i < spec->summary_count; i++)
        same += spec->summaries[i].kind == summary.kind;
    bool full = spec->summary_count >= BEL_MAX_SUMMARIES ||
                (summary.kind == BEL_SUMMARY_SCALAR && same >= BEL_MAX_SCALARS);
    if (!full && bel_spec_name_is_free(spec, summary.name)) {
        spec->summaries[spec->summary_count++] = summary;
        return;
    }
    bel_graph_fail(
        bel_context_graph(context), BEL_INVALID_ARGUMENT,
        "summary \"%s\": the name is empty, taken or reserved, or there are more than %d "
        "(%d scalars)",
        summary.name != NULL ? summary.name : "", BEL_MAX_SUMMARIES, BEL_MAX_SCALARS);
}

static void check_and_add(bel_model_context *context, bel_estimator_spec *spec, bel_summary summary)
{
    if (bel_context_mode(context) != BEL_MODE_TRAIN || summary.value == NULL) return;
    if (bel_graph_ok(bel_context_graph(context), bel_summary_check(&summary)))
        summaries_add(context, spec, summary);
}

void bel_summary_scalar(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                        bel_value *value)
{
    check_and_add(context, spec, (bel_summary){.name = name, .value = value});
}

void bel_summary_histogram(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                           bel_value *value)
{
    check_and_add(context, spec,
                  (bel_summary){.name = name, .kind = BEL_SUMMARY_HISTOGRAM, .value = value});
}

void bel_summary_image(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                       bel_value *value, int most)
{
    check_and_add(
        context, spec,
        (bel_summary){.name = name, .kind = BEL_SUMMARY_IMAGE, .value = value, .most = most});
}

// [classes, classes] with ones on the diagonal. Its rows represent classes, and a gather fails the
// step for an invalid class, which a one-hot row would ignore.
static bel_value *identity(bel_graph *g, int64_t classes)
{
    float ones[BEL_MOST_CONFUSED * BEL_MOST_CONFUSED] = {0};
    for (int64_t c = 0; c < classes; c++)
        ones[c * classes + c] = 1;
    const bel_tensor tensor = {BEL_DTYPE_F32, BEL_SHAPE(classes, classes), ones};
    return bel_constant(g, &tensor);
}

// Counts [label][predicted] of a batch: the product of one matrix, transposed, with the other.
void bel_summary_confusion(bel_model_context *context, bel_estimator_spec *spec, bel_value *labels,
                           bel_value *predicted, int64_t classes)
{
    bel_graph *g = bel_context_graph(context);
    bel_shape one = bel_value_shape(labels), other = bel_value_shape(predicted);
    bool missing = labels == NULL || predicted == NULL;
    if (bel_context_mode(context) != BEL_MODE_EVAL || missing) return;
    bool fits = one.rank == 1 && other.rank == 1 && classes >= 2 && classes <= BEL_MOST_CONFUSED;
    if (!fits || spec->confusion != NULL) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "confusion matrix: expected one, of labels and predictions [batch] and of 2 "
                       "to %d classes, got %lld classes%s",
                       BEL_MOST_CONFUSED, (long long)classes,
                       spec->confusion != NULL ? ", and one before" : "");
        return;
    }
    const int64_t turn[] = {1, 0};
    bel_graph_push_scope(g, "confusion_matrix");
    bel_value *rows = identity(g, classes);
    bel_value *is = bel_transpose(g, bel_gather(g, rows, labels), turn);
    spec->confusion = bel_matmul(g, is, bel_gather(g, rows, predicted));
    bel_graph_pop_scope(g);
}
