// Writes the reference pages that are made from the source.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { referencePages } from './docs-pages/pages.ts'

const [word, ...more] = process.argv.slice(2)
if (word !== 'generate' || more.length > 0) {
  process.stderr.write('docs: expected the word generate\n')
  process.exit(2)
}
const root = join(import.meta.dir, '..')
for (const { path, text } of referencePages()) {
  writeFileSync(join(root, path), text)
  process.stdout.write(`docs: ${path}\n`)
}
