// Every field of a request that the codec knows, and what becomes of it. One line a field. Internal to
// openai.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "openai/body_reader.h"
#include "openai/refusal.h"

namespace whippet::openai {

enum Route : uint8_t { kChat = 1, kCompletion = 2, kTokenize = 4, kDetokenize = 8 };

// Goes through all fields of a body: a wrong type is refused, and so is what cannot be honoured (where its
// value asks for something); what is unknown on this route goes to `ignored`, or is refused where `strict`.
// The values themselves are read by who needs them; null counts as absent.
Refusal check_fields(const Json& body, Route route, bool strict, std::vector<std::string>& ignored);

// The value of a field that is there and not null, else nullptr.
const Json* field(const Json& object, std::string_view name);
// Their types have been checked.
bool flag(const Json& body, std::string_view name, bool otherwise);
std::string text(const Json& body, std::string_view name);

// A name as a header can carry it: printable ASCII, short.
std::string printable(std::string_view name);
// Adds it once; only so many are kept.
void add_ignored(std::vector<std::string>& ignored, std::string_view name);

}  // namespace whippet::openai
