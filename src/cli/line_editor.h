// Lines that people type, edited with libedit where standard input is a terminal and read as they are
// otherwise. Messages of several lines: a line that ends in \ goes on, """ opens and closes a block, and a
// pasted text is one message. One thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace whippet {

class LineEditor {
 public:
  enum class Outcome { kMessage, kInterrupted, kEnd };

  // history: the file that keeps what was typed, or empty.
  explicit LineEditor(std::filesystem::path history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  bool interactive() const;
  // One message. kInterrupted: Ctrl-C; kEnd: Ctrl-D on an empty line, or the end of the input.
  Outcome read(const std::string& prompt, std::string& message);
  // One line that is no message and is not remembered.
  Outcome ask(const std::string& question, std::string& answer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet
