// No planted secret in anything that leaves the agent: log lines, statuses, drifts, events, the local status page, the
// Kubernetes Events that it writes, and answers to every question but logs. One agent on the fake cluster, and
// everything that can go wrong with its objects.
import { afterEach, expect, test } from 'bun:test'
import { failedLine } from '../../agent/ask/answer-lines.ts'
import { AskRefused } from '../../agent/ask/ask-desk.ts'
import { createSiteAnswerer } from '../../agent/ask/site-answerer.ts'
import { statusText } from '../../agent/cli/print-status.ts'
import { agentReport } from '../../agent/observe/report.ts'
import type { SitePolicy } from '../../agent/reconcile/snapshot/permits.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import type { AskFrame, Question } from '../../shared/protocol/ask.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { LogFields, Logger } from '../../shared/runtime/logger.ts'
import type { FakeCluster } from '../support/fake-cluster.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { createReconcileKit, type ReconcileKit, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

/** As they are, and as a Secret holds them. */
const PLANTED = /canary|Y2FuYXJ5|987654321/i

function captured(): { lines: string[]; log: Logger } {
  const lines: string[] = []
  const at = (fields: LogFields): Logger => {
    const take = (message: string, more?: LogFields) => void lines.push(JSON.stringify({ ...fields, message, ...more }))
    return { debug: take, info: take, warn: take, error: take, with: (more) => at({ ...fields, ...more }) }
  }
  return { lines, log: at({}) }
}

const object = (apiVersion: string, kind: string, name: string, rest: Record<string, unknown>): K8sObject =>
  ({ apiVersion, kind, metadata: { name, namespace: 'default', annotations: { note: `canary-note-${name}` } }, ...rest }) as K8sObject
const template = (value: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [
      { name: 'app', image: 'x', args: ['--password', `canary-argument-${value}`], env: [{ name: 'TOKEN', value: `canary ${value}` }] },
    ],
  },
})
const deployment = (value: string) =>
  object('apps/v1', 'Deployment', 'web', { spec: { replicas: 1, selector: { matchLabels: { app: 'web' } }, template: template(value) } })
const job = (value: string) => object('batch/v1', 'Job', 'work', { spec: { template: template(value) } })
const secret = (name: string, data: Record<string, unknown>) => object('v1', 'Secret', name, { type: 'Opaque', ...data })
const ref = (group: string, kind: string, name: string): ObjectRef => ({ group, kind, namespace: 'default', name })
const OTHER = { project: 'web', service: 'other' }
const pod = ref('', 'Pod', 'web-1-a')

/** Each kind of question about each object. */
function everyQuestion(podRef: ObjectRef): Question[] {
  const refs = [ref('apps', 'Deployment', 'web'), podRef, ...['drifting', 'kept', 'frozen'].map((name) => ref('', 'Secret', name))]
  const about = refs.flatMap((one) => (['object', 'tree', 'events', 'restart'] as const).map((kind): Question => ({ kind, ref: one })))
  const services = [SHOP, OTHER].flatMap((service) => (['diff', 'dryRun'] as const).map((kind): Question => ({ kind, service })))
  return [...about, ...services, { kind: 'nodes' }]
}

/** As they leave, also refusals. */
async function answersTo(
  questions: readonly Question[],
  cluster: FakeCluster,
  kit: ReconcileKit,
  policy: SitePolicy | null = null,
): Promise<string[]> {
  const lines: string[] = []
  const answerer = createSiteAnswerer({
    cluster,
    state: kit.state,
    replica: () => kit.replica,
    discovery: () => null,
    policy: () => policy,
    record: () => {},
    restarts: true,
    clock: systemClock,
  })
  const write = async (line: object) => void lines.push(JSON.stringify(line))
  for (const question of questions) {
    const frame = { question, within: null } as unknown as AskFrame
    await answerer.answer(frame, { write }, new AbortController().signal).catch((error: unknown) => {
      if (!(error instanceof AskRefused)) throw error
      lines.push(JSON.stringify(failedLine(error.code, error.message, error.remedy)))
    })
  }
  return lines
}

const derived = (colour: string) => object('v1', 'ConfigMap', 'derived', { data: { url: `https://x:canary-${colour}@db` } })
const sealedWeb = (value: string): K8sObject => {
  const web = deployment(value) as K8sObject & { spec: { template: { spec: { containers: [{ env: object }] } } } }
  web.spec.template.spec.containers[0].env = [{ name: 'COLOUR', value: `canary ${value}` }]
  return web
}
const CONTENT = /canary-(?:red|blue|green)|canary (?:red|blue|green)/

