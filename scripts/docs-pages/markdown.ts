// Tables of the reference pages.

/** Text in a cell of a table. What stands in angle brackets would be HTML to a Markdown reader. */
export const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')
export const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')
