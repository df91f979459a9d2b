#ifndef ANISOFLIGHT_SHIM_H
#define ANISOFLIGHT_SHIM_H

#include <stddef.h>
#include <stdint.h>

// Offsets into PJRT_Api and sizes of PJRT 0.83, which go-xla v0.1.4 was built
// with. header_test.go compares them with the header that go-xla ships.
enum {
  SHIM_VERSION_MAJOR_OFFSET = 32,
  SHIM_VERSION_MINOR_OFFSET = 36,
  SHIM_ERROR_DESTROY_OFFSET = 40,
  SHIM_CLIENT_CREATE_OFFSET = 120,
  SHIM_COMPILE_OFFSET = 200,
  SHIM_EXECUTABLE_DESTROY_OFFSET = 360,
  SHIM_SERIALIZE_OFFSET = 432,
  SHIM_GET_EXECUTABLE_OFFSET = 448,
  SHIM_EXECUTE_OFFSET = 480,
  SHIM_DESERIALIZE_OFFSET = 488,
  SHIM_MEMORY_STATS_OFFSET = 808,
  SHIM_MEMORY_STATS_SIZE = 112,
  SHIM_EXECUTE_OPTIONS_SIZE = 112,
  SHIM_EXECUTE_ARGS_SIZE = 80,
  SHIM_EXECUTE_ARGS_OPTIONS_OFFSET = 24,
};

// Room for the structs of plugins to come.
enum { SHIM_PADDED = 1024 };

// The most plugins one process can load.
enum { SHIM_SLOTS = 4 };

typedef enum {
  SHIM_OK = 0,
  SHIM_DLOPEN_FAILED,  // message holds dlerror's text
  SHIM_NO_SYMBOL,      // the library does not export GetPjrtApi
  SHIM_NULL_API,       // GetPjrtApi returned NULL
  SHIM_TOO_OLD,        // the table ends before the entries that go-xla calls
  SHIM_NO_SLOT,        // SHIM_SLOTS plugins are loaded already
  SHIM_NO_MEMORY,
} shim_status;

typedef struct {
  void* api;  // the patched copy of the function table
  int slot;   // names the plugin to the functions below
  int major, minor;
  char message[512];
} shim_plugin;

// shim_load opens the library and patches a copy of its function table. It is not
// safe for concurrent use. A library that was opened stays open: plugins start
// threads that survive dlclose.
shim_status shim_load(const char* path, shim_plugin* out);

// The arguments of PJRT_Client_Compile, and what of PJRT_Program they point to.
typedef struct {
  size_t size;
  void* extension;
  const char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
} shim_program;
typedef struct {
  size_t size;
  void* extension;
  void* client;
  const shim_program* program;
  const char* options;
  size_t options_size;
  void* executable;  // out
} shim_compile_args;

// shim_compile is the plugin's own PJRT_Client_Compile, given code in place of the
// arguments' own.
void* shim_compile(int slot, shim_compile_args* args, const char* code, size_t code_size);

// shim_deserialize loads an executable from the bytes that a plugin of the same
// build has serialized; NULL where it refuses them.
void* shim_deserialize(int slot, void* client, const char* bytes, size_t size);

// shim_serialize gives an executable's bytes, which live until shim_free. bytes is
// NULL where the plugin cannot serialize it.
typedef struct {
  const char* bytes;
  size_t size;
  void* executable;
  void* serialized;
  void (*deleter)(void*);
} shim_serialized;
void shim_serialize(int slot, void* loaded, shim_serialized* out);
void shim_free(int slot, shim_serialized* s);

// shim_signal is signal(2), except that a handler with SA_SIGINFO stays.
void* shim_signal(int number, void* handler);

// shim_try loads a library, whose symbols no other one sees. It returns NULL, or why that is not possible.
const char* shim_try(const char* path);

// shim_malloc returns the path of the library whose malloc this process has.
const char* shim_malloc(void);

// shim_tune_malloc makes glibc keep freed memory for the next run instead of
// returning it to the kernel and faulting it in again. It does nothing with
// another libc. Returns 1 if it did.
int shim_tune_malloc(void);

// shim_trim_malloc returns freed memory to the kernel, of mimalloc or of glibc.
void shim_trim_malloc(void);

#endif
