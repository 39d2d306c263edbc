#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/math.h"
#include "model/safetensors.h"

namespace whippet {
namespace {

constexpr int kMaxAttempts = 100;

uint64_t tensor_bytes(const TensorView& tensor) {
  const BlockSize block = storage_block(tensor.type);
  WH_CHECK(block.elements == 1 && block.bytes > 0, "{} is no safetensors type",
           storage_type_name(tensor.type));
  auto bytes = static_cast<uint64_t>(block.bytes);
  for (const int64_t dim : tensor.shape) bytes *= static_cast<uint64_t>(dim);
  return bytes;
}

// The header, padded so that the data begins on a multiple of 8.
std::string make_header(std::span<const TensorView> tensors) {
  // transformers refuses a file that does not say which library's tensors it holds.
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t at = 0;
  for (const TensorView& tensor : tensors) {
    WH_CHECK(!header.contains(tensor.name), "two tensors are called {}", tensor.name);
    const uint64_t end = at + tensor_bytes(tensor);
    header[tensor.name] = {
        {"dtype", storage_type_name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(align_up<size_t>(text.size(), 8), ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::filesystem::path temporary,
                                     std::FILE* file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

Error SafetensorsWriter::write_error(const char* what) const {
  const Code code = errno == ENOSPC || errno == EDQUOT ? Code::kResourceExhausted : Code::kUnavailable;
  return make_error(code, "cannot {} {}: {}", what, path_.string(), std::strerror(errno));
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    std::span<const TensorView> tensors) {
  // A name that no other writer has: O_EXCL decides.
  int fd = -1;
  std::string temporary;
  for (int attempt = 0; fd < 0 && attempt < kMaxAttempts; ++attempt) {
    temporary = fmt::format("{}.part-{}-{}", path.string(), ::getpid(), attempt);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  SafetensorsWriter writer(path, temporary, fd < 0 ? nullptr : ::fdopen(fd, "wb"));
  std::FILE* file = writer.file_.get();
  if (file == nullptr) return writer.write_error("create");
  const std::string header = make_header(tensors);
  const uint64_t size = header.size();
  for (const TensorView& tensor : tensors) writer.bytes_left_ += tensor_bytes(tensor);
  if (std::fwrite(&size, sizeof(size), 1, file) != 1 ||
      std::fwrite(header.data(), 1, header.size(), file) != header.size()) {
    return writer.write_error("write");
  }
  return writer;
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  WH_CHECK_LE(bytes.size(), bytes_left_);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return write_error("write");
  bytes_left_ -= bytes.size();
  return {};
}

Status SafetensorsWriter::commit() {
  WH_CHECK_EQ(bytes_left_, 0u);
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) return write_error("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return write_error("create");
  file_.reset();
  return {};
}

Status write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors) {
  WH_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, tensors));
  for (const TensorView& tensor : tensors) {
    WH_CHECK_EQ(tensor.data.size(), tensor_bytes(tensor));
    WH_TRY(writer.append(tensor.data));
  }
  return writer.commit();
}

}  // namespace whippet
