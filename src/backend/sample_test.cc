#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backend/op_testing.h"
#include "backend/philox.h"
#include "backend/reference.h"

namespace whippet::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Philox, GivesTheKnownAnswers) {  // from the authors' known-answer tests
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

// Samples rows of logits and returns what came out.
struct Sampled {
  std::vector<int32_t> tokens, ranks, top_ids;
  std::vector<float> logprobs, top_logprobs;
};

Sampled sample(Backend* backend, TestMat logits, const std::vector<SampleRow>& rows, int32_t vocab_used,
               int32_t max_logprobs = 0) {
  const auto n = static_cast<size_t>(logits.rows());
  Sampled out;
  out.tokens.assign(n, -7);
  out.ranks.assign(n, -7);
  out.logprobs.assign(n, -7);
  out.top_ids.assign(n * max_logprobs, -7);
  out.top_logprobs.assign(n * max_logprobs, -7);
  SampleArgs args;
  args.logits = logits.mat();
  args.rows = rows.data();
  args.vocab_used = vocab_used;
  args.max_logprobs = max_logprobs;
  args.tokens = out.tokens.data();
  args.logprobs = out.logprobs.data();
  args.ranks = out.ranks.data();
  args.top_ids = out.top_ids.data();
  args.top_logprobs = out.top_logprobs.data();
  if (backend != nullptr)
    backend->sample(args);
  else
    reference::sample(args);
  EXPECT_TRUE(logits.intact());
  return out;
}

class Sample : public ::testing::TestWithParam<std::string> {
 protected:
  int32_t draw(const TestMat& logits, const SampleRow& row) {
    return sample(backend_.get(), logits, {row}, logits.cols()).tokens[0];
  }

