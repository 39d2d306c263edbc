// bitsandbytes' NF4 and FP4 (Dettmers et al. 2023) as transformers saves them: weight U8 [out * in / 2, 1],
// the first element in the high bits; quant_map F32 [16] what codes stand for; absmax of each block of
// elements, which may itself be coded ("nested"). Becomes bf16.
#include "model/formats/format.h"
#include "model/formats/stored.h"
#include "tensor/dtype.h"

namespace whippet {
namespace {

struct Table {
  const TensorView* weight;
  const TensorView* absmax;
  const TensorView* values;         // quant_map
  const TensorView* nested_absmax;  // nullptr: absmax is not coded
  const TensorView* nested_values;
  float nested_offset = 0;
  int64_t out = 0, in = 0, block = 0, nested_block = 0;

  float scale(int64_t of_block) const {
    if (nested_absmax == nullptr) return float_at(*absmax, of_block);
    const float code = float_at(*nested_values, stored_at<uint8_t>(*absmax, of_block));
    return code * float_at(*nested_absmax, of_block / nested_block) + nested_offset;
  }
};

const TensorView* find_state(const Checkpoint& checkpoint, const std::string& layer) {
  for (const char* kind : {"nf4", "fp4"}) {
    const TensorView* state = checkpoint.find(layer + ".weight.quant_state.bitsandbytes__" + kind);
    if (state != nullptr) return state;
  }
  return nullptr;
}

bool holds(const Checkpoint& checkpoint, const std::string& layer) {
  const TensorView* weight = checkpoint.find(layer + ".weight");
  return weight != nullptr && weight->type == StorageType::kU8 && find_state(checkpoint, layer) != nullptr;
}

// Shape and block sizes, from the JSON that stands in a tensor.
Status read_state(const TensorView& tensor, Table& table) {
  const auto* text = reinterpret_cast<const char*>(tensor.data.data());
  const auto corrupt = [&] {
    return make_error(Code::kCorrupt, "tensor {}: expected JSON with blocksize and a shape [out, in]",
                      tensor.name);
  };
  if (tensor.data.size() > 4096) return corrupt();
  const nlohmann::json state = nlohmann::json::parse(text, text + tensor.data.size(), nullptr, false);
  if (!state.is_object()) return corrupt();
  const auto number = [&](const char* key) -> int64_t {
    const auto found = state.find(key);
    return found != state.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  table.block = number("blocksize");
  table.nested_block = number("nested_blocksize");
  const auto offset = state.find("nested_offset");
  if (offset != state.end() && offset->is_number()) table.nested_offset = offset->get<float>();
  const auto shape = state.find("shape");
  if (shape == state.end() || !shape->is_array() || shape->size() != 2) return corrupt();
  for (const nlohmann::json& dim : *shape) {
    if (!dim.is_number_integer() || dim <= 0 || dim > INT32_MAX) return corrupt();
  }
  table.out = (*shape)[0].get<int64_t>();
  table.in = (*shape)[1].get<int64_t>();
  if (table.block < 1 || table.block > (int64_t{1} << 30)) return corrupt();
  return {};
}

Status check_count(const TensorView& tensor, int64_t expected) {
  const BlockSize size = storage_block(tensor.type);
  if (static_cast<int64_t>(tensor.data.size()) == expected * size.bytes) return {};
  return make_error(Code::kCorrupt, "tensor {}: expected {} elements, found shape [{}]", tensor.name,
                    expected, fmt::join(tensor.shape, ", "));
}

Result<Table> read_table(const Checkpoint& checkpoint, const std::string& layer) {
  const std::string weight = layer + ".weight";
  Table table{};
  WH_TRY(read_state(*find_state(checkpoint, layer), table));
  table.weight = checkpoint.find(weight);
  WH_TRY(check_count(*table.weight, (table.out * table.in + 1) / 2));
  WH_ASSIGN(table.values, require_floats(checkpoint, weight + ".quant_map", 1));
  WH_TRY(check_count(*table.values, 16));
  const int64_t blocks = (table.out * table.in + table.block - 1) / table.block;
  table.nested_absmax = checkpoint.find(weight + ".nested_absmax");
  if (table.nested_absmax == nullptr) {
    WH_ASSIGN(table.absmax, require_floats(checkpoint, weight + ".absmax", 1));
    WH_TRY(check_count(*table.absmax, blocks));
    return table;
  }
  WH_ASSIGN(table.absmax, require_dims(checkpoint, weight + ".absmax", 1));
  WH_ASSIGN(table.nested_values, require_floats(checkpoint, weight + ".nested_quant_map", 1));
  WH_TRY(require_floats(checkpoint, weight + ".nested_absmax", 1));
  if (table.absmax->type != StorageType::kU8 || table.nested_block < 1) {
    return make_error(Code::kCorrupt, "tensor {}: expected nested codes of type U8 in blocks, found {}",
                      table.absmax->name, table.absmax->type_name);
  }
  WH_TRY(check_count(*table.absmax, blocks));
  WH_TRY(check_count(*table.nested_values, 256));
  WH_TRY(check_count(*table.nested_absmax, (blocks + table.nested_block - 1) / table.nested_block));
  return table;
}

Result<LinearLayout> layout(const Checkpoint& checkpoint, const std::string& name) {
  WH_ASSIGN(const Table table, read_table(checkpoint, name));
  LinearLayout result;
  result.tensor = name + ".weight";
  result.codes = CanonicalLinear::Codes::kBF16;
  result.out = static_cast<int32_t>(table.out);
  result.in = static_cast<int32_t>(table.in);
  return result;
}

void decode(const Checkpoint& checkpoint, const std::string& name, std::span<const int32_t> rows,
            const RowTarget& target) {
  const Table table = *read_table(checkpoint, name);
  std::byte* to = target.codes;
  for (const int32_t row : rows) {
    for (int64_t i = 0; i < table.in; ++i) {
      const int64_t at = row * table.in + i;
      const auto pair = stored_at<uint8_t>(*table.weight, at / 2);
      const float value = float_at(*table.values, at % 2 == 0 ? pair >> 4 : pair & 15);
      const uint16_t bits = f32_to_bf16(value * table.scale(at / table.block));
      std::memcpy(to, &bits, 2);
      to += 2;
    }
  }
}

}  // namespace

Format bitsandbytes_4bit_format() { return {"bitsandbytes 4-bit", holds, layout, decode}; }

}  // namespace whippet
