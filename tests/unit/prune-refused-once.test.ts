// A prune that waits for a person is told once, whatever happens to the agent meanwhile.
import { afterEach, expect, test } from 'bun:test'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMaps } from '../support/reconcile-kit.ts'

afterEach(stopAll)

test('PR5 a restart tells nobody anew what waits for a person; another revision does', async () => {
  const { kit, run, settle } = setup()
  const told = () => kit.events().filter(({ reason }) => reason === 'PruneBlocked').length
  kit.desire(configMaps(12))
  await run()
  kit.desire(configMaps(2))
  await settle()
  expect([told(), kit.service()?.refusal?.count]).toEqual([1, 10])
  await kit.stop()
  await run()
  expect([told(), kit.service()?.refusal?.count]).toEqual([1, 10])
  kit.desire(configMaps(1))
  await settle()
  expect([told(), kit.service()?.refusal?.count]).toEqual([2, 11])
})
