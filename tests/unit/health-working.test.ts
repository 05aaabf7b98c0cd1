// Work that goes on against work that hangs, and from when on a health deadline counts.
import { describe, expect, test } from 'bun:test'
import { type BeginsToProgress, progressingSince } from '../../agent/reconcile/report/progressing-since.ts'
import { isWorking, lastMovedMs, worksToAnEnd } from '../../shared/kube/health-working.ts'
import type { ObjectStatus } from '../../shared/model/status.ts'
import { conditions, objectOf, type Part, phase } from '../support/health-table.ts'

const works: Array<[kind: string, works: Part, hangs: Part]> = [
  ['batch/v1/Job', { status: { active: 2, ready: 1 } }, { status: { active: 2, ready: 0 } }],
  ['batch/v1/Job', { status: { active: 1 } }, { status: {} }],
  ['argoproj.io/v1alpha1/Workflow', phase('Running'), phase('Pending')],
  ['jobset.x-k8s.io/v1alpha2/JobSet', { status: { replicatedJobsStatus: [{ ready: 0 }, { ready: 1 }] } }, { status: {} }],
  ['kubeflow.org/v2beta1/MPIJob', { status: conditions('Created:True', 'Running:True') }, { status: conditions('Created:True') }],
  ['kubeflow.org/v1/PyTorchJob', { status: conditions('Running:True') }, { status: conditions('Running:False') }],
  ['kubeflow.org/v1/TFJob', { status: conditions('Running:True') }, {}],
  ['kubeflow.org/v1/XGBoostJob', { status: conditions('Running:True') }, {}],
  ['lifecycle.keptn.sh/v1/KeptnTask', { status: { status: 'Progressing' } }, { status: { status: 'Pending' } }],
  ['metrics.keptn.sh/v1/Analysis', { status: { state: 'Progressing' } }, {}],
  ['promoter.argoproj.io/v1alpha1/ChangeTransferPolicy', { status: conditions('Ready:True') }, {}],
  ['promoter.argoproj.io/v1alpha1/CommitStatus', phase('pending'), {}],
  ['promoter.argoproj.io/v1alpha1/PromotionStrategy', { status: conditions('Ready:True') }, { status: conditions('Ready:False') }],
  ['ray.io/v1/RayJob', { status: { jobStatus: 'RUNNING' } }, { status: { jobStatus: 'PENDING' } }],
  [
    'sparkoperator.k8s.io/v1beta2/SparkApplication',
    { status: { applicationState: { state: 'RUNNING' } } },
    { status: { applicationState: { state: 'SUBMITTED' } } },
  ],
  ['tekton.dev/v1/TaskRun', { status: conditions('Succeeded:Unknown:Running') }, { status: conditions('Succeeded:Unknown:Pending') }],
  ['tekton.dev/v1/PipelineRun', { status: conditions('Succeeded:Unknown:Started') }, { status: conditions('Succeeded:False:Running') }],
  [
    'tower.ansible.com/v1alpha1/AnsibleJob',
    { status: { ansibleJobResult: { status: 'running' } } },
    { status: { ansibleJobResult: { status: 'pending' } } },
  ],
  ['trainer.kubeflow.org/v1alpha1/TrainJob', { status: { jobsStatus: [{ active: 1 }] } }, { status: {} }],
  ['velero.io/v1/Backup', phase('InProgress'), phase('New')],
  ['velero.io/v1/Restore', phase('WaitingForPluginOperations'), {}],
]

test.each(works)('HE21 %s tells work that goes on from work that cannot begin', (kind, going, hanging) => {
  expect([isWorking(objectOf(kind, going)), isWorking(objectOf(kind, hanging))]).toEqual([true, false])
  const deleted = { ...objectOf(kind, going), metadata: { name: 'x', deletionTimestamp: '2026-01-01T00:00:00Z' } }
  expect(isWorking(deleted)).toBe(false)
})

