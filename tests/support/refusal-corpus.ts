// Refusals of real API servers as files, one for each Kubernetes version: what the server said, and what of it may
// leave the agent. `bun tests/support/refusal-corpus.ts [newest] [older]` records them; review the difference of the
// column `safe` before you commit it.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { parseStatus, parseWarnings } from '../../agent/cluster/api-failure.ts'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { objectPath } from '../../agent/cluster/discovery.ts'
import { safeStatus, safeText } from '../../agent/cluster/redact/safe-text.ts'
import { groupOf, type K8sObject, versionOf } from '../../shared/kube/object.ts'
import { APPLY_PATCH, MERGE_PATCH, type RealCluster, startRealCluster } from './real-cluster.ts'
import { POLICIES, POLICY_CASES, REFUSAL_CASES, type RefusalCase } from './refusal-cases.ts'
import { BOAT_CRD } from './refusal-cases-settings.ts'
import { answerOf, WEBHOOK_CASES, webhookConfigurations } from './refusal-cases-webhooks.ts'
import { NAMESPACE } from './refusal-cases-workloads.ts'
import { until } from './watch-probe.ts'
import { startWebhookServer } from './webhook-server.ts'

const FOLDER = join(import.meta.dir, '../fixtures/refusals')

const entrySchema = z.object({
  name: z.string(),
  status: z.number(),
  body: z.string(),
  warnings: z.string().nullable(),
  /** The message, and then each warning, as people see them. */
  safe: z.array(z.string()),
})
export type CorpusEntry = z.infer<typeof entrySchema>

export const corpusNames = (): string[] => readdirSync(FOLDER).sort()
export const readCorpus = (file: string): CorpusEntry[] =>
  readFileSync(join(FOLDER, file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => entrySchema.parse(JSON.parse(line)))

/** By name. Null means not one of the recorded cases. */
export const caseNamed = (name: string): RefusalCase | null => ALL_CASES.find((known) => known.name === name) ?? null
export const ALL_CASES: readonly RefusalCase[] = [...REFUSAL_CASES, ...POLICY_CASES, ...WEBHOOK_CASES]

export function safeTexts({ body, warnings }: Pick<CorpusEntry, 'body' | 'warnings'>, documents: readonly unknown[]): string[] {
  const status = parseStatus(parsed(body))
  const message = status === null ? [] : [safeStatus(status, { documents })]
  return [...message, ...parseWarnings(warnings).map((warning) => safeText(warning, { documents }))]
}

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

const BOATS: ApiResource = { group: 'corpus.example', version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true, verbs: [] }

/** Runs every case on a server and answers what it said, without what differs from run to run. */
export async function recordRefusals({
  server,
  credentials,
  resources,
}: Pick<RealCluster, 'server' | 'credentials' | 'resources'>): Promise<CorpusEntry[]> {
  const { authorization, tls } = await credentials.read()
  const resourceOf = ({ apiVersion, kind }: K8sObject): ApiResource => {
    if (kind === BOATS.kind) return BOATS
    const [group, version] = [groupOf(apiVersion), versionOf(apiVersion)]
    const found = resources.find((resource) => resource.kind === kind && resource.group === group && resource.version === version)
    if (found === undefined) throw new Error(`${kind} of ${apiVersion} is not served`)
    return found
  }
  async function send(object: K8sObject, { as, verb = 'apply' }: Pick<RefusalCase, 'as' | 'verb'> = {}) {
    const path = pathOf(object)
    const isDelete = verb === 'delete with another uid'
    const headers = {
      authorization: authorization ?? '',
      'content-type': isDelete ? 'application/json' : APPLY_PATCH,
      ...(as === undefined ? {} : { 'impersonate-user': as }),
    }
    const body = isDelete ? { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'other' } } : object
    const manager = verb === 'apply without force' ? 'other' : 'corpus'
    const query = isDelete ? '' : `?fieldManager=${manager}&force=${verb === 'apply'}`
    const response = await fetch(server.server + path + query, {
      method: isDelete ? 'DELETE' : 'PATCH',
      headers,
      body: JSON.stringify(body),
      tls: { ca: tls.ca ?? '' },
    })
    return { status: response.status, body: await response.text(), warnings: response.headers.get('warning') }
  }
  const pathOf = (object: K8sObject) => objectPath(resourceOf(object), object.metadata.namespace ?? '', object.metadata.name ?? '')
  const remove = (object: K8sObject) =>
    fetch(server.server + pathOf(object), { method: 'DELETE', headers: { authorization: authorization ?? '' }, tls: { ca: tls.ca ?? '' } })
  async function make(object: K8sObject): Promise<void> {
    const { status, body } = await send(object)
    if (status >= 300) throw new Error(`${object.kind} ${object.metadata.name}: ${body}`)
    if (object['status'] === undefined) return
    const path = pathOf(object)
    await fetch(`${server.server}${path}/status`, {
      method: 'PATCH',
      headers: { authorization: authorization ?? '', 'content-type': MERGE_PATCH },
      body: JSON.stringify({ status: object['status'] }),
      tls: { ca: tls.ca ?? '' },
    })
  }
  const isServed = async () => (await send(boatProbe)).status < 300
  const run = async (each: RefusalCase): Promise<CorpusEntry> => {
    for (const object of each.before ?? []) await make(object)
    const { until: words = '' } = each
    const said = await until(each.name, async () => {
      const answer = stable(await send(each.object, each))
      if (answer.body.includes(words)) return answer
      // A server that does not know the quota yet creates the object; the next apply would be an update, which no quota
      // refuses.
      if (answer.status < 300) await remove(each.object)
      return false
    })
    return { name: each.name, ...said, safe: safeTexts(said, [each.object]) }
  }

  await make({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } } as K8sObject)
  await make(BOAT_CRD)
  await until('boats are served', isServed, 20_000)
  const entries: CorpusEntry[] = []
  for (const each of REFUSAL_CASES) entries.push(await run(each))
  for (const object of POLICIES) await make(object)
  for (const each of POLICY_CASES) {
    await until(`${each.name}: in force`, async () => JSON.stringify(await send(each.object)).includes('ValidatingAdmissionPolicy'), 20_000)
    entries.push(await run(each))
  }
  const webhook = startWebhookServer()
  webhook.admit(({ object }) => answerOf(object))
  try {
    for (const object of webhookConfigurations(webhook.url('/admit'), webhook.caBundle)) await make(object)
    for (const each of WEBHOOK_CASES) {
      const isInForce = async () => {
        const said = await send(each.object)
        if (said.status < 300) await remove(each.object)
        return each.answer.status === undefined ? said.warnings !== null : said.body.includes(each.engine)
      }
      await until(`${each.name}: in force`, isInForce, 20_000)
      entries.push(await run(each))
      // An update reaches the webhook of the former labels as well.
      await remove(each.object)
    }
  } finally {
    await webhook.close()
  }
  return entries
}

