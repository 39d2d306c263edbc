#include "cli/interrupts.h"

#include <ctime>

namespace whippet {
namespace {

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

Interrupts::~Interrupts() {
  take();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::take() {
  const sigset_t set = interrupt_set();
  const timespec at_once{};
  bool pressed = false;
  while (sigtimedwait(&set, nullptr, &at_once) == SIGINT) pressed = true;
  return pressed;
}

Interrupts::Window::Window() {
  struct sigaction nothing = {};
  nothing.sa_handler = [](int) {};  // no SA_RESTART: the read ends
  sigaction(SIGINT, &nothing, &before_);
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Interrupts::Window::~Window() {
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  sigaction(SIGINT, &before_, nullptr);
}

}  // namespace whippet
