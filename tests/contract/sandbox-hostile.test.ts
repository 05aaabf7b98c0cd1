// What hostile manifests try, on the real programs in the real sandbox: refused with file and reason, this process
// stays small, and nothing is left.
import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderExec } from '../../server/render/exec/exec-renderer.ts'
import type { ExecEntry } from '../../server/render/exec/list.ts'
import { createProcessGroups, enterGroup } from '../../server/render/sandbox/process-groups.ts'
import { createSandbox } from '../../server/render/sandbox/runs.ts'
import type { SandboxOutcome, SandboxRun } from '../../server/render/sandbox.ts'
import { renderTypescript } from '../../server/render/typescript/typescript-renderer.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { renderJob } from '../support/render-job.ts'
import { searchPath } from '../support/render-programs.ts'
import { residentGrowth } from '../support/resident-growth.ts'
import { tempDir } from '../support/temp-dir.ts'

const dir = tempDir()
const folder = join(dir, 'data', 'render')
mkdirSync(join(dir, 'data', 'keys'), { recursive: true })
const SECRET = join(dir, 'data', 'keys', 'signing.json')
writeFileSync(SECRET, 'the key of the server')
process.env['SKERRY_TEST_SECRET'] = 'leaked'

/** There to be reached, were there a network; who reaches it gets what a render would take. */
let requests = 0
const listener = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: () => {
    requests += 1
    return new Response('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fetched}\n')
  },
})
afterAll(() => listener.stop(true))

/** Only bash opens sockets by itself. */
const script = (name: string, text: string, shell: 'sh' | 'bash' = 'sh'): ExecEntry => {
  const path = join(dir, name)
  writeFileSync(path, `#!/bin/${shell}\n${text}\n`, { mode: 0o755 })
  return {
    command: path,
    args: [],
    readOnly: ['/usr/bin/cat', '/usr/bin/sleep', '/usr/bin/env', '/usr/bin/yes', '/usr/bin/sed'],
    timeout: 3_000,
    memory: undefined,
  }
}
const renderers = new Map<string, ExecEntry>([
  ['shadow', script('shadow', 'cat /etc/passwd /etc/hostname')],
  ['key', script('key', `cat ${SECRET}`)],
  ['write', script('write', 'echo x > ./x || echo x > /bin/x || echo x > /etc/x || echo x >/x; exit 7')],
  ['network', script('network', `exec 3<>/dev/tcp/127.0.0.1/${listener.port} && echo 'a: 1'`, 'bash')],
  ['sleep', script('sleep', 'sleep 1000')],
  ['orphans', script('orphans', 'sleep 1000 & sleep 1000 & (sleep 1000 &) ; echo "a: 1"')],
  ['bomb', script('bomb', 'b() { b | b & b; }; b')],
  ['crowd', script('crowd', 'n=$1; while [ $n -gt 1 ]; do sleep 1 & n=$((n-1)); done; wait; echo "a: 1"')],
  ['endless', script('endless', 'yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')],
  ['chatty', script('chatty', 'yes error >&2')],
  ['environment', script('environment', 'env | sed "s/^/# /"; env >&2; exit 1')],
  ['killed', script('killed', 'kill -9 $$')],
  ['oomed', script('oomed', "set -e\nsh -c 'kill -9 $$'\necho 'a: 1'")],
  ['terminated', script('terminated', 'kill -15 $$')],
  ['git-usage', script('git-usage', 'exit 129')],
  ['limits', script('limits', 'for of in c t f n; do ulimit -H -$of; done; ulimit -S -n; ulimit -H -p')],
])
const sandbox = realSandbox({ folder, renderers, slots: 2 })
const encode = (text: string) => new TextEncoder().encode(text)
const filesOf = (texts: Record<string, string>) => new Map(Object.entries(texts).map(([path, text]) => [path, encode(text)]))

/** Of this very process: children that are still there. */
const children = (): string[] =>
  readdirSync(`/proc/self/task`).flatMap((thread) => {
    const path = `/proc/self/task/${thread}/children`
    return existsSync(path) ? readFileSync(path, 'utf8').split(' ').filter(Boolean) : []
  })
