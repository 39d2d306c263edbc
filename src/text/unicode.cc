#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "text/utf8.h"

namespace whippet {
namespace {

constexpr char32_t kNumCodes = 0x110000;

uint8_t category_bits(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter | kWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWord;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      return kWord;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kSpace;
    default:
      return 0;
  }
}

using Codes = std::vector<utf8proc_int32_t>;

// Appends the full canonical decomposition.
void append_decomposition(Codes& codes, char32_t code) {
  const size_t before = codes.size();
  codes.resize(before + 8);  // the longest canonical decomposition has four code points
  int last_class = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), codes.data() + before, 8,
                                             UTF8PROC_DECOMPOSE, &last_class);
  WH_CHECK(count >= 1 && count <= 8, "U+{:04X} decomposes into {}", static_cast<uint32_t>(code), count);
  codes.resize(before + static_cast<size_t>(count));
}

// Sorts runs of combining marks by their class, then joins what can be joined (UAX #15). utf8proc orders by
// exchanging neighbours, which is quadratic in the length of a run; hence the sort of our own.
void order_and_compose(Codes& codes) {
  const auto combining_class = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    auto end = std::find_if(begin, codes.end(), [&](auto code) { return combining_class(code) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
  const auto count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  WH_CHECK(count >= 0, "utf8proc: {}", utf8proc_errmsg(count));
  codes.resize(static_cast<size_t>(count));
}

void append_nfc_of_run(std::string& out, std::string_view run, Codes& codes) {
  codes.clear();
  for (size_t at = 0; at < run.size();) {
    const Utf8Character character = decode_utf8(run.data() + at, run.data() + run.size());
    append_decomposition(codes, character.code);
    at += character.size;
  }
  order_and_compose(codes);
  for (const auto code : codes) append_utf8(out, static_cast<char32_t>(code));
}

// Marks what is not inert under NFC: combining classes, second halves of compositions, and code points that
// are not their own NFC.
void mark_nfc_unsafe(std::vector<uint8_t>& classes) {
  Codes codes;
  for (char32_t code = 0; code < kNumCodes; ++code) {
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
    if (property->combining_class != 0) classes[code] |= kNfcUnsafe;
    if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) continue;
    codes.clear();
    append_decomposition(codes, code);
    for (size_t i = 1; i < codes.size(); ++i) classes[static_cast<size_t>(codes[i])] |= kNfcUnsafe;
    order_and_compose(codes);
    if (codes.size() != 1 || codes[0] != static_cast<utf8proc_int32_t>(code)) classes[code] |= kNfcUnsafe;
  }
  for (char32_t code = 0x1161; code <= 0x11C2; ++code) classes[code] |= kNfcUnsafe;  // Hangul vowels, finals
}

}  // namespace

UnicodeTable::UnicodeTable() {
  std::vector<uint8_t> classes(kNumCodes);
  for (char32_t code = 0; code < kNumCodes; ++code) {
    classes[code] = category_bits(utf8proc_category(static_cast<utf8proc_int32_t>(code)));
  }
  for (char32_t code = 0x09; code <= 0x0D; ++code) classes[code] |= kSpace;
  classes[0x85] |= kSpace;
  classes['\n'] |= kNewline;
  classes['\r'] |= kNewline;
  mark_nfc_unsafe(classes);

  std::map<Block, uint16_t> known;
  for (size_t block = 0; block < block_of_.size(); ++block) {
    Block content;
    std::copy_n(classes.begin() + static_cast<ptrdiff_t>(block * 256), 256, content.begin());
    const auto [entry, added] = known.try_emplace(content, static_cast<uint16_t>(blocks_.size()));
    if (added) blocks_.push_back(content);
    block_of_[block] = entry->second;
  }
}

const UnicodeTable& UnicodeTable::get() {
  static const UnicodeTable table;
  return table;
}

bool is_surely_nfc(std::string_view text) {
  const UnicodeTable& table = UnicodeTable::get();
  const char* const end = text.data() + text.size();
  for (size_t at = find_non_ascii(text, 0); at < text.size(); at = find_non_ascii(text, at)) {
    const Utf8Character character = decode_utf8(text.data() + at, end);
    if ((table[character.code] & kNfcUnsafe) != 0) return false;
    at += character.size;
  }
  return true;
}

std::string to_nfc(std::string_view text) {
  const UnicodeTable& table = UnicodeTable::get();
  const char* const end = text.data() + text.size();
  std::string out;
  out.reserve(text.size());
  Codes codes;
  // A run is one inert character with the unsafe ones that follow it; only runs of two or more can change.
  size_t run_begin = 0, copied = 0;
  bool run_is_unsafe = false;
  const auto close_run = [&](size_t run_end) {
    if (!run_is_unsafe) return;
    out.append(text.substr(copied, run_begin - copied));
    append_nfc_of_run(out, text.substr(run_begin, run_end - run_begin), codes);
    copied = run_end;
    run_is_unsafe = false;
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = decode_utf8(text.data() + at, end);
    const size_t next = at + character.size;
    if (character.code == kInvalidCharacter) {
      close_run(at);
      run_begin = next;
    } else if ((table[character.code] & kNfcUnsafe) != 0) {
      run_is_unsafe = true;
    } else {
      close_run(at);
      run_begin = at;
    }
    at = next;
  }
  close_run(text.size());
  out.append(text.substr(copied));
  return out;
}

}  // namespace whippet
