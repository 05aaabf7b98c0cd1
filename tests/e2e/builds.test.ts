// Programs for other systems: their form, and what the emulators of Debian can start. Its Wine (8.0) lacks a library
// that Bun needs. Server and agent for arm64 take a commit to a cluster.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageVersion } from '../../scripts/binary-sandbox.ts'
import { emulated, emulatedWithChildren, lacksBinfmt } from '../support/image-kit.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'
import { ROOT } from '../support/source-files.ts'

const client = (platform: string) => join(ROOT, 'dist/clients', platform, platform.startsWith('windows') ? 'skerry.exe' : 'skerry')
const run = (command: readonly string[]) => {
  const ran = Bun.spawnSync([...command], { env: { HOME: '/nonexistent', PATH: '/usr/bin' } })
  return { code: ran.exitCode, out: ran.stdout.toString(), err: ran.stderr.toString() }
}
let scenario: Scenario | undefined
beforeAll(() => {
  const made = Bun.spawnSync([join(ROOT, 'scripts/build'), '--arm64', '--clients'])
  if (!made.success) throw new Error(made.stderr.toString())
}, 300_000)
afterAll(() => scenario?.stop(), 60_000)

test.each([
  ['linux-x64', '7f454c4602', 0x3e],
  ['linux-arm64', '7f454c4602', 0xb7],
  ['darwin-x64', 'cffaedfe07', null],
  ['darwin-arm64', 'cffaedfe0c', null],
  ['windows-x64', '4d5a', null],
])('IK10 the client of %s is a program of that system', (platform, magic, machine) => {
  const bytes = readFileSync(client(platform))
  expect(bytes.subarray(0, magic.length / 2).toString('hex')).toBe(magic)
  expect(machine === null || bytes[18] === machine).toBe(true)
})

test.each([
  ['as it is', [client('linux-x64')]],
  ['without AVX2', [...emulated('x86_64', 'Westmere'), client('linux-x64')]],
  ['of arm64', [...emulated('aarch64'), client('linux-arm64')]],
])(
  'IK10 IK11 a client runs %s and has no server',
  (_, command) => {
    const version = run([...command, 'version', '-o', 'json'])
    expect(version.err).toBe('')
    expect(JSON.parse(version.out)).toMatchObject({ version: packageVersion(), protocol: { max: 2 } })
    const help = run([...command, '--help']).out
    expect(help).toContain('  get ')
    expect(help).not.toMatch(/^ {2}(server|dev|doctor|backup|admin-token) /m)
    expect(run([...command, 'backup', 'create'])).toMatchObject({ code: 2, err: expect.stringContaining('has no server') })
  },
  60_000,
)

test.each([
  ['skerry', ['version', '--client', '-o', 'json']],
  ['skerry-agent', ['version', '-o', 'json']],
])(
  'IK11 dist/%s runs without AVX2',
  (program, args) => {
    const version = run([...emulated('x86_64', 'Westmere'), join(ROOT, 'dist', program), ...args])
    expect(version.code === 0 ? '' : version.err).toBe('')
    expect(JSON.parse(version.out)).toMatchObject({ version: packageVersion() })
  },
  60_000,
)

const lack = lacksBinfmt()
test.skipIf(lack !== null)(
  `IK11 server and agent for arm64: a commit is rendered, synced and applied${lack === null ? '' : ` (${lack})`}`,
  async () => {
    const arm64 = (name: string) => join(ROOT, 'dist/arm64', name)
    scenario = await startScenario({
      sites: { arm: { labels: { env: 'prod' }, controllers: false } },
      programs: (name) => [...(name === 'skerry' ? emulatedWithChildren() : emulated('aarch64')), arm64(name)],
    })
    const { fleet, push, settled, sites } = scenario
    await fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) })
    const commit = await push({ 'web/settings.yaml': configMapYaml('settings', { value: 'arm' }) })
    await settled('arm', ['web'], { commit, timeoutMs: 90_000 })
    const value = await sites['arm']?.cluster.kubectl(['get', 'configmap', 'settings', '-n', 'web', '-o', 'jsonpath={.data.value}'])
    expect(value).toBe('arm')
  },
  300_000,
)
