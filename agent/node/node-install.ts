// Installs, upgrades and removes the agent as a systemd service of a node. Files and systemctl are handed in, so that
// tests need neither root nor systemd.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import { copyState, type StateCopy } from './state-copy.ts'
import {
  environmentText,
  KUBECONFIG_PATH_UNIT,
  LOCAL_OPTIONS_TEXT,
  type NodeSite,
  pathUnitText,
  RESTART_UNIT,
  restartUnitText,
  tokenText,
  UNIT,
  unitText,
} from './systemd-unit.ts'

/** Kubernetes distributions of a node, and where each keeps the kubeconfig of its admin. */
export const KUBECONFIGS: Readonly<Record<string, string>> = {
  k3s: '/etc/rancher/k3s/k3s.yaml',
  RKE2: '/etc/rancher/rke2/rke2.yaml',
  k0s: '/var/lib/k0s/pki/admin.conf',
  MicroK8s: '/var/snap/microk8s/current/credentials/client.config',
  kubeadm: '/etc/kubernetes/admin.conf',
}
const CONFIG_DIR = '/etc/skerry-agent'
const UNITS_DIR = '/etc/systemd/system'
const BINARY = '/usr/local/bin/skerry-agent'
/** True for a file of a package, which is never copied elsewhere. */
const PACKAGED_BINARY = '/usr/bin/skerry-agent'
const DATA_DIR = '/var/lib/skerry-agent'
const PRIVATE_DATA_DIR = '/var/lib/private/skerry-agent'
/** Exists during an upgrade. */
const STATE_COPY_DIR = '/var/lib/skerry-agent.before-upgrade'

export interface NodeMachine {
  /** Where files are: `/`, or the folder of a test. */
  root: string
  /** The running program. */
  executable: string
  isRoot: boolean
  /** Throws with the standard error. */
  run(command: readonly string[]): string
  sleep(ms: number): Promise<void>
}

export interface InstallWish {
  server: string
  cluster: string
  joinToken: string | undefined
  kubeconfig: string | undefined
  caPem: string | undefined
  insecureHttp: boolean
  metered: boolean
  start: boolean
}

type Verb = 'install' | 'upgrade' | 'uninstall'
const refused = (verb: Verb, detail: string, remedy?: string) =>
  new AppError('bad_options', { doing: `${verb} the agent`, detail, ...(remedy === undefined ? {} : { remedy }) })

function findKubeconfig({ root }: NodeMachine, wished: string | undefined): { path: string; source: string } {
  const at = (path: string) => existsSync(join(root, path))
  if (wished !== undefined) {
    if (!at(wished)) throw refused('install', `--kubeconfig ${wished} does not exist`)
    return { path: wished, source: '--kubeconfig' }
  }
  const found = Object.entries(KUBECONFIGS).filter(([, path]) => at(path))
  const [first, second] = found
  if (first === undefined) {
    const looked = Object.entries(KUBECONFIGS).map(([name, path]) => `${path} (${name})`)
    throw refused('install', `no kubeconfig of a Kubernetes distribution: looked for ${looked.join(', ')}`, 'Set --kubeconfig FILE.')
  }
  if (second !== undefined) throw refused('install', `two kubeconfigs: ${first[1]} and ${second[1]}`, 'Set --kubeconfig FILE.')
  return { path: first[1], source: first[0] }
}

function mustBeRoot({ isRoot }: NodeMachine, verb: Verb): void {
  if (!isRoot) throw refused(verb, 'only root can change services of this node', 'Run the command with sudo.')
}

function write(machine: NodeMachine, path: string, text: string, mode: number): void {
  const full = join(machine.root, path)
  mkdirSync(dirname(full), { recursive: true, mode: 0o755 })
  writeFileSync(`${full}.tmp`, text, { mode })
  chmodSync(`${full}.tmp`, mode)
  renameSync(`${full}.tmp`, full)
}

/** The file of a package stays where it is; any other becomes BINARY, by a rename, because the old one may run. */
function placeBinary(machine: NodeMachine): string {
  if (machine.executable === join(machine.root, PACKAGED_BINARY)) return PACKAGED_BINARY
  const target = join(machine.root, BINARY)
  if (machine.executable !== target) {
    mkdirSync(dirname(target), { recursive: true })
    copyFileSync(machine.executable, `${target}.new`)
    chmodSync(`${target}.new`, 0o755)
    renameSync(`${target}.new`, target)
  }
  return BINARY
}

/** Answers lines for the person. Running it again changes the options, and keeps data, identity and local.env. */
export function installNode(machine: NodeMachine, wish: InstallWish): string[] {
  mustBeRoot(machine, 'install')
  for (const [option, value] of Object.entries({ '--server': wish.server, '--cluster': wish.cluster }))
    if (/[\n\r\0]/.test(value)) throw refused('install', `${option} has a line break`)
  const kubeconfig = findKubeconfig(machine, wish.kubeconfig)
  const site: NodeSite = {
    ...{ server: wish.server, cluster: wish.cluster, insecureHttp: wish.insecureHttp, metered: wish.metered },
    ...{ kubeconfig: kubeconfig.path, hasCa: wish.caPem !== undefined },
    ...{ configDir: CONFIG_DIR, binary: placeBinary(machine) },
  }
  if (wish.joinToken !== undefined) write(machine, `${CONFIG_DIR}/join-token.env`, tokenText(wish.joinToken), 0o600)
  if (wish.caPem !== undefined) write(machine, `${CONFIG_DIR}/server-ca.crt`, wish.caPem, 0o644)
  write(machine, `${CONFIG_DIR}/agent.env`, environmentText(site), 0o600)
  if (!existsSync(join(machine.root, CONFIG_DIR, 'local.env'))) write(machine, `${CONFIG_DIR}/local.env`, LOCAL_OPTIONS_TEXT, 0o600)
  write(machine, `${UNITS_DIR}/${UNIT}`, unitText(site), 0o644)
  write(machine, `${UNITS_DIR}/${KUBECONFIG_PATH_UNIT}`, pathUnitText(site), 0o644)
  write(machine, `${UNITS_DIR}/${RESTART_UNIT}`, restartUnitText(), 0o644)
  machine.run(['systemctl', 'daemon-reload'])
  if (wish.start) {
    machine.run(['systemctl', 'enable', UNIT, KUBECONFIG_PATH_UNIT])
    machine.run(['systemctl', 'restart', UNIT, KUBECONFIG_PATH_UNIT])
  }
  return [
    `installed ${site.binary} as ${UNIT} with the credentials of ${kubeconfig.path} (${kubeconfig.source})`,
    wish.start ? 'the agent runs; its log: journalctl -u skerry-agent' : `start it: systemctl enable --now ${UNIT} ${KUBECONFIG_PATH_UNIT}`,
    `its status: skerry-agent status --data ${DATA_DIR}`,
  ]
}