  std::unique_ptr<Backend> backend_ = tested_backend(GetParam());
  Random random_{21};
};

// Rows with every combination of filters, and lists to point into.
struct Lists {
  std::vector<int32_t> seen, counts, bias_ids;
  std::vector<float> bias;
  std::vector<uint32_t> mask;
};

Lists random_lists(Random& random, int32_t vocab) {
  Lists lists;
  for (int32_t i = 0; i < vocab; ++i) {
    if (random() % 20 == 0) {
      lists.seen.push_back(i);
      lists.counts.push_back(static_cast<int32_t>(random() % 3));
    }
    if (random() % 50 == 0) {
      lists.bias_ids.push_back(i);
      lists.bias.push_back(random() % 3 == 0 ? -kInfinity : static_cast<float>(random() % 7) - 3);
    }
  }
  for (int32_t i = 0; i * 32 < vocab; ++i)
    lists.mask.push_back(i % 4 == 1 ? 0u : static_cast<uint32_t>(random() | random()));
  return lists;
}

std::vector<SampleRow> varied_rows(const Lists& lists) {
  std::vector<SampleRow> rows;
  for (float temperature : {0.0f, 0.3f, 1.0f, 2.5f})
    for (int32_t top_k : {0, 1, 7, 300, 1 << 20})
      for (float top_p : {1.0f, 0.95f, 0.5f, 0.01f})
        for (float min_p : {0.0f, 0.05f}) {
          SampleRow row;
          row.temperature = temperature;
          row.top_k = top_k;
          row.top_p = top_p;
          row.min_p = min_p;
          const size_t i = rows.size();
          row.seed = 1000 + i % 5;
          row.position = static_cast<int64_t>(i);
          row.num_logprobs = static_cast<int32_t>(i % 8) - 1;
          if (i % 2 == 0) {
            row.num_seen = static_cast<int32_t>(lists.seen.size());
            row.seen_ids = lists.seen.data();
            row.output_counts = lists.counts.data();
            row.repetition_penalty = 1.3f;
            row.presence_penalty = 0.4f;
            row.frequency_penalty = 0.2f;
          }
          if (i % 3 == 0) {
            row.num_bias = static_cast<int32_t>(lists.bias_ids.size());
            row.bias_ids = lists.bias_ids.data();
            row.bias = lists.bias.data();
          }
          if (i % 5 == 0) row.mask = lists.mask.data();
          rows.push_back(row);
        }
  return rows;
}

void expect_logprob(float actual, float expected, size_t row) {
  if (std::isfinite(expected))
    EXPECT_NEAR(actual, expected, 1e-5) << row;  // logits below 20, their sum good to 2^-22
  else
    EXPECT_EQ(actual, expected) << row;
}

// A draw is decided by comparing sums; the backend's weights are good to 2^-23, so at most a handful of draws
// in a million may fall on the other side of a border. Here none do.
TEST_P(Sample, PicksTheTokensOfTheReference) {
  for (const auto& [vocab, used] :
       {std::pair{1, 1}, {37, 35}, {5000, 5000}, {49152, 49152}, {20000, 19001}}) {
    const Lists lists = random_lists(random_, vocab);
    const std::vector<SampleRow> rows = varied_rows(lists);
    const TestMat logits = TestMat::random(random_, static_cast<int32_t>(rows.size()), vocab, 3, 3);
    const Sampled expected = sample(nullptr, logits, rows, used, 5);
    const Sampled actual = sample(backend_.get(), logits, rows, used, 5);
    for (size_t r = 0; r < rows.size(); ++r) {
      EXPECT_EQ(actual.tokens[r], expected.tokens[r]) << "row " << r << " of vocab " << vocab;
      EXPECT_EQ(actual.ranks[r], expected.ranks[r]) << r;
      expect_logprob(actual.logprobs[r], expected.logprobs[r], r);
      for (size_t i = r * 5; i < r * 5 + 5; ++i) {
        EXPECT_EQ(actual.top_ids[i], expected.top_ids[i]) << r;
        expect_logprob(actual.top_logprobs[i], expected.top_logprobs[i], r);
      }
    }
  }
}

// Equal logits and such as lie in steps: what is kept ends among many equals, of which the lowest ids stay.
// Or half of the row is far above the rest.
TEST_P(Sample, PicksTheTokensOfTheReferenceAmongEquals) {
  constexpr int32_t kVocab = 12000;
  const Lists lists = random_lists(random_, kVocab);
  const std::vector<SampleRow> rows = varied_rows(lists);
  for (const auto& [step, raise] :
       {std::pair{0.25f, 0.0f}, {100.0f, 0.0f}, {0.25f, 20.0f}, {0x1p-20f, 20.0f}}) {
    TestMat logits = TestMat::random(random_, static_cast<int32_t>(rows.size()), kVocab, 1, 2);
    for (int32_t r = 0; r < logits.rows(); ++r)
      for (int32_t c = 0; c < kVocab; ++c)
        logits.at(r, c) = step * std::round(logits.at(r, c) / step) + (c < kVocab / 2 ? raise : 0);
    const Sampled expected = sample(nullptr, logits, rows, kVocab, 5);
    const Sampled actual = sample(backend_.get(), logits, rows, kVocab, 5);
    EXPECT_EQ(actual.tokens, expected.tokens) << step;
    EXPECT_EQ(actual.ranks, expected.ranks) << step;
    EXPECT_EQ(actual.top_ids, expected.top_ids) << step;
  }
}

// Draws many tokens from one row and compares how often each came with the exact distribution.
TEST_P(Sample, DrawsFromTheDistribution) {
  constexpr int32_t kVocab = 3000, kDraws = 40000;
  const TestMat logits = TestMat::random(random_, 1, kVocab, 0, 2);
  std::vector<SampleRow> kinds(4);
  kinds[1].top_k = 40;
  kinds[2].top_p = 0.7f;
  kinds[3].min_p = 0.1f;
  for (SampleRow row : kinds) {
    row.temperature = 0.8f;
    const std::vector<double> exact = reference::distribution(&logits.at(0, 0), kVocab, row);
    std::map<int32_t, int32_t> counts;
    for (int32_t i = 0; i < kDraws; i += 100) {
      TestMat batch(100, kVocab);
      std::vector<SampleRow> rows(100, row);
      for (int32_t r = 0; r < 100; ++r) {
        rows[r].seed = 99;
        rows[r].position = i + r;
        for (int32_t c = 0; c < kVocab; ++c) batch.at(r, c) = logits.at(0, c);
      }
      for (int32_t token : sample(backend_.get(), batch, rows, kVocab).tokens) ++counts[token];
    }
    double chi_square = 0, rest_expected = 0;
    int32_t cells = 0, rest_found = 0;
    for (int32_t i = 0; i < kVocab; ++i) {
      const double expected = exact[i] * kDraws;
      const int32_t found = counts.contains(i) ? counts[i] : 0;
      if (exact[i] == 0) {
        EXPECT_EQ(found, 0) << i;
      } else if (expected < 10) {
        rest_expected += expected;
        rest_found += found;
      } else {
        chi_square += (found - expected) * (found - expected) / expected;
        ++cells;
      }
    }
    if (rest_expected > 10) chi_square += std::pow(rest_found - rest_expected, 2) / rest_expected, ++cells;
    // Mean cells - 1, variance twice that: 5 standard deviations.
    EXPECT_LT(chi_square, cells - 1 + 5 * std::sqrt(2.0 * cells)) << "of " << cells;
    EXPECT_GT(chi_square, cells - 1 - 5 * std::sqrt(2.0 * cells)) << "of " << cells;
  }
}

// Every token of the set must be drawable and no other: with the draws spread evenly over [0, 1) each token
// that weighs more than the spacing is hit.
TEST_P(Sample, KeepsExactlyTheSetsOfTheReference) {
  constexpr int32_t kVocab = 400, kDraws = 20000;
  const TestMat logits = TestMat::random(random_, 1, kVocab, 0, 1);
  for (const auto& [top_k, top_p, min_p] :
       {std::tuple{10, 1.0f, 0.0f}, {0, 0.3f, 0.0f}, {0, 1.0f, 0.3f}, {20, 0.6f, 0.0f}, {15, 0.9f, 0.2f}}) {
    SampleRow row;
    row.temperature = 1.5f;
    row.top_k = top_k;
    row.top_p = top_p;
    row.min_p = min_p;
    const std::vector<double> exact = reference::distribution(&logits.at(0, 0), kVocab, row);
    std::vector<bool> found(kVocab, false);
    for (int32_t i = 0; i < kDraws; i += 200) {
      TestMat batch(200, kVocab);
      std::vector<SampleRow> rows(200, row);
      for (int32_t r = 0; r < 200; ++r) {
        rows[r].position = i + r;
        for (int32_t c = 0; c < kVocab; ++c) batch.at(r, c) = logits.at(0, c);
      }
      for (int32_t token : sample(backend_.get(), batch, rows, kVocab).tokens) found[token] = true;
    }
    for (int32_t i = 0; i < kVocab; ++i) EXPECT_EQ(found[i], exact[i] > 0) << i << " has " << exact[i];
  }
}

TEST_P(Sample, DependsOnSeedAndPositionAlone) {
  const TestMat logits = TestMat::random(random_, 1, 1000, 0, 1);
  SampleRow row;
  row.temperature = 1;
  row.seed = 5;
  row.position = 17;
  const int32_t alone = draw(logits, row);
  TestMat batch(9, 1000);
  std::vector<SampleRow> rows(9);
  for (int32_t r = 0; r < 9; ++r) {
    rows[r].temperature = 0.5f;
    rows[r].seed = r;
    for (int32_t c = 0; c < 1000; ++c) batch.at(r, c) = logits.at(0, c);
  }
  rows[6] = row;
  for (int32_t threads : {1, 2, 3})
    EXPECT_EQ(sample(tested_backend(GetParam(), threads).get(), batch, rows, 1000).tokens[6], alone);
  int32_t different = 0;
  for (int64_t position = 0; position < 50; ++position) {
    row.position = position;
    different += draw(logits, row) != alone;
  }
  row.position = 17;
  for (uint64_t seed = 100; seed < 150; ++seed) {
    row.seed = seed;
    different += draw(logits, row) != alone;
  }
  EXPECT_GT(different, 90);
}

TEST_P(Sample, GreedyTakesTheLowestIdAmongEquals) {
  TestMat logits(1, 100);
  for (int32_t c = 0; c < 100; ++c) logits.at(0, c) = c == 33 || c == 34 || c == 90 ? 2.0f : -1.0f;
  EXPECT_EQ(draw(logits, {}), 33);
}

TEST_P(Sample, NeverDrawsPaddingBannedOrMaskedTokens) {
  TestMat logits(1, 64);
  for (int32_t c = 0; c < 64; ++c) logits.at(0, c) = static_cast<float>(c);
  const int32_t ban = 49;
  const float never = -kInfinity;
  const std::vector<uint32_t> mask = {~0u, ~0u >> 15};  // below 49
  SampleRow row;
  EXPECT_EQ(sample(backend_.get(), logits, {row}, 50).tokens[0], 49);
  row.num_bias = 1;
  row.bias_ids = &ban;
  row.bias = &never;
  EXPECT_EQ(sample(backend_.get(), logits, {row}, 50).tokens[0], 48);
  row.num_bias = 0;
  row.mask = mask.data();
  EXPECT_EQ(sample(backend_.get(), logits, {row}, 64).tokens[0], 48);
}

TEST_P(Sample, PenaltiesActOnSeenTokensOnly) {
  TestMat logits(1, 4);
  logits.at(0, 0) = 4;
  logits.at(0, 1) = 3;
  logits.at(0, 2) = -1;
  logits.at(0, 3) = -2;
  const std::vector<int32_t> seen = {0, 2};
  std::vector<int32_t> counts = {0, 0};
  SampleRow row;
  row.num_seen = 2;
  row.seen_ids = seen.data();
  row.output_counts = counts.data();
  const auto logit = [&](int32_t id) {  // through the distribution: log p differences are logit differences
    SampleRow warm = row;
    warm.temperature = 1;
    const std::vector<double> p = reference::distribution(&logits.at(0, 0), 4, warm);
    return std::log(p[id] / p[3]) - 2;
  };
  EXPECT_EQ(draw(logits, row), 0);
  row.repetition_penalty = 2;  // 4 / 2 < 3, and -1 * 2
  EXPECT_EQ(draw(logits, row), 1);
  EXPECT_NEAR(logit(0), 2, 1e-9);
  EXPECT_NEAR(logit(2), -2, 1e-9);
  row.repetition_penalty = 1;
  row.presence_penalty = 1.5f;  // not in the output yet: nothing
  EXPECT_EQ(draw(logits, row), 0);
  counts = {3, 1};
  EXPECT_EQ(draw(logits, row), 1);
  EXPECT_NEAR(logit(0), 2.5, 1e-9);
  row.presence_penalty = 0;
  row.frequency_penalty = 0.25f;
  EXPECT_EQ(draw(logits, row), 0);
  EXPECT_NEAR(logit(0), 3.25, 1e-9);
  EXPECT_NEAR(logit(2), -1.25, 1e-9);
}

TEST_P(Sample, SaysWhenNoLogitIsFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float temperature : {0.0f, 1.0f}) {
    TestMat logits(3, 70);
    for (int32_t c = 0; c < 70; ++c) {
      logits.at(0, c) = nan;
      logits.at(1, c) = c % 2 == 0 ? kInfinity : -kInfinity;
      logits.at(2, c) = c == 69 ? -3.0f : nan;
    }
    std::vector<SampleRow> rows(3);
    for (SampleRow& row : rows) {
      row.temperature = temperature;
      row.num_logprobs = 2;
    }
    const Sampled out = sample(backend_.get(), logits, rows, 70, 2);
    EXPECT_EQ(out.tokens, (std::vector<int32_t>{-1, -1, 69}));
    EXPECT_EQ(out.ranks, (std::vector<int32_t>{0, 0, 1}));
    EXPECT_EQ(out.logprobs, (std::vector<float>{-kInfinity, -kInfinity, 0}));
    EXPECT_EQ(out.top_ids, (std::vector<int32_t>{-1, -1, -1, -1, 69, -1}));
  }
}

