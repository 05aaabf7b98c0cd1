// The verbs that ask clusters: live objects, trees, logs, restarts, differences between desired and live.
import { toYaml } from '../../../shared/adapters/yaml.ts'
import { durationMs, durationSchema } from '../../../shared/model/resources.ts'
import type { AnswerLineOf, AskRequest, Question } from '../../../shared/protocol/ask.ts'
import { plainText } from '../columns.ts'
import { type Context, errorText, type Output } from '../context.ts'
import { askYes, UsageError } from '../io.ts'
import { documentText } from '../printing/documents.ts'
import { type ObjectAddress, parseObjectAddress } from '../trace/object-address.ts'
import { askClusters, type Targets, targetsOf } from './fan-out.ts'

export interface AskOptions extends Targets {
  /** With it the question is confined to the service, for callers whose right is on the service. */
  service?: string | undefined
  project: string
}

/** Groups of kinds that people name without them. */
const GROUPS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ControllerRevision'].map((kind) => [kind, 'apps'])),
  ...Object.fromEntries(['Job', 'CronJob'].map((kind) => [kind, 'batch'])),
  ...Object.fromEntries(['Ingress', 'IngressClass', 'NetworkPolicy'].map((kind) => [kind, 'networking.k8s.io'])),
  ...Object.fromEntries(['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'].map((kind) => [kind, 'rbac.authorization.k8s.io'])),
  HorizontalPodAutoscaler: 'autoscaling',
  PodDisruptionBudget: 'policy',
  PriorityClass: 'scheduling.k8s.io',
  StorageClass: 'storage.k8s.io',
  CustomResourceDefinition: 'apiextensions.k8s.io',
  EndpointSlice: 'discovery.k8s.io',
}
const CORE: ReadonlySet<string> = new Set(
  `ConfigMap Endpoints LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod ReplicationController ResourceQuota Secret Service
  ServiceAccount Event`.split(/\s+/),
)

export function refOfAddress(text: string) {
  const { kind, group, namespace, name }: ObjectAddress = parseObjectAddress(text)
  const known = group ?? GROUPS[kind] ?? (CORE.has(kind) ? '' : undefined)
  if (known === undefined)
    throw new UsageError(`which API group has ${kind}? Write ${kind}.GROUP, such as certificate.cert-manager.io/shop/web`)
  return { group: known, kind, namespace, name }
}

export const requestOf = (question: Question, { service, project }: AskOptions): AskRequest =>
  service === undefined ? { question } : { question, within: { project, service } }

