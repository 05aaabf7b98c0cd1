// Clusters that join, are relabelled, written or deleted: only what concerns them is planned, and nothing is left for a
// pass over the whole fleet.
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import type { Labels } from '../../shared/model/labels.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { inLong } from '../support/extent.ts'
import { configMap, createIngestKit, type IngestKit } from '../support/ingest-kit.ts'

setDefaultTimeout(60_000)

let kit: IngestKit
beforeEach(async () => {
  kit = await createIngestKit()
})
afterEach(() => kit.close())

const DIGITS = [...'0123456789abcdef']
const region = (labels: Labels) => ({ targets: { selector: { matchLabels: labels } } })
/** Looks at a label of its cluster, or at its name: what clusters get differs. */
const template = (look: string) => configMap('a', `one ${look}`)

async function join(digit: string, labels: Labels): Promise<void> {
  await kit.join(digit, labels)
  await kit.ingest.clustersChanged([{ name: `cluster-${digit}`, labelsOnly: false }])
}

/** Services that were planned by `act`, with the number of their clusters. */
async function plannedBy(act: () => Promise<unknown>): Promise<string[]> {
  const from = kit.planned.length
  await act()
  return kit.planned
    .slice(from)
    .map(({ service, clusters }) => `${service} ${clusters}`)
    .sort()
}

test('IN15 a join, a relabel, a write and a deletion of a cluster plan its own pairs of service and cluster', async () => {
  const files = Object.fromEntries(['all', 'north', 'south', 'east'].map((name) => [`${name}/a.yaml`, configMap('a', name)]))
  await kit.git.commit(files, 'first')
  await kit.repository()
  await kit.service(region({ env: 'prod' }), 'all')
  for (const name of ['north', 'south', 'east']) await kit.service(region({ region: name }), name)
  const clusters = DIGITS.slice(0, 12)
  for (const [n, digit] of clusters.entries()) await join(digit, { env: 'prod', region: ['north', 'south'][n % 2] ?? '' })

  expect(await plannedBy(() => join('d', { env: 'prod', region: 'north' }))).toEqual(['all 1', 'north 1'])
  expect(await plannedBy(() => kit.relabel('cluster-d', { env: 'prod', region: 'south' }))).toEqual(['north 1', 'south 1'])
  expect(await plannedBy(() => kit.relabel('cluster-d', { env: 'prod', region: 'south' }, { config: { a: 1 } }))).toEqual([
    'all 1',
    'north 1', // its removal order is not carried out yet
    'south 1',
  ])
  const both = () => Promise.all(['d', '1'].map((digit) => kit.relabel(`cluster-${digit}`, { env: 'dev', region: 'south' })))
  const planned = await plannedBy(both)
  expect(planned.reduce((sum, text) => sum + Number(text.split(' ')[1]), 0)).toBeLessThanOrEqual(7)
  expect(planned.map((text) => text.split(' ')[0])).not.toContain('east')
  expect(await plannedBy(() => deleteCluster('0'))).toEqual(['all 0', 'north 0'])
  await expectNothingLeft('all')
})

/** As a person does, and waits for what follows from it. */
async function deleteCluster(digit: string): Promise<void> {
  const cluster = await kit.store.clusterByName(`cluster-${digit}`)
  if (cluster === null) throw new Error('a cluster that joined')
  const services = await kit.store.desiredInCluster(cluster.clusterId)
  await kit.store.deleteCluster(cluster.name)
  await kit.ingest.clusterDeleted(cluster.clusterId, services)
}

/** A pass of every service over the whole fleet writes nothing. */
async function expectNothingLeft(story: string): Promise<void> {
  const seen = async () => ({
    changes: await kit.store.changes.position(),
    ordinals: [...(await kit.store.clusterOrdinals())],
    events: (await kit.events()).length,
  })
  const before = await seen()
  await kit.ingest.clustersChanged()
  const changes = await kit.store.changes.read(before.changes, { limit: 20 })
  expect([story, await seen(), changes]).toEqual([story, before, expect.objectContaining({ items: [] })])
}

test.each(inLong([1, 2, 3, 4, 5, 6], [1, 2]))(
  'IN15 IN8 TG3 HI1 what passes of single clusters leave is what a pass over the whole fleet leaves (seed %d)',
  async (seed) => {
    const random = seededRandom(seed)
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
    const labels = (): Labels => ({ env: pick(['prod', 'prod', 'dev']), region: pick(['north', 'south', 'west']) })
    const files = (value: string) => ({
      'plain/a.yaml': configMap('a', value),
      'looks/a.yaml.liquid': template('{{ cluster.labels.region }}'),
      'named/a.yaml.liquid': template('{{ cluster.name }}'),
      'kept/a.yaml': configMap('a', value),
      'fails/a.yaml.liquid': template('{% if cluster.labels.region == "west" %}{{ cluster.labels.none.at.all }}{% endif %}'),
    })
    await kit.git.commit(files('0'), 'first')
    await kit.repository()
    await kit.service({}, 'plain')
    await kit.service({ targets: { selector: {}, exclude: [{ matchLabels: { region: 'west' } }] } }, 'looks')
    await kit.service(
      { targets: { selector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['north', 'west'] }] } } },
      'named',
    )
    await kit.service({ protect: true }, 'kept')
    await kit.service({ targets: { selector: { matchExpressions: [{ key: 'env', operator: 'Exists' }] } } }, 'fails')
    const joined = new Map<string, Labels>()
    const used = new Set<string>()
    const story: string[] = []
    for (let step = 0; step < 30; step++) {
      const dice = random()
      const free = DIGITS.filter((digit) => !used.has(digit))
      const digit = pick([...joined.keys()])
      if ((dice < 0.3 && free.length > 0) || digit === undefined) {
        const [one, of] = [pick(free), labels()]
        used.add(one)
        joined.set(one, of)
        story.push(`join ${one} ${JSON.stringify(of)}`)
        await join(one, of)
      } else if (dice < 0.7) {
        const others = [...new Set(Array.from({ length: random() < 0.2 ? 7 : 1 }, () => pick([...joined.keys()])))]
        const of = labels()
        story.push(`relabel ${others} ${JSON.stringify(of)}`)
        for (const one of others) {
          joined.set(one, of)
          const key = { kind: 'Cluster', project: '', name: `cluster-${one}` } as const
          await kit.store.applyResource(key, { labels: of, spec: '{"revoked":false}', nowMs: 1 })
        }
        await kit.ingest.clustersChanged(others.map((one) => ({ name: `cluster-${one}`, labelsOnly: true })))
      } else if (dice < 0.75) {
        story.push(`delete ${digit}`)
        joined.delete(digit)
        await deleteCluster(digit)
      } else if (dice < 0.82) {
        story.push('commit')
        await kit.push(files(String(step)))
      } else if (dice < 0.9) {
        const [question] = await kit.store.listConfirmations()
        story.push(`confirm ${question?.subject}`)
        if (question !== undefined) await kit.actions.confirm(question.id, 'ann')
      } else {
        story.push(`carried out ${digit}`)
        const cluster = await kit.store.clusterByName(`cluster-${digit}`)
        for (const { service, doc } of cluster === null ? [] : await kit.store.desiredInCluster(cluster.clusterId))
          if (cluster !== null && doc?.removal !== undefined)
            await kit.report(cluster.clusterId, { removed: true, removedOrderMs: doc.removal.atMs }, service)
      }
      await expectNothingLeft(story.join('; '))
    }
    expect(kit.planned.filter(({ clusters }) => clusters < joined.size).length).toBeGreaterThan(10)
  },
)