/** Of other test files that run in this process. */
let before: ReadonlySet<string> = new Set()
beforeEach(() => {
  requests = 0
  before = new Set(children())
})
afterEach(() => {
  expect(requests).toBe(0)
  expect(children().filter((pid) => !before.has(pid))).toEqual([])
  expect(readdirSync(folder).filter((name) => !name.startsWith('tree-'))).toEqual([])
})

const told = (outcome: SandboxOutcome): string =>
  outcome.kind === 'stopped' ? outcome.message : `${new TextDecoder().decode(outcome.stdout)}${outcome.stderr}`

const typescript = async (text: string, more: Partial<SandboxRun['limits']> = {}) => {
  const limited = {
    ...sandbox,
    run: (run: SandboxRun, signal?: AbortSignal) => sandbox.run({ ...run, limits: { ...run.limits, ...more } }, signal),
  }
  const result = await renderTypescript(renderJob({ texts: { 'main.ts': text }, sandbox: limited }).job)
  if (result.kind === 'rendered') throw new Error('it was rendered')
  return result.problems
}

test.each([
  ['fetch of an address', `await fetch('http://127.0.0.1:${listener.port}/')`, /Unable to connect|ConnectionRefused|connect/i],
  ['fetch of a name', `await fetch('https://example.com/')`, /Unable to connect|resolve|connect|ENOTFOUND|EAI_AGAIN/i],
  ['a socket', `await Bun.connect({ hostname: '1.1.1.1', port: 53, socket: { data() {} } })`, /connect|ECONN|ENETUNREACH|Failed/i],
  ['reading /etc/passwd', `(await import('node:fs')).readFileSync('/etc/passwd')`, /ENOENT/],
  ['reading the key of the server', `(await import('node:fs')).readFileSync(${JSON.stringify(SECRET)})`, /ENOENT/],
  ['reading a key by /proc', `(await import('node:fs')).readFileSync('/proc/1/root' + ${JSON.stringify(SECRET)})`, /ENOENT|EACCES|EPERM/],
  ['writing into the tree', `(await import('node:fs')).writeFileSync('tree/x', '1')`, /EROFS|EACCES/],
  ['writing outside', `(await import('node:fs')).writeFileSync('/bin/x', '1')`, /EROFS|EACCES/],
  ['writing by /proc', `(await import('node:fs')).writeFileSync('/proc/sys/kernel/hostname', 'x')`, /EROFS|EACCES|EPERM/],
  ['more than /tmp holds', `(await import('node:fs')).writeFileSync('/tmp/x', Buffer.alloc(80 * 1024 * 1024))`, /ENOSPC|EFBIG|ended with/],
  ['a shell', `(await import('node:child_process')).execFileSync('/bin/sh', ['-c', 'id'])`, /ENOENT/],
])('SB3 TypeScript: %s is refused', async (_, text, message) => {
  const problems = await typescript(`export default async () => { ${text}; return [] }\n`)
  expect(problems).toHaveLength(1)
  expect(problems[0]?.path).toMatch(/^main\.ts/)
  expect(problems[0]?.message).toMatch(message)
})

test('SB4 TypeScript sees no environment and no process but its own', async () => {
  const [problem] = await typescript(
    `import { readdirSync } from 'node:fs'\nthrow new Error(JSON.stringify({ env: Object.keys(process.env).sort(), pids: readdirSync('/proc').filter((n) => /^\\d+$/.test(n)).length, root: readdirSync('/').sort() }))`,
  )
  const seen = JSON.parse(problem?.message ?? '{}') as { env: string[]; pids: number; root: string[] }
  // `bun run` adds some of its own.
  const own = seen.env.filter((name) => !/^npm_|^NODE$/.test(name))
  expect(own).toEqual(['BUN_BE_BUN', 'HOME', 'LANG', 'PATH', 'PWD', 'TMPDIR', 'TZ'])
  expect(seen.pids).toBeLessThanOrEqual(2)
  expect(seen.root).toEqual(expect.arrayContaining(['bin', 'dev', 'proc', 'tmp', 'work']))
  expect(seen.root.filter((name) => !['bin', 'dev', 'lib', 'lib64', 'proc', 'tmp', 'work'].includes(name))).toEqual([])
})

