// How quick the ops of a backend are on the shapes of real models, beside what the machine can do at most:
//   op_bench [--threads N] [--isa NAME] [--seconds S] [--best] [--model NAME] [filter]
// prints the time (median and best), GB/s and GFLOP/s of every op whose name contains the filter.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/cpu/probe.h"
#include "backend/op_testing.h"
#include "backend/registry.h"

namespace whippet::testing {
namespace {

using Codes = CanonicalLinear::Codes;

struct Options {
  BackendOptions backend;
  double seconds = 0.3;  // for each line
  bool best = false;     // rates from the best time instead of the median: for a machine that others use
  std::string model;     // one model only
  std::string filter;
};

struct Model {
  const char* name;
  int32_t hidden, intermediate, q_heads, kv_heads, head_dim, layers;
  WeightShape body, head;  // codes and group; sizes are filled in
  int32_t vocab;
};

class Bench {
 public:
  Bench(const Options& options, Backend& backend, cpu::MachineSpeed machine)
      : options_(options), backend_(backend), machine_(std::move(machine)) {}

  Backend& backend() { return backend_; }
  // input: what kind of products the operations are.
  double seconds(const std::string& name, double bytes, double operations, const std::function<void()>& body,
                 DType input = DType::kF32) {
    if (name.find(options_.filter) == std::string::npos) return 0;
    std::vector<double> times;
    for (double total = 0; total < options_.seconds || times.size() < 3; total += times.back()) {
      const auto start = std::chrono::steady_clock::now();
      body();
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2], used = options_.best ? times[0] : median;
    fmt::print("{:50} {:10.1f} us, best {:10.1f}: {:6.2f} GB/s {:4.0f} % {:7.2f} GFLOP/s {:4.0f} %\n", name,
               median * 1e6, times[0] * 1e6, bytes / used / 1e9,
               100 * bytes / used / 1e9 / machine_.read_gb_per_s, operations / used / 1e9,
               100 * operations / used / 1e9 / peak(input));
    return used;
  }

 private:
  double peak(DType input) const {
    return input == DType::kI8     ? machine_.dot_gops
           : input == DType::kBF16 ? machine_.pair_gflops
                                   : machine_.fma_gflops;
  }

  const Options& options_;
  Backend& backend_;
  cpu::MachineSpeed machine_;
};

// The weights of one kind of every layer.
struct Linears {
  Linears(const char* kind, const WeightShape& all) : name(kind), shape(all) {}

