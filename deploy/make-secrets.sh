#!/bin/sh
# Makes the passwords of an installation, once: make-secrets.sh [FOLDER]. What is there already is left alone.
set -eu
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"
# Nobody else may enter the folder. The files themselves are readable, because a container mounts each of them alone
# and reads it as a user of its own.
chmod 700 "$folder"

random() { head -c 32 /dev/urandom | base64 | tr -d '/+=\n'; }

make() { # make NAME VALUE
  [ -e "$folder/$1" ] && return
  printf '%s\n' "$2" >"$folder/$1"
  chmod 444 "$folder/$1"
  echo "made $folder/$1"
}

make assay_database_password "$(random)"
make assay_broker_password "$(random)"
make assay_flower_auth "assay:$(random)"
if [ ! -e "$folder/anthropic_api_key" ]; then
  : >"$folder/anthropic_api_key"
  chmod 644 "$folder/anthropic_api_key"
  echo "made $folder/anthropic_api_key, empty: write your key into it, or set ANTHROPIC_BASE_URL to a gateway"
fi
