// The reference pages that are made from the source are what `scripts/docs generate` writes.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { referencePages } from '../../scripts/docs-pages/pages.ts'
import { ROOT } from '../support/source-files.ts'
import { WHY_CASES } from '../support/why-corpus.ts'
import { REAL_WHY_CASES } from '../support/why-real-cases.ts'

test.each(referencePages().map(({ path, text }) => [path, text] as const))(
  '%s is up to date (else run `scripts/docs generate`)',
  (path, text) => {
    expect(readFileSync(join(ROOT, path), 'utf8')).toBe(text)
  },
)

test('the pages have every kind, every command, every option, every error and every cause', () => {
  const [resources = '', commands = '', options = '', errors = '', , , , causes = ''] = referencePages().map(({ text }) => text)
  expect(resources).toContain('| `service.spec.sync.pruneWhen` | `<healthy \\| applied>, default "healthy"` |')
  for (const command of ['skerry backup restore', 'skerry-agent take-over']) expect(commands).toContain(`## ${command}\n`)
  expect(commands).toContain('skerry get clusters')
  expect(options).toContain('| `--join-token-file` | `SKERRY_JOIN_TOKEN_FILE` |')
  expect(errors).toContain('| `source_refused` |')
  const named = [...REAL_WHY_CASES, ...WHY_CASES].map(({ cause }) => cause)
  expect(named.filter((cause) => !causes.includes(`| \`${cause}\` |`))).toEqual([])
})
