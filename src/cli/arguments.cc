#include "cli/arguments.h"

#include <string_view>
#include <utility>

#include "api/config_rules.h"
#include "base/fields.h"

namespace whippet {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* find_option(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent())
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  return nullptr;
}

std::vector<std::string> flag_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent())
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

class Normaliser {
 public:
  Normaliser(const CLI::App& root, const std::vector<std::string>& args) : app_(&root), args_(args) {}

  Status run() {
    while (next_ < args_.size()) {
      const std::string& arg = args_[next_++];
      if (arg == "--") {
        out_.push_back(arg);
        out_.insert(out_.end(), args_.begin() + static_cast<std::ptrdiff_t>(next_), args_.end());
        break;
      }
      if (arg.starts_with("--")) {
        WH_TRY(long_flag(arg));
      } else if (arg.size() > 1 && arg[0] == '-') {
        short_flag(arg);
      } else {
        WH_TRY(word(arg));
      }
    }
    if (help_) out_.push_back("--help");
    return {};
  }

  const CLI::App* app() const { return app_; }
  std::vector<std::string>& out() { return out_; }

 private:
  // The value that follows, unless what follows is a flag.
  bool take_value(std::string& value) {
    if (next_ >= args_.size()) return false;
    const std::string& following = args_[next_];
    const size_t end = following.find('=');
    if (following == "--") return false;
    if (following.starts_with("--") && find_option(app_, flag_name(knob_name(following.substr(0, end)))))
      return false;
    value = following;
    ++next_;
    return true;
  }

  // CLI11 takes "--name=" for a missing value and "--name -x" for two flags.
  void push_value(const std::string& name, const std::string& value) {
    if (value.empty()) {
      out_.insert(out_.end(), {name, value});
    } else {
      out_.push_back(name + "=" + value);
    }
  }

  Status long_flag(const std::string& arg) {
    const size_t equals = arg.find('=');
    const std::string knob = knob_name(std::string_view(arg).substr(0, equals));
    const std::string name = flag_name(knob);
    const bool has_value = equals != std::string::npos;
    std::string value = has_value ? arg.substr(equals + 1) : "";
    const CLI::Option* option = find_option(app_, name);
    if (option == nullptr) return unknown_flag(name, knob, has_value, value);
    if (!has_value && (!takes_value(*option) || !take_value(value))) {
      out_.push_back(name);
    } else {
      push_value(name, value);
    }
    return {};
  }

  Status unknown_flag(const std::string& name, const std::string& knob, bool has_value, std::string value) {
    const bool foreign = is_foreign_knob(knob);
    if (foreign && !has_value) {
      if (is_foreign_switch(knob)) {
        value = "true";
      } else {
        take_value(value);
      }
    }
    if (foreign && foreign_knob_advice(knob, value).empty()) return {};
    return unknown_knob("flag", name, value, flag_names(app_));
  }

  void short_flag(const std::string& arg) {
    const CLI::Option* option = arg.size() == 2 ? find_option(app_, arg) : nullptr;
    std::string value;
    if (option != nullptr && takes_value(*option) && take_value(value)) {
      push_value("--" + option->get_lnames().front(), value);
    } else {
      out_.push_back(arg);
    }
  }

  Status word(const std::string& arg) {
    const bool at_root = app_->get_parent() == nullptr;
    if (at_root && !help_ && arg == "help") {
      help_ = true;
      return {};
    }
    const auto named = app_->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == arg; });
    if (!positional_ && !named.empty()) {
      app_ = named.front();
    } else {
      positional_ = true;
    }
    const std::vector<std::string> names = command_names();
    if (named.empty() && !names.empty())
      return make_error(Code::kInvalidArgument, "unknown command {}{}{}",
                        at_root ? "" : app_->get_name() + " ", arg, did_you_mean(arg, names));
    out_.push_back(arg);
    return {};
  }

  std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const CLI::App* sub : app_->get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
    return names;
  }

  const CLI::App* app_;
  const std::vector<std::string>& args_;
  std::vector<std::string> out_;
  size_t next_ = 0;
  bool positional_ = false;
  bool help_ = false;
};

}  // namespace

Result<std::vector<std::string>> normalise_arguments(const CLI::App& root,
                                                     const std::vector<std::string>& args,
                                                     const CLI::App*& command) {
  Normaliser normaliser(root, args);
  const Status status = normaliser.run();
  command = normaliser.app();
  if (!status.ok()) return status.error();
  return std::move(normaliser.out());
}

}  // namespace whippet
