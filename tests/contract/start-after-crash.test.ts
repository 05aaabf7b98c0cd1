// Programs whose last process died, as processes: they say how it ended, and rebuild the file that native code was
// opening.
import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shardOf } from '../../server/desired/shard-files.ts'
import { asidePath } from '../../shared/adapters/native-guard.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const ROOT = join(import.meta.dir, '../..')

/** It opens the folder as a server does, and a signal ends it while it opens the file. */
async function dieOpening(dir: string, path: string): Promise<string> {
  const script = `
    const { openRunRecord } = await import('${ROOT}/shared/adapters/run-record.ts')
    const { silentLogger } = await import('${ROOT}/shared/runtime/logger.ts')
    const { systemClock } = await import('${ROOT}/shared/runtime/clock.ts')
    openRunRecord(${JSON.stringify(dir)}, { clock: systemClock, log: silentLogger }).opening(${JSON.stringify(path)}, () => {
      process.kill(process.pid, 'SIGSEGV')
      Bun.sleepSync(10_000)
    })`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'ignore', stderr: 'ignore' })
  await child.exited
  return String(child.signalCode)
}

/** Starts it, waits until it serves, stops it. Its exit code and what it logged. */
async function startAndStop(dir: string) {
  const command = [process.execPath, join(ROOT, 'server/main.ts'), 'server', '--data', dir, '--listen', '127.0.0.1:0']
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' })
  const log = new Response(child.stderr).text()
  for await (const chunk of child.stdout) if (new TextDecoder().decode(chunk).includes('serves')) child.kill('SIGTERM')
  const code = await child.exited
  const logged = (await log)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { msg: string; [field: string]: unknown })
  return { code, logged, messages: logged.map(({ msg }) => msg) }
}

test('BI5 CU10 a server whose last process died while it opened a shard file says so and rebuilds that file, once', async () => {
  const dir = tempDir()
  const [clusterId = ''] = await fillDataFolder(dir)
  const path = join(dir, 'shards', `shard-${String(shardOf(clusterId, 16)).padStart(2, '0')}.db`)
  writeFileSync(join(dir, 'shards', 'in-use'), '')
  expect(await dieOpening(dir, path)).toBe('SIGSEGV')

  const first = await startAndStop(dir)
  expect(first.code).toBe(0)
  const died = first.logged.find(({ msg }) => msg === 'the previous process ended without stopping')
  expect(died).toMatchObject({ cause: 'a signal or a crash', opening: path })
  expect(first.messages).toContain('shard file set aside and rebuilt')
  expect(existsSync(asidePath(path))).toBe(true)

  const second = await startAndStop(dir)
  expect(second.code).toBe(0)
  expect(second.messages).not.toContain('the previous process ended without stopping')
  expect(second.messages).not.toContain('shard file set aside and rebuilt')
}, 60_000)

test('BI5 an agent whose last process a signal ended says so', async () => {
  const dir = tempDir()
  await dieOpening(dir, join(dir, 'replica.sqlite'))
  const options = ['--data', dir, '--server', 'http://127.0.0.1:1', '--kubeconfig', join(dir, 'none')]
  const child = Bun.spawn([process.execPath, join(ROOT, 'agent/main.ts'), 'run', ...options], { stdout: 'ignore', stderr: 'pipe' })
  const [line = ''] = (await new Response(child.stderr).text()).split('\n')
  expect(JSON.parse(line)).toMatchObject({ msg: 'the previous process ended without stopping', opening: join(dir, 'replica.sqlite') })
  expect([await child.exited, existsSync(join(dir, 'run.json'))]).toEqual([1, false])
}, 30_000)
