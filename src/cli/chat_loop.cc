#include "cli/chat_loop.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cli/output.h"
#include "cli/structured_options.h"

namespace whippet {
namespace {

constexpr const char* kHelp = R"(  /help            this list
  /system TEXT     set the system message and start anew; alone: show it
  /reset           start anew
  /save FILE       write the chat as JSON
  /json [FILE]     answer in JSON, valid by the schema in FILE where one is named; again: as it likes
  /think           show or fold what the model thinks before it answers
  /stats           show or hide counts and times after each answer
  /bye, Ctrl-D     leave
  Ctrl-C           stop the answer
  A line that ends in \ goes on; """ opens and closes a message of several lines; arrow up: earlier messages.
)";

// What people see and no script wants.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
}

bool speaks_to_terminal() { return ::isatty(STDERR_FILENO) == 1; }

std::string dimmed(const std::string& text) {
  return speaks_to_terminal() ? "\x1b[2m" + text + "\x1b[0m" : text;
}

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string stats_line(const ChatAnswer& answer) {
  const Usage& usage = answer.usage;
  const double decode = answer.timing.finished - answer.timing.first_token;
  const double speed = usage.completion_tokens > 1 && decode > 0 ? (usage.completion_tokens - 1) / decode : 0;
  return fmt::format(
      "[prompt {} tokens ({} cached), answer {} tokens, first token after {:.0f} ms, {:.1f} tokens/s]\n",
      usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, answer.timing.first_token * 1e3,
      speed);
}

}  // namespace

ChatLoop::ChatLoop(ChatSession& session, LineEditor& editor, Interrupts& interrupts, bool stats)
    : session_(session), editor_(editor), interrupts_(interrupts), stats_(stats) {}

std::string ChatLoop::prompt() const { return fmt::format("{}/{} > ", used_, session_.max_tokens()); }

Status ChatLoop::answer(const std::string& message) {
  std::string last;
  const auto print = [&](const std::string& text) {
    end_thought();
    last = text;
    return write_output(text);
  };
  const auto think = [&](const std::string& text) { return show_thought(text); };
  interrupts_.take();
  thinking_.clear();
  thinks_since_.reset();
  const Result<ChatAnswer> asked =
      session_.ask(message, {.on_text = print, .on_thinking = think}, [this] { return interrupts_.take(); });
  end_thought();
  if (!asked.ok()) return asked.error();
  const ChatAnswer& answer = *asked;
  if (!last.ends_with('\n')) WH_TRY(write_output("\n"));
  used_ = answer.usage.prompt_tokens + answer.usage.completion_tokens;
  if (answer.finish_reason == "abort") say("[stopped]\n");
  if (answer.finish_reason == "length")
    say("{}", used_ >= session_.max_tokens() ? "[the context is full: the answer ends here]\n"
                                             : "[the answer reached --max-tokens]\n");
  if (stats_) say("{}", stats_line(answer));
  return {};
}

// To people alone: folded, a line says that something goes on.
Status ChatLoop::show_thought(const std::string& text) {
  const bool begins = !thinks_since_;
  if (begins) thinks_since_ = std::chrono::steady_clock::now();
  thinking_ += text;
  if (shows_thinking_) {
    say("{}", dimmed(text));
  } else if (begins && speaks_to_terminal()) {
    say("{}", dimmed("[thinking...]"));
  }
  return {};
}

void ChatLoop::end_thought() {
  if (!thinks_since_) return;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - *thinks_since_;
  thinks_since_.reset();
  if (shows_thinking_) {
    say("\n\n");
  } else if (speaks_to_terminal()) {
    say("\r\x1b[K{}\n", dimmed(fmt::format("[thought for {:.1f} s; /think shows it]", time.count())));
  }
}

void ChatLoop::switch_thinking() {
  shows_thinking_ = !shows_thinking_;
  say("What the model thinks is {}.\n", shows_thinking_ ? "shown" : "folded");
  if (shows_thinking_ && !thinking_.empty()) say("{}\n", dimmed(thinking_));
}

Status ChatLoop::once(const std::string& message) {
  WH_TRY(session_.turns_too_many(message));
  return answer(message);
}

Result<bool> ChatLoop::make_room(const std::string& message) {
  const Result<size_t> too_many = session_.turns_too_many(message);
  if (!too_many.ok()) {
    if (!editor_.interactive()) return too_many.error();
    say("{}\n", too_many.error().message);
    return false;
  }
  if (*too_many == 0) return true;
  WH_ASSIGN(const int32_t all, session_.tokens(message));
  WH_ASSIGN(const int32_t rest, session_.tokens(message, *too_many));
  const std::string full =
      fmt::format("context is full: this chat takes {} of {} tokens, and an answer needs room", all,
                  session_.max_tokens());
  if (!editor_.interactive()) return make_error(Code::kResourceExhausted, "the {}", full);
  say("The {}.\n", full);
  const std::string question =
      fmt::format("Drop the oldest {} ({} tokens) and go on? [Y/n] ",
                  *too_many == 1 ? "turn" : fmt::format("{} turns", *too_many), all - rest);
  std::string reply;
  const auto outcome = editor_.ask(question, reply);
  reply = trim(reply);
  if (outcome != LineEditor::Outcome::kMessage || (!reply.empty() && reply[0] != 'y' && reply[0] != 'Y')) {
    say("Nothing was sent. /reset starts anew, /save FILE keeps the chat.\n");
    return false;
  }
  session_.drop_oldest(*too_many);
  return true;
}

void ChatLoop::save(const std::string& path) const {
  if (path.empty()) return say("Where to? /save FILE\n");
  std::ofstream file(path, std::ios::binary);
  file << session_.to_json();
  file.close();
  if (file) {
    say("Saved {} turns to {}.\n", session_.num_turns(), path);
  } else {
    say("{} cannot be written: {}\n", path, std::strerror(errno));
  }
}

void ChatLoop::set_system(const std::string& text) {
  if (text.empty()) {
    return session_.system().empty()
               ? say("There is no system message; the model's template may have its own.\n")
               : say("{}\n", session_.system());
  }
  session_.set_system(text);
  session_.reset();
  used_ = 0;
  say("The system message is set; the chat starts anew.\n");
}

void ChatLoop::switch_json(const std::string& schema) {
  if (schema.empty() && session_.structured()) {
    session_.set_structured(std::nullopt);
    return say("Answers are free again.\n");
  }
  StructuredOutputs asked;
  asked.json_object = schema.empty();
  if (!schema.empty()) {
    const Result<std::string> text = schema_text(schema);
    if (!text.ok()) return say("{}\n", text.error().message);
    asked.json = *text;
  }
  session_.set_structured(std::move(asked));
  say("Answers are JSON{}; /json alone ends that.\n", schema.empty() ? "" : " by that schema");
}

Result<ChatLoop::Next> ChatLoop::obey(const std::string& line) {
  const size_t space = line.find_first_of(" \t\n");
  const std::string command = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : trim(line.substr(space));
  if (command == "/bye" || command == "/exit" || command == "/quit") return Next::kLeave;
  if (command == "/help" || command == "/?") {
    say("{}", kHelp);
  } else if (command == "/reset" || command == "/clear") {
    session_.reset();
    used_ = 0;
    say("The chat starts anew.\n");
  } else if (command == "/system") {
    set_system(rest);
  } else if (command == "/save") {
    save(rest);
  } else if (command == "/json") {
    switch_json(rest);
  } else if (command == "/think") {
    switch_thinking();
  } else if (command == "/stats") {
    stats_ = !stats_;
    say("Counts and times are {}.\n", stats_ ? "shown" : "hidden");
  } else {
    say("{} is no command: /help lists them. To send a message that begins with a slash, put a space before "
        "it.\n",
        command);
  }
  return Next::kGoOn;
}

Status ChatLoop::run() {
  std::string line;
  for (;;) {
    const LineEditor::Outcome outcome = editor_.read(editor_.interactive() ? prompt() : "", line);
    if (outcome == LineEditor::Outcome::kEnd) return {};
    if (outcome == LineEditor::Outcome::kInterrupted) {
      say("Ctrl-D or /bye leaves.\n");
      continue;
    }
    const std::string message = trim(line);
    if (message.empty()) continue;
    if (line[0] == '/') {
      WH_ASSIGN(const Next next, obey(message));
      if (next == Next::kLeave) return {};
      continue;
    }
    WH_ASSIGN(const bool fits, make_room(message));
    if (!fits) continue;
    const Status status = answer(message);
    if (status.ok()) continue;
    if (status.error().code == Code::kCancelled || !editor_.interactive()) return status;
    say("{}\n", status.error().message);
  }
}

}  // namespace whippet
