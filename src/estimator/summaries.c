// Summaries of a training graph: scalars go with the step statistics of all replicas, histograms
// and images are observed of replica 0 (observer.h), so that nothing large travels. The room for
// series in the statistics is shared with metrics of training; hence the bound on scalars.
#include "belfry/estimator.h"
#include "estimator/metrics.h"

static void add(bel_model_context *context, bel_estimator_spec *spec, bel_summary summary)
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

static void refuse(bel_model_context *context, const char *name, const char *expected,
                   const bel_value *value)
{
    bel_shape shape = bel_value_shape(value);
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "summary \"%s\" must be %s, got %s %s", name, expected,
                   bel_dtype_name(bel_value_dtype(value)), bel_shape_text(&shape, text));
}

void bel_summary_scalar(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                        bel_value *value)
{
    if (bel_context_mode(context) != BEL_MODE_TRAIN || value == NULL) return;
    if (bel_value_shape(value).rank != 0 || bel_value_dtype(value) != BEL_DTYPE_F32) {
        refuse(context, name, "a scalar f32", value);
    } else {
        add(context, spec, (bel_summary){.name = name, .value = value});
    }
}

void bel_summary_histogram(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                           bel_value *value)
{
    if (bel_context_mode(context) != BEL_MODE_TRAIN || value == NULL) return;
    if (bel_value_dtype(value) != BEL_DTYPE_F32) {
        refuse(context, name, "f32", value);
    } else {
        add(context, spec,
            (bel_summary){.name = name, .kind = BEL_SUMMARY_HISTOGRAM, .value = value});
    }
}

void bel_summary_image(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                       bel_value *value, int most)
{
    enum { MOST_IMAGES = 64 };
    if (bel_context_mode(context) != BEL_MODE_TRAIN || value == NULL) return;
    bel_shape shape = bel_value_shape(value);
    bel_dtype dtype = bel_value_dtype(value);
    bool kind = dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_U8;
    bool colours =
        shape.rank == 4 && (shape.dims[1] == 1 || shape.dims[1] == 3 || shape.dims[1] == 4);
    if (!kind || !colours || most < 1 || most > MOST_IMAGES) {
        refuse(context, name, "f32 or u8 [batch, 1, 3 or 4, h, w] with 1 to 64 images", value);
        return;
    }
    add(context, spec,
        (bel_summary){.name = name, .kind = BEL_SUMMARY_IMAGE, .value = value, .most = most});
}

// Counts [label][predicted] of a batch: the one transposed times the other.
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
    bel_value *is = bel_transpose(g, bel_one_hot(g, labels, classes), turn);
    bel_value *said = bel_one_hot(g, predicted, classes);
    spec->confusion = bel_matmul(g, is, said);
}
