// The demo is the first thing a newcomer runs: it tells its story, ends well, and leaves nothing behind.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { inLong } from '../support/extent.ts'
import { eventually } from '../support/kube-cluster.ts'

setDefaultTimeout(240_000)
const script = resolve(import.meta.dir, '../../scripts/demo')

function startDemo(...args: string[]) {
  const temp = mkdtempSync(join(tmpdir(), 'demo-'))
  const child = Bun.spawn([script, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', env: { ...process.env, TMPDIR: temp } })
  let output = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) output += decoder.decode(chunk, { stream: true })
  }
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
  return { child, temp, reading, output: () => output }
}

/** Processes whose command line names the folder: everything that the demo started has its data there. */
const processesIn = (folder: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false // it ended meanwhile
    }
  })

const leavesNothing = (temp: string) =>
  eventually('no process and no file is left', async () => processesIn(temp).length === 0 && readdirSync(temp).length === 0, 15_000)

const tellsItsStory = (text: string) => {
  expect(text).toMatch(/harbour: \d{3} objects of \d+ services applied, \d{3} healthy/)
  for (const told of ['joined', 'Commit pushed', 'back after', 'started with no server', 'caught up with', 'Everything healthy again'])
    expect(text).toContain(told)
  expect(text).not.toContain('✗')
}

test('scripts/demo tells the whole story, stays up after it, and Ctrl-C leaves nothing behind', async () => {
  const { child, temp, reading, output } = startDemo()
  await eventually('it says what to try next', async () => output().includes('Ctrl-C stops the demo'), 200_000)
  tellsItsStory(output())
  expect(child.exitCode).toBeNull()
  expect(processesIn(temp).length).toBeGreaterThan(5)
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await reading
  await leavesNothing(temp)
})

// The same story a second time: a long check has the time.
test.skipIf(inLong(false, true))('scripts/demo --once ends after the story with 0', async () => {
  const { child, temp, reading, output } = startDemo('--once')
  const code = await child.exited
  await reading
  expect(code === 0 ? '' : output()).toBe('')
  tellsItsStory(output())
  await leavesNothing(temp)
})

test('bad flags say what to write instead', () => {
  const { exitCode, stderr } = Bun.spawnSync([
    process.execPath,
    resolve(import.meta.dir, '../../scripts/demo.ts'),
    '--repo',
    'https://git.example.com/x.git',
  ])
  expect([exitCode, stderr.toString()]).toEqual([2, expect.stringContaining('--repo URL and --path DIR go together')])
})
