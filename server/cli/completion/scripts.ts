// The scripts that `skerry completion SHELL` prints. They ask the program itself by its verb __complete.

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** First line of an answer that leaves the word to the shell. */
export const FILES = ':files'

const BASH = `# bash completion for skerry. Load it with: source <(skerry completion bash)
_skerry() {
  local line value
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = '${FILES}' ]; then
      compopt -o default
      return
    fi
    value=\${line%%$'\\t'*}
    COMPREPLY+=("$value")
  done < <("\${COMP_WORDS[0]}" __complete bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case \${COMPREPLY[0]-} in
    *= | */) compopt -o nospace ;;
  esac
}
complete -F _skerry skerry
`

const ZSH = `#compdef skerry
# zsh completion for skerry. Load it with: source <(skerry completion zsh)
_skerry() {
  local line
  local -a lines found
  lines=("\${(@f)$("\${words[1]}" __complete zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "\${lines[1]-}" == '${FILES}' ]]; then
    _files
    return
  fi
  for line in "\${lines[@]}"; do
    [[ -n "$line" ]] || continue
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe 'skerry' found
}
if [ "\${funcstack[1]-}" = '_skerry' ]; then
  _skerry "$@"
else
  compdef _skerry skerry
fi
`

const FISH = `# fish completion for skerry. Load it with: skerry completion fish | source
function __skerry_complete
    set -l words (commandline -opc)
    set -l found ($words[1] __complete fish -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test "$found[1]" = '${FILES}'
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c skerry -f -a '(__skerry_complete)'
`

export const COMPLETION_SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH }
