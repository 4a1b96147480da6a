# What the lines of tests/tests/tools stand on: bash reads it before each of them (BASH_ENV).
#
# The directory of a line is its own one of a mount, and $HERE its path; $OTHER is the same
# directory of another mount, $LOCAL a folder on a local disk, $TOOLS the folder of these programs.
set -eo pipefail
PATH=$PATH:/usr/sbin:/sbin

# Waits until a command succeeds; fails after 20 s.
reach() {
  local looks
  for ((looks = 0; looks < 400; looks++)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.05
  done
  echo "never came true: $*" >&2
  return 1
}

# Whether a command fails with this code.
fails_with() {
  local expected=$1 code=0
  shift
  "$@" || code=$?
  [ "$code" -eq "$expected" ] || { echo "$1 ends with $code" >&2 && return 1; }
}

# Whether a file has so many lines.
has_lines() {
  [ "$(wc -l <"$1")" -eq "$2" ]
}

# Ends a job with SIGTERM, and waits until it is gone.
stop() {
  kill "$1" && wait "$1" || true
}

# Runs logrotate on a file, with these directives.
rotate() {
  local file=$1
  shift
  {
    echo "$file {"
    printf '  %s\n' 'su root root' 'rotate 2' "$@"
    echo "}"
  } >"$LOCAL/rotation"
  logrotate -f -s "$LOCAL/state" "$LOCAL/rotation"
}

# tmux with a server of its own.
mux() {
  tmux -S "$LOCAL/mux" -f /dev/null "$@"
}

# Starts a program on such a terminal; `trap end_terminal EXIT` ends it.
on_terminal() {
  mux new-session -d -x 80 -y 24 "$1"
}

# Ends what is on it, if it has not ended.
end_terminal() {
  mux kill-server 2>/dev/null || true
}

# Whether the terminal shows a text.
shows() {
  mux capture-pane -p | grep -q "$1"
}

# Whether the program on the terminal has ended, which ends its server.
has_ended() {
  ! mux list-sessions 2>/dev/null
}
