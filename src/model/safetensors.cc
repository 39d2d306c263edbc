#include "model/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

namespace whippet {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the reference reader's own limit
constexpr size_t kMaxDims = 16;
constexpr size_t kMaxName = 1024;

struct TypeBits {
  const char* name;
  StorageType type;
  uint32_t bits;
};
constexpr TypeBits kTypes[] = {
    {"F32", StorageType::kF32, 32},
    {"F16", StorageType::kF16, 16},
    {"BF16", StorageType::kBF16, 16},
    {"F64", StorageType::kF64, 64},
    {"I8", StorageType::kI8, 8},
    {"U8", StorageType::kU8, 8},
    {"I16", StorageType::kI16, 16},
    {"U16", StorageType::kU16, 16},
    {"I32", StorageType::kI32, 32},
    {"U32", StorageType::kU32, 32},
    {"I64", StorageType::kI64, 64},
    {"U64", StorageType::kU64, 64},
    {"BOOL", StorageType::kBool, 8},
    {"F8_E4M3", StorageType::kF8E4M3, 8},
    {"F8_E5M2", StorageType::kF8E5M2, 8},
    {"F8_E8M0", StorageType::kOther, 8},
    {"F8_E4M3FNUZ", StorageType::kOther, 8},
    {"F8_E5M2FNUZ", StorageType::kOther, 8},
    {"C64", StorageType::kOther, 64},
    {"F6_E2M3", StorageType::kOther, 6},
    {"F6_E3M2", StorageType::kOther, 6},
    {"F4", StorageType::kOther, 4},
};

const TypeBits* find_type(std::string_view name) {
  for (const TypeBits& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

struct Entry {
  TensorView tensor;
  uint32_t bits = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Reads the header as a stream of events (nlohmann's SAX interface), so that duplicate keys are seen, and a
// hostile header never becomes a document many times its size. Each event returns false to stop.
class HeaderReader {
 public:
  std::vector<Entry> entries;
  std::string problem;

  bool key(std::string& name) {
    if (name.size() > kMaxName) return fail("a name of {} bytes", name.size());
    if (depth_ == 1) {
      if (!names_.insert(name).second) return fail("the tensor '{}' stands twice in the header", name);
      name_ = name;
      in_metadata_ = name == "__metadata__";
    } else if (!in_metadata_) {
      if (name == "dtype") {
        field_ = Field::kDtype;
      } else if (name == "shape") {
        field_ = Field::kShape;
      } else if (name == "data_offsets") {
        field_ = Field::kOffsets;
      } else {
        return fail("tensor '{}': unknown field '{}'", name_, name);
      }
    }
    return true;
  }

  bool start_object(size_t) {
    ++depth_;
    if (depth_ > 2 || in_array_) return fail("'{}': an object where none may stand", name_);
    if (depth_ == 2 && !in_metadata_) {
      entry_ = Entry{};
      type_.reset();
      has_shape_ = false;
      offsets_.clear();
      field_ = Field::kNone;
    }
    return true;
  }

  bool end_object() {
    --depth_;
    return depth_ != 1 || in_metadata_ || finish_tensor();
  }

  bool start_array(size_t) {
    const bool shape = field_ == Field::kShape && !has_shape_;
    const bool offsets = field_ == Field::kOffsets && offsets_.empty();
    if (depth_ != 2 || in_metadata_ || in_array_ || !(shape || offsets)) {
      return fail("'{}': a list where none may stand", name_);
    }
    in_array_ = true;
    return true;
  }

  bool end_array() {
    in_array_ = false;
    if (field_ == Field::kShape) has_shape_ = true;
    field_ = Field::kNone;
    return true;
  }

  bool string(std::string& value) {
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ != 2 || in_array_ || field_ != Field::kDtype || type_) {
      return fail("'{}': a string where none may stand", name_);
    }
    const TypeBits* type = find_type(value);
    if (type == nullptr) {
      value.resize(std::min<size_t>(value.size(), 32));
      return fail("tensor '{}' has dtype '{}', which no safetensors version that is known here defines",
                  name_, value);
    }
    type_ = *type;
    field_ = Field::kNone;
    return true;
  }

  bool number_unsigned(uint64_t value) {
    if (!in_array_) return fail("'{}': a number where none may stand", name_);
    if (field_ == Field::kOffsets) {
      if (offsets_.size() == 2) return fail("tensor '{}': data_offsets has more than two numbers", name_);
      offsets_.push_back(value);
      return true;
    }
    std::vector<int64_t>& shape = entry_.tensor.shape;
    if (shape.size() == kMaxDims) return fail("tensor '{}' has more than {} dimensions", name_, kMaxDims);
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return fail("tensor '{}': a dimension of {} is absurd", name_, value);
    }
    shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(int64_t value) { return fail("'{}': the negative number {}", name_, value); }
  bool number_float(double, const std::string& text) { return fail("'{}': the number {}", name_, text); }
  bool boolean(bool) { return fail("'{}': a boolean where none may stand", name_); }
  bool null() { return fail("'{}': a null where none may stand", name_); }
  bool binary(nlohmann::json::binary_t&) { return fail("'{}': binary data", name_); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail("it is not valid JSON at byte {}", position);
  }

 private:
  enum class Field : uint8_t { kNone, kDtype, kShape, kOffsets };

  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    if (problem.empty()) problem = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }

  bool finish_tensor() {
    if (!type_ || !has_shape_ || offsets_.size() != 2) {
      return fail("tensor '{}' must have dtype, shape and two data_offsets", name_);
    }
    entry_.tensor.name = name_;
    entry_.tensor.type = type_->type;
    entry_.tensor.type_name = type_->name;
    entry_.bits = type_->bits;
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    entries.push_back(std::move(entry_));
    return true;
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  bool in_array_ = false;
  bool has_shape_ = false;
  Field field_ = Field::kNone;
  std::string name_;
  std::unordered_set<std::string> names_;
  Entry entry_;
  std::optional<TypeBits> type_;
  std::vector<uint64_t> offsets_;
};

// Bytes of a tensor, or nothing where they overflow or do not fill whole bytes.
std::optional<uint64_t> tensor_bytes(const Entry& entry) {
  uint64_t bits = entry.bits;
  for (const int64_t dim : entry.tensor.shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(dim), &bits)) return std::nullopt;
  }
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

// Tensors must tile the data section: no holes, no overlaps, nothing left at its end.
Status check_layout(std::vector<Entry>& entries, uint64_t data_size, std::string_view label) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    const std::string& name = entry.tensor.name;
    if (entry.begin > entry.end || entry.end > data_size) {
      return make_error(
          Code::kCorrupt,
          "{}: tensor '{}' lies at bytes {} to {} of data that has {}; the file is truncated or "
          "corrupt",
          label, name, entry.begin, entry.end, data_size);
    }
    if (entry.begin != at) {
      return make_error(Code::kCorrupt, "{}: tensor '{}' begins at byte {}, expected {} ({})", label, name,
                        entry.begin, at, entry.begin < at ? "tensors overlap" : "a hole in the data");
    }
    const std::optional<uint64_t> bytes = tensor_bytes(entry);
    if (!bytes || *bytes != entry.end - entry.begin) {
      return make_error(Code::kCorrupt, "{}: tensor '{}', {} [{}], does not fit the {} bytes it is given",
                        label, name, entry.tensor.type_name, fmt::join(entry.tensor.shape, ", "),
                        entry.end - entry.begin);
    }
    at = entry.end;
  }
  if (at != data_size) {
    return make_error(Code::kCorrupt, "{}: {} bytes after the last tensor belong to none", label,
                      data_size - at);
  }
  return {};
}

}  // namespace

