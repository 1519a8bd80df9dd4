# Sourced by the scripts beside it: an environment with this project in it, made on first use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Use the active virtual environment, or make one here.
activate() {
  if [ -z "${VIRTUAL_ENV:-}" ]; then
    [ -x .venv/bin/python ] || "${PYTHON:-python3}" -m venv .venv
    # shellcheck disable=SC1091
    . .venv/bin/activate
  fi
}

# Run a command and show what it says as one line that changes; if it fails, show its last lines.
shown_in_one_line() {
  local log line
  log="$(mktemp)"
  if [ -t 2 ]; then
    "$@" 2>&1 | tee "$log" | while IFS= read -r line; do printf '\r\033[K  %.70s' "$line" >&2; done &&
      printf '\r\033[K' >&2 && rm -f "$log" && return 0
    echo >&2
  else
    "$@" >"$log" 2>&1 && rm -f "$log" && return 0
  fi
  tail -n 20 "$log" >&2
  rm -f "$log"
  return 1
}

# Install the project with the given extra ("" for none), unless the same files were installed before.
install_project() {
  local extra="$1" stamp="$VIRTUAL_ENV/.compression-eval-installed" wanted
  wanted="$extra $(sha256sum pyproject.toml | cut -d' ' -f1)"
  if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
    echo "Installing into $VIRTUAL_ENV (once, about a minute)" >&2
    # Compiling every module of every dependency takes longer than compiling the few that are imported.
    shown_in_one_line python -m pip install --no-compile --disable-pip-version-check --editable ".${extra:+[$extra]}"
    echo "$wanted" >"$stamp"
  fi
}

# Install Debian packages when a command is missing and this is root; say what to do otherwise.
need_command() {
  local command="$1" package="$2"
  command -v "$command" >/dev/null 2>&1 && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing $package" >&2
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $package) >/dev/null 2>&1 || true
  fi
  command -v "$command" >/dev/null 2>&1 || echo "Missing: $command (Debian package: $package)" >&2
}
