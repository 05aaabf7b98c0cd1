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

test('the catalogue of messages imports only shared and itself', () => {
  const offenders = productFiles
    .filter(({ path }) => inFolder('agent/messages')(path))
    .flatMap((file) => importsOf(file).flatMap(({ target }) => (target === null ? [file.path] : [`${file.path} imports ${target}`])))
    .filter((line) => !/ imports (shared|agent\/messages)\//.test(line))
  expectNone(offenders, 'every room takes its texts from there: what it imported would be imported by all of them')
})

/** Rooms that speak to people through statuses, Events, problems and answers. Logs and AppErrors have own texts. */
const SPEAKING = /^agent\/(reconcile|ask|sops)\/|^agent\/(cluster\/)?[^/]+\.ts$|^agent\/cli\/print-status\.ts$/
const NOT_SAID: Readonly<Record<string, string>> = {
  'agent/config.ts': 'the option table makes the help texts',
  'agent/metrics.ts': 'the table of metrics makes their reference page',
  'agent/cluster/api-failure.ts': 'recognizes sentences of the API server',
  'agent/rbac.ts': 'refuses wrong options of a command, with AppErrors',
  'agent/cluster/watch-loop.ts': 'an error that only the log names',
}
/** Text before a literal that goes to a log, an assertion or an AppError. */
const ASIDE = /(?:\blog\.\w+|\bassert\w*|Error)\((?:[^()]|\([^()]*\))*$|\b(?:doing|detail|remedy|next)(?::| =) $|\.includes\($/

/** Literals with three words in a row, by line. */
function sentences({ path, text }: { path: string; text: string }): string[] {
  const code = withoutComments(text)
  return [...code.matchAll(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g)]
    .filter(({ 0: literal, index }) => {
      const words = literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…')
      return /[A-Za-z]+[,;:]? [a-z]+[,;:]? [a-z]+/.test(words) && !ASIDE.test(code.slice(Math.max(0, index - 200), index))
    })
    .map(({ 0: literal, index }) => `${path}:${code.slice(0, index).split('\n').length}: ${literal.slice(0, 80)}`)
}

test('finds a sentence outside the catalogue, and no text of a log or an AppError', () => {
  const found = (text: string) => sentences({ path: 'a.ts', text }).length
  expect(found("return { reason: 'Waiting', message: 'waits for its turn' }")).toBe(1)
  expect(found('return `$' + '{name} is not here, and $' + '{other} is`')).toBe(1)
  expect(found("log.info('waits for its turn', { service })")).toBe(0)
  expect(found("throw new AppError('internal', { doing: 'wait for its turn' })")).toBe(0)
  expect(found("statusOf('Waiting.turn', { name: 'one two' })")).toBe(0)
})

test('texts for people stand in agent/messages', () => {
  const offenders = productFiles.filter(({ path }) => SPEAKING.test(path) && !(path in NOT_SAID)).flatMap(sentences)
  expectNone(offenders, 'a text has a code, typed arguments and a next step there, and the documentation lists it')
  const needless = Object.keys(NOT_SAID).filter((path) => productFiles.filter((file) => file.path === path).flatMap(sentences).length === 0)
  expectNone(needless, 'an exception that nothing needs hides the next sentence')
})
