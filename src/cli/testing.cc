#include "cli/testing.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> environment_of(const fs::path& home, const CommandInput& input) {
  std::map<std::string, std::string> variables = {{"HOME", home.string()},
                                                  {"XDG_CACHE_HOME", (home / "cache").string()},
                                                  {"XDG_STATE_HOME", (home / "state").string()},
                                                  {"HF_HOME", (home / "hf").string()},
                                                  {"HF_HUB_OFFLINE", "1"},
                                                  {"PATH", "/usr/bin:/bin"},
                                                  {"TMPDIR", home.string()}};
  for (const auto& [name, value] : input.environment) variables[name] = value;
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

void redirect(int fd, const fs::path& path, int flags) {
  const int opened = ::open(path.c_str(), flags, 0600);
  if (opened < 0 || ::dup2(opened, fd) != fd) ::_exit(127);
  ::close(opened);
}

}  // namespace

std::vector<json> CommandResult::json_lines() const {
  std::vector<json> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line, nullptr, false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

CommandResult run_whippet(const std::vector<std::string>& args, const CommandInput& input) {
  const TestFolder folder;
  const fs::path in = input.in_path.empty() ? folder.write("in", input.text) : fs::path(input.in_path);
  const fs::path out = input.out_path.empty() ? folder.path() / "out" : fs::path(input.out_path);
  std::vector<std::string> words = {"whippet"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<std::string> variables = environment_of(folder.path(), input);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const pid_t child = ::fork();
  if (child == 0) {
    redirect(STDIN_FILENO, in, O_RDONLY);
    redirect(STDERR_FILENO, folder.path() / "err", O_WRONLY | O_CREAT);
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
    if (input.close_out) ::close(STDOUT_FILENO);
    ::execve(WHIPPET_BINARY, argv.data(), envp.data());
    ::_exit(127);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (input.out_path.empty()) result.out = contents(out);
  result.err = contents(folder.path() / "err");
  return result;
}

}  // namespace whippet
