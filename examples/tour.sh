#!/usr/bin/env bash
# `make run`: what Penstock does today, on the scripts in this folder.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  bold=$'\e[1m' green=$'\e[32m' off=$'\e[0m'
else
  bold='' green='' off=''
fi

section() { printf '\n%s%s%s\n' "$bold" "$1" "$off"; }
show() { printf '%s$ %s%s\n' "$green" "$*" "$off"; }
run() { show "$@"; "$@"; }
expect_errors() {
  show "$@"
  local code=0
  "$@" || code=$?
  if [ "$code" -ne 1 ]; then
    printf 'expected exit code 1, got %s\n' "$code" >&2
    exit 1
  fi
}

section "1. Scripts in four spellings of streaming SQL, all understood"
run penstock check --quiet examples/trades.sql examples/flink_orders.sql examples/arroyo_clicks.sql examples/risingwave_visits.sql

section "2. What will happen, before anything runs"
run penstock explain examples/trades.sql

section "3. What cannot work is refused, with the place and a hint"
expect_errors penstock check examples/mistakes.sql

section "4. One canonical form, whatever it was written in"
run penstock fmt examples/arroyo_clicks.sql

section "Next"
cat <<'TEXT'
This version reads, checks, explains and formats streaming SQL. It does not run it yet:
running these scripts on Spark comes next. Try your own: .venv/bin/penstock check FILE
TEXT
