#include "grammar/rules.h"

#include "base/check.h"

namespace whippet::grammar {
namespace {

void append_point(std::string& out, uint32_t point) {
  const bool plain =
      (point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z') || (point >= '0' && point <= '9');
  if (plain) {
    out += static_cast<char>(point);
  } else if (point <= 0xFFFF) {
    out += fmt::format("\\u{:04x}", point);
  } else {
    out += fmt::format("\\U{:08x}", point);
  }
}

}  // namespace

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      append_point(out, static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string character_class(const CodePoints& points) {
  WH_CHECK(!points.empty());
  std::string out = "[";
  for (const auto& [first, last] : points.ranges()) {
    append_point(out, first);
    if (last == first) continue;
    out += '-';
    append_point(out, last);
  }
  return out + "]";
}

std::string sequence(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty() || part == "\"\"") continue;
    if (!out.empty()) out += ' ';
    out += part;
  }
  return out.empty() ? "\"\"" : out;
}

std::string choices(const std::vector<std::string>& parts) {
  WH_CHECK(!parts.empty());
  if (parts.size() == 1) return group(parts[0]);
  std::string out = "(";
  for (size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : " | ") + parts[i];
  return out + ")";
}

std::string repeat(const std::string& part, int64_t low, int64_t high) {
  if (high == 0 || part == "\"\"") return "\"\"";
  if (low == 1 && high == 1) return part;
  const std::string atom = group(part);
  if (low == 0 && high == 1) return atom + "?";
  if (low == 0 && high < 0) return atom + "*";
  if (low == 1 && high < 0) return atom + "+";
  if (high < 0) return fmt::format("{}{{{},}}", atom, low);
  return fmt::format("{}{{{},{}}}", atom, low, high);
}

std::string group(const std::string& text) {
  const bool atom = text.find_first_of(" |()\"[") == std::string::npos ||
                    (text.front() == '[' && text.find(']') == text.size() - 1);
  return atom ? text : "(" + text + ")";
}

std::string Rules::add(std::string_view hint, std::string body) {
  std::string name = reserve(hint);
  define(name, std::move(body));
  return name;
}

std::string Rules::reserve(std::string_view hint) { return fmt::format("{}_{}", hint, ++serial_); }

void Rules::define(const std::string& name, std::string body) {
  if (bodies_.size() > most_ || bytes_ > most_bytes_) return;  // check() tells
  bytes_ += name.size() + body.size();
  if (bodies_.emplace(name, std::move(body)).second) order_.push_back(name);
}

void Rules::redefine(const std::string& name, std::string body) {
  const auto found = bodies_.find(name);
  if (found == bodies_.end()) return;  // there were too many: check() tells
  bytes_ += body.size();
  found->second = std::move(body);
}

Status Rules::check() const {
  if (bodies_.size() > most_) {
    return make_error(Code::kInvalidArgument, "it takes more than {} grammar rules: make it smaller", most_);
  }
  if (bytes_ > most_bytes_) {
    return make_error(Code::kInvalidArgument, "it takes a grammar of more than {} bytes: make it smaller",
                      most_bytes_);
  }
  return {};
}

std::string Rules::text(const std::string& root_body) const {
  std::string out = "root ::= " + root_body + "\n";
  for (const std::string& name : order_) out += name + " ::= " + bodies_.at(name) + "\n";
  return out;
}

}  // namespace whippet::grammar
