// The operator's own renderers, as scripts in the real sandbox.
import { expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderExec } from '../../server/render/exec/exec-renderer.ts'
import { type ExecEntry, readExecList } from '../../server/render/exec/list.ts'
import { FOLDERS_COUNT_MS } from '../../server/render/sandbox/exec-version.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { renderJob } from '../support/render-job.ts'
import { tempDir } from '../support/temp-dir.ts'

const dir = tempDir()
const script = (name: string, text: string): readonly [string, ExecEntry] => {
  const command = join(dir, name)
  writeFileSync(command, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const read = readExecList({ [name]: { command, args: ['--of-the-list'], readOnly: ['/usr/bin/cat', '/usr/bin/ls'] } }, 'renderers.yaml')
  if ('problems' in read) throw new Error(JSON.stringify(read.problems))
  return [name, read.entries.get(name) as ExecEntry]
}
const renderers = new Map([
  script('echo', 'echo "args: $*"; ls; echo "stdin:"; cat'),
  script('fails', 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "line $i" >&2; done; exit 4'),
  script('binary', "printf 'a: \\377'"),
])
const sandbox = realSandbox({ renderers })
const run = async (exec: NonNullable<RenderSpec['exec']>) => {
  const { job, inputReads } = renderJob({
    texts: { 'app/a.yaml': 'a', 'app/sub/b.yaml': 'b', 'other/c': 'c' },
    root: 'app',
    spec: { exec },
    sandbox,
  })
  return { result: await renderExec(job), reads: inputReads(), again: () => renderExec(job) }
}

test('EX1 it gets the files of the folder, its arguments, and the inputs that are named, which are recorded', async () => {
  const { result, reads } = await run({
    command: 'echo',
    args: ['--mine', 'x y'],
    inputs: ['cluster.labels', 'config.image.tag', 'config.none'],
  })
  const text = result.kind === 'rendered' ? new TextDecoder().decode(result.files.get('echo.yaml')) : JSON.stringify(result)
  expect(text).toBe(
    'args: --of-the-list --mine x y\na.yaml\nsub\nstdin:\n{"cluster":{"labels":{"region":"eu","tier":"gold"}},"config":{"image":{"tag":"1.2.3"}}}\n',
  )
  expect(reads).toEqual([
    ['cluster', 'labels'],
    ['config', 'image', 'tag'],
    ['config', 'none'],
  ])
})

test('EX1 a name of an input that every object has is no input', async () => {
  const { result } = await run({ command: 'echo', args: [], inputs: ['config.constructor', '__proto__.x', 'config.__proto__'] })
  const text = result.kind === 'rendered' ? new TextDecoder().decode(result.files.get('echo.yaml')) : JSON.stringify(result)
  expect(text).toContain('stdin:\n{}\n')
})

test('EX3 another argument, file, interpreter or folder is another version; the same are the same one', async () => {
  const at = (name: string) => join(dir, name)
  mkdirSync(at('lib'))
  symlinkSync('/bin/sh', at('shell'))
  for (const name of ['data.txt', 'lib/a.txt']) writeFileSync(at(name), 'one')
  writeFileSync(at('tool'), `#!${at('shell')}\ncat\n`, { mode: 0o755 })
  let nowMs = 0
  const clock = { ...systemClock, nowMs: () => nowMs }
  const entry = { command: at('tool'), args: ['one'], readOnly: [at('data.txt'), at('lib')], memory: undefined, timeout: undefined }
  const open = (args = entry.args) => realSandbox({ renderers: new Map([['tool', { ...entry, args }]]), clock })
  const running = open()
  const version = (sandbox = running) => sandbox.version({ exec: 'tool' })
  const first = await version()
  expect(first).toMatch(/^tool sha256:[0-9a-f]{16}$/)
  expect(await version(open())).toBe(first)
  const seen = new Set([first, await version(open(['two']))])
  expect(seen.size).toBe(2)
  writeFileSync(at('data.txt'), 'two')
  expect(seen.add(await version()).size).toBe(3)
  unlinkSync(at('shell'))
  symlinkSync('/bin/bash', at('shell'))
  expect(seen.add(await version()).size).toBe(4)
  writeFileSync(at('lib/a.txt'), 'other')
  nowMs += FOLDERS_COUNT_MS - 1
  expect(seen.add(await version()).size).toBe(4)
  nowMs += 1
  expect(seen.add(await version()).size).toBe(5)
})

test('EX3 what cannot be looked at of a folder is renderer_missing, with the reason', async () => {
  const folder = join(dir, 'deep')
  mkdirSync(folder)
  const deep = Array.from({ length: 20 }, () => 'd'.repeat(250)).join('/')
  expect(Bun.spawnSync(['mkdir', '-p', deep], { cwd: folder }).exitCode).toBe(0)
  const entry = { command: '/usr/bin/cat', args: [], readOnly: [folder], memory: undefined, timeout: undefined }
  const version = realSandbox({ renderers: new Map([['deep', entry]]) }).version({ exec: 'deep' })
  try {
    await expect(version).rejects.toMatchObject({ code: 'renderer_missing', message: expect.stringMatching(/deep.*ENAMETOOLONG/) })
  } finally {
    Bun.spawnSync(['rm', '-rf', folder])
  }
})

test('EX2 an end with another code than 0 is an error with the first 10 lines that it said', async () => {
  const { result } = await run({ command: 'fails', args: [], inputs: [] })
  const lines = Array.from({ length: 10 }, (_, index) => `line ${index + 1}`)
  expect(result).toMatchObject({
    kind: 'failed',
    problems: [{ path: 'render.exec: fails', message: `fails ended with 4:\n${lines.join('\n')}` }],
  })
})

test('EX2 what is no UTF-8 is an error', async () => {
  const { result } = await run({ command: 'binary', args: [], inputs: [] })
  expect(result).toMatchObject({
    kind: 'failed',
    problems: [{ path: 'render.exec: binary', message: naming('binary', 'UTF-8') }],
  })
})

test('EX2 a name that is not on the list is renderer_missing', async () => {
  await expect(run({ command: 'other', args: [], inputs: [] })).rejects.toMatchObject({ code: 'renderer_missing' })
})
