// The sandbox as renderers use it: what a run sees, how files are shared, versions, both modes, and what is said where
// it cannot work.
import { expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { runProcess } from '../../server/render/sandbox/process.ts'
import { createPrograms } from '../../server/render/sandbox/programs.ts'
import { createSandbox, sandboxTrouble } from '../../server/render/sandbox/runs.ts'
import { SANDBOX_LIMITS } from '../../server/render/sandbox.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { renderProgram, searchPath } from '../support/render-programs.ts'
import { gzipped, tarOf } from '../support/tar-writer.ts'
import { tempDir } from '../support/temp-dir.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const MODES = ['bubblewrap', 'limits'] as const
const errorOf = async (work: Promise<unknown>): Promise<AppError> => {
  const error = await work.then(() => null).catch((thrown: unknown) => thrown)
  if (error instanceof AppError) return error
  throw new Error(`expected an AppError, not ${error}`)
}

test.each(MODES)('SB1 %s: helm, helm 3 and kustomize render and say their versions', async (mode) => {
  const sandbox = realSandbox({ mode })
  const versions = await Promise.all((['helm', 'helm3', 'kustomize'] as const).map((program) => sandbox.version(program)))
  expect(versions).toEqual([
    expect.stringMatching(/^helm 4\./),
    expect.stringMatching(/^helm 3\.17\./),
    expect.stringMatching(/^kustomize 5\.8\./),
  ])
  const chart = {
    'chart/Chart.yaml': 'apiVersion: v2\nname: c\nversion: 1.0.0\n',
    'chart/templates/a.yaml': 'a: {{ .Values.x }}\n',
    'values.yaml': 'x: 1\n',
  }
  const files = new Map(Object.entries(chart).map(([path, text]) => [path, encode(text)]))
  for (const program of ['helm', 'helm3'] as const) {
    const outcome = await sandbox.run({ program, args: ['template', 'r', 'chart', '-f', 'values.yaml'], files })
    expect(outcome.kind === 'done' && new TextDecoder().decode(outcome.stdout)).toBe('---\n# Source: c/templates/a.yaml\na: 1\n')
  }
  const kustomization = new Map([
    ['k/kustomization.yaml', encode('resources: [a.yaml]\nnamePrefix: p-\n')],
    ['k/a.yaml', encode('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n')],
  ])
  const built = await sandbox.run({ program: 'kustomize', args: ['build', '.'], cwd: 'k', files: kustomization })
  expect(built.kind === 'done' && new TextDecoder().decode(built.stdout)).toContain('name: p-a')
})

test('WK9 the processor time of a run counts what runs in the sandbox, not the time that it waits', async () => {
  const bwrap = Bun.which('bwrap', { PATH: searchPath().join(':') }) ?? 'bwrap'
  const spentMs = async (script: string) => {
    let processorMs = 0
    const argv = [bwrap, '--unshare-pid', '--dev-bind', '/', '/', '--', process.execPath, '-e', script]
    const spent = (ms: number) => {
      processorMs = ms
    }
    const run = {
      command: { argv, env: {}, cwd: null, filter: null },
      stdin: undefined,
      limits: SANDBOX_LIMITS,
      name: 'bun',
      contained: true,
    }
    await runProcess({ ...run, spent }, systemClock)
    return processorMs
  }
  const busy = 'let n = 0; while (process.cpuUsage().user < 400_000) for (let i = 0; i < 1e6; i++) n += i'
  const [busyMs, idleMs] = [await spentMs(busy), await spentMs('await Bun.sleep(500)')]
  expect(busyMs).toBeGreaterThan(380)
  expect(idleMs).toBeLessThan(300) // starting is work, too
})

test.each(MODES)('HM4 SB9 %s: a program gets 1 MiB of arguments, and one that cannot be started is an error of that run', async (mode) => {
  const sandbox = realSandbox({ mode })
  const files = new Map([
    ['chart/Chart.yaml', encode('apiVersion: v2\nname: c\nversion: 1.0.0\n')],
    ['chart/templates/a.yaml', encode('a: {{ .Capabilities.APIVersions.Has "é999/v1" }}\n')],
  ])
  const group = (start: number) => Array.from({ length: 6_000 }, (_, n) => `é${start + n}/v1`).join(',')
  const run = (more: string[]) => sandbox.run({ program: 'helm', args: ['template', 'r', 'chart', ...more], files })
  const outcome = await run(Array.from({ length: 14 }, (_, n) => `--api-versions=${group(n * 6_000)}`))
  expect(outcome.kind === 'done' && new TextDecoder().decode(outcome.stdout)).toContain('a: true')
  expect((await errorOf(run([`--api-versions=${'x'.repeat(200_000)}`]))).code).toBe('sandbox_unavailable')
})

test('SB7 limits: neither TypeScript nor a renderer of others runs', async () => {
  const sandbox = realSandbox({
    mode: 'limits',
    renderers: new Map([['cat', { command: '/usr/bin/cat', args: [], readOnly: [], memory: undefined, timeout: undefined }]]),
  })
  for (const program of ['bun', { exec: 'cat' }] as const) {
    const error = await errorOf(sandbox.run({ program, args: [], files: new Map() }))
    expect([error.code, error.message]).toEqual(['sandbox_unavailable', expect.stringContaining('--render-sandbox limits')])
  }
})

test.each(['helm', 'helm3'] as const)('SB18 limits: %s meets no schema that refers to a file or a host', async (program) => {
  const asked: string[] = []
  const listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => {
      asked.push(new URL(url).pathname)
      return Response.json({ type: 'object' })
    },
  })
  const at = `http://127.0.0.1:${listener.port}`
  const sandbox = realSandbox({ mode: 'limits' })
  const render = (schema: unknown) => {
    const chart = {
      'chart/Chart.yaml': 'apiVersion: v2\nname: c\nversion: 1.0.0\n',
      'chart/charts/sub/Chart.yaml': 'apiVersion: v2\nname: sub\nversion: 1.0.0\n',
      'chart/charts/sub/values.schema.json': typeof schema === 'string' ? schema : JSON.stringify(schema),
      'chart/templates/a.yaml': 'a: 1\n',
    }
    const files = new Map(Object.entries(chart).map(([path, text]) => [path, encode(text)]))
    return sandbox.run({ program, args: ['template', 'r', 'chart'], files })
  }
  try {
    for (const schema of [
      { $ref: `${at}/ref` },
      { properties: { x: { allOf: [{ $ref: 'file:///etc/passwd' }] } } },
      { $ref: 'other.json#/a' },
      { $schema: `${at}/meta` },
      '{} {}',
    ]) {
      const error = await errorOf(render(schema))
      expect([error.code, error.message]).toEqual(['source_refused', expect.stringContaining('chart/charts/sub/values.schema.json')])
    }
    const own = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: `${at}/id`,
      $ref: '#/definitions/a',
      definitions: { a: { type: 'object' } },
    }
    expect(await render(own)).toMatchObject({ kind: 'done', exitCode: 0 })
    const nested = { properties: { x: { $id: `${at}/nested`, $ref: '#/definitions/a', definitions: { a: {} } } } }
    expect(await render(nested)).toMatchObject({ kind: 'done', exitCode: 0 })
    expect(asked).toEqual([])
  } finally {
    await listener.stop(true)
  }
})