const installedBinary = ({ root }: NodeMachine): string | null => {
  const unit = join(root, UNITS_DIR, UNIT)
  return existsSync(unit) ? (/^ExecStart=(\S+)/m.exec(readFileSync(unit, 'utf8'))?.[1] ?? null) : null
}

/** `purge` also deletes the key and state of the agent: the node can then join only as another agent. */
export function uninstallNode(machine: NodeMachine, { purge }: { purge: boolean }): string[] {
  mustBeRoot(machine, 'uninstall')
  const installed = installedBinary(machine)
  if (installed === null) throw refused('uninstall', `${UNITS_DIR}/${UNIT} does not exist: no agent is installed here`)
  machine.run(['systemctl', 'disable', '--now', KUBECONFIG_PATH_UNIT, UNIT])
  for (const unit of [UNIT, KUBECONFIG_PATH_UNIT, RESTART_UNIT]) rmSync(join(machine.root, UNITS_DIR, unit), { force: true })
  rmSync(join(machine.root, CONFIG_DIR), { recursive: true, force: true })
  for (const file of [BINARY, previousOf(BINARY)]) rmSync(join(machine.root, file), { force: true })
  if (purge) for (const dir of [DATA_DIR, PRIVATE_DATA_DIR]) rmSync(join(machine.root, dir), { recursive: true, force: true })
  machine.run(['systemctl', 'daemon-reload'])
  return [
    `removed the service, ${CONFIG_DIR}${installed === BINARY ? ` and ${BINARY}` : ''}`,
    ...(installed === PACKAGED_BINARY ? [`kept ${PACKAGED_BINARY}, which belongs to a package`] : []),
    purge ? `deleted ${DATA_DIR}: this agent cannot come back` : `kept ${DATA_DIR}, with the identity of the agent (--purge deletes it)`,
    'kept all objects of services in the cluster; nothing corrects or prunes them now',
    'to remove the registration: skerry delete cluster NAME',
  ]
}

const previousOf = (binary: string): string => `${binary}.previous`

/** Time in which a new version must not end. */
const TRIAL_MS = 10_000
/** An earlier version that refuses its state ends within this time. */
const ROLLBACK_MS = 3_000

/** Replaces the installed program by the running one. A version that does not stay up is rolled back, with the state if
 *  it was migrated. */
export async function upgradeNode(machine: NodeMachine): Promise<string[]> {
  mustBeRoot(machine, 'upgrade')
  const installed = installedBinary(machine)
  if (installed === null) throw refused('upgrade', 'no agent is installed here', 'Run skerry-agent install.')
  const target = join(machine.root, installed)
  if (machine.executable === target)
    throw refused('upgrade', `${installed} is the installed agent itself`, 'Run the new binary: ./skerry-agent upgrade.')
  if (installed === PACKAGED_BINARY) throw refused('upgrade', `${installed} belongs to a package`, 'Upgrade the package.')
  const systemctl = (...words: string[]) => machine.run(['systemctl', ...words, UNIT])
  const previous = previousOf(target)
  copyFileSync(machine.executable, `${target}.new`)
  chmodSync(`${target}.new`, 0o755)
  copyFileSync(target, previous)
  systemctl('stop')
  let state: StateCopy
  try {
    state = copyState(join(machine.root, DATA_DIR), join(machine.root, STATE_COPY_DIR))
  } catch (error) {
    systemctl('start')
    throw error
  }
  try {
    renameSync(`${target}.new`, target)
    if (await staysUp(machine, TRIAL_MS)) return [`upgraded ${installed}; the previous version is ${previousOf(installed)}`]
    systemctl('stop')
    copyFileSync(previous, `${target}.new`)
    renameSync(`${target}.new`, target)
    const isPutBack = state.putBackIfMigrated()
    const runs = await staysUp(machine, ROLLBACK_MS)
    const withState = isPutBack ? ', with the state from before the upgrade' : ''
    throw refused(
      'upgrade',
      `the new version did not stay up for ${TRIAL_MS / 1000} s; the previous one ${runs ? 'runs again' : 'was put back and does not stay up, either'}${withState}`,
      'Read journalctl -u skerry-agent.',
    )
  } finally {
    state.remove()
  }
}

/** Starts the service and watches it for that time. */
async function staysUp(machine: NodeMachine, ms: number): Promise<boolean> {
  const restarts = () => machine.run(['systemctl', 'show', '-p', 'NRestarts,ActiveState', UNIT])
  machine.run(['systemctl', 'start', UNIT])
  const before = restarts()
  await machine.sleep(ms)
  const after = restarts()
  return after === before && after.includes('ActiveState=active')
}
