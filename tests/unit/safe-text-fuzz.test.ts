// Whatever a message quotes of a document, in whichever syntax: no planted secret leaves. More runs with
// SKERRY_FUZZ_RUNS.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { clean } from '../../agent/cluster/redact/marks.ts'
import { safeStatus } from '../../agent/cluster/redact/safe-text.ts'
import { ownRefusalOf, PLANTED, planted, refusalOf } from '../support/quoted-documents.ts'

const RUNS = Number(process.env['SKERRY_FUZZ_RUNS'] ?? 400)

test('KA51 no message shows a value of the document that it quotes', () => {
  const quoted = planted.chain((document) => refusalOf(document).map((refusal) => ({ ...document, refusal })))
  let shown = 0
  fc.assert(
    fc.property(quoted, ({ document, refusal }) => {
      const safe = safeStatus(refusal, { documents: [document] })
      if (PLANTED.test(safe)) throw new Error(safe)
      // Not by saying nothing.
      shown += safe.replaceAll('<redacted>', '').length > 20 ? 1 : 0
    }),
    { numRuns: RUNS },
  )
  expect(shown).toBeGreaterThan(RUNS / 2)
})

test('KA31 no message of the API server shows a value of a document that nobody here has', () => {
  const quoted = planted.chain((document) =>
    ownRefusalOf(document).map((refusal) => ({ isSecret: document.document.kind === 'Secret', refusal })),
  )
  fc.assert(
    fc.property(quoted, ({ isSecret, refusal }) => {
      const safe = safeStatus(refusal, { isSecret })
      if (PLANTED.test(safe)) throw new Error(safe)
    }),
    { numRuns: RUNS },
  )
})

test('KA31 any text comes out without a control character, in bounded time and length', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), planted, (text, { document }) => {
      const safe = safeStatus({ message: text }, { documents: [document] })
      expect(safe.length).toBeLessThanOrEqual(2_000)
      expect(safe).toBe(clean(safe))
      expect(safe.isWellFormed()).toBe(true)
    }),
    { numRuns: RUNS },
  )
})