test('SB18 limits: nor one in a packed chart that kustomize has helm open, in another one or under any name', async () => {
  const sandbox = realSandbox({ mode: 'limits' })
  const packed = (...files: Array<[string, string | Uint8Array]>) => gzipped(tarOf(files.map(([name, bytes]) => ({ name, bytes }))))
  const sub = packed(
    ['sub/Chart.yaml', 'apiVersion: v2\nname: sub\nversion: 1.0.0\n'],
    ['sub/values.schema.json', '{"$ref":"file:///etc/passwd"}'],
  )
  const render = (path: string, bytes: Uint8Array, ...args: string[]) =>
    sandbox.run({
      program: 'kustomize',
      args: ['build', '.', ...args],
      files: new Map([
        ['kustomization.yaml', encode('{}')],
        [path, bytes],
      ]),
    })
  for (const [path, bytes] of [
    ['charts/c/charts/sub.tgz', sub],
    ['charts/c/charts/sub.tgz', packed(['sub/charts/more.tgz', sub])],
    ['charts/c', sub],
    ['charts/c/charts/sub.tgz', gzipped(encode('no tar'))],
  ] as const) {
    const error = await errorOf(render(path, bytes, '--enable-helm'))
    expect([error.code, error.message]).toEqual(['source_refused', expect.stringContaining(path)])
  }
  expect((await render('data.gz', gzipped(encode('no tar')))).kind).toBe('done')
})

