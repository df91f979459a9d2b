//go:build cgo && linux

#include "blocks.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
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
  int offered;   // to the kernel
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // over what follows
static pthread_cond_t freed;                              // a block was; made by blocks_start
static block blocks[BLOCKS_MOST];
static int count, unused;
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
    unused--;
  }
}

// offer tells the kernel that it may take the pages of the kept blocks that were freed at a time or before.
static void offer(time_t until) {
  for (int i = 0; i < count; i++) {
    if (blocks[i].used || blocks[i].offered || blocks[i].since > until) continue;
    madvise(blocks[i].at, blocks[i].size, MADV_FREE);
    blocks[i].offered = 1;
  }
}

void blocks_tend(void) {
  pthread_mutex_lock(&lock);
  give_back(now() - BLOCKS_SECONDS);
  offer(now() - BLOCKS_OFFERED);
  pthread_mutex_unlock(&lock);
}

// tend is the thread that looks after kept blocks, every second as long as there are any.
static void* tend(void* none) {
  (void)none;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (unused == 0) pthread_cond_wait(&freed, &lock);
    pthread_mutex_unlock(&lock);
    sleep(1);
    blocks_tend();
  }
}

static int started;

static void start(void) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&freed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // which the new thread has from here: signals are for the others
  pthread_t thread;
  started = pthread_create(&thread, NULL, tend, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started) pthread_detach(thread);
}

int blocks_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  return started;
}

// find_fit returns the index of the smallest block, used or kept, of that size and at most a quarter more; −1 if there
// is none.
static int find_fit(size_t size, int used) {
  int best = -1;
  for (int i = 0; i < count; i++) {
    size_t has = blocks[i].size;
    if (blocks[i].used == used && has >= size && has - size <= size / 4 && (best < 0 || has < blocks[best].size)) {
      best = i;
    }
  }
  return best;
}

// kept returns the index of a kept block that fits; −1 if there is none. XLA says that a run is done, and the next may
// begin, a moment before it frees what the run had. So where a block that fits is in use, kept waits that moment. Where
// both are needed at once it waits in vain, but only until there are as many as are needed.
static int kept(size_t size) {
  int i = find_fit(size, 0);
  if (i >= 0 || find_fit(size, 1) < 0) return i;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  uint64_t ns = (uint64_t)until.tv_nsec + size / 1024 * BLOCKS_WAIT;
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  while (i < 0 && pthread_cond_timedwait(&freed, &lock, &until) == 0) i = find_fit(size, 0);
  return i;
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
  unused++;
  return count++;
}

// take returns a block, or NULL where the caller is to ask malloc.
static void* take(size_t alignment, size_t size) {
  if (size < BLOCKS_LEAST || alignment > page() || size > SIZE_MAX - page()) return NULL;
  size = (size + page() - 1) / page() * page();
  void* at = NULL;
  pthread_mutex_lock(&lock);
  int i = kept(size);
  if (i < 0) i = map_new(size);
  if (i >= 0) {
    blocks[i].used = 1;
    unused--;
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
  pthread_mutex_lock(&lock);
  block* b = &blocks[find(at)];
  b->used = b->offered = 0;
  b->since = now();
  unused++;
  pthread_cond_broadcast(&freed);
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
  n.used = count - unused;
  n.kept = unused;
  pthread_mutex_unlock(&lock);
  return n;
}

void blocks_age(int seconds) {
  pthread_mutex_lock(&lock);
  shift += seconds;
  pthread_mutex_unlock(&lock);
}
