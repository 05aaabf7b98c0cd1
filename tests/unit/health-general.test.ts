// What is said of kinds that nobody wrote a rule for, by what their status says.
import { describe, expect, test } from 'bun:test'
import { healthOf } from '../../shared/kube/health.ts'
import { AWAITED, isSilence, STATUS_GRACE_MS } from '../../shared/kube/health-object.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { conditions, type Part } from '../support/health-table.ts'
import { naming } from '../support/naming.ts'

const CREATED_MS = Date.parse('2026-01-01T00:00:00Z')
const METADATA = { name: 'x', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z' }
const thing = (parts: Part, kind = 'Thing'): K8sObject =>
  ({ apiVersion: 'nobody.example/v1', kind, metadata: METADATA, ...parts }) as K8sObject
const of = (parts: Part, kind?: string) => healthOf(thing(parts, kind), CREATED_MS)
const says = (...entries: string[]): Part => ({ status: conditions(...entries) })

type Case = readonly [name: string, parts: Part, word: string, reason?: string]
const table = (rule: string, cases: readonly Case[], kind?: string) =>
  test.each(cases.map((row) => [row[0], row] as const))(`${rule} %s`, (_, [, parts, word, reason]) => {
    const health = of(parts, kind)
    expect<string>(health.word).toBe(word)
    if (reason !== undefined) expect(health.reason).toBe(reason)
    if (word !== 'Healthy') expect(health.message).not.toBe('')
  })

describe('a stop that somebody asked for', () => {
  const failing = says('Ready:False:Failed')
  table('HE12', [
    ['spec.suspend', { spec: { suspend: true }, ...failing }, 'Suspended'],
    ['spec.paused', { spec: { paused: true }, ...failing }, 'Suspended'],
    ['spec.paused: false', { spec: { paused: false }, ...failing }, 'Degraded'],
    ['an annotation', { metadata: { ...METADATA, annotations: { 'nobody.example/paused': 'true' } }, ...failing }, 'Suspended'],
    ['an annotation that is off', { metadata: { ...METADATA, annotations: { 'nobody.example/paused': 'false' } }, ...failing }, 'Degraded'],
    ['a condition', says('Ready:False:Failed', 'Paused:True:PausedByUser'), 'Suspended'],
    ['a movement that was paused', says('Progressing:Unknown:RolloutPaused'), 'Suspended'],
    ['a phase', { status: { phase: 'Hibernated' } }, 'Suspended'],
  ])

  test('HE12 a stop comes before the rule of a known kind', () => {
    const kustomization = {
      apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
      kind: 'Kustomization',
      metadata: METADATA,
      spec: { suspend: true },
      ...says('Stalled:True:BuildFailed', 'Ready:False:BuildFailed'),
    } as K8sObject
    expect(healthOf(kustomization, CREATED_MS).word).toBe('Suspended')
  })
})

describe('conditions', () => {
  table('HE13', [
    ['Ready is True', says('Ready:True'), 'Healthy'],
    ['Ready is Unknown', says('Ready:Unknown:Checking'), 'Progressing', 'Checking'],
    ['Ready is False on the way', says('Ready:False:Creating'), 'Progressing', 'Creating'],
    ['Ready is False without a cause', says('Ready:False'), 'Progressing', 'NotReady'],
    ['Ready is False for a failure', says('Ready:False:ReconcileError'), 'Degraded', 'ReconcileError'],
    ['Ready is False and its message tells the failure', says('Ready:False::failed to create tenant'), 'Degraded', 'NotReady'],
    ['a reason that waits outweighs its message', says('Ready:False:Pending:the last try failed'), 'Progressing', 'Pending'],
    [
      'another condition tells why Ready is False',
      says('Ready:False', 'VolumeBound:False:ProvisioningFailed'),
      'Degraded',
      'ProvisioningFailed',
    ],
    ['a condition of unknown meaning tells why Ready is False', says('Ready:False', 'Running:False:Error:404'), 'Degraded', 'Error'],
    [
      'a severity Error',
      { status: { conditions: [{ type: 'Ready', status: 'False', severity: 'Error', reason: 'Odd' }] } },
      'Degraded',
      'Odd',
    ],
    [
      'a severity Info',
      { status: { conditions: [{ type: 'Ready', status: 'False', severity: 'Info', reason: 'Failed' }] } },
      'Progressing',
    ],
    ['Ready outweighs other good conditions', says('Ready:True', 'CronJobAvailable:False:OtherStrategy'), 'Healthy'],
    ['Synced is False beside Ready', says('Ready:True', 'Synced:False:ReconcileError'), 'Degraded', 'ReconcileError'],
    ['a bad condition is True', says('Ready:True', 'Degraded:True:DiskFull'), 'Degraded', 'DiskFull'],
    ['a bad condition is False', says('Ready:True', 'Degraded:False'), 'Healthy'],
    ['bad conditions alone are False', says('SpecError:False'), 'Healthy'],
    ['ready in some places only', says('PartiallyReady:True'), 'Degraded', 'PartiallyReady'],
    ['a condition of unknown meaning is False for a failure', says('Available:True', 'Example:False:QuotaExceeded'), 'Degraded'],
    ['such a condition without a failure', says('Available:True', 'Example:False:Idle'), 'Healthy'],
    ['a status in small letters', { status: { conditions: [{ type: 'Ready', status: 'true' }] } }, 'Healthy'],
    ['a refusal', says('Accepted:False:NotAllowedByListeners'), 'Degraded', 'NotAllowedByListeners'],
    ['a refusal that names no cause', says('Accepted:False'), 'Progressing'],
    ['a delay', says('Available:False:MinimumReplicasUnavailable'), 'Progressing'],
    ['one good condition of several is False', says('PodsReady:True', 'ServiceAvailable:False'), 'Progressing', 'NotServiceAvailable'],
    ['all good conditions are True', says('PodsReady:True', 'ServiceAvailable:True'), 'Healthy'],
    ['a movement', says('Available:True', 'Progressing:True:ReplicaSetUpdated'), 'Progressing', 'ReplicaSetUpdated'],
    ['a movement that has arrived', says('Available:True', 'Progressing:True:NewReplicaSetAvailable'), 'Healthy'],
    [
      'a movement that failed',
      says('Available:True', 'Progressing:False:ProgressDeadlineExceeded'),
      'Degraded',
      'ProgressDeadlineExceeded',
    ],
    ['only a step', says('Launched:True'), 'Progressing', 'NotUnderstood'],
    ['only a condition of unknown meaning', says('Example:True'), 'Progressing', 'NotUnderstood'],
    ['an empty list of conditions', { status: { conditions: [], version: '1' } }, 'Progressing', 'NotUnderstood'],
    ['a condition whose status is a boolean', { status: { conditions: [{ type: 'Ready', status: true }] } }, 'Healthy'],
    [
      'a condition of an older generation',
      { status: { conditions: [{ type: 'Ready', status: 'True', observedGeneration: 1 }] } },
      'Progressing',
      'GenerationNotObserved',
    ],
    [
      'a side condition of an older generation',
      {
        status: {
          conditions: [
            { type: 'Ready', status: 'True', observedGeneration: 2 },
            { type: 'Released', status: 'True', observedGeneration: 1 },
          ],
        },
      },
      'Healthy',
    ],
    [
      'a listener',
      { status: { ...conditions('Accepted:True'), listeners: [conditions('Accepted:False:Invalid')] } },
      'Degraded',
      'Invalid',
    ],
    ['a parent', { status: { parents: [conditions('Accepted:True'), conditions('Accepted:Unknown')] } }, 'Progressing'],
    ['an ancestor', { status: { ancestors: [conditions('Accepted:False:Conflicted')] } }, 'Degraded', 'Conflicted'],
    ['one condition that is in no list', { status: { condition: { type: 'Ready', status: 'True' } } }, 'Healthy'],
    ['conditions one level down', { status: { conditionedStatus: conditions('Ready:False:Creating') } }, 'Progressing', 'Creating'],
    ['Stalled', says('Stalled:True:Broken', 'Ready:True'), 'Degraded', 'Broken'],
    ['a retry after a failure', says('Reconciling:True:ProgressingWithRetry', 'Ready:False:BuildFailed'), 'Degraded', 'BuildFailed'],
  ])
})

describe('words', () => {
  table('HE14', [
    ['a good phase', { status: { phase: 'Running' } }, 'Healthy'],
    ['a failed state with its error', { status: { state: 'failed', error: 'no bucket' } }, 'Degraded', 'Failed'],
    ['a movement', { status: { status: 'InProgress' } }, 'Progressing', 'InProgress'],
    ['colours', { status: { health: 'yellow' } }, 'Progressing', 'Yellow'],
    ['a field that ends like these', { status: { certificateStatus: 'Provisioning' } }, 'Progressing', 'Provisioning'],
    ['the worst of several', { status: { phase: 'Bound', lastOperationStatus: 'Failed' } }, 'Degraded', 'Failed'],
    ['one level down', { status: { connection: { state: 'Unreachable' } } }, 'Degraded', 'Unreachable'],
    ['of a list', { status: { domains: [{ status: 'Active' }, { status: 'FailedNotVisible' }] } }, 'Degraded'],
    ['of a map', { status: { statuses: { a: { state: 'Accepted' }, b: { state: 'Rejected' } } } }, 'Degraded', 'Rejected'],
    ['a failing phase outweighs Ready', { status: { phase: 'Failed', ...conditions('Ready:True') } }, 'Degraded', 'Failed'],
    ['a phase on the way outweighs Ready', { status: { phase: 'Provisioning', ...conditions('Ready:True') } }, 'Progressing'],
    ['Ready outweighs a side word on the way', { status: { backupState: 'Pending', ...conditions('Ready:True') } }, 'Healthy'],
    [
      'a phase on the way outweighs other conditions',
      { status: { phase: 'Provisioning', ...conditions('PodsAvailable:True') } },
      'Progressing',
    ],
    ['a word that nobody knows', { status: { phase: 'Purple' } }, 'Progressing', 'NotUnderstood'],
    [
      'a main word that nobody knows beside a side word that is well',
      { status: { stage: 'Purple', stageStatus: 'success' } },
      'Progressing',
      'NotUnderstood',
    ],
    ['such a word beside a side word that is not', { status: { stage: 'Purple', stageStatus: 'failed' } }, 'Degraded', 'Failed'],
    ['a verdict', { status: { verdict: 'Fail' } }, 'Degraded', 'Fail'],
    ['fields that hold no word', { status: { url: 'http://failed.example', lastError: '' } }, 'Progressing', 'NotUnderstood'],
  ])
  table(
    'HE14 a kind that runs to an end:',
    [
      ['Running', { status: { state: 'Running' } }, 'Progressing', 'Running'],
      ['a word that ends like it', { status: { state: 'STATE_RUNNING' } }, 'Progressing'],
      ['begun, not ended', { status: { stage: 'initialized' } }, 'Progressing', 'Initialized'],
      ['ended', { status: { stage: 'finished' } }, 'Healthy'],
    ],
    'ExampleBackup',
  )
})

describe('errors and flags', () => {
  table('HE15', [
    ['an error', { status: { errorMessage: 'no quota', version: '1' } }, 'Degraded', 'Error'],
    ['a list of errors', { status: { errors: [{ message: 'no quota' }] } }, 'Degraded', 'Error'],
    ['an error that is empty', { status: { errMsg: '', phase: 'Running' } }, 'Healthy'],
    ['the last error of what is well now', { status: { phase: 'Running', lastError: 'timeout' } }, 'Healthy'],
    ['the last error of what is not', { status: { version: '1', lastError: 'timeout' } }, 'Degraded'],
    ['an error beside a Ready that is True', { status: { lastError: 'timeout', ...conditions('Ready:True') } }, 'Healthy'],
    ['ready: true', { status: { ready: true } }, 'Healthy'],
    ['ready: false', { status: { ready: false, url: 'x' } }, 'Progressing', 'NotReady'],
    ['a flag that tells a failure', { status: { NoMatchingInstances: true, hash: 'a' } }, 'Degraded', 'NoMatchingInstances'],
    ['such a flag that is off', { status: { failed: false, ready: true } }, 'Healthy'],
    ['a list of problems', { status: { active: false, problems: ['no such output'] } }, 'Degraded', 'Error'],
    ['an error of one part', { status: { lastSyncError: 'timeout', version: '1' } }, 'Degraded', 'Error'],
    ['what failed, by name', { status: { failedNamespaces: [{ namespace: 'a', reason: 'it exists' }], hash: 'x' } }, 'Degraded', 'Error'],
    ['when it failed', { status: { failedAt: 'yesterday', failed: 0, phase: 'Running' } }, 'Healthy'],
    ['an error one level down', { status: { settings: { reconciled: false, error: 'no secret' } } }, 'Degraded', 'Error'],
    ['an error of a former run', { status: { phase: 'Running', lastRun: { error: 'timeout' } } }, 'Healthy'],
    ['a flag that ends like these', { status: { controlPlaneReady: false, url: 'x' } }, 'Progressing', 'NotControlPlaneReady'],
    ['an outcome of what has ended', { status: { state: 'Completed', passed: false } }, 'Degraded', 'NotPassed'],
    ['an outcome of what has not', { status: { state: 'Running', passed: false } }, 'Progressing', 'NotPassed'],
  ])
})

describe('counters', () => {
  table('HE16', [
    ['fewer ready than asked for', { spec: { replicas: 3 }, status: { replicas: 3, readyReplicas: 2 } }, 'Progressing', 'LessReady'],
    ['as many as asked for', { spec: { replicas: 3 }, status: { replicas: 3, readyReplicas: 3 } }, 'Healthy'],
    ['of none', { spec: { replicas: 0 }, status: { replicas: 0, readyReplicas: 0, version: '1' } }, 'Healthy'],
    ['fewer than expected', { status: { expectedNodes: 2, availableNodes: 1 } }, 'Progressing', 'LessReady'],
    ['expected, and none reported', { status: { expectedNodes: 1, version: '1' } }, 'Progressing', 'LessReady'],
    ['fewer updated', { spec: { replicas: 2 }, status: { readyReplicas: 2, updatedReplicas: 1 } }, 'Progressing', 'LessReady'],
    ['a fraction', { status: { tasksReady: '1/2' } }, 'Progressing', 'LessReady'],
    ['a whole fraction', { status: { tasksReady: '2/2' } }, 'Healthy'],
    ['one level down', { status: { racks: { a: { members: 3, readyMembers: 3 }, b: { members: 3, readyMembers: 1 } } } }, 'Progressing'],
    ['beside a Ready that is True', { spec: { replicas: 3 }, status: { readyReplicas: 2, ...conditions('Ready:True') } }, 'Healthy'],
    ['fewer exist than asked for', { spec: { replicas: 3 }, status: { replicas: 1, readyReplicas: 1 } }, 'Progressing', 'LessReady'],
    ['fewer exist, and none is counted as ready', { spec: { replicas: 3 }, status: { replicas: 1 } }, 'Progressing', 'LessReplicas'],
    ['updated, and those that are ready are left out', { status: { replicas: 3, updatedReplicas: 3 } }, 'Progressing', 'LessReady'],
    ['a plain counter left out, too', { spec: { replicas: 3 }, status: { updatedReplicas: 3 } }, 'Progressing', 'LessReady'],
    ['of one level down', { status: { racks: { a: { members: 3, updatedMembers: 3 } } } }, 'Progressing', 'LessReady'],
    ['replicas alone', { spec: { replicas: 3 }, status: { replicas: 3, version: '1' } }, 'Progressing', 'LessReady'],
    ['all counters left out', { spec: { replicas: 3 }, status: { observedGeneration: 9 } }, 'Progressing', 'LessReady'],
    ['none asked for', { spec: { replicas: 0 }, status: { observedGeneration: 9 } }, 'Healthy'],
    [
      'replicas of a scale subresource',
      { spec: { replicas: 3 }, status: { replicas: 3, selector: 'a=b' } },
      'Progressing',
      'NotUnderstood',
    ],
    ['replicas beside a word', { spec: { replicas: 3 }, status: { replicas: 3, phase: 'Running' } }, 'Healthy'],
    ['none unavailable', { status: { replicas: 3, updatedReplicas: 3, unavailableReplicas: 0 } }, 'Healthy'],
    ['the counter of a scaler', { spec: { replicas: 3 }, status: { currentReplicas: 3, state: 'Active' } }, 'Healthy'],
    ['some are not available', { status: { unavailableReplicas: 1, replicas: 2 } }, 'Progressing', 'LessReady'],
    ['fewer than in all', { status: { totalTargets: 4, healthyTargets: 3 } }, 'Progressing', 'LessReady'],
    ['a number that counts nothing', { status: { availableSince: 1, readyz: 2 } }, 'Progressing', 'NotUnderstood'],
    ['steps that are done beside bad conditions that are False', says('Launched:True', 'Failed:False'), 'Progressing', 'NotUnderstood'],
  ])
})

describe('a controller that has told nothing', () => {
  const at = (parts: Part, ageMs: number, hasStatus?: boolean) =>
    healthOf(thing(parts), CREATED_MS + ageMs, hasStatus === undefined ? {} : { hasStatus })

  test.each([
    ['no status', {}],
    ['an empty status', { status: {} }],
    ['a null status', { status: null }],
    ['zero values', { status: { revision: 0, uid: '', list: [] } }],
    ['an empty list of conditions', { status: { conditions: [], version: '1' } }],
    ['a word that nobody knows', { status: { phase: 'Purple' } }],
  ])('HE17 %s: on its way for the grace time, then Healthy with a note', (_, parts) => {
    const waiting = at(parts, STATUS_GRACE_MS - 1, true)
    expect(waiting).toMatchObject({ word: 'Progressing', settles: { atMs: CREATED_MS + STATUS_GRACE_MS } })
    const after = at(parts, STATUS_GRACE_MS, true)
    expect(after).toEqual(waiting.settles?.health as typeof after)
    expect(after).toMatchObject({ word: 'Healthy', reason: waiting.reason })
    expect(after.message).toContain('120 s')
  })

  test('HE17 no grace time ends it where the controller reports for other objects of the kind', () => {
    const siblings = { hasStatus: true, siblingsReport: true }
    const later = healthOf(thing({}), CREATED_MS + 10 * STATUS_GRACE_MS, siblings)
    expect([later, isSilence(later)]).toEqual([AWAITED, false])
    const unread = healthOf(thing({ status: { phase: 'Purple' } }), CREATED_MS + STATUS_GRACE_MS, siblings)
    expect(unread).toMatchObject({ word: 'Healthy', reason: 'NotUnderstood' })
  })

  test('HE17 a kind without a status subresource is healthy at once', () => {
    expect(at({}, 0, false)).toEqual({ word: 'Healthy', reason: 'Healthy', message: '' })
  })

  test('HE17 without discovery the grace time has no end', () => {
    expect(at({}, 10 * STATUS_GRACE_MS)).toMatchObject({ word: 'Progressing', reason: 'NotReported' })
    expect(at({}, 10 * STATUS_GRACE_MS).settles).toBeUndefined()
  })

  test('HE17 a clock that is behind the API server’s ends it after the grace time, too', () => {
    expect(at({}, -86_400_000, true).settles?.atMs).toBe(CREATED_MS - 86_400_000 + STATUS_GRACE_MS)
  })

  test('HE17 a generation that was observed is a report', () => {
    expect(of({ status: { observedGeneration: 2 } }).word).toBe('Healthy')
  })

  test('HE17 a known kind that reports nothing has no grace time', () => {
    const issuer = { apiVersion: 'cert-manager.io/v1', kind: 'Issuer', metadata: METADATA } as K8sObject
    expect(healthOf(issuer, CREATED_MS + STATUS_GRACE_MS, { hasStatus: true })).toMatchObject({
      word: 'Progressing',
      reason: 'NotReported',
    })
    const pipeline = { apiVersion: 'numaflow.numaproj.io/v1alpha1', kind: 'Pipeline', metadata: METADATA } as K8sObject
    const later = healthOf(pipeline, CREATED_MS + STATUS_GRACE_MS, { hasStatus: true })
    expect(later).toMatchObject({ word: 'Progressing', reason: 'NotReported' })
    expect(later.settles).toBeUndefined()
  })
})

test('HE17 a kind that fires at given times has no more to say than when', () => {
  const said = (status: Part, kind: string) => of({ status }, kind).word
  expect(said({ lastScheduleTime: '2026-01-01T00:00:00Z' }, 'ExampleSchedule')).toBe('Healthy')
  expect(said({ lastScheduleTime: '2026-01-01T00:00:00Z' }, 'Example')).toBe('Progressing')
  expect(said({ lastScheduleTime: '2026-01-01T00:00:00Z', active: [{ name: 'run' }] }, 'ExampleSchedule')).toBe('Progressing')
  expect(said({ lastScheduleTime: '2026-01-01T00:00:00Z', phase: 'Failed' }, 'ExampleSchedule')).toBe('Degraded')
})

describe('kinds that report nothing while all is well', () => {
  test.each([
    ['networking.istio.io/v1', 'VirtualService'],
    ['monitoring.coreos.com/v1', 'ServiceMonitor'],
    ['metallb.io/v1beta1', 'L2Advertisement'],
    ['argoproj.io/v1alpha1', 'AnalysisTemplate'],
  ])('HE19 %s %s', (apiVersion, kind) => {
    const said = (status: Part | undefined) =>
      healthOf({ ...thing({ status }), apiVersion, kind } as K8sObject, CREATED_MS, { hasStatus: true }).word
    expect([undefined, {}, { assigned: 2 }, conditions('Reconciled:True')].map(said)).toEqual(['Healthy', 'Healthy', 'Healthy', 'Healthy'])
    expect(said(conditions('Accepted:False:InvalidSpec'))).toBe('Degraded')
  })
})

describe('messages and limits', () => {
  test('HE18 a message names the field and holds the controller’s text, on one line and bounded', () => {
    expect(of(says('Ready:False:Failed:no\nroom')).message).toEqual(naming('condition Ready', 'False: no room'))
    expect(of({ status: { phase: 'Failed', message: 'no quota' } }).message).toEqual(naming('status.phase', 'Failed: no quota'))
    expect(
      of({ status: { conditions: [{ type: 'Ready', status: 'False', message: 'failed '.repeat(10_000) }] } }).message.length,
    ).toBeLessThan(500)
  })

  test('HE18 a reason that is a sentence is replaced by the name of the condition', () => {
    expect(of(says('Ready:False:Resource is being created')).reason).toBe('NotReady')
    expect(of(says('Error:True:Unable to fetch data')).reason).toBe('Error')
  })

  test('HE18 the same object has the same health, whatever the order of its fields', () => {
    const parts = { status: { zState: 'Failed', aState: 'Broken', phase: 'Failed', message: 'm' } }
    expect(of(parts)).toEqual(of(parts))
  })

  test('HE18 a hostile status ends soon', () => {
    const deep = (depth: number): unknown => (depth === 0 ? 'x' : { state: 'Failed', nested: deep(depth - 1), list: [deep(depth - 1)] })
    const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`field${n}Status`, 'x'.repeat(50)]))
    const many = Array.from({ length: 20_000 }, (_, n) => ({
      type: `T${n}Ready`,
      status: 'False',
      reason: 'a'.repeat(2_000),
      message: ' '.repeat(2_000),
    }))
    const began = performance.now()
    for (const status of [deep(12), wide, { conditions: many }, { parents: many.map((entry) => ({ conditions: [entry] })) }]) {
      expect(['Healthy', 'Progressing', 'Degraded']).toContain(of({ status }).word)
    }
    // A loose bound: it shows that nothing is quadratic.
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test('HE18 a status of a wrong shape ends nothing', () => {
    const shapes = [null, 3, 'text', [], { conditions: 'x' }, { conditions: [null, 3, {}] }, { conditions: [{ type: 3, status: {} }] }]
    for (const status of shapes) expect(['Healthy', 'Progressing']).toContain(of({ status }).word)
  })
})
