// Names of fields that came in and mean nothing here: told to the log once each. Any thread.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace whippet::serve {

class IgnoredFields {
 public:
  // Logs those that are met for the first time, up to a bound; returns the value of the header
  // x-whippet-ignored-fields.
  std::string note(const std::vector<std::string>& names);

 private:
  std::mutex mutex_;
  std::set<std::string> known_;
};

}  // namespace whippet::serve
