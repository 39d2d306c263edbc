#include "model/packed_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "backend/registry.h"
#include "base/hash64.h"
#include "model/checkpoint_testing.h"
#include "model/golden_testing.h"
#include "model/packed_io.h"
#include "model/sequence_runner.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Settings {
  ComputeType compute = ComputeType::kAuto;
  OnLoad on_load = OnLoad::kKeep;
  std::string isa = {};
};

class PackedCacheTest : public testing::Test {
 protected:
  PackedCacheTest() { checkpoint_.write(folder_); }

  Result<GoldenModel> load(const Settings& settings = {}) const {
    GoldenModel out;
    WH_ASSIGN(const Checkpoint checkpoint, open_checkpoint(folder_.path()));
    WH_ASSIGN(out.backend, make_backend("cpu", {.num_threads = 1, .isa = settings.isa}));
    WH_ASSIGN(out.model, load_model(checkpoint, *out.backend, settings.compute, settings.on_load, place_));
    return out;
  }

  std::vector<float> logits(const Settings& settings = {}) const {
    const Result<GoldenModel> loaded = load(settings);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    if (!loaded.ok()) return {};
    const std::vector<int32_t> ids = {5, 9, 33, 21, 7};
    SequenceRunner runner(loaded->model, *loaded->backend, 5, DType::kF32);
    return runner.feed(ids);
  }

  // Logits, and what was said on the way.
  std::string log_of_load(const Settings& settings = {}) const {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(logits(settings).empty());
    return testing::internal::GetCapturedStderr();
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> paths;
    for (const PackedFile& file : list_packed(place_.folder)) paths.push_back(file.path);
    return paths;
  }

  EditableCheckpoint checkpoint_{"tiny/qwen2-bf16"};
  TempFolder folder_, kept_;
  PackedPlace place_{.folder = kept_.path() / "packed", .model = "hf:org/tiny", .keep_free = 0};
};

