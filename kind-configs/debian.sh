# shellcheck shell=bash
# Sourced by the scripts beside it: where this machine gets its Debian packages.

# The mirror that this machine's package client uses for Debian itself; fails where there is none.
debian_mirror() {
  command -v apt-get >/dev/null || return 1
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /security/ { print $2; found = 1; exit } END { exit !found }' && return 0
  # Before the first `apt-get update` nothing is known of it but its configuration.
  sed -nE 's/^(URIs: *|deb (\[[^]]*\] )?)([a-z]+:[^ ]*)( .*|$)/\3/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -v security | grep -m1 'debian/\?$'
}

# Debian's own keys, which every download is checked against.
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg
