// The age keys of this site: `*.agekey` entries of labelled Secrets, and files of a folder. They are read only where a
// row needs them, never leave the process, and are not stored; only public recipients are remembered across restarts.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { readAgeKeys } from '../../shared/adapters/age.ts'
import { AGE_KEY_SUFFIX, type AgeKeyFolder, type PlacedAgeKey, readAgeKeyFolder } from '../../shared/adapters/age-key-folder.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ApiResource, Cluster, WatchEvent } from '../cluster/cluster.ts'
import { watchLoop } from '../cluster/watch-loop.ts'
import { sitePart } from '../messages/site-messages.ts'
import { CLAIM_NAMESPACE } from '../reconcile/claim/claim.ts'
import type { AgentState } from '../state/agent-state.ts'

/** On a Secret in this namespace: its `*.agekey` entries are keys of the site. */
export const SOPS_KEYS_LABEL = 'skerry.dev/sops-keys'
export const SOPS_KEYS_NAMESPACE = CLAIM_NAMESPACE
/** Projects that may use the keys of a Secret, with commas between them. Absent means all. */
export const SOPS_PROJECTS_ANNOTATION = 'skerry.dev/sops-projects'

export interface SiteKeysDeps {
  cluster: Pick<Cluster, 'watch'>
  /** Folder of `*.agekey` files. Undefined means none. */
  folder: string | undefined
  state: Pick<AgentState, 'facts' | 'setFacts'>
  clock: Clock
  log: Logger
  signal: AbortSignal
  /** Other keys than before. */
  changed(): void
}

const SECRETS: ApiResource = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true, verbs: [] }
/** How often the folder is read; a mounted Secret is replaced without any event that could be relied on. */
const READ_EVERY_MS = 2_000
/** Keys of one site. */
const KEYS_MAX = 1_000
/** Recipients that are remembered. */
const FORMER_MAX = 100
/** A fact of all services; no service has such a name. */
const OWNER: ServiceId = { project: '*', service: '*' }
const FACT = 'sops/recipients'
const recipientsSchema = z.array(z.string().max(4_096)).max(FORMER_MAX).catch([])
const NO_FOLDER: AgeKeyFolder = { keys: [], problems: [], digest: '' }

export class SiteKeys {
  readonly #deps: SiteKeysDeps
  readonly #secrets = new Map<string, PlacedAgeKey[]>()
  readonly #wrong = new Map<string, string>()
  readonly #known: Set<string>
  #folder = NO_FOLDER
  /** Why Secrets cannot be read. */
  #failure: string | null = null
  #ready: Promise<void> | null = null
  #synced: () => void = () => {}
  #isSynced = false
  #taking: Promise<void> = Promise.resolve()
  #version = ''
  #keys: readonly PlacedAgeKey[] = []

  constructor(deps: SiteKeysDeps) {
    this.#deps = deps
    this.#known = new Set(recipientsSchema.parse(deps.state.facts(OWNER, FACT).get(FACT)))
  }

  /** Resolves when folder and Secrets were read once, or cannot be read. Nothing is read before the first call. */
  ready(): Promise<void> {
    this.#ready ??= this.#begin()
    return this.#ready
  }

  /** Names the present keys. */
  version(): string {
    return this.#version
  }

  /** Keys that services of the project may use. */
  of(project: string): readonly PlacedAgeKey[] {
    return this.#keys.filter((key) => key.project === null || key.project === project)
  }

  all(): readonly PlacedAgeKey[] {
    return this.#keys
  }

  /** Recipients whose keys this site had, and has no more. */
  isFormer(recipient: string): boolean {
    return this.#known.has(recipient) && !this.#keys.some((key) => key.recipient === recipient)
  }

