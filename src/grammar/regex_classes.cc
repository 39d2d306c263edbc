#include "grammar/regex_classes.h"

#include <string>

namespace whippet::grammar {
namespace {

const CodePoints& digits() {
  static const CodePoints kDigits{{'0', '9'}};
  return kDigits;
}
const CodePoints& words() {
  static const CodePoints kWords{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return kWords;
}
const CodePoints& spaces() {
  static const CodePoints kSpaces{{'\t', '\r'}, {' ', ' '}};
  return kSpaces;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<uint32_t> checked(const RegexCursor& cursor, uint32_t point) {
  if (point == 0 || point > kLastCodePoint || (point >= 0xD800 && point <= 0xDFFF))
    return cursor.error("an escape that is no character");
  return point;
}

bool is_letter_or_digit(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Exactly `count` hexadecimal digits.
Result<uint32_t> read_hex(RegexCursor& cursor, int count) {
  uint32_t point = 0;
  for (int i = 0; i < count; ++i, ++cursor.at) {
    const int value = hex_value(cursor.peek());
    if (value < 0) return cursor.error(fmt::format("expected {} hexadecimal digits", count));
    point = point * 16 + static_cast<uint32_t>(value);
  }
  return checked(cursor, point);
}

Result<uint32_t> read_braced_hex(RegexCursor& cursor) {
  uint32_t point = 0;
  while (!cursor.done() && cursor.peek() != '}') {
    const int value = hex_value(cursor.peek());
    if (value < 0 || point > kLastCodePoint) return cursor.error("expected \\u{hexadecimal digits}");
    point = point * 16 + static_cast<uint32_t>(value);
    ++cursor.at;
  }
  if (!cursor.skip("}")) return cursor.error("\\u{ without a }");
  return checked(cursor, point);
}

CodePoints one(uint32_t point) { return CodePoints{{point, point}}; }

Result<CodePoints> read_class_item(RegexCursor& cursor) {
  if (cursor.skip("\\")) {
    if (cursor.skip("b")) return one('\b');
    return read_escape(cursor);
  }
  WH_ASSIGN(const uint32_t point, read_character(cursor));
  return one(point);
}

}  // namespace

bool RegexCursor::skip(std::string_view expected) {
  if (text.substr(at, expected.size()) != expected) return false;
  at += expected.size();
  return true;
}

Error RegexCursor::error(std::string_view why) const {
  return make_error(Code::kInvalidArgument, "{} at byte {} of the regular expression", why, at);
}

CodePoints dot() { return CodePoints{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.complement(); }

Result<uint32_t> read_character(RegexCursor& cursor) {
  const auto lead = static_cast<unsigned char>(cursor.peek());
  const size_t size = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (size == 0 || cursor.at + size > cursor.text.size()) return cursor.error("no valid UTF-8");
  uint32_t point = size == 1 ? lead : lead & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(cursor.peek(i));
    if ((next & 0xC0) != 0x80) return cursor.error("no valid UTF-8");
    point = point << 6 | (next & 0x3F);
  }
  WH_ASSIGN(point, checked(cursor, point));
  cursor.at += size;
  return point;
}

Result<CodePoints> read_escape(RegexCursor& cursor) {
  if (cursor.done()) return cursor.error("a backslash with nothing behind it");
  const char c = cursor.peek();
  ++cursor.at;
  switch (c) {
    case 'd':
      return digits();
    case 'D':
      return digits().complement();
    case 'w':
      return words();
    case 'W':
      return words().complement();
    case 's':
      return spaces();
    case 'S':
      return spaces().complement();
    case 't':
      return one('\t');
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 'f':
      return one('\f');
    case 'v':
      return one('\v');
    default:
      break;
  }
  uint32_t point = static_cast<unsigned char>(c);
  if (c == 'x') {
    WH_ASSIGN(point, read_hex(cursor, 2));
  } else if (c == 'u' && cursor.skip("{")) {
    WH_ASSIGN(point, read_braced_hex(cursor));
  } else if (c == 'u') {
    WH_ASSIGN(point, read_hex(cursor, 4));
  } else if (c == 'U') {
    WH_ASSIGN(point, read_hex(cursor, 8));
  } else if (is_letter_or_digit(point) || point >= 0x80 || point == 0) {
    --cursor.at;
    if (c >= '1' && c <= '9') return cursor.error("back references are not supported:");
    if (c == 'b' || c == 'B') return cursor.error("\\b and \\B are not supported:");
    if (c == 'p' || c == 'P') return cursor.error("\\p is not supported:");
    return cursor.error("an unknown escape");
  }
  return one(point);
}

Result<CodePoints> read_class(RegexCursor& cursor) {
  const bool negated = cursor.skip("^");
  CodePoints points;
  bool first = true;
  while (first || cursor.peek() != ']') {
    if (cursor.done()) return cursor.error("a [ without its ]");
    if (first && cursor.peek() == ']') return cursor.error("an empty class");
    if (cursor.peek() == '[' && cursor.peek(1) == ':') return cursor.error("[: is not supported:");
    first = false;
    WH_ASSIGN(const CodePoints item, read_class_item(cursor));
    if (cursor.peek() == '-' && cursor.peek(1) != ']' && cursor.peek(1) != '\0') {
      const uint32_t from = item.only();
      if (from == 0) return cursor.error("a range that begins with a class");
      ++cursor.at;
      WH_ASSIGN(const CodePoints end, read_class_item(cursor));
      if (end.only() < from) return cursor.error("a range that ends before it begins");
      points.add(from, end.only());
    } else {
      points.add(item);
    }
  }
  ++cursor.at;
  if (negated) points = points.complement();
  if (points.empty()) return cursor.error("a class of no character");
  return points;
}

}  // namespace whippet::grammar
