/* SPDX-License-Identifier: MIT */
/*
 * Each script passes on the words typed so far and shows the result; everything else is done in mgpu. Lines
 * that begin with a colon are described in complete.h.
 */
#include "cli/complete/scripts.h"

/* Bash splits words at = and : before calling, and replaces only the last piece. */
static const char bash_text[] =
    "# bash completion for mgpu\n"
    "_mgpu()\n"
    "{\n"
    "    local IFS=$'\\n' piece=${COMP_WORDS[COMP_CWORD]} line word i\n"
    "    local -a words=()\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        if ((i > 1)) && [[ ${COMP_WORDS[i]} =~ ^[=:]+$ || ${COMP_WORDS[i - 1]} =~ ^[=:]+$ ]]; then\n"
    "            words[${#words[@]}-1]+=${COMP_WORDS[i]}\n"
    "        else\n"
    "            words+=(\"${COMP_WORDS[i]}\")\n"
    "        fi\n"
    "    done\n"
    "    [[ $piece =~ ^[=:]+$ ]] && piece=\n"
    "    word=${words[${#words[@]}-1]}\n"
    "    local before=${word%\"$piece\"}\n"
    "    while read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o default ;;\n"
    "        :directories) compopt -o dirnames ;;\n"
    "        :commands) COMPREPLY+=($(compgen -A command -A file -- \"$piece\")) ;;\n"
    "        *) word=${line%%$'\\t'*} COMPREPLY+=(\"${word#\"$before\"}\") ;;\n"
    "        esac\n"
    "    done < <(mgpu __complete -- \"${words[@]}\" 2>/dev/null)\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
    "    return 0\n"
    "}\n"
    "complete -F _mgpu mgpu\n";

static const char zsh_text[] =
    "#compdef mgpu\n"
    "_mgpu()\n"
    "{\n"
    "    local line word\n"
    "    local -a plain shown open open_shown\n"
    "    for line in \"${(@f)$(mgpu __complete -- \"${(@Q)words[2,CURRENT-1]}\" \"$PREFIX\" 2>/dev/null)}\"; "
    "do\n"
    "        word=${line%%$'\\t'*}\n"
    "        case $line in\n"
    "        '') ;;\n"
    "        :files) _files ;;\n"
    "        :directories) _files -/ ;;\n"
    "        :commands) _command_names -e; _files ;;\n"
    "        *=$'\\t'*) open+=(\"$word\") open_shown+=(\"${line/$'\\t'/  -- }\") ;;\n"
    "        *) plain+=(\"$word\") shown+=(\"${line/$'\\t'/  -- }\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#plain )) && compadd -V mgpu -l -d shown -a plain\n"
    "    (( $#open )) && compadd -V mgpu -S '' -l -d open_shown -a open\n"
    "    return 0\n"
    "}\n"
    "if [[ $funcstack[1] == _mgpu ]]; then\n"
    "    _mgpu \"$@\"\n"
    "else\n"
    "    compdef _mgpu mgpu\n"
    "fi\n";

static const char fish_text[] = "# fish completion for mgpu\n"
                                "function __mgpu_complete\n"
                                "    set -l words (commandline -opc)\n"
                                "    set -l word (commandline -ct)\n"
                                "    set -e words[1]\n"
                                "    for line in (mgpu __complete -- $words \"$word\" 2>/dev/null)\n"
                                "        switch $line\n"
                                "            case :files\n"
                                "                __fish_complete_path \"$word\"\n"
                                "            case :directories\n"
                                "                __fish_complete_directories \"$word\" ''\n"
                                "            case :commands\n"
                                "                complete -C \"$word\"\n"
                                "            case '*'\n"
                                "                echo $line\n"
                                "        end\n"
                                "    end\n"
                                "end\n"
                                "complete -c mgpu -f -k -a '(__mgpu_complete)'\n";

const struct completion_script completion_scripts[] = {
    { "bash", "source <(mgpu completion bash)", bash_text },
    { "zsh", "source <(mgpu completion zsh), after compinit", zsh_text },
    { "fish", "mgpu completion fish | source", fish_text },
    { 0 },
};
