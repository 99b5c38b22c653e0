// Connectionist temporal classification, f32. A tile has a run of examples; there are at most 16
// tiles, depending only on the batch's size, each with a slot of the workspace. Probabilities are
// wide numbers (wide.h), so a state needs a product and two sums, no logarithm, and the bits depend
// on no C library. alpha of a frame overwrites that of the previous frame, from the last state
// down, as a state reads itself and the two before it. The gradient keeps all frames' alphas and
// one beta. Results after an example's frames are zero.
#include "ops/kernels/ctc.h"

#include <string.h>

#include "ops/kernels/cpu.h"
#include "ops/kernels/wide.h"

enum { MAX_TILES = 16 };

typedef struct ctc_params {
    bel_ctc_shape shape; // first
    int64_t per_tile;
    int64_t slot_numbers; // wide numbers in a slot
} ctc_params;

// Reads probabilities of a frame: [0] that of a blank, [1 + i] that of label i.
static void read_frame(const bel_ctc_example *x, const float *log_p, bel_wide *p)
{
    p[0] = bel_wide_exp((double)log_p[BEL_CTC_BLANK]);
    for (int64_t i = 0; i < x->label_count; i++)
        p[1 + i] = bel_wide_exp((double)log_p[x->labels[i]]);
}

static bel_wide of_state(const bel_wide *p, int64_t state)
{
    return p[state % 2 == 0 ? 0 : 1 + state / 2];
}

// The previous frame has the numbers `before`, which may be the same array as alpha: NULL at first.
static void forward_frame(const bel_ctc_example *x, const bel_wide *p, const bel_wide *before,
                          bel_wide *alpha)
{
    for (int64_t s = 2 * x->label_count; s >= 0; s--) {
        bel_wide sum = {.m = before == NULL && s < 2 ? 1 : 0};
        if (before != NULL) sum = before[s];
        if (before != NULL && s > 0) sum = bel_wide_add(sum, before[s - 1]);
        if (before != NULL && bel_ctc_skips(x, s)) sum = bel_wide_add(sum, before[s - 2]);
        alpha[s] = bel_wide_mul(sum, of_state(p, s));
    }
}

// Computes beta of the frame before the one with probabilities p.
static void backward_frame(const bel_ctc_example *x, const bel_wide *p, bel_wide *beta)
{
    int64_t last = 2 * x->label_count;
    for (int64_t s = 0; s <= last; s++) {
        bel_wide sum = bel_wide_mul(beta[s], of_state(p, s));
        if (s < last) sum = bel_wide_add(sum, bel_wide_mul(beta[s + 1], of_state(p, s + 1)));
        if (s + 2 <= last && bel_ctc_skips(x, s + 2)) {
            sum = bel_wide_add(sum, bel_wide_mul(beta[s + 2], of_state(p, s + 2)));
        }
        beta[s] = sum;
    }
}

// Returns the probability of the labels, from the last frame's alpha.
static bel_wide ctc_example_whole(const bel_ctc_example *x, const bel_wide *alpha)
{
    int64_t last = 2 * x->label_count;
    if (x->frames == 0) return (bel_wide){.m = last == 0 ? 1 : 0};
    return last == 0 ? alpha[0] : bel_wide_add(alpha[last], alpha[last - 1]);
}

static bel_wide *slot_of(const bel_kernel_call *call, int64_t tile)
{
    const ctc_params *p = call->params;
    return (bel_wide *)call->workspace + tile * p->slot_numbers;
}

static int64_t end_of(const bel_kernel_call *call, int64_t tile)
{
    const ctc_params *p = call->params;
    int64_t end = (tile + 1) * p->per_tile;
    return end < p->shape.n ? end : p->shape.n;
}

// --- Loss ----------------------------------------------------------------------------------------

// Processes a tile's examples one after another in its slot: probabilities [1 + labels], then alpha
// [states]. log_p [frames, classes] is an output, which the gradient reads again.
static void run_loss(const bel_kernel_call *call, int64_t tile)
{
    const ctc_params *params = call->params;
    const bel_ctc_shape *s = &params->shape;
    bel_wide *p = slot_of(call, tile), *alpha = p + 1 + s->labels;
    float *losses = call->outputs[0].data;
    for (int64_t i = tile * params->per_tile; i < end_of(call, tile); i++) {
        float *log_p = (float *)call->outputs[1].data + i * s->frames * s->classes;
        const float *logits = (const float *)call->inputs[0].data + i * s->frames * s->classes;
        memset(log_p, 0, (size_t)(s->frames * s->classes) * sizeof *log_p);
        losses[i] = 0;
        bel_ctc_example x;
        if (!bel_ctc_example_read(call, s, i, true, &x)) continue;
        for (int64_t t = 0; t < x.frames; t++, log_p += s->classes, logits += s->classes) {
            bel_cpu_kernels_get()->log_softmax(logits, log_p, s->classes);
            read_frame(&x, log_p, p);
            forward_frame(&x, p, t == 0 ? NULL : alpha, alpha);
        }
        bel_wide probability = ctc_example_whole(&x, alpha);
        if (probability.m != 0) {
            losses[i] = (float)-bel_wide_log(probability);
        } else if (!s->zero_infinity) {
            losses[i] = INFINITY;
        }
    }
}

