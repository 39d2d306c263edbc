// The alphabet in which byte-level BPE vocabularies are written: every byte is one printable character
// (GPT-2's encoder.py): 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for themselves, the others, in order, for
// U+0100 onwards; so a space is U+0120.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace whippet {

// The bytes that the spelling stands for; nothing when a character is outside the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

// The character of one byte, in UTF-8.
std::string spelling_of_byte(unsigned char byte);

}  // namespace whippet
