#include "model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "model/gguf_config.h"

namespace whippet {
namespace {

using testing::HasSubstr;

template <class T>
std::string bytes_of(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}
std::string text(const std::string& value) { return bytes_of<uint64_t>(value.size()) + value; }
std::string pair(const std::string& key, uint32_t type, const std::string& value) {
  return text(key) + bytes_of(type) + value;
}
std::string tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                   uint64_t offset) {
  std::string out = text(name) + bytes_of(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) out += bytes_of(dim);
  return out + bytes_of(type) + bytes_of(offset);
}

// A GGUF file put together piece by piece.
struct Builder {
  uint32_t version = 3;
  std::vector<std::string> pairs = {};
  std::vector<std::string> tensors = {};
  size_t data_bytes = 0;
  size_t alignment = 32;

  std::string file() const {
    std::string out =
        "GGUF" + bytes_of(version) + bytes_of<uint64_t>(tensors.size()) + bytes_of<uint64_t>(pairs.size());
    for (const std::string& one : pairs) out += one;
    for (const std::string& one : tensors) out += one;
    if (!tensors.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + std::string(data_bytes, '\0');
  }
};

Result<GgufFile> parse(const std::string& file) { return parse_gguf(std::as_bytes(std::span(file)), "f"); }
std::string problem(const std::string& file) {
  const auto result = parse(file);
  return result.ok() ? "none" : result.error().message;
}
std::string problem(const Builder& builder) { return problem(builder.file()); }

// Every metadata type, and tensors of two.
Builder good() {
  const std::string nested = bytes_of<uint32_t>(9) + bytes_of<uint64_t>(2) +  // an array of two arrays
                             bytes_of<uint32_t>(0) + bytes_of<uint64_t>(2) + "\1\2" + bytes_of<uint32_t>(8) +
                             bytes_of<uint64_t>(1) + text("x");
  return {.pairs = {pair("u8", 0, bytes_of<uint8_t>(200)), pair("i8", 1, bytes_of<int8_t>(-2)),
                    pair("u16", 2, bytes_of<uint16_t>(60000)), pair("i16", 3, bytes_of<int16_t>(-3)),
                    pair("u32", 4, bytes_of<uint32_t>(4000000000)), pair("i32", 5, bytes_of<int32_t>(-4)),
                    pair("f32", 6, bytes_of(0.5f)), pair("bool", 7, "\1"), pair("text", 8, text("a\0b\xff")),
                    pair("nested", 9, nested), pair("u64", 10, bytes_of(UINT64_MAX)),
                    pair("i64", 11, bytes_of(INT64_MIN)), pair("f64", 12, bytes_of(0.25)),
                    pair("empty", 9, bytes_of<uint32_t>(8) + bytes_of<uint64_t>(0))},
          .tensors = {tensor("a.weight", {64, 2}, 2, 0), tensor("b", {3}, 0, 96)},
          .data_bytes = 96 + 12};
}

TEST(Gguf, ReadsEveryMetadataTypeAndReversesShapes) {
  for (const uint32_t version : {2u, 3u}) {
    Builder builder = good();
    builder.version = version;
    const std::string file = builder.file();
    const auto read = parse(file);
    ASSERT_TRUE(read.ok()) << read.error().message;
    const nlohmann::json& m = read->metadata;
    EXPECT_EQ(read->version, version);
    EXPECT_EQ(m["u8"], 200);
    EXPECT_EQ(m["i8"], -2);
    EXPECT_EQ(m["u16"], 60000);
    EXPECT_EQ(m["i16"], -3);
    EXPECT_EQ(m["u32"], 4000000000u);
    EXPECT_EQ(m["i32"], -4);
    EXPECT_EQ(m["f32"], 0.5);
    EXPECT_EQ(m["bool"], true);
    EXPECT_EQ(m["text"].get<std::string>(), std::string("a\0b\xff"));
    EXPECT_EQ(m["nested"][0][1], 2);
    EXPECT_EQ(m["nested"][1][0], "x");
    EXPECT_EQ(m["u64"], UINT64_MAX);
    EXPECT_EQ(m["i64"], INT64_MIN);
    EXPECT_EQ(m["f64"], 0.25);
    EXPECT_TRUE(m["empty"].is_array() && m["empty"].empty());
    ASSERT_EQ(read->tensors.size(), 2u);
    EXPECT_EQ(read->tensors[0].shape, (std::vector<int64_t>{2, 64}));
    EXPECT_EQ(read->tensors[0].type, StorageType::kQ4_0);
    EXPECT_EQ(read->tensors[0].data.size(), 72u);
    EXPECT_EQ(read->tensors[1].data.data() + 12, std::as_bytes(std::span(file)).data() + file.size());
  }
}

TEST(Gguf, ReadsNoOtherVersion) {
  Builder builder;
  for (const uint32_t version : {0u, 1u, 4u, 0x03000000u, 0x02000000u}) {
    builder.version = version;
    const auto read = parse(builder.file());
    ASSERT_FALSE(read.ok()) << version;
    EXPECT_EQ(read.error().code, Code::kUnsupported) << read.error().message;
  }
  builder.version = 0x03000000u;
  EXPECT_THAT(problem(builder), HasSubstr("big-endian"));
  EXPECT_THAT(problem("GGML" + good().file().substr(4)), HasSubstr("does not begin with 'GGUF'"));
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  const std::string file = good().file();
  for (const size_t at : {8u, 16u}) {  // tensors, metadata
    for (const uint64_t count : {UINT64_MAX, uint64_t{1} << 40, uint64_t{1000}}) {
      std::string hostile = file;
      std::memcpy(hostile.data() + at, &count, sizeof(count));
      EXPECT_THAT(problem(hostile), HasSubstr("do not fit the file"));
    }
  }
  const auto array = [](uint32_t type, uint64_t count) {
    return Builder{.pairs = {pair("a", 9, bytes_of(type) + bytes_of(count) + std::string(64, '\0'))}};
  };
  EXPECT_THAT(problem(array(4, 17)), HasSubstr("more than the file holds"));
  EXPECT_THAT(problem(array(8, UINT64_MAX)), HasSubstr("more than the file holds"));
  EXPECT_THAT(problem(array(9, uint64_t{1} << 61)), HasSubstr("more than the file holds"));
  EXPECT_THAT(problem(array(13, 1)), HasSubstr("unknown type 13"));
  EXPECT_THAT(problem(Builder{.pairs = {pair("a", 8, bytes_of(UINT64_MAX))}}), HasSubstr("ends within"));
  EXPECT_THAT(problem(Builder{.pairs = {bytes_of(UINT64_MAX) + std::string(64, 'k')}}),
              HasSubstr("limit 65535"));
  // A file of one big array may be large; the document that it would become may not.
  const uint64_t many = (uint64_t{1} << 24) + 1;
  EXPECT_THAT(problem(Builder{
                  .pairs = {pair("a", 9, bytes_of<uint32_t>(0) + bytes_of(many) + std::string(many, '\0'))}}),
              HasSubstr("more than 16777216 elements"));
}

TEST(Gguf, RefusesDeepNesting) {
  std::string value;
  for (int i = 0; i < 6; ++i) value += bytes_of<uint32_t>(9) + bytes_of<uint64_t>(1);
  value += bytes_of<uint32_t>(0) + bytes_of<uint64_t>(0);
  EXPECT_THAT(problem(Builder{.pairs = {pair("a", 9, value)}}), HasSubstr("too deeply"));
}

TEST(Gguf, RefusesDuplicates) {
  EXPECT_THAT(problem(Builder{.pairs = {pair("a", 0, "\1"), pair("a", 0, "\1")}}),
              HasSubstr("'a' stands twice"));
  EXPECT_THAT(
      problem(Builder{.tensors = {tensor("t", {1}, 0, 0), tensor("t", {1}, 0, 32)}, .data_bytes = 64}),
      HasSubstr("'t' stands twice"));
}

TEST(Gguf, RefusesTensorsOutsideTheFileUnalignedOrOverlapping) {
  const auto with = [](uint64_t offset) {
    return problem(
        Builder{.tensors = {tensor("a", {16}, 0, 0), tensor("b", {16}, 0, offset)}, .data_bytes = 128});
  };
  EXPECT_EQ(with(64), "none");
  EXPECT_THAT(with(96), HasSubstr("truncated"));
  EXPECT_THAT(with(UINT64_MAX - 31), HasSubstr("truncated"));
  EXPECT_THAT(with(65), HasSubstr("no multiple of 32"));
  EXPECT_THAT(with(32), HasSubstr("overlaps"));
  EXPECT_THAT(with(0), HasSubstr("overlaps"));
}

TEST(Gguf, RefusesImpossibleShapesAndTypes) {
  const auto with = [](const std::vector<uint64_t>& dims, uint32_t type) {
    return problem(Builder{.tensors = {tensor("a", dims, type, 0)}, .data_bytes = 1024});
  };
  EXPECT_EQ(with({256}, 12), "none");
  EXPECT_EQ(with({}, 0), "none");
  EXPECT_THAT(with({255}, 12), HasSubstr("impossible shape"));
  EXPECT_THAT(with({64, 2}, 12), HasSubstr("impossible shape"));  // rows, not the whole, come in blocks
  EXPECT_THAT(with({uint64_t{1} << 40, uint64_t{1} << 40}, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(with({UINT64_MAX}, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(with({1}, 5), HasSubstr("unknown type number 5"));
  EXPECT_THAT(problem(Builder{.tensors = {tensor(std::string(300, 'n'), {1}, 0, 0)}, .data_bytes = 64}),
              HasSubstr("300 bytes"));
}

TEST(Gguf, HonoursTheAlignmentOrRefusesIt) {
  const auto with = [](uint32_t alignment) {
    return Builder{.pairs = {pair("general.alignment", 4, bytes_of(alignment))},
                   .tensors = {tensor("a", {1}, 0, 0), tensor("b", {1}, 0, 64)},
                   .data_bytes = 68,
                   .alignment = alignment == 0 ? 32 : alignment};
  };
  EXPECT_EQ(problem(with(64)), "none");
  EXPECT_THAT(problem(with(128)), HasSubstr("no multiple of 128"));
  for (const uint32_t alignment : {0u, 7u, 1u << 30}) {
    Builder builder = with(alignment);
    builder.alignment = 32;
    EXPECT_THAT(problem(builder), HasSubstr("general.alignment"));
  }
}

TEST(Gguf, RefusesASplitFile) {
  const auto read = parse(Builder{.pairs = {pair("split.count", 2, bytes_of<uint16_t>(3))}}.file());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::kUnsupported);
  EXPECT_THAT(read.error().message, HasSubstr("--merge"));
}

TEST(Gguf, EveryTruncationIsAnError) {
  const std::string file = good().file();
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(parse(file.substr(0, size)).ok()) << size;
}

TEST(Gguf, EveryFlippedBitOfARealFileIsSurvived) {
  const auto mapped = MappedFile::open(WHIPPET_SOURCE_DIR "/tests/data/gguf/llama/model.gguf");
  ASSERT_TRUE(mapped.ok());
  const size_t header_bytes = 4096;  // metadata and tensor list
  std::string file(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  for (size_t bit = 0; bit < 8 * header_bytes; ++bit) {
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
    const auto read = parse(file);
    if (read.ok()) {
      (void)gguf_config(*read);
      for (const TensorView& t : read->tensors) {
        EXPECT_GE(t.data.data(), std::as_bytes(std::span(file)).data());
        EXPECT_LE(t.data.data() + t.data.size(), std::as_bytes(std::span(file)).data() + file.size());
      }
    }
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
  }
}

TEST(GgufConfig, SpeaksConfigJsonsLanguage) {
  const auto mapped = MappedFile::open(WHIPPET_SOURCE_DIR "/tests/data/gguf/qwen3/model.gguf");
  ASSERT_TRUE(mapped.ok());
  const auto read = parse_gguf(mapped->bytes(), "qwen3");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto config = gguf_config(*read);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ((*config)["architectures"], nlohmann::json({"qwen3"}));
  EXPECT_EQ((*config)["hidden_size"], 32);
  EXPECT_EQ((*config)["num_hidden_layers"], 2);
  EXPECT_EQ((*config)["num_attention_heads"], 4);
  EXPECT_EQ((*config)["num_key_value_heads"], 2);
  EXPECT_EQ((*config)["head_dim"], 16);
  EXPECT_EQ((*config)["intermediate_size"], 64);
  EXPECT_EQ((*config)["vocab_size"], 64);
  EXPECT_EQ((*config)["max_position_embeddings"], 256);
  EXPECT_EQ((*config)["tie_word_embeddings"], true);
  EXPECT_EQ((*config)["eos_token_id"], nlohmann::json({2}));
  EXPECT_EQ((*config)["bos_token_id"], 1);
  EXPECT_FLOAT_EQ((*config)["rope_theta"].get<float>(), 10000);
}

GgufFile metadata_of(nlohmann::json changes) {
  GgufFile file;
  file.metadata = {{"general.architecture", "llama"},
                   {"llama.embedding_length", 32},
                   {"llama.block_count", 2},
                   {"llama.attention.head_count", 4},
                   {"llama.feed_forward_length", 64},
                   {"llama.context_length", 128},
                   {"llama.attention.layer_norm_rms_epsilon", 1e-5}};
  file.metadata.update(changes);
  file.tensors = {{"token_embd.weight", StorageType::kF32, "F32", {64, 32}, {}},
                  {"b", StorageType::kF32, "F32", {}, {}}};
  return file;
}

TEST(GgufConfig, RefusesWhatItDoesNotUnderstand) {
  const auto refusal = [](const nlohmann::json& changes) {
    const auto config = gguf_config(metadata_of(changes));
    return config.ok() ? "none" : config.error().message;
  };
  EXPECT_EQ(refusal(nlohmann::json::object()), "none");
  EXPECT_THAT(refusal({{"llama.block_count", nullptr}}),
              HasSubstr("llama.block_count: expected a whole number"));
  EXPECT_THAT(refusal({{"llama.block_count", "2"}}), HasSubstr("found \"2\""));
  EXPECT_THAT(refusal({{"llama.attention.head_count", {4, 2}}}), HasSubstr("differs between layers"));
  EXPECT_EQ(refusal({{"llama.attention.head_count", {4, 4}}}), "none");
  EXPECT_THAT(refusal({{"llama.rope.dimension_count", 4}}), HasSubstr("rope.dimension_count is 4"));
  EXPECT_THAT(refusal({{"llama.attention.value_length", 16}}), HasSubstr("value_length"));
  EXPECT_THAT(refusal({{"llama.expert_count", 8}}), HasSubstr("mixtures of experts"));
  EXPECT_THAT(refusal({{"general.architecture", 5}}), HasSubstr("general.architecture"));
  EXPECT_THAT(refusal({{"general.architecture", ""}}), HasSubstr("general.architecture"));
}

TEST(GgufConfig, TranslatesWindowAndLinearRope) {
  const auto config = gguf_config(metadata_of({{"llama.attention.sliding_window", 16},
                                               {"llama.rope.scaling.type", "linear"},
                                               {"llama.rope.scaling.factor", 4.0}}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ((*config)["sliding_window"], 16);
  EXPECT_EQ((*config)["layer_types"].size(), 2u);
  EXPECT_EQ((*config)["rope_scaling"]["factor"], 4.0);
}

}  // namespace
}  // namespace whippet