const boatProbe = {
  apiVersion: 'corpus.example/v1',
  kind: 'Boat',
  metadata: { name: 'probe', namespace: NAMESPACE },
  spec: { captain: 'ann' },
} as K8sObject

/** An object that was taken is not what a case is about. */
function stable({
  status,
  body,
  warnings,
}: Pick<CorpusEntry, 'status' | 'body' | 'warnings'>): Pick<CorpusEntry, 'status' | 'body' | 'warnings'> {
  const text = parseStatus(parsed(body)) === null ? '' : body
  return {
    status,
    warnings,
    body: text
      .trim()
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '00000000-0000-0000-0000-000000000000')
      .replace(/\b0x[0-9a-f]{6,}/g, '0xc000000000'),
  }
}

/** What two runs of one version have in common: API servers report the members of a map in any order, and print
 *  differences with other spaces in each process, so that nobody relies on their form. */
export function comparable({ name, status, body, warnings, safe }: CorpusEntry): unknown {
  const { message, reason, details } = parseStatus(parsed(body)) ?? {}
  const causes = details?.causes?.map(({ message: text = '', ...cause }) =>
    JSON.stringify({ ...cause, text: text.replace(/[\s\u00a0]+/g, ' ') }),
  )
  const told = causes === undefined && message !== undefined ? sortedLists(message) : undefined
  return { name, status, reason, warnings, causes: causes?.sort(), message: told, safe: safe.map(sortedLists) }
}

/** LimitRanger goes through a map: its `[a, b]` comes in either order. */
const sortedLists = (text: string): string =>
  text.replace(
    /\[([^[\]]*, [^[\]]*)\]/g,
    (_, list: string) =>
      `[${list
        .split(/, (?=maximum|minimum)/)
        .sort()
        .join(', ')}]`,
  )

async function record(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true })
  const asked = process.argv.slice(2)
  for (const kubernetes of ['newest', 'older'] as const) {
    if (asked.length > 0 && !asked.includes(kubernetes)) continue
    const real = await startRealCluster({ name: `refusals-${kubernetes}`, kubernetes })
    try {
      const { version } = await real.cluster.info()
      const entries = await recordRefusals(real)
      const file = `${version.replace(/\.\d+$/, '')}.jsonl`
      writeFileSync(join(FOLDER, file), `${entries.map((entry) => JSON.stringify(entry)).join('\n')}\n`)
      process.stdout.write(`${file}: ${entries.length} answers\n`)
    } finally {
      await real.stop()
    }
  }
}

if (import.meta.main) await record()
