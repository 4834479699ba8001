# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian roots: built once from a package list, kept under a name that is the hash of
# everything they depend on, used read-only ever after. Sourced, never run.

suite=trixie

# The machine's apt configuration that a root needs too: proxies, checks, retries.
machine_apt_options() {
	apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries|ForceIPv)' || true
}

# Where Debian comes from: what this machine itself uses, so that no host is named here.
mirror_find() {
	if [[ -n ${OCTAVO_MIRROR:-} ]]; then
		echo "$OCTAVO_MIRROR"
		return
	fi
	local site
	site=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Component: main' 2>/dev/null |
		awk '$1 ~ /\/debian\/?$/ { print $1; exit }')
	[[ -n $site ]] ||
		die "found no Debian archive in this machine's apt sources: set OCTAVO_MIRROR to the URI of one (it ends in /debian)"
	echo "$site"
}

# Package names of a list, comments dropped.
list_read() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$tree/lab.d/packages.$1"
}

root_key() {
	cat "$tree/lab.d/packages.$1" "$tree/lab.d/root.sh" "$tree/lab.d/root-fill" | sha256sum | cut -c1-16
}

# Print the path of root $1 (host or guest), which exists after root_ensure.
root_path() {
	echo "$cache/$1-$(root_key "$1")"
}

# Build root $1 unless it is there. Others that want the same root wait for the lock.
root_ensure() {
	local kind=$1 root log
	need_root
	root=$(root_path "$kind")
	[[ -d $root ]] && return
	need_tools flock:util-linux unshare:util-linux
	mkdir -p "$cache/logs"
	(
		flock -n 9 || { say "waiting for another run that is building"; flock 9; }
		[[ -d $root ]] && exit 0
		need_tools mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs \
			/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
		# What an interrupted build left; whoever holds the lock may clear it.
		rm -rf --one-file-system "$cache/$kind-"*.tmp
		cache_prune "$kind"
		log=$cache/logs/root-$kind.log
		say "building the Debian $suite $kind root (once; log: $log)"
		root_build "$kind" "$root.tmp" >"$log" 2>&1 </dev/null || {
			tail -n 20 "$log" >&2
			rm -rf --one-file-system "$root.tmp"
			die "building the $kind root failed: see $log"
		}
		mv -T "$root.tmp" "$root"
		say "root is ready: $root"
	) 9>"$cache/$kind.lock" || exit 1
}

root_build() {
	local kind=$1 dir=$2 mirror keyring conf rc
	mirror=$(mirror_find) || return
	keyring=${OCTAVO_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
	[[ -r $keyring ]] || die "keyring $keyring is not readable: set OCTAVO_KEYRING"
	mkdir -p "$dir"
	conf=$cache/$kind-aptopt.tmp
	{
		machine_apt_options
		echo 'Acquire::Languages "none";'
		echo 'APT::Install-Recommends "false";'
	} >"$conf"
	# Its own mount and process namespaces: whatever ends this, mounts and children end too.
	unshare --mount --pid --fork --kill-child --mount-proc -- \
		mmdebstrap --mode=root --variant=minbase --skip=check/empty \
		--aptopt="$conf" --dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--customize-hook="sh '$tree/lab.d/root-fill' $kind \"\$1\" '$tree/lab.d/packages.$kind'" \
		"$suite" "$dir" \
		"deb [signed-by=$keyring] $mirror $suite main" \
		"deb [signed-by=$keyring] $mirror $suite-backports main"
	rc=$?
	rm -f "$conf"
	return $rc
}

# Run a command in root $1 with the source tree, the cache, /tmp and the kernel's file systems at
# their own paths. The root itself stays as built: what the command writes to it vanishes with it.
root_run() {
	local root
	root=$(root_path "$1")
	shift
	exec unshare --mount --propagation private -- \
		bash "$tree/lab.d/root-enter" "$root" "$tree" "$cache" "$PWD" "$@"
}
