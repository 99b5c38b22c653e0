// Sources of kernels as of Belfry's build (cmake/texts.cmake writes texts.c): those of
// cuda/kernels/, and the CPU's sources that kernels share.
#ifndef BELFRY_CUDA_TEXTS_H
#define BELFRY_CUDA_TEXTS_H

typedef struct bel_cuda_text {
    const char *name; // as #include names it
    const char *text;
} bel_cuda_text;

extern const bel_cuda_text bel_cuda_texts[];
extern const int bel_cuda_text_count;

// The text of this name; NULL: absent.
const char *bel_cuda_text_of(const char *name);

#endif