test('SB5 the kernel holds what a process may take: no core, its time of processors, files of 64 MiB, 256 of them open', async () => {
  const outcome = await sandbox.run({ program: { exec: 'limits' }, args: [], files: new Map() })
  if (outcome.kind !== 'done') throw new Error(outcome.message)
  // Of processes: SB14 for root, whom this limit does not bind.
  const processes = process.getuid?.() === 0 ? expect.any(String) : '256'
  expect(new TextDecoder().decode(outcome.stdout).trim().split('\n')).toEqual(['0', '11', '131072', '256', '256', processes])
})

test('SB14 as root a program is in a control group that counts its processes, and it has a bound', async () => {
  const groups = createProcessGroups(dir, 4)
  if (process.getuid?.() !== 0) {
    expect(groups).toBeNull() // the kernel holds --nproc: what SB5 asks of `limits` says how many
    return
  }
  if (groups === null) throw new Error('this test needs a writable control group of processes as root; run it as another user')
  const group = groups.take()
  try {
    const crowd = ['/bin/sh', '-c', 'for i in 1 2 3 4 5 6; do sleep 0.2 & done; wait']
    const { exitCode, stderr } = Bun.spawnSync([...enterGroup('/bin/sh', group, ':'), ...crowd])
    expect([exitCode, stderr.toString()]).toEqual([2, expect.stringContaining('Cannot fork')])
    await sandbox.run({ program: { exec: 'bomb' }, args: [], files: new Map() })
    const base = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((path) => existsSync(path)) ?? ''
    const own = `skerry-render-${process.pid}-`
    const peaks = readdirSync(base).flatMap((name) =>
      name.startsWith(own) ? [Number(readFileSync(join(base, name, 'pids.peak'), 'utf8'))] : [],
    )
    expect(Math.max(...peaks)).toBeGreaterThan(10)
    expect(Math.max(...peaks)).toBeLessThanOrEqual(256)
  } finally {
    groups.giveBack(group)
    groups.close()
  }
})

test('SB13 memory of no process, and what stays when a program ends, cannot be made', async () => {
  const [problem] = await typescript(`
    import { dlopen } from 'bun:ffi'
    const number = 'i32' as const
    const { symbols: c } = dlopen('libc.so.6', {
      memfd_create: { args: ['ptr', number], returns: number },
      shmget: { args: [number, 'u64', number], returns: number },
      msgget: { args: [number, number], returns: number },
      unshare: { args: [number], returns: number },
      syscall: { args: ['i64', 'ptr', 'ptr', 'ptr', 'u64', 'i64'], returns: 'i64' },
    })
    const name = Buffer.from('user\\0')
    const addKey = process.arch === 'x64' ? 248 : 217
    throw new Error(JSON.stringify([
      c.memfd_create(name, 0), c.shmget(0, 1 << 20, 0o1600), c.msgget(0, 0o1600), c.unshare(0x10000000),
      Number(c.syscall(addKey, name, name, name, 1, -3)),
    ]))`)
  expect(problem?.message).toBe('[-1,-1,-1,-1,-1]')
})

test('SB13 sockets are of the families of files and of the internet', async () => {
  const families = { unix: 1, inet: 2, inet6: 10, netlink: 16, packet: 17, alg: 38, vsock: 40 }
  const [problem] = await typescript(`
    import { dlopen } from 'bun:ffi'
    const number = 'i32' as const
    const { symbols: c } = dlopen('libc.so.6', {
      socket: { args: [number, number, number], returns: number },
      socketpair: { args: [number, number, number, 'ptr'], returns: number },
    })
    const opened = Object.entries(${JSON.stringify(families)}).filter(([, family]) => c.socket(family, family === 17 ? 3 : family === 38 ? 5 : 2, 0) >= 0)
    const pair = c.socketpair(1, 1, 0, new Int32Array(2))
    throw new Error(JSON.stringify([...opened.map(([name]) => name), pair]))`)
  expect(problem?.message).toBe('["unix","inet","inet6",0]')
})

