// Shell text as commands of words, for the tests of documents: quotes, pipes, lists, redirects, substitutions and
// comments. No expansion.

const SEPARATORS = new Set(['|', '&', ';', '(', ')', '\n'])

/** Each command with its words. What stands in `$(…)` or in backquotes is a command of its own. */
export function commandsIn(text: string): string[][] {
  const commands: string[][] = []
  const open: string[][] = []
  let words: string[] = []
  let word: string | null = null
  const endWord = () => {
    if (word !== null) words.push(word)
    word = null
  }
  const endCommand = () => {
    endWord()
    if (words.length > 0) commands.push(words)
    words = []
  }
  const source = text.replaceAll(/\\\n/g, ' ')
  for (let at = 0; at < source.length; at += 1) {
    const char = source[at] ?? ''
    if (char === "'") {
      const end = source.indexOf("'", at + 1)
      word = (word ?? '') + source.slice(at + 1, end < 0 ? undefined : end)
      at = end < 0 ? source.length : end
    } else if (char === '"') {
      const end = source.indexOf('"', at + 1)
      word = (word ?? '') + source.slice(at + 1, end < 0 ? undefined : end)
      at = end < 0 ? source.length : end
    } else if (char === '#' && word === null) {
      const end = source.indexOf('\n', at)
      at = (end < 0 ? source.length : end) - 1
    } else if (source.startsWith('$(', at)) {
      open.push(words)
      words = []
      word = null
      at += 1
    } else if (char === ')' && open.length > 0) {
      endCommand()
      words = open.pop() ?? []
      word = '$()'
    } else if (char === '>' && word === null) {
      at = source.slice(at).search(/[\n|&;]|$/) + at - 1 // the rest is the name of a file
    } else if (SEPARATORS.has(char)) endCommand()
    else if (char === ' ' || char === '\t') endWord()
    else word = (word ?? '') + char
  }
  endCommand()
  return commands
}
