// `skerry-agent install | upgrade | uninstall` in a folder instead of a node, and what systemd says of the units.
import { beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type InstallWish, installNode, KUBECONFIGS, type NodeMachine, uninstallNode, upgradeNode } from '../../agent/node/node-install.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import { tempDir } from '../support/temp-dir.ts'

let root: string
let ran: string[]
let state: string[]
/** What the service does at a start. */
let started: () => void
const RUNS = 'NRestarts=0\nActiveState=active'
const ENDS = 'NRestarts=0\nActiveState=failed'
const put = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const machine = (more: Partial<NodeMachine> = {}): NodeMachine => ({
  ...{ root, executable: join(root, 'download/skerry-agent'), isRoot: true },
  run: (command) => {
    ran.push(command.join(' '))
    if (command[1] === 'start') started()
    return command[1] === 'show' ? (state.shift() ?? RUNS) : ''
  },
  sleep: async () => {},
  ...more,
})
const WISH: InstallWish = {
  ...{ server: 'https://skerry.example.com', cluster: 'oslo', joinToken: 'skj.abc', kubeconfig: undefined, caPem: 'PEM' },
  ...{ insecureHttp: false, metered: true, start: true },
}
beforeEach(() => {
  root = tempDir()
  ran = []
  state = []
  started = () => {}
  put('download/skerry-agent', 'new')
})

test.each(Object.entries(KUBECONFIGS))('IK7 install finds the kubeconfig of %s', (name, path) => {
  put(path, 'kubeconfig')
  expect(installNode(machine(), WISH).join()).toContain(`${path} (${name})`)
  expect(read('/etc/systemd/system/skerry-agent.service')).toContain(`LoadCredential=kubeconfig:${path}\n`)
  expect(read('/etc/systemd/system/skerry-agent-kubeconfig.path')).toContain(`PathChanged=${path}\n`)
  expect(ran).toEqual([
    'systemctl daemon-reload',
    'systemctl enable skerry-agent.service skerry-agent-kubeconfig.path',
    'systemctl restart skerry-agent.service skerry-agent-kubeconfig.path',
  ])
})

test('IK7 secrets are readable by root alone, and the program is where the unit starts it', () => {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  installNode(machine(), WISH)
  const mode = (path: string) => (statSync(join(root, path)).mode & 0o777).toString(8)
  expect([mode('/etc/skerry-agent/join-token.env'), mode('/etc/skerry-agent/agent.env'), mode('/usr/local/bin/skerry-agent')]).toEqual([
    '600',
    '600',
    '755',
  ])
  expect(read('/etc/skerry-agent/agent.env')).toContain('SKERRY_METERED="true"\n')
  expect(read('/etc/systemd/system/skerry-agent.service')).toContain('ExecStart=/usr/local/bin/skerry-agent run')
  expect(read('/usr/local/bin/skerry-agent')).toBe('new')
})

test('IK7 IK14 the service starts without the file of its join token', () => {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  installNode(machine(), WISH)
  const unit = read('/etc/systemd/system/skerry-agent.service')
  expect(unit).toContain('EnvironmentFile=-/etc/skerry-agent/join-token.env\n')
  expect(unit.match(/^LoadCredential=.*$/gm)).toEqual([`LoadCredential=kubeconfig:${KUBECONFIGS['k3s']}`])
  expect(read('/etc/skerry-agent/join-token.env')).toContain('SKERRY_JOIN_TOKEN="skj.abc"\n')
})

test('IK7 a second install replaces its own options and keeps those of the person', () => {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  installNode(machine(), WISH)
  put('/etc/skerry-agent/local.env', 'SKERRY_POD_LOGS=10\n')
  installNode(machine(), { ...WISH, server: 'https://other.example.com' })
  expect(read('/etc/skerry-agent/agent.env')).toContain('SKERRY_SERVER="https://other.example.com"\n')
  expect(read('/etc/skerry-agent/local.env')).toBe('SKERRY_POD_LOGS=10\n')
  const unit = read('/etc/systemd/system/skerry-agent.service')
  expect(unit.indexOf('EnvironmentFile=-/etc/skerry-agent/local.env')).toBeGreaterThan(unit.indexOf('/agent.env'))
})

test('IK7 systemd takes the unit and rates its exposure as OK', () => {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  installNode(machine(), WISH)
  const unit = join(root, 'etc/systemd/system/skerry-agent.service')
  writeFileSync(unit, readFileSync(unit, 'utf8').replace('/usr/local/bin/skerry-agent run', '/bin/true'))
  const rated = Bun.spawnSync(['systemd-analyze', 'security', '--offline=true', '--threshold=25', '--no-pager', unit])
  expect(rated.stdout.toString()).toMatch(/Overall exposure level for skerry-agent\.service: [0-2]\.\d OK/)
  const verified = Bun.spawnSync(['systemd-analyze', 'verify', '--man=no', unit])
  expect(verified.stderr.toString()).not.toMatch(/Unknown|Failed to parse|Invalid/)
})

