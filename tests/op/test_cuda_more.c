// Tests of cases without rows in cases.def, on a GPU as on the CPU: other types and sizes, first
// states, no elements, special numbers, and invalid data. As in test_cuda.c the bits must be the
// same; for invalid data, the error. label: native, label: thorough
#include "belfry/collective.h"
#include "cuda/cuda.h"
#include "op/op_case.h"
#include "ops/collective.h"
#include "runtime/device.h"
#include "support/cards.h"

// Inputs as in cases.def, with more kinds, each with its range: f F32, d F64, h F16, g BF16, s I32,
// i I64, u U8, b BOOL.
typedef struct more_row {
    const char *name;
    bel_op op;
    const char *inputs, *attrs;
    int first; // attribute of that name, unknown to op_parse_attrs; 0: unset
    int specials;
} more_row;

// Special values among floats. SPREAD: blocks of 4,096 are much larger than others and cancel each
// other, so the rest depends on the order. PEAK: the last number is the largest.
enum { NANS = 1, ZEROS = 2, INFINITIES = 4, SPREAD = 8, PEAK = 16 };

static const more_row rows[] = {
    {"replica_id", BEL_OP_REPLICA_ID, "", "replicas=3", 0, 0},
    // Elements that move
    {"slice_halves", BEL_OP_SLICE, "h[9,13]:-3:3", "starts=[-1,10] ends=[-90,2] steps=[-2,-3]", 0,
     0},
    {"slice_bytes", BEL_OP_SLICE, "u[9,65]:0:255", "starts=[1,2] ends=[9,60] steps=[2,3]", 0, 0},
    {"slice_nothing", BEL_OP_SLICE, "f[9,65]:-1:1", "starts=[5] ends=[5]", 0, 0},
    {"slice_grad_back", BEL_OP_SLICE_GRAD, "d[5,4]:-3:3 d[9,13]:0:1",
     "starts=[-1,10] ends=[-90,0] steps=[-2,-3]", 0, 0},
    {"slice_grad_nothing", BEL_OP_SLICE_GRAD, "f[0,13]:-3:3 f[9,13]:0:1", "starts=[5] ends=[5]", 0,
     0},
    {"slice_grad_bfloat", BEL_OP_SLICE_GRAD, "g[4,13]:-3:3 g[9,13]:0:1", "starts=[5] ends=[9]", 0,
     0},
    {"pad_bfloat", BEL_OP_PAD, "g[3,5]:-3:3", "pads_before=[1,2] pads_behind=[2,1] value=1.5", 0,
     0},
    {"pad_grad_edge", BEL_OP_PAD_GRAD, "f[6,18]:-3:3 f[3,5]:0:1",
     "pads_before=[2,7] pads_behind=[1,6] mode=1", 0, 0},
    {"pad_grad_edge_f64", BEL_OP_PAD_GRAD, "d[6,18]:-3:3 d[3,5]:0:1",
     "pads_before=[2,7] pads_behind=[1,6] mode=1", 0, 0},
    {"pad_grad_edge_one", BEL_OP_PAD_GRAD, "f[9,4]:-3:3 f[1,3]:0:1",
     "pads_before=[3,-1] pads_behind=[5,2] mode=1", 0, 0},
    {"pad_grad_reflect_cut", BEL_OP_PAD_GRAD, "f[5,6]:-3:3 f[3,5]:0:1",
     "pads_before=[2,-2] pads_behind=[0,3] mode=2", 0, 0},
    {"pad_grad_cut", BEL_OP_PAD_GRAD, "d[2,3]:-3:3 d[5,4]:0:1",
     "pads_before=[-2,1] pads_behind=[-1,-2]", 0, 0},
    {"expand_bytes", BEL_OP_EXPAND, "u[3,1]:0:255", "shape=[4,3,5]", 0, 0},
    {"concat_nine", BEL_OP_CONCAT,
     "s[3,2]:-9:9 s[3,0]:0:1 s[3,1]:-9:9 s[3,4]:-9:9 s[3,1]:-9:9 s[3,7]:-9:9 s[3,2]:-9:9 "
     "s[3,0]:0:1 s[3,3]:-9:9",
     "axis=1", 0, 0},
    {"where_halves", BEL_OP_WHERE, "b[7,1]:0:2 h[7,65]:-3:3 h[65]:-3:3", "", 0, 0},
    {"transpose_halves", BEL_OP_TRANSPOSE, "h[5,33,70]:-9:9", "perm=[2,0,1]", 0, 0},
    {"transpose_ints", BEL_OP_TRANSPOSE, "s[2,3,33,70]:-9:9", "perm=[0,3,1,2]", 0, 0},
    {"transpose_nothing", BEL_OP_TRANSPOSE, "f[0,33]:0:1", "perm=[1,0]", 0, 0},
    {"broadcast_bytes", BEL_OP_BROADCAST_TO, "u[3,1]:0:255 f[5,3,7]:0:1", "", 0, 0},
    {"one_hot_out", BEL_OP_ONE_HOT, "i[65]:-3:9", "depth=5", 0, 0},
    {"mask_halves", BEL_OP_SEQUENCE_MASK, "h[7,6,5]:-3:3 i[7]:0:7", "", 0, 0},
    {"mask_bad", BEL_OP_SEQUENCE_MASK, "f[7,6,5]:-3:3 i[7]:6:8", "", 0, 0},
    // Gathering
    {"gather_halves", BEL_OP_GATHER, "h[10,7]:-3:3 i[65]:0:10", "", 0, 0},
    {"gather_bad", BEL_OP_GATHER, "f[10,7]:-3:3 i[65]:-1:10", "", 0, 0},
    {"gather_none", BEL_OP_GATHER, "f[10,7]:-3:3 i[0]:0:10", "", 0, 0},
    {"gather_grad_hot", BEL_OP_GATHER_GRAD, "f[3001,3]:-3:3 i[3001]:0:17 f[17,3]:0:1", "", 0, 0},
    {"gather_grad_rare", BEL_OP_GATHER_GRAD, "f[997,3]:-3:3 i[997]:0:5000 f[5000,3]:0:1", "", 0, 0},
    {"gather_grad_axis", BEL_OP_GATHER_GRAD, "d[3,300,2]:-3:3 i[300]:0:40 d[3,40,2]:0:1", "axis=1",
     0, 0},
    {"gather_grad_bfloat", BEL_OP_GATHER_GRAD, "g[301,3]:-3:3 i[301]:0:16 g[16,3]:0:1", "", 0, 0},
    {"gather_grad_none", BEL_OP_GATHER_GRAD, "f[0,3]:-3:3 i[0]:0:17 f[17,3]:0:1", "", 0, 0},
    {"gather_grad_bad", BEL_OP_GATHER_GRAD, "f[301,3]:-3:3 i[301]:0:17 f[16,3]:0:1", "", 0, 0},
    {"gather_elements_bad", BEL_OP_GATHER_ELEMENTS, "f[65,10]:-3:3 i[65,2]:0:11", "axis=1", 0, 0},
    {"gather_elements_grad_bad", BEL_OP_GATHER_ELEMENTS_GRAD,
     "f[3,11,7]:-3:3 i[3,11,7]:-1:5 f[3,5,7]:0:1", "axis=1", 0, 0},
    {"gather_elements_grad_f64", BEL_OP_GATHER_ELEMENTS_GRAD, "d[3,65]:-3:3 i[3,65]:0:9 d[3,9]:0:1",
     "axis=1", 0, 0},
    // Along an axis
    {"arg_long", BEL_OP_ARG_MAX, "f[7,700]:-3:3", "axis=1", 0, NANS | ZEROS},
    {"arg_long_last", BEL_OP_ARG_MIN, "s[7,700]:-9:9", "axis=1 select_last_index=1", 0, 0},
    {"arg_middle", BEL_OP_ARG_MIN, "h[3,70,5]:-3:3", "axis=1", 0, NANS},
    {"top_k_nan", BEL_OP_TOP_K, "f[9,65]:-3:3", "k=7", 0, NANS | INFINITIES},
    {"top_k_bytes", BEL_OP_TOP_K, "s[9,65]:0:9", "k=7 largest=0", 0, 0},
    {"top_k_long", BEL_OP_TOP_K, "f[5,1000]:-3:3", "k=9", 0, 0},
    {"top_k_long_ties", BEL_OP_TOP_K, "s[5,1000]:-9:9", "k=300 largest=0", 0, 0},
    {"top_k_long_nan", BEL_OP_TOP_K, "d[5,1000]:-3:3", "k=40", 0, NANS | INFINITIES},
    {"top_k_long_few_nans", BEL_OP_TOP_K, "d[5,1000]:-3:3", "k=3", 0, NANS},
    {"gemm_odd_columns", BEL_OP_GEMM, "f[70,150]:-1:1 f[150,67]:-1:1 f[67]:-1:1", "", 0, 0},
    {"gemm_long", BEL_OP_GEMM, "f[40,300]:-1:1 f[300,20]:-1:1 f[20]:-1:1", "", 0, 0},
    {"reduce_l2_all", BEL_OP_REDUCE_L2, "f[9,1000]:-3:3", "", 0, 0},
    {"reduce_min_long", BEL_OP_REDUCE_MIN, "f[2000,3]:-3:3", "axes=[0]", 0, NANS | ZEROS},
    {"reduce_prod_long", BEL_OP_REDUCE_PROD, "d[3,1500]:0.9:1.1", "axes=[1]", 0, 0},
    {"cum_sum_ints", BEL_OP_CUM_SUM, "s[9,65]:-9:9", "axis=1 exclusive=1 reverse=1", 0, 0},
    {"cum_sum_f64", BEL_OP_CUM_SUM, "d[9,65,3]:-9:9", "axis=1 reverse=1", 0, 0},
    {"reduce_min_nan", BEL_OP_REDUCE_MIN, "f[9,65,3]:-9:9", "axes=[1]", 0, NANS | ZEROS},
    {"reduce_l2_ends", BEL_OP_REDUCE_L2, "f[9,65,3]:-9:9", "axes=[0,2]", 0, 0},
    {"reduce_prod_grad_ends", BEL_OP_REDUCE_PROD_GRAD, "d[5]:-1:1 d[3,5,2]:-2:2", "axes=[0,2]", 0,
     ZEROS},
    // Rows of several blocks, with a short last one. In doubles, sums such as reduce_sum_spread
    // depend on the order.
    {"reduce_sum_blocks", BEL_OP_REDUCE_SUM, "f[3,40000]:-3:3", "axes=[1]", 0, 0},
    {"reduce_mean_blocks", BEL_OP_REDUCE_MEAN, "f[70001]:-3:3", "", 0, 0},
    {"reduce_sum_zeros", BEL_OP_REDUCE_SUM, "f[2,9000]:0:0", "axes=[1]", 0, 0},
    {"reduce_sum_spread", BEL_OP_REDUCE_SUM, "f[2,65536]:-3:3", "axes=[1]", 0, SPREAD},
    {"reduce_mean_spread", BEL_OP_REDUCE_MEAN, "f[1111000]:-3:3", "", 0, SPREAD},
    {"reduce_sum_blocks_nan", BEL_OP_REDUCE_SUM, "f[2,9000]:-3:3", "axes=[1]", 0, NANS},
    {"reduce_squares_blocks", BEL_OP_REDUCE_SUM_SQUARE, "f[1,301,300]:-3:3", "", 0, 0},
    {"reduce_squares_infinite", BEL_OP_REDUCE_SUM_SQUARE, "f[9000]:-3:3", "", 0, INFINITIES},
    {"reduce_max_blocks", BEL_OP_REDUCE_MAX, "f[3,70001]:-9:-1", "axes=[1]", 0, 0},
    {"reduce_max_nan", BEL_OP_REDUCE_MAX, "f[5,9001]:-9:-1", "axes=[1]", 0, NANS},
    {"reduce_max_nan_first", BEL_OP_REDUCE_MAX, "f[2,9078]:-9:-1", "axes=[1]", 0,
     NANS | PEAK}, // in the last block, the last one is the largest
    {"reduce_max_zeros", BEL_OP_REDUCE_MAX, "f[5,9001]:-9:-1", "axes=[1]", 0, ZEROS | NANS},
    // To vectors: runs side by side, or one after another
    {"reduce_max_runs_nan", BEL_OP_REDUCE_MAX, "f[9,17,33]:-9:-1", "axes=[0,2]", 0, NANS | ZEROS},
    {"reduce_mean_runs", BEL_OP_REDUCE_MEAN, "f[70,3,9,5]:-3:3", "axes=[0,2,3]", 0, 0},
    {"reduce_sum_runs_apart", BEL_OP_REDUCE_SUM, "f[2,5,4,3,300]:-3:3", "axes=[1,2,4]", 0, 0},
    {"reduce_squares_short", BEL_OP_REDUCE_SUM_SQUARE, "f[3,5000,3]:-3:3", "axes=[0,2]", 0, 0},
    {"reduce_max_short_nan", BEL_OP_REDUCE_MAX, "f[3,5000,3]:-9:-1", "axes=[0,2]", 0, NANS | ZEROS},
    {"reduce_squares_middle", BEL_OP_REDUCE_SUM_SQUARE, "f[3,19,7,5]:-3:3", "axes=[1]", 0, 0},
    {"reduce_max_middle", BEL_OP_REDUCE_MAX, "f[3,19,7,5,2]:-9:-1", "axes=[1,3]", 0, NANS | ZEROS},
    {"reduce_l1_none", BEL_OP_REDUCE_L1, "f[9,0]:-9:9", "axes=[1]", 0, 0},
    // Sequences
    {"softmax_bad", BEL_OP_MASKED_SOFTMAX, "f[5,2,7,10]:-3:3 i[5]:11:12", "", 0, 0},
    {"softmax_special", BEL_OP_MASKED_SOFTMAX, "f[5,2,7,10]:-3:3 b[7,10]:0:2", "", 0,
     NANS | INFINITIES},
    {"softmax_column", BEL_OP_MASKED_SOFTMAX, "d[5,7,10]:-3:3 b[7,1]:0:2 i[5]:0:11", "causal=1", 0,
     0},
    {"gru_first", BEL_OP_GRU,
     "f[6,7,3]:-2:2 f[1,12,3]:-1:1 f[1,12,4]:-1:1 f[1,24]:-1:1 "
     "i[7]:0:7 f[1,7,4]:-1:1",
     "hidden_size=4", 1, 0},
    {"gru_first_last_f64", BEL_OP_GRU,
     "d[7,6,3]:-2:2 d[2,12,3]:-1:1 d[2,12,4]:-1:1 d[2,24]:-1:1 d[7,2,4]:-1:1",
     "hidden_size=4 layout=1 direction=2 linear_before_reset=1", 1, 0},
    {"lstm_first", BEL_OP_LSTM,
     "f[6,7,3]:-2:2 f[2,16,3]:-1:1 f[2,16,4]:-1:1 f[2,32]:-1:1 "
     "s[7]:0:7 f[2,7,4]:-1:1 f[2,7,4]:-1:1",
     "hidden_size=4 direction=2", 3, 0},
    {"lstm_first_c", BEL_OP_LSTM,
     "d[6,7,3]:-2:2 d[1,16,3]:-1:1 d[1,16,4]:-1:1 d[1,32]:-1:1 "
     "d[1,7,4]:-1:1",
     "hidden_size=4 direction=1", 2, 0},
    {"lstm_large", BEL_OP_LSTM,
     "f[3,5,70]:-2:2 f[1,400,70]:-1:1 f[1,400,100]:-1:1 f[1,800]:-1:1 i[5]:0:4", "hidden_size=100",
     0, 0},
    {"lstm_bad", BEL_OP_LSTM, "f[6,7,3]:-2:2 f[1,16,3]:-1:1 f[1,16,4]:-1:1 f[1,32]:-1:1 i[7]:7:8",
     "hidden_size=4", 0, 0},
    {"lstm_none", BEL_OP_LSTM, "f[6,0,3]:-2:2 f[1,16,3]:-1:1 f[1,16,4]:-1:1 f[1,32]:-1:1",
     "hidden_size=4", 0, 0},
    {"gru_grad_16", BEL_OP_GRU_GRAD,
     "f[5,21,3]:-2:2 f[1,48,3]:-1:1 f[1,48,16]:-1:1 f[5,1,21,16]:-1:1 f[21,5,1,48]:0.1:0.9 "
     "f[5,1,21,16]:-1:1",
     "hidden_size=16 direction=1 given=17", 0, 0},
    {"gru_grad_no_dx", BEL_OP_GRU_GRAD,
     "d[5,21,3]:-2:2 d[2,30,3]:-1:1 d[2,30,10]:-1:1 d[5,2,21,10]:-1:1 d[21,5,2,40]:0.1:0.9 "
     "s[21]:0:6 d[2,21,10]:-1:1",
     "hidden_size=10 direction=2 linear_before_reset=1 given=10", 0, 0},
    {"lstm_grad_large", BEL_OP_LSTM_GRAD,
     "f[4,5,70]:-2:2 f[1,400,70]:-1:1 f[1,400,100]:-1:1 f[4,1,5,100]:-1:1 f[5,4,1,500]:0.1:0.9 "
     "i[5]:0:5 f[1,5,100]:-1:1",
     "hidden_size=100 direction=1 given=28", 0, 0},
    {"lstm_grad_zeros", BEL_OP_LSTM_GRAD,
     "f[4,5,7]:-2:2 f[1,40,7]:-1:1 f[1,40,10]:-1:1 f[4,1,5,10]:-1:1 f[5,4,1,50]:0.1:0.9 "
     "f[4,1,5,10]:-1:1",
     "hidden_size=10 given=17", 0, ZEROS},
    {"lstm_grad_none", BEL_OP_LSTM_GRAD,
     "f[4,0,7]:-2:2 f[1,40,7]:-1:1 f[1,40,10]:-1:1 f[4,1,0,10]:-1:1 f[0,4,1,50]:0.1:0.9 "
     "f[4,1,0,10]:-1:1",
     "hidden_size=10 given=17", 0, 0},
    // Windows that overlap, do not, cover an image, or omit a part of it
    {"max_pool_nan", BEL_OP_MAX_POOL, "f[2,3,8,9]:-9:-1", "kernel_shape=[3,3] strides=[2,2]", 0,
     NANS | ZEROS},
    {"max_pool_long", BEL_OP_MAX_POOL, "f[2,3,9,40]:-9:9", "kernel_shape=[2,21] strides=[3,19]", 0,
     0},
    {"max_grad_tiles", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,3]:-3:3 f[3,5,8,6]:0:0 f[3,5,4,3]:0:0",
     "kernel_shape=[2,2] strides=[2,2]", 0, ZEROS},
    {"max_grad_tiles_nan", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,3]:-3:3 f[3,5,8,6]:2:2 f[3,5,4,3]:2:2",
     "kernel_shape=[2,2] strides=[2,2]", 0, NANS},
    {"max_grad_tiles_wide", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,2]:-3:3 f[3,5,8,6]:2:2 f[3,5,4,2]:2:2",
     "kernel_shape=[2,3] strides=[2,3]", 0, NANS | ZEROS},
    {"max_grad_tiles_f64", BEL_OP_MAX_POOL_GRAD, "d[3,5,4,3]:-3:3 d[3,5,8,6]:2:2 d[3,5,4,3]:2:2",
     "kernel_shape=[2,2] strides=[2,2]", 0, NANS},
    {"max_grad_rest", BEL_OP_MAX_POOL_GRAD, "f[3,5,4,3]:-3:3 f[3,5,9,7]:2:2 f[3,5,4,3]:2:2",
     "kernel_shape=[2,2] strides=[2,2]", 0, NANS | ZEROS},
    {"average_grad_apart", BEL_OP_AVERAGE_POOL_GRAD, "f[3,5,3,2]:-3:3 f[3,5,9,7]:0:1",
     "kernel_shape=[2,3] strides=[3,3]", 0, NANS | ZEROS},
    {"average_grad_ends", BEL_OP_AVERAGE_POOL_GRAD, "f[3,5,3,3]:-3:3 f[3,5,7,8]:0:1",
     "kernel_shape=[2,3] strides=[3,3] ceil_mode=1 count_include_pad=1", 0, 0},
    {"average_grad_all", BEL_OP_AVERAGE_POOL_GRAD, "f[9,5,1,1]:-3:3 f[9,5,7,7]:0:1",
     "kernel_shape=[7,7]", 0, 0},
    {"average_pool_all", BEL_OP_GLOBAL_AVERAGE_POOL, "f[9,5,7,7]:-3:3", "", 0, 0},
    {"average_pool_long", BEL_OP_AVERAGE_POOL, "f[2,3,9,40]:-9:9",
     "kernel_shape=[2,21] strides=[3,19]", 0, NANS},
    // Convolutions: tiles of each size, sums of more than a block stages at a time, omitted rows of
    // the window
    {"conv_weights_few", BEL_OP_CONV_GRAD_WEIGHTS, "f[9,33,8,9]:-1:1 f[9,1,8,9]:-1:1 f[33,1,5,5]",
     "pads=[2,2,2,2]", 0, 0},
    {"conv_weights_few_strides", BEL_OP_CONV_GRAD_WEIGHTS,
     "f[20,12,5,11]:-1:1 f[20,2,11,20]:-1:1 f[12,2,3,4]",
     "pads=[1,3,1,1] strides=[2,2] dilations=[2,1]", 0, 0},
    {"conv_weights_small", BEL_OP_CONV_GRAD_WEIGHTS,
     "f[9,70,7,5]:-1:1 f[9,20,7,5]:-1:1 f[70,10,3,3]", "pads=[1,1,1,1] group=2", 0, 0},
    {"conv_weights_large", BEL_OP_CONV_GRAD_WEIGHTS,
     "f[17,70,4,5]:-1:1 f[17,50,4,5]:-1:1 f[70,50,2,3]", "pads=[1,1,0,1]", 0, INFINITIES},
    {"conv_rows_left_out", BEL_OP_CONV, "f[3,20,6,5]:-1:1 f[70,20,3,3]:-1:1 f[70]:-1:1",
     "pads=[1,1,1,1]", 0, ZEROS | INFINITIES},
    {"conv_of_pixels", BEL_OP_CONV, "f[130,17,1,1]:-1:1 f[40,17,3,3]:-1:1", "pads=[1,1,1,1]", 0,
     ZEROS | INFINITIES},
    {"conv_grad_input_phases", BEL_OP_CONV_GRAD_INPUT,
     "f[5,20,6,5]:-1:1 f[20,24,3,3]:-1:1 f[5,24,11,10]", "pads=[1,1,1,1] strides=[2,2]", 0,
     ZEROS | INFINITIES},
    {"conv_weights_each", BEL_OP_CONV_GRAD_WEIGHTS, "f[9,6,7,7]:-1:1 f[9,6,9,9]:-1:1 f[6,1,3,3]",
     "group=6", 0, 0},
    {"conv_weights_outside", BEL_OP_CONV_GRAD_WEIGHTS,
     "f[2,20,5,1]:-1:1 f[2,3,1,1]:-1:1 f[20,3,5,3]", "pads=[4,1,4,1]", 0, 0},
    {"conv_weights_none", BEL_OP_CONV_GRAD_WEIGHTS, "f[0,20,5,5]:-1:1 f[0,3,7,7]:-1:1 f[20,3,3,3]",
     "", 0, 0},
    {"ctc_many", BEL_OP_CTC_LOSS, "f[300,5,4]:-3:3 i[300,3]:1:4 i[300]:0:6 i[300]:0:4", "", 0, 0},
    {"ctc_grad_many", BEL_OP_CTC_LOSS_GRAD,
     "f[300]:-3:3 f[300,5,4]:-4:-1 i[300,3]:1:4 i[300]:0:6 i[300]:0:4", "", 0, 0},
    {"ctc_bad_label", BEL_OP_CTC_LOSS, "f[5,9,6]:-3:3 i[5,4]:1:7 i[5]:7:10 i[5]:4:5", "", 0, 0},
    {"ctc_bad_length", BEL_OP_CTC_LOSS, "d[5,9,6]:-3:3 i[5,4]:1:6 i[5]:9:11 i[5]:0:4", "", 0, 0},
    {"ctc_grad_bad", BEL_OP_CTC_LOSS_GRAD, "f[5]:-3:3 f[5,9,6]:-4:-1 i[5,4]:1:7 i[5]:7:10 i[5]:3:5",
     "", 0, 0},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static bel_device *card;

