// How long the parts of a forward pass take on the GPU, in graphs as the engine runs them:
//   cuda_bench [--model qwen2.5-0.5b|internlm2-1.8b] [--context N] [--prompt] [--sampling]
//              [--weights A,B,...] [--rounds N] [rows...]
// prints for every number of rows the time of all layers with the head, and of each part of a layer by
// itself, once for every layer. --prompt: the rows are the last of one sequence, else each has a sequence of
// its own. --sampling: kinds of sampling alone. --weights: what is timed in turns, a step `--rounds` times,
// each the median of the rounds, and how many times as quick as the first: bf16, int8 (a scale a row), int4gN
// (groups of N, symmetric), int4gNa (with minima), and after a plus sign the head, where it differs:
// int4g128+int8 (int4 alone: a bf16 head).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_bench_sample.h"
#include "backend/registry.h"
#include "base/math.h"

namespace whippet {
namespace {

struct Sizes {
  int32_t hidden, inner, q_heads, kv_heads, dim, layers, vocab;
};
constexpr Sizes kQwen{896, 4864, 14, 2, 64, 24, 151936};
constexpr Sizes kInternLm{2048, 8192, 16, 8, 128, 24, 92544};
constexpr int32_t kBlock = 16;
constexpr float kEps = 1e-6f;

// Weights of one sort.
struct Sort {
  int32_t bits = 16;
  int32_t group = 0;  // 0: a scale a row
  bool symmetric = true;
};
struct Scheme {
  std::string name = "bf16";
  Sort body, head;
};

struct Options {
  Sizes sizes = kQwen;
  int32_t context = 512;
  bool prompt = false, sampling = false;
  int32_t rounds = 3;
  std::vector<Scheme> schemes;
  std::vector<int32_t> rows;
};

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

class Step {
 public:
  // first_key: of a million that no other has.
  Step(Backend& backend, const Options& options, const Scheme& scheme, uint64_t first_key, int32_t max_rows)
      : backend_(backend), m_(options.sizes), max_rows_(max_rows), key_(first_key) {
    make_weights(scheme);
    const auto matrix = [&](int32_t columns) {
      return backend.allocate(static_cast<size_t>(max_rows) * static_cast<size_t>(columns) * 2);
    };
    x_ = matrix(m_.hidden), normed_ = matrix(m_.hidden), qkv_ = matrix(qkv_columns());
    attended_ = matrix(m_.q_heads * m_.dim), gate_up_ = matrix(2 * m_.inner), gated_ = matrix(m_.inner);
    angles_ = backend.allocate(static_cast<size_t>(max_rows) * static_cast<size_t>(m_.dim) * 4);
    last_ = matrix(m_.hidden);
    logits_ = backend.allocate(static_cast<size_t>(max_rows) * static_cast<size_t>(m_.vocab) * 4);
  }

  void set_rows(const Options& options, int32_t rows) {
    const int32_t seqs = options.prompt ? 1 : rows, context = std::max(options.context, rows);
    const int32_t blocks = ceil_div(context, kBlock);
    std::vector<int32_t> positions, sequences, table(static_cast<size_t>(seqs * blocks)), heads, logit_rows;
    std::vector<int32_t> begins;
    for (int32_t q = 0; q <= seqs; ++q) begins.push_back(options.prompt ? q * rows : q);
    for (int32_t r = 0; r < rows; ++r) {
      positions.push_back(options.prompt ? context - rows + r : context - 1);
      sequences.push_back(options.prompt ? 0 : r);
    }
    for (int32_t i = 0; i < seqs * blocks; ++i)
      table[static_cast<size_t>(i)] = static_cast<int32_t>(int64_t{i} * 7919 % (int64_t{seqs} * blocks));
    for (int32_t h = 0; h < m_.q_heads; ++h) heads.push_back(h / (m_.q_heads / m_.kv_heads));
    const int32_t wanted = options.prompt ? 1 : rows;
    for (int32_t r = 0; r < wanted; ++r) logit_rows.push_back(rows - wanted + r);
    const std::vector<float> frequencies(static_cast<size_t>(seqs * m_.dim / 2), 0.01f);
    const auto upload = [&](Buffer& to, const auto& from) {
      to = backend_.allocate(from.size() * 4);
      backend_.copy_to_device(to.template as<void>(), from.data(), from.size() * 4);
    };
    upload(positions_, positions), upload(sequences_, sequences), upload(table_, table);
    upload(heads_, heads), upload(logit_rows_, logit_rows), upload(frequencies_, frequencies);
    upload(begins_, begins);
    batch_ = {};
    batch_.num_tokens = rows;
    batch_.num_seqs = seqs;
    batch_.num_logits = wanted;
    batch_.max_blocks_per_seq = blocks;
    batch_.positions = positions_.as<int32_t>();
    batch_.seq_of_token = sequences_.as<int32_t>();
    batch_.block_table = table_.as<int32_t>();
    batch_.row_begin = begins_.as<int32_t>();
    batch_.logit_rows = logit_rows_.as<int32_t>();
    batch_.inv_freq = frequencies_.as<float>();
    caches_.clear();
    for (int32_t i = 0; i < 2 * m_.layers; ++i)
      caches_.push_back(backend_.allocate(static_cast<size_t>(seqs * blocks * kBlock) *
                                          static_cast<size_t>(m_.kv_heads * m_.dim) * 2));
    num_blocks_ = seqs * blocks;
  }

