#include "hub/near_names.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "base/ascii.h"
#include "hub/hub.h"
#include "hub/model_name.h"

namespace whippet {
namespace {

constexpr int kFar = 4;
constexpr size_t kMaxShown = 3;
constexpr size_t kMaxLength = 256;

// "name" of "hf:org/name:TAG@revision" or "pypi:name==1.0".
std::string bare(std::string text, bool keep_organisation) {
  for (const char* prefix : {"hf:", "ms:", "pypi:"}) {
    if (text.starts_with(prefix)) text.erase(0, std::string(prefix).size());
  }
  text = text.substr(0, text.find_first_of("@="));
  text = text.substr(0, text.find(':'));
  return keep_organisation ? text : text.substr(text.rfind('/') + 1);
}

}  // namespace

int edit_distance(const std::string& a_text, const std::string& b_text, int limit) {
  const std::string a = lower_ascii(a_text), b = lower_ascii(b_text);
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
  if (std::abs(n - m) > limit || a.size() > kMaxLength || b.size() > kMaxLength) return limit + 1;
  std::vector<std::vector<int>> rows(3, std::vector<int>(b.size() + 1));
  for (int j = 0; j <= m; ++j) rows[0][j] = j;
  for (int i = 1; i <= n; ++i) {
    std::vector<int>& row = rows[i % 3];
    const std::vector<int>& above = rows[(i - 1) % 3];
    const std::vector<int>& above_that = rows[(i + 1) % 3];
    row[0] = i;
    for (int j = 1; j <= m; ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], above_that[j - 2] + 1);
    }
  }
  return std::min(rows[n % 3][m], limit + 1);
}

Error with_suggestion(Error error, const std::string& name, const HubConfig& config) {
  if (error.code != Code::kNotFound && error.code != Code::kInvalidArgument) return error;
  const auto models = list_models(config);
  if (!models.ok()) return error;
  std::vector<std::pair<int, std::string>> near;
  const auto consider = [&](const std::string& known) {
    const int distance = std::min(edit_distance(bare(name, true), bare(known, true), kFar),
                                  edit_distance(bare(name, false), bare(known, false), kFar));
    const int allowed = std::min(kFar, 1 + static_cast<int>(bare(name, false).size()) / 4);
    if (distance <= allowed && known != name) near.emplace_back(distance, known);
  };
  for (const CachedModel& model : *models) consider(model.name);
  consider("smollm2");
  std::sort(near.begin(), near.end());
  if (near.empty()) return error;
  error.message += ". Did you mean ";
  for (size_t i = 0; i < near.size() && i < kMaxShown; ++i)
    error.message += (i > 0 ? " or " : "") + near[i].second;
  error.message += "?";
  return error;
}

}  // namespace whippet