test.each([
  ['1e8 loops that never end', 'for (let i = 0; ; i += 1) if (i > 1e8) i = 0', { timeoutMs: 1_000 }, 'ran longer than 1 s'],
  ['a promise that never ends', 'await new Promise(() => setInterval(() => {}, 1000))', { timeoutMs: 1_000 }, 'ran longer than 1 s'],
  [
    'memory without end',
    'const all: unknown[] = []; for (;;) all.push(new Array(1000).fill(Math.sqrt(all.length)))',
    { memoryBytes: 256 * 1024 * 1024 },
    'used more than 256 MiB',
  ],
  [
    'memory outside of the heap',
    'const all: unknown[] = []; for (;;) all.push(Buffer.alloc(1e7, 1))',
    { memoryBytes: 256 * 1024 * 1024 },
    'used more than 256 MiB',
  ],
  [
    'endless output',
    `const { writeSync } = await import('node:fs'); for (;;) try { writeSync(1, 'x'.repeat(65536)) } catch {}`,
    { outputBytes: 4 * 1024 * 1024 },
    'wrote more than 4 MiB',
  ],
  [
    'a bomb of processes',
    `const { spawn } = await import('node:child_process'); for (;;) { spawn('/bin/bun', ['-e', 'setInterval(() => {}, 1e6)']); await 1 }`,
    { timeoutMs: 20_000, memoryBytes: 256 * 1024 * 1024 },
    /\b64 processes|\b256 MiB|EAGAIN/,
  ],
])(
  'SB5 TypeScript: %s is stopped, and this process stays small',
  async (_, text, limits, message) => {
    const grown = residentGrowth()
    const problems = await typescript(`export default async () => { ${text} }`, limits)
    expect(problems[0]?.path).toMatch(/^main\.ts/)
    if (typeof message === 'string') expect(problems[0]?.message).toContain(message)
    else expect(problems[0]?.message).toMatch(message)
    expect(grown()).toBeLessThan(150 * 1024 * 1024)
  },
  40_000,
)

const CHART = { 'chart/Chart.yaml': 'apiVersion: v2\nname: c\nversion: 1.0.0\n', 'chart/values.yaml': '{}\n' }
const helm = (template: string, more: Record<string, string> = {}, limits: SandboxRun['limits'] = {}) =>
  sandbox.run({
    program: 'helm',
    args: ['template', 'r', 'chart'],
    files: filesOf({ ...CHART, 'chart/templates/a.yaml': template, ...more }),
    limits,
  })

test('SB5 helm: a chart that takes memory without end is stopped', async () => {
  const grown = residentGrowth()
  const outcome = await helm('{{ range until 200000000 }}a: {{ . }}\n{{ end }}', {}, { memoryBytes: 256 * 1024 * 1024 })
  expect(outcome).toMatchObject({ kind: 'stopped', why: 'memory', message: naming('helm', '256 MiB') })
  expect(grown()).toBeLessThan(150 * 1024 * 1024)
}, 40_000)

test('SB5 SB6 limits: memory and time are bounded there, too, and nothing is left', async () => {
  const limits = realSandbox({ mode: 'limits' })
  const run = (template: string, more: NonNullable<SandboxRun['limits']>) =>
    limits.run({
      program: 'helm',
      args: ['template', 'r', 'chart'],
      files: filesOf({ ...CHART, 'chart/templates/a.yaml': template }),
      limits: more,
    })
  const memory = await run('{{ range until 200000000 }}a: {{ . }}\n{{ end }}', { memoryBytes: 256 * 1024 * 1024 })
  const time = await run('{{ range until 3000 }}{{ range until 100000 }}{{ end }}{{ end }}', { timeoutMs: 1_000 })
  expect([memory, time].map((outcome) => (outcome.kind === 'stopped' ? outcome.why : outcome.kind))).toEqual(['memory', 'time'])
  expect(await told(await run('home: {{ "$HOME" }}\npasswd: {{ .Files.Get "/etc/passwd" | quote }}\n', {}))).toContain('passwd: ""')
}, 40_000)

