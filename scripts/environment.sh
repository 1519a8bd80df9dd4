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

# Install the project with the given extra ("" for none), unless the same files were installed before.
install_project() {
  local extra="$1" stamp="$VIRTUAL_ENV/.compression-eval-installed" wanted
  wanted="$extra $(sha256sum pyproject.toml | cut -d' ' -f1)"
  if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
    echo "Installing into $VIRTUAL_ENV (once)" >&2
    # Compiling every module of every dependency takes longer than compiling the few that are imported.
    python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".${extra:+[$extra]}"
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
