// Texts for people stand in the catalogues: agent/messages and server/messages.
import { expect, test } from 'bun:test'
import { sentences } from './support/sentences.ts'
import { importsOf, linesMatching, productFiles, withoutComments } from './support/source-files.ts'

function expectNone(offenders: readonly string[], reason: string): void {
  expect(offenders.length === 0 ? '' : `${reason}\n  ${offenders.join('\n  ')}\n`).toBe('')
}

test.each(['agent/messages', 'server/messages'])('%s imports only shared and itself', (room) => {
  const offenders = productFiles
    .filter(({ path }) => path.startsWith(`${room}/`))
    .flatMap((file) => importsOf(file).map(({ specifier, target }) => ({ line: `${file.path} imports ${specifier}`, target })))
    .filter(({ target }) => target === null || !['shared/', `${room}/`].some((below) => target.startsWith(below)))
  expectNone(
    offenders.map(({ line }) => line),
    'every room takes its texts from there: what it imported would be imported by all of them',
  )
})

test('finds a sentence outside the catalogue, and no text of a log or an AppError', () => {
  const found = (text: string) => sentences({ path: 'a.ts', text }).length
  expect(found("return { reason: 'Waiting', message: 'waits for its turn' }")).toBe(1)
  expect(found('return `$' + '{name} is not here, and $' + '{other} is`')).toBe(1)
  expect(found("log.info('waits for its turn', { service })")).toBe(0)
  expect(found("throw new AppError('internal', { doing: 'wait for its turn' })")).toBe(0)
  expect(found("statusOf('Waiting.turn', { name: 'one two' })")).toBe(0)
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
test('texts for people stand in agent/messages', () => {
  const offenders = productFiles.filter(({ path }) => SPEAKING.test(path) && !(path in NOT_SAID)).flatMap(sentences)
  expectNone(offenders, 'a text has a code, typed arguments and a next step there, and the documentation lists it')
  const needless = Object.keys(NOT_SAID).filter((path) => productFiles.filter((file) => file.path === path).flatMap(sentences).length === 0)
  expectNone(needless, 'an exception that nothing needs hides the next sentence')
})

/** Each call, with its arguments and the line of its name. */
function callsOf(name: string, { path, text }: { path: string; text: string }): Array<{ path: string; text: string }> {
  const code = withoutComments(text)
  return [...code.matchAll(new RegExp(`(?<!function )\\b${name}\\(`, 'g'))].map(({ 0: { length }, index }) => {
    let depth = 1
    let end = index + length
    for (; depth > 0 && end < code.length; end++) depth += code[end] === '(' ? 1 : code[end] === ')' ? -1 : 0
    return { path: `${path}:${code.slice(0, index).split('\n').length}`, text: code.slice(index, end) }
  })
}

test('finds an event that has no text of the catalogue', () => {
  const found = (text: string) => callsOf('fleetEvent', { path: 'a.ts', text }).filter(isOwnText).length
  expect(found("fleetEvent(nowMs, { type: 'Normal', reason: 'Gone', message }, {})")).toBe(1)
  expect(found("fleetEvent(nowMs, say('Gone', 'removed from every cluster'), { cluster: name(b) })")).toBe(1)
  expect(found("fleetEvent(clock.nowMs(), news('Gone', { by }), { cluster })")).toBe(0)
})
const isOwnText = (call: { path: string; text: string }): boolean =>
  sentences(call).length > 0 || /'(?:Normal|Warning)'|\breason\b/.test(call.text)

const server = productFiles.filter(({ path }) => path.startsWith('server/') && !path.startsWith('server/messages/'))

/** Files that give the statuses of the server, and the reasons of its confirmations. Problems of fields and renders
 *  have own texts, as AppErrors have. */
const STATUS_FILES = [
  ...['guard', 'liveness', 'next-steps', 'placements-summary', 'plan-service', 'status-view', 'unrendered'].map(
    (name) => `server/fleet/${name}.ts`,
  ),
  ...['carry-out', 'pending-release', 'release-events', 'repository-pass'].map((name) => `server/ingest/${name}.ts`),
]

test('statuses of the server take their texts from server/messages', () => {
  const files = server.filter(({ path }) => STATUS_FILES.includes(path))
  expect(files.length).toBe(STATUS_FILES.length)
  expectNone(files.flatMap(sentences), 'a status has a code, typed arguments and a next step there, and the documentation lists it')
  const named = files.flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, /\breason: '\w/))
  expectNone(named, 'the reason of a status is its code')
})

test('events of the server take their texts from server/messages', () => {
  const calls = server.flatMap((file) => callsOf('fleetEvent', file))
  expectNone(
    calls.filter(isOwnText).map(({ path }) => path),
    'an event is `news` or `warning` of a code, with typed arguments, and the documentation lists it',
  )
  expect(calls.length).toBeGreaterThan(30)
  const typed = server.flatMap(({ path, text }) => (/\btype: '(?:Normal|Warning)',\s*reason: /.test(withoutComments(text)) ? [path] : []))
  expectNone(typed, 'an event gets its type from the table in which its code stands')
})