test.each([
  ['the keys of the server', '/usr/bin/cat', [SECRET], /Permission denied/],
  ['the environment of the server', '/usr/bin/cat', [`/proc/${process.pid}/environ`], /Permission denied/],
  ['a folder of the machine', '/usr/bin/ls', ['/'], /Permission denied/],
  ['the network', '/bin/bash', ['-c', `exec 3<>/dev/tcp/127.0.0.1/${listener.port}`], /Address family not supported/],
  ['a name server', '/bin/bash', ['-c', 'echo x > /dev/udp/127.0.0.1/53'], /Address family not supported/],
  ['a file outside of its own folder', '/bin/bash', ['-c', `echo x > ${SECRET}`], /Permission denied/],
])('SB7 limits: a program does not get at %s', async (_, program, args, message) => {
  const programs = { kustomize: program, renderers: new Map(), searchPath: searchPath() }
  const own = { ownBinary: process.execPath, bunVersion: Bun.version, folder: join(tempDir(), 'render'), slots: 1 }
  const limits = createSandbox({ mode: 'limits', programs, ...own }, systemClock)
  const outcome = await limits.run({ program: 'kustomize', args, files: filesOf({ a: 'x' }) })
  expect(outcome).toMatchObject({ kind: 'done', stdout: new Uint8Array(), stderr: expect.stringMatching(message) })
  expect(readFileSync(SECRET, 'utf8')).toBe('the key of the server')
  await limits.close()
})

test('SB5 helm: a chart that never ends is stopped', async () => {
  const outcome = await helm('{{ range until 3000 }}{{ range until 100000 }}{{ end }}{{ end }}', {}, { timeoutMs: 1_000 })
  expect(outcome).toMatchObject({ kind: 'stopped', why: 'time' })
}, 40_000)

test('SB3 helm: neither lookup nor .Files.Get nor getHostByName gets outside', async () => {
  const outcome = await helm(
    'look: {{ lookup "v1" "Secret" "default" "x" | toJson }}\nup: {{ .Files.Get "../../../etc/passwd" | quote }}\nabs: {{ .Files.Get "/etc/passwd" | quote }}\nhost: {{ getHostByName "localhost" | quote }}\nenv: {{ "$HOME" | quote }}\n',
  )
  expect(outcome).toMatchObject({ kind: 'done', exitCode: 0 })
  expect(told(outcome)).toContain('look: {}\nup: ""\nabs: ""\nhost: ""\n')
})

test('SB5 a program has 64 processes, itself and what starts it in the sandbox counted, and no more', async () => {
  const crowd = (count: number) => sandbox.run({ program: { exec: 'crowd' }, args: [`${count}`], files: new Map() })
  expect(told(await crowd(50))).toBe('a: 1\n')
  expect(told(await crowd(100))).toEqual(naming('crowd', '64 processes'))
}, 40_000)

test('SB3 kustomize: no remote base, no file outside', async () => {
  for (const resource of [`http://127.0.0.1:${listener.port}/x.yaml`, 'github.com/a/b?ref=v1', '/etc/passwd', '../../etc/passwd']) {
    const files = filesOf({ 'k/kustomization.yaml': `resources:\n- ${resource}\n` })
    const outcome = await sandbox.run({ program: 'kustomize', args: ['build', 'k'], files, limits: { timeoutMs: 5_000 } })
    expect(outcome.kind === 'done' ? outcome.exitCode : outcome.why).not.toBe(0)
    expect(told(outcome)).not.toContain('root:')
  }
}, 40_000)

