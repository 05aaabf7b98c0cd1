// A list that has no end: one JSON document a line, or a table whose columns stay where they are until a wider word
// comes.
import { toYaml } from '../../shared/adapters/yaml.ts'
import { type Column, renderTable } from './columns.ts'
import { type Context, type PrintOptions, usesColour, wideStyle } from './context.ts'
import { customColumns, documentText } from './printing/documents.ts'

/** `columns`: asked for at each printing, because ages grow. `nameOf`: as `-o name` has it. */
export function streamPrinter<T>(
  { io }: Context,
  { output, headers }: PrintOptions,
  what: { columns(): readonly Column<T>[]; nameOf(item: T): string },
): (items: readonly T[]) => void {
  const widths: number[] = []
  let titles = headers !== false
  return (items) => {
    const custom = customColumns<T>(output)
    if (output === 'json') io.stdout.write(items.map((item) => `${JSON.stringify(item)}\n`).join(''))
    else if (output === 'yaml') io.stdout.write(items.map((item) => `---\n${toYaml(item)}`).join(''))
    else if (output === 'name') io.stdout.write(items.map((item) => `${what.nameOf(item)}\n`).join(''))
    else if (output?.startsWith('jsonpath=') === true) io.stdout.write(items.map((item) => `${documentText(item, output)}\n`).join(''))
    else if (items.length > 0) {
      const style = { ...wideStyle(output, io), headers: titles, colours: usesColour(io), widths }
      io.stdout.write(renderTable(custom ?? what.columns(), items, style))
      titles = false
    }
  }
}