// --- Data ----------------------------------------------------------------------------------------

static bel_dtype dtype_of(char kind)
{
    switch (kind) {
    case 'f': return BEL_DTYPE_F32;
    case 'd': return BEL_DTYPE_F64;
    case 'h': return BEL_DTYPE_F16;
    case 'g': return BEL_DTYPE_BF16;
    case 's': return BEL_DTYPE_I32;
    case 'u': return BEL_DTYPE_U8;
    case 'b': return BEL_DTYPE_BOOL;
    default: return BEL_DTYPE_I64;
    }
}

static double element(const more_row *row, const op_input *input, int number, int64_t i)
{
    double unit = (double)((i * 7919 + 104729 * ((int64_t)number + 1)) % 2003) / 2003.0;
    double value = input->low + (input->high - input->low) * unit;
    if (strchr("fdhg", input->kind) == NULL) return floor(value);
    if ((row->specials & NANS) != 0 && i % 61 == 7) return NAN;
    if ((row->specials & ZEROS) != 0 && i % 7 == 3) return i % 2 == 0 ? 0.0 : -0.0;
    if ((row->specials & INFINITIES) != 0 && i % 31 == 5) return i % 2 == 0 ? INFINITY : -INFINITY;
    if ((row->specials & SPREAD) != 0 && i / 4096 % 4 == 2)
        return -element(row, input, number, i - 2 * 4096);
    if ((row->specials & SPREAD) != 0 && i / 4096 % 4 == 0) return ldexp(value, 60);
    if ((row->specials & PEAK) != 0 && i == bel_shape_elements(&input->shape) - 1) return 1000;
    return value;
}

