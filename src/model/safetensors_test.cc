#include "model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/mapped_file.h"

namespace whippet {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  return file + header + std::string(data_bytes, '\1');
}

Result<std::vector<TensorView>> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "f");
}

std::string problem(const std::string& header, size_t data_bytes) {
  const auto result = parse(file_of(header, data_bytes));
  return result.ok() ? "none" : result.error().message;
}

const std::string kGood =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},)"
    R"("a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"e":{"dtype":"I64","shape":[0,7],"data_offsets":[26,26]}}  )";

TEST(Safetensors, ReadsScalarsEmptyTensorsAndMetadata) {
  const std::string file = file_of(kGood, 26);
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  const TensorView& a = (*tensors)[0];
  const TensorView& b = (*tensors)[1];
  const TensorView& e = (*tensors)[2];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, StorageType::kBF16);
  EXPECT_TRUE(a.shape.empty());
  EXPECT_EQ(a.data.size(), 2u);
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.data.data(), reinterpret_cast<const std::byte*>(file.data()) + 8 + kGood.size() + 2);
  EXPECT_EQ(e.shape, (std::vector<int64_t>{0, 7}));
  EXPECT_TRUE(e.data.empty());
  EXPECT_TRUE(parse(file_of("{}", 0)).ok());
}

TEST(Safetensors, KnowsTypesThatNothingDecodes) {
  const auto tensors = parse(file_of(R"({"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})", 3));
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  EXPECT_EQ((*tensors)[0].type, StorageType::kOther);
  EXPECT_EQ((*tensors)[0].type_name, "F4");
}

TEST(Safetensors, RefusesHeadersThatLieAboutTheirLength) {
  std::string file = file_of(kGood, 26);
  for (const uint64_t size : {uint64_t{0}, uint64_t{100'000'001}, UINT64_MAX, uint64_t{file.size()}}) {
    std::memcpy(file.data(), &size, sizeof(size));
    ASSERT_FALSE(parse(file).ok()) << size;
    EXPECT_EQ(parse(file).error().code, Code::kCorrupt);
  }
  EXPECT_FALSE(parse("").ok());
  EXPECT_FALSE(parse("1234567").ok());
  EXPECT_THAT(problem("[]", 0), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(problem("{\"a\":", 0), HasSubstr("not valid JSON"));
}

TEST(Safetensors, RefusesTensorsThatDoNotTileTheData) {
  const auto tensor = [](const char* name, int begin, int end) {
    return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name, end - begin,
                       begin, end);
  };
  const auto header = [&](const std::string& a, const std::string& b) { return "{" + a + "," + b + "}"; };
  EXPECT_EQ(problem(header(tensor("a", 0, 4), tensor("b", 4, 8)), 8), "none");
  EXPECT_THAT(problem(header(tensor("a", 0, 4), tensor("b", 3, 8)), 8), HasSubstr("overlap"));
  EXPECT_THAT(problem(header(tensor("a", 0, 4), tensor("b", 5, 8)), 8), HasSubstr("hole"));
  EXPECT_THAT(problem(header(tensor("a", 1, 4), tensor("b", 4, 8)), 8), HasSubstr("hole"));
  EXPECT_THAT(problem(header(tensor("a", 0, 4), tensor("b", 4, 8)), 9), HasSubstr("belong to none"));
  EXPECT_THAT(problem(header(tensor("a", 0, 4), tensor("b", 4, 8)), 7), HasSubstr("truncated"));
  EXPECT_THAT(problem(header(tensor("a", 0, 4), tensor("a", 4, 8)), 8), HasSubstr("stands twice"));
  EXPECT_THAT(problem(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[4,0]}})", 4), HasSubstr("4 to 0"));
}

TEST(Safetensors, RefusesShapesThatDoNotFitOrOverflow) {
  const auto with_shape = [](const char* dtype, const char* shape) {
    return problem(fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":[0,8]}}}})", dtype, shape),
                   8);
  };
  EXPECT_EQ(with_shape("F32", "[2]"), "none");
  EXPECT_THAT(with_shape("F32", "[3]"), HasSubstr("does not fit"));
  EXPECT_THAT(with_shape("F4", "[3]"), HasSubstr("does not fit"));
  EXPECT_THAT(with_shape("F32", "[4611686018427387905,2]"), HasSubstr("does not fit"));  // 8 modulo 2^64
  EXPECT_THAT(with_shape("U8", "[18446744073709551615]"), HasSubstr("absurd"));
  EXPECT_THAT(with_shape("U8", "[-8]"), HasSubstr("negative"));
  EXPECT_THAT(with_shape("U8", "[8.0]"), HasSubstr("number 8.0"));
  EXPECT_THAT(with_shape("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]"), HasSubstr("more than 16"));
  EXPECT_THAT(with_shape("Q9", "[8]"), HasSubstr("dtype 'Q9'"));
}