test('SB8 a folder of 8 files that many runs have is written once, goes with the last of many others, and nothing else stays', async () => {
  const folder = join(tempDir(), 'render')
  const sandbox = realSandbox({ folder })
  const run = (files: number, text: string) =>
    sandbox.run({
      program: 'kustomize',
      args: ['version'],
      files: new Map(Array.from({ length: files }, (_, index) => [`chart/${index}/f.yaml`, encode(text)])),
    })
  await Promise.all([run(8, 'a'), run(8, 'a')])
  const [tree] = readdirSync(folder)
  expect(readdirSync(folder)).toHaveLength(1)
  const writtenMs = statSync(join(folder, tree ?? '')).ctimeMs
  await run(8, 'a')
  expect(statSync(join(folder, tree ?? '')).ctimeMs).toBe(writtenMs)
  await run(7, 'b')
  expect(readdirSync(folder)).toEqual([tree ?? ''])
  for (let index = 0; index < 33; index += 1) await run(8, `other ${index}`)
  expect(readdirSync(folder)).toHaveLength(32)
  expect(readdirSync(folder)).not.toContain(tree)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  await sandbox.close()
  expect(existsSync(folder)).toBe(false)
})

test('SB8 a shared folder is what the run said, whatever others have under that name', async () => {
  const sandbox = realSandbox()
  const say = async (text: string) => {
    const files = new Map(Array.from({ length: 9 }, (_, index) => [`c/${index}.txt`, encode(text)]))
    const outcome = await sandbox.run({
      program: 'bun',
      args: ['-e', 'process.stdout.write(require("node:fs").readFileSync("c/3.txt"))'],
      files,
    })
    return outcome.kind === 'done' ? new TextDecoder().decode(outcome.stdout) : ''
  }
  expect(await Promise.all(['one', 'two', 'one'].map(say))).toEqual(['one', 'two', 'one'])
})

test('SB1 what a server that was killed left behind is removed at the next start', () => {
  const folder = join(tempDir(), 'render')
  mkdirSync(join(folder, 'run-old'), { recursive: true })
  realSandbox({ folder })
  expect(readdirSync(folder)).toEqual([])
})

test('SB16 a program that was switched, also one that another one starts, counts from the next run on', () => {
  const dir = tempDir()
  const copy = (name: string) => {
    mkdirSync(join(dir, name))
    copyFileSync('/usr/bin/cat', join(dir, name, 'helm'))
    return join(dir, name, 'helm')
  }
  const [one, two] = [copy('one'), copy('two')]
  symlinkSync(one, join(dir, 'helm'))
  const programs = createPrograms(
    { kustomize: '/usr/bin/cat', helm: join(dir, 'helm'), renderers: new Map(), searchPath: [dir] },
    process.execPath,
  )
  const helms = () => programs.place('kustomize').mounts.flatMap(([from, to]) => (to.startsWith('/bin/helm') ? [from] : []))
  expect(helms()).toEqual([one])
  expect(programs.place('kustomize')).toBe(programs.place('kustomize'))
  unlinkSync(join(dir, 'helm'))
  symlinkSync(two, join(dir, 'helm'))
  expect(helms()).toEqual([two])
  copyFileSync('/usr/bin/cat', join(dir, 'helm3'))
  chmodSync(join(dir, 'helm3'), 0o755)
  expect(helms()).toEqual([two, join(dir, 'helm3')])
  unlinkSync(join(dir, 'helm3'))
  expect(helms()).toEqual([two])
})