static void build(op_run *run, const more_row *row)
{
    *run = (op_run){.graph = bel_graph_create(), .context = {.seed = 7, .step = 3, .replica = 5}};
    run->input_count = op_parse_inputs(row->inputs, run->inputs);
    for (int i = 0; i < run->input_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        bel_tensor *x = &run->data[i];
        *x = (bel_tensor){.dtype = dtype_of(run->inputs[i].kind), .shape = run->inputs[i].shape};
        x->data = bel_xmalloc(bel_tensor_bytes(x) + 1);
        for (int64_t k = 0; k < bel_shape_elements(&x->shape); k++)
            bel_element_set(x, k, element(row, &run->inputs[i], i, k));
        run->values[i] = bel_input_value(run->graph, name, x->dtype, &x->shape);
    }
    bel_attr_list attrs = op_parse_attrs(row->attrs);
    if (row->first != 0)
        attrs.items[attrs.count++] = (bel_attr){.name = "first", .number = row->first};
    run->y = bel_graph_add(run->graph, row->op, &attrs, run->values, run->input_count);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
}

// --- Runs ----------------------------------------------------------------------------------------

static void check_same(const more_row *row, const bel_tensor *got, const bel_tensor *expected,
                       int output)
{
    assert_true(bel_shape_equal(&got->shape, &expected->shape));
    assert_int_equal(got->dtype, expected->dtype);
    size_t size = bel_dtype_size(got->dtype);
    for (int64_t i = 0; i < bel_shape_elements(&expected->shape); i++) {
        const char *g = (const char *)got->data + (size_t)i * size;
        const char *e = (const char *)expected->data + (size_t)i * size;
        double x = bel_element_get(got, i), y = bel_element_get(expected, i);
        if (memcmp(g, e, size) != 0 && !(isnan(x) && isnan(y)))
            fail_msg("%s: output %d, element %lld: GPU %.17g, CPU %.17g", row->name, output,
                     (long long)i, x, y);
    }
}

