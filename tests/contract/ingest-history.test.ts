// From commits to the revisions that a service had, with everything real but HTTP and the agents.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { decodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'

let kit: IngestKit
beforeEach(async () => {
  kit = await createIngestKit()
  await kit.join('1')
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1'), 'other/x.yaml': configMap('x', '1') }, 'first')
  await kit.repository()
  await kit.service()
})
afterEach(() => kit.close())

test('HI1 each commit that changes what a service renders to is its next revision, with its set; others are none', async () => {
  const second = await kit.push({ 'shop/a.yaml': configMap('a', '2'), 'shop/b.yaml': configMap('b', '1') })
  await kit.push({ 'other/x.yaml': configMap('x', '2') })
  await kit.push({ 'shop/a.yaml': 'no: manifest' })
  const back = await kit.push({ 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml': null })
  const revisions = await kit.store.revisions(SHOP, { limit: 10 })
  expect(revisions.map(({ number, commit, objectCount, clusters }) => [number, commit, objectCount, clusters])).toEqual([
    [3, back, 1, 1],
    [2, second, 2, 0],
    [1, expect.any(String), 1, 1], // the same digest as the third
  ])
  const sizes = await Promise.all(
    revisions.map(async ({ setSha }) => {
      const bytes = setSha === null ? null : await kit.content.get(setSha)
      return bytes === null ? null : decodeRenderedSet(bytes).size
    }),
  )
  expect(sizes).toEqual([1, 2, 1])
})
