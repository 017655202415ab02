#compdef mrc-testbed
# Completion of mrc-testbed for zsh, read by `source` or found in a folder of fpath as _mrc-testbed.
_mrc_testbed() {
    local line files=""
    local -a found
    for line in "${(@f)$(mrc-testbed completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :files) files=all ;;
            :folders) files=folders ;;
            *$'\t'*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            ?*) found+=("${line//:/\\:}") ;;
        esac
    done
    (( $#found )) && _describe mrc-testbed found
    case $files in
        all) _files ;;
        folders) _files -/ ;;
    esac
}
if [[ $funcstack[1] == _mrc-testbed ]]; then _mrc_testbed; else compdef _mrc_testbed mrc-testbed; fi
