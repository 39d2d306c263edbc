#include "cli/generate_lines.h"

#include <utility>
#include <vector>

#include "api/request_output.h"
#include "base/progress.h"
#include "cli/answer_json.h"
#include "cli/answer_queue.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/request_json.h"

namespace whippet {
namespace {

constexpr size_t kMostInFlight = 4096;

Status write_answer(const AnswerQueue::Slot& slot) {
  nlohmann::ordered_json line;
  if (!slot.id.is_null()) line["id"] = slot.id;
  line.update(answer_to_json(slot.output));
  if (!slot.output.error.empty()) line["line"] = slot.line;
  return write_json_line(line);
}

Result<LineRequest> request_of(const std::string& line, const Request& base, bool json) {
  if (json) return read_request(line, base);
  LineRequest result{.request = base, .id = {}};
  result.request.prompt = line;
  return result;
}

// The request on its way, or why it was refused.
Result<uint64_t> submit(Engine& engine, Request request, AnswerQueue& queue, AnswerQueue::Slot* slot) {
  return with_failures([&]() -> Result<uint64_t> {
    return engine.submit(std::move(request), [&queue, slot](const Event& event) {
      append_event(event, slot->output);
      if (event.last) queue.finish(slot);
    });
  });
}

}  // namespace

Result<int> generate_lines(Engine& engine, LineReader& reader, const Request& base, bool json) {
  int exit_code = kExitOk;
  uint64_t written = 0;
  Progress bar("answers", 0, Progress::Unit::kCount);
  AnswerQueue queue(kMostInFlight, [&](const AnswerQueue::Slot& slot) {
    if (!slot.output.error.empty()) exit_code = kExitFailed;
    bar.set(++written);
    return write_answer(slot);
  });
  std::vector<uint64_t> running;
  for (std::string line; reader.next(line);) {
    AnswerQueue::Slot* slot = queue.push();
    if (slot == nullptr) break;
    slot->line = reader.number();
    Result<LineRequest> request = request_of(line, base, json);
    if (request.ok()) slot->id = std::move(request->id);
    const Result<uint64_t> id = request.ok() ? submit(engine, std::move(request->request), queue, slot)
                                             : Result<uint64_t>(request.error());
    if (id.ok()) {
      running.push_back(*id);
      continue;
    }
    slot->output.error = id.error().message;
    queue.finish(slot);
  }
  if (queue.stopped())
    for (const uint64_t id : running) engine.cancel(id);
  WH_TRY(queue.drain());
  WH_TRY(reader.status());
  bar.finish();
  return exit_code;
}

}  // namespace whippet
