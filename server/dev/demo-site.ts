// One simulated site of the demo fleet: an agent that joins, polls and reports through the real protocol, and a cluster
// that is made up. It applies what it receives after a while, drifts, breaks and heals; it can be cut off.
import { randomBytes } from 'node:crypto'
import { cursorText, type Position } from '../../shared/crdt/position.ts'
import type { HealthWord } from '../../shared/kube/health-object.ts'
import { refKey } from '../../shared/kube/object.ts'
import { confirmationToken, parseRowId, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import type { DriftStatus, EventStatus, ObjectStatus, ServiceStatus, SyncWord } from '../../shared/model/status.ts'
import { ANSWERS, ASK_FRAME_BEGINS, ASK_PARAM, type AskedRef, type Question, questionSchema } from '../../shared/protocol/ask.ts'
import { type Hello, helloSchema, parseRowLine } from '../../shared/protocol/frames.ts'
import {
  type JoinAnswer,
  joinAnswerSchema,
  joinBytes,
  joinTokenHash,
  joinTokenId,
  joinTokenProof,
  parseJoinToken,
} from '../../shared/protocol/join.ts'
import { PAGE_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerSchema, sessionProofBytes } from '../../shared/protocol/session.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../shared/protocol/version.ts'
import { VERSION } from '../../shared/runtime/build-info.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'
import { waitsForSync } from '../fleet/sync-plan.ts'
import { type DemoObject, demoAnswer, failingPod } from './demo-answers.ts'

interface Held {
  key: string
  row: ServiceRow
  objects: string[]
  status: ServiceStatus
}
interface Words {
  sync: SyncWord
  health: HealthWord
  reason: string
  message: string
}
const FINE: Words = { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message: '' }
const POLL_SECONDS = 20
const EVENTS_DIGITS = 13

export interface SiteChoice {
  name: string
  labels: Record<string, string>
  kubernetesVersion: string
  nodeCount: number
}

const ZSTD_MAGIC = 0xfd2fb528

/** Rows of a page. Its signature is not checked: the server is this program. */
function readPage(body: Buffer): { hello: Hello; rows: Array<{ id: string; doc: string | null }> } {
  const frames = body.length >= 4 && body.readUInt32LE(0) === ZSTD_MAGIC ? unzstd(body, PAGE_BYTES_MAX) : body
  const [first = '', ...lines] = Buffer.from(frames).toString('utf8').trimEnd().split('\n')
  const rows = lines.slice(0, -1).map(parseRowLine)
  return { hello: helloSchema.parse(JSON.parse(first)), rows: rows.filter((row) => typeof row !== 'string') }
}

/** Sites of one variant have the same manifests: each text is kept once. */
const texts = new Map<string, string>()
function oneOf(text: string): string {
  const held = texts.get(text) ?? text
  texts.set(text, held)
  return held
}

/** Rows that are still not told then wait for the next poll. */
const FLUSH_TRIES = 5
const FLUSH_RETRY_MS = 500

export class DemoSite {
  readonly choice: SiteChoice
  readonly services = new Map<string, Held>()
  readonly #url: string
  readonly #keys = { signing: generateKey('ed25519'), recipient: generateKey('x25519') }
  readonly #clusterUid = randomBytes(8).toString('hex')
  #joined: JoinAnswer | null = null
  #token: string | null = null
  #position: Position | null = null
  #counter = 0
  #queue: Array<{ kind: string; key: string; rev: number; doc: object | null }> = []
  #cut: AbortController | null = null
  online = false
  /** Services that stay as they were made to be. */
  readonly #stuck = new Set<string>()

  constructor(url: string, choice: SiteChoice) {
    this.#url = url
    this.choice = choice
  }

  async join(joinToken: string): Promise<void> {
    const { signing, recipient } = this.#keys
    const asked = { cluster: this.choice.name, publicKey: signing.publicKey, recipient: recipient.publicKey, clusterUid: this.#clusterUid }
    const tokenHash = joinTokenHash(parseJoinToken(joinToken)?.secret ?? '')
    const tokenId = joinTokenId(tokenHash)
    const bytes = joinBytes(tokenId, asked)
    const proofs = { tokenProof: joinTokenProof(tokenHash, bytes), proof: signBytes(signing.privateKey, bytes) }
    const protocol = { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION }
    const body = JSON.stringify({ tokenId, ...asked, ...proofs, agentVersion: VERSION, protocol })
    const response = await fetch(this.#url + ROUTES.join, { method: 'POST', body })
    if (!response.ok) throw new Error(`${this.choice.name} cannot join: HTTP ${response.status} ${await response.text()}`)
    this.#joined = joinAnswerSchema.parse(await response.json())
    this.#clusterReport([])
  }

  /** Until `goOffline`. */
  goOnline(): void {
    if (this.online) return
    this.online = true
    this.#cut = new AbortController()
    void this.#follow(this.#cut.signal)
  }

  goOffline(): void {
    this.online = false
    this.#cut?.abort()
  }

  async #follow(cut: AbortSignal): Promise<void> {
    while (!cut.aborted) {
      try {
        const joined = this.#joined
        if (joined === null) return
        this.#token ??= await this.#openSession(joined)
        await this.#push(joined)
        const wait = this.#position === null ? 0 : POLL_SECONDS
        const query =
          this.#position === null
            ? ''
            : `?cursor=${cursorText(this.#position)}&wait=${wait}&${ASK_PARAM}=${randomBytes(8).toString('base64url')}`
        const response = await fetch(`${this.#url}${ROUTES.desired}${query}`, {
          headers: { authorization: `Bearer ${this.#token}` },
          signal: AbortSignal.any([cut, AbortSignal.timeout((wait + 20) * 1_000)]),
        })
        if (response.status === 200) {
          const body = Buffer.from(await response.arrayBuffer())
          if (body.subarray(0, ASK_FRAME_BEGINS.length).toString() === ASK_FRAME_BEGINS) this.#answerAll(body.toString('utf8'), cut)
          else {
            const { hello, rows } = readPage(body)
            this.#position = hello.to
            this.#take(rows)
          }
        } else if (response.status === 401) this.#token = null
        else if (response.status === 409) this.#position = null
        else if (response.status !== 204) await systemClock.sleep(2_000, cut)
      } catch {
        if (!cut.aborted) await systemClock.sleep(1_000 + systemRandom() * 2_000, cut)
      }
    }
  }

  async #openSession({ agentId, incarnation }: JoinAnswer): Promise<string> {
    const post = (body: object) =>
      fetch(this.#url + ROUTES.session, { method: 'POST', body: JSON.stringify({ agentId, incarnation, ...body }) })
    const { nonce } = (await (await post({})).json()) as { nonce: string }
    const signature = signBytes(this.#keys.signing.privateKey, sessionProofBytes(agentId, incarnation, nonce))
    return sessionAnswerSchema.parse(await (await post({ nonce, signature })).json()).token
  }

  #take(rows: ReadonlyArray<{ id: string; doc: string | null }>): void {
    const changed = new Set<string>()
    for (const { id, doc } of rows) {
      const parsed = parseRowId(id)
      if (parsed.kind === 'object') this.#objectsOf(serviceKey(parsed.id), refKey(parsed.ref), doc)
      if (parsed.kind !== 'service') continue
      const key = serviceKey(parsed.id)
      if (doc === null) this.#forget(key)
      else {
        this.#hold(key, serviceRowSchema.parse(JSON.parse(doc)))
        changed.add(key)
      }
    }
    for (const key of changed) void this.#roll(key)
  }

  readonly #refs = new Map<string, Set<string>>()
  readonly #objects = new Map<string, { service: string; doc: string }>()
  /** The newest report about each object and its drift. */
  readonly #told = new Map<string, object | null>()

  #find(ref: AskedRef): DemoObject | null {
    const held = this.#objects.get(refKey(ref))
    if (held === undefined) return null
    const of = `${held.service}/${refKey(ref)}`
    const status = (this.#told.get(`object ${of}`) ?? null) as ObjectStatus | null
    const drift = (this.#told.get(`drift ${of}`) ?? null) as DriftStatus | null
    return { manifest: JSON.parse(held.doc) as Record<string, unknown>, status, drift, service: held.service }
  }

  #answerAll(frames: string, cut: AbortSignal): void {
    for (const line of frames.split('\n')) {
      const frame = line === '' ? null : (JSON.parse(line) as { id: string; question: unknown })
      const question = questionSchema.safeParse(frame?.question)
      if (frame !== null && question.success) void this.#answer(frame.id, question.data, cut).catch(() => {}) // nobody waits any more
    }
  }

  async #answer(id: string, question: Question, cut: AbortSignal): Promise<void> {
    const site = {
      cluster: this.choice.name,
      find: (ref: AskedRef) => this.#find(ref),
      restart: (service: string) => void this.#roll(service),
    }
    let part = 0
    for await (const answered of demoAnswer(site, question, cut)) {
      const response = await fetch(`${this.#url}${ANSWERS}/${id}?part=${part}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.#token}` },
        body: `${JSON.stringify(answered)}\n`,
      })
      if (!response.ok) return
      part += 1
    }
  }
  #objectsOf(key: string, ref: string, doc: string | null): void {
    const held = this.#refs.get(key) ?? new Set()
    if (doc !== null) {
      held.add(ref)
      this.#objects.set(ref, { service: key, doc: oneOf(doc) })
    } else {
      held.delete(ref)
      this.#objects.delete(ref)
      this.#tell('object', `${key}/${ref}`, null)
    }
    this.#refs.set(key, held)
  }

  #hold(key: string, row: ServiceRow): void {
    const before = this.services.get(key)
    const point = { commit: row.commit, digest: row.digest, atMs: systemClock.nowMs() }
    const status: ServiceStatus = {
      ...(before?.status ?? { ...FINE, sinceMs: point.atMs, objectCount: row.count, healthyCount: 0 }),
      received: point,
    }
    if (status.refusal !== undefined && (row.pruneConfirmed !== undefined || status.refusal.digest !== confirmationToken(row))) {
      delete status.refusal
      this.#stuck.delete(key)
    }
    this.services.set(key, { key, row, objects: [...(this.#refs.get(key) ?? [])], status })
  }

  #forget(key: string): void {
    this.services.delete(key)
    this.#tell('service', key, null)
  }

  /** From received to healthy, as long as it takes on a real site. */
  async #roll(key: string): Promise<void> {
    const held = this.services.get(key)
    if (held === undefined || held.row.removal !== undefined) return
    if (waitsForSync(held.row)) {
      const message = `revision ${held.row.commit.slice(0, 7)} waits for a sync`
      this.#service(held, { sync: 'OutOfSync', health: held.status.health, reason: 'ManualSync', message })
      return await this.flush()
    }
    this.#service(held, {
      sync: 'OutOfSync',
      health: 'Progressing',
      reason: 'Applying',
      message: `${held.row.count} objects are being applied`,
    })
    for (const ref of held.objects) this.#object(held, ref, FINE)
    await this.flush()
    await systemClock.sleep(400 + systemRandom() * 3_000, this.#cut?.signal)
    if (this.services.get(key) !== held) return
    held.status.applied = { commit: held.row.commit, digest: held.row.digest, atMs: systemClock.nowMs() }
    this.#event('Normal', 'Applied', `${held.row.count} objects of ${held.row.commit.slice(0, 7)} applied`, key)
    this.#service(held, {
      sync: 'Synced',
      health: 'Progressing',
      reason: 'RollingOut',
      message: 'Deployment is rolling out: 1 of 2 replicas are updated',
    })
    await this.flush()
    await systemClock.sleep(800 + systemRandom() * 6_000, this.#cut?.signal)
    if (this.services.get(key) === held && !this.#stuck.has(key)) await this.heal(key)
  }

  async heal(key: string): Promise<void> {
    this.#stuck.delete(key)
    const held = this.services.get(key)
    if (held === undefined) return
    held.status.healthy = { commit: held.row.commit, digest: held.row.digest, atMs: systemClock.nowMs() }
    for (const ref of held.objects) this.#object(held, ref, FINE)
    this.#service(held, { ...FINE, reason: 'Synced' })
    await this.flush()
  }

  async degrade(key: string): Promise<void> {
    this.#stuck.add(key)
    const held = this.services.get(key)
    const ref = held?.objects.find((one) => one.startsWith('apps/Deployment'))
    if (held === undefined || ref === undefined) return
    const [namespace = '', name = ''] = ref.split('/').slice(-2)
    const pod = failingPod(this.choice.name, namespace, name)
    const message = `container main of pod ${pod} exits with code 137 (out of memory), 6 restarts`
    const words: Words = { sync: 'Synced', health: 'Degraded', reason: 'CrashLoopBackOff', message }
    this.#object(held, ref, words)
    this.#service(held, { ...words, message: `Deployment ${ref.split('/').slice(-2).join('/')}: ${message}` })
    this.#event('Warning', 'Degraded', message, key)
    await this.flush()
  }

  /** `isHealed`: Skerry puts it back; else it is only reported. */
  async drift(key: string, isHealed: boolean): Promise<void> {
    const held = this.services.get(key)
    const ref = held?.objects.find((one) => one.startsWith('apps/Deployment')) ?? held?.objects[0]
    if (held === undefined || ref === undefined) return
    if (!isHealed) this.#stuck.add(key)
    const now = systemClock.nowMs()
    const drift: DriftStatus = {
      paths: isHealed ? ['.spec.replicas'] : ['.spec.replicas', '.spec.template.spec.containers[main].image'],
      manager: isHealed ? 'kubectl-edit' : 'cluster-proportional-autoscaler',
      action: isHealed ? 'healed' : 'reported',
      detectedMs: now,
      ...(isHealed ? { healedMs: now + 14 } : {}),
      count: 1,
    }
    this.#tell('drift', `${key}/${ref}`, drift)
    const name = ref.split('/').slice(-2).join('/')
    if (isHealed)
      this.#event('Normal', 'DriftHealed', `Deployment ${name} changed by kubectl-edit (.spec.replicas), restored after 14 ms`, key)
    else {
      const words: Words = {
        sync: 'OutOfSync',
        health: 'Healthy',
        reason: 'Drifted',
        message: `Deployment ${name}: 2 fields changed by ${drift.manager}`,
      }
      this.#object(held, ref, words)
      this.#service(held, words)
      this.#event('Warning', 'Drifted', words.message, key)
    }
    await this.flush()
  }

  /** Another field manager wins after each correction. */
  async contest(key: string): Promise<void> {
    const held = this.services.get(key)
    const ref = held?.objects.find((one) => one.startsWith('apps/Deployment'))
    if (held === undefined || ref === undefined) return
    this.#stuck.add(key)
    const name = ref.split('/').slice(-2).join('/')
    const message = `Deployment ${name}: keda-operator changes .spec.replicas again after each correction (9 times)`
    const words: Words = { sync: 'OutOfSync', health: 'Healthy', reason: 'Contested', message }
    const paths = ['.spec.replicas']
    this.#tell('drift', `${key}/${ref}`, {
      paths,
      manager: 'keda-operator',
      action: 'contested',
      detectedMs: systemClock.nowMs(),
      count: 9,
    })
    this.#object(held, ref, words)
    this.#service(held, words)
    this.#event('Warning', 'Contested', message, key)
    await this.flush()
  }

  async refusePrune(key: string): Promise<void> {
    this.#stuck.add(key)
    const held = this.services.get(key)
    if (held === undefined) return
    const kept = held.objects.length
    const left = held.objects.map((ref) => `${ref.split('/')[1]} ${ref.split('/').slice(2).join('/')}-legacy`)
    const names = [...left, `CronJob ${key.split('/')[1]}/cleanup-legacy`]
    const ownedCount = kept + names.length
    const why = `the revision drops ${names.length} of ${ownedCount} objects, more than 50 percent`
    held.status.refusal = { digest: confirmationToken(held.row), names, count: names.length, ownedCount, why }
    this.#service(held, { sync: 'OutOfSync', health: 'Healthy', reason: 'PruneBlocked', message: why })
    this.#event('Warning', 'PruneBlocked', `${why}; nothing was deleted`, key)
    await this.flush()
  }

  async setHeld(by: string, why: string): Promise<void> {
    this.#clusterReport([{ code: 'held', message: `held by ${by}: ${why}`, sinceMs: systemClock.nowMs() }])
    this.#event('Normal', 'Held', `held by ${by}: ${why}`)
    await this.flush()
  }

  #clusterReport(problems: Array<{ code: string; message: string; sinceMs: number }>): void {
    const { kubernetesVersion, nodeCount } = this.choice
    this.#tell('cluster', 'cluster', { agentVersion: VERSION, kubernetesVersion, clusterUid: this.#clusterUid, nodeCount, problems })
  }

  #service(held: Held, words: Words): void {
    const same = held.status.sync === words.sync && held.status.health === words.health && held.status.reason === words.reason
    const healthyCount = words.health === 'Healthy' ? held.row.count : Math.max(0, held.row.count - 1)
    held.status = {
      ...held.status,
      ...words,
      sinceMs: same ? held.status.sinceMs : systemClock.nowMs(),
      objectCount: held.row.count,
      healthyCount,
    }
    this.#tell('service', held.key, held.status)
  }

  #object(held: Held, ref: string, words: Words): void {
    const images = ref.startsWith('apps/') ? [`registry.example/${ref.split('/').at(-1)}:${held.row.commit.slice(0, 7)}`] : undefined
    const doc: ObjectStatus = { ...words, sinceMs: systemClock.nowMs(), ...(images === undefined ? {} : { images }) }
    this.#tell('object', `${held.key}/${ref}`, doc)
  }

  #event(type: EventStatus['type'], reason: string, message: string, service?: string): void {
    const atMs = systemClock.nowMs()
    this.#tell('event', `${String(atMs).padStart(EVENTS_DIGITS, '0')}-${this.#counter}`, {
      atMs,
      type,
      reason,
      message,
      ...(service === undefined ? {} : { service }),
    })
  }

  #tell(kind: string, key: string, doc: object | null): void {
    this.#counter += 1
    if (kind === 'object' || kind === 'drift') this.#told.set(`${kind} ${key}`, doc)
    const rev = (this.#joined?.incarnation ?? 1) * REV_INCARNATION + this.#counter
    this.#queue = [...this.#queue.filter((row) => row.kind !== kind || row.key !== key), { kind, key, rev, doc }]
  }

  async flush(): Promise<void> {
    for (let failures = 0; failures < FLUSH_TRIES && this.#queue.length > 0; ) {
      if (!this.online || this.#joined === null || this.#token === null) return
      try {
        await this.#push(this.#joined)
      } catch {
        failures += 1 // a busy server asks to come again
        await systemClock.sleep(FLUSH_RETRY_MS)
      }
    }
  }

  #pushing: Promise<void> = Promise.resolve()
  #push(joined: JoinAnswer): Promise<void> {
    const mine = this.#pushing.then(async () => {
      const rows = this.#queue.slice(0, 400)
      if (rows.length === 0 || this.#token === null) return
      const response = await fetch(this.#url + ROUTES.status, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ incarnation: joined.incarnation, rows }),
      })
      if (!response.ok) throw new Error(`push: HTTP ${response.status}`)
      const sent = new Set(rows)
      this.#queue = this.#queue.filter((row) => !sent.has(row))
    })
    this.#pushing = mine.catch(() => {})
    return mine
  }
}
