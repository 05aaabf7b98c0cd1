// Long texts beside short ones: in a cell they are cut, and said in full once below.

/** The width of a cell that a line of a terminal can hold besides other columns. */
export const CELL_CHARS_MAX = 80

export const cutText = (text: string, max = CELL_CHARS_MAX): string => {
  if (Bun.stringWidth(text) <= max) return text
  let cut = ''
  for (const char of text) {
    if (Bun.stringWidth(cut + char) > max - 1) break
    cut += char
  }
  return `${cut.trimEnd()}…`
}

/** Those of the texts that a cell cuts, each once, and none that is part of what is `said` or of another one. */
export function cutTexts(texts: readonly string[], said = ''): string[] {
  const long = [...new Set(texts.filter((text) => cutText(text) !== text))]
  return long.filter((text) => !said.includes(text) && !long.some((other) => other !== text && other.includes(text)))
}
