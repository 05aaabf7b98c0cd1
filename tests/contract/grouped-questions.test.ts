// Clusters that refuse the same: one question, one event, one yes.
import { expect, test } from 'bun:test'
import { configMap, confirmationId, createIngestKit, SHOP } from '../support/ingest-kit.ts'

test('TG12 ST23 what two clusters refuse alike is one question, told once; one yes goes into both rows', async () => {
  const kit = await createIngestKit()
  const [one, two] = [await kit.join('1'), await kit.join('2')]
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  const digest = (await kit.row(one))?.digest ?? ''
  const refusal = { digest, names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'most of it would go' }
  for (const cluster of [one, two]) await kit.report(cluster, { refusal })
  expect(await kit.store.listConfirmations()).toMatchObject([{ clusters: { count: 2 }, names: ['ConfigMap shop/x'] }])
  expect((await kit.events()).filter((event) => event.startsWith('ConfirmationNeeded'))).toHaveLength(1)
  await kit.actions.confirm(await confirmationId(kit.store), 'ada', undefined, 2)
  expect([(await kit.row(one))?.pruneConfirmed, (await kit.row(two))?.pruneConfirmed]).toEqual([digest, digest])
  expect(await kit.store.confirmationsOfService(SHOP)).toEqual([])
  await kit.close()
})
