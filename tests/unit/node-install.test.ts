// `skerry-agent install | upgrade | uninstall` in a folder instead of a node, and what systemd says of the units.
import { beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type InstallWish, installNode, KUBECONFIGS, type NodeMachine, uninstallNode, upgradeNode } from '../../agent/node/node-install.ts'
import { tempDir } from '../support/temp-dir.ts'

let root: string
let ran: string[]
let state: string[]
const put = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const machine = (more: Partial<NodeMachine> = {}): NodeMachine => ({
  ...{ root, executable: join(root, 'download/skerry-agent'), isRoot: true },
  run: (command) => {
    ran.push(command.join(' '))
    return command[1] === 'show' ? (state.shift() ?? '') : ''
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
  expect([mode('/etc/skerry-agent/join-token'), mode('/etc/skerry-agent/agent.env'), mode('/usr/local/bin/skerry-agent')]).toEqual([
    '600',
    '600',
    '755',
  ])
  expect(read('/etc/skerry-agent/agent.env')).toContain('SKERRY_METERED="true"\n')
  expect(read('/etc/systemd/system/skerry-agent.service')).toContain('ExecStart=/usr/local/bin/skerry-agent run')
  expect(read('/usr/local/bin/skerry-agent')).toBe('new')
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

test.each<[string, (m: NodeMachine) => unknown]>([
  ['only root', (m) => installNode({ ...m, isRoot: false }, WISH)],
  ['no kubeconfig', (m) => installNode(m, WISH)],
  ['does not exist', (m) => installNode(m, { ...WISH, kubeconfig: '/nowhere' })],
  ['no agent is installed', (m) => uninstallNode(m, { purge: false })],
  ['no agent is installed', (m) => upgradeNode(m)],
])('IK7 refused: %s', async (text, act) => {
  expect(await (async () => act(machine()))().catch((error: Error) => error.message)).toContain(text)
  expect(existsSync(join(root, 'etc/systemd'))).toBe(false)
})

test('IK7 two distributions need a choice', () => {
  for (const name of ['k3s', 'k0s']) put(KUBECONFIGS[name] ?? '', 'kubeconfig')
  expect(() => installNode(machine(), WISH)).toThrow('two kubeconfigs')
})

test.each([
  [['NRestarts=0\nActiveState=active', 'NRestarts=0\nActiveState=active'], 'new'],
  [['NRestarts=0\nActiveState=active', 'NRestarts=3\nActiveState=active'], 'old'],
  [['NRestarts=0\nActiveState=active', 'NRestarts=0\nActiveState=failed'], 'old'],
])('IK8 upgrade with the states %j leaves the %s program', async (states, left) => {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  put('download/skerry-agent', 'old')
  installNode(machine(), WISH)
  put('download/skerry-agent', 'new')
  state = [...states]
  const done = await upgradeNode(machine()).then(
    () => 'new',
    () => 'old',
  )
  expect([done, read('/usr/local/bin/skerry-agent'), read('/usr/local/bin/skerry-agent.previous')]).toEqual([left, left, 'old'])
})

test.each([true, false])('IK8 uninstall with purge %p says what stays', (purge) => {
  put(KUBECONFIGS['k3s'] ?? '', 'kubeconfig')
  put('/var/lib/skerry-agent/agent.sqlite', 'state')
  installNode(machine(), WISH)
  expect(uninstallNode(machine(), { purge }).join('\n')).toContain('kept all objects of services')
  expect(
    ['etc/skerry-agent', 'etc/systemd/system/skerry-agent.service', 'var/lib/skerry-agent'].map((path) => existsSync(join(root, path))),
  ).toEqual([false, false, !purge])
})
