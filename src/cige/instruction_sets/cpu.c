/* Which levels of instruction sets this processor can run; compiled for the portable level alone. */

#if defined(__GNUC__) && defined(__x86_64__)
/* The operating system's part (whether it saves wide registers) is asked for too. */
int cpu_has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
int cpu_has_avx512(void) {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#else
int cpu_has_avx2(void) { return 0; }
int cpu_has_avx512(void) { return 0; }
#endif
