#include "model/packed_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/hash64.h"
#include "base/math.h"
#include "model/byte_reader.h"

namespace whippet {
namespace {

// Machines of the other byte order find no magic.
constexpr uint64_t kMagic = 0x31'44'45'4B'43'41'50'57;  // "WPACKED1"
constexpr uint64_t kFormat = 1;                         // of head and table
constexpr uint64_t kAlignment = 4096;
constexpr uint64_t kMaxTable = uint64_t{64} << 20;

struct Head {
  uint64_t magic = kMagic;
  uint64_t format = kFormat;
  uint64_t table_bytes = 0;
  uint64_t table_hash = 0;
  uint64_t file_bytes = 0;
  uint64_t zero = 0;
};
static_assert(sizeof(Head) == kPackedHead);

class Writer {
 public:
  template <class T>
  void write(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void write_text(const std::string& text) {
    write(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::string read_text(ByteReader& reader) { return std::string(reader.read_string(reader.read<uint64_t>())); }

void write_entry(const PackedEntry& entry, Writer& out) {
  const LinearWeight& w = entry.weight;
  out.write_text(entry.name);
  for (const uint8_t type : {static_cast<uint8_t>(w.kind), static_cast<uint8_t>(w.scale_type),
                             static_cast<uint8_t>(w.min_type), static_cast<uint8_t>(w.input_type)})
    out.write(type);
  for (const int32_t size : {w.out, w.in, w.group, w.code_offset, w.columns}) out.write(size);
  out.write(static_cast<uint64_t>(w.bytes));
  for (const uint64_t array : entry.arrays) out.write(array);
  for (const uint64_t value : {entry.at, entry.bytes, entry.hash}) out.write(value);
}

// A byte that is no element type becomes kI64, which no packed array has: the backend refuses it by name.
DType read_type(ByteReader& reader) {
  return static_cast<DType>(std::min(reader.read<uint8_t>(), static_cast<uint8_t>(DType::kI64)));
}

Status read_entry(ByteReader& reader, uint64_t file_bytes, PackedEntry& entry) {
  LinearWeight& w = entry.weight;
  entry.name = read_text(reader);
  const auto kind = reader.read<uint8_t>();
  if (kind > static_cast<uint8_t>(LinearKind::kInt4))
    return make_error(Code::kCorrupt, "weight {} is of an unknown kind", entry.name);
  w.kind = static_cast<LinearKind>(kind);
  for (DType* type : {&w.scale_type, &w.min_type, &w.input_type}) *type = read_type(reader);
  for (int32_t* size : {&w.out, &w.in, &w.group, &w.code_offset, &w.columns}) *size = reader.read<int32_t>();
  w.bytes = reader.read<uint64_t>();
  for (uint64_t& array : entry.arrays) array = reader.read<uint64_t>();
  for (uint64_t* value : {&entry.at, &entry.bytes, &entry.hash}) *value = reader.read<uint64_t>();
  if (reader.failed()) return make_error(Code::kCorrupt, "its table ends early");
  if (entry.at % kAlignment != 0 || entry.at > file_bytes || entry.bytes > file_bytes - entry.at)
    return make_error(Code::kCorrupt, "weight {} lies outside the file", entry.name);
  for (const uint64_t array : entry.arrays)
    if (array != kNoArray && array > entry.bytes)
      return make_error(Code::kCorrupt, "weight {} lies outside its storage", entry.name);
  return {};
}

std::string encode_table(const PackedTable& table) {
  Writer out;
  for (const std::string* text : {&table.model, &table.checkpoint, &table.key}) out.write_text(*text);
  out.write(static_cast<uint64_t>(table.entries.size()));
  for (const PackedEntry& entry : table.entries) write_entry(entry, out);
  return out.take();
}

}  // namespace

PackedEntry packed_entry(const std::string& name, const LinearWeight& w) {
  PackedEntry entry;
  entry.name = name;
  entry.weight.kind = w.kind;
  entry.weight.out = w.out;
  entry.weight.in = w.in;
  entry.weight.group = w.group;
  entry.weight.scale_type = w.scale_type;
  entry.weight.min_type = w.min_type;
  entry.weight.code_offset = w.code_offset;
  entry.weight.input_type = w.input_type;
  entry.weight.columns = w.columns;
  entry.weight.bytes = w.bytes;
  entry.bytes = w.storage.bytes();
  const void* arrays[] = {w.codes, w.scale, w.min, w.order, w.bias};
  for (size_t i = 0; i < std::size(arrays); ++i)
    entry.arrays[i] =
        arrays[i] == nullptr
            ? kNoArray
            : static_cast<uint64_t>(static_cast<const std::byte*>(arrays[i]) - w.storage.as<std::byte>());
  return entry;
}

LinearWeight with_storage(const PackedEntry& entry, Buffer storage) {
  WH_CHECK_EQ(storage.bytes(), entry.bytes);
  LinearWeight w;
  w.kind = entry.weight.kind;
  w.out = entry.weight.out;
  w.in = entry.weight.in;
  w.group = entry.weight.group;
  w.scale_type = entry.weight.scale_type;
  w.min_type = entry.weight.min_type;
  w.code_offset = entry.weight.code_offset;
  w.input_type = entry.weight.input_type;
  w.columns = entry.weight.columns;
  w.bytes = entry.weight.bytes;
  w.storage = std::move(storage);
  const auto array = [&](size_t i) -> const void* {
    if (entry.arrays[i] == kNoArray || entry.bytes == 0) return nullptr;
    return w.storage.as<std::byte>() + entry.arrays[i];
  };
  w.codes = array(0);
  w.scale = array(1);
  w.min = array(2);
  w.order = static_cast<const int32_t*>(array(3));
  w.bias = static_cast<const float*>(array(4));
  return w;
}

void place_storages(PackedTable& table) {
  uint64_t at = kPackedHead + encode_table(table).size();
  for (PackedEntry& entry : table.entries) {
    entry.at = align_up(at, kAlignment);
    at = entry.at + entry.bytes;
  }
  table.file_bytes = at;
}

std::string encode_packed(const PackedTable& table) {
  const std::string body = encode_table(table);
  const Head head = {.table_bytes = body.size(),
                     .table_hash = hash64(std::as_bytes(std::span(body)), table.file_bytes),
                     .file_bytes = table.file_bytes};
  Writer out;
  out.write(head);
  return out.take() + body;
}

Result<uint64_t> packed_table_bytes(std::span<const std::byte> bytes, uint64_t file_bytes) {
  Head head;
  if (bytes.size() < sizeof(head) || file_bytes < sizeof(head))
    return make_error(Code::kCorrupt, "it has {} bytes", file_bytes);
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.magic != kMagic || head.format != kFormat || head.zero != 0)
    return make_error(Code::kCorrupt, "it is no file of packed weights, or of another version");
  if (head.file_bytes != file_bytes)
    return make_error(Code::kCorrupt, "it has {} bytes, expected {}", file_bytes, head.file_bytes);
  if (head.table_bytes > kMaxTable || head.table_bytes > file_bytes - sizeof(head))
    return make_error(Code::kCorrupt, "its table has {} bytes", head.table_bytes);
  return head.table_bytes;
}

Result<PackedTable> decode_packed(std::span<const std::byte> bytes, uint64_t file_bytes) {
  WH_ASSIGN(const uint64_t table_bytes, packed_table_bytes(bytes, file_bytes));
  if (bytes.size() != kPackedHead + table_bytes) return make_error(Code::kCorrupt, "its table ends early");
  Head head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const std::span<const std::byte> body = bytes.subspan(kPackedHead);
  if (hash64(body, file_bytes) != head.table_hash)
    return make_error(Code::kCorrupt, "its table does not have the checksum that it names");
  ByteReader reader(body);
  PackedTable table;
  table.file_bytes = file_bytes;
  for (std::string* text : {&table.model, &table.checkpoint, &table.key}) *text = read_text(reader);
  const auto count = reader.read<uint64_t>();
  uint64_t end = kPackedHead + table_bytes;
  for (uint64_t i = 0; i < count; ++i) {  // ends early where entries do: no room is made for a count
    PackedEntry entry;
    WH_TRY(read_entry(reader, file_bytes, entry));
    if (entry.at < end) return make_error(Code::kCorrupt, "weight {} overlaps another", entry.name);
    end = entry.at + entry.bytes;
    table.entries.push_back(std::move(entry));
  }
  if (reader.failed()) return make_error(Code::kCorrupt, "its table ends early");
  return table;
}

}  // namespace whippet