TEST(Safetensors, RefusesHeadersOfTheWrongForm) {
  for (const char* header :
       {R"({"a":5})", R"({"a":[1]})", R"({"a":"x"})", R"({"a":null})", R"({"a":{"dtype":"U8"}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})",
        R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[[0]],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":{}}})",
        R"({"a":{"dtype":{"b":1},"shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,0]}})", R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":{"a":{"b":"c"}}})", R"({"__metadata__":"x"})", R"({} {})"}) {
    EXPECT_NE(problem(header, 0), "none") << header;
  }
  EXPECT_THAT(problem("{\"" + std::string(2000, 'n') + "\":{}}", 0), HasSubstr("a name of 2000 bytes"));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string file = file_of(kGood, 26);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(parse(file.substr(0, size)).ok()) << size;
  }
}

TEST(Safetensors, EveryFlippedBitIsAnErrorOrAConsistentFile) {
  std::string file = file_of(kGood, 26);
  for (size_t bit = 0; bit < 8 * (8 + kGood.size()); ++bit) {
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
    const auto tensors = parse(file);
    size_t bytes = 0;
    if (tensors.ok()) {
      for (const TensorView& tensor : *tensors) bytes += tensor.data.size();
      EXPECT_EQ(bytes, 26u) << bit;
    }
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
  }
}

class SafetensorsFile : public testing::Test {
 protected:
  SafetensorsFile() { std::filesystem::create_directories(folder_); }
  ~SafetensorsFile() override { std::filesystem::remove_all(folder_); }

  size_t num_files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}.{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
};

TEST_F(SafetensorsFile, WrittenTensorsComeBack) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> odd = {7, 8, 9};
  const TensorView tensors[] = {
      {"a \"quoted\" name", StorageType::kU8, "", {3}, std::as_bytes(std::span(odd))},
      {"z", StorageType::kF32, "", {2, 3}, std::as_bytes(std::span(values))},
      {"empty", StorageType::kBF16, "", {0, 5}, {}}};
  ASSERT_TRUE(write_safetensors(folder_ / "t.safetensors", tensors).ok());
  EXPECT_EQ(num_files(), 1u);
  const auto file = MappedFile::open(folder_ / "t.safetensors");
  ASSERT_TRUE(file.ok());
  const auto read = parse_safetensors(file->bytes(), "t");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*read)[i].name, tensors[i].name);
    EXPECT_EQ((*read)[i].shape, tensors[i].shape);
    EXPECT_TRUE(std::ranges::equal((*read)[i].data, tensors[i].data));
  }
}

TEST_F(SafetensorsFile, AWriterThatIsDroppedLeavesNothing) {
  const TensorView tensor{"a", StorageType::kF32, "", {2}, {}};
  {
    auto writer = SafetensorsWriter::create(folder_ / "t.safetensors", {&tensor, 1});
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE(std::filesystem::exists(folder_ / "t.safetensors"));
    EXPECT_EQ(num_files(), 1u);
  }
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(SafetensorsFile, PiecesAreWrittenInOrder) {
  const TensorView tensors[] = {{"a", StorageType::kF32, "", {1}, {}}, {"b", StorageType::kF32, "", {1}, {}}};
  auto writer = SafetensorsWriter::create(folder_ / "t", tensors);
  ASSERT_TRUE(writer.ok());
  const float values[] = {3, 4};
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values).first(1))).ok());
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values).last(1))).ok());
  ASSERT_TRUE(writer->commit().ok());
  const auto file = MappedFile::open(folder_ / "t");
  const auto read = parse_safetensors(file->bytes(), "t");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::memcmp((*read)[1].data.data(), values + 1, 4), 0);
}

TEST_F(SafetensorsFile, AFolderThatIsNotThereIsAnError) {
  const auto status = write_safetensors(folder_ / "none" / "t.safetensors", {});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("none/t.safetensors"));
}

}  // namespace
}  // namespace whippet