test('AK10 an object that came sealed, and what it owns, is answered without contents until it is applied in clear', async () => {
  const { cluster, kit, run, settle, clock } = setup()
  const questions: Question[] = [ref('', 'ConfigMap', 'derived'), ref('apps', 'Deployment', 'web'), pod].flatMap((one) => [
    { kind: 'object', ref: one },
    { kind: 'tree', ref: one },
    { kind: 'events', ref: one },
  ])
  questions.push({ kind: 'diff', service: SHOP }, { kind: 'dryRun', service: SHOP })
  kit.desire([derived('red'), sealedWeb('red')], { sealed: true })
  await run()
  const uid = cluster.object(ref('apps', 'Deployment', 'web'))?.metadata.uid ?? ''
  cluster.editAs('kcm', ref('apps', 'ReplicaSet', 'web-1'), (live) => {
    live.metadata.ownerReferences = [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid }]
    Object.assign(live, { spec: sealedWeb('red')['spec'] })
  })
  cluster.editAs('kcm', pod, (live) => {
    live.metadata.ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r' }]
    Object.assign(live, { spec: sealedWeb('red')['spec'] })
  })
  cluster.editAs('somebody', ref('', 'ConfigMap', 'derived'), (live) => Object.assign(live, { data: { url: 'https://x:canary-blue@db' } }))
  expect((await answersTo(questions, cluster, kit)).join('\n')).not.toMatch(CONTENT)
  await settle()

  // A newer revision in clear is here, and an older one is in force.
  cluster.admit(() => 'not now')
  kit.desire([derived('green'), sealedWeb('green')])
  await settle()
  expect((await answersTo(questions, cluster, kit)).join('\n')).not.toMatch(/canary[- ]red/)
  cluster.admit(() => null)
  await clock.advance(300_000) // refused objects are tried again
  kit.desire([derived('green'), sealedWeb('green')], { commit: 'once more' })
  await settle()
  expect((await answersTo(questions, cluster, kit)).join('\n')).toMatch(/canary green/)
})

test('AK10 an agent that lost its disk shows no contents of objects that it knows by their marks only', async () => {
  const { cluster, kit, run } = setup()
  kit.desire([derived('red'), sealedWeb('red')], { sealed: true })
  await run()
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    name: 'web',
    uid: cluster.object(ref('apps', 'Deployment', 'web'))?.metadata.uid,
  }
  cluster.editAs('kcm', pod, (live) => {
    live.metadata.ownerReferences = [owner as NonNullable<K8sObject['metadata']['ownerReferences']>[number]]
    Object.assign(live, { spec: sealedWeb('red')['spec'] })
  })
  const questions = [ref('', 'ConfigMap', 'derived'), ref('apps', 'Deployment', 'web'), pod].map(
    (one): Question => ({ kind: 'object', ref: one }),
  )
  const fresh = createReconcileKit({ cluster, clock: systemClock })
  expect((await answersTo(questions, cluster, fresh)).join('\n')).not.toMatch(CONTENT)
  fresh.desire([derived('red'), sealedWeb('red')])
  expect((await answersTo(questions, cluster, fresh)).join('\n')).toMatch(CONTENT)
})

test('AK5 a kind that the local policy hides is answered without contents and without texts', async () => {
  const { cluster, kit, run } = setup()
  kit.desire([derived('red')])
  await run()
  const map = ref('', 'ConfigMap', 'derived')
  cluster.editAs('controller', ref('', 'Event', 'derived.1'), (live) => {
    Object.assign(live, {
      involvedObject: { kind: 'ConfigMap', namespace: 'default', name: 'derived' },
      reason: 'Seen',
      message: 'some words',
    })
  })
  cluster.admit(() => 'some words')
  const policy = { ask: { hide: ['v1/ConfigMap'] } } as unknown as SitePolicy
  const questions: Question[] = [
    { kind: 'object', ref: map },
    { kind: 'tree', ref: map },
    { kind: 'events', ref: map },
    { kind: 'diff', service: SHOP },
  ]
  const text = (await answersTo(questions, cluster, kit, policy)).join('\n')
  expect(text).not.toMatch(/canary|some words/)
  expect(text.match(/<redacted>/g)?.length).toBeGreaterThan(3)
})

