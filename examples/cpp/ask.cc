// Asks a model: ask [MODEL [QUESTION]]. First blocking and in a batch, then streaming and cancelled.
#include <whippet/whippet.h>

#include <future>
#include <iostream>

namespace {

// The answer as it arrives; cancelled after max_pieces of it.
void stream(whippet::Engine& engine, const std::string& question, int max_pieces) {
  whippet::Request request;
  request.messages = {{"user", question}};
  request.params = engine.default_sampling_params();
  request.params.max_tokens = 200;
  std::promise<std::string> finished;
  int pieces = 0;
  const uint64_t id = engine.submit(request, [&](const whippet::Event& event) {
    std::cout << event.text << std::flush;
    if (++pieces == max_pieces) engine.cancel(event.request_id);
    if (event.last) finished.set_value(event.finish_reason);
  });
  const std::string reason = finished.get_future().get();
  std::cout << "\n[request " << id << " ended: " << reason << "]\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    whippet::EngineConfig config;
    if (argc > 1) config.model = argv[1];
    const std::string question = argc > 2 ? argv[2] : "What is the capital of France?";
    whippet::LLM llm(config);

    whippet::SamplingParams greedy;
    greedy.temperature = 0;
    greedy.max_tokens = 16;
    for (const whippet::RequestOutput& answer : llm.generate({"One, two, three,", "The sky is"}, greedy)) {
      std::cout << answer.outputs.at(0).text << "\n[" << answer.usage.completion_tokens << " tokens]\n";
    }
    std::cout << llm.chat({{"user", question}}, greedy).outputs.at(0).text << "\n";
    stream(llm.engine(), question, 5);
  } catch (const whippet::Failure& failure) {
    std::cerr << "ask: " << failure.what() << " (" << failure.code() << ")\n";
    return 1;
  }
}
