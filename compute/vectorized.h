// RANKLAB_VECTORIZED: a function of its own for every instruction set, chosen when the program is
// loaded. Sanitizers start later than that choice, so that they get the plain one.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define RANKLAB_VECTORIZED \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define RANKLAB_VECTORIZED
#endif
