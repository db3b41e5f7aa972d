/* Work shared out to threads, a part each: those of POSIX, or those of Windows. */

#ifndef CIGE_THREADS_H
#define CIGE_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define MAX_THREADS 64

#if defined(_WIN32)
#include <process.h>

/* As windows.h declares them, whose many names would meet ours (INT8). */
__declspec(dllimport) unsigned long __stdcall WaitForSingleObject(void *handle, unsigned long milliseconds);
__declspec(dllimport) int __stdcall CloseHandle(void *handle);

typedef struct {
  void *(*work)(void *);
  void *part, *handle;
} Thread;

static unsigned __stdcall begin(void *argument) {
  const Thread *thread = argument;
  thread->work(thread->part);
  return 0;
}

static inline int starts(Thread *thread) { /* the C library's, since work uses it */
  thread->handle = (void *)_beginthreadex(NULL, 0, begin, thread, 0, NULL);
  return thread->handle != NULL;
}

static inline void join(const Thread *thread) {
  WaitForSingleObject(thread->handle, 0xffffffff); /* however long it takes */
  CloseHandle(thread->handle);
}

#else
#include <pthread.h>

typedef struct {
  void *(*work)(void *);
  void *part;
  pthread_t handle;
} Thread;

static inline int starts(Thread *thread) { return !pthread_create(&thread->handle, NULL, thread->work, thread->part); }
static inline void join(const Thread *thread) { pthread_join(thread->handle, NULL); }
#endif

static inline int64_t usable_threads(int64_t asked, int64_t n_tasks) {
  const int64_t most = n_tasks < MAX_THREADS ? n_tasks : MAX_THREADS;
  return asked > most ? most : asked < 1 ? 1 : asked;
}

/* work(part) for n parts of `size` bytes each, or n times for one part if the size is 0; the caller does the first, and
   that of a thread that would not start. */
static inline void in_threads(void *(*work)(void *), void *parts, size_t size, int64_t n) {
  Thread threads[MAX_THREADS];
  int started[MAX_THREADS] = {0};
  for (int64_t t = 1; t < n; t++) {
    threads[t] = (Thread){.work = work, .part = (char *)parts + (size_t)t * size};
    started[t] = starts(threads + t);
  }
  for (int64_t t = 0; t < n; t++)
    if (!started[t]) work((char *)parts + (size_t)t * size);
  for (int64_t t = 1; t < n; t++)
    if (started[t]) join(threads + t);
}

#endif
