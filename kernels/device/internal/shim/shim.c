//go:build cgo && linux

#define _GNU_SOURCE  // RTLD_DEFAULT, dladdr

#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

typedef void* (*pjrt_call)(void* args);  // every entry takes one struct and returns an error or NULL

static struct {
  pjrt_call create, memory_stats, execute, compile, deserialize, serialize, get_executable, executable_destroy,
      error_destroy;
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

// without_signals calls f with all signals blocked but those of faults. The threads that f starts inherit that, so that
// no handler of Go's ever runs on their stacks: where one interrupts a matrix kernel of oneDNN, its frame overwrites
// the heap (TestPluginsThreadsTakeNoSignals).
static void* without_signals(pjrt_call f, void* args) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  void* err = f(args);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return err;
}

static void* create(int slot, void* args) { return without_signals(slots[slot].create, args); }

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

extern void* shimCompile(int slot, void* args);  // in cache.go: shim_compile behind the cache

void* shim_compile(int slot, shim_compile_args* args, const char* code, size_t code_size) {
  const shim_program* given = args->program;
  shim_program own = *given;
  own.code = code;
  own.code_size = code_size;
  args->program = &own;
  void* err = without_signals(slots[slot].compile, args);
  args->program = given;
  return err;
}

// succeeded frees the error that a call may have returned.
static int succeeded(int slot, void* error) {
  if (error == NULL) return 1;
  struct {
    size_t size;
    void *extension, *error;
  } args = {sizeof args, NULL, error};
  slots[slot].error_destroy(&args);
  return 0;
}

void* shim_deserialize(int slot, void* client, const char* bytes, size_t size) {
  union {
    struct {
      size_t size;
      void *extension, *client;
      const char* bytes;
      size_t bytes_size;
      void* loaded;  // out
    } args;
    unsigned char padded[SHIM_PADDED];
  } u;
  memset(&u, 0, sizeof u);
  u.args.size = sizeof u;
  u.args.client = client;
  u.args.bytes = bytes;
  u.args.bytes_size = size;
  return succeeded(slot, without_signals(slots[slot].deserialize, &u)) ? u.args.loaded : NULL;
}

static void destroy_executable(int slot, void* executable) {
  struct {
    size_t size;
    void *extension, *executable;
  } args = {sizeof args, NULL, executable};
  succeeded(slot, slots[slot].executable_destroy(&args));
}

void shim_serialize(int slot, void* loaded, shim_serialized* out) {
  memset(out, 0, sizeof *out);
  struct {
    size_t size;
    void *extension, *loaded, *executable;
  } get = {sizeof get, NULL, loaded, NULL};
  if (!succeeded(slot, slots[slot].get_executable(&get))) return;
  struct {
    size_t size;
    void *extension, *executable;
    const char* bytes;
    size_t bytes_size;
    void* serialized;
    void (*deleter)(void*);
  } args = {sizeof args, NULL, get.executable, NULL, 0, NULL, NULL};
  if (!succeeded(slot, slots[slot].serialize(&args))) {
    destroy_executable(slot, get.executable);
    return;
  }
  *out = (shim_serialized){args.bytes, args.bytes_size, get.executable, args.serialized, args.deleter};
}

void shim_free(int slot, shim_serialized* s) {
  if (s->bytes == NULL) return;
  s->deleter(s->serialized);
  destroy_executable(slot, s->executable);
}

#define SLOT(n)                                                          \
  static void* create_##n(void* args) { return create(n, args); }       \
  static void* memory_stats_##n(void* args) { return memory_stats(n, args); } \
  static void* execute_##n(void* args) { return execute(n, args); }     \
  static void* compile_##n(void* args) { return shimCompile(n, args); }
SLOT(0)
SLOT(1)
SLOT(2)
SLOT(3)
static const pjrt_call create_of[SHIM_SLOTS] = {create_0, create_1, create_2, create_3};
static const pjrt_call memory_stats_of[SHIM_SLOTS] = {memory_stats_0, memory_stats_1, memory_stats_2, memory_stats_3};
static const pjrt_call execute_of[SHIM_SLOTS] = {execute_0, execute_1, execute_2, execute_3};
static const pjrt_call compile_of[SHIM_SLOTS] = {compile_0, compile_1, compile_2, compile_3};

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
  const struct {
    size_t offset;
    pjrt_call* own;       // where the plugin's entry is kept
    pjrt_call instead;    // what the copy holds; NULL: the plugin's own
  } entries[] = {
      {SHIM_CLIENT_CREATE_OFFSET, &slots[slot].create, create_of[slot]},
      {SHIM_MEMORY_STATS_OFFSET, &slots[slot].memory_stats, memory_stats_of[slot]},
      {SHIM_EXECUTE_OFFSET, &slots[slot].execute, execute_of[slot]},
      {SHIM_COMPILE_OFFSET, &slots[slot].compile, compile_of[slot]},
      {SHIM_DESERIALIZE_OFFSET, &slots[slot].deserialize, NULL},
      {SHIM_SERIALIZE_OFFSET, &slots[slot].serialize, NULL},
      {SHIM_GET_EXECUTABLE_OFFSET, &slots[slot].get_executable, NULL},
      {SHIM_EXECUTABLE_DESTROY_OFFSET, &slots[slot].executable_destroy, NULL},
      {SHIM_ERROR_DESTROY_OFFSET, &slots[slot].error_destroy, NULL},
  };
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    memcpy(entries[i].own, copy + entries[i].offset, sizeof(void*));
    if (entries[i].instead != NULL) memcpy(copy + entries[i].offset, &entries[i].instead, sizeof(void*));
  }

  out->api = copy;
  out->slot = slot;
  memcpy(&out->major, copy + SHIM_VERSION_MAJOR_OFFSET, sizeof out->major);
  memcpy(&out->minor, copy + SHIM_VERSION_MINOR_OFFSET, sizeof out->minor);
  return SHIM_OK;
}

void* shim_signal(int number, void* handler) {
  struct sigaction now, next = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
  if (sigaction(number, NULL, &now) != 0) return SIG_ERR;
  if ((now.sa_flags & SA_SIGINFO) == 0 && sigaction(number, &next, NULL) != 0) return SIG_ERR;
  return now.sa_handler;
}

const char* shim_try(const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL ? dlerror() : NULL; }

const char* shim_malloc(void) {
  Dl_info info;
  return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0 ? info.dli_fname : "";
}

int shim_tune_malloc(void) {
#ifdef __GLIBC__
  // 32 MiB is the largest threshold that glibc accepts.
  return mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, 1 << 30) && mallopt(M_TOP_PAD, 256 << 20);
#else
  return 0;
#endif
}

void shim_trim_malloc(void) {
  void (*init)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "mi_thread_init");
  void (*collect)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "mi_collect");
  if (init != NULL && collect != NULL) {
    init();  // in a thread that has allocated nothing, mi_collect returns at once
    collect(true);
  }
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
