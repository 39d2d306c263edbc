// whippet list: the models on this machine.
#include <algorithm>

#include "base/progress.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/packed_files.h"
#include "hub/hub.h"

namespace whippet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(The models in the caches of this machine, those that other tools fetched among them, and what weights
packed for later starts take. Models that lie elsewhere appear where there are packed weights of them.

Examples:
  whippet list
  whippet list --json)";

struct Row {
  CachedModel model;
  bool cached = true;  // false: lies elsewhere, known for its packed weights alone
  uint64_t packed_bytes = 0;
};

std::vector<Row> rows_of(const std::vector<CachedModel>& models, const std::vector<PackedFile>& files) {
  std::vector<Row> rows;
  for (const CachedModel& model : models) rows.push_back({.model = model});
  for (const PackedFile& file : files) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
      return r.cached ? is_packed_of(file, r.model) : r.model.path == file.checkpoint;
    });
    if (row == rows.end()) {
      Row other{.model = {}, .cached = false};
      other.model.name = file.checkpoint.empty() ? file.path.string() : file.model;
      other.model.path = file.checkpoint.empty() ? file.path : file.checkpoint;
      other.model.complete = !file.checkpoint.empty();
      row = rows.insert(rows.end(), std::move(other));
    }
    row->packed_bytes += file.bytes;
  }
  return rows;
}

std::string table(const std::vector<Row>& rows) {
  size_t name = 4, revision = 8;
  for (const Row& row : rows) {
    name = std::max(name, row.model.name.size());
    revision = std::max(revision, row.model.revision.size());
  }
  std::string text =
      fmt::format("{:<{}}  {:<{}}  {:>10}  {:>10}\n", "NAME", name, "REVISION", revision, "SIZE", "PACKED");
  for (const Row& row : rows)
    text += fmt::format("{:<{}}  {:<{}}  {:>10}  {:>10}{}\n", row.model.name, name, row.model.revision,
                        revision, row.cached ? format_bytes(row.model.bytes) : "-",
                        row.packed_bytes > 0 ? format_bytes(row.packed_bytes) : "-",
                        row.model.complete ? "" : "  incomplete");
  return text;
}

Result<int> run(bool as_json, const std::vector<PackedFile>& files) {
  WH_ASSIGN(const std::vector<CachedModel> models, list_models(hub_config_from_environment()));
  const std::vector<Row> rows = rows_of(models, files);
  if (!as_json) {
    if (rows.empty()) {
      std::fprintf(stderr, "No models yet: `whippet pull` fetches the default one.\n");
      return kExitOk;
    }
    WH_TRY(write_output(table(rows)));
    return kExitOk;
  }
  ordered_json list = ordered_json::array();
  for (const Row& row : rows)
    list.push_back({{"name", row.model.name},
                    {"revision", row.model.revision},
                    {"bytes", row.model.bytes},
                    {"packed_bytes", row.packed_bytes},
                    {"path", row.model.path.string()},
                    {"complete", row.model.complete}});
  WH_TRY(write_output(json_text(list, 2) + "\n"));
  return kExitOk;
}

Run setup(CLI::App& app, const Context& context) {
  const CLI::Option* as_json = add_switch(app, "--json", "as JSON");
  const CLI::Option* folder = add_packed_cache(app);
  return [as_json, folder, &context] {
    const Result<int> code = run(as_json->count() > 0, packed_files(*folder, context));
    return code.ok() ? *code : report_failure(context, code.error());
  };
}

}  // namespace

Command list_command() {
  return {.name = "list", .summary = "the models on this machine", .help = kHelp, .setup = setup};
}

}  // namespace whippet