  Mat rows_of(const Buffer& of, int32_t columns) const {
    return of.mat(DType::kBF16, batch_.num_tokens, columns);
  }
  Mat x() const { return rows_of(x_, m_.hidden); }
  Mat normed() const { return rows_of(normed_, m_.hidden); }
  Mat qkv() const { return rows_of(qkv_, qkv_columns()); }
  Mat angles() const { return angles_.mat(DType::kF32, batch_.num_tokens, m_.dim); }

  void begin() { backend_.rope_angles(batch_, angles()); }
  void project_qkv(size_t layer) {
    backend_.rms_norm(x(), norm_.as<float>(), m_.hidden, kEps, normed());
    backend_.linear(normed(), qkvs_[layer], qkv());
  }
  void attend(size_t layer) {
    const Mat q = qkv().columns(0, m_.q_heads * m_.dim), k = qkv().columns(q.cols, m_.kv_heads * m_.dim);
    const Mat v = qkv().columns(q.cols + k.cols, k.cols);
    const KvCacheView cache{caches_[2 * layer].as<void>(),
                            caches_[2 * layer + 1].as<void>(),
                            DType::kBF16,
                            num_blocks_,
                            kBlock,
                            m_.kv_heads,
                            m_.dim};
    backend_.rope(q, m_.dim, angles());
    backend_.rope(k, m_.dim, angles());
    backend_.store_kv(batch_, k, v, cache);
    AttentionArgs args;
    args.q = q;
    args.cache = cache;
    args.kv_head_of_q = heads_.as<int32_t>();
    args.num_q_heads = m_.q_heads;
    args.scale = 1 / std::sqrt(static_cast<float>(m_.dim));
    args.out = rows_of(attended_, m_.q_heads * m_.dim);
    backend_.attention(batch_, args);
  }
  void project_o(size_t layer) {
    backend_.linear(rows_of(attended_, m_.q_heads * m_.dim), os_[layer], normed());
    backend_.add(normed(), x());
  }
  void gate_up(size_t layer) {
    const Mat both = rows_of(gate_up_, 2 * m_.inner);
    backend_.rms_norm(x(), norm_.as<float>(), m_.hidden, kEps, normed());
    backend_.linear(normed(), gate_ups_[layer], both);
    backend_.silu_mul(both, rows_of(gated_, m_.inner));
  }
  void down(size_t layer) {
    backend_.linear(rows_of(gated_, m_.inner), downs_[layer], normed());
    backend_.add(normed(), x());
  }
  void head() {
    const Mat last = last_.mat(DType::kBF16, batch_.num_logits, m_.hidden);
    backend_.gather_rows(x(), batch_.logit_rows, last);
    backend_.rms_norm(last, norm_.as<float>(), m_.hidden, kEps, last);
    backend_.linear(last, head_, logits_.mat(DType::kF32, batch_.num_logits, m_.vocab));
  }
  template <class Body>
  void each_layer(const Body& body) {
    for (size_t layer = 0; layer < qkvs_.size(); ++layer) body(layer);
  }
  void all() {
    begin();
    each_layer([&](size_t layer) {
      project_qkv(layer);
      attend(layer);
      project_o(layer);
      gate_up(layer);
      down(layer);
    });
    head();
  }
  void sample(bool greedy) {
    std::vector<SampleRow> rows(static_cast<size_t>(batch_.num_logits));
    for (SampleRow& row : rows) {
      if (greedy) continue;
      row.temperature = 0.7f;
      row.top_k = 20;
      row.top_p = 0.8f;
    }
    SampleArgs args;
    args.logits = logits_.mat(DType::kF32, batch_.num_logits, m_.vocab);
    args.rows = rows.data();
    args.vocab_used = m_.vocab;
    args.tokens = positions_out_.as<int32_t>();
    backend_.sample(args);
  }

