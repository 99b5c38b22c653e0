// The sources that kernels are compiled from, as they were when Belfry was built (cmake/texts.cmake
// writes texts.c): those of cuda/kernels/, and those of the CPU that kernels share.
#ifndef BELFRY_CUDA_TEXTS_H
#define BELFRY_CUDA_TEXTS_H

typedef struct bel_cuda_text {
    const char *name; // as #include names it
    const char *text;
} bel_cuda_text;

extern const bel_cuda_text bel_cuda_texts[];
extern const int bel_cuda_text_count;

// NULL: there is none of this name.
const char *bel_cuda_text_of(const char *name);

#endif
