# Sourced by the scripts beside it: an environment with this project in it, made on first use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Use the active virtual environment, or make one here.
activate() {
  if [ -z "${VIRTUAL_ENV:-}" ]; then
    local folder="${VENV:-.venv}"
    if [ ! -x "$folder/bin/python" ]; then
      echo "Making a virtual environment in $PWD/$folder" >&2
      shown_in_one_line "${PYTHON:-python3}" -m venv "$folder"
    fi
    # shellcheck disable=SC1090,SC1091
    . "$folder/bin/activate"
  fi
}

# Run a command and show what it says: on a terminal as one line that changes, with the seconds so far, elsewhere as a
# line now and then. If it fails, show its last lines.
shown_in_one_line() {
  local log running failed=0 shown=0 pause=10
  log="$(mktemp)"
  [ -t 2 ] && pause=1
  "$@" >"$log" 2>&1 &
  running=$!
  # A job in the background does not hear Ctrl-C.
  trap 'kill "$running" 2>/dev/null; exit 130' INT TERM
  SECONDS=0
  while kill -0 "$running" 2>/dev/null; do
    # Look often, so that a short command is not waited for longer than it takes.
    sleep 0.2
    [ $((SECONDS - shown)) -ge "$pause" ] || continue
    shown=$SECONDS
    if [ -t 2 ]; then
      printf '\r\033[K  %3d s  %.60s' "$SECONDS" "$(tail -n 1 "$log")" >&2
    else
      printf '  %3d s  %.60s\n' "$SECONDS" "$(tail -n 1 "$log")" >&2
    fi
  done
  wait "$running" || failed=1
  trap - INT TERM
  [ ! -t 2 ] || printf '\r\033[K' >&2
  [ "$failed" = 0 ] || tail -n 20 "$log" >&2
  rm -f "$log"
  return "$failed"
}

# Print the lowest and the highest Python that the classifiers name, as "version command"; where one is not installed, as
# "version" alone. For the lowest the system's own goes first: it is the one that users have, and often the older.
claimed_pythons() {
  local version found
  for version in $(sed -n 's/.*Python :: \([0-9.]*\)",/\1/p' pyproject.toml | sort -V | sed -n '1p;$p'); do
    found=""
    for command in "/usr/bin/python$version" "python$version"; do
      [ -n "$found" ] || ! "$command" -c "" 2>/dev/null || found="$command"
    done
    echo "$version $found"
  done
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
    shown_in_one_line apt-get update || true
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive shown_in_one_line apt-get install -y --no-install-recommends $package || true
  fi
  command -v "$command" >/dev/null 2>&1 || echo "Missing: $command (Debian package: $package)" >&2
}
