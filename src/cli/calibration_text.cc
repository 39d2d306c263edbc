#include "cli/calibration_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "cli/lines.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostHeldOut = 16;  // sequences

Error no_tokenizer(const std::string& problem) {
  return make_error(Code::kNotFound,
                    R"({}; without a tokenizer, --calibration takes a .jsonl file of {{"input_ids": [...]}})",
                    problem);
}

// Appends what a line says.
Status read_line(const std::string& line, const Tokenizer* tokenizer, const std::string& problem,
                 std::vector<int32_t>& ids) {
  WH_ASSIGN(const ordered_json object, parse_object(line));
  std::vector<int32_t> more;
  if (object.contains("input_ids")) {
    WH_ASSIGN(more, read_ids(object, "input_ids"));
  } else if (object.contains("text") && object["text"].is_string()) {
    if (tokenizer == nullptr) return no_tokenizer(problem);
    more = tokenizer->encode(object["text"].get<std::string>() + "\n\n", {.parse_special = false});
  } else {
    return make_error(Code::kInvalidArgument, R"(expected {{"text": TEXT}} or {{"input_ids": [...]}})");
  }
  ids.insert(ids.end(), more.begin(), more.end());
  return {};
}

Result<std::vector<int32_t>> read_lines(const std::string& path, const Tokenizer* tokenizer,
                                        const std::string& problem) {
  WH_ASSIGN(LineReader reader, LineReader::open(path));
  std::vector<int32_t> ids;
  for (std::string line; reader.next(line);) {
    const Status status = read_line(line, tokenizer, problem, ids);
    if (!status.ok())
      return make_error(status.error().code, "{}, line {}: {}", path, reader.number(),
                        status.error().message);
  }
  WH_TRY(reader.status());
  return ids;
}

}  // namespace

Result<CalibrationText> read_calibration(const std::string& path, const Tokenizer* tokenizer,
                                         const std::string& problem, const CalibrationSize& size) {
  std::vector<int32_t> ids;
  if (path.ends_with(".jsonl")) {
    WH_ASSIGN(ids, read_lines(path, tokenizer, problem));
  } else {
    if (tokenizer == nullptr) return no_tokenizer(problem);
    WH_ASSIGN(const std::string text, read_all(path));
    ids = tokenizer->encode(text, {.parse_special = false});
  }
  std::vector<int32_t> opening;  // of every sequence, where the model expects it
  if (tokenizer != nullptr && tokenizer->adds_bos() && tokenizer->bos_id())
    opening.push_back(*tokenizer->bos_id());
  Result<CalibrationText> text = cut_calibration(ids, opening, size);
  if (!text.ok()) return make_error(text.error().code, "{}: {}", path, text.error().message);
  return text;
}

Result<CalibrationText> cut_calibration(const std::vector<int32_t>& ids, const std::vector<int32_t>& opening,
                                        const CalibrationSize& size) {
  if (ids.size() < 2)
    return make_error(Code::kInvalidArgument, "{} tokens are too few to calibrate with", ids.size());
  const size_t step = size.length - opening.size();
  std::vector<std::vector<int32_t>> windows;
  for (size_t begin = 0; begin == 0 || begin + step <= ids.size(); begin += step) {
    windows.push_back(opening);
    windows.back().insert(windows.back().end(), ids.begin() + static_cast<ptrdiff_t>(begin),
                          ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), begin + step)));
  }
  // A tenth is kept back even where there is less than was asked for.
  const size_t wanted = std::min(size.samples, std::max<size_t>(1, windows.size() - windows.size() / 10));
  if (wanted < size.samples)
    log_warning("the calibration text gives {} sequences of {} tokens, and {} were asked for", wanted,
                size.length, size.samples);
  CalibrationText text;
  for (size_t i = 0; i < windows.size(); ++i) {
    const bool chosen = (i + 1) * wanted / windows.size() > i * wanted / windows.size();
    (chosen ? text.sequences : text.held_out).push_back(std::move(windows[i]));
  }
  const size_t others = text.held_out.size(), kept = std::min(others, kMostHeldOut);
  for (size_t i = 0; i < kept; ++i) std::swap(text.held_out[i], text.held_out[i * others / kept]);
  text.held_out.resize(kept);
  return text;
}

}  // namespace whippet
