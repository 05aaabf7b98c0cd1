// The vocabulary of health, read word by word.
import { expect, test } from 'bun:test'
import {
  camelCase,
  hasArrived,
  meaningOf,
  namesASchedule,
  type Sense,
  senseOf,
  senseOfState,
  wordsOf,
} from '../../shared/kube/health-words.ts'

test.each([
  ['CrashLoopBackOff', ['crashloop', 'backoff']],
  ['ACMEAccountRegistered', ['acme', 'account', 'registered']],
  ['HEALTH_ERR', ['health', 'err']],
  ['in progress', ['inprogress']],
  ['UpToDate', ['uptodate']],
  ["it doesn't exist", ['it', "doesn't", 'exist']],
  ['v1beta2', ['v', 'beta']],
  ['', []],
])('HE13 the words of %s', (phrase, words) => expect(wordsOf(phrase)).toEqual(words))

const SENSES: Record<Exclude<Sense, null>, string[]> = {
  failing: [
    'Failed',
    'ReconcileError',
    'CrashLoopBackOff',
    'ProgressDeadlineExceeded',
    'DependencyNotFound',
    'NoMatchingInstances',
    'VCenterUnreachable',
    'InvalidSpec',
    'namespaces "x" not found',
    'Unable to connect',
    'ROLLED_BACK',
    'NonCompliant',
    'MaxLimitReached',
    'OutOfSync',
    'Warning',
    'Abnormal',
    'NO_QUORUM',
    'STATE_TERMINATED',
  ],
  stopped: ['Paused', 'RolloutPaused', 'suspended', 'Disabled', 'Hibernated'],
  moving: [
    'Creating',
    'InProgress',
    'WaitingForFailedNodes',
    'Pending',
    'PendingDeletion',
    'Setting up primary',
    'Unknown',
    'New',
    'yellow',
    'scheduled',
    'NotReadyInProgress',
  ],
  unmet: [
    'NotReady',
    'StatefulSetNotReady',
    'Unavailable',
    'RestoreNotComplete',
    'MinimumReplicasUnavailable',
    'NotAccepted',
    'Unsynced',
    'ONLINE_UNCERTAIN',
  ],
  done: ['Ready', 'RUNNING', 'Cluster in healthy state', 'HEALTH_OK', 'AtLatestKnown: Succeeded', 'NoErrors', 'UpToDate', 'green', 'Bound'],
}
const CASES = Object.entries(SENSES).flatMap(([sense, phrases]) => phrases.map((phrase) => [phrase, sense] as const))
test.each(CASES)('HE13 %s is %s', (phrase, sense) => expect<string | null>(senseOf(phrase)).toBe(sense))

test.each(['', 'Blue', 'staging', 'PreDeployTasks', '42'])('HE13 no word of "%s" is known', (phrase) => expect(senseOf(phrase)).toBeNull())

const ROLES: Record<string, string[]> = {
  good: [
    'Ready',
    'ControlPlaneReady',
    'RemoteSynced',
    'ResolvedRefs',
    'NoWarnings',
    'platform.example/app-ready',
    'ReconcileSuccess',
    'UpToDate',
    'ChildResourcesHealthy',
    'WellFormed',
    'Enforced',
  ],
  bad: [
    'Degraded',
    'HasErrors',
    'NotReady',
    'FailedScale',
    'InvalidSpec',
    'NoMatchingInstance',
    'FetchFailed',
    'Conflicted',
    'OutOfSync',
    'PartiallyReady',
    'MemoryPressure',
    'Fallback',
  ],
  moving: ['Progressing', 'RollingUpdate', 'In-progress', 'Terminating', 'Waiting'],
  stopped: ['Paused', 'ReconciliationPaused', 'Suspended'],
  null: ['Active', 'Upgradeable', 'Warning', 'Running', 'NonStructuralSchema', 'Example', ''],
}
const TYPES = Object.entries(ROLES).flatMap(([role, types]) => types.map((type) => [type, role] as const))
test.each(TYPES)('HE13 condition %s is %s', (type, role) => expect(String(meaningOf(type).role)).toBe(role))

test('HE13 a False of a verdict is a refusal, a False of a state is not, and a step tells no arrival', () => {
  expect(['Accepted', 'RemoteSynced', 'ResolvedRefs', 'Valid'].map((type) => meaningOf(type).refuses)).toEqual([true, true, true, true])
  expect(['Ready', 'Available', 'Deployed'].map((type) => meaningOf(type).refuses)).toEqual([false, false, false])
  expect(['Launched', 'Registered', 'Ready', 'Synced'].map((type) => meaningOf(type).isStep)).toEqual([true, true, false, false])
})

test('HE13 a movement has arrived when its reason ends so', () => {
  expect(hasArrived('NewReplicaSetAvailable')).toBe(true)
  expect(hasArrived('ReplicaSetUpdated')).toBe(false)
  expect(hasArrived('')).toBe(false)
})

test('HE14 kinds that run to an end are known by the last word of their name', () => {
  const runs = ['Backup', 'AnsibleJob', 'ExecHooksRun', 'PipelineRun', 'KeptnTask']
  const begun = ['Running', 'STATE_RUNNING', 'initialized', 'created']
  expect(runs.flatMap((kind) => begun.filter((word) => senseOfState(word, kind) !== 'moving'))).toEqual([])
  expect(runs.flatMap((kind) => ['Completed', 'Succeeded', 'finished'].filter((word) => senseOfState(word, kind) !== 'done'))).toEqual([])
  expect(['Kafka', 'BackupStorageLocation', 'JobSet', ''].filter((kind) => senseOfState('Running', kind) !== 'done')).toEqual([])
})

test('HE17 kinds that fire at given times, by the words of their name', () => {
  expect(['Schedule', 'AdvancedCronJob', 'ScheduledBackup', 'Scheduler', 'Backup'].map(namesASchedule)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
})

test('HE18 a reason is CamelCase, whatever its phrase, and bounded', () => {
  expect(['in progress', 'ERROR', 'Cluster in healthy state', '', '!?'].map(camelCase)).toEqual([
    'InProgress',
    'ERROR',
    'ClusterInHealthyState',
    'Unnamed',
    'Unnamed',
  ])
  expect(camelCase('a b '.repeat(500)).length).toBeLessThanOrEqual(80)
})

test('HE18 a long text costs no more than its beginning', () => {
  const huge = `${'Aa'.repeat(500_000)} failed`
  expect(wordsOf(huge).length).toBeLessThanOrEqual(16)
  expect(senseOf(huge)).toBeNull()
  expect(senseOf(`failed ${huge}`)).toBe('failing')
})
