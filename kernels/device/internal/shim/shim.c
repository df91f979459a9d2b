//go:build cgo && linux

#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

typedef void* (*pjrt_call)(void* args);  // every entry takes one struct and returns an error or NULL

static struct {
  pjrt_call memory_stats, execute;
} slots[SHIM_SLOTS];
static int slots_used;

static size_t size_of(const void* args) {
  size_t n;
  memcpy(&n, args, sizeof n);  // struct_size comes first in every struct
  return n;
}

// widen copies a struct into a larger, zero-filled one and returns the copy's
// former size.
static size_t widen(unsigned char padded[SHIM_PADDED], const void* args) {
  size_t n = size_of(args), all = SHIM_PADDED;
  if (n > SHIM_PADDED) n = SHIM_PADDED;
  memset(padded, 0, SHIM_PADDED);
  memcpy(padded, args, n);
  memcpy(padded, &all, sizeof all);
  return n;
}

static void* memory_stats(int slot, void* args) {
  _Alignas(16) unsigned char padded[SHIM_PADDED];
  size_t n = widen(padded, args);
  void* err = slots[slot].memory_stats(padded);
  // The results lie behind struct_size; hand back those that the caller knows.
  memcpy((unsigned char*)args + sizeof n, padded + sizeof n, n - sizeof n);
  return err;
}

static void* execute(int slot, void* args) {
  _Alignas(16) unsigned char options[SHIM_PADDED], own[SHIM_PADDED];
  size_t n = widen(own, args);
  memcpy(own, &n, sizeof n);  // the outer struct has not grown: pass its own size
  void* given;
  memcpy(&given, own + SHIM_EXECUTE_ARGS_OPTIONS_OFFSET, sizeof given);
  if (given != NULL) {
    void* wide = options;
    widen(options, given);
    memcpy(own + SHIM_EXECUTE_ARGS_OPTIONS_OFFSET, &wide, sizeof wide);
  }
  // Results arrive through pointers in the struct, so the copy needs no copying back.
  return slots[slot].execute(own);
}

#define SLOT(n)                                                          \
  static void* memory_stats_##n(void* args) { return memory_stats(n, args); } \
  static void* execute_##n(void* args) { return execute(n, args); }
SLOT(0)
SLOT(1)
SLOT(2)
SLOT(3)
static const pjrt_call memory_stats_of[SHIM_SLOTS] = {memory_stats_0, memory_stats_1, memory_stats_2, memory_stats_3};
static const pjrt_call execute_of[SHIM_SLOTS] = {execute_0, execute_1, execute_2, execute_3};

shim_status shim_load(const char* path, shim_plugin* out) {
  memset(out, 0, sizeof *out);
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) {
    const char* why = dlerror();
    snprintf(out->message, sizeof out->message, "%s", why ? why : "unknown error");
    return SHIM_DLOPEN_FAILED;
  }
  void* symbol = dlsym(library, "GetPjrtApi");
  if (symbol == NULL) return SHIM_NO_SYMBOL;
  void* (*get_api)(void);
  memcpy(&get_api, &symbol, sizeof symbol);
  unsigned char* api = get_api();
  if (api == NULL) return SHIM_NULL_API;

  size_t size = size_of(api);
  if (size < SHIM_MEMORY_STATS_OFFSET + sizeof(void*)) return SHIM_TOO_OLD;
  if (slots_used == SHIM_SLOTS) return SHIM_NO_SLOT;
  unsigned char* copy = malloc(size);
  if (copy == NULL) return SHIM_NO_MEMORY;
  memcpy(copy, api, size);
  int slot = slots_used++;
  memcpy(&slots[slot].memory_stats, copy + SHIM_MEMORY_STATS_OFFSET, sizeof(void*));
  memcpy(&slots[slot].execute, copy + SHIM_EXECUTE_OFFSET, sizeof(void*));
  memcpy(copy + SHIM_MEMORY_STATS_OFFSET, &memory_stats_of[slot], sizeof(void*));
  memcpy(copy + SHIM_EXECUTE_OFFSET, &execute_of[slot], sizeof(void*));

  out->api = copy;
  memcpy(&out->major, copy + SHIM_VERSION_MAJOR_OFFSET, sizeof out->major);
  memcpy(&out->minor, copy + SHIM_VERSION_MINOR_OFFSET, sizeof out->minor);
  return SHIM_OK;
}

int shim_tune_malloc(void) {
#ifdef __GLIBC__
  // 32 MiB is the largest threshold that glibc accepts.
  return mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, 1 << 30) && mallopt(M_TOP_PAD, 256 << 20);
#else
  return 0;
#endif
}
