// What one process tells the next about its end, and which files native code must not open then.
import { beforeEach, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RunTrial, tryCrdtFiles } from '../../shared/adapters/crdt-trial.ts'
import { asidePath, createNativeGuard, setAside } from '../../shared/adapters/native-guard.ts'
import { openRunRecord, type RunRecord } from '../../shared/adapters/run-record.ts'
import type { LogFields } from '../../shared/runtime/logger.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

let dir = ''
let told: LogFields[] = []
const log = { ...silentLogger, warn: (_: string, fields?: LogFields) => void told.push(fields ?? {}) }
const note = () => join(dir, 'run.json')
beforeEach(() => {
  dir = tempDir()
  told = []
})

const start = (): RunRecord => openRunRecord(dir, { clock: createVirtualClock(), log })

/** A process that dies in the midst of `work`: its note stays as it is at that moment. */
function die(run: RunRecord, work: (run: RunRecord, moment: () => void) => void): void {
  work(run, () => copyFileSync(note(), `${note()}.kept`))
  renameSync(`${note()}.kept`, note())
}
const dieOpening = (path: string) => die(start(), (run, moment) => run.opening(path, moment))

test('BI5 a process that stopped by itself leaves nothing to tell', () => {
  start().end()
  const next = start()
  expect([next.died, told]).toEqual([false, []])
})

test('BI5 a process that a signal ended says so at its next start, with what it was opening', () => {
  die(start(), (_, moment) => moment())
  expect(start().died).toBe(true)
  expect(told).toEqual([{ pid: process.pid, started: expect.stringMatching(/^\d{4}-/), cause: 'a signal or a crash' }])
  dieOpening('/data/shard-03.db')
  told = []
  start()
  expect(told).toMatchObject([{ cause: 'a signal or a crash', opening: '/data/shard-03.db' }])
})

test('BI5 a machine that went down says nothing about the file that was being opened', () => {
  dieOpening('/data/a.db')
  const noted = JSON.parse(readFileSync(note(), 'utf8'))
  writeFileSync(note(), JSON.stringify({ ...noted, bootId: 'another boot' }))
  const next = start()
  expect([next.died, next.deathsAt('/data/a.db'), told[0]?.['cause']]).toEqual([true, 0, 'the machine went down'])
})

test('BI5 deaths at a file are counted until it opens', () => {
  dieOpening('/data/a.db')
  dieOpening('/data/a.db')
  const next = start()
  expect([next.deathsAt('/data/a.db'), next.deathsAt('/data/b.db')]).toEqual([2, 0])
  next.opening('/data/b.db', () => {})
  expect(next.deathsAt('/data/a.db')).toBe(2)
  next.opening('/data/a.db', () => {})
  expect(next.deathsAt('/data/a.db')).toBe(0)
  next.end()
  expect(start().deathsAt('/data/a.db')).toBe(0)
})

test.each([
  ['cut short', '{"pid":'],
  ['of zeros', '\0\0\0\0'],
])('BI5 a record that is %s keeps nobody from starting', (_, text) => {
  writeFileSync(note(), text)
  const next = start()
  expect([next.died, next.diedTrying, next.deathsAt('x'), told.length]).toEqual([true, false, 0, 1])
})

test('BI5 a folder that takes no record keeps nobody from starting', () => {
  mkdirSync(`${note()}.new`)
  const run = start()
  expect(run.opening('/data/a.db', () => 7)).toBe(7)
  expect(told).toHaveLength(1)
})

const ended = (output: string, end: Partial<ReturnType<RunTrial>> = {}) => ({ output, exitCode: 0, signal: null, timedOut: false, ...end })