test.each([
  ['../x', 'outside'],
  ['a/../../x', 'outside'],
  ['/etc/x', 'absolute'],
  ['a\0b', 'NUL'],
  ['a//b', '`.`'],
  ['./a', '`.`'],
  ['', 'empty path'],
  ['a/', '`.`'],
  [`${'d/'.repeat(512)}x`, '1024 bytes'],
  ['n'.repeat(256), '255 bytes'],
])('SB2 a file %j is refused', async (path, reason) => {
  const run = sandbox.run({ program: 'kustomize', args: ['version'], files: new Map([[path, encode('x')]]) })
  expect(await run.catch((error: Error) => error.message)).toContain(reason)
})

test('SB2 a file that is a folder, too, is refused', async () => {
  const run = sandbox.run({ program: 'kustomize', args: ['version'], files: filesOf({ a: '', 'a/b': '' }) })
  expect(await run.catch((error: Error) => error.message)).toEqual(naming('"a"', 'file', 'folder'))
})

const exec = async (command: string, limits: SandboxRun['limits'] = {}) => {
  const limited = { ...sandbox, run: (run: SandboxRun, signal?: AbortSignal) => sandbox.run({ ...run, limits }, signal) }
  const { job } = renderJob({
    texts: { 'app/a.txt': 'a' },
    root: 'app',
    spec: { exec: { command, args: [], inputs: [] } },
    sandbox: limited,
  })
  const result = await renderExec(job)
  return result.kind === 'failed' ? (result.problems[0]?.message ?? '') : new TextDecoder().decode([...result.files.values()][0])
}
test.each([
  ['shadow', /passwd: No such file[\s\S]*hostname: No such file/],
  ['key', /No such file/],
  ['write', /ended with 7[\s\S]*Read-only/],
  ['network', /connect: (Connection refused|Network is unreachable)/],
  ['bomb', /^bomb started more than 64 processes and was stopped|Cannot fork|Resource temporarily unavailable/],
])(
  'SB3 SB5 an exec renderer: %s is refused',
  async (name, message) => {
    expect(await exec(name)).toMatch(message)
  },
  40_000,
)

test('SB5 an exec renderer has the time, memory and output of its entry and no more', async () => {
  expect(await exec('sleep', { timeoutMs: 500 })).toEqual(naming('sleep', '0.5 s'))
  expect(await exec('endless', { outputBytes: 1_000_000 })).toEqual(naming('endless', '1 MiB'))
  const outcome = await sandbox.run({ program: { exec: 'chatty' }, args: [], files: new Map(), limits: { timeoutMs: 500 } })
  expect(outcome.stderr.length).toBe(64 * 1024)
})

test('SB4 an exec renderer sees no environment of the server', async () => {
  const said = await exec('environment')
  expect(said).not.toContain('leaked')
  expect(said).toContain('HOME=/tmp')
})

test('SB17 a program that was ended from outside is told as that, and nothing of it is kept', async () => {
  for (const name of ['killed', 'oomed']) {
    const outcome = await sandbox.run({ program: { exec: name }, args: [], files: new Map() })
    expect(outcome).toMatchObject({ kind: 'stopped', why: 'ended', message: expect.stringContaining(`${name} was killed, probably`) })
  }
})

test('SB17 IC14 a program that ends with the code of another signal has refused: git ends so by itself', async () => {
  const ends = { 'git-usage': 129, terminated: 143 }
  for (const [name, exitCode] of Object.entries(ends))
    expect(await sandbox.run({ program: { exec: name }, args: [], files: new Map() })).toMatchObject({ kind: 'done', exitCode })
})

test('SB6 what a program leaves behind ends with it', async () => {
  expect(await exec('orphans')).toBe('a: 1\n')
  expect(children().filter((pid) => !before.has(pid))).toEqual([])
})

test('SB6 who gives up ends the program, and leaves the line of those who wait', async () => {
  const giveUp = new AbortController()
  const runs = [1, 2, 3].map(() =>
    sandbox.run({ program: { exec: 'sleep' }, args: [], files: new Map() }, giveUp.signal).catch((error: unknown) => error),
  )
  giveUp.abort(new Error('enough'))
  expect(await Promise.all(runs)).toEqual([
    expect.objectContaining({ message: 'enough' }),
    expect.objectContaining({ message: 'enough' }),
    expect.objectContaining({ message: 'enough' }),
  ])
})