std::string state_of_file(const fs::path& path) {
  struct stat info = {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return std::to_string(info.st_ino) + " " + std::to_string(info.st_mtim.tv_nsec);
}

TEST_F(PackedCacheTest, TheSecondStartComputesTheSameFromTheFile) {
  for (const OnLoad on_load : {OnLoad::kKeep, OnLoad::kInt8, OnLoad::kInt4}) {
    const std::vector<float> packed = logits({.on_load = on_load});
    EXPECT_EQ(logits({.on_load = on_load}), packed);
  }
  EXPECT_EQ(files().size(), 3u);
}

TEST_F(PackedCacheTest, TheSecondStartReadsNoLinearWeightOfTheCheckpoint) {
  const std::vector<float> packed = logits();
  ASSERT_EQ(files().size(), 1u);
  const std::string before = state_of_file(files()[0]);
  // Other values in the checkpoint, in a file of the same size and time, change nothing.
  const fs::path tensors = folder_.path() / "model.safetensors";
  const fs::file_time_type time = fs::last_write_time(tensors);
  const std::string bytes = contents(tensors);
  std::string other = bytes;
  std::memset(other.data() + other.size() / 2, 0, 64);
  overwrite(tensors, other);
  fs::last_write_time(tensors, time);
  EXPECT_EQ(logits(), packed);
  EXPECT_EQ(state_of_file(files()[0]), before);
}

TEST_F(PackedCacheTest, ATouchedCheckpointReplacesItsFile) {
  const std::string first = contents((logits(), files().at(0)));
  checkpoint_.set_values("model.norm.weight", {32}, std::vector<float>(32, 0.5f));
  const std::vector<float> down(32 * 40, 0.25f);
  checkpoint_.set_values("model.layers.0.mlp.down_proj.weight", {32, 40}, down);
  checkpoint_.write(folder_);
  fs::last_write_time(folder_.path() / "model.safetensors",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const std::vector<float> changed = logits();
  ASSERT_EQ(files().size(), 1u);
  EXPECT_NE(contents(files()[0]), first);
  place_.folder.clear();
  EXPECT_EQ(logits(), changed);
}

TEST_F(PackedCacheTest, EachSettingHasAFileOfItsOwn) {
  logits();
  logits({.compute = ComputeType::kF32});
  logits({.on_load = OnLoad::kInt8});
  logits({.isa = "portable"});
  EXPECT_EQ(files().size(), supported_isas().front() == "portable" ? 3u : 4u);
}

TEST_F(PackedCacheTest, WithoutAFolderNothingIsKept) {
  place_.folder.clear();
  EXPECT_FALSE(logits().empty());
  EXPECT_TRUE(fs::is_empty(kept_.path()));
}

TEST_F(PackedCacheTest, AFolderThatCannotBeMadeIsOneLineInTheLog) {
  kept_.write("file", "");
  place_.folder = kept_.path() / "file" / "packed";
  const std::string log = log_of_load();
  EXPECT_THAT(log, testing::HasSubstr("packed weights are not kept for the next start"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(PackedCacheTest, ADiskThatWouldFillUpIsLeftAlone) {
  place_.keep_free = uint64_t{1} << 60;
  EXPECT_THAT(log_of_load(), testing::HasSubstr("to spare"));
  EXPECT_TRUE(files().empty());
}

TEST_F(PackedCacheTest, SmallModelsLeaveNothingWhereThatIsAsked) {
  place_.least_bytes = 1 << 30;
  EXPECT_FALSE(logits().empty());
  EXPECT_FALSE(fs::exists(place_.folder));
}

TEST_F(PackedCacheTest, NoTemporaryFileStays) {
  logits();
  EXPECT_EQ(std::distance(fs::directory_iterator(place_.folder), {}), 1);
}

TEST_F(PackedCacheTest, AFileIsListedWithWhatItIsOf) {
  logits();
  const std::vector<PackedFile> listed = list_packed(place_.folder);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].model, "hf:org/tiny");
  EXPECT_EQ(listed[0].checkpoint, fs::canonical(folder_.path()));
  EXPECT_EQ(listed[0].bytes, fs::file_size(listed[0].path));
  EXPECT_TRUE(list_packed(kept_.path() / "absent").empty());
}

TEST_F(PackedCacheTest, ADamagedFileIsSaidAndReplaced) {
  const std::vector<float> packed = logits();
  const fs::path path = files().at(0);
  const std::string good = contents(path);
  std::string bad = good;
  bad[bad.size() - 5] = static_cast<char>(bad[bad.size() - 5] ^ 1);
  overwrite(path, bad);
  EXPECT_THAT(log_of_load(), testing::HasSubstr("checksum"));
  EXPECT_EQ(contents(path), good);
  EXPECT_EQ(logits(), packed);
}

TEST_F(PackedCacheTest, AFolderOrAPipeInPlaceOfTheFileIsHarmless) {
  logits();
  const fs::path path = files().at(0);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(logits().empty());
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(logits().empty());
}

// The key of a file, read back.
std::string key_of(const fs::path& path) {
  const Result<PackedTable> table = read_packed_table(path);
  EXPECT_TRUE(table.ok());
  return table.ok() ? table->key : "";
}

TEST_F(PackedCacheTest, AFlippedByteIsRefusedOrChangesNoWeight) {
  logits();
  const fs::path path = files().at(0);
  const std::string good = contents(path), key = key_of(path);
  const Result<PackedWeights> expected = read_packed(path, key);
  ASSERT_TRUE(expected.ok());
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); at += at < 8192 ? 5 : 211) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    overwrite(path, bad);
    const Result<PackedWeights> found = read_packed(path, key);
    refused += found.ok() ? 0 : 1;
    if (!found.ok()) continue;
    for (const auto& [name, weight] : *expected) {
      const size_t bytes = weight.storage.bytes();
      ASSERT_EQ(found->at(name).storage.bytes(), bytes);
      ASSERT_EQ(std::memcmp(found->at(name).storage.as<char>(), weight.storage.as<char>(), bytes), 0) << at;
    }
  }
  EXPECT_GT(refused, 1000u);  // the others hit padding
}

TEST_F(PackedCacheTest, ATruncatedOrLongerFileIsRefused) {
  logits();
  const fs::path path = files().at(0);
  const std::string good = contents(path), key = key_of(path);
  for (size_t size = 0; size < good.size(); size += size < 4096 ? 5 : 1009) {
    overwrite(path, good.substr(0, size));
    ASSERT_FALSE(read_packed(path, key).ok()) << size;
  }
  overwrite(path, good + "x");
  EXPECT_FALSE(read_packed(path, key).ok());
}

