#include "model/gguf.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/math.h"
#include "model/byte_reader.h"
#include "model/gguf_types.h"

namespace whippet {
namespace {

constexpr uint64_t kMaxKey = 65535;
constexpr uint64_t kMaxTensorName = 256;
constexpr uint32_t kMaxDims = 4;
constexpr int kMaxNesting = 4;  // arrays in arrays
// Metadata become a document of 16 bytes and more an element; real vocabularies stay far below this.
constexpr uint64_t kMaxElements = uint64_t{1} << 24;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint64_t kDefaultAlignment = 32;

enum ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// The least bytes that a value of a type takes, 0 for an unknown type.
uint64_t least_bytes(uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    case kString:
    case kU64:
    case kI64:
    case kF64:
      return 8;
    case kArray:
      return 12;
    default:
      return 0;
  }
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, std::string_view label) : file_(file), in_(file), label_(label) {}

  Result<GgufFile> parse() {
    GgufFile out;
    WH_TRY(read_header(out));
    WH_TRY(read_metadata(out.metadata));
    WH_TRY(read_tensors(out));
    return out;
  }

 private:
  template <class... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(Code::kCorrupt, "{}: {}", label_, fmt::format(format, std::forward<Args>(args)...));
  }
  Error truncated(std::string_view where) const {
    return corrupt("it ends within {}: truncated or corrupt", where);
  }

  Status read_header(GgufFile& out) {
    if (in_.read_string(4) != "GGUF") return corrupt("it does not begin with 'GGUF'");
    out.version = in_.read<uint32_t>();
    num_tensors_ = in_.read<uint64_t>();
    num_keys_ = in_.read<uint64_t>();
    if (in_.failed()) return truncated("its header");
    if (out.version == 1 || (out.version & 0xffffu) == 0) {
      return make_error(Code::kUnsupported,
                        "{}: GGUF version {}; versions 2 and 3, little-endian, are read: "
                        "convert the model anew",
                        label_, out.version == 1 ? "1" : "with big-endian numbers");
    }
    if (out.version > 3) {
      return make_error(Code::kUnsupported, "{}: GGUF version {} is newer than 3, the newest read here",
                        label_, out.version);
    }
    return {};
  }

  Status read_metadata(nlohmann::json& metadata) {
    metadata = nlohmann::json::object();
    if (num_keys_ > in_.left() / (8 + 4 + 1))
      return corrupt("{} metadata keys do not fit the file", num_keys_);
    for (uint64_t i = 0; i < num_keys_; ++i) {
      const uint64_t size = in_.read<uint64_t>();
      if (size > kMaxKey) return corrupt("metadata key {} has {} bytes, limit {}", i, size, kMaxKey);
      const std::string key(in_.read_string(size));
      const uint32_t type = in_.read<uint32_t>();
      if (in_.failed()) return truncated("its metadata");
      if (metadata.contains(key)) return corrupt("the metadata key '{}' stands twice", key);
      nlohmann::json value;
      WH_TRY(read_value(key, type, 0, value));
      metadata[key] = std::move(value);
    }
    return {};
  }

  Status read_value(const std::string& key, uint32_t type, int nesting, nlohmann::json& value) {
    switch (type) {
      case kU8:
        value = in_.read<uint8_t>();
        break;
      case kI8:
        value = in_.read<int8_t>();
        break;
      case kU16:
        value = in_.read<uint16_t>();
        break;
      case kI16:
        value = in_.read<int16_t>();
        break;
      case kU32:
        value = in_.read<uint32_t>();
        break;
      case kI32:
        value = in_.read<int32_t>();
        break;
      case kF32:
        value = in_.read<float>();
        break;
      case kBool:
        value = in_.read<uint8_t>() != 0;
        break;
      case kString:
        value = in_.read_string(in_.read<uint64_t>());
        break;
      case kArray:
        return read_array(key, nesting, value);
      case kU64:
        value = in_.read<uint64_t>();
        break;
      case kI64:
        value = in_.read<int64_t>();
        break;
      case kF64:
        value = in_.read<double>();
        break;
      default:
        return corrupt("the metadata key '{}' has the unknown type {}", key, type);
    }
    if (in_.failed()) return truncated(fmt::format("the metadata key '{}'", key));
    return {};
  }

  Status read_array(const std::string& key, int nesting, nlohmann::json& value) {
    const uint32_t type = in_.read<uint32_t>();
    const uint64_t count = in_.read<uint64_t>();
    if (in_.failed()) return truncated(fmt::format("the metadata key '{}'", key));
    const uint64_t least = least_bytes(type);
    if (least == 0) return corrupt("the metadata key '{}' is an array of the unknown type {}", key, type);
    if (nesting >= kMaxNesting) return corrupt("the metadata key '{}' nests arrays too deeply", key);
    if (count > in_.left() / least) {
      return corrupt("the metadata key '{}' claims {} elements, more than the file holds", key, count);
    }
    num_elements_ += count;
    if (num_elements_ > kMaxElements) return corrupt("its metadata have more than {} elements", kMaxElements);
    value = nlohmann::json::array();
    auto& elements = value.get_ref<nlohmann::json::array_t&>();
    elements.resize(count);
    for (nlohmann::json& element : elements) WH_TRY(read_value(key, type, nesting + 1, element));
    return {};
  }

  Result<uint64_t> alignment(const nlohmann::json& metadata) const {
    const auto found = metadata.find("general.alignment");
    if (found == metadata.end()) return kDefaultAlignment;
    const uint64_t alignment = found->is_number_unsigned() ? found->get<uint64_t>() : 0;
    if (alignment == 0 || alignment > kMaxAlignment || alignment % 8 != 0) {
      return corrupt("general.alignment must be a multiple of 8 up to {}", kMaxAlignment);
    }
    return alignment;
  }

  Status read_tensors(GgufFile& out) {
    WH_ASSIGN(const uint64_t align, alignment(out.metadata));
    if (num_tensors_ > in_.left() / (8 + 4 + 4 + 8))
      return corrupt("{} tensors do not fit the file", num_tensors_);
    std::vector<uint64_t> offsets;
    std::unordered_set<std::string> names;
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      TensorView tensor;
      uint64_t bytes = 0;
      uint64_t offset = 0;
      WH_TRY(read_tensor_info(i, tensor, bytes, offset));
      if (!names.insert(tensor.name).second) return corrupt("the tensor '{}' stands twice", tensor.name);
      if (offset % align != 0) {
        return corrupt("tensor '{}' begins at {}, no multiple of {}", tensor.name, offset, align);
      }
      tensor.data = {static_cast<const std::byte*>(nullptr), 0};
      sizes_.push_back(bytes);
      offsets.push_back(offset);
      out.tensors.push_back(std::move(tensor));
    }
    if (num_tensors_ == 0) return {};
    const uint64_t begin = align_up(in_.at(), align);
    if (begin > file_.size()) return truncated("its tensor list");
    return place_tensors(out.tensors, offsets, file_.subspan(begin));
  }

  Status read_tensor_info(uint64_t index, TensorView& tensor, uint64_t& bytes, uint64_t& offset) {
    const uint64_t size = in_.read<uint64_t>();
    if (size > kMaxTensorName) return corrupt("the name of tensor {} has {} bytes", index, size);
    tensor.name = in_.read_string(size);
    const uint32_t dims = in_.read<uint32_t>();
    if (in_.failed()) return truncated("its tensor list");
    if (dims > kMaxDims)
      return corrupt("tensor '{}' has {} dimensions, limit {}", tensor.name, dims, kMaxDims);
    uint64_t elements = 1;
    bool absurd = false;
    for (uint32_t d = 0; d < dims; ++d) {
      const uint64_t dim = in_.read<uint64_t>();
      absurd |= dim > (uint64_t{1} << 62) || __builtin_mul_overflow(elements, dim, &elements);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dim));
    }
    const uint32_t id = in_.read<uint32_t>();
    offset = in_.read<uint64_t>();
    if (in_.failed()) return truncated("its tensor list");
    const GgmlType* type = find_ggml_type(id);
    if (type == nullptr) return corrupt("tensor '{}' has the unknown type number {}", tensor.name, id);
    tensor.type = type->type;
    tensor.type_name = type->name;
    const auto block = static_cast<uint64_t>(type->block.elements);
    const uint64_t row = tensor.shape.empty() ? 1 : static_cast<uint64_t>(tensor.shape.back());
    if (absurd || row % block != 0 ||
        __builtin_mul_overflow(elements / block, static_cast<uint64_t>(type->block.bytes), &bytes)) {
      return corrupt("tensor '{}' has the impossible shape [{}] for {} (blocks of {})", tensor.name,
                     fmt::join(tensor.shape, ", "), type->name, block);
    }
    return {};
  }

  // Gives each tensor its bytes: inside the file, no two overlapping.
  Status place_tensors(std::vector<TensorView>& tensors, const std::vector<uint64_t>& offsets,
                       std::span<const std::byte> data) const {
    std::vector<size_t> order(tensors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(offsets[a], sizes_[a]) < std::pair(offsets[b], sizes_[b]);
    });
    uint64_t end = 0;
    for (const size_t i : order) {
      const std::string& name = tensors[i].name;
      if (offsets[i] > data.size() || sizes_[i] > data.size() - offsets[i]) {
        return corrupt(
            "tensor '{}' needs bytes {} to {} of data that has {}; the file is truncated or corrupt", name,
            offsets[i], offsets[i] + sizes_[i], data.size());
      }
      if (offsets[i] < end) return corrupt("tensor '{}' overlaps another one", name);
      end = offsets[i] + sizes_[i];
      tensors[i].data = data.subspan(offsets[i], sizes_[i]);
    }
    return {};
  }

  std::span<const std::byte> file_;
  ByteReader in_;
  std::string_view label_;
  uint64_t num_tensors_ = 0;
  uint64_t num_keys_ = 0;
  uint64_t num_elements_ = 0;
  std::vector<uint64_t> sizes_;
};

}  // namespace

Result<GgufFile> parse_gguf(std::span<const std::byte> file, std::string_view label) {
  WH_ASSIGN(GgufFile out, Parser(file, label).parse());
  const auto parts = out.metadata.find("split.count");
  if (parts != out.metadata.end() && parts->is_number() && parts->get<double>() > 1) {
    return make_error(
        Code::kUnsupported,
        "{} is one part of a split GGUF; join the parts first: llama-gguf-split --merge FIRST.gguf "
        "WHOLE.gguf",
        label);
  }
  return out;
}

}  // namespace whippet