test('SB9 no bubblewrap, or one that does not work: refused with the reason and what to do; nothing falls back', async () => {
  const bin = join(tempDir(), 'bin')
  mkdirSync(bin)
  symlinkSync('/usr/bin/prlimit', join(bin, 'prlimit'))
  const make = (architecture: string = process.arch) =>
    createSandbox(
      {
        mode: 'bubblewrap',
        architecture,
        programs: { kustomize: renderProgram('kustomize'), renderers: new Map(), searchPath: [bin] },
        ...{ ownBinary: process.execPath, bunVersion: Bun.version, folder: join(tempDir(), 'render'), slots: 1 },
      },
      systemClock,
    )
  const run = { program: 'kustomize', args: ['version'], files: new Map() } as const
  const without = await errorOf(make().run(run))
  expect([without.code, without.message, without.remedy]).toEqual([
    'sandbox_unavailable',
    naming('bubblewrap (bwrap)'),
    naming('bubblewrap'),
  ])
  writeFileSync(join(bin, 'bwrap'), '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n')
  chmodSync(join(bin, 'bwrap'), 0o755)
  const broken = await errorOf(make().run(run))
  expect([broken.code, broken.message, broken.remedy]).toEqual([
    'sandbox_unavailable',
    naming('No permissions', 'namespace'),
    naming('user namespaces'),
  ])
  expect(await sandboxTrouble(make())).toContain('No permissions')
  const unfiltered = await errorOf(make('riscv64').run(run))
  expect([unfiltered.code, unfiltered.message]).toEqual(['sandbox_unavailable', expect.stringContaining('riscv64')])
  expect(await sandboxTrouble(realSandbox())).toBeNull()
})

test('SB10 a program that is not there, or not of its version, is renderer_missing', async () => {
  const programs = {
    helm: renderProgram('helm3'),
    kustomize: '/nowhere/kustomize',
    renderers: new Map(),
    searchPath: searchPath().slice(-1),
  }
  const sandbox = createSandbox(
    {
      mode: 'bubblewrap',
      programs: { ...programs, searchPath: searchPath() },
      ownBinary: process.execPath,
      bunVersion: '',
      folder: join(tempDir(), 'r'),
      slots: 1,
    },
    systemClock,
  )
  expect(await sandbox.version('kustomize')).toBeNull()
  expect((await errorOf(sandbox.run({ program: 'kustomize', args: [], files: new Map() }))).code).toBe('renderer_missing')
  expect(await errorOf(sandbox.run({ program: { exec: 'other' }, args: [], files: new Map() }))).toMatchObject({
    code: 'renderer_missing',
    message: naming('renderer other'),
  })
  const wrong = await errorOf(sandbox.version('helm'))
  expect([wrong.code, wrong.message]).toEqual(['renderer_missing', expect.stringContaining('has version 3.17')])
})

test.each(MODES)('SB6 %s: a server that is killed takes its programs with it', async (mode) => {
  const dir = tempDir()
  const seconds = `8${Date.now() % 100_000}.${mode === 'limits' ? 1 : 2}`
  const mark = `/usr/bin/sleep ${seconds}`
  const command = join(dir, 'sleeper')
  writeFileSync(command, `#!/bin/sh\nexec ${mark}\n`, { mode: 0o755 })
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, '../support/sandbox-until-killed.ts'),
      mode,
      join(dir, 'render'),
      ...(mode === 'limits' ? ['/usr/bin/sleep', searchPath().join(':'), seconds] : [command, searchPath().join(':')]),
    ],
    { stderr: 'inherit' },
  )
  const running = () => readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid) === mark)
  await until(() => running().length === 1)
  child.kill('SIGKILL')
  await child.exited
  await until(() => running().length === 0)
})

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim()
  } catch {
    return ''
  }
}
async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    if (holds()) return
    await Bun.sleep(20)
  }
  throw new Error('it did not happen within 10 s')
}
