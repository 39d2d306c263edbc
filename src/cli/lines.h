// Lines from a file or standard input, and JSON objects in them.
#pragma once

#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace whippet {

class LineReader {
 public:
  // Empty or "-": standard input. kNotFound where the file cannot be read.
  static Result<LineReader> open(const std::string& path);

  // The next line that is not blank, without its end; false at the end of the file, or where status() says
  // why no more can be read.
  bool next(std::string& line);
  Status status() const;
  int64_t number() const { return number_; }  // of the line that next() gave, from 1

 private:
  LineReader() = default;

  std::ifstream file_;
  bool from_file_ = false;
  int64_t number_ = 0;
};

// All of a file or of standard input ("-" or empty).
Result<std::string> read_all(const std::string& path);

// The object in a line, its keys in the order in which they were written.
Result<nlohmann::ordered_json> parse_object(const std::string& line);
// "input_ids" and the like: a list of whole numbers from 0 on.
Result<std::vector<int32_t>> read_ids(const nlohmann::ordered_json& object, const char* key);
// What stands in the output for a line that was refused: {"error": ..., "line": ...}.
nlohmann::ordered_json error_line(const Error& error, int64_t line);

}  // namespace whippet
