// Ctrl-C as a question that can be asked instead of a signal that strikes, while this object lives. Made
// before the engine, so that its threads leave SIGINT alone.
#pragma once

#include <csignal>

namespace whippet {

class Interrupts {
 public:
  Interrupts();   // blocks SIGINT in this thread and those it starts
  ~Interrupts();  // as before; a Ctrl-C that nobody asked for is dropped
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether Ctrl-C was pressed since the last call.
  bool take();

  // Lets Ctrl-C end a blocking read of this thread with EINTR, while this object lives.
  class Window {
   public:
    Window();
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    struct sigaction before_;
  };

 private:
  sigset_t before_;
};

}  // namespace whippet
