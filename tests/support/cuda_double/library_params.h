// Arguments that library.c, cublas.c and cudnn.c pass to their kernels (cublas.cu, cudnn.cu). Both
// compilers read it, including NVIDIA's, so it contains only plain structs of C's basic types.
// Sizes and strides count elements. Numbers of a type are f32 or bf16.
#ifndef CUDA_DOUBLE_LIBRARY_PARAMS_H
#define CUDA_DOUBLE_LIBRARY_PARAMS_H

// Bits dropped from an f32's mantissa, rounding to the nearest number, ties to even.
#define LIBRARY_DROP_F32 0
#define LIBRARY_DROP_TF32 13
#define LIBRARY_DROP_BF16 16

// Workspace that a kernel was given, and therefore writes.
typedef struct library_workspace {
    float *at;
    long long words;
} library_workspace;

typedef struct library_matrix {
    const void *at;
    long long row_step, column_step, batch_step;
} library_matrix;

// d [rows, columns] = a [rows, inner] · b [inner, columns], for every batch. a and b have the
// strides of the product's operands, so they are transposed where the product asks for it.
typedef struct library_product {
    library_matrix a, b, c;
    void *d;
    long long d_column_step, d_batch_step;
    const void *bias; // NULL: none
    long long rows, columns, inner, batches;
    int in_bf16, out_bf16; // types of a and b; of c, d and bias
    int dropped;           // LIBRARY_DROP_…: how a and b are rounded
    int relu;
    float alpha, beta;
    library_workspace workspace;
} library_product;

typedef struct library_tensor {
    int dims[4]; // n, c, h, w; for weights: out, in (in a group), h, w
    long long steps[4];
} library_tensor;

typedef struct library_convolution {
    library_tensor x, w, y; // or their gradients
    const void *in[2];      // the two inputs among x, w, y, in that order
    void *out;
    int bf16; // all three tensors are bf16
    int pad[2], stride[2], dilation[2], groups;
    int dropped; // LIBRARY_DROP_…: how inputs are rounded
    float alpha, beta;
    library_workspace workspace;
} library_convolution;

#endif
