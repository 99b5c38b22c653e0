#include "support/model_oracle.h"

#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "support/bel_test.h"

bel_estimator *bel_oracle_estimator(const char *model, const bel_param *params, const char *folder)
{
    int count = 0;
    while (params[count].name != NULL)
        count++;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find(model)->model_fn, &config, params, count, &estimator));
    return estimator;
}

float *bel_oracle_floats(const bel_warm_file *file, const char *name, bel_shape shape)
{
    size_t count = (size_t)bel_shape_elements(&shape);
    float *values = bel_xcalloc(count, sizeof *values);
    BEL_ASSERT_OK(bel_warm_file_read(file, name, &shape, values));
    return values;
}

void bel_oracle_integers(const bel_warm_file *file, const char *name, int64_t *out, size_t count)
{
    const bel_safetensors_entry *entry = bel_safetensors_find(&file->list, name);
    assert_non_null(entry);
    assert_int_equal(bel_shape_elements(&entry->shape), count);
    BEL_ASSERT_OK(bel_disk_file_read(&file->file, entry->offset, out, count * sizeof *out));
}

void bel_oracle_check_gradients(const bel_warm_file *file, const char *folder, double decay)
{
    char *last = bel_strf("%s/ckpt-00000001", folder);
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(last, &checkpoint));
    int checked = 0;
    for (int i = 0; i < bel_checkpoint_count(checkpoint); i++) {
        const char *name;
        bel_shape shape;
        bel_checkpoint_tensor(checkpoint, i, &name, NULL, &shape);
        char *its = bel_strf("gradient/%s", name);
        float *before = bel_oracle_floats(file, name, shape);
        float *gradient = bel_oracle_floats(file, its, shape);
        size_t count = (size_t)bel_shape_elements(&shape);
        float *after = bel_xcalloc(count, sizeof *after);
        BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, name, after, count * sizeof *after));
        for (size_t e = 0; e < count; e++) {
            double found = (double)before[e] - (double)after[e];
            if (shape.rank == 2) found -= decay * (double)before[e];
            if (fabs(found - (double)gradient[e]) > 2e-6)
                fail_msg("%s, element %zu: expected %g, got %g", name, e, (double)gradient[e],
                         found);
        }
        checked++;
        bel_free(before), bel_free(gradient), bel_free(after), bel_free(its);
    }
    assert_true(checked > 10);
    bel_checkpoint_close(checkpoint);
    bel_free(last);
}
