#include "cli/chat_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/mailbox.h"
#include "cli/failure.h"
#include "cli/output.h"

namespace whippet {
namespace {

constexpr auto kLookForStop = std::chrono::milliseconds(25);
// Room for an answer: a message that leaves less does not fit.
constexpr int32_t kRoom = 256;
constexpr int32_t kRoomShare = 8;  // of the context, at most one part in so many

}  // namespace

ChatSession::ChatSession(Engine& engine, SamplingParams params, std::string system,
                         std::string template_variables)
    : engine_(engine),
      params_(std::move(params)),
      system_(std::move(system)),
      template_variables_(std::move(template_variables)) {}

std::vector<Message> ChatSession::messages(const std::string& next, size_t without_oldest) const {
  std::vector<Message> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), turns_.begin() + static_cast<std::ptrdiff_t>(2 * without_oldest), turns_.end());
  if (!next.empty()) all.push_back({"user", next});
  return all;
}

Request ChatSession::request(const std::string& next, size_t without_oldest) const {
  Request request;
  request.messages = messages(next, without_oldest);
  request.template_variables_json = template_variables_;
  request.params = params_;
  return request;
}

Result<int32_t> ChatSession::tokens(const std::string& next, size_t without_oldest) const {
  const Request chat = request(next, without_oldest);
  if (chat.messages.empty()) return 0;
  return with_failures(
      [&]() -> Result<int32_t> { return static_cast<int32_t>(engine_.render(chat).second.size()); });
}

Result<size_t> ChatSession::turns_too_many(const std::string& next) const {
  const int32_t room = std::min(kRoom, max_tokens() / kRoomShare);
  int32_t needed = 0;
  for (size_t dropped = 0; dropped <= num_turns(); ++dropped) {
    WH_ASSIGN(needed, tokens(next, dropped));
    if (needed + room <= max_tokens()) return dropped;
  }
  return make_error(
      Code::kInvalidArgument,
      "this message alone takes {} of the {} tokens of the context, and an answer needs {}: shorten "
      "it, or give more with --max-model-len",
      needed, max_tokens(), room);
}

void ChatSession::drop_oldest(size_t turns) {
  turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(2 * turns));
}

// Whether the answer may think; what marks the thinking is then in its text, and a grammar waits for its end.
Result<openai::Thinking> ChatSession::thinking_of(Request& asked) const {
  return with_failures([&]() -> Result<openai::Thinking> {
    std::vector<int32_t>& kept = asked.params.kept_special_token_ids;
    for (const std::string_view mark : {openai::kThinkOpen, openai::kThinkClose}) {
      const std::vector<int32_t> ids = engine_.encode(std::string(mark));
      if (ids.size() != 1) return openai::Thinking::kNever;
      kept.push_back(ids.front());
    }
    const openai::Thinking thinking = openai::thinking_after(engine_.render(asked).first);
    if (asked.params.structured_outputs && thinking != openai::Thinking::kNever)
      asked.params.structured_outputs->after = openai::kThinkClose;
    return thinking;
  });
}

Result<ChatAnswer> ChatSession::ask(const std::string& message, const Sinks& sinks,
                                    const std::function<bool()>& stop) {
  Mailbox<Event> events;
  Request asked = request(message, 0);
  WH_ASSIGN(const openai::Thinking thinking, thinking_of(asked));
  const auto submitted = with_failures([&]() -> Result<uint64_t> {
    return engine_.submit(std::move(asked), [&](const Event& event) { events.push(event); });
  });
  if (!submitted.ok()) return submitted.error();
  ChatAnswer answer;
  openai::ReasoningParser parser(thinking);
  Status status;
  bool cancelled = false;
  std::vector<Event> batch;
  for (bool done = false; !done;) {
    events.take(batch, std::chrono::steady_clock::now() + kLookForStop);
    for (const Event& event : batch) {
      std::string thought, text;
      parser.push(event.text, thought, text);
      if (event.last) parser.finish(thought, text);
      answer.thinking += thought;
      answer.text += text;
      if (status.ok() && !cancelled && !thought.empty()) status = sinks.on_thinking(thought);
      if (status.ok() && !cancelled && !text.empty()) status = sinks.on_text(text);
      if (!event.error.empty()) status = make_error(Code::kUnavailable, "{}", event.error);
      if (!event.last) continue;
      done = true;
      answer.finish_reason = event.finish_reason;
      answer.usage = event.usage;
      answer.timing = event.timing;
    }
    if (!done && !cancelled && (!status.ok() || stop())) {
      engine_.cancel(*submitted);
      cancelled = true;
    }
  }
  if (!status.ok()) return status.error();
  turns_.push_back({"user", message});
  turns_.push_back({"assistant", answer.text});
  return answer;
}

std::string ChatSession::to_json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Message& message : messages("", 0))
    list.push_back({{"role", message.role}, {"content", message.content}});
  return json_text({{"messages", list}}) + "\n";
}

}  // namespace whippet
