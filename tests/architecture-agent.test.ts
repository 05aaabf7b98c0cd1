// Which part of the agent may know which, as architecture.test.ts does for the whole.
import { expect, test } from 'bun:test'
import { importsOf, linesMatching, productFiles, withoutComments } from './support/source-files.ts'

const inFolder = (folder: string) => (path: string) => path.startsWith(`${folder}/`)

/** Fails with the reason and the offenders, one a line. */
function expectNone(offenders: string[], reason: string): void {
  expect(offenders.length === 0 ? '' : `${reason}\n  ${offenders.join('\n  ')}\n`).toBe('')
}

/** Data goes this way; a room imports only rooms before it, types included. */
const RECONCILE_ROOMS = ['snapshot', 'plan', 'apply', 'report'] as const
const roomOf = (path: string): number => RECONCILE_ROOMS.findIndex((room) => path.startsWith(`agent/reconcile/${room}/`))

test('rooms of the reconciler import one way: report, apply, plan, snapshot', () => {
  const offenders = productFiles.flatMap((file) =>
    importsOf(file)
      .filter(({ target }) => target !== null && roomOf(file.path) >= 0 && roomOf(target) > roomOf(file.path))
      .map(({ specifier }) => `${file.path} imports ${specifier}`),
  )
  const above = productFiles.flatMap((file) =>
    importsOf(file)
      .filter(({ target, typeOnly }) => !typeOnly && roomOf(file.path) >= 0 && target === 'agent/reconcile/reconcile-loop.ts')
      .map(() => `${file.path} imports the loop`),
  )
  expectNone([...offenders, ...above], 'who follows a change reads the rooms in their order, and none of them twice')
})

test('plans of the reconciler are given no disk and change no service', () => {
  const plans = productFiles.filter(({ path }) => inFolder('agent/reconcile/plan')(path))
  const words = /\bStorage\b|\bServiceModel\b|\bReplica\b|\.facts\(|\.lastReported\(/
  // The hold of a person is read once, when a service is first used.
  const offenders = plans
    .filter(({ path }) => path !== 'agent/reconcile/plan/gates/hold.ts')
    .flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, words))
  expectNone(offenders, 'a plan is a function of a ServiceSnapshot and of what the watches show')
})

test('IV1 one file of the reconciler writes what outlives the process', () => {
  const writes = /\.(setFacts|recordApplied|widenInventory|narrowInventory|setServiceState|forgetService)\(/
  const offenders = productFiles
    .filter(({ path }) => inFolder('agent/reconcile')(path) && path !== 'agent/reconcile/apply/remember.ts')
    .flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, writes))
  expectNone(offenders, 'a plan says what is to be kept, and remember.ts keeps it: who reads one file knows what a crash can lose')
})

/** Which file changes which value of a service (agent/reconcile/snapshot/service-state.ts). */
const WRITERS = [
  ['agent/reconcile/apply/begin.ts', /\bgating\.(heldBy|waits|begin|kept|nothingBegan|opens)\(/],
  ['agent/reconcile/apply/remember.ts', /\bprogress\.reaches\(/],
  ['agent/reconcile/report/publish.ts', /\btold\.said\(/],
] as const
test.each(WRITERS)('%s alone changes its value of a service', (writer, change) => {
  const writers = productFiles.filter(({ path, text }) => path.startsWith('agent/reconcile/') && change.test(withoutComments(text)))
  expect(writers.map(({ path }) => path)).toEqual([writer])
})

test('AK11 answers to questions are made behind the redaction boundary, in one file', () => {
  const boundary = 'agent/ask/answer-lines.ts'
  const offenders = productFiles
    .filter(({ path }) => inFolder('agent')(path) && path !== boundary)
    .flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, /\bas (?:unknown as )?SafeLine\b/))
  const ask = productFiles.filter(({ path }) => inFolder('agent/ask')(path) && path !== boundary)
  const lines = ask.flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, /\bt: ['"]/))
  expectNone(
    [...offenders, ...lines],
    `a text of the cluster becomes a line of an answer in ${boundary}, or it would leave the site as it is`,
  )
  const sinks = ask.flatMap((file) => linesMatching(file, /\b(?:write|end)\(line: (?!SafeLine\b)/))
  expectNone(sinks, 'a sink takes lines of that file only')
})
