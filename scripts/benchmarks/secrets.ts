// scripts/bench secrets: what sealing costs on its way from a render to the API server of a site, and whether anything
// leaks.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RowOpener } from '../../agent/replica/row-opener.ts'
import { loadSealing, type Sealing } from '../../server/access/sealing.ts'
import { createPageSeal, type PageSeal } from '../../server/desired/page-seal.ts'
import { createShards } from '../../server/desired/shard-files.ts'
import { rowsOf } from '../../server/render/object-rows.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { sealMarkOf, sealObject } from '../../shared/model/sealed-object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { startSealedSite } from '../../tests/support/sealed-site.ts'
import { corpusServices } from './corpus.ts'
import { percentile, rounded } from './figures.ts'
import { runParts, type Say } from './parts.ts'
import { benchRotate } from './secrets-rotate.ts'

const SERVICE = { project: 'bench', service: 'shop' }
const SECRETS = 5_000
/** Sealed rows of each cluster that gets a new recipient key. */
const ROWS_EACH = 20
const PAGE_OBJECTS = 4_000
/** One object in so many is a Secret. */
const SECRET_EVERY = 20
const COMMITS = 30

const clusterId = (n: number) => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)
const secret = (n: number): K8sObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: `secret-${n}`, namespace: 'shop', labels: { 'app.kubernetes.io/name': `shop-${n % 50}` } },
  type: 'Opaque',
  data: Object.fromEntries(['user', 'password', 'token'].map((key) => [key, randomBytes(24).toString('base64')])),
})
const rowId = (object: K8sObject) => `${objectRowPrefix(SERVICE)}/${object.kind}/${object.metadata.namespace}/${object.metadata.name}`

interface World {
  dir: string
  sealing: Sealing
}