test('KA31 whatever goes wrong with objects, no value of theirs leaves the agent', async () => {
  const { lines, log } = captured()
  const logTail = async () => ({ kind: 'log' as const, text: 'connecting with canary first\ntoken=other\npanic: canary-argument-first' })
  const { cluster, kit, run, settle, clock } = setup({ log, told: { kubeEvents: 'all', podLogs: { logTail, lines: 5 } } })

  // A Pod of the Deployment says its command, and the Deployment its environment.
  cluster.editAs('replicaset-controller', pod, (live) => {
    Object.assign(live.metadata, {
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r' }],
    })
    Object.assign(live, { spec: template('first').spec })
  })
  const data = { data: { password: Buffer.from('canary').toString('base64') } }
  const kept = (): K8sObject => {
    const made = secret('kept', data)
    return { ...made, metadata: { ...made.metadata, annotations: { 'skerry.dev/prune': 'disabled' } } }
  }
  const frozen = { immutable: true, ...data }
  kit.desire([deployment('first'), job('first'), secret('frozen', frozen), secret('drifting', data)])
  kit.desire([secret('staying', data), secret('leaving', data), kept()], {}, OTHER)
  await run()
  cluster.setStatus(pod, {
    containerStatuses: [
      {
        name: 'app',
        state: { waiting: { reason: 'RunContainerError', message: 'exec: "canary-argument-first": not found, TOKEN=canary first' } },
        lastState: { terminated: { exitCode: 1, reason: 'Error' } },
      },
    ],
  })
  const condition = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }
  const message =
    'Pod "web-1-b" is invalid: spec: Invalid value: core.PodSpec{Env:[]core.EnvVar{{Name:"TOKEN", Value:"canary first"}}}: no canary first'
  cluster.setStatus(ref('apps', 'Deployment', 'web'), {
    observedGeneration: 9,
    replicas: 1,
    updatedReplicas: 1,
    conditions: [{ ...condition, message }],
  })
  await settle()
  expect(kit.object('apps/Deployment/default/web')?.message).toContain('RunContainerError')
  expect(kit.object('apps/Deployment/default/web')?.message).toContain('last log lines')

  // Somebody else changes a Secret, and it is put back.
  cluster.editAs('somebody', ref('', 'Secret', 'drifting'), (live) => Object.assign(live, { data: { password: 'Y2FuYXJ5LXRvbw==' } }))
  await settle()

  // Immutable fields, wrong types, a policy that quotes what it judges, and a row that cannot be read.
  cluster.admitDeletes(() => 'canary is still in use')
  kit.desire([secret('staying', data)], {}, OTHER)
  cluster.admit((live) =>
    live.metadata.name === 'kept'
      ? 'canary stays'
      : live.metadata.name === 'denied'
        ? `refused ${JSON.stringify(live)}: the value canary is "canary", in base64 ${btoa('canary')}`
        : null,
  )
  kit.desire([
    deployment('first'),
    job('second'),
    secret('frozen', { ...frozen, data: { password: Buffer.from('canary-new').toString('base64') } }),
    secret('drifting', data),
    secret('numbered', { data: { pin: 987654321 } }),
    secret('denied', { stringData: { password: 'canary' } }),
    {
      ...secret('read', { stringData: { password: 'canary' } }),
      metadata: { name: 'read', namespace: 'default', annotations: { 'skerry.dev/sync-options': 'Wrong' } },
    },
    object('example.com/v1', 'Boat', 'unserved', { spec: { token: 'canary' } }),
  ])
  await settle()
  await clock.advance(60_000)
  await kit.stop()

  const reasons = [
    'batch/Job/default/work',
    '/Secret/default/frozen',
    '/Secret/default/numbered',
    '/Secret/default/denied',
    'example.com/Boat/default/unserved',
  ].map((key) => kit.object(key)?.reason)
  for (const name of ['leaving', 'kept']) reasons.push(kit.object(`/Secret/default/${name}`, OTHER)?.reason)
  expect(reasons).toEqual(['Immutable', 'Immutable', 'Invalid', 'Forbidden', 'UnknownKind', 'Forbidden', 'Forbidden'])
  expect(kit.object('/Secret/default/numbered')?.message).toContain('.data.pin: expected string, got a number')
  expect(kit.drift('/Secret/default/drifting')?.action).toBe('healed')
  const written = cluster.objects().filter(({ kind }) => kind === 'Event')
  expect(written.length).toBeGreaterThan(5)
  expect(kit.events().length).toBeGreaterThan(5)
  expect(lines.length).toBeGreaterThan(0)

  // AK9, AK11: what the API server and its controllers wrote about these objects is asked for.
  cluster.editAs('replicaset-controller', ref('', 'Event', 'web.1'), (live) => {
    Object.assign(live, {
      involvedObject: { kind: 'Deployment', namespace: 'default', name: 'web' },
      type: 'Warning',
      reason: 'FailedCreate',
      message,
    })
  })
  cluster.editAs('kubelet', { group: '', kind: 'Node', namespace: '', name: 'n1' }, (live) => {
    Object.assign(live, { status: { conditions: [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady', message }] } })
  })
  const answers = await answersTo(everyQuestion(pod), cluster, kit)
  const kinds = answers.flatMap((line) => (line.includes('"t":"failed"') ? [] : (/"t":"(\w+)"/.exec(line)?.[1] ?? [])))
  expect([...new Set(kinds)].sort()).toEqual(['child', 'diff', 'dryRun', 'event', 'node', 'object', 'restarted'])

  const report = agentReport({
    running: true,
    version: '1',
    state: kit.state,
    replica: kit.replica,
    link: null,
    enforcement: { state: 'enforcing', message: '' },
    disk: null,
    resync: null,
    todayBytes: 0,
  })
  const left = {
    answers: answers.map((line) => line.replaceAll(/canary-note-[a-z]+/g, '')),
    log: lines,
    outbox: kit.state.outbox(10_000),
    events: written,
    report,
    page: statusText(report, clock.nowMs()),
  }
  for (const [what, value] of Object.entries(left)) {
    const leak = JSON.stringify(value).match(new RegExp(`.{0,200}(?:${PLANTED.source}).{0,80}`, 'i'))?.[0] ?? null
    expect({ what, leak }).toEqual({ what, leak: null })
  }
})
