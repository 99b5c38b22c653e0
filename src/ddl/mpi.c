// Open MPI's types and operations are library objects with these names, so its header is not
// needed; MPI_IN_PLACE is the address 1. The library stays loaded, because MPI cannot be
// initialized twice in a process.
#include "ddl/mpi.h"

#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"

#define LIBRARY "libmpi.so.40"

typedef int begin_fn(int *count, char ***arguments);
typedef int end_fn(void);
typedef int ask_fn(int *answer);
typedef int number_fn(void *communicator, int *out_number);
typedef int sum_fn(const void *from, void *to, int count, void *type, void *op, void *communicator);

struct bel_ddl_mpi {
    sum_fn *sum;
    end_fn *end;
    void *world, *add;
    void *f32, *f64, *i32, *i64;
    bool begun; // initialized here
};

// Finds a library function: ISO C has no conversion from void * to a function pointer.
static void mpi_find(void *library, const char *name, void *out_function, const char **missing)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
    if (address == NULL && *missing == NULL) *missing = name;
}

static bel_status *check_place(bel_ddl_mpi *mpi, number_fn *rank_of, number_fn *size_of,
                               const bel_ddl_place *place)
{
    int rank = -1, size = -1;
    (void)rank_of(mpi->world, &rank);
    (void)size_of(mpi->world, &size);
    if (rank == place->rank && size == place->size) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "mode m: expected ranks that mpirun has started, got rank %d of %d, which is "
                   "%d of %d of MPI",
                   place->rank, place->size, rank, size);
}

bel_status *bel_ddl_mpi_open(const bel_ddl_place *place, bool begins, bel_ddl_mpi **out_mpi)
{
    // Open MPI's modules look up its functions in the process's global scope.
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL | (begins ? 0 : RTLD_NOLOAD));
    const char *missing = NULL;
    if (library == NULL) {
        const char *why = begins ? dlerror() : "it is not loaded";
        return BEL_ERR(BEL_NOT_FOUND, "mode m: no Open MPI: %s", why);
    }
    bel_ddl_mpi *mpi = bel_xcalloc(1, sizeof *mpi);
    begin_fn *begin;
    ask_fn *has_begun;
    number_fn *rank_of, *size_of;
    const struct {
        const char *name;
        void *out;
    } names[] = {
        {"MPI_Init", &begin},
        {"MPI_Initialized", &has_begun},
        {"MPI_Finalize", &mpi->end},
        {"MPI_Comm_rank", &rank_of},
        {"MPI_Comm_size", &size_of},
        {"MPI_Allreduce", &mpi->sum},
        {"ompi_mpi_comm_world", &mpi->world},
        {"ompi_mpi_op_sum", &mpi->add},
        {"ompi_mpi_float", &mpi->f32},
        {"ompi_mpi_double", &mpi->f64},
        {"ompi_mpi_int32_t", &mpi->i32},
        {"ompi_mpi_int64_t", &mpi->i64},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        mpi_find(library, names[i].name, names[i].out, &missing);
    int begun = 0;
    bel_status *status =
        missing != NULL ? BEL_ERR(BEL_NOT_FOUND, "mode m: " LIBRARY " has no %s", missing) : NULL;
    if (status == NULL) (void)has_begun(&begun);
    if (status == NULL && !begun && !begins)
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "mode m: MPI has not begun");
    if (status == NULL && !begun) {
        mpi->begun = begin(NULL, NULL) == 0;
        if (!mpi->begun) status = BEL_ERR(BEL_UNAVAILABLE, "mode m: MPI_Init has failed");
    }
    if (status == NULL) status = check_place(mpi, rank_of, size_of, place);
    if (status != NULL) {
        bel_ddl_mpi_close(mpi, false);
        return status;
    }
    *out_mpi = mpi;
    return NULL;
}

void bel_ddl_mpi_close(bel_ddl_mpi *mpi, bool meet)
{
    if (mpi == NULL) return;
    if (mpi->begun && meet) (void)mpi->end(); // Open MPI reports its errors
    bel_free(mpi);
}

static void mpi_divide(const bel_tensor *t, int64_t n, double divisor)
{
    if (t->dtype == BEL_DTYPE_F32) {
        float *x = t->data, by = (float)divisor;
        for (int64_t i = 0; i < n; i++)
            x[i] /= by;
    } else {
        double *x = t->data;
        for (int64_t i = 0; i < n; i++)
            x[i] /= divisor;
    }
}

bel_status *bel_ddl_mpi_sum(bel_ddl_mpi *mpi, const bel_tensor *t, double divisor)
{
    enum { MOST = 1 << 30 };                 // elements: MPI counts them by an int
    static void *const in_place = (void *)1; // MPI_IN_PLACE
    int64_t n = bel_shape_elements(&t->shape);
    void *type = t->dtype == BEL_DTYPE_F32   ? mpi->f32
                 : t->dtype == BEL_DTYPE_F64 ? mpi->f64
                 : t->dtype == BEL_DTYPE_I32 ? mpi->i32
                                             : mpi->i64;
    for (int64_t at = 0; at < n; at += MOST) {
        char *data = (char *)t->data + (size_t)at * bel_dtype_size(t->dtype);
        int count = (int)(n - at < MOST ? n - at : MOST);
        if (mpi->sum(in_place, data, count, type, mpi->add, mpi->world) != 0)
            return BEL_ERR(BEL_INTERNAL, "mode m: MPI_Allreduce has failed");
    }
    if (divisor != 1) mpi_divide(t, n, divisor);
    return NULL;
}