static void run_card(op_run *run, const more_row *row, const bel_program_output *outputs, int count,
                     bel_status *expected)
{
    bel_shape shapes[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < run->input_count; i++)
        shapes[i] = run->data[i].shape;
    bel_program_options options = {.threads = 1, .device = card};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(run->graph, shapes, outputs, count, &options, &program));
    bel_device_memory memory;
    bel_instance *instance;
    BEL_ASSERT_OK(card->ops->allocate(card, bel_program_arena_bytes(program), "test", &memory));
    BEL_ASSERT_OK(bel_instance_create_on(program, &memory, &instance));
    for (int i = 0; i < run->input_count; i++)
        bel_instance_bind_input(instance, i, run->data[i].data);
    for (int turn = 0; turn < 3; turn++) { // one by one, captured as a graph, replayed
        bel_status *status = bel_instance_run(instance, NULL, &run->context, NULL, NULL);
        assert_int_equal(bel_status_code(status), bel_status_code(expected));
        if (status != NULL)
            assert_string_equal(bel_status_message(status), bel_status_message(expected));
        for (int o = 0; o < count && status == NULL; o++) {
            bel_tensor got = bel_instance_output(instance, o);
            bel_tensor cpu = bel_instance_output(run->instance, o);
            check_same(row, &got, &cpu, o);
        }
        bel_status_destroy(status);
    }
    bel_instance_destroy(instance);
    card->ops->release(card, &memory);
    bel_program_destroy(program);
}

