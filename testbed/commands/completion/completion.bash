# Completion of mrc-testbed for bash 4.4 and newer.
_mrc_testbed() {
    local value help current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS=$'\t' read -r value help; do
        case $value in
            :files) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current") ;;
            :folders) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$current") ;;
            *) COMPREPLY+=("$value") ;;
        esac
    done < <(mrc-testbed completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _mrc_testbed mrc-testbed
