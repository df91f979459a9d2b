//go:build cgo && linux

#define _GNU_SOURCE
#include "blocks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A library calls the functions of others through a table of their addresses, which the dynamic loader fills in when it
// loads the library: one relocation for each entry, which names the function. What the loader has written there is
// replaced here by the address of another function.

#if defined(__x86_64__)
enum { IN_TABLE = R_X86_64_GLOB_DAT, IN_CALLS = R_X86_64_JUMP_SLOT, IN_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum { IN_TABLE = R_AARCH64_GLOB_DAT, IN_CALLS = R_AARCH64_JUMP_SLOT, IN_DATA = R_AARCH64_ABS64 };
#endif

#if defined(__x86_64__) || defined(__aarch64__)

typedef struct {
  const char* name;
  void* instead;
  int found;
} replacement;

typedef struct {
  ElfW(Addr) base;
  uintptr_t read_only, read_only_end;  // what the loader has made read-only after its relocations
} image;

// A caller of dl_iterate_phdr's: it looks for the image's program headers.
static int find_read_only(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  image* it = data;
  if (info->dlpi_addr != it->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    if (header->p_type != PT_GNU_RELRO) continue;
    it->read_only = it->base + header->p_vaddr;
    it->read_only_end = it->read_only + header->p_memsz;
  }
  return 1;
}

// at returns the address that an entry of the dynamic section means: glibc has added the base to it, others have not.
static void* at(const struct link_map* map, ElfW(Addr) address) {
  return (void*)(address < map->l_addr ? map->l_addr + address : address);
}

// seal gives what the loader has made read-only, to the last whole page, a protection. Returns 0 where it cannot.
static int seal(const image* it, int protection) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = it->read_only / page * page, end = it->read_only_end / page * page;
  return end <= first || mprotect((void*)first, end - first, protection) == 0;
}

// each visits the relocations that name one of the functions; with write it replaces what the loader has put there, which
// must be writable by then. Returns 0 for a library that it cannot read.
static int each(const struct link_map* map, replacement* functions, int n, int write) {
  const char* names = NULL;
  const ElfW(Sym)* symbols = NULL;
  const ElfW(Rela)* tables[2] = {NULL, NULL};
  size_t sizes[2] = {0, 0};
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; d++) {
    switch (d->d_tag) {
      case DT_STRTAB: names = at(map, d->d_un.d_ptr); break;
      case DT_SYMTAB: symbols = at(map, d->d_un.d_ptr); break;
      case DT_RELA: tables[0] = at(map, d->d_un.d_ptr); break;
      case DT_RELASZ: sizes[0] = d->d_un.d_val; break;
      case DT_JMPREL: tables[1] = at(map, d->d_un.d_ptr); break;
      case DT_PLTRELSZ: sizes[1] = d->d_un.d_val; break;
    }
  }
  if (names == NULL || symbols == NULL) return 0;
  for (int t = 0; t < 2; t++) {
    if (tables[t] == NULL) continue;
    for (const ElfW(Rela)* r = tables[t]; (const char*)r < (const char*)tables[t] + sizes[t]; r++) {
      unsigned type = ELF64_R_TYPE(r->r_info), symbol = ELF64_R_SYM(r->r_info);
      if (symbol == 0 || (type != IN_TABLE && type != IN_CALLS && type != IN_DATA)) continue;
      if (symbols[symbol].st_shndx != SHN_UNDEF) continue;  // its own function of that name
      for (int i = 0; i < n; i++) {
        if (strcmp(names + symbols[symbol].st_name, functions[i].name) != 0) continue;
        functions[i].found = 1;
        if (write) memcpy((void*)(map->l_addr + r->r_offset), &functions[i].instead, sizeof(void*));
      }
    }
  }
  return 1;
}

int blocks_serve(void* library) {
  struct link_map* map;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return 0;
  image it = {.base = map->l_addr};
  dl_iterate_phdr(find_read_only, &it);
  // What is given a block comes before what makes them: a block must never reach malloc's.
  enum { RELEASE, RESIZE, SIZE, POSIX, C11, ALL };
  replacement functions[ALL] = {
      [RELEASE] = {.name = "free", .instead = (void*)blocks_free},
      [RESIZE] = {.name = "realloc", .instead = (void*)blocks_realloc},
      [SIZE] = {.name = "malloc_usable_size", .instead = (void*)blocks_usable_size},
      [POSIX] = {.name = "posix_memalign", .instead = (void*)blocks_posix_memalign},
      [C11] = {.name = "aligned_alloc", .instead = (void*)blocks_aligned_alloc},
  };
  replacement others[] = {{.name = "reallocarray"}, {.name = "cfree"}};  // which have no counterpart here
  if (!each(map, functions, ALL, 0) || !each(map, others, 2, 0)) return 0;
  if (!functions[RELEASE].found || !(functions[POSIX].found || functions[C11].found)) return 0;
  if (others[0].found || others[1].found || !blocks_start()) return 0;
  // All is known by now, and once the table can be written nothing fails: it is changed as a whole or not at all.
  if (!seal(&it, PROT_READ | PROT_WRITE)) return 0;
  for (int i = 0; i < ALL; i++) each(map, &functions[i], 1, 1);
  seal(&it, PROT_READ);
  return 1;
}

#else

int blocks_serve(void* library) {
  (void)library;
  return 0;
}

#endif
