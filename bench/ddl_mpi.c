// The peer of bench_ddl over MPI: MPI_Allreduce in place, consecutive calls, µs a call in medians
// of rank 0. bench/ddl builds and runs it with mpicc and mpirun. usage: ddl_mpi [ROUNDS
// [LARGEST_MB]]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 99 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    int rank, rounds = count > 1 ? atoi(arguments[1]) : 9;
    long long largest = (count > 2 ? atoll(arguments[2]) : 256) << 20;
    if (rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *data = malloc((size_t)largest);
    double times[MAX_ROUNDS];
    memset(data, 0, (size_t)largest);
    for (long long bytes = 4096; bytes <= largest; bytes *= 4) {
        int calls = (int)(30e-3 / (20e-6 + (double)bytes * 0.3e-9)) + 1;
        for (int r = -1; r < rounds; r++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            for (int i = 0; i < calls; i++)
                MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / 4), MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD);
            if (r >= 0) times[r] = (MPI_Wtime() - begun) * 1e6 / calls;
        }
        qsort(times, (size_t)rounds, sizeof *times, by_size);
        if (rank == 0) printf("%lld %.2f\n", bytes, times[rounds / 2]);
        fflush(stdout);
    }
    MPI_Finalize();
    free(data);
    return 0;
}
