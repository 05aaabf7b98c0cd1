// Random histories of a small fleet, step by step through the port of the store: what people, sources and agents do to
// the rows that are counted.

import type { StatusWrite } from '../../server/fleet/records.ts'
import type { Store } from '../../server/store/store.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { FLEET, syncOptionsSchema } from '../../shared/model/resources.ts'
import { SYNC_WORDS } from '../../shared/model/status.ts'
import type { InventoryRange } from '../../shared/protocol/status.ts'
import type { AgentId, ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { makeToken } from './store-fixtures.ts'

const SERVICES: readonly ServiceId[] = [
  { project: 'p', service: 'a' },
  { project: 'p', service: 'ab' },
  { project: 'q', service: 'a' },
]
const HOUR_MS = 3_600_000
const CLUSTERS_MAX = 6

interface Site {
  id: ClusterId
  name: string
  key: string
  /** Of the rows that its agent wrote last. */
  rev: number
}

export class CountHistory {
  /** Of the last step. */
  told = ''
  private readonly random: Random
  private readonly reopen: () => Promise<Store>
  private store: Store
  private sites: Site[] = []
  private made = 0

  constructor(store: Store, random: Random, reopen: () => Promise<Store>) {
    this.store = store
    this.random = random
    this.reopen = reopen
  }

  get current(): Store {
    return this.store
  }

  async step(): Promise<void> {
    const n = this.int(100)
    if (this.sites.length < 3 || (n < 6 && this.sites.length < CLUSTERS_MAX)) return this.join()
    if (n < 12) return this.relabel()
    if (n < 14) return this.rejoin()
    if (n < 16) return this.deleteCluster()
    if (n < 40) return this.publish()
    if (n < 43) return this.forgetService()
    if (n < 46) return this.restart()
    return this.push()
  }

  private async join(): Promise<void> {
    this.made += 1
    const name = `cluster-${this.int(CLUSTERS_MAX) + 1}`
    const tokenHash = await makeToken(this.store, `t${this.made}`, 1, this.labels())
    const hex = this.made.toString(16).padStart(16, '0')
    const key = `key-${this.made}`
    const id = `c-${hex}` as ClusterId
    this.told = `join ${name}`
    const input = { tokenHash, clusterName: name, publicKey: key, recipient: 'r', clusterUid: 'u', nowMs: 1, clusterId: id }
    const joined = await this.store.join({ ...input, agentId: `a-${hex}` as AgentId })
    if (joined.kind === 'joined') this.sites.push({ id, name, key, rev: 0 })
  }

  private async rejoin(): Promise<void> {
    const { id, name, key } = this.pick(this.sites)
    this.made += 1
    const tokenHash = await makeToken(this.store, `t${this.made}`, 1, this.labels())
    this.told = `join ${name} again`
    const input = { tokenHash, clusterName: name, publicKey: key, recipient: 'r', clusterUid: 'u', nowMs: 1, clusterId: id }
    await this.store.join({ ...input, agentId: `a-${this.made.toString(16).padStart(16, '0')}` as AgentId })
  }

  private async relabel(): Promise<void> {
    const { name } = this.pick(this.sites)
    const labels = this.labels()
    this.told = `relabel ${name} ${JSON.stringify(labels)}`
    await this.store.applyResource({ kind: 'Cluster', project: FLEET, name }, { labels, spec: '{"revoked":false}', nowMs: 2 })
  }

  private async deleteCluster(): Promise<void> {
    const site = this.pick(this.sites)
    this.told = `delete ${site.name}`
    if (this.int(2) === 0) await this.store.deleteCluster(site.name)
    else await this.store.deleteResource({ kind: 'Cluster', project: FLEET, name: site.name })
    this.sites = this.sites.filter((other) => other !== site)
  }

  private async publish(): Promise<void> {
    const rows = this.some(this.sites).flatMap(({ id: clusterId }) =>
      this.some(SERVICES).map((service) => ({ clusterId, ...service, doc: this.serviceRow(), setSha: null, placedBy: '{}' })),
    )
    // As a publication has them: service by service.
    rows.sort((a, b) => (`${a.project}/${a.service}` < `${b.project}/${b.service}` ? -1 : 1))
    this.told = `publish ${rows.map(({ clusterId, service, doc }) => `${clusterId} ${service} ${doc?.digest}`).join(', ')}`
    await this.store.publish(rows)
  }

  private serviceRow() {
    const n = this.int(10)
    if (n === 0) return null
    const digest = this.pick(['one', 'two'])
    const row = { commit: 'c', digest, count: this.int(3), sync: syncOptionsSchema.parse({}) }
    return serviceRowSchema.parse(n === 1 ? { ...row, removal: { policy: 'prune', by: 'me', atMs: 1, why: 'it goes' } } : row)
  }

  private async forgetService(): Promise<void> {
    const { id } = this.pick(this.sites)
    const service = this.pick(SERVICES)
    this.told = `forget ${service.project}/${service.service} of ${id}`
    await this.store.deleteStatusOfService(id, service)
  }

  private async restart(): Promise<void> {
    this.told = 'restart'
    await this.store.close()
    this.store = await this.reopen()
  }

  /** Several at once, so that some share a transaction. */
  private async push(): Promise<void> {
    const told: string[] = []
    await Promise.all(
      this.some(this.sites).map((site) => {
        const rows = Array.from({ length: this.int(10) }, () => this.row(site))
        const n = this.int(6)
        const range: InventoryRange = n === 1 ? { after: null, upTo: 'object/p/ab' } : { after: 'object/p/ab', upTo: null }
        const complete = n === 0 ? true : n < 3 ? range : false
        told.push(`${site.name} ${JSON.stringify(complete)} ${JSON.stringify(rows)}`)
        return this.store.upsertStatus(site.id, rows, { complete, olderThan: this.int(site.rev + 2), nowMs: 3 })
      }),
    )
    this.told = `push ${told.join('; ')}`
  }

  private row(site: Site): StatusWrite {
    // Sometimes an old one, as a replay has them.
    const rev = this.int(5) === 0 ? this.int(site.rev + 1) + 1 : site.rev + 1
    site.rev = Math.max(site.rev, rev)
    const { project, service } = this.pick(SERVICES)
    const object = `${project}/${service}//Pod/n/${this.pick(['x', 'y', 'z'])}`
    const gone = this.int(6) === 0
    switch (this.int(4)) {
      case 0:
        return { kind: 'service', key: `${project}/${service}`, rev, doc: gone ? null : this.serviceStatus() }
      case 1:
        return { kind: 'drift', key: object, rev, doc: gone ? null : this.drift() }
      case 2:
        return { kind: 'cluster', key: 'cluster', rev, doc: gone ? null : this.clusterStatus() }
      default:
        return { kind: 'object', key: object, rev, doc: gone ? null : this.objectStatus() }
    }
  }

  private words() {
    return {
      sync: this.pick(SYNC_WORDS),
      health: this.pick(HEALTH_WORDS),
      reason: this.pick(['', 'Applied']),
      message: '',
      sinceMs: this.int(9),
    }
  }
  private serviceStatus() {
    const point = () => (this.int(3) === 0 ? undefined : { commit: 'c', digest: this.pick(['one', 'two']), atMs: 1 })
    const refusal = this.int(6) > 0 ? undefined : { digest: 'one', names: ['Pod n/x'], count: 1, ownedCount: 1, why: 'all of them' }
    return JSON.parse(
      JSON.stringify({ ...this.words(), received: point(), applied: point(), objectCount: 1, healthyCount: 0, refusal }),
    ) as unknown
  }
  private objectStatus() {
    const images = this.some(['nginx:1', 'redis:2', 'registry/a@sha256:00'])
    return this.int(2) === 0 ? this.words() : { ...this.words(), images }
  }
  private drift() {
    const action = this.pick(['healed', 'reported', 'contested', 'failed'])
    return { paths: ['/spec'], manager: 'kubectl', action, detectedMs: this.int(4) * HOUR_MS + this.int(HOUR_MS), count: 1 }
  }
  private clusterStatus() {
    const agentVersion = this.pick(['0.4.0', '0.5.0'])
    return { agentVersion, kubernetesVersion: this.pick(['v1.31.1', 'v1.32.0']), clusterUid: 'u', problems: [] }
  }

  private labels(): Record<string, string> {
    const env = this.pick(['prod', 'dev', ''])
    return this.int(4) === 0 ? {} : { env, ...(this.int(2) === 0 ? { tier: this.pick(['1', '2']) } : {}) }
  }

  private int(below: number): number {
    return Math.floor(this.random() * below)
  }
  private pick<T>(from: readonly T[]): T {
    const item = from[this.int(from.length)]
    if (item === undefined) throw new Error('nothing to choose from')
    return item
  }
  private some<T>(from: readonly T[]): T[] {
    return from.filter(() => this.int(2) === 0)
  }
}
