/* Which levels of instruction sets this processor can run; compiled for the portable level alone. */

#include "../nn/native/processor.h"

#if defined(__x86_64__)
int cpu_has_avx2(void) { return processor_has_avx2(); }
int cpu_has_avx512(void) { return processor_has_avx512(); }
#else
int cpu_has_avx2(void) { return 0; }
int cpu_has_avx512(void) { return 0; }
#endif
