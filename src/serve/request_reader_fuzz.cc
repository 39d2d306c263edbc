// Bytes of a connection, cut in two places that the first bytes choose: whatever comes, the reader ends each
// request, takes no more than it was given, and gives the same requests as without cuts. (That nothing will
// come of an unfinished one it may find out later than without.)
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "serve/request_reader.h"

namespace {

using whippet::serve::RequestReader;

constexpr uint64_t kMaxBody = 4096;

std::string read_all(const std::vector<std::string>& pieces) {
  RequestReader reader(kMaxBody);
  std::string input, seen;
  for (const std::string& piece : pieces) {
    input += piece;
    for (;;) {
      size_t used = 0;
      const RequestReader::State state = reader.read(input, used);
      WH_CHECK_LE(used, input.size());
      input.erase(0, used);
      if (state == RequestReader::State::kFailed) {
        WH_CHECK(reader.status() >= 400 && reader.status() < 600);
        return seen;
      }
      if (state == RequestReader::State::kNeedMore) break;
      if (state == RequestReader::State::kHead) continue;
      WH_CHECK_LE(reader.request().body.size(), kMaxBody);
      seen += reader.request().method + " " + reader.request().target + " " + reader.request().body + "\n";
      reader.reset();
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 4, size - 4);
  const size_t first = (data[0] | size_t{data[1]} << 8) % (bytes.size() + 1);
  const size_t second = first + (data[2] | size_t{data[3]} << 8) % (bytes.size() - first + 1);
  const std::string whole = read_all({bytes});
  const std::string cut =
      read_all({bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)});
  WH_CHECK(whole == cut, "{} and {}", whole, cut);
  return 0;
}
