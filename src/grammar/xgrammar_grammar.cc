// xgrammar behind the seam of compiled_grammar.h: every exception ends here.
#include <dlpack/dlpack.h>

#include <vector>

// A default argument of theirs, which nothing here calls, makes a vector of a class that is not complete yet:
// in C++20 clang 14 refuses that. This one takes its place.
namespace xgrammar {
struct NamedGrammar;
}
template <>
class std::vector<xgrammar::NamedGrammar> {};

#include <xgrammar/compiler.h>
#include <xgrammar/matcher.h>

#include <exception>
#include <utility>
#include <variant>

#include "base/check.h"
#include "grammar/compiled_grammar.h"

// xgrammar is built with XGRAMMAR_LOG_CUSTOMIZE: these two are ours to write.
namespace xgrammar {
namespace {

// The warnings of the compilation that runs on this thread: what xgrammar would leave out is refused.
thread_local std::string* warnings = nullptr;

constexpr int kWarning = 2;

}  // namespace

[[noreturn]] void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string& file, int, int level, const std::string& message) {
  if (level < kWarning || warnings == nullptr || !warnings->empty()) return;
  // Of the automata it builds; they are told where nothing is left out as well.
  if (file.ends_with("fsm_builder.cc")) return;
  *warnings = message;
}

struct WarningsHere {
  explicit WarningsHere(std::string& text) { warnings = &text; }
  ~WarningsHere() { warnings = nullptr; }
};

}  // namespace xgrammar

namespace whippet::grammar {
namespace {

constexpr size_t kLongestReason = 400;  // bytes of what xgrammar says

Error refuse(std::string_view reason) {
  reason = reason.substr(0, reason.find('\n')).substr(0, kLongestReason);
  return make_error(Code::kInvalidArgument, "structured_outputs: {}", reason);
}

xgrammar::Grammar parse(const GrammarSource& source, const xgrammar::TokenizerInfo& info) {
  if (source.kind == GrammarSource::Kind::kEbnf) return xgrammar::Grammar::FromEBNF(source.text);
  auto parsed = xgrammar::Grammar::FromStructuralTag(source.text, info);
  if (auto* error = std::get_if<xgrammar::StructuralTagError>(&parsed)) {
    std::visit([](const auto& e) { throw std::runtime_error(e.what()); }, *error);
  }
  return std::get<xgrammar::Grammar>(parsed);
}

}  // namespace

struct GrammarMatcher::Impl {
  xgrammar::GrammarMatcher matcher;
  int32_t vocab_size;
};

struct CompiledGrammar::Impl {
  xgrammar::CompiledGrammar compiled;
};

struct GrammarBuilder::Impl {
  xgrammar::TokenizerInfo info;
  xgrammar::GrammarCompiler compiler;
};

std::string grammar_library() { return "xgrammar " WHIPPET_XGRAMMAR_VERSION; }

GrammarMatcher::GrammarMatcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

bool GrammarMatcher::accept(int32_t token) {
  try {
    return !impl_->matcher.IsTerminated() && impl_->matcher.AcceptToken(token);
  } catch (const std::exception&) {
    return false;
  }
}

bool GrammarMatcher::fill(std::span<uint32_t> mask) {
  auto words = static_cast<int64_t>((impl_->vocab_size + 31) / 32);
  WH_CHECK(static_cast<int64_t>(mask.size()) >= words);
  DLTensor tensor{.data = mask.data(),
                  .device = {.device_type = kDLCPU, .device_id = 0},
                  .ndim = 1,
                  .dtype = xgrammar::GetBitmaskDLType(),
                  .shape = &words,
                  .strides = nullptr,
                  .byte_offset = 0};
  try {
    return impl_->matcher.FillNextTokenBitmask(&tensor);
  } catch (const std::exception&) {
    std::ranges::fill(mask, 0u);  // nothing may come: the answer ends with an error
    return true;
  }
}

bool GrammarMatcher::ended() const { return impl_->matcher.IsTerminated(); }

GrammarMatcher CompiledGrammar::start() const {
  return GrammarMatcher(std::make_unique<GrammarMatcher::Impl>(
      GrammarMatcher::Impl{.matcher = xgrammar::GrammarMatcher(impl_->compiled),
                           .vocab_size = impl_->compiled.GetTokenizerInfo().GetVocabSize()}));
}

size_t CompiledGrammar::bytes() const { return impl_->compiled.MemorySizeBytes(); }

GrammarBuilder::GrammarBuilder(GrammarVocabulary vocabulary) {
  const auto size = static_cast<int>(vocabulary.tokens.size());
  const xgrammar::TokenizerInfo info(vocabulary.tokens, xgrammar::VocabType::RAW, size,
                                     std::move(vocabulary.stop_ids));
  // One thread, ours, and no cache of its own: grammar_cache bounds both.
  impl_ = std::make_unique<Impl>(Impl{.info = info, .compiler = {info, 1, false, -1}});
}
GrammarBuilder::~GrammarBuilder() = default;

Result<CompiledGrammar> GrammarBuilder::compile(const GrammarSource& source) {
  std::string left_out;
  const xgrammar::WarningsHere listen(left_out);
  try {
    const xgrammar::Grammar parsed = parse(source, impl_->info);
    auto compiled = std::make_shared<CompiledGrammar::Impl>(
        CompiledGrammar::Impl{.compiled = impl_->compiler.CompileGrammar(parsed)});
    if (!left_out.empty()) return refuse(left_out);
    return CompiledGrammar(std::move(compiled));
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
}

}  // namespace whippet::grammar