  const char* name;
  WeightShape shape;
  std::vector<LinearWeight> weights;
};

std::vector<Linears> make_linears(Bench& bench, const Model& model) {
  const int32_t q = model.q_heads * model.head_dim, kv = model.kv_heads * model.head_dim;
  const std::vector<std::tuple<const char*, int32_t, int32_t>> sizes = {
      {"qkv", q + 2 * kv, model.hidden},
      {"o", model.hidden, q},
      {"gate_up", 2 * model.intermediate, model.hidden},
      {"down", model.hidden, model.intermediate},
      {"head", model.vocab, model.hidden}};
  std::vector<Linears> all;
  for (const auto& [name, out, in] : sizes) {
    const bool head = std::string_view(name) == "head";
    Linears& each = all.emplace_back(name, head ? model.head : model.body);
    each.shape.out = out;
    each.shape.in = in;
    Random random(1);
    const CanonicalLinear w = random_weight(random, each.shape);
    for (int32_t copy = 0; copy < (head ? 1 : model.layers); ++copy)
      each.weights.push_back(bench.backend().pack(w, ComputeType::kAuto).value());
  }
  return all;
}

// One kind of product in `copies` layers, one after the other.
double bench_linear(Bench& bench, const Model& model, const Linears& linears, size_t copies, int32_t rows) {
  Random random(1);
  const WeightShape& shape = linears.shape;
  copies = std::min(copies, linears.weights.size());
  TestMat x = TestMat::random(random, rows, shape.in), out(rows, shape.out);
  const auto times = static_cast<double>(copies);
  return bench.seconds(
             fmt::format("{} {} {} x{}, {} rows", model.name, linears.name, shape.name(), copies, rows),
             static_cast<double>(linears.weights[0].bytes) * times, 2.0 * shape.out * shape.in * times * rows,
             [&] {
               for (size_t i = 0; i < copies; ++i)
                 bench.backend().linear(x.mat(), linears.weights[i], out.mat());
             },
             linears.weights[0].input_type) /
         times;
}

// All products of a step in their order, so that weights come from memory and not from a cache.
void bench_step(Bench& bench, const Model& model, const std::vector<Linears>& all, int32_t rows) {
  Random random(1);
  std::vector<TestMat> x, out;
  double bytes = 0, operations = 0;
  for (const Linears& each : all) {
    x.push_back(TestMat::random(random, rows, each.shape.in));
    out.emplace_back(rows, each.shape.out);
    const auto times = static_cast<double>(each.weights.size());
    bytes += static_cast<double>(each.weights[0].bytes) * times;
    operations += 2.0 * each.shape.out * each.shape.in * times * rows;
  }
  const double seconds = bench.seconds(
      fmt::format("{} step, {} rows", model.name, rows), bytes, operations,
      [&] {
        for (size_t layer = 0; layer < static_cast<size_t>(model.layers); ++layer)
          for (size_t i = 0; i < all.size(); ++i)
            if (i + 1 < all.size() || layer + 1 == static_cast<size_t>(model.layers))
              bench.backend().linear(x[i].mat(), all[i].weights[i + 1 < all.size() ? layer : 0],
                                     out[i].mat());
      },
      all[0].weights[0].input_type);
  if (seconds > 0)
    fmt::print("{} linears: {} rows in {:.2f} ms = {:.0f} rows/s\n", model.name, rows, seconds * 1e3,
               rows / seconds);
}

void bench_linears(Bench& bench, const Model& model) {
  const std::vector<Linears> all = make_linears(bench, model);
  for (int32_t rows : {1, 2, 4, 8, 16, 32, 64}) bench_step(bench, model, all, rows);
  for (int32_t rows : {1, 16, 512})
    for (const Linears& each : all)
      if (rows <= 64 || std::string_view(each.name) != "head")
        bench_linear(bench, model, each, rows <= 64 ? 8 : 1, rows);
}

void bench_attention(Bench& bench, const Model& model, int32_t rows, int32_t keys) {
  constexpr int32_t kBlock = 16;
  Random random(2);
  const int32_t blocks = (keys + kBlock - 1) / kBlock;
  const int64_t elements = static_cast<int64_t>(blocks) * kBlock * model.kv_heads * model.head_dim;
  Buffer k = Buffer::host(elements * 2), v = Buffer::host(elements * 2);
  for (int64_t i = 0; i < elements; ++i) {
    k.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(random() % 1000) * 0.002f - 1);
    v.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(random() % 1000) * 0.002f - 1);
  }
  std::vector<int32_t> table(blocks), positions(rows), sequence(rows, 0), kv_head_of_q(model.q_heads);
  std::iota(table.begin(), table.end(), 0);
  std::iota(positions.begin(), positions.end(), keys - rows);
  for (int32_t h = 0; h < model.q_heads; ++h) kv_head_of_q[h] = h / (model.q_heads / model.kv_heads);
  BatchView batch;
  batch.num_tokens = rows;
  batch.num_seqs = 1;
  batch.max_blocks_per_seq = blocks;
  batch.positions = positions.data();
  batch.seq_of_token = sequence.data();
  batch.block_table = table.data();
  TestMat q = TestMat::random(random, rows, model.q_heads * model.head_dim), out(rows, q.cols());
  AttentionArgs args;
  args.q = q.mat();
  args.out = out.mat();
  args.cache = {k.as<void>(), v.as<void>(), DType::kBF16, blocks, kBlock, model.kv_heads, model.head_dim};
  args.kv_head_of_q = kv_head_of_q.data();
  args.num_q_heads = model.q_heads;
  args.scale = 1 / std::sqrt(static_cast<float>(model.head_dim));
  const double pairs = static_cast<double>(rows) * (keys - (rows - 1) / 2.0);
  bench.seconds(fmt::format("{} attention, {} rows, {} keys", model.name, rows, keys),
                4.0 * keys * model.kv_heads * model.head_dim, 4.0 * pairs * model.q_heads * model.head_dim,
                [&] { bench.backend().attention(batch, args); });
}

void bench_rows(Bench& bench, const Model& model, int32_t rows) {
  Random random(3);
  TestMat x = TestMat::random(random, rows, model.hidden), y = TestMat::random(random, rows, model.hidden);
  TestMat weight = TestMat::random(random, 1, model.hidden), out(rows, model.hidden);
  TestMat gate_up = TestMat::random(random, rows, 2 * model.intermediate), gated(rows, model.intermediate);
  TestMat angles = TestMat::random(random, rows, model.head_dim);
  TestMat q = TestMat::random(random, rows, model.q_heads * model.head_dim);
  Backend& backend = bench.backend();
  const auto line = [&](const char* op, double floats, const std::function<void()>& body) {
    bench.seconds(fmt::format("{} {}, {} rows", model.name, op, rows), 4 * floats * rows, floats * rows,
                  body);
  };
  line("rms_norm", 2.0 * model.hidden,
       [&] { backend.rms_norm(x.mat(), weight.mat().row<float>(0), model.hidden, 1e-5f, out.mat()); });
  line("add", 3.0 * model.hidden, [&] { backend.add(y.mat(), x.mat()); });
  line("silu_mul", 3.0 * model.intermediate, [&] { backend.silu_mul(gate_up.mat(), gated.mat()); });
  line("rope", 2.0 * q.cols(), [&] { backend.rope(q.mat(), model.head_dim, angles.mat()); });
}