  /** Why there may be more keys than those that were read. */
  problems(): string[] {
    return [...(this.#failure === null ? [] : [this.#failure]), ...this.#wrong.values(), ...this.#folder.problems]
  }

  /** Public parts. Null before the keys were read. */
  report(): { recipients: string[]; problems: string[] } | null {
    return this.#version === ''
      ? null
      : { recipients: [...new Set(this.#keys.map(({ recipient }) => recipient))], problems: this.problems() }
  }

  async #begin(): Promise<void> {
    const { folder, signal } = this.#deps
    const synced = new Promise<void>((resolve) => {
      this.#synced = resolve
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    if (folder !== undefined) {
      this.#folder = await readAgeKeyFolder(folder)
      void this.#followFolder(folder)
    }
    const scope = { namespace: SOPS_KEYS_NAMESPACE, labelSelector: SOPS_KEYS_LABEL, signal }
    const take = (event: WatchEvent) => {
      this.#taking = this.#taking.then(() => this.#take(event)).catch(() => {})
    }
    void watchLoop(this.#deps, SECRETS, scope, { take, broke: () => {} })
    await synced
  }

  async #followFolder(folder: string): Promise<void> {
    const { clock, signal } = this.#deps
    while (!signal.aborted) {
      await clock.sleep(READ_EVERY_MS, signal)
      if (signal.aborted) return
      const next = await readAgeKeyFolder(folder)
      if (next.digest === this.#folder.digest) continue
      this.#folder = next
      this.#settle()
    }
  }

  async #take(event: WatchEvent): Promise<void> {
    switch (event.kind) {
      case 'reset':
        this.#secrets.clear()
        this.#wrong.clear()
        return
      case 'present':
      case 'changed':
        await this.#read(event.object)
        break
      case 'removed':
        this.#secrets.delete(event.object.metadata.name ?? '')
        this.#wrong.delete(event.object.metadata.name ?? '')
        break
      case 'synced':
        this.#failure = null
        this.#isSynced = true
        break
      case 'failed':
        // The known keys stay while their watch is broken.
        if (this.#isSynced && this.#failure === null && event.failure.kind !== 'forbidden') return
        this.#failure = sitePart('secrets_unread', { namespace: SOPS_KEYS_NAMESPACE, failure: event.failure.message })
        this.#isSynced = true
    }
    if (!this.#isSynced) return
    this.#settle()
    this.#synced()
  }

  async #read({ metadata, ...rest }: K8sObject): Promise<void> {
    const name = metadata.name ?? ''
    const place = `Secret ${SOPS_KEYS_NAMESPACE}/${name}`
    const projects = projectsOf(metadata.annotations?.[SOPS_PROJECTS_ANNOTATION])
    const { data } = rest as { data?: unknown }
    const entries = Object.entries(typeof data === 'object' && data !== null ? data : {}).filter(([key]) => key.endsWith(AGE_KEY_SUFFIX))
    const found: PlacedAgeKey[] = []
    const wrong: string[] = []
    for (const [key, value] of entries) {
      const keys = typeof value === 'string' ? await readAgeKeys(Buffer.from(value, 'base64').toString('utf8')) : null
      if (keys === null) wrong.push(sitePart('not_an_age_key', { place, entry: key }))
      else for (const project of projects) found.push(...keys.map((one) => ({ ...one, project, from: place })))
    }
    if (entries.length === 0) wrong.push(sitePart('no_age_key', { place, suffix: AGE_KEY_SUFFIX }))
    this.#secrets.set(name, found)
    if (wrong.length > 0) this.#wrong.set(name, wrong.join('; '))
    else this.#wrong.delete(name)
  }

  #settle(): void {
    const all = [...this.#folder.keys, ...[...this.#secrets].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, keys]) => keys)]
    const keys = all.slice(0, KEYS_MAX)
    const names = [...keys.map(({ recipient, project }) => `${recipient} ${project ?? '*'}`), ...this.problems()]
    const version = createHash('sha256').update(names.sort().join('\n')).digest('base64url').slice(0, 16)
    if (version === this.#version) return
    const isFirst = this.#version === ''
    this.#version = version
    this.#keys = keys
    this.#remember()
    this.#deps.log.info('age keys of the site read', { keys: keys.length, problems: this.problems() })
    if (!isFirst) this.#deps.changed()
  }

  #remember(): void {
    const before = this.#known.size
    for (const { recipient } of this.#keys) this.#known.add(recipient)
    if (this.#known.size === before) return
    this.#deps.state.setFacts(OWNER, new Map([[FACT, [...this.#known].slice(-FORMER_MAX)]]))
  }
}

/** `web, shop`; null is every project. An empty list is no project. */
function projectsOf(annotation: string | undefined): Array<string | null> {
  if (annotation === undefined) return [null]
  return annotation
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}
