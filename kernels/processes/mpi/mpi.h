// The part of MPI's standard ABI (MPI 5.0, chapter 20) that package mpi uses.

enum { MPI_TEXT = 512 };

// mpi_load loads a library; it returns NULL, or why it cannot be used.
const char *mpi_load(const char *path);

// The others return an error code of MPI's, 0 for none.
int mpi_start(int *rank, int *size);
int mpi_exchange(const void *out, void *in, int block);
int mpi_done(int *done);
int mpi_end(void);
void mpi_abort(void);
void mpi_text(int code, char *text);