void bench_sample(Bench& bench, const Model& model) {
  Random random(4);
  TestMat logits = TestMat::random(random, 1, model.vocab, 0, 3);
  const auto line = [&](const char* name, SampleRow row) {
    int32_t token, rank, top_ids[20];
    float logprob, top_logprobs[20];
    SampleArgs args;
    args.logits = logits.mat();
    args.rows = &row;
    args.vocab_used = model.vocab;
    args.max_logprobs = 20;
    args.tokens = &token;
    args.ranks = &rank;
    args.logprobs = &logprob;
    args.top_ids = top_ids;
    args.top_logprobs = top_logprobs;
    bench.seconds(fmt::format("{} sample {}", model.name, name), 4.0 * model.vocab, model.vocab, [&] {
      ++row.position;
      bench.backend().sample(args);
    });
  };
  SampleRow row;
  line("greedy", row);
  row.num_logprobs = 20;
  line("greedy, 20 logprobs", row);
  row.num_logprobs = -1;
  row.temperature = 0.7f;
  line("temperature", row);
  row.top_p = 0.9f;
  line("top_p 0.9", row);
  row.top_k = 20;
  line("top_k 20 top_p 0.9", row);
  row = {};
  row.temperature = 5;
  row.top_p = 0.95f;
  line("top_p 0.95, nearly flat", row);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const char* next = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--threads")
      options.backend.num_threads = std::atoi(next), ++i;
    else if (arg == "--isa")
      options.backend.isa = next, ++i;
    else if (arg == "--seconds")
      options.seconds = std::atof(next), ++i;
    else if (arg == "--model")
      options.model = next, ++i;
    else if (arg == "--best")
      options.best = true;
    else
      options.filter = arg;
  }
  return options;
}

int run(const Options& options) {
  auto backend = make_backend("cpu", options.backend);
  if (!backend.ok()) {
    fmt::print(stderr, "{}\n", backend.error().message);
    return 1;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines are seen as they come
  const cpu::MachineSpeed machine =
      cpu::measure_machine(options.backend.num_threads, options.backend.isa).value();
  fmt::print("{}: reads {:.1f} GB/s, {:.0f} fp32 GFLOP/s, {:.0f} int8 GOP/s, {:.0f} bf16 GFLOP/s\n",
             (*backend)->description(), machine.read_gb_per_s, machine.fma_gflops, machine.dot_gops,
             machine.pair_gflops);
  const WeightShape int4_32{.codes = Codes::kU4, .group = 32, .with_min = true, .half_factors = true};
  const WeightShape int8_32{.codes = Codes::kI8, .group = 32, .half_factors = true};
  const WeightShape int4_128{.codes = Codes::kU4, .group = 128, .with_min = true, .half_factors = true};
  const WeightShape int8_128{.codes = Codes::kI8, .group = 128, .half_factors = true};
  const WeightShape bf16{.codes = Codes::kBF16};
  const std::vector<Model> models = {
      {"SmolLM2-135M", 576, 1536, 9, 3, 64, 30, int4_32, int8_32, 49152},
      {"Qwen2.5-0.5B", 896, 4864, 14, 2, 64, 24, bf16, bf16, 151936},
      {"Qwen2.5-0.5B-int4", 896, 4864, 14, 2, 64, 24, int4_128, int8_32, 151936},
      {"Qwen2.5-0.5B-int8", 896, 4864, 14, 2, 64, 24, int8_128, int8_128, 151936},
  };
  Bench bench(options, **backend, machine);
  for (const Model& model : models) {
    if (!options.model.empty() && options.model != model.name) continue;
    bench_linears(bench, model);
    if (&model >= &models[2]) continue;  // the rest is the same
    for (int32_t keys : {512, 4096}) bench_attention(bench, model, 1, keys);
    for (int32_t keys : {512, 4096}) bench_attention(bench, model, 512, keys);
    for (int32_t rows : {1, 512}) bench_rows(bench, model, rows);
    bench_sample(bench, model);
  }
  return 0;
}

}  // namespace
}  // namespace whippet::testing

int main(int argc, char** argv) { return whippet::testing::run(whippet::testing::parse(argc, argv)); }
