// RN10 held against real API servers, the newest and the oldest: whatever one of them takes is taken here, and of kinds
// whose names are judged here what it refuses is refused.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { nameFaults, wrongNamespace, wrongSegment } from '../../server/render/object-names.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { KUBERNETES_MINORS } from '../support/extent.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'

const long = (length: number) => 'a'.repeat(length)
const subdomain = (length: number) => Array.from({ length }, (_, index) => (index % 50 === 49 && index < length - 1 ? '.' : 'a')).join('')
const NAMES = [
  'web', 'web.example', '1web', 'web-1.2', long(63), long(64), subdomain(253), subdomain(254), 'Web', 'we_b', 'we b', 'web:1', '-web', 'web-', 'web.', '.web', 'we..b', 'we.-b', 'wéb', 'we\tb', '.', '..', 'a/b', 'a%b',
] // biome-ignore format: a list
const VALUES = ['', 'a', 'A_1.b-c', 'a b', '-a', 'a-', 'a.', '_a', 'é', 'a\n', long(63), long(64)]
const KEYS = ['a', 'A_1.b-c', 'example.com/a', 'Example.com/a', 'a b', '', '/a', 'a/', 'a/b/c', '-a', 'a_', 'é', long(63), long(64), `${subdomain(253)}/${long(63)}`, `${subdomain(254)}/a`] // biome-ignore format: a list

interface Served {
  apiVersion: string
  kind: string
  path: string
  namespaced: boolean
}
/** Of what the API server says of an object, what is said of its metadata. */
interface Said {
  isTaken: boolean
  ofMetadata: string[]
}

/** They take other names than a path segment and are no matter of a render; of a CertificateSigningRequest without a
 *  request nothing is said of its name. */
const NEVER_APPLIED =
  /Review$|^(Binding|Eviction|TokenRequest|Event|Node|CSINode|CertificateSigningRequest|StorageVersion|ComponentStatus)$/

for (const kubernetes of KUBERNETES_MINORS)
  describe(`RN10 ${kubernetes}`, () => {
    let server: KubeCluster
    let served: Served[]
    const ask = async (method: string, path: string, body?: unknown) => {
      const answer = await fetch(server.server + path, {
        method,
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
        tls: { ca: server.caPem },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: await answer.json() }
    }
    const create = async ({ path, namespaced }: Served, object: K8sObject): Promise<Said> => {
      const at = namespaced ? path.replace('{}', '/namespaces/default') : path.replace('{}', '')
      const { status, body } = await ask('POST', `${at}?dryRun=All`, object)
      const causes = ((body as { details?: { causes?: { field?: string; message?: string }[] } }).details?.causes ?? []) as { field?: string; message?: string }[] // biome-ignore format: one line
      const ofMetadata = causes.filter(({ field = '' }) => field.startsWith('metadata')).map(({ field, message }) => `${field}: ${message}`)
      return { isTaken: status < 300, ofMetadata }
    }
    const objectOf = ({ apiVersion, kind, namespaced }: Served, metadata: Record<string, unknown>): K8sObject =>
      ({ apiVersion, kind, metadata: { ...(namespaced ? { namespace: 'default' } : {}), ...metadata } }) as K8sObject

    beforeAll(async () => {
      server = await startKubeCluster({ name: `names-${kubernetes}`, kubernetes, controllers: false, audit: false })
      const groups = (await ask('GET', '/apis')).body as { groups: { preferredVersion: { groupVersion: string } }[] }
      const versions = ['v1', ...groups.groups.map(({ preferredVersion }) => preferredVersion.groupVersion)]
      served = (
        await Promise.all(
          versions.map(async (apiVersion): Promise<Served[]> => {
            const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
            const { resources } = (await ask('GET', root)).body as { resources: { name: string; kind: string; namespaced: boolean; verbs: string[] }[] } // biome-ignore format: one line
            return resources
              .filter(({ name, kind, verbs }) => !name.includes('/') && verbs.includes('create') && !NEVER_APPLIED.test(kind))
              .map(({ name, kind, namespaced }) => ({ apiVersion, kind, namespaced, path: `${root}{}/${name}` }))
          }),
        )
      ).flat()
    }, CLUSTER_START_TIMEOUT_MS)
    afterAll(() => server?.stop())

    test('RN10 names: what is taken is taken here; of kinds that are judged, what is refused is refused here', async () => {
      const wrong: string[] = []
      const judged: string[] = []
      for (const one of served) {
        const isJudged = nameFaults(objectOf(one, { name: 'A b' })).length > 0
        if (isJudged) judged.push(one.kind)
        for (const name of NAMES) {
          const said = await create(one, objectOf(one, { name }))
          const isRefused = said.ofMetadata.some((text) => text.startsWith('metadata.name'))
          const refusedHere = wrongSegment(name) !== null || nameFaults(objectOf(one, { name })).length > 0
          const isSame = isRefused === refusedHere || (!isJudged && !refusedHere) || OTHERWISE.some((is) => is(one.kind, name, isRefused))
          if (!isSame) wrong.push(`${one.kind} ${JSON.stringify(name)}: ${isRefused ? said.ofMetadata.join() : 'taken'}`)
        }
      }
      expect(wrong).toEqual([])
      expect(served.length).toBeGreaterThan(40)
      expect(judged.sort()).toEqual([...new Set(judged)])
      expect(judged.length).toBeGreaterThan(28)
    }, 120_000)

    /** What the server refuses and this does not, on purpose; and a control character, which nobody means. */
    const OTHERWISE: ReadonlyArray<(kind: string, name: string, isRefused: boolean) => boolean> = [
      (kind, name, isRefused) => isRefused && kind === 'Service' && name === '1web',
      (kind, name, isRefused) => isRefused && kind === 'StatefulSet' && (name.includes('.') || name.length > 63),
      (kind, name, isRefused) => isRefused && kind === 'CronJob' && name.length > 52,
      (_, name, isRefused) => !isRefused && (name === 'we\tb' || name.length > 253),
    ]

    test('RN10 labels and annotations, of a kind of each group', async () => {
      const wrong: string[] = []
      const kinds = [...Map.groupBy(served, ({ apiVersion }) => apiVersion).values()].flatMap(([first]) => first ?? [])
      const field = async (one: Served, metadata: Record<string, unknown>) => {
        const object = objectOf(one, { name: 'web', ...metadata })
        const isRefused = (await create(one, object)).ofMetadata.some((text) => /^metadata\.(labels|annotations)/.test(text))
        if (isRefused !== nameFaults(object).length > 0) wrong.push(`${one.kind} ${JSON.stringify(metadata).slice(0, 200)}: ${isRefused ? 'refused' : 'taken'}`)
      } // biome-ignore format: one line each
      for (const one of kinds) {
        for (const value of VALUES) await field(one, { labels: { a: value } })
        for (const key of KEYS) await field(one, { labels: { [key]: 'a' } })
        for (const key of KEYS) await field(one, { annotations: { [key]: 'any\n{}' } })
        await field(one, { annotations: { a: 'x'.repeat(256 * 1024 - 1) } })
        await field(one, { annotations: { a: 'x'.repeat(256 * 1024) } })
      }
      expect(wrong).toEqual([])
    }, 120_000)

    test('RN10 namespaces', async () => {
      const ofNamespaces = served.find(({ kind }) => kind === 'Namespace') as Served
      for (const name of NAMES.filter((name) => name.length <= 253 && wrongSegment(name) === null)) {
        const said = await create(ofNamespaces, objectOf(ofNamespaces, { name }))
        expect([name, said.ofMetadata.length > 0]).toEqual([name, wrongNamespace(name) !== null])
      }
    })
  })
