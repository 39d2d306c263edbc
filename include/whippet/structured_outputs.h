// What the text of an answer must look like: a field of SamplingParams. Names are vLLM's.
#pragma once

#include <string>
#include <vector>

namespace whippet {

// Exactly one of the first six is set.
struct StructuredOutputs {
  std::string json;                 // a JSON schema
  bool json_object = false;         // any JSON object
  std::string regex;                // the whole answer matches it
  std::vector<std::string> choice;  // one of these texts
  std::string grammar;              // EBNF, rule `root`
  std::string structural_tag;       // xgrammar's JSON: text that switches between free and constrained parts

  bool disable_any_whitespace = false;  // of json and json_object: no white space between their tokens
  // The text of a control token, "</think>": the answer is held to the above only after the first one. Empty:
  // from its beginning.
  std::string after;

  bool operator==(const StructuredOutputs&) const = default;
};

}  // namespace whippet
