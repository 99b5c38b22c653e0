/* Goes on learning from lines of numbers with the class behind them, in batches of 32, and saves a
 * checkpoint beside the one that it began with.
 *
 *   cc learn.c -o learn $(pkg-config --cflags --libs belfry-learner)
 *   ./learn runs/digits/export/1200-training < new-digits.csv */
#include <belfry/learner.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32, MOST = 4096 };

static float x[BATCH * MOST];
static int64_t label[BATCH];

/* Reads up to BATCH lines of `width` numbers and a class; gives how many. */
static int read_batch(int64_t width)
{
    int n = 0;
    double number;
    for (; n < BATCH; n++)
        for (int64_t i = 0; i <= width; i++) {
            if (scanf("%lf%*[, ]", &number) < 1) return n;
            if (i < width)
                x[n * width + i] = (float)number;
            else
                label[n] = (int64_t)number;
        }
    return n;
}

static bel_status *learn(bel_learner *learner, const char *folder)
{
    float loss;
    char digest[33];
    bel_port port = bel_learner_input_port(learner, 0);
    int64_t width = port.shape.rank == 2 ? port.shape.dims[1] : 0;
    if (port.dtype != BEL_DTYPE_F32 || width < 1 || width > MOST)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "this program feeds models of up to %d numbers", MOST);
    for (int n; (n = read_batch(width)) > 0;) {
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
