/* Runs the functions of compiled libraries without Python, against plain loops in double precision.

     check FOLDER LEVEL     FOLDER/runtime/native/_runtime_LEVEL and its like, as setup.py build_ext leaves them

   What it prints is the same on every system where all is right, so two systems are compared by their outputs; what is
   wrong is said on the standard error, and the exit status is 1. .ci/cross runs it, tests/native/test_check.py too. */

#include "check.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define SUFFIX ".pyd"
#else
#include <dlfcn.h>
#define SUFFIX ".abi3.so"
#endif

int n_wrong;

void *open_library(const char *folder, const char *module) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", folder, module, SUFFIX);
#if defined(_WIN32)
  void *library = LoadLibraryA(path);
  if (!library) fprintf(stderr, "%s: error %lu\n", path, GetLastError());
#else
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL); /* lazily: what it asks of Python is not there */
  if (!library) fprintf(stderr, "%s\n", dlerror());
#endif
  if (!library) exit(2);
  return library;
}

Function function_of(void *library, const char *name) {
#if defined(_WIN32)
  Function function = (Function)(void (*)(void))GetProcAddress(library, name);
#else
  Function function;
  *(void **)&function = dlsym(library, name);
#endif
  if (!function) {
    fprintf(stderr, "there is no %s\n", name);
    exit(2);
  }
  return function;
}

int main(int n_arguments, char **arguments) {
  if (n_arguments != 3) return 2;
  const char *folder = arguments[1], *level = arguments[2];
  char module[256];
  void *cpu = open_library(folder, "instruction_sets/_cpu");
  const int is_portable = !strcmp(level, "portable"), is_of_arm = !strcmp(level, "dotprod") || !strcmp(level, "i8mm");
  snprintf(module, sizeof module, "cpu_has_%s", level);
  if (!is_portable && !((int (*)(void))function_of(cpu, module))()) {
    printf("%s: not on this processor\n", level);
    return 0;
  }
  printf("%s:\n", level);
  snprintf(module, sizeof module, "runtime/native/_runtime_%s", level);
  void *runtime = open_library(folder, module);
  check_product(runtime);
  check_lstm(runtime);
  check_chain(runtime);
  check_flat(runtime);
  check_rows(runtime);
  /* Training has one form for all of ARM. */
  snprintf(module, sizeof module, "nn/native/_kernels_%s", is_of_arm ? "portable" : level);
  check_training(open_library(folder, module));
  check_words();
  return n_wrong != 0;
}
