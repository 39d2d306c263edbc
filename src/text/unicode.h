// What the splitters and the normaliser need to know about a code point, in one byte, and NFC.
// The data are utf8proc's (Unicode 15); the tables are built once and never change.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace whippet {

enum CharClass : uint8_t {
  kLetter = 1,      // \p{L}
  kNumber = 2,      // \p{N}
  kSpace = 4,       // \s: White_Space
  kNewline = 8,     // CR and LF, which are kSpace too
  kWord = 16,       // \w: letters, marks, digits, connectors
  kNfcUnsafe = 32,  // NFC may change it, move it or join it to what stands before it
};

class UnicodeTable {
 public:
  // The one table of the process.
  static const UnicodeTable& get();

  // CharClass bits; 0 for what is no code point.
  uint8_t operator[](char32_t code) const {
    return code < 0x110000 ? blocks_[block_of_[code >> 8]][code & 0xFF] : uint8_t{0};
  }

 private:
  using Block = std::array<uint8_t, 256>;

  UnicodeTable();

  std::array<uint16_t, 0x1100> block_of_;
  std::vector<Block> blocks_;  // equal blocks are stored once
};

// True when the text is certain to be in NFC; one pass, quick on ASCII. May be false for text in NFC.
bool is_surely_nfc(std::string_view text);

// The text in NFC. Ill-formed bytes stay as they are. O(n log n) on runs of combining marks.
std::string to_nfc(std::string_view text);

}  // namespace whippet