test.each<['install' | 'upgrade' | 'uninstall', string, (m: NodeMachine) => unknown]>([
  ['install', 'only root', (m) => installNode({ ...m, isRoot: false }, WISH)],
  ['uninstall', 'only root', (m) => uninstallNode({ ...m, isRoot: false }, { purge: false })],
  ['upgrade', 'only root', (m) => upgradeNode({ ...m, isRoot: false })],
  ['install', 'no kubeconfig', (m) => installNode(m, WISH)],
  ['install', 'does not exist', (m) => installNode(m, { ...WISH, kubeconfig: '/nowhere' })],
  ['uninstall', 'no agent is installed', (m) => uninstallNode(m, { purge: false })],
  ['upgrade', 'no agent is installed', (m) => upgradeNode(m)],
])('IK7 refused: %s, %s', async (verb, text, act) => {
  const refusal = await (async () => act(machine()))().catch((error: AppError) => error)
  expect(refusal).toMatchObject({ data: { doing: `${verb} the agent`, detail: expect.stringContaining(text) } })
  expect(existsSync(join(root, 'etc/systemd'))).toBe(false)
})

test('IK7 two distributions need a choice', () => {
  for (const name of ['k3s', 'k0s']) put(KUBECONFIGS[name] ?? '', 'kubeconfig')
  expect(() => installNode(machine(), WISH)).toThrow('two kubeconfigs')
})

/** An agent of the version `old` whose state has the schema of this version, and a download of `new`. */
function installedAgent(): string {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  put('download/skerry-agent', 'old')
  installNode(machine(), WISH)
  put('download/skerry-agent', 'new')
  mkdirSync(join(root, 'var/lib/skerry-agent'), { recursive: true })
  const path = join(root, 'var/lib/skerry-agent/agent.sqlite')
  openAgentState(path).close()
  return path
}

test.each([
  [[RUNS, RUNS], 'new'],
  [[RUNS, 'NRestarts=3\nActiveState=active'], 'old'],
  [[RUNS, ENDS], 'old'],
])('IK8 upgrade with the states %j leaves the %s program', async (states, left) => {
  installedAgent()
  state = [...states]
  const done = await upgradeNode(machine()).then(
    () => 'new',
    () => 'old',
  )
  expect([done, read('/usr/local/bin/skerry-agent'), read('/usr/local/bin/skerry-agent.previous')]).toEqual([left, left, 'old'])
  expect(readdirSync(join(root, 'var/lib'))).toEqual(['skerry-agent'])
})

test('IK8 a version that migrated the state and ended is taken back with the state from before', async () => {
  const path = installedAgent()
  let starts = 0
  started = () => {
    starts += 1
    if (starts > 1) return openAgentState(path).close()
    const db = openSqlite(path)
    db.run('CREATE TABLE of_the_new_version (a)')
    db.run('PRAGMA user_version=1000')
    // Ends as a killed process does: the change is in the log alone.
    const log = readFileSync(`${path}-wal`)
    const file = readFileSync(path)
    db.close()
    writeFileSync(path, file)
    writeFileSync(`${path}-wal`, log)
  }
  state = [RUNS, ENDS]
  const refusal = await upgradeNode(machine()).catch((error: AppError) => error.message)
  expect([starts, refusal]).toEqual([2, expect.stringContaining('runs again, with the state from before the upgrade')])
})

test('IK8 a rollback that does not stay up says so', async () => {
  installedAgent()
  state = [RUNS, ENDS, RUNS, ENDS]
  expect(await upgradeNode(machine()).catch((error: AppError) => error.message)).toContain('does not stay up, either')
})

test('IK8 an upgrade that cannot copy the state leaves the agent running', async () => {
  installedAgent()
  put('/var/lib/skerry-agent.before-upgrade', 'a file')
  rmSync(join(root, 'var/lib/skerry-agent/agent.sqlite'))
  mkdirSync(join(root, 'var/lib/skerry-agent/agent.sqlite'))
  expect(await upgradeNode(machine()).catch(() => 'refused')).toBe('refused')
  expect([ran.at(-1), read('/usr/local/bin/skerry-agent')]).toEqual(['systemctl start skerry-agent.service', 'old'])
})

test.each([true, false])('IK8 uninstall with purge %p leaves no file of the agent but its data', async (purge) => {
  installedAgent()
  await upgradeNode(machine())
  expect(uninstallNode(machine(), { purge }).join('\n')).toContain('kept all objects of services')
  const left = [...new Bun.Glob('**/*skerry-agent*').scanSync({ cwd: root, onlyFiles: false })].sort()
  expect(left).toEqual(['download/skerry-agent', ...(purge ? [] : ['var/lib/skerry-agent'])])
})
