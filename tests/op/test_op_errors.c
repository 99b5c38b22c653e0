// Tests of bad data in a step (labels and indices out of range) and of shapes that operations
// refuse.
#include "op/op_case.h"

static void check_data_error(const char *inputs, bel_op op, const char *part)
{
    op_case row = {"bad data", op, inputs, "", 0};
    for (int reference = 0; reference < 2; reference++) {
        op_run run;
        op_run_create(&run, &row, reference == 1);
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(3, &team));
        for (int again = 0; again < 2; again++) { // an error leaves the instance usable
            BEL_ASSERT_FAILS(bel_instance_run(run.instance, team, &run.context, NULL, NULL),
                             BEL_OUT_OF_RANGE, part);
        }
        const bel_tensor *last = &run.data[run.input_count - 1];
        int64_t *indices = last->data;
        for (int64_t i = 0; i < bel_shape_elements(&last->shape); i++)
            indices[i] = 0;
        BEL_ASSERT_OK(bel_instance_run(run.instance, team, &run.context, NULL, NULL));
        bel_team_destroy(team);
        op_run_destroy(&run);
    }
}

static void test_data_errors(void **state)
{
    (void)state;
    check_data_error(
        "f[1,10] i[1]:10:11", BEL_OP_SOFTMAX_CROSS_ENTROPY,
        "SoftmaxCrossEntropyLoss_2: index, label or length 10 is out of range [0, 10)");
    check_data_error("f[1,10] i[1]:-1:0", BEL_OP_SOFTMAX_CROSS_ENTROPY,
                     "length -1 is out of range");
    check_data_error("f[10,3] i[1]:10:11", BEL_OP_GATHER,
                     "Gather_2: index, label or length 10 is out of range [0, 10)");
    check_data_error("f[10,3] i[65]:-4:10", BEL_OP_GATHER, "is out of range [0, 10)");
    check_data_error("f[10,3] i[2,3]:10:11", BEL_OP_GATHER_ELEMENTS,
                     "GatherElements_2: index, label or length 10 is out of range [0, 10)");
    check_data_error("f[3,4] i[3]:5:6", BEL_OP_SEQUENCE_MASK, "length 5 is out of range [0, 5)");
    check_data_error("f[3,2,4] i[3]:-1:0", BEL_OP_MASKED_SOFTMAX, "-1 is out of range [0, 5)");
    check_data_error("f[3,1,2,4] f[3,1,5,4] f[3,1,5,4] i[3]:6:7", BEL_OP_ATTENTION,
                     "Attention_4: index, label or length 6 is out of range [0, 6)");
}

// --- Refused shapes ------------------------------------------------------------------------------

