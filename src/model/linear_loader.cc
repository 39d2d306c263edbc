#include "model/linear_loader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/formats/stored.h"

namespace whippet {
namespace {

std::string without_last_part(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

}  // namespace

Result<std::vector<float>> read_vector(const Checkpoint& checkpoint, const std::string& name, int32_t size) {
  const int64_t shape[] = {size};
  WH_ASSIGN(const TensorView* tensor, checkpoint.require(name, shape));
  std::vector<float> values(static_cast<size_t>(size));
  if (!is_float_type(tensor->type)) {
    return make_error(Code::kUnsupported, "tensor {}: expected type F32, F16 or BF16, found {}", name,
                      tensor->type_name);
  }
  for (size_t i = 0; i < values.size(); ++i) values[i] = float_at(*tensor, static_cast<int64_t>(i));
  return values;
}

Result<std::vector<float>> LinearLoader::load_vector(const std::string& name, int32_t size) {
  used_.insert(without_last_part(name));
  return read_vector(checkpoint_, name, size);
}

bool LinearLoader::used(const std::string& tensor) const { return used_.contains(without_last_part(tensor)); }

Result<LinearLoader::Found> LinearLoader::find(const LinearSource& source) {
  used_.insert(source.layer);
  Found found{&source, nullptr, {}};
  WH_ASSIGN(found.format, find_format(checkpoint_, source.layer));
  WH_ASSIGN(found.layout, found.format->layout(checkpoint_, source.layer));
  if (found.layout.out != source.out || found.layout.in != source.in) {
    return make_error(Code::kCorrupt, "tensor {}: expected shape [{}, {}] from the config, found [{}, {}]",
                      found.layout.tensor, source.out, source.in, found.layout.out, found.layout.in);
  }
  WH_CHECK(source.rows.empty() || source.rows.size() == static_cast<size_t>(source.out));
  return found;
}

Result<Projection> LinearLoader::load_projection(const std::vector<LinearSource>& sources) {
  std::vector<Found> found;
  for (const LinearSource& source : sources) {
    WH_ASSIGN(Found one, find(source));
    found.push_back(std::move(one));
  }
  Projection projection;
  for (size_t begin = 0; begin < found.size();) {
    size_t end = begin + 1;
    while (end < found.size() && found[end].layout.agrees_with(found[begin].layout)) ++end;
    WH_ASSIGN(LinearWeight part, pack(std::span(found).subspan(begin, end - begin), grid_));
    projection.parts.push_back(std::move(part));
    begin = end;
  }
  return projection;
}

Result<LinearWeight> LinearLoader::load_table(const LinearSource& source) {
  WH_ASSIGN(const Found found, find(source));
  return pack({&found, 1}, grid_ ? std::optional(kTableGrid) : std::nullopt);
}

Result<LinearWeight> LinearLoader::pack(std::span<const Found> run, const std::optional<CodeGrid>& grid) {
  const LinearLayout& layout = run.front().layout;
  CanonicalLinear weight;
  weight.codes_type = layout.codes;
  weight.in = layout.in;
  weight.group = layout.group;
  weight.g_idx = layout.g_idx;
  for (const Found& part : run) weight.out += part.layout.out;
  if (cache_ != nullptr) {
    std::optional<LinearWeight> kept = cache_->take(layout.tensor, weight.out, weight.in);
    if (kept) return std::move(*kept);
  }
  WH_TRY(load_bias(run, weight));
  if (run.size() == 1 && !layout.stored.empty() && run.front().source->rows.empty()) {
    weight.codes = layout.stored;
  } else {
    decode(run, weight);
  }
  if (grid && weight.dense()) {
    Result<CanonicalLinear> rounded = round_to_nearest(weight, *grid);
    if (!rounded.ok())
      return make_error(rounded.error().code, "tensor {}: {}", layout.tensor, rounded.error().message);
    weight = std::move(*rounded);
  }
  Result<LinearWeight> packed = backend_.pack(weight, compute_);
  if (!packed.ok()) {
    return make_error(packed.error().code, "tensor {}: {}", layout.tensor, packed.error().message);
  }
  return packed;
}

void LinearLoader::decode(std::span<const Found> run, CanonicalLinear& weight) const {
  const auto groups = static_cast<size_t>(weight.num_groups());
  const size_t row_bytes = static_cast<size_t>(weight.in) * code_bytes(weight.codes_type);
  const auto out = static_cast<size_t>(weight.out);
  weight.storage = Buffer::host(out * row_bytes);
  weight.codes = {weight.storage.as<std::byte>(), out * row_bytes};
  weight.scale.resize(out * groups);
  if (run.front().layout.has_min) weight.min.resize(out * groups);
  size_t row = 0;
  for (const Found& part : run) {
    std::vector<int32_t> rows = part.source->rows;
    if (rows.empty()) {
      rows.resize(static_cast<size_t>(part.layout.out));
      std::iota(rows.begin(), rows.end(), 0);
    }
    const RowTarget target{weight.storage.as<std::byte>() + row * row_bytes,
                           weight.scale.data() + row * groups,
                           weight.min.empty() ? nullptr : weight.min.data() + row * groups};
    part.format->decode(checkpoint_, part.source->layer, rows, target);
    row += rows.size();
  }
}

// Absent biases of a fused weight are zeros; a weight none of whose parts has one gets none. A quantised
// layer may have one that its config does not speak of, since quantizers fold what they smooth into it.
Status LinearLoader::load_bias(std::span<const Found> run, CanonicalLinear& weight) {
  const bool optional = checkpoint_.container == Checkpoint::Container::kGguf;
  std::vector<float> bias;
  bool any = false;
  for (const Found& part : run) {
    const LinearSource& source = *part.source;
    const std::string name = source.layer + ".bias";
    std::vector<float> values(static_cast<size_t>(source.out));
    const bool maybe = optional || (part.layout.group > 0 && !source.bias);
    if (maybe ? checkpoint_.find(name) != nullptr : source.bias) {
      any = true;
      WH_ASSIGN(values, read_vector(checkpoint_, name, source.out));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      bias.push_back(values[source.rows.empty() ? i : static_cast<size_t>(source.rows[i])]);
    }
  }
  if (any) weight.bias = std::move(bias);
  return {};
}

}  // namespace whippet
