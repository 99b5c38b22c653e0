// What library.c, cublas.c and cudnn.c and their kernels (cublas.cu, cudnn.cu) say to each other.
// Read by both compilers, NVIDIA's among them, so it holds plain structs of C's own types alone.
// Sizes and steps count elements, and numbers of a type are f32 or bf16.
#ifndef CUDA_DOUBLE_LIBRARY_PARAMS_H
#define CUDA_DOUBLE_LIBRARY_PARAMS_H

// Bits of an f32's mantissa that are rounded away, to the nearest number, ties to even.
#define LIBRARY_DROP_F32 0
#define LIBRARY_DROP_TF32 13
#define LIBRARY_DROP_BF16 16

// Memory that a kernel writes because it was given to it as workspace.
typedef struct library_workspace {
    float *at;
    long long words;
} library_workspace;

typedef struct library_matrix {
    const void *at;
    long long row_step, column_step, batch_step;
} library_matrix;

// d [rows, columns] = a [rows, inner] · b [inner, columns], for every batch; a and b are steps of
// what the product takes, so transposed where it asks for that.
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
    int dims[4]; // n, c, h, w; of weights: out, in of a group, h, w
    long long steps[4];
} library_tensor;

typedef struct library_convolution {
    library_tensor x, w, y; // or their gradients
    const void *in[2];      // the two of x, w, y that are read, in that order
    void *out;
    int bf16; // the type of all three
    int pad[2], stride[2], dilation[2], groups;
    int dropped; // LIBRARY_DROP_…: how what is read is rounded
    float alpha, beta;
    library_workspace workspace;
} library_convolution;

#endif
