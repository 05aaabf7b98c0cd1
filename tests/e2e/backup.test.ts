// The binary on the server's own machine, as an operator has it: a running server is looked through and backed up, its
// machine is lost, another one goes on.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../scripts/local-cluster/child-process.ts'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import { doctorReportSchema } from '../../server/doctor/findings.ts'
import { makeLargeCluster } from '../support/large-cluster.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
const SKERRY = join(import.meta.dir, '../../dist/skerry')
/** Whatever the store of other end-to-end tests is: this one is about the file. */
const { SKERRY_STORE: _, ...env } = process.env
const port = freePort()
const url = `http://127.0.0.1:${port}`
let server: ReturnType<typeof Bun.spawn> | null = null
let data = ''

function skerry(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([SKERRY, ...args], { env, stdin: 'ignore' })
  return { code: exitCode, out: stdout.toString(), err: stderr.toString() }
}
/** Without what is a matter of the machine: which renderers are there. */
const doctor = (folder: string) => {
  const report = doctorReportSchema.parse(JSON.parse(skerry('doctor', '--data', folder, '-o', 'json').out))
  return { ...report, findings: report.findings.filter(({ code }) => !OF_THE_MACHINE.includes(code)) }
}
const OF_THE_MACHINE = ['program_missing', 'sandbox_broken', 'sandbox_no_proc', 'sandbox_off']

async function serve(folder: string): Promise<void> {
  const flags = ['--data', folder, '--listen', `127.0.0.1:${port}`, '--log-level', 'warn']
  const started = Bun.spawn([SKERRY, 'server', ...flags], { stdout: 'ignore', stderr: 'ignore', env })
  server = started
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  for (let n = 0; n < 200 && !(await isReady()); n++) await Bun.sleep(50)
}
const kill = async () => {
  server?.kill('SIGKILL')
  await server?.exited
}

beforeAll(async () => {
  if (postgresIsWanted()) return // then its fleet would be there
  const made = await makeLargeCluster(500)
  data = made.dataDir
  await serve(data)
})
afterAll(kill)

test.skipIf(postgresIsWanted())(
  'BK1 BK3 BK5 DO1 a running server is looked through and backed up; after its machine is lost another one is the same server',
  async () => {
    expect(doctor(data)).toMatchObject({ server: 'running', fine: true, findings: [], facts: { clusters: 1, shardRows: 501 } })
    const base = tempDir()
    const [backup, restored] = [join(base, 'backup'), join(base, 'restored')]
    expect(skerry('backup', 'create', '--data', data, '--to', backup)).toMatchObject({
      code: 0,
      err: expect.stringContaining('Keep it as safe as the server'),
    })
    expect(skerry('backup', 'create', '--data', data, '--to', backup).code).toBe(1)
    expect(skerry('backup', 'verify', backup)).toMatchObject({ code: 0 })
    const { fingerprint } = doctor(data).facts

    // Not over a running server, and not over what is there.
    const refused = skerry('backup', 'restore', backup, '--data', data)
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('is not empty')])
    await kill()
    const crashed = doctor(data)
    expect([crashed.server, crashed.fine]).toEqual(['stopped', true])
    rmSync(data, { recursive: true })

    const done = skerry('backup', 'restore', backup, '--data', restored)
    expect([done.code, done.err]).toEqual([0, expect.stringContaining('skerry restore')])
    expect(doctor(restored).findings.map(({ code }) => code)).toEqual(['shard_missing'])
    await serve(restored)
    expect(doctor(restored)).toMatchObject({ server: 'running', fine: true, facts: { fingerprint, clusters: 1, shardRows: 501 } })
    await kill()
  },
)

test('BK3 BK5 what was damaged or cut off is refused with what to do', async () => {
  const base = tempDir()
  const [folder, backup] = [join(base, 'data'), join(base, 'backup')]
  await serve(folder)
  await kill()
  expect(skerry('backup', 'create', '--data', folder, '--to', backup).code).toBe(0)
  writeFileSync(join(folder, 'restore-unfinished'), '')
  expect(skerry('server', '--data', folder, '--listen', '127.0.0.1:0')).toMatchObject({
    code: 1,
    err: expect.stringContaining('was interrupted'),
  })
  expect(skerry('doctor', '--data', folder).out).toContain('A restore into this folder was interrupted.')
  const path = join(backup, 'fleet.sqlite')
  const bytes = readFileSync(path)
  bytes[bytes.length - 1] = 255 - (bytes.at(-1) ?? 0)
  writeFileSync(path, bytes)
  expect(skerry('backup', 'verify', backup)).toMatchObject({ code: 1, err: expect.stringContaining('fleet.sqlite is damaged') })
  expect(skerry('backup', 'restore', backup, '--data', join(base, 'x')).code).toBe(1)
  expect(readdirSync(base).sort()).toEqual(['backup', 'data'])
})