  // The median microseconds of one repetition.
  double time(const std::function<void()>& body, bool graph = true) {
    const auto once = [&] { graph ? backend_.run_step(key_, body) : body(); };
    int32_t word = 0;
    const auto settle = [&] { backend_.copy_to_host(&word, positions_.as<void>(), 4); };
    ++key_;
    for (int i = 0; i < 3; ++i) {  // after a copy, as in the engine, so that keys may be read ahead
      backend_.copy_to_device(word_.as<void>(), &word, 4);
      once();
    }
    settle();
    std::vector<double> times;
    for (int sample = 0; sample < 7; ++sample) {
      constexpr int kRepeat = 20;
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRepeat; ++i) once();
      settle();
      const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
      times.push_back(spent.count() / kRepeat);
    }
    return median(std::move(times));
  }

 private:
  int32_t qkv_columns() const { return (m_.q_heads + 2 * m_.kv_heads) * m_.dim; }
  uint64_t random() { return seed_ = seed_ * 6364136223846793005u + 1442695040888963407u; }
  LinearWeight weight(Sort sort, int32_t out, int32_t in, bool with_bias) {
    CanonicalLinear w;
    w.out = out;
    w.in = in;
    const size_t count = static_cast<size_t>(out) * static_cast<size_t>(in);
    if (sort.bits == 16) {
      w.codes_type = CanonicalLinear::Codes::kBF16;
      while (numbers_.size() < count)  // of either sign, about 0.01
        numbers_.push_back(static_cast<uint16_t>((random() >> 63) << 15 | 0x3c00 | (seed_ >> 40 & 0x7f)));
      w.codes = std::as_bytes(std::span(numbers_).first(count));
    } else {
      w.codes_type = sort.bits == 8 ? CanonicalLinear::Codes::kI8 : CanonicalLinear::Codes::kU4;
      while (codes_.size() < count) codes_.push_back(static_cast<uint8_t>(random() >> 56));
      w.codes = std::as_bytes(std::span(codes_).first(count));
      w.group = sort.group > 0 ? sort.group : in;
      const size_t factors = static_cast<size_t>(out) * static_cast<size_t>(w.num_groups());
      w.scale.assign(factors, sort.bits == 8 ? 0x1p-13f : 0x1p-9f);
      if (sort.bits == 4) w.min.assign(factors, (sort.symmetric ? -8.0f : -7.5f) * 0x1p-9f);
    }
    if (with_bias) w.bias.assign(static_cast<size_t>(out), 0.01f);
    return backend_.pack(w, ComputeType::kAuto).value();
  }
  void make_weights(const Scheme& scheme) {
    const Sort sort = scheme.body;
    for (int32_t i = 0; i < m_.layers; ++i) {
      qkvs_.push_back(weight(sort, qkv_columns(), m_.hidden, true));
      os_.push_back(weight(sort, m_.hidden, m_.q_heads * m_.dim, false));
      gate_ups_.push_back(weight(sort, 2 * m_.inner, m_.hidden, false));
      downs_.push_back(weight(sort, m_.hidden, m_.inner, false));
    }
    head_ = weight(scheme.head, m_.vocab, m_.hidden, false);
    numbers_ = {};
    codes_ = {};
    const std::vector<float> ones(static_cast<size_t>(m_.hidden), 1.0f);
    norm_ = backend_.allocate(ones.size() * 4);
    backend_.copy_to_device(norm_.as<void>(), ones.data(), ones.size() * 4);
    positions_out_ = backend_.allocate(static_cast<size_t>(max_rows_) * 4);
    word_ = backend_.allocate(4);
  }

