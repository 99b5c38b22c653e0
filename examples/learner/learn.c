/* Continues a training with lines of numbers followed by their class, in batches of 32, and saves a
 * checkpoint beside the original one.
 *
 *   cc learn.c -o learn $(pkg-config --cflags --libs belfry-learner)
 *   tail -n +2 new-digits.csv | ./learn runs/digits/export/1200-training   # without a header */
#include <belfry/learner.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32, MOST = 4096 };

static float x[BATCH * MOST];
static int64_t label[BATCH];
static int lines; /* read so far */

/* A line of `width` numbers and a class. */
static bel_status *take_line(const char *line, int64_t width, float *numbers, int64_t *out_class)
{
    char *end;
    for (int64_t i = 0; i <= width; i++, line = end + (*end == ',')) {
        double number = strtod(line, &end);
        if (end == line || (i == width && !(number >= 0 && number < 1e9)))
            return BEL_ERR(BEL_INVALID_ARGUMENT, "line %d: expected %d numbers and a class", lines,
                           (int)width);
        if (i < width)
            numbers[i] = (float)number;
        else
            *out_class = (int64_t)number;
    }
    return NULL;
}

/* Reads up to BATCH lines; *out_count is their number. */
static bel_status *read_batch(int64_t width, int *out_count)
{
    static char line[1 << 20];
    for (*out_count = 0; *out_count < BATCH && fgets(line, sizeof line, stdin) != NULL;) {
        lines++;
        BEL_TRY(take_line(line, width, &x[*out_count * width], &label[*out_count]));
        ++*out_count;
    }
    return NULL;
}

static bel_status *learn(bel_learner *learner, const char *folder)
{
    float loss;
    char digest[33];
    bel_port port = bel_learner_input_port(learner, 0),
             of_label = bel_learner_label_port(learner, 0);
    int64_t width = port.shape.rank == 2 ? port.shape.dims[1] : 0;
    if (port.dtype != BEL_DTYPE_F32 || of_label.dtype != BEL_DTYPE_I64 || width < 1 || width > MOST)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "this program feeds classes of up to %d numbers",
                       MOST);
    for (int n;;) {
        BEL_TRY(read_batch(width, &n));
        if (n == 0) break;
        bel_tensor in = {BEL_DTYPE_F32, BEL_SHAPE(n, width), x};
        bel_tensor out = {BEL_DTYPE_I64, BEL_SHAPE(n), label};
        BEL_TRY(bel_learner_step(learner, &in, &out, &loss));
        printf("step %lld: loss %g\n", (long long)bel_learner_step_count(learner), (double)loss);
    }
    BEL_TRY(bel_learner_save(learner, folder, digest));
    printf("saved, digest %s\n", digest);
    return NULL;
}

int main(int argc, char **argv)
{
    bel_learner *learner = NULL;
    if (argc != 2) return fprintf(stderr, "usage: learn FOLDER < NUMBERS\n"), 2;
    bel_status *status = bel_learner_load(argv[1], NULL, &learner);
    if (status == NULL) status = learn(learner, argv[1]);
    bel_learner_destroy(learner);
    return bel_status_report(status);
}