test.each<[string, Array<ReturnType<RunTrial> | 'none'>, Record<string, unknown>, string[][]]>([
  ['all are opened', [ended('ok\nok\nok\n')], {}, [['a', 'b', 'c']]],
  ['one is damaged', [ended('ok\nno site id\nok\n')], { b: 'no site id' }, [['a', 'b', 'c']]],
  [
    'native code ends the child at one: the others are tried without it',
    [ended('ok\n', { exitCode: null, signal: 'SIGSEGV' }), ended('ok\n')],
    { b: expect.stringContaining('SIGSEGV') },
    [['a', 'b', 'c'], ['c']],
  ],
  [
    'native code ends the child at the last one',
    [ended('ok\nok\n', { exitCode: 134, signal: null })],
    { c: expect.stringContaining('134') },
    [['a', 'b', 'c']],
  ],
  [
    'one never ends',
    [ended('', { timedOut: true, signal: 'SIGKILL' }), ended('ok\nok\n')],
    { a: expect.any(String) },
    [
      ['a', 'b', 'c'],
      ['b', 'c'],
    ],
  ],
  ['the kernel ends the child for want of memory', [ended('ok\n', { exitCode: null, signal: 'SIGKILL' })], {}, [['a', 'b', 'c']]],
  ['the child cannot load the library', [ended('', { exitCode: 1 })], {}, [['a', 'b', 'c']]],
  ['there can be no child', ['none'], {}, [['a', 'b', 'c']]],
])('CU10 a trial in which %s', (_, ends, refused, asked) => {
  const runs: string[][] = []
  const run: RunTrial = (paths) => {
    const end = ends[runs.length]
    runs.push([...paths])
    if (end === undefined || end === 'none') throw new Error('cannot fork')
    return end
  }
  expect<Record<string, unknown>>(Object.fromEntries(tryCrdtFiles(['a', 'b', 'c'], run))).toEqual(refused)
  expect(runs).toEqual(asked)
})

const guarded = (deathsMax: number, says: Record<string, string> = {}) => {
  const tried: string[][] = []
  const tryFiles = (paths: readonly string[]) => {
    tried.push([...paths])
    return new Map(Object.entries(says))
  }
  const guard = createNativeGuard({ run: start(), libraryDir: dir, deathsMax, tryFiles })
  return { tried, refused: (doubtful?: boolean) => Object.fromEntries(guard.refusals(['a', 'b'], doubtful)) }
}

test('CU10 after a stop in order nothing is tried', () => {
  const { tried, refused } = guarded(1)
  expect([refused(), tried]).toEqual([{}, []])
})

test('CU10 after any other end every file is tried in a child process', () => {
  die(start(), (_, moment) => moment())
  const { tried, refused } = guarded(1, { b: 'SIGSEGV' })
  expect([refused(), tried]).toEqual([{ b: 'SIGSEGV' }, [['a', 'b']]])
})

test.each([
  ['where one death is enough', 1, { a: expect.stringContaining('1 in a row') }, [['b']]],
  ['where one death may have another cause, and a child opens it', 2, {}, [['a', 'b']]],
])('CU10 what was being opened when the last process died, %s', (_, deathsMax, expected, files) => {
  dieOpening('a')
  const { tried, refused } = guarded(deathsMax)
  expect([refused(true), tried]).toEqual([expected, files] as never)
})

test('CU10 a file at which two processes died in a row is refused whatever a child says', () => {
  dieOpening('a')
  dieOpening('a')
  expect(Object.keys(guarded(2).refused())).toEqual(['a'])
})

test('CU10 where the child itself may end the process, it is not tried twice in a row', () => {
  die(start(), (run, moment) => run.trying(moment))
  const once = guarded(1)
  expect([once.refused(), once.tried]).toEqual([{}, []])
  die(start(), (_, moment) => moment())
  expect(guarded(1).refused()).toEqual({})
})

test('CU10 what is set aside keeps its log, and takes the place of what was set aside before', () => {
  const path = join(dir, 'a.db')
  for (const text of ['first', 'second']) {
    writeFileSync(path, text)
    if (text === 'first') writeFileSync(`${path}-wal`, 'log')
    setAside(path)
  }
  expect([existsSync(path), readFileSync(asidePath(path), 'utf8'), existsSync(`${asidePath(path)}-wal`)]).toEqual([false, 'second', false])
})