// A table whose checksum is right and whose fields are not: what only an attacker writes.
TEST_F(PackedCacheTest, EveryFieldOfAForgedTableIsRefusedOrHarmless) {
  const std::vector<float> packed = logits({.on_load = OnLoad::kInt4});
  const fs::path path = files().at(0);
  const std::string good = contents(path);
  uint64_t table_bytes = 0;
  std::memcpy(&table_bytes, good.data() + 16, sizeof(table_bytes));
  testing::internal::CaptureStderr();
  for (size_t at = kPackedHead; at < kPackedHead + table_bytes; ++at) {
    for (const int change : {1, 128, 255}) {
      if (change != 255 && at % 3 != 0) continue;
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ change);
      const auto body = std::as_bytes(std::span(bad)).subspan(kPackedHead, table_bytes);
      const uint64_t hash = hash64(body, good.size());
      std::memcpy(bad.data() + 24, &hash, sizeof(hash));
      overwrite(path, bad);
      ASSERT_FALSE(logits({.on_load = OnLoad::kInt4}).empty()) << at;
    }
  }
  testing::internal::GetCapturedStderr();
  overwrite(path, good);
  EXPECT_EQ(logits({.on_load = OnLoad::kInt4}), packed);
}

// 4-bit codes in the order of their activations, with groups of uneven size.
CanonicalLinear act_order_weight(std::mt19937& random) {
  CanonicalLinear w;
  w.codes_type = CanonicalLinear::Codes::kU4;
  w.out = 48, w.in = 96, w.group = 32;
  w.storage = Buffer::host(static_cast<size_t>(w.out) * w.in);
  w.codes = {w.storage.as<std::byte>(), w.storage.bytes()};
  for (size_t i = 0; i < w.storage.bytes(); ++i) w.storage.as<uint8_t>()[i] = random() % 16;
  for (int32_t i = 0; i < w.out * 3; ++i) {
    w.scale.push_back(0.01f * static_cast<float>(1 + random() % 9));
    w.min.push_back(-0.1f * static_cast<float>(random() % 9));
  }
  for (int32_t i = 0; i < w.in; ++i) w.g_idx.push_back(static_cast<int32_t>(random() % 3));
  for (int32_t i = 0; i < w.out; ++i) w.bias.push_back(static_cast<float>(random() % 5));
  return w;
}

TEST_F(PackedCacheTest, WeightsInTheOrderOfActivationsComeBack) {
  std::mt19937 random(3);
  const auto backend = make_backend("cpu", {.num_threads = 1, .isa = {}}).value();
  const Checkpoint checkpoint = open_checkpoint(folder_.path()).value();
  const LinearWeight packed = backend->pack(act_order_weight(random), ComputeType::kAuto).value();
  ASSERT_NE(packed.order, nullptr);
  PackedCache first(place_, checkpoint, *backend, "act-order");
  ASSERT_FALSE(first.take("w", packed.out, packed.in));
  first.keep({&packed});
  PackedCache second(place_, checkpoint, *backend, "act-order");
  const std::optional<LinearWeight> read = second.take("w", packed.out, packed.in);
  ASSERT_TRUE(read);
  std::vector<float> x(static_cast<size_t>(packed.in)), before(static_cast<size_t>(packed.out), -7), after;
  for (float& value : x) value = static_cast<float>(random() % 100) / 10 - 5;
  after.assign(before.size(), -9);
  const Mat input{x.data(), DType::kF32, 1, packed.in, packed.in};
  backend->linear(input, packed, {before.data(), DType::kF32, 1, packed.out, packed.out});
  backend->linear(input, *read, {after.data(), DType::kF32, 1, packed.out, packed.out});
  EXPECT_EQ(after, before);
}

TEST_F(PackedCacheTest, StartsSideBySideShareAFolder) {
  const std::vector<float> expected = logits({.on_load = OnLoad::kInt4});
  const fs::path path = files().at(0);
  std::vector<std::thread> starts;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i) {
    starts.emplace_back([&, i] {
      for (int turn = 0; turn < 8; ++turn) {
        if (i == 0) fs::remove(path);  // so that some of the others write as well
        wrong += logits({.on_load = OnLoad::kInt4}) != expected;
      }
    });
  }
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(place_.folder), {}), 1);
}

TEST(Hash64, EveryBitAndTheLengthCount) {
  std::string text(200, 'a');
  const auto hash = [](const std::string& bytes) { return hash64(std::as_bytes(std::span(bytes))); };
  const uint64_t before = hash(text);
  EXPECT_NE(hash(text.substr(1)), before);
  EXPECT_NE(hash(text + std::string(1, '\0')), before);
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      ASSERT_NE(hash(other), before) << at;
    }
  }
}

}  // namespace
}  // namespace whippet
