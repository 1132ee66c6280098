"""The scripts that make a shell ask runq what may come next.

They speak click's protocol (`_RUNQ_COMPLETE=bash_complete` and so on), and differ from the scripts that click makes in
what a prompt shows: an error stays silent, a queue file is a YAML file with folders on the way to it, a comma may stand
in a value, and the order is runq's (nights: the newest first) in fish too. bash does without what 3.2, macOS's, lacks.
"""

from __future__ import annotations

BASH = r"""
_runq_completion() {
    local IFS=$'\n' answer type value word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    answer=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" _RUNQ_COMPLETE=bash_complete \
        "${1/#\~\//$HOME/}" 2>/dev/null)
    case $answer in
        file,*)
            compopt -o filenames -o default 2>/dev/null
            answer=$(compgen -f -X '!*.yaml' -- "$word"; compgen -f -X '!*.yml' -- "$word"; compgen -d -- "$word")
            while read -r value; do
                [[ -n $value ]] && COMPREPLY+=("$value")
            done <<< "$answer" ;;
        dir,*)
            compopt -o filenames -o dirnames 2>/dev/null ;;
        *)
            while IFS=, read -r type value; do
                [[ $type == plain ]] && COMPREPLY+=("$value")
            done <<< "$answer" ;;
    esac
    return 0
}
complete -o nosort -F _runq_completion runq 2>/dev/null || complete -F _runq_completion runq
"""

ZSH = r"""
#compdef runq
_runq_completion() {
    local -a response plain described
    local type value about
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) _RUNQ_COMPLETE=zsh_complete \
        ${~words[1]} 2>/dev/null)}")
    for type value about in $response; do
        case $type in
            file) _files -g '*.(yaml|yml)' ;;
            dir) _files -/ ;;
            plain) if [[ $about == _ ]]; then plain+=("$value"); else described+=("$value:$about"); fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#plain )) && compadd -U -V unsorted -a plain
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _runq_completion "$@"
elif (( $+functions[compdef] )); then
    compdef _runq_completion runq
else
    autoload -Uz compinit && compinit && compdef _runq_completion runq
fi
"""

FISH = r"""
function _runq_completion
    set -l program (string replace -r '^~' -- $HOME (commandline -opc)[1])
    for line in (env _RUNQ_COMPLETE=fish_complete COMP_WORDS=(commandline -cp | string collect) \
            COMP_CWORD=(commandline -t | string collect) $program 2>/dev/null)
        set -l answer (string split -m 1 , -- $line)
        switch $answer[1]
            case file
                __fish_complete_suffix .yaml # these first, then all others
            case dir
                __fish_complete_directories (commandline -t)
            case plain
                echo $answer[2]
        end
    end
end
complete --command runq --no-files --keep-order --arguments '(_runq_completion)'
"""

SCRIPTS = {"bash": BASH.lstrip(), "zsh": ZSH.lstrip(), "fish": FISH.lstrip()}
"""The script of each shell."""