TEST_P(Sample, SurvivesExtremeParametersAndLogits) {
  TestMat logits = TestMat::random(random_, 1, 777, 0, 1e30f);
  const int32_t best = draw(logits, {});
  for (float temperature : {1e-45f, 1e-30f, 1.0f})
    for (float top_p : {0.0f, 0.9f, 1.0f})
      for (float min_p : {0.0f, 1.0f})
        for (int32_t top_k : {0, 1, 777, 1 << 30}) {
          SampleRow row;
          row.temperature = temperature;
          row.top_p = top_p;
          row.min_p = min_p;
          row.top_k = top_k;
          EXPECT_EQ(draw(logits, row), best);
        }
  SampleRow hot;
  hot.temperature = std::numeric_limits<float>::max();
  const int32_t token = draw(logits, hot);
  EXPECT_TRUE(token >= 0 && token < 777);
}

TEST_P(Sample, LeavesRowsWithoutLogprobsAlone) {
  const TestMat logits = TestMat::random(random_, 2, 50);
  std::vector<SampleRow> rows(2);
  rows[1].num_logprobs = 0;
  const Sampled out = sample(backend_.get(), logits, rows, 50, 1);
  EXPECT_EQ(out.ranks, (std::vector<int32_t>{-7, 1}));
  EXPECT_EQ(out.logprobs[0], -7);
  EXPECT_LT(out.logprobs[1], 0);
  EXPECT_EQ(out.top_ids, (std::vector<int32_t>{-7, -1}));
}

INSTANTIATE_TEST_SUITE_P(Backends, Sample, ::testing::ValuesIn(tested_backends()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace whippet::testing