static void test_row(void **state)
{
    const more_row *row = *state;
    op_run run;
    build(&run, row);
    int count = bel_op_get(row->op)->output_count;
    bel_program_output outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < count; i++)
        outputs[i] = (bel_program_output){.value = run.y->node->outputs[i]};
    op_run_compile(&run, outputs, count, false);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_status *expected = bel_instance_run(run.instance, team, &run.context, NULL, NULL);
    bel_team_destroy(team);
    bool bad = strstr(row->name, "bad") != NULL && row->op != BEL_OP_CTC_LOSS_GRAD;
    assert_int_equal(expected != NULL, bad);
    run_card(&run, row, outputs, count, expected);
    bel_status_destroy(expected);
    op_run_destroy(&run);
}

// --- Collectives ---------------------------------------------------------------------------------

typedef struct published {
    int counts[3];
} published;

static void count_published(void *context, int output, int64_t first, int64_t count)
{
    published *p = context;
    assert_int_equal(first, 0);
    assert_int_equal(count, 65);
    p->counts[output]++;
}

// Results of a GPU before and after an exchange, which the caller makes. Here no other replica
// takes part, and the exchange returns twice its argument. An exchange's result and an input are
// outputs too; each is published once in every run.
static void test_collective(void **state)
{
    (void)state;
    enum { N = 65 };
    float numbers[N], given[N], same[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i - 30;
    bel_graph *graph = bel_graph_create();
    graph->replica_count = 2; // with one replica there would be no exchange
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &BEL_SHAPE(N));
    bel_value *sum = bel_all_reduce(graph, bel_neg(graph, x), BEL_REDUCE_SUM);
    bel_program_output outputs[3] = {
        {.value = bel_relu(graph, sum)}, {.value = sum, .external = true}, {x, true}};
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_program_options options = {.threads = 1, .device = card};
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(graph, &BEL_SHAPE(N), outputs, 3, &options, &program));
    bel_device_memory memory;
    bel_instance *instance;
    bel_run_context context = {.seed = 7};
    BEL_ASSERT_OK(card->ops->allocate(card, bel_program_arena_bytes(program), "test", &memory));
    BEL_ASSERT_OK(bel_instance_create_on(program, &memory, &instance));
    bel_instance_bind_input(instance, 0, numbers);
    bel_instance_bind_output(instance, 1, given);
    bel_instance_bind_output(instance, 2, same);
    for (int turn = 0; turn < 3; turn++) {
        published p = {{0}};
        memset(given, 0, sizeof given);
        memset(same, 0, sizeof same);
        BEL_ASSERT_OK(bel_instance_run_part(instance, 0, NULL, &context, count_published, &p));
        assert_int_equal(bel_instance_exchange_parts(instance, 0), 1);
        bel_exchange_part part = bel_instance_exchange_part(instance, 0, 0);
        for (int i = 0; i < N; i++)
            ((float *)part.output.data)[i] = 2 * ((const float *)part.input.data)[i];
        BEL_ASSERT_OK(bel_instance_run_part(instance, 1, NULL, &context, count_published, &p));
        bel_tensor y = bel_instance_output(instance, 0);
        for (int i = 0; i < N; i++) {
            assert_true(((const float *)y.data)[i] == (i < 30 ? 2 * (float)(30 - i) : 0));
            assert_true(given[i] == 2 * (float)(30 - i) && same[i] == numbers[i]);
        }
        assert_int_equal(p.counts[0], 0);
        assert_int_equal(p.counts[1], 1);
        assert_int_equal(p.counts[2], 1);
    }
    bel_instance_destroy(instance);
    card->ops->release(card, &memory);
    bel_program_destroy(program);
    bel_graph_destroy(graph);
}

int main(void)
{
    static struct CMUnitTest tests[ROW_COUNT + 1];
    static more_row copies[ROW_COUNT];
    int count = 0;
    bel_use_cards();
    if (!bel_cards_open(&card)) return 77;
    for (int i = 0; i < ROW_COUNT; i++) {
        copies[i] = rows[i];
        tests[count++] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = &copies[i]};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_collective);
    return _cmocka_run_group_tests("more on a GPU", tests, (size_t)count, NULL, NULL) != 0;
}
