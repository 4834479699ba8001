# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of octavoctl
_octavoctl_uuids() {
	octavoctl list --json 2>/dev/null | sed -n 's/.*"uuid" : "\([^"]*\)".*/\1/p'
}

_octavoctl_gpus() {
	octavoctl gpus --json 2>/dev/null | sed -n 's/.*"address" : "\([^"]*\)".*/\1/p'
}

_octavoctl() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local commands='gpus types list show create remove resize policy slice slices xml nova-conf top log events doctor'
	local options='--json --help --version --gpu --uuid --persistent --display --nodedev --classes --follow --count'
	local words=

	case $previous in
	show | remove | resize | xml) words=$(_octavoctl_uuids) ;;
	create | nova-conf) words='1/2 1/4 1/8' ;;
	policy | slice | slices | --gpu) words=$(_octavoctl_gpus) ;;
	*)
		if [[ $current == -* ]]; then
			words=$options
		elif [[ ${COMP_WORDS[COMP_CWORD - 2]} == policy ]]; then
			words='best-effort equal-share fixed-share elastic'
		elif [[ $COMP_CWORD -eq 1 || $previous == --json ]]; then
			words=$commands
		fi
		;;
	esac
	# an address has colons, which readline takes for ends of words
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	[[ $(type -t __ltrim_colon_completions) == function ]] && __ltrim_colon_completions "$current"
}
complete -F _octavoctl octavoctl