static const struct {
    bel_op op;
    const char *inputs, *attrs, *part;
} refused[] = {
    {BEL_OP_ADD, "f[3,4] f[3]", "", "Add: shapes [3, 4] and [3] do not broadcast"},
    {BEL_OP_ADD, "f[3] i[3]", "", "Add: both inputs must have one type, got f32 and i64"},
    {BEL_OP_POW, "i[3] i[3]", "", "Pow: expected f32 or f64, got i64"},
    {BEL_OP_AND, "i[3] i[3]", "", "And: expected bool, got i64"},
    {BEL_OP_NOT, "f[3]", "", "Not: expected bool, got f32"},
    {BEL_OP_CLIP, "i[3]", "", "Clip: expected f32 or f64, got i64"},
    {BEL_OP_IS_NAN, "i[3]", "", "IsNaN: expected f32 or f64, got i64"},
    {BEL_OP_GELU_GRAD, "f[3] f[3,1]", "", "GeluGrad: both inputs must have one shape"},
    {BEL_OP_EQUAL, "f[2] f[3]", "", "Equal: shapes [2] and [3]"},
    {BEL_OP_EXP, "i[3]", "", "Exp: expected f32 or f64, got i64"},
    {BEL_OP_RELU_GRAD, "f[3] f[4]", "", "ReluGrad: both inputs must have one shape, got [3]"},
    {BEL_OP_CAST, "f[3]", "to=6", "Cast: cannot cast to type number 6"},
    {BEL_OP_MATMUL, "f[2,3] f[2,3]", "", "[2, 3]"},
    {BEL_OP_MATMUL, "f[2,3] f[3]", "", "MatMul: "},
    {BEL_OP_MATMUL, "f[2,5,3] f[3,3,4]", "", "MatMul: shapes [2] and [3] do not broadcast"},
    {BEL_OP_MATMUL, "f[2,5,3] f[2,4,3]", "", "inner dimensions differ: [5, 3] and [4, 3]"},
    {BEL_OP_MATMUL_FLAT, "f[2,5,3] f[2,4,3]", "", "must differ only in the last dimension"},
    {BEL_OP_GEMM, "f[2,3] f[2,4]", "transB=1", "Gemm: "},
    {BEL_OP_GEMM, "f[2,3] f[3,4] f[3]", "", "Gemm: "},
    {BEL_OP_GEMM, "f[1,3] f[3,4] f[2,4]", "", "Gemm: c [2, 4] does not broadcast"},
    {BEL_OP_SOFTMAX_CROSS_ENTROPY, "f[3,4] i[4]", "", "expected logits [n, classes]"},
    {BEL_OP_SOFTMAX_CROSS_ENTROPY, "f[3,4] f[3]", "", "labels [n] i64, got [3, 4] and [3] f32"},
    {BEL_OP_CTC_LOSS, "f[3,5] i[3,2] i[3] i[3]", "",
     "CTCLoss: expected logits [n, t, classes], lab"},
    {BEL_OP_CTC_LOSS, "f[3,5,4] i[3,2] f[3] i[3]", "",
     "got [3, 5, 4], [3, 2] i64, [3] f32 and [3]"},
    {BEL_OP_CTC_LOSS, "f[3,5,4] i[2,2] i[3] i[3]", "", "got [3, 5, 4], [2, 2] i64"},
    {BEL_OP_SIGMOID_CROSS_ENTROPY, "f[3] f[3,1]", "", "must have one shape"},
    {BEL_OP_REDUCE_SUM, "f[3,4]", "axes=[2]", "ReduceSum: axis 2 does not exist in rank 2"},
    {BEL_OP_REDUCE_MAX, "f[3,4]", "axes=[-3]", "ReduceMax: axis -3 does not exist in rank 2"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,2,3,3]", "", "Conv: x [2, 3, 4, 4] and weights [8, 2, 3, 3]"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,3,3]", "", "of the same rank"},
    {BEL_OP_CONV, "f[2,4,4,4] f[9,2,3,3]", "group=2", "do not fit with 2 groups"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,3,5,3]", "", "a window of 5 does not fit into 4 with pads of 0"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,3,3,3] f[7]", "", "Conv: expected a bias [8], got [7]"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,3,3,3]", "strides=[2]", "strides needs 2 numbers, got 1"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,3,3,3]", "strides=[0,1]", "strides must be at least 1, got 0"},
    {BEL_OP_CONV, "f[2,3,4,4] f[8,3,3,3]", "pads=[1,1,-1,1]", "pads must be at least 0, got -1"},
    {BEL_OP_CONV, "i[2,3,4,4] f[8,3,3,3]", "", "inputs of one type, f32 or f64"},
    {BEL_OP_CONV_TRANSPOSE, "f[2,3,4,4] f[8,3,3,3]", "",
     "expected x [n, c, ...] and weights [c, o"},
    {BEL_OP_CONV_TRANSPOSE, "f[2,6,4] f[6,2,3] f[2]", "group=3", "expected a bias [6], got [2]"},
    {BEL_OP_CONV_TRANSPOSE, "f[2,3,4] f[3,8,3]", "strides=[2] output_padding=[2]",
     "ConvTranspose: 4 elements with windows of 3 at strides of 2 cannot become 11"},
    {BEL_OP_CONV_TRANSPOSE, "f[2,3,4] f[3,8,3]", "pads=[3,3]", "cannot become 0 with pads of 3"},
    {BEL_OP_CONV_TRANSPOSE, "f[1,1,281474976710656] f[1,1,1]", "strides=[2147483647]",
     "281474976710656 elements at strides of 2147483647 are too many"},
    {BEL_OP_CONV_TRANSPOSE, "f[2,3,4] f[3,8,3]", "output_shape=[7]", "cannot become 7 with pads"},
    {BEL_OP_CONV_TRANSPOSE, "f[2,3,4] f[3,8,3]", "output_shape=[0]", "output_shape must be at le"},
    {BEL_OP_MAX_POOL, "f[2,3,4,4]", "kernel_shape=[2]", "kernel_shape needs 2 numbers, got 1"},
    {BEL_OP_MAX_POOL, "f[2,3,4,4]", "kernel_shape=[2,2] pads=[2,0,0,0]",
     "window 0 covers only padding"},
    {BEL_OP_MAX_POOL, "f[2,3,1]", "kernel_shape=[2] dilations=[3] pads=[2,2]",
     "covers only padding"},
    {BEL_OP_MAX_POOL, "f[2,3,1]", "kernel_shape=[1073741824] dilations=[2] pads=[2147483646,9]",
     "begin in the padding"}, // and at once
    {BEL_OP_AVERAGE_POOL, "f[2,3]", "kernel_shape=[]", "expected x [n, c, w] or [n, c, h, w]"},
    {BEL_OP_MAX_POOL_GRAD, "f[2,3,3,3] f[2,3,4,4] f[2,3,2,2]", "kernel_shape=[2,2] strides=[2,2]",
     "expected dy [2, 3, 2, 2], got [2, 3, 3, 3]"},
    {BEL_OP_BATCH_NORM, "f[2,3,4] f[3] f[3] f[4] f[3]", "",
     "input 3: expected f32 [3], got f32 [4]"},
    {BEL_OP_BATCH_NORM, "f[2] f[3] f[3] f[4] f[3]", "", "expected x [n, c, ...], got [2]"},
    {BEL_OP_BATCH_MOMENTS, "f[3]", "", "BatchMoments: expected x [n, c, ...], got [3]"},
    {BEL_OP_MOMENTS_NORM, "f[2,3] f[3] f[4] f[3,3]", "", "input 2: expected f32 [3], got f32 [4]"},
    {BEL_OP_MOMENTS_NORM, "f[2,3] f[3] f[3] f[2,3]", "", "expected f32 [3, 3], got f32 [2, 3]"},
    {BEL_OP_MOMENTS_MOVE, "f[3] f[3] f[3,4]", "", "expected f32 [3, 3], got f32 [3, 4]"},
    {BEL_OP_MOMENTS_NORM_SUMS, "f[2,3] f[2,3] f[3,4]", "", "expected f32 [3, 3], got f32 [3, 4]"},
    {BEL_OP_MOMENTS_NORM_GRAD, "f[2,3] f[2,3] f[3,3] f[3] f[3,3]", "", "expected f32 [2, 3], got"},
    {BEL_OP_MOMENTS_NORM_GRAD, "f[2,3] f[2,3] f[3,3] f[4] f[2,3]", "",
     "input 3: expected f32 [3], got f32 [4]"},
    {BEL_OP_LAYER_NORM, "f[2,3,4] f[4] f[3]", "", "LayerNormalization: expected bias f32 [4], got"},
    {BEL_OP_LAYER_NORM, "f[2,3,4] f[4]", "axis=1", "expected scale f32 [3, 4], got f32 [4]"},
    {BEL_OP_LAYER_NORM, "f[2,3] f[3]", "axis=2", "axis 2 does not exist in rank 2"},
    {BEL_OP_LAYER_NORM, "i[2,3] f[3]", "", "expected f32 or f64, got i64"},
    {BEL_OP_LAYER_NORM_GRAD, "f[2,3] f[2,3] f[3] f[2,1] f[2]", "",
     "expected inverse deviation f32 [2, 1], got f32 [2]"},
    {BEL_OP_INSTANCE_NORM, "f[3] f[3] f[3]", "", "expected x [n, c, ...], got [3]"},
    {BEL_OP_GROUP_NORM, "f[2,6,4] f[6] f[6]", "num_groups=4",
     "GroupNormalization: 6 channels cannot be cut into 4 equal groups"},
    {BEL_OP_GROUP_NORM, "f[2,6,4] f[6] f[6]", "num_groups=0", "into 0 equal groups"},
    {BEL_OP_GROUP_NORM, "f[2,6,4] f[6] f[3]", "num_groups=2", "expected bias f32 [6], got f32 [3]"},
    {BEL_OP_SEQUENCE_MASK, "f[2,3] i[3]", "",
     "expected x [n, ...] and lengths [n] i64, got [2, 3]"},
    {BEL_OP_SEQUENCE_MASK, "f[2,3] f[2]", "", "and [2] f32"},
    {BEL_OP_SEQUENCE_MASK, "f[2,3] i[2]", "axis=-2", "SequenceMask: axis 0 is the batch"},
    {BEL_OP_MASKED_SOFTMAX, "f[3]", "", "expected x [..., queries, keys], got [3]"},
    {BEL_OP_MASKED_SOFTMAX, "f[2,3] i[2] i[2]", "",
     "expected a mask and lengths, got two of one kind"},
    {BEL_OP_MASKED_SOFTMAX, "f[2,3] i[3]", "", "lengths [n] i64, got [2, 3] and [3] i64"},
    {BEL_OP_MASKED_SOFTMAX, "i[2,3]", "", "MaskedSoftmax: expected f32 or f64, got i64"},
    {BEL_OP_ATTENTION, "f[2,3,4] f[2,3,4] f[2,3,4]", "",
     "Attention: expected q [n, heads, t, d], k [n, heads, s, d] and v [n, heads, s, e]"},
    {BEL_OP_ATTENTION, "f[2,1,3,4] f[2,1,5,3] f[2,1,5,6]", "",
     "got [2, 1, 3, 4] f32, [2, 1, 5, 3] f32 and [2, 1, 5, 6] f32"},
    {BEL_OP_ATTENTION, "f[2,1,3,4] f[2,1,5,4] f[2,1,6,4]", "", "all f32 or all f64"},
    {BEL_OP_ATTENTION, "f[2,1,3,4] f[1,1,5,4] f[2,1,5,4]", "", "got [2, 1, 3, 4] f32, [1, 1, 5"},
    {BEL_OP_ATTENTION, "f[2,1,3,4] i[2,1,5,4] f[2,1,5,4]", "", "[2, 1, 5, 4] i64 and"},
    {BEL_OP_ATTENTION, "f[2,1,3,4] f[2,1,5,4] f[2,1,5,4] i[3]", "",
     "expected x [n, ...] and lengths [n] i64, got [2, 1, 3, 4] and [3] i64"},
    {BEL_OP_ATTENTION_GRAD, "f[2,1,3,5] f[2,1,3,4] f[2,1,5,4] f[2,1,5,5] f[2,1,3,5] f[2,1,5]", "",
     "AttentionGrad: input 5: expected f32 [2, 1, 3], got f32 [2, 1, 5]"},
    {BEL_OP_FLATTEN, "f[2,3]", "axis=3", "cannot flatten [2, 3] at axis 3"},
    {BEL_OP_ARG_MAX, "f[3,4]", "axis=2", "ArgMax: axis 2 does not exist in rank 2"},
    {BEL_OP_ARG_MAX, "f[3,4]", "axis=-3", "ArgMax: axis -3 does not exist in rank 2"},
    {BEL_OP_TOP_K, "f[3,4]", "k=5", "TopK: k must be from 1 to the 4 elements, got 5"},
    {BEL_OP_TOP_K, "f[3,4]", "k=0", "got 0"},
    {BEL_OP_TOP_K, "f[]", "k=1", "TopK: axis -1 does not exist in rank 0"},
    {BEL_OP_CUM_SUM, "f[3]", "axis=1", "CumSum: axis 1 does not exist in rank 1"},
    {BEL_OP_REDUCE_MIN, "i[3]", "", "ReduceMin: expected f32 or f64, got i64"},
    {BEL_OP_RESHAPE, "f[3,4]", "shape=[5,2]", "cannot reshape [3, 4] to [5, 2]"},
    {BEL_OP_RESHAPE, "f[3,4]", "shape=[4,4611686018427387907]", // 2^64 + 12
     "Reshape: cannot reshape [3, 4]"},
    {BEL_OP_RESHAPE, "f[3,4]", "shape=[5,-1]", "Reshape: cannot reshape [3, 4]"},
    {BEL_OP_RESHAPE, "f[3,4]", "shape=[-1,-1]", "Reshape: cannot reshape [3, 4]"},
    {BEL_OP_TRANSPOSE, "f[3,4]", "perm=[0,0]", "Transpose: [0, 0] is no permutation"},
    {BEL_OP_TRANSPOSE, "f[3,4]", "perm=[0]", "Transpose: [0] is no permutation"},
    {BEL_OP_GATHER, "f[3,4] f[2]", "", "Gather: indices must be i64, got f32"},
    {BEL_OP_GATHER, "f[] i[2]", "", "Gather: data of rank 0 cannot be gathered"},
    {BEL_OP_GATHER, "f[3,4] i[2]", "axis=2", "Gather: axis 2 does not exist in rank 2"},
    {BEL_OP_GATHER_ELEMENTS, "f[3,4] i[2,3]", "axis=0", "may differ only in dimension 0"},
    {BEL_OP_GATHER_ELEMENTS, "f[3,4] f[3,4]", "", "indices must be i64, got f32"},
    {BEL_OP_SQUEEZE, "f[3,1]", "axes=[0]", "Squeeze: dimension 0 of [3, 1] is not 1"},
    {BEL_OP_SQUEEZE, "f[3,1]", "axes=[2]", "Squeeze: axis 2 does not exist in rank 2"},
    {BEL_OP_UNSQUEEZE, "f[3]", "axes=[0,0]", "Unsqueeze: an axis is listed twice"},
    {BEL_OP_UNSQUEEZE, "f[3]", "axes=[2]", "Unsqueeze: axis 2 does not exist in rank 2"},
    {BEL_OP_UNSQUEEZE, "f[1,1,1,1,1,1,1,1]", "axes=[0]", "cannot be put into rank 8"},
    {BEL_OP_SLICE, "f[3,4]", "starts=[0] ends=[1,2]", "Slice: starts, ends, axes and steps must"},
    {BEL_OP_SLICE, "f[3]", "starts=[0] ends=[1] steps=[0]", "of axis 0 must not be 0"},
    {BEL_OP_SLICE, "f[3]", "starts=[0] ends=[1] axes=[1]", "axis 1 does not exist"},
    {BEL_OP_SLICE, "f[3]", "starts=[0,0] ends=[1,1] axes=[0,-1]", "is listed twice"},
    {BEL_OP_SLICE, "f[-1]", "starts=[1] ends=[3]", "Slice: dimension 0 is open and allows only"},
    {BEL_OP_PAD, "f[3,4]", "pads_before=[1]", "pads need one number for each of 2 dimensions"},
    {BEL_OP_PAD, "f[3]", "pads_before=[-2] pads_behind=[-2]", "pads -2 and -2 do not fit a dimens"},
    {BEL_OP_PAD, "f[3]", "pads_before=[3] mode=2", "must be smaller than a dimension of 3"},
    {BEL_OP_PAD, "f[0]", "pads_before=[3] mode=1", "have no edge in a dimension of 0"},
    {BEL_OP_PAD, "f[3]", "pads_before=[1] mode=3", "there is no mode number 3"},
    {BEL_OP_PAD, "f[-1]", "pads_before=[1]", "an open dimension cannot be padded"},
    {BEL_OP_EXPAND, "f[3]", "shape=[2]", "Expand: shapes [3] and [2] do not broadcast"},
    {BEL_OP_EXPAND, "f[3]", "shape=[-1,3]", "dimension -1 of the shape must be at least 0"},
    {BEL_OP_CONCAT, "f[3,4] f[3,5]", "axis=0", "Concat: f32 [3, 4] and f32 [3, 5] must differ"},
    {BEL_OP_CONCAT, "f[3,4] i[3,4]", "axis=0", "Concat: f32 [3, 4] and i64 [3, 4] must differ"},
    {BEL_OP_CONCAT, "f[3,4] f[3]", "axis=0", "must differ only in dimension 0"},
    {BEL_OP_CONCAT, "f[3] f[3]", "axis=1", "Concat: axis 1 does not exist in rank 1"},
    {BEL_OP_CONCAT, "f[-1,4] f[-1,4]", "axis=0", "dimension 0 is open and cannot be joined"},
    {BEL_OP_WHERE, "f[3] f[3] f[3]", "", "Where: expected a condition of bool and two inputs"},
    {BEL_OP_ONE_HOT, "i[3]", "depth=0", "OneHot: depth must be at least 1, got 0"},
    {BEL_OP_DROPOUT, "f[3]", "ratio=1", "Dropout: ratio must be at least 0 and below 1, got 1"},
    {BEL_OP_DROPOUT, "f[3]", "ratio=-0.5", "Dropout: ratio must be at least 0"},
    {BEL_OP_RANDOM_UNIFORM, "f[3]", "low=2 high=2", "low must be below high, got 2 and 2"},
    {BEL_OP_RANDOM_NORMAL, "f[3]", "scale=-1", "and the deviation at least 0, got 0 and -1"},
    {BEL_OP_RANDOM_NORMAL, "i[3]", "", "RandomNormalLike: "},
    // No builder makes these attributes, but a file may have them.
    {BEL_OP_CONV, "f[1,1,4,4] f[1,1,3,3]", "auto_pad=1 dilations=[2147483647,2147483647]",
     "Conv: a padded image [1, 4294967298, 4294967298] would have too many elements"},
    {BEL_OP_CTC_LOSS, "f[0,1099511627776,4] i[0,1099511627776] i[0] i[0]", "",
     "CTCLoss: 1099511627776 frames and 1099511627776 labels are too many"},
    {BEL_OP_RESHAPE, "f[3]", "", "Reshape: the attribute shape is missing"},
    {BEL_OP_TRANSPOSE, "f[3]", "", "Transpose: the attribute perm is missing"},
    {BEL_OP_EXPAND, "f[3]", "", "Expand: the attribute shape is missing"},
    {BEL_OP_ARG_MAX, "f[3]", "axis=1e300", "axis 9007199254740992 does not exist in rank 1"},
    {BEL_OP_ARG_MAX, "f[3]", "axis=-1e300", "axis -9007199254740992 does not exist in rank 1"},
    {BEL_OP_CAST, "f[3]", "to=4294967296", "Cast: cannot cast to type number 4294967296"},
    {BEL_OP_PAD, "f[3]", "pads_before=[1] mode=4294967296", "no mode number 4294967296"},
    {BEL_OP_REPLICA_ID, "", "replicas=0", "ReplicaId: replicas must be at least 1, got 0"},
    {BEL_OP_SUM_TO, "f[3,4] f[5]", "", "SumTo: [5] does not broadcast to [3, 4]"},
    {BEL_OP_SUM_TO, "f[4] f[1,4]", "", "SumTo: [1, 4] does not broadcast to [4]"},
    {BEL_OP_BROADCAST_TO, "f[3] f[3,4]", "", "BroadcastTo: [3] does not broadcast to [3, 4]"},
    {BEL_OP_BROADCAST_TO, "f[4] f[3,4]", "axes=[1]", "expected x f32 [3], got f32 [4]"},
    {BEL_OP_RESHAPE_LIKE, "f[3,4] f[5]", "", "ReshapeLike: cannot reshape [3, 4] to [5]"},
    {BEL_OP_SLICE_GRAD, "f[3] f[4]", "starts=[0] ends=[2]", "expected dy f32 [2], got f32 [3]"},
    {BEL_OP_SLICE_GRAD, "i[2] f[4]", "starts=[0] ends=[2]", "expected dy f32 [2], got i64 [2]"},
    {BEL_OP_PAD_GRAD, "f[3] f[4]", "pads_before=[2]", "PadGrad: expected dy f32 [6], got f32 [3]"},
    {BEL_OP_REDUCE_PROD_GRAD, "f[3] f[3,4]", "axes=[0]", "expected dy f32 [4], got f32 [3]"},
    {BEL_OP_GATHER_GRAD, "f[2,4] i[3] f[5,4]", "", "expected dy f32 [3, 4], got f32 [2, 4]"},
    {BEL_OP_GATHER_GRAD, "f[3] f[3] f[5]", "", "GatherGrad: indices must be i64, got f32"},
    {BEL_OP_GATHER_ELEMENTS_GRAD, "f[2] i[3] f[5]", "", "expected dy f32 [3], got f32 [2]"},
    {BEL_OP_CROSS_ENTROPY_GRAD, "f[3] f[2,4] i[2]", "", "expected dy f32 [2], got f32 [3]"},
    {BEL_OP_CROSS_ENTROPY_GRAD, "f[2] f[2,4] f[2]", "", "expected logits [n, classes] and labels"},
    {BEL_OP_DROPOUT_GRAD, "f[3] f[3]", "", "DropoutGrad: expected a mask bool [3], got f32 [3]"},
    {BEL_OP_CTC_LOSS_GRAD, "f[2] f[3,5,4] i[3,2] i[3] i[3]", "",
     "CTCLossGrad: expected dy f32 [3], got f32 [2]"},
    {BEL_OP_MATMUL_FLAT, "i[2,3] i[2,3]", "", "MatMulFlat: expected f32 or f64, got i64"},
    {BEL_OP_MOMENTS_MOVE, "f[2,3] f[2,3] f[3,0]", "", "MomentsMove: expected vectors, got rank 2"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof refused / sizeof refused[0]; r++) {
        op_input inputs[BEL_OP_MAX_INPUTS];
        bel_value *values[BEL_OP_MAX_INPUTS];
        int count = op_parse_inputs(refused[r].inputs, inputs);
        bel_graph *graph = bel_graph_create();
        for (int i = 0; i < count; i++) {
            bel_dtype dtype = op_input_is_float(&inputs[i]) ? BEL_DTYPE_F32 : BEL_DTYPE_I64;
            const char *const names[] = {"a", "b", "c", "d", "e", "f"};
            values[i] = bel_input_value(graph, names[i], dtype, &inputs[i].shape);
        }
        bel_attr_list attrs = op_parse_attrs(refused[r].attrs);
        assert_null(bel_graph_add(graph, refused[r].op, &attrs, values, count));
        BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_INVALID_ARGUMENT, refused[r].part);
        bel_graph_destroy(graph);
    }
}

// --- Numbers that no builder makes ---------------------------------------------------------------

static void check_runs(bel_op op, const char *inputs, const char *attrs, int64_t elements)
{
    op_case row = {"odd", op, inputs, attrs, 0};
    op_run run;
    op_run_create(&run, &row, false);
    op_run_start(&run, 1);
    bel_tensor y = bel_instance_output(run.instance, 0);
    assert_int_equal(bel_shape_elements(&y.shape), elements);
    op_run_destroy(&run);
}

static void test_odd_numbers(void **state)
{
    (void)state;
    // Lanes without elements finish without counting them.
    check_runs(BEL_OP_CUM_SUM, "f[281474976710656,0]", "axis=1", 0);
    // Backwards from before the begin of an empty axis: the result is empty.
    check_runs(BEL_OP_SLICE, "f[0,3]", "starts=[-5] ends=[-9] axes=[0] steps=[-1]", 0);
    // A window of which only the last few taps meet the image finishes at once.
    check_runs(BEL_OP_MAX_POOL, "f[1,1,5]",
               "kernel_shape=[2147483647] pads=[1073741824,1073741823]", 6);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_errors),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_odd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
