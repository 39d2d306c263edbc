// Tells the core that this thread is spinning.
#pragma once

namespace whippet::cpu {

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace whippet::cpu
