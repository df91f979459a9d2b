#ifndef ANISOFLIGHT_BLOCKS_H
#define ANISOFLIGHT_BLOCKS_H

#include <stddef.h>

enum {
  BLOCKS_LEAST = 1 << 20,  // bytes from which on a block is kept
  BLOCKS_MOST = 4096,      // blocks in use and kept together; more are malloc's
  BLOCKS_WAIT = 32,        // nanoseconds a KiB for a block in use to be freed, a tenth of what a new one costs
  BLOCKS_OFFERED = 2,      // seconds after which the kernel may take the pages of a block which nobody takes
  BLOCKS_SECONDS = 60,     // that a block which nobody takes is kept
};

// blocks_serve has a library that dlopen has loaded call the functions below for its own posix_memalign, aligned_alloc,
// free, realloc and malloc_usable_size, as far as it calls them. Nothing else in the process is concerned. Returns 0, and
// changes nothing, where the library or the machine is not of the kind known here.
int blocks_serve(void* library);

// blocks_start starts the thread that looks after kept blocks, once. blocks_serve calls it. Returns 0 where it cannot.
int blocks_start(void);

// blocks_tend does what that thread does every second.
void blocks_tend(void);

// As posix_memalign, aligned_alloc, free, realloc and malloc_usable_size, which they call for everything but blocks of BLOCKS_LEAST bytes and more.
int blocks_posix_memalign(void** out, size_t alignment, size_t size);
void* blocks_aligned_alloc(size_t alignment, size_t size);
void blocks_free(void* at);
void* blocks_realloc(void* at, size_t size);
size_t blocks_usable_size(void* at);

// blocks_count says how many blocks are in use and how many are kept, for tests.
typedef struct {
  int used, kept;
} blocks_counts;
blocks_counts blocks_count(void);

// blocks_age makes all kept blocks older by some seconds, for tests.
void blocks_age(int seconds);

#endif