// Chooses tiles only by the batch's size.
static void ctc_choose(const bel_prepare *prepare, bel_kernel_call *call, const bel_ctc_shape *s,
                       int64_t slot_numbers)
{
    enum { STATE_WORK = 16 }; // cost of a state and frame, in vector operations on an element
    int64_t tiles = s->n < MAX_TILES ? s->n : MAX_TILES;
    ctc_params p = {.shape = *s,
                    .per_tile = tiles > 0 ? (s->n + tiles - 1) / tiles : 1,
                    .slot_numbers = slot_numbers};
    call->tile_count = (s->n + p.per_tile - 1) / p.per_tile;
    call->workspace_bytes = (size_t)(call->tile_count * slot_numbers) * sizeof(bel_wide);
    call->work = s->n * s->frames * (s->classes + STATE_WORK * (2 * s->labels + 1));
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

void bel_ctc_prepare(const bel_prepare *prepare, bel_kernel_call *call, const bel_ctc_shape *s)
{
    call->run = run_loss;
    ctc_choose(prepare, call, s, 1 + s->labels + 2 * s->labels + 1);
}

// --- Gradient ------------------------------------------------------------------------------------

// dx = dy (p - the posterior of the class at this frame). `likely` [classes] is zero between calls.
static void gradient_frame(const bel_ctc_example *x, const bel_wide *p, const bel_wide *alpha,
                           const bel_wide *beta, bel_wide probability, double dy,
                           const float *log_p, double *likely, float *dx, int64_t classes)
{
    int64_t states = 2 * x->label_count + 1;
    float factor = (float)dy;
    bel_cpu_kernels_get()->unary[BEL_CPU_EXP](log_p, dx, classes);
    for (int64_t k = 0; k < classes; k++)
        dx[k] *= factor;
    for (int64_t s = 0; s < states; s++)
        likely[bel_ctc_class(x, s)] += bel_wide_ratio(bel_wide_mul(alpha[s], beta[s]), probability);
    for (int64_t s = 0; s < states; s++) { // in double, as the difference may be small
        int64_t k = bel_ctc_class(x, s);
        double all = bel_wide_ratio(of_state(p, s), (bel_wide){.m = 1});
        dx[k] = (float)(dy * (all - likely[k]));
    }
    for (int64_t s = 0; s < states; s++)
        likely[bel_ctc_class(x, s)] = 0;
}

// A slot has a frame's probabilities, beta, all alphas, and room for `likely`.
static void gradient_example(const bel_kernel_call *call, const bel_ctc_example *x, double dy,
                             bel_wide *slot)
{
    const bel_ctc_shape *s = &((const ctc_params *)call->params)->shape;
    int64_t states = 2 * x->label_count + 1;
    bel_wide *p = slot, *beta = p + 1 + s->labels, *alphas = beta + 2 * s->labels + 1;
    double *likely = (double *)(alphas + s->frames * (2 * s->labels + 1));
    const float *log_p = (const float *)call->inputs[s->log_p].data + x->first_frame * s->classes;
    float *dx = (float *)call->outputs[0].data + x->first_frame * s->classes;
    for (int64_t t = 0; t < x->frames; t++) {
        bel_wide *alpha = alphas + t * states;
        read_frame(x, log_p + t * s->classes, p);
        forward_frame(x, p, t == 0 ? NULL : alpha - states, alpha);
    }
    bel_wide probability = ctc_example_whole(x, alphas + (x->frames - 1) * states);
    if (probability.m == 0) return;
    memset(likely, 0, (size_t)s->classes * sizeof *likely);
    for (int64_t i = 0; i < states; i++)
        beta[i] = (bel_wide){.m = i + 2 >= states ? 1 : 0};
    for (int64_t t = x->frames - 1; t >= 0; t--) {
        int64_t at = t * s->classes;
        read_frame(x, log_p + at, p);
        gradient_frame(x, p, alphas + t * states, beta, probability, dy, log_p + at, likely,
                       dx + at, s->classes);
        backward_frame(x, p, beta);
    }
}

// dx [frames, classes] is zeroed first: frames after an example's end, and an example that does not
// fit, get no gradient.
static void run_gradient(const bel_kernel_call *call, int64_t tile)
{
    const ctc_params *params = call->params;
    const bel_ctc_shape *s = &params->shape;
    int64_t size = s->frames * s->classes;
    for (int64_t i = tile * params->per_tile; i < end_of(call, tile); i++) {
        memset((float *)call->outputs[0].data + i * size, 0, (size_t)size * sizeof(float));
        bel_ctc_example x;
        if (!bel_ctc_example_read(call, s, i, false, &x) || x.frames == 0) continue;
        gradient_example(call, &x, (double)((const float *)call->inputs[0].data)[i],
                         slot_of(call, tile));
    }
}

void bel_ctc_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                              const bel_ctc_shape *s)
{
    int64_t states = 2 * s->labels + 1, likely = (s->classes + 1) / 2; // doubles are half as large
    call->run = run_gradient;
    ctc_choose(prepare, call, s, 1 + s->labels + states + s->frames * states + likely);
}

static bool in_range(const bel_kernel_call *call, bool report, int64_t value, int64_t low,
                     int64_t limit)
{
    if (value >= low && value < limit) return true;
    if (report) bel_kernel_report_range(call, value, low, limit);
    return false;
}

bool bel_ctc_example_read(const bel_kernel_call *call, const bel_ctc_shape *s, int64_t index,
                          bool report, bel_ctc_example *out_example)
{
    bel_ctc_example x = {.first_frame = index * s->frames,
                         .frames = ((const int64_t *)call->inputs[s->frame_length].data)[index],
                         .labels = (const int64_t *)call->inputs[s->label].data + index * s->labels,
                         .label_count =
                             ((const int64_t *)call->inputs[s->label_length].data)[index]};
    bool good = in_range(call, report, x.frames, 0, s->frames + 1) &&
                in_range(call, report, x.label_count, 0, s->labels + 1);
    for (int64_t i = 0; good && i < x.label_count; i++)
        good = in_range(call, report, x.labels[i], BEL_CTC_BLANK + 1, s->classes);
    *out_example = x;
    return good;
}