export const refText = ({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string =>
  `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`

/** Exit code: 0 every cluster answered, 1 some gave no answer. */
export async function liveObject(
  context: Context,
  address: string,
  options: AskOptions & { output?: Output; managedFields?: boolean | undefined },
): Promise<number> {
  const client = context.client()
  const clusters = await targetsOf(client, options)
  const question: Question = { kind: 'object', ref: refOfAddress(address), managedFields: options.managedFields === true }
  const isOne = clusters.length === 1
  const { stdout } = context.io
  const { failed } = await askClusters(context, client, clusters, requestOf(question, options), (cluster, line) => {
    if (line.t !== 'object') return note(context, cluster, isOne, line)
    const { output } = options
    if (output === undefined || output === 'yaml' || output === 'wide')
      stdout.write(`${isOne ? '' : `---\n# cluster ${cluster}\n`}${toYaml(line.object)}`)
    else if (output === 'json' && !isOne) stdout.write(`${JSON.stringify({ cluster, object: line.object })}\n`)
    else stdout.write(`${isOne ? '' : `${cluster}\t`}${(documentText(line.object, output) ?? '').trimEnd()}\n`)
  })
  return failed === 0 ? 0 : 1
}

export async function liveTree(context: Context, address: string, options: AskOptions & { json?: boolean }): Promise<number> {
  const client = context.client()
  const clusters = await targetsOf(client, options)
  const ref = refOfAddress(address)
  const isOne = clusters.length === 1
  const { stdout } = context.io
  const depths = new Map<string, number>()
  const { failed } = await askClusters(context, client, clusters, requestOf({ kind: 'tree', ref }, options), (cluster, line) => {
    if (options.json) return void stdout.write(`${JSON.stringify({ cluster, ...line })}\n`)
    if (line.t !== 'child') return note(context, cluster, isOne, line)
    const depth = line.parent === null ? 0 : (depths.get(`${cluster} ${line.parent}`) ?? 0) + 1
    depths.set(`${cluster} ${line.uid}`, depth)
    stdout.write(`${isOne ? '' : `${cluster}\t`}${childText(line, depth)}\n`)
  })
  return failed === 0 ? 0 : 1
}

function childText({ ref, health, reason, message }: AnswerLineOf<'child'>, depth: number): string {
  const why = reason === health || reason === '' ? '' : ` ${reason}`
  return `${'  '.repeat(depth)}${refText(ref)}  ${health}${plainText(`${why}${message === '' ? '' : `: ${message}`}`)}`
}

export interface LogOptions extends AskOptions {
  container?: string | undefined
  follow?: boolean | undefined
  previous?: boolean | undefined
  timestamps?: boolean | undefined
  since?: string | undefined
  tail?: number | undefined
}

export async function liveLogs(context: Context, address: string, options: LogOptions): Promise<number> {
  const client = context.client()
  const clusters = await targetsOf(client, options)
  const question: Question = {
    ...{ kind: 'logs', ref: refOfAddress(address) },
    ...(options.container === undefined ? {} : { container: options.container }),
    ...{ follow: options.follow === true, previous: options.previous === true, timestamps: options.timestamps === true },
    ...(options.since === undefined ? {} : { sinceSeconds: secondsOf(options.since) }),
    ...(options.tail === undefined ? {} : { tailLines: options.tail }),
  }
  const isOne = clusters.length === 1
  const sources = new Set<string>()
  const { stdout, isTty } = context.io
  const { failed } = await askClusters(context, client, clusters, requestOf(question, options), (cluster, line) => {
    if (line.t !== 'log') return note(context, cluster, isOne, line)
    sources.add(`${cluster} ${line.pod} ${line.container}`)
    const prefix =
      isOne && question.ref.kind === 'Pod' && sources.size === 1 ? '' : `[${isOne ? '' : `${cluster} `}${line.pod}/${line.container}] `
    // A program at the site chooses this text: it may not steer the terminal.
    const text = isTty ? withoutControls(line.text) : line.text
    stdout.write(prefix === '' ? text : text.replace(/^(?=.)/gm, prefix))
  })
  return failed === 0 ? 0 : 1
}

const ESC = String.fromCharCode(27)
/** Control characters, and escape sequences but those of colours. */
const CONTROLS = new RegExp(
  ['[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001a\\u001c-\\u001f\\u007f-\\u009f]', `${ESC}(?!\\[[0-9;]*m)`].join('|'),
  'g',
)
const withoutControls = (text: string): string => text.replace(CONTROLS, '')

function secondsOf(text: string): number {
  const seconds = durationSchema.safeParse(text).success ? Math.floor(durationMs(text) / 1_000) : 0
  if (seconds < 1) throw new UsageError(`expected a duration such as 30s, 5m or 2h, not "${text}"`)
  return seconds
}

export async function liveRestart(context: Context, address: string, options: AskOptions & { yes?: boolean }): Promise<number> {
  const client = context.client()
  const clusters = await targetsOf(client, options)
  const ref = refOfAddress(address)
  if (clusters.length > 1 && options.yes !== true) {
    if (!context.io.isTty) throw new UsageError('not a terminal: use --yes to confirm')
    if (!(await askYes(context.io, `restart ${refText(ref)} in ${clusters.length} clusters (${clusters.slice(0, 10).join(', ')})?`)))
      return 1
  }
  const { failed } = await askClusters(context, client, clusters, requestOf({ kind: 'restart', ref }, options), (cluster, line) => {
    if (line.t === 'restarted') context.io.stdout.write(`${cluster}: ${refText(line.ref)} restarts\n`)
    else note(context, cluster, clusters.length === 1, line)
  })
  return failed === 0 ? 0 : 1
}

export interface LiveDiffOptions extends AskOptions {
  output?: string | undefined
}

/** Exit codes as those of `diff`: 0 no differences, 1 differences, 2 a failure. */
export async function diffLive(context: Context, service: string | undefined, options: LiveDiffOptions): Promise<number> {
  if (service === undefined) throw new UsageError('which service? Give its name')
  try {
    return await compareLive(context, service, options)
  } catch (error) {
    if (error instanceof UsageError) throw error
    context.io.stderr.write(errorText(error))
    return 2
  }
}

async function compareLive(context: Context, service: string, options: LiveDiffOptions): Promise<number> {
  const client = context.client()
  const clusters = await targetsOf(client, options)
  const isOne = clusters.length === 1
  const id = { project: options.project, service: service.replace(/^(svc|services?)\//, '') }
  const { stdout } = context.io
  let differs = false
  const { failed } = await askClusters(
    context,
    client,
    clusters,
    { question: { kind: 'diff', service: id }, within: id },
    (cluster, line) => {
      if (line.t !== 'diff') return note(context, cluster, isOne, line)
      if (line.state === 'same') return
      differs = true
      if (options.output === 'json') stdout.write(`${JSON.stringify({ cluster, ...line })}\n`)
      else stdout.write(diffText(line, isOne ? '' : `${cluster}: `))
    },
  )
  return failed > 0 ? 2 : differs ? 1 : 0
}

function diffText({ ref, state, fields, message }: AnswerLineOf<'diff'>, prefix: string): string {
  const head = `${prefix}${refText(ref)}  ${state}${message === undefined ? '' : `: ${plainText(message)}`}\n`
  return head + fields.map((field) => `${fieldText(field)}\n`).join('')
}

export function fieldText({ path, desired, live, managers = [], writtenMs }: AnswerLineOf<'diff'>['fields'][number]): string {
  const at = writtenMs === undefined ? '' : `, ${new Date(writtenMs).toISOString()}`
  const by = managers.length === 0 ? '' : ` (${managers.join(', ')}${at})`
  return plainText(`  ${path}: ${valueText(desired)} desired, ${valueText(live)} live${by}`)
}

const valueText = (value: unknown): string => (value === undefined ? 'none' : JSON.stringify(value))

export function note({ io }: Context, cluster: string, isOne: boolean, line: { t: string; message?: unknown }): void {
  if (line.t === 'note') io.stderr.write(`${isOne ? '' : `${cluster}: `}${plainText(String(line.message))}\n`)
}
