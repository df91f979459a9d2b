//go:build cgo && linux

#include "mpi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

// Handles are pointers, and constants of theirs small integers in the ABI.
typedef void *handle;

#define WORLD ((handle)0x101)
#define ERRORS_RETURN ((handle)0x143)
#define BYTE ((handle)0x247)
#define SERIALIZED 2048

static int (*init_thread)(int *, char ***, int, int *);
static int (*comm_rank)(handle, int *);
static int (*comm_size)(handle, int *);
static int (*set_errhandler)(handle, handle);
static int (*ialltoall)(const void *, int, handle, void *, int, handle, handle, handle *);
static int (*test)(handle *, int *, void *);
static int (*finalize)(void);
static int (*abort_all)(handle, int);
static int (*error_string)(int, char *, int *);

static handle request;
static void *library;

const char *mpi_load(const char *path) {
	const struct {
		void **to;
		const char *name;
	} symbols[] = {
		{(void **)&init_thread, "MPI_Init_thread"},
		{(void **)&comm_rank, "MPI_Comm_rank"},
		{(void **)&comm_size, "MPI_Comm_size"},
		{(void **)&set_errhandler, "MPI_Comm_set_errhandler"},
		{(void **)&ialltoall, "MPI_Ialltoall"},
		{(void **)&test, "MPI_Test"},
		{(void **)&finalize, "MPI_Finalize"},
		{(void **)&abort_all, "MPI_Abort"},
		{(void **)&error_string, "MPI_Error_string"},
	};
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (library == NULL) return dlerror();
	// Other libraries export the same names with handles of another form. Those of MPICH and Open MPI before the standard
	// ABI are libmpi.so; only libmpi_abi.so promises it.
	if (dlsym(library, "MPI_Abi_get_version") == NULL || strstr(path, "mpi_abi") == NULL) {
		dlclose(library);
		return "it is no libmpi_abi.so with the standard ABI of MPI 5.0";
	}
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		*symbols[i].to = dlsym(library, symbols[i].name);
		if (*symbols[i].to == NULL) return "it has not the functions of MPI 3.0";
	}
	return NULL;
}

int mpi_start(int *rank, int *size) {
	int given, code = init_thread(NULL, NULL, SERIALIZED, &given);
	if (code == 0) code = set_errhandler(WORLD, ERRORS_RETURN);
	if (code == 0) code = comm_rank(WORLD, rank);
	if (code == 0) code = comm_size(WORLD, size);
	return code;
}

int mpi_exchange(const void *out, void *in, int block) {
	return ialltoall(out, block, BYTE, in, block, BYTE, WORLD, &request);
}

int mpi_done(int *done) { return test(&request, done, NULL); }

int mpi_end(void) {
	int code = finalize();
	// MPICH tells the launcher in a destructor, and Go's programs end without those. The launcher kills the processes that
	// have not ended if one ends untold.
	if (code == 0) dlclose(library);
	return code;
}

void mpi_abort(void) { abort_all(WORLD, 1); }

void mpi_text(int code, char *text) {
	int length;
	if (error_string == NULL || error_string(code, text, &length) != 0) strcpy(text, "an unknown error");
}
