/* Which levels of instruction sets this processor can run; compiled for the portable level alone. */

#include "../nn/native/processor.h"

#if defined(__x86_64__)
int cpu_has_avx2(void) { return processor_has_avx2(); }
int cpu_has_avx512(void) { return processor_has_avx512(); }
#else
int cpu_has_avx2(void) { return 0; }
int cpu_has_avx512(void) { return 0; }
#endif

/* On ARM only the operating system may ask the processor, and each of them has its own way to say what it found. */
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
int cpu_has_dotprod(void) { return (int)(getauxval(AT_HWCAP) >> 20 & 1); } /* HWCAP_ASIMDDP */
int cpu_has_i8mm(void) {
  const unsigned long more = getauxval(AT_HWCAP2);
  return cpu_has_dotprod() && more >> 13 & 1 && more >> 14 & 1; /* HWCAP2_I8MM, HWCAP2_BF16 */
}
#elif defined(__aarch64__) && defined(__APPLE__)
#include <stddef.h>
#include <sys/sysctl.h>
static int has(const char *feature) {
  int value = 0;
  size_t size = sizeof(value);
  return sysctlbyname(feature, &value, &size, NULL, 0) == 0 && value;
}
int cpu_has_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
int cpu_has_i8mm(void) {
  return cpu_has_dotprod() && has("hw.optional.arm.FEAT_I8MM") && has("hw.optional.arm.FEAT_BF16");
}
#elif defined(__aarch64__) && defined(_WIN32)
#include <windows.h>
int cpu_has_dotprod(void) { return IsProcessorFeaturePresent(43) != 0; } /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
int cpu_has_i8mm(void) { /* PF_ARM_V82_I8MM_ and PF_ARM_V86_BF16_INSTRUCTIONS_AVAILABLE, which older headers lack */
  return cpu_has_dotprod() && IsProcessorFeaturePresent(66) && IsProcessorFeaturePresent(68);
}
#else
int cpu_has_dotprod(void) { return 0; }
int cpu_has_i8mm(void) { return 0; }
#endif
