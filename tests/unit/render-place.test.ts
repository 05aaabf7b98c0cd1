// With what a server renders, as an operator says it.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readRenderPlace, renderLacks } from '../../server/control/render-place.ts'
import { readExecList } from '../../server/render/exec/list.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { tempDir } from '../support/temp-dir.ts'

test('SB11 programs are named by their paths; the others are looked for on PATH', () => {
  const helm = process.execPath
  const place = readRenderPlace({ renderSandbox: 'limits', helm }, { PATH: '/usr/bin::/bin' })
  expect(place).toEqual({ mode: 'limits', programs: { helm, renderers: new Map(), searchPath: ['/usr/bin', '/bin'] } })
})

test('SB15 an option that names no program is an error that names it, each of them', () => {
  const read = () => readRenderPlace({ renderSandbox: 'limits', helm: '/nonexistent/helm', kustomize: tempDir() }, {})
  expect(read).toThrow(/--helm: \/nonexistent\/helm .*; --kustomize: /)
})

test('SB15 what is missing is named with what is not done without it', () => {
  const lacks = (mode: string, more = {}) =>
    renderLacks(readRenderPlace({ renderSandbox: mode, ...more }, { PATH: '/nonexistent' }), '/nonexistent/skerry').map(
      ({ program }) => program,
    )
  expect(lacks('bubblewrap')).toEqual(['bwrap', 'helm', 'helm3', 'kustomize', 'git', 'ssh'])
  expect(lacks('limits', { helm: process.execPath })).toEqual(['helm3', 'kustomize', 'git', 'ssh'])
})

test('SB11 the list of renderers is YAML or JSON', () => {
  const file = join(tempDir(), 'renderers.yaml')
  writeFileSync(file, 'jsonnet:\n  command: /usr/bin/jsonnet\n  args: [-y]\n  memory: 1Gi\n  timeout: 10s\n')
  const { programs } = readRenderPlace({ renderSandbox: 'bubblewrap', renderers: file }, {})
  expect([...programs.renderers]).toEqual([
    ['jsonnet', { command: '/usr/bin/jsonnet', args: ['-y'], readOnly: [], memory: 1024 ** 3, timeout: 10_000 }],
  ])
})

test.each([
  ['a relative command', { a: { command: 'jsonnet' } }, ['f: a: command']],
  ['no command, an unknown field', { a: { comand: '/x' } }, ['f: a: command', 'f: a']],
  ['memory without a unit', { a: { command: '/x', memory: '512' } }, ['f: a: memory']],
  ['a name in capitals', { A: { command: '/x' } }, ['f: A']],
  ['two at once', { a: { command: 'x' }, b: { command: '/x', timeout: 'soon' } }, ['f: a: command', 'f: b: timeout']],
  ['a list', [], ['f']],
])('SB11 %s is an error with its place', (_, value, paths) => {
  const read = readExecList(value, 'f')
  expect('problems' in read ? read.problems.map(({ path }) => path) : []).toEqual(paths)
})

test.each([
  ['is not there', null, 'ENOENT'],
  ['is no YAML', 'a: [', 'renderers.yaml'],
  ['has errors', 'a: {command: x}\nb: {}\n', 'a: command'],
])('SB11 a file that %s stops the start', (_, text, detail) => {
  const file = join(tempDir(), 'renderers.yaml')
  if (text !== null) writeFileSync(file, text)
  const read = () => readRenderPlace({ renderSandbox: 'bubblewrap', renderers: file }, {})
  expect(read).toThrow(AppError)
  expect(read).toThrow(detail)
})

test('SB11 why the file cannot be read is said once', () => {
  let told = ''
  try {
    readRenderPlace({ renderSandbox: 'bubblewrap', renderers: '/nope' }, {})
  } catch (error) {
    told = describeError(error)
  }
  expect(told.match(/ENOENT/g)).toHaveLength(1)
})
