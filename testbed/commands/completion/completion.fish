# Completion of mrc-testbed for fish 3 and newer.
function __mrc_testbed
    set -l words (commandline -opc) (commandline -ct)
    for line in (mrc-testbed completion fish -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':folders'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c mrc-testbed -f -a '(__mrc_testbed)'
