#include "cli/line_editor.h"

#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <utility>

#include "cli/interrupts.h"

namespace whippet {
namespace {

constexpr int kRemembered = 1000;  // messages
constexpr const char* kPasteOn = "\x1b[?2004h";
constexpr const char* kPasteOff = "\x1b[?2004l";
constexpr const wchar_t* kPasteEnd = L"\x1b[201~";
constexpr const char* kBlock = "\"\"\"";

struct Key {
  const char* sequence;
  const char* function;
};
constexpr Key kKeys[] = {
    {"\x1b[H", "ed-move-to-beg"},       {"\x1b[F", "ed-move-to-end"},  {"\x1b[1~", "ed-move-to-beg"},
    {"\x1b[4~", "ed-move-to-end"},      {"\x1bOH", "ed-move-to-beg"},  {"\x1bOF", "ed-move-to-end"},
    {"\x1b[3~", "ed-delete-next-char"}, {"\x1b[1;5D", "ed-prev-word"}, {"\x1b[1;5C", "em-next-word"},
    {"^R", "em-inc-search-prev"},       {"\x1b[200~", "whippet-paste"}};

// What the terminal brackets as pasted goes into the line as it is, its line ends included.
unsigned char insert_paste(EditLine* editor, int) {
  std::wstring text;
  wchar_t c = 0;
  while (!text.ends_with(kPasteEnd) && el_wgetc(editor, &c) == 1) text += c == L'\r' ? L'\n' : c;
  if (text.ends_with(kPasteEnd)) text.resize(text.size() - std::wstring(kPasteEnd).size());
  while (text.ends_with(L'\n')) text.pop_back();
  el_winsertstr(editor, text.c_str());
  return CC_REFRESH;
}

bool closes_block(std::string_view line) {
  const size_t end = line.find_last_not_of(" \t");
  return end != std::string_view::npos && line.substr(0, end + 1).ends_with(kBlock);
}

}  // namespace

struct LineEditor::Impl {
  std::filesystem::path history_file;
  EditLine* editor = nullptr;  // nullptr: plain reading
  History* history = nullptr;
  std::string prompt;

  Outcome read_line(const std::string& shown, std::string& line);
  void remember(const std::string& message);
};

LineEditor::LineEditor(std::filesystem::path history) : impl_(std::make_unique<Impl>()) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return;
  impl_->history_file = std::move(history);
  impl_->editor = el_init("whippet", stdin, stderr, stderr);
  if (impl_->editor == nullptr) return;
  EditLine* editor = impl_->editor;
  impl_->history = history_init();
  HistEvent event;
  ::history(impl_->history, &event, H_SETSIZE, kRemembered);
  ::history(impl_->history, &event, H_SETUNIQUE, 1);
  if (!impl_->history_file.empty()) ::history(impl_->history, &event, H_LOAD, impl_->history_file.c_str());
  el_set(editor, EL_CLIENTDATA, impl_.get());
  el_set(
      editor, EL_PROMPT, +[](EditLine* el) {
        void* data = nullptr;
        el_get(el, EL_CLIENTDATA, &data);
        return static_cast<Impl*>(data)->prompt.data();
      });
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1);
  el_set(editor, EL_HIST, ::history, impl_->history);
  el_set(editor, EL_ADDFN, "whippet-paste", "Insert pasted text", insert_paste);
  for (const Key& key : kKeys) el_set(editor, EL_BIND, key.sequence, key.function, nullptr);
  el_source(editor, nullptr);
}

LineEditor::~LineEditor() {
  if (impl_->editor == nullptr) return;
  el_end(impl_->editor);
  history_end(impl_->history);
}

bool LineEditor::interactive() const { return impl_->editor != nullptr; }

LineEditor::Outcome LineEditor::Impl::read_line(const std::string& shown, std::string& line) {
  if (editor == nullptr) return std::getline(std::cin, line) ? Outcome::kMessage : Outcome::kEnd;
  prompt = shown;
  std::fputs(kPasteOn, stderr);
  int length = 0;
  errno = 0;
  const char* typed = nullptr;
  {
    const Interrupts::Window window;
    typed = el_gets(editor, &length);
  }
  const bool interrupted = typed == nullptr && length < 0 && errno == EINTR;
  std::fputs(kPasteOff, stderr);
  if (typed != nullptr) {
    line.assign(typed, static_cast<size_t>(length));
    if (line.ends_with('\n')) line.pop_back();
    return Outcome::kMessage;
  }
  std::fputs("\n", stderr);
  return interrupted ? Outcome::kInterrupted : Outcome::kEnd;
}

void LineEditor::Impl::remember(const std::string& message) {
  if (history == nullptr || message.empty()) return;
  HistEvent event;
  ::history(history, &event, H_ENTER, message.c_str());
  if (history_file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(history_file.parent_path(), ignored);
  const mode_t before = ::umask(S_IRWXG | S_IRWXO);  // what people type is theirs alone
  ::history(history, &event, H_SAVE, history_file.c_str());
  ::umask(before);
}

LineEditor::Outcome LineEditor::read(const std::string& shown, std::string& message) {
  Outcome outcome = impl_->read_line(shown, message);
  if (outcome != Outcome::kMessage) return outcome;
  const std::string more = std::string(shown.size() > 4 ? shown.size() - 4 : 0, ' ') + "... ";
  std::string line;
  if (message.starts_with(kBlock)) {
    message.erase(0, 3);
    while (!closes_block(message)) {
      outcome = impl_->read_line(more, line);
      if (outcome == Outcome::kInterrupted) return outcome;
      if (outcome == Outcome::kEnd) break;
      message += "\n" + line;
    }
    if (closes_block(message)) message.erase(message.rfind(kBlock));
    if (message.starts_with('\n')) message.erase(0, 1);
    if (message.ends_with('\n')) message.pop_back();
  }
  while (message.ends_with('\\')) {
    message.back() = '\n';
    outcome = impl_->read_line(more, line);
    if (outcome == Outcome::kInterrupted) return outcome;
    if (outcome == Outcome::kEnd) break;
    message += line;
  }
  impl_->remember(message);
  return Outcome::kMessage;
}

LineEditor::Outcome LineEditor::ask(const std::string& question, std::string& answer) {
  return impl_->read_line(question, answer);
}

}  // namespace whippet