  Backend& backend_;
  Sizes m_;
  int32_t max_rows_, num_blocks_ = 0;
  uint64_t seed_ = 1, key_;
  std::vector<uint16_t> numbers_;
  std::vector<uint8_t> codes_;
  std::vector<LinearWeight> qkvs_, os_, gate_ups_, downs_;
  LinearWeight head_;
  std::vector<Buffer> caches_;
  Buffer norm_, x_, normed_, qkv_, attended_, gate_up_, gated_, angles_, last_, logits_;
  Buffer positions_, sequences_, begins_, table_, heads_, logit_rows_, frequencies_, positions_out_, word_;
  BatchView batch_;
};

// A step takes `all` us; the first scheme's, `first`.
void report(Step& step, const std::string& name, int32_t rows, double all, double first) {
  const auto layers = [&](auto part) {
    return step.time([&step, part] { step.each_layer([&](size_t layer) { (step.*part)(layer); }); });
  };
  fmt::print(
      "{:5} rows {:16} {:8.1f} us a step, x{:.3f}, {:8.0f} rows/s | all layers: qkv {:.1f}, attention "
      "{:.1f}, "
      "o {:.1f}, gate_up {:.1f}, down {:.1f} | head {:.1f}",
      rows, name, all, first / all, rows / all * 1e6, layers(&Step::project_qkv), layers(&Step::attend),
      layers(&Step::project_o), layers(&Step::gate_up), layers(&Step::down), step.time([&] { step.head(); }));
  fmt::print(" | sampling: greedy {:.1f}, top_k and top_p {:.1f}\n",
             step.time([&] { step.sample(true); }, false), step.time([&] { step.sample(false); }, false));
  std::fflush(stdout);
}

int run(const Options& options) {
  BackendOptions wanted;
  wanted.activations = DType::kBF16;
  auto backend = make_backend("cuda", wanted);
  if (!backend.ok()) {
    fmt::print(stderr, "{}\n", backend.error().message);
    return 1;
  }
  fmt::print("{}, {} tokens of context\n", (*backend)->description(), options.context);
  if (options.sampling) {
    bench_sampling(**backend, options.sizes.vocab, options.rows);
    return 0;
  }
  const int32_t most = *std::max_element(options.rows.begin(), options.rows.end());
  std::vector<std::unique_ptr<Step>> steps;
  for (const Scheme& scheme : options.schemes)
    steps.push_back(std::make_unique<Step>(**backend, options, scheme, (steps.size() + 1) * 1'000'000, most));
  for (const int32_t rows : options.rows) {
    std::vector<std::vector<double>> times(steps.size());
    for (const auto& step : steps) step->set_rows(options, rows);
    for (int32_t round = 0; round < options.rounds; ++round)
      for (size_t i = 0; i < steps.size(); ++i) times[i].push_back(steps[i]->time([&] { steps[i]->all(); }));
    for (size_t i = 0; i < steps.size(); ++i)
      report(*steps[i], options.schemes[i].name, rows, median(times[i]), median(times[0]));
  }
  return 0;
}

// Without a value: the usage is wrong.
std::optional<Sort> parse_sort(std::string_view name) {
  Sort sort;
  if (name == "bf16") return sort;
  if (name == "int8") return Sort{8, 0, true};
  if (!name.starts_with("int4g")) return std::nullopt;
  sort.bits = 4;
  sort.symmetric = !name.ends_with('a');
  sort.group = std::atoi(std::string(name.substr(5)).c_str());
  return sort.group > 0 ? std::optional(sort) : std::nullopt;
}

std::optional<Scheme> parse_scheme(std::string_view name) {
  const size_t plus = name.find('+');
  const auto body = parse_sort(name.substr(0, plus));
  if (!body) return std::nullopt;
  Scheme scheme{std::string(name), *body, *body};
  if (body->bits == 4) scheme.head = {};
  if (plus == std::string_view::npos) return scheme;
  const auto head = parse_sort(name.substr(plus + 1));
  if (!head) return std::nullopt;
  scheme.head = *head;
  return scheme;
}

std::vector<Scheme> parse_schemes(std::string_view names) {
  std::vector<Scheme> schemes;
  while (!names.empty()) {
    const size_t comma = names.find(',');
    if (const auto scheme = parse_scheme(names.substr(0, comma))) {
      schemes.push_back(*scheme);
    } else {
      fmt::print(stderr, "--weights: '{}' is left out: bf16, int8, int4g128 or int4g128a, and +head\n",
                 names.substr(0, comma));
    }
    names = comma == std::string_view::npos ? "" : names.substr(comma + 1);
  }
  return schemes;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--model") {
      options.sizes = next == "internlm2-1.8b" ? kInternLm : kQwen, ++i;
    } else if (arg == "--context") {
      options.context = std::atoi(argv[++i]);
    } else if (arg == "--weights") {
      options.schemes = parse_schemes(next), ++i;
    } else if (arg == "--rounds") {
      options.rounds = std::max(1, std::atoi(next.data())), ++i;
    } else if (arg == "--prompt") {
      options.prompt = true;
    } else if (arg == "--sampling") {
      options.sampling = true;
    } else {
      options.rows.push_back(std::max(1, std::atoi(argv[i])));
    }
  }
  if (options.schemes.empty()) options.schemes = {Scheme{}};
  if (options.rows.empty()) options.rows = {1, 8, 64, 256};
  return options;
}

}  // namespace
}  // namespace whippet

int main(int argc, char** argv) { return whippet::run(whippet::parse(argc, argv)); }