Result<std::vector<TensorView>> parse_safetensors(std::span<const std::byte> file, std::string_view label) {
  uint64_t header_size = 0;
  if (file.size() < sizeof(header_size)) {
    return make_error(Code::kCorrupt, "{}: {} bytes are too few for a safetensors file", label, file.size());
  }
  std::memcpy(&header_size, file.data(), sizeof(header_size));
  const std::span<const std::byte> rest = file.subspan(sizeof(header_size));
  if (header_size > kMaxHeader || header_size > rest.size()) {
    return make_error(Code::kCorrupt,
                      "{}: its header claims {} bytes (limit {}, the file has {}); truncated, or not a "
                      "safetensors file",
                      label, header_size, kMaxHeader, rest.size());
  }
  const auto* header = reinterpret_cast<const char*>(rest.data());
  if (header_size == 0 || header[0] != '{') {
    return make_error(Code::kCorrupt, "{}: its header does not begin with '{{'", label);
  }
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header, header + header_size, &reader)) {
    return make_error(Code::kCorrupt, "{}: bad header: {}", label, reader.problem);
  }
  const std::span<const std::byte> data = rest.subspan(header_size);
  WH_TRY(check_layout(reader.entries, data.size(), label));
  std::vector<TensorView> tensors;
  tensors.reserve(reader.entries.size());
  for (Entry& entry : reader.entries) {
    entry.tensor.data = data.subspan(entry.begin, entry.end - entry.begin);
    tensors.push_back(std::move(entry.tensor));
  }
  return tensors;
}

}  // namespace whippet
