//go:build cgo && linux

#include "blocks.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  char* at;
  size_t size;
  int used;
  time_t since;  // when it was freed, in seconds; of a block that is not used
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // over what follows
static block blocks[BLOCKS_MOST];
static int count;
static time_t shift;  // of the clock, for blocks_age

static time_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return t.tv_sec + shift;
}

static size_t page(void) {
  static size_t size;
  if (size == 0) size = (size_t)sysconf(_SC_PAGESIZE);
  return size;
}

// give_back unmaps the kept blocks that were freed at a time or before.
static void give_back(time_t until) {
  for (int i = 0; i < count;) {
    if (blocks[i].used || blocks[i].since > until) {
      i++;
      continue;
    }
    munmap(blocks[i].at, blocks[i].size);
    blocks[i] = blocks[--count];
  }
}

// kept returns the index of the smallest kept block of that size and at most a quarter more; −1 if there is none.
static int kept(size_t size) {
  int best = -1;
  for (int i = 0; i < count; i++) {
    size_t has = blocks[i].size;
    if (!blocks[i].used && has >= size && has - size <= size / 4 && (best < 0 || has < blocks[best].size)) best = i;
  }
  return best;
}

// map_new maps a block and returns its index; −1 if there is no room for it.
static int map_new(size_t size) {
  if (count == BLOCKS_MOST) give_back(now());
  if (count == BLOCKS_MOST) return -1;
  void* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    give_back(now());
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return -1;
  }
  blocks[count] = (block){.at = at, .size = size};
  return count++;
}

// take returns a block, or NULL where the caller is to ask malloc.
static void* take(size_t alignment, size_t size) {
  if (size < BLOCKS_LEAST || alignment > page() || size > SIZE_MAX - page()) return NULL;
  size = (size + page() - 1) / page() * page();
  void* at = NULL;
  pthread_mutex_lock(&lock);
  give_back(now() - BLOCKS_SECONDS);
  int i = kept(size);
  if (i < 0) i = map_new(size);
  if (i >= 0) {
    blocks[i].used = 1;
    at = blocks[i].at;
  }
  pthread_mutex_unlock(&lock);
  return at;
}

// find returns the index of a block; −1 if there is none at that address.
static int find(const void* at) {
  for (int i = 0; i < count; i++)
    if (blocks[i].at == at) return i;
  return -1;
}

// size_of returns the size of a block; 0 for what is none of these.
static size_t size_of(const void* at) {
  if (at == NULL || (uintptr_t)at % page() != 0) return 0;  // nearly all that is asked for
  pthread_mutex_lock(&lock);
  int i = find(at);
  size_t size = i < 0 ? 0 : blocks[i].size;
  pthread_mutex_unlock(&lock);
  return size;
}

void blocks_free(void* at) {
  size_t size = size_of(at);
  if (size == 0) {
    free(at);
    return;
  }
  // Until somebody writes to it again, the kernel may take the memory back where it runs short, and counts it as available.
  madvise(at, size, MADV_FREE);
  pthread_mutex_lock(&lock);
  int i = find(at);
  blocks[i].used = 0;
  blocks[i].since = now();
  give_back(now() - BLOCKS_SECONDS);
  pthread_mutex_unlock(&lock);
}

int blocks_posix_memalign(void** out, size_t alignment, size_t size) {
  void* at = take(alignment, size);
  if (at == NULL) return posix_memalign(out, alignment, size);
  *out = at;
  return 0;
}

void* blocks_aligned_alloc(size_t alignment, size_t size) {
  void* at = take(alignment, size);
  return at != NULL ? at : aligned_alloc(alignment, size);
}

void* blocks_realloc(void* at, size_t size) {
  size_t has = size_of(at);
  if (has == 0) return realloc(at, size);
  if (size == 0) {
    blocks_free(at);
    return NULL;
  }
  if (size <= has && has - size <= has / 2) return at;
  void* new = malloc(size);
  if (new == NULL) return NULL;
  memcpy(new, at, size < has ? size : has);
  blocks_free(at);
  return new;
}

size_t blocks_usable_size(void* at) {
  size_t has = size_of(at);
  return has > 0 ? has : malloc_usable_size(at);
}

blocks_counts blocks_count(void) {
  blocks_counts n = {0};
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count; i++) {
    if (blocks[i].used)
      n.used++;
    else
      n.kept++;
  }
  pthread_mutex_unlock(&lock);
  return n;
}

void blocks_age(int seconds) {
  pthread_mutex_lock(&lock);
  shift += seconds;
  pthread_mutex_unlock(&lock);
}
