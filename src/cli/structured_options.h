// What an answer's text must look like, from flags and from the fields of a JSON line.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "whippet/sampling_params.h"

namespace whippet {

class StructuredOptions {
 public:
  // Adds --json-schema, --regex and --choice.
  explicit StructuredOptions(CLI::App& app);

  Status apply(SamplingParams& params) const;

 private:
  CLI::Option* schema_;
  CLI::Option* regex_;
  CLI::Option* choice_;
};

// json_schema, json_object, regex, choice, grammar, structural_tag and OpenAI's response_format.
const std::vector<std::string>& structured_fields();
// Sets params.structured_outputs where the line has one of them; kInvalidArgument names what is wrong.
Status read_structured_fields(const nlohmann::ordered_json& line, SamplingParams& params);

// A schema from the command line: a file's text, or the text itself where it begins with a brace.
Result<std::string> schema_text(const std::string& given);

}  // namespace whippet
