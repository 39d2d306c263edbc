#include "text/word_splitter.h"

#include "text/utf8.h"

namespace whippet {
namespace {

constexpr uint8_t kLetterNumberSpace = kLetter | kNumber | kSpace;

// Reads classified characters of one text. A position is a pointer; the class at the end is kEnd.
class Scanner {
 public:
  static constexpr uint8_t kEnd = 0xFF;  // has every class bit: compare with it first where that matters

  Scanner(const UnicodeTable& table, std::string_view text)
      : table_(table), end_(text.data() + text.size()) {}

  struct Character {
    uint8_t classes;
    uint32_t size;
  };

  Character at(const char* position) const {
    if (position == end_) return {kEnd, 0};
    const Utf8Character character = decode_utf8(position, end_);
    return {table_[character.code], character.size};
  }

  // Steps over characters for which `belongs(classes)` holds.
  template <class Belongs>
  const char* skip(const char* position, Belongs belongs) const {
    while (position != end_) {
      const Character character = at(position);
      if (!belongs(character.classes)) break;
      position += character.size;
    }
    return position;
  }
  const char* skip_letters(const char* position) const {
    return skip(position, [](uint8_t classes) { return (classes & kLetter) != 0; });
  }
  const char* skip_numbers(const char* position) const {
    return skip(position, [](uint8_t classes) { return (classes & kNumber) != 0; });
  }
  // What is neither letter, number nor space: signs, marks, controls.
  const char* skip_others(const char* position) const {
    return skip(position, [](uint8_t classes) { return (classes & kLetterNumberSpace) == 0; });
  }
  const char* end() const { return end_; }

 private:
  const UnicodeTable& table_;
  const char* end_;
};

// 's 't 're 've 'm 'll 'd at `position`, where an apostrophe stands: its end, or nullptr.
template <bool kIgnoreCase>
const char* contraction_end(const char* position, const char* end) {
  const auto letter = [&](ptrdiff_t i) -> char {
    if (end - position <= i) return 0;
    const char byte = position[i];
    return kIgnoreCase && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return position + 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? position + 3 : nullptr;
    case 'l':
      return letter(2) == 'l' ? position + 3 : nullptr;
    case '\xC5':  // U+017F, the long s, folds to s
      return kIgnoreCase && letter(2) == '\xBF' ? position + 3 : nullptr;
    default:
      return nullptr;
  }
}

// \s+(?!\S)|\s+ at a space: the run but for its last character, unless that is all there is or nothing
// follows. kNumbersEnd: what a number follows counts as the end of the text.
template <bool kNumbersEnd>
const char* spaces_end(const Scanner& scanner, const char* position) {
  const char* last = position;
  const char* run = position;
  Scanner::Character character = scanner.at(run);
  while (run != scanner.end() && (character.classes & kSpace) != 0) {
    last = run;
    run += character.size;
    character = scanner.at(run);
  }
  const bool at_end = run == scanner.end() || (kNumbersEnd && (character.classes & kNumber) != 0);
  return at_end || last == position ? run : last;
}

template <bool kDigitsAlone>
const char* gpt2_word_end(const Scanner& scanner, const char* position) {
  if (*position == '\'') {
    if (const char* end = contraction_end<false>(position, scanner.end())) return end;
  }
  const Scanner::Character first = scanner.at(position);
  if (kDigitsAlone && (first.classes & kNumber) != 0) return position + first.size;
  const char* body = *position == ' ' ? position + 1 : position;
  const Scanner::Character character = body == position ? first : scanner.at(body);
  if (character.classes != Scanner::kEnd) {
    if ((character.classes & kLetter) != 0) return scanner.skip_letters(body + character.size);
    if (!kDigitsAlone && (character.classes & kNumber) != 0) {
      return scanner.skip_numbers(body + character.size);
    }
    if ((character.classes & kLetterNumberSpace) == 0) return scanner.skip_others(body + character.size);
  }
  return spaces_end<kDigitsAlone>(scanner, position);
}

// \s*[\r\n]+ at a space: the end of the last CR or LF of the run, or nullptr when there is none.
const char* newlines_end(const Scanner& scanner, const char* position) {
  const char* end = nullptr;
  while (position != scanner.end()) {
    const Scanner::Character character = scanner.at(position);
    if ((character.classes & kSpace) == 0) break;
    position += character.size;
    if ((character.classes & kNewline) != 0) end = position;
  }
  return end;
}

template <int kMaxDigits>
const char* qwen2_word_end(const Scanner& scanner, const char* position) {
  if (*position == '\'') {
    if (const char* end = contraction_end<true>(position, scanner.end())) return end;
  }
  const Scanner::Character first = scanner.at(position);
  const char* second = position + first.size;
  if ((first.classes & kLetter) != 0) return scanner.skip_letters(second);
  if ((first.classes & kNumber) != 0) {
    Scanner::Character digit = scanner.at(second);
    for (int i = 1; i < kMaxDigits && digit.classes != Scanner::kEnd && (digit.classes & kNumber) != 0; ++i) {
      second += digit.size;
      digit = scanner.at(second);
    }
    return second;
  }
  const Scanner::Character next = scanner.at(second);
  const bool next_exists = next.classes != Scanner::kEnd;
  if (next_exists && (first.classes & kNewline) == 0 && (next.classes & kLetter) != 0) {
    return scanner.skip_letters(second + next.size);
  }
  const bool space_before_others =
      *position == ' ' && next_exists && (next.classes & kLetterNumberSpace) == 0;
  if (space_before_others || (first.classes & kSpace) == 0) {
    const char* end = scanner.skip_others(second);
    while (end != scanner.end() && (*end == '\r' || *end == '\n')) ++end;
    return end;
  }
  if (const char* end = newlines_end(scanner, position)) return end;
  return spaces_end<false>(scanner, position);
}

}  // namespace

size_t WordSplitter::word_end(std::string_view text, size_t begin) const {
  const Scanner scanner(*table_, text);
  const char* const position = text.data() + begin;
  const char* end = scanner.end();
  switch (kind_) {
    case PreTokenizer::kNone:
      break;
    case PreTokenizer::kGpt2:
      end = gpt2_word_end<false>(scanner, position);
      break;
    case PreTokenizer::kSmolLm:
      end = gpt2_word_end<true>(scanner, position);
      break;
    case PreTokenizer::kQwen2:
      end = qwen2_word_end<1>(scanner, position);
      break;
    case PreTokenizer::kLlama3:
      end = qwen2_word_end<3>(scanner, position);
      break;
  }
  return static_cast<size_t>(end - text.data());
}

}  // namespace whippet
