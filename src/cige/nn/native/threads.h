/* Work shared out to threads, a part each. */

#ifndef CIGE_THREADS_H
#define CIGE_THREADS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_THREADS 64

static inline int64_t usable_threads(int64_t asked, int64_t n_tasks) {
  const int64_t most = n_tasks < MAX_THREADS ? n_tasks : MAX_THREADS;
  return asked > most ? most : asked < 1 ? 1 : asked;
}

/* work(part) for n parts of `size` bytes each; the caller does the first, and that of a thread that would not start. */
static inline void in_threads(void *(*work)(void *), void *parts, size_t size, int64_t n) {
  pthread_t threads[MAX_THREADS];
  int started[MAX_THREADS] = {0};
  for (int64_t t = 1; t < n; t++) started[t] = !pthread_create(&threads[t], NULL, work, (char *)parts + t * size);
  for (int64_t t = 0; t < n; t++)
    if (!started[t]) work((char *)parts + t * size);
  for (int64_t t = 1; t < n; t++)
    if (started[t]) pthread_join(threads[t], NULL);
}

#endif
