// How long the parts of a forward pass take on the GPU, in graphs as the engine runs them:
//   cuda_bench [--model qwen2.5-0.5b|internlm2-1.8b] [--context N] [--prompt] [rows...]
// prints for every number of rows the time of all layers with the head, and of each part of a layer by
// itself, once for every layer. --prompt: the rows are the last of one sequence, else each has a sequence of
// its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

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

struct Options {
  Sizes sizes = kQwen;
  int32_t context = 512;
  bool prompt = false;
  std::vector<int32_t> rows;
};

class Step {
 public:
  Step(Backend& backend, const Options& options, int32_t rows, int32_t max_rows)
      : backend_(backend), m_(options.sizes), max_rows_(max_rows) {
    make_weights();
    const auto matrix = [&](int32_t columns) {
      return backend.allocate(static_cast<size_t>(max_rows) * static_cast<size_t>(columns) * 2);
    };
    x_ = matrix(m_.hidden), normed_ = matrix(m_.hidden), qkv_ = matrix(qkv_columns());
    attended_ = matrix(m_.q_heads * m_.dim), gate_up_ = matrix(2 * m_.inner), gated_ = matrix(m_.inner);
    angles_ = backend.allocate(static_cast<size_t>(max_rows) * static_cast<size_t>(m_.dim) * 4);
    last_ = matrix(m_.hidden);
    logits_ = backend.allocate(static_cast<size_t>(max_rows) * static_cast<size_t>(m_.vocab) * 4);
    set_rows(options, rows);
  }

  void set_rows(const Options& options, int32_t rows) {
    const int32_t seqs = options.prompt ? 1 : rows, context = std::max(options.context, rows);
    const int32_t blocks = ceil_div(context, kBlock);
    std::vector<int32_t> positions, sequences, table(static_cast<size_t>(seqs * blocks)), heads, logit_rows;
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
    batch_ = {};
    batch_.num_tokens = rows;
    batch_.num_seqs = seqs;
    batch_.num_logits = wanted;
    batch_.max_blocks_per_seq = blocks;
    batch_.positions = positions_.as<int32_t>();
    batch_.seq_of_token = sequences_.as<int32_t>();
    batch_.block_table = table_.as<int32_t>();
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
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

 private:
  int32_t qkv_columns() const { return (m_.q_heads + 2 * m_.kv_heads) * m_.dim; }
  LinearWeight weight(int32_t out, int32_t in, bool with_bias) {
    CanonicalLinear w;
    w.codes_type = CanonicalLinear::Codes::kBF16;
    w.out = out;
    w.in = in;
    const size_t count = static_cast<size_t>(out) * static_cast<size_t>(in);
    while (numbers_.size() < count) {  // of either sign, about 0.01
      seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
      numbers_.push_back(static_cast<uint16_t>((seed_ >> 63) << 15 | 0x3c00 | (seed_ >> 40 & 0x7f)));
    }
    w.codes = std::as_bytes(std::span(numbers_).first(count));
    if (with_bias) w.bias.assign(static_cast<size_t>(out), 0.01f);
    return backend_.pack(w, ComputeType::kAuto).value();
  }
  void make_weights() {
    for (int32_t i = 0; i < m_.layers; ++i) {
      qkvs_.push_back(weight(qkv_columns(), m_.hidden, true));
      os_.push_back(weight(m_.hidden, m_.q_heads * m_.dim, false));
      gate_ups_.push_back(weight(2 * m_.inner, m_.hidden, false));
      downs_.push_back(weight(m_.hidden, m_.inner, false));
    }
    head_ = weight(m_.vocab, m_.hidden, false);
    const std::vector<float> ones(static_cast<size_t>(m_.hidden), 1.0f);
    norm_ = backend_.allocate(ones.size() * 4);
    backend_.copy_to_device(norm_.as<void>(), ones.data(), ones.size() * 4);
    positions_out_ = backend_.allocate(static_cast<size_t>(max_rows_) * 4);
    word_ = backend_.allocate(4);
  }

  Backend& backend_;
  Sizes m_;
  int32_t max_rows_, num_blocks_ = 0;
  uint64_t seed_ = 1, key_ = 1;
  std::vector<uint16_t> numbers_;
  std::vector<LinearWeight> qkvs_, os_, gate_ups_, downs_;
  LinearWeight head_;
  std::vector<Buffer> caches_;
  Buffer norm_, x_, normed_, qkv_, attended_, gate_up_, gated_, angles_, last_, logits_;
  Buffer positions_, sequences_, table_, heads_, logit_rows_, frequencies_, positions_out_, word_;
  BatchView batch_;
};

void report(Step& step, int32_t rows) {
  const auto layers = [&](auto part) {
    return step.time([&step, part] { step.each_layer([&](size_t layer) { (step.*part)(layer); }); });
  };
  const double all = step.time([&] { step.all(); });
  fmt::print(
      "{:5} rows: {:8.1f} us a step, {:8.0f} rows/s | all layers: qkv {:.1f}, attention {:.1f}, o {:.1f}, "
      "gate_up {:.1f}, down {:.1f} | head {:.1f}",
      rows, all, rows / all * 1e6, layers(&Step::project_qkv), layers(&Step::attend),
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
  const int32_t most = *std::max_element(options.rows.begin(), options.rows.end());
  Step step(**backend, options, options.rows.front(), most);
  for (const int32_t rows : options.rows) {
    step.set_rows(options, rows);
    report(step, rows);
  }
  return 0;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--model") {
      options.sizes = next == "internlm2-1.8b" ? kInternLm : kQwen, ++i;
    } else if (arg == "--context") {
      options.context = std::atoi(argv[++i]);
    } else if (arg == "--prompt") {
      options.prompt = true;
    } else {
      options.rows.push_back(std::max(1, std::atoi(argv[i])));
    }
  }
  if (options.rows.empty()) options.rows = {1, 8, 64, 256};
  return options;
}

}  // namespace
}  // namespace whippet

int main(int argc, char** argv) { return whippet::run(whippet::parse(argc, argv)); }
