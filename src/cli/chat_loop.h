// The terminal chat around a ChatSession: prompt, slash commands, streaming, Ctrl-C, a full context.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/chat_session.h"
#include "cli/interrupts.h"
#include "cli/line_editor.h"

namespace whippet {

class ChatLoop {
 public:
  // All must outlive the loop. stats: print counts and times after each answer.
  ChatLoop(ChatSession& session, LineEditor& editor, Interrupts& interrupts, bool stats);

  // One message and its answer, for scripts. An error where it does not fit.
  Status once(const std::string& message);
  // Until Ctrl-D, /bye or the end of the input.
  Status run();

 private:
  enum class Next { kGoOn, kLeave };

  Result<Next> obey(const std::string& line);
  void save(const std::string& path) const;
  // Whether the message can go now: asks before the oldest turns are dropped.
  Result<bool> make_room(const std::string& message);
  Status answer(const std::string& message);
  Status show_thought(const std::string& text);
  void end_thought();
  void switch_thinking();
  void set_system(const std::string& text);
  void switch_json(const std::string& schema);
  std::string prompt() const;

  ChatSession& session_;
  LineEditor& editor_;
  Interrupts& interrupts_;
  bool stats_;
  int32_t used_ = 0;  // tokens of the context, as of the last answer
  bool shows_thinking_ = false;
  // Of the last answer: its thinking, and since when it goes on.
  std::string thinking_;
  std::optional<std::chrono::steady_clock::time_point> thinks_since_;
};

}  // namespace whippet
