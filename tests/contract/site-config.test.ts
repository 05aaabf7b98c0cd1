// SC1, SC3: siteConfig through the whole ingest: rows to the agents, their reports, renders, and what may be deleted
// for them.
import { afterEach, expect, test } from 'bun:test'
import { decodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { SITE_CONFIGS, type SiteStatus } from '../../shared/model/site-config.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'

let kit: IngestKit
let rev = 0
afterEach(() => kit.close())

/** Without the five seconds in which reports are gathered. */
const clock = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms <= 5_000 ? 0 : ms, signal) }
const SITE = { siteConfig: { namespace: 'infra', name: 'site', keys: ['color', { key: 'second', type: 'boolean' }] } }
const FILE = {
  'shop/a.yaml.liquid': `${configMap('a', '{{ config.color }}')}{% if config.second %}---\n${configMap('b', '1')}{% endif %}\n`,
}

async function reports(clusterId: ClusterId, values: Record<string, string>) {
  const absent = ['color', 'second'].filter((key) => !(key in values))
  const doc: SiteStatus = { maps: { 'infra/site': { values, absent, refused: {}, problem: null } } }
  const row = { kind: 'site' as const, key: 'cluster', rev: ++rev, doc }
  await kit.store.upsertStatus(clusterId, [row], { complete: false, nowMs: 1 })
  kit.ingest.statusReported(clusterId, [row])
  await kit.ingest.serviceChanged(SHOP)
}
const render = async () => (await kit.store.renderState(SHOP)).error
async function objects(clusterId: ClusterId): Promise<string> {
  const [row] = (await kit.store.desiredOfService(SHOP)).filter((one) => one.clusterId === clusterId)
  const bytes = row?.setSha == null ? null : await kit.content.get(row.setSha)
  return bytes === null ? '' : JSON.stringify([...decodeRenderedSet(bytes)])
}
async function wantedRows(clusterId: ClusterId): Promise<string> {
  const [row] = (await kit.store.desiredOfService(SITE_CONFIGS)).filter((one) => one.clusterId === clusterId)
  const bytes = row?.setSha == null ? null : await kit.content.get(row.setSha)
  return bytes === null ? '' : JSON.stringify([...decodeRenderedSet(bytes)])
}

async function shop(spec: Record<string, unknown> = {}) {
  kit = await createIngestKit({ clock })
  await kit.git.commit(FILE, 'first')
  await kit.repository()
  const [one, two] = [await kit.join('1'), await kit.join('2')]
  await kit.service({ ...SITE, ...spec })
  await kit.ingest.siteConfigsChanged({ service: SHOP })
  return { one, two }
}

test('SC1 the clusters of a service are told which keys to report, and no longer when it names none', async () => {
  const { one, two } = await shop()
  for (const clusterId of [one, two]) expect(await wantedRows(clusterId)).toContain('siteconfig/infra/site')
  expect(await wantedRows(one)).toContain('color')
  await kit.service({})
  await kit.ingest.siteConfigsChanged({ service: SHOP })
  expect(await wantedRows(one)).toBe('')
})

test('SC3 a cluster gets the service when its agent has reported; values override those of the other levels', async () => {
  const { one, two } = await shop({ config: { color: 'blue', second: false } })
  expect(await render()).toMatchObject({ code: 'values_missing' })
  expect(await objects(one)).toBe('')
  await reports(one, { color: 'green', second: 'true' })
  expect(await objects(one)).toContain('green')
  expect(await objects(two)).toBe('')
  await reports(two, {})
  expect(await objects(two)).toContain('blue') // its site has none of the keys
  expect(await objects(two)).not.toContain('"b"')
  await reports(two, { color: 'red' })
  expect(await objects(two)).toContain('red')
  expect(await render()).toBeNull()
})

test('SC3 a value of the wrong type is an error of that cluster, which keeps its revision', async () => {
  const { one } = await shop({ config: { color: 'blue', second: false } })
  await reports(one, { color: 'green' })
  await reports(one, { color: 'red', second: 'maybe' })
  expect(await objects(one)).toContain('green')
  expect((await render())?.message).toContain('expected a boolean')
})

test('RL5 SC3 what a site takes away is applied and deletes nothing before a person confirms; what a commit takes away is not held', async () => {
  const { one } = await shop({ config: { color: 'blue', second: false } })
  await reports(one, { color: 'green', second: 'true' })
  expect((await kit.row(one))?.count).toBe(2)
  await reports(one, { color: 'green', second: 'false' })
  expect(await kit.row(one)).toMatchObject({ count: 1, factsOnly: true })
  await reports(one, { color: 'green', second: 'true' })
  expect((await kit.row(one))?.factsOnly).toBeUndefined()
  await kit.push({ 'shop/a.yaml.liquid': configMap('a', '{{ config.color }}') })
  const row = await kit.row(one)
  expect([row?.count, row?.factsOnly]).toEqual([1, undefined])
})