async function withSealing<T>(work: (world: World) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-secrets-'))
  try {
    const sealing = loadSealing(join(dir, 'keys'))
    sealing.begin()
    return await work({ dir, sealing })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const keysOf = (sealing: Sealing) => {
  const keys = sealing.keysFor(SERVICE)
  if (keys === null) throw new Error('there is no sealing key')
  return keys
}

/** Objects sealed by the worker, and opened by the agent with keys that came wrapped. */
const seals = (say: Say) =>
  withSealing(async ({ sealing }) => {
    const keys = keysOf(sealing)
    const objects = Array.from({ length: SECRETS }, (_, n) => secret(n))
    const docs = objects.map((object) => ({ id: rowId(object), object, doc: canonicalJson(object) }))
    const sealStart = performance.now()
    const rows = docs.map(({ id, object, doc }) => ({ id, doc: sealObject(keys, id, object, doc) }))
    const sealMs = performance.now() - sealStart
    const recipient = generateKey('x25519')
    const { head, wraps } = await wrapped(createPageSeal({ sealing, recipientOf: () => recipient.publicKey }), 1, rows)
    const opener = new RowOpener(clusterId(1), { privateKey: () => recipient.privateKey, isCurrent: () => true, forget: () => {} })
    await opener.unlock([head])
    const openStart = performance.now()
    const opened = rows.filter(
      ({ id, doc }, index) => opener.open(id, doc, { ...head, wrapped: wraps[index] ?? '', bound: BINDING }) === docs[index]?.doc,
    )
    const openMs = performance.now() - openStart
    if (opened.length !== SECRETS) throw new Error(`${SECRETS - opened.length} rows do not open`)
    say(`${SECRETS} Secrets sealed in ${Math.round(sealMs)} ms, opened in ${Math.round(openMs)} ms`)
    return { seal_per_s: Math.round(SECRETS / (sealMs / 1_000)), open_per_s: Math.round(SECRETS / (openMs / 1_000)) }
  })

const marked = (rows: ReadonlyArray<{ id: string; doc: string }>) =>
  rows.flatMap(({ id, doc }) => {
    const mark = sealMarkOf(doc)
    return mark === null ? [] : [{ id, mark }]
  })

/** Any page. */
const BINDING = 'page'

async function wrapped(seal: PageSeal, cluster: number, rows: ReadonlyArray<{ id: string; doc: string }>) {
  const { head, line } = await seal.wrap(clusterId(cluster), marked(rows), BINDING)
  const chars = line.length / rows.length
  return { head, wraps: rows.map((_, index) => line.slice(index * chars, (index + 1) * chars)) }
}

/** Bytes on the wire of one page whose Secrets are sealed, against the same page in clear. */
const page = (say: Say) =>
  withSealing(async ({ dir, sealing }) => {
    const keys = keysOf(sealing)
    const corpus = corpusServices(PAGE_OBJECTS, 7).flatMap(({ objects }) =>
      [...objects.values()].map((doc) => JSON.parse(doc) as K8sObject),
    )
    const objects = corpus.filter(({ kind }) => kind !== 'Secret').map((object, n) => (n % SECRET_EVERY === 0 ? secret(n) : object))
    const size = async (name: string, isSealed: boolean) => {
      const rows = new Map(
        objects.map((object, n) => {
          const named = { ...object, metadata: { ...object.metadata, namespace: 'shop', name: `${object.metadata.name}-${n}` } }
          const [id, doc] = [rowId(named), canonicalJson(named)]
          return [id, isSealed && object.kind === 'Secret' ? sealObject(keys, id, named, doc) : doc] as const
        }),
      )
      const key = generateKey('ed25519')
      const recipient = generateKey('x25519')
      const { shards } = createShards({
        ...{ dir: join(dir, name), shardCount: 1, epochOf: () => 1, newId: () => randomBytes(16).toString('hex') },
        sign: (bytes) => signBytes(key.privateKey, bytes),
        seal: createPageSeal({ sealing, recipientOf: () => recipient.publicKey }),
        ...{ clock: systemClock, log: silentLogger },
      })
      const sync = syncOptionsSchema.parse({})
      const serviceDoc = canonicalJson({ commit: 'c0ffee', digest: setDigest(rows), count: rows.size, sync, protect: false })
      shards.writeRevisions([{ clusterId: clusterId(1), ...SERVICE, ordinal: 1, serviceDoc, objects: rows }])
      const pulled = await shards.pull(clusterId(1), null, { zstd: true, seal: true, bound: true })
      if (pulled.kind !== 'page') throw new Error(`no page: ${pulled.kind}`)
      shards.close()
      return pulled.transfer?.bytes ?? pulled.bytes.length
    }
    const [clear, sealed] = [await size('clear', false), await size('sealed', true)]
    say(`${objects.length} objects, one in ${SECRET_EVERY} a Secret: ${clear} bytes in clear, ${sealed} sealed`)
    return { page_overhead_pct: rounded((sealed / clear - 1) * 100) }
  })

const rotate = (say: Say) => {
  const secrets = Array.from({ length: ROWS_EACH }, (_, n) => secret(n)).map((object) => ({ id: rowId(object), object }))
  return benchRotate(say, SERVICE, secrets)
}

/** The same objects, rendered by two processes of a server. */
const reseal = () =>
  withSealing(async ({ dir, sealing }) => {
    const objects = Array.from({ length: 500 }, (_, n) => secret(n))
    const render = (of: Sealing) => {
      const found = objects.map((object, n) => ({ object, place: `a.yaml: object ${n}` }))
      const input = { ...SERVICE, namespace: 'shop', path: 'shop', commit: 'c0ffee', seal: { keys: keysOf(of), all: true } }
      const result = rowsOf(input, { found, problems: [], warnings: [] })
      if (result.kind === 'failed') throw new Error(result.message)
      return result.objects
    }
    const [first, again] = [render(sealing), render(loadSealing(join(dir, 'keys')))]
    return { rows_changed_by_reseal: [...first].filter(([id, doc]) => again.get(id) !== doc).length }
  })

/** A server and an agent with marked secrets: the time of one change, then all their files and messages are searched.
 */
async function site(say: Say): Promise<Record<string, number>> {
  const world = await startSealedSite()
  try {
    const tookMs: number[] = []
    for (let n = 0; n < COMMITS; n++) {
      await world.commitSecret(`number-${n}`)
      const startMs = performance.now()
      await world.refresh()
      await world.applied(() => world.secretNumber() === `number-${n}`, 5)
      tookMs.push(performance.now() - startMs)
    }
    const leaks = world.found()
    for (const leak of leaks) say(leak)
    return { apply_secret_ms: rounded(percentile(tookMs, 50)), secret_leaks: leaks.length }
  } finally {
    await world.stop()
  }
}

export const benchSecrets = (say: Say, only: string | null): Promise<Record<string, number>> =>
  runParts('secrets', { seals, page, rotate, reseal, site }, say, only)