test('HE21 kinds that serve have a deadline whatever they say', () => {
  expect(['apps/Deployment', '/Pod', 'batch/CronJob'].map((kind) => worksToAnEnd(...(kind.split('/') as [string, string])))).toEqual([
    false,
    false,
    false,
  ])
  expect(isWorking(objectOf('apps/v1/Deployment', { status: { ready: 1, phase: 'Running' } }))).toBe(false)
})

test('HE21 an object that is Progressing says itself when it moved last', () => {
  const at = (minute: number) => `2026-01-01T00:0${minute}:00Z`
  const ms = (minute: number) => Date.parse(at(minute))
  const told = (kind: string, status: Part, metadata: Part = {}) =>
    lastMovedMs({ ...objectOf(kind, { status }), metadata: { name: 'x', creationTimestamp: at(0), ...metadata } }, 'skerry')
  expect(told('apps/v1/StatefulSet', {})).toBeNull()
  expect(told('batch/v1/Job', {})).toBe(ms(0))
  expect(
    told('example.com/v1/Thing', {
      conditions: [
        { type: 'Ready', lastTransitionTime: at(1) },
        { type: 'Synced', lastTransitionTime: at(3) },
      ],
    }),
  ).toBe(ms(3))
  const managedFields = [
    { manager: 'skerry', operation: 'Apply', time: at(5) },
    { manager: 'kubectl', operation: 'Update', time: at(6) },
    { manager: 'skerry', operation: 'Update', subresource: 'status', time: at(7) },
  ]
  expect(told('apps/v1/Deployment', { conditions: [{ type: 'Progressing', lastUpdateTime: at(4) }] }, { managedFields })).toBe(ms(5))
})

describe('HE21 the deadline counts', () => {
  const MINUTE_MS = 60_000
  const NOW_MS = 100 * MINUTE_MS
  const said = (health: ObjectStatus['health'], reason: string, minute: number): ObjectStatus => ({
    sync: 'Synced',
    health,
    reason,
    message: '',
    sinceMs: minute * MINUTE_MS,
  })
  const facts = {
    before: null,
    previous: null,
    isKnown: false,
    worksToAnEnd: false,
    reason: 'LessReady',
    movedMs: null,
    deadlineMs: 10 * MINUTE_MS,
    nowMs: NOW_MS,
  }
  const rows: Array<[string, Partial<BeginsToProgress>, minute: number]> = [
    ['from now where nothing is known', {}, 100],
    ['from now when it was well a moment ago', { isKnown: true, previous: said('Healthy', 'Healthy', 3), movedMs: 0 }, 100],
    [
      'on from before when it was well for less than a minute',
      { before: { sinceMs: 95 * MINUTE_MS, wellMs: 99.1 * MINUTE_MS, digest: 'a' } },
      95,
    ],
    ['from now when it was well for a minute', { before: { sinceMs: 95 * MINUTE_MS, wellMs: 99 * MINUTE_MS, digest: 'a' } }, 100],
    ['on from where a former process was', { previous: said('Progressing', 'LessReplicas', 95) }, 95],
    [
      'from now when work that went on before a restart does so no more',
      { worksToAnEnd: true, previous: said('Progressing', 'Running', 3) },
      100,
    ],
    ['on when work hung before the restart already', { worksToAnEnd: true, previous: said('Progressing', 'LessReady', 95) }, 95],
    ['as passed when it had passed before a restart', { previous: said('Degraded', 'DeadlineExceeded', 80) }, 70],
    ['from now when it was well before a restart', { previous: said('Healthy', 'Healthy', 3), movedMs: 3 * MINUTE_MS }, 100],
    ['from when it moved last at the first contact', { movedMs: 97 * MINUTE_MS }, 97],
    ['with a minute left at the first contact, however long it hangs', { movedMs: 3 * MINUTE_MS }, 91],
    ['from now when its clock is ahead', { movedMs: 200 * MINUTE_MS }, 100],
  ]
  test.each(rows)('%s', (_, part, minute) => expect(progressingSince({ ...facts, ...part }) / MINUTE_MS).toBe(minute))
})
