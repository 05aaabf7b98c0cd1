// Secrets as files, for the time of one run of the git program: in a folder that only this user may enter, gone
// afterwards. Nothing of them is in arguments or in the environment.
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { AppError } from '../../../shared/runtime/error.ts'
import { authoritiesForProgram } from '../address/authorities.ts'
import { privateMark } from '../folders.ts'
import { configText, type GitSecrets } from './auth.ts'
import { knownName } from './known-hosts.ts'
import type { SshPlace } from './url.ts'

/** `git` starts it with the arguments for ssh; its own folder says which options come before them. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's
const WRAPPER = '#!/bin/sh\nexec "$SKERRY_SSH" -F "${0%/*}/config" "$@"\n'

/** A folder of this user alone beside that path, for as long as `act` takes; it goes whatever comes of that. */
export async function withPrivateFolder<T>(beside: string, owner: string, act: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(dirname(beside), { recursive: true })
  const folder = await mkdtemp(`${beside}${privateMark(owner)}`)
  try {
    return await act(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Removes the folders that a killed process left. */
export async function removePrivateFolders(beside: string, owner: string): Promise<void> {
  const names = await readdir(dirname(beside)).catch(() => [])
  const left = names.filter((name) => name.startsWith(`${basename(beside)}${privateMark(owner)}`))
  await Promise.all(left.map((name) => rm(join(dirname(beside), name), { recursive: true, force: true })))
}

/** Environment of git for a server that is reached by http. */
export async function writeWebFiles(
  folder: string,
  access: { header: string | null; ca: string | null; proxy: string | null },
): Promise<Record<string, string>> {
  const lines = ['[http]']
  if (access.header !== null) lines.push(`\textraHeader = "Authorization: ${access.header}"`)
  if (access.proxy !== null) lines.push(`\tproxy = "${access.proxy.replace(/["\\\s]/g, encodeURIComponent)}"`) // it may hold a password
  const config = join(folder, 'gitconfig')
  await writeFile(config, `${lines.join('\n')}\n`, { mode: 0o600 })
  const authorities = access.ca ?? authoritiesForProgram()
  if (authorities === null) return { GIT_CONFIG_GLOBAL: config }
  const ca = join(folder, 'ca.pem')
  await writeFile(ca, authorities, { mode: 0o600 })
  return { GIT_CONFIG_GLOBAL: config, GIT_SSL_CAINFO: ca }
}

export interface SshUse {
  place: SshPlace
  secrets: GitSecrets
  /** Its name, for messages. */
  config: string | undefined
  /** To connect to, instead of the name. */
  address: string
  /** Path of the ssh program. */
  program: string
  logLevel: 'ERROR' | 'DEBUG1'
}

/** Environment of git for a server that is reached by ssh. */
export async function writeSshFiles(folder: string, use: SshUse): Promise<Record<string, string>> {
  const { place, secrets, config: name, address, program, logLevel } = use
  const { key, knownHosts } = sshSecrets(place, secrets, name)
  const path = (name: string) => join(folder, name)
  await writeFile(path('key'), `${key.trimEnd()}\n`, { mode: 0o600 })
  await writeFile(path('known_hosts'), `${knownHosts.trimEnd()}\n`, { mode: 0o600 })
  const config = sshConfig(place, address, { key: path('key'), knownHosts: path('known_hosts'), logLevel })
  await writeFile(path('config'), config, { mode: 0o600 })
  await writeFile(path('ssh'), WRAPPER, { mode: 0o700 })
  return { GIT_SSH: path('ssh'), GIT_SSH_VARIANT: 'ssh', SKERRY_SSH: program, GIT_CONFIG_GLOBAL: '/dev/null' }
}

function sshSecrets(place: SshPlace, secrets: GitSecrets, config: string | undefined): { key: string; knownHosts: string } {
  const { sshKey: key, knownHosts } = { sshKey: secrets['sshKey'], knownHosts: secrets['knownHosts'] }
  const { host } = place
  if (key === undefined || key.trim() === '') throw missing(`${host} uses ssh, and ${configText(config)} has no sshKey`)
  if (knownHosts === undefined || knownHosts.trim() === '')
    throw missing(
      `${host}: ${configText(config)} has no knownHosts, so the server cannot verify the host`,
      `Run \`${scanLine(place)}\` where you trust the network, compare its fingerprints with the published ones, and set knownHosts to its output.`,
    )
  if (isEncrypted(key))
    throw missing(
      `${host}: the sshKey is protected by a passphrase`,
      'Use a deploy key without a passphrase: `ssh-keygen -p -N "" -f FILE`.',
    )
  return { key, knownHosts }
}

/** The command with which a person shows the host keys of that place. */
export const scanLine = ({ host, port }: SshPlace): string =>
  `ssh-keyscan${port === 22 ? '' : ` -p ${port}`} ${host.replace(/^\[|\]$/g, '')}`

/** Nothing of the machine's own: no other keys, no agent, no forwarding, no commands. The name that the host keys are
 *  for stays the one of the URL. */
function sshConfig(
  { host, port }: Pick<SshPlace, 'host' | 'port'>,
  address: string,
  files: { key: string; knownHosts: string; logLevel: SshUse['logLevel'] },
): string {
  const options: Record<string, string> = {
    HostName: address,
    HostKeyAlias: knownName({ host, port }),
    IdentityFile: quoted(files.key),
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    CertificateFile: 'none',
    UserKnownHostsFile: quoted(files.knownHosts),
    GlobalKnownHostsFile: 'none',
    StrictHostKeyChecking: 'yes',
    CheckHostIP: 'no',
    VerifyHostKeyDNS: 'no',
    UpdateHostKeys: 'no',
    BatchMode: 'yes',
    PreferredAuthentications: 'publickey',
    PasswordAuthentication: 'no',
    KbdInteractiveAuthentication: 'no',
    ForwardAgent: 'no',
    ForwardX11: 'no',
    ClearAllForwardings: 'yes',
    PermitLocalCommand: 'no',
    ProxyCommand: 'none',
    ControlMaster: 'no',
    ControlPath: 'none',
    CanonicalizeHostname: 'no',
    RequestTTY: 'no',
    ConnectTimeout: '20',
    ServerAliveInterval: '15',
    LogLevel: files.logLevel,
  }
  return `Host *\n${Object.entries(options)
    .map(([option, value]) => `  ${option} ${value}\n`)
    .join('')}`
}

/** Per cent signs stand for what ssh knows. */
function quoted(path: string): string {
  if (/["\n\\]/.test(path))
    throw new AppError('data_unusable', { detail: `${path}: ssh does not support this path; choose a data folder without quotes` })
  return `"${path.replaceAll('%', '%%')}"`
}

/** OpenSSH's own form names its cipher, older forms say it in their head. */
function isEncrypted(key: string): boolean {
  if (/ENCRYPTED/.test(key)) return true
  const blob = openSshBlob(key)
  if (blob === null) return false
  const length = blob.readUInt32BE(15)
  return blob.toString('latin1', 19, 19 + length) !== 'none'
}

/**
 * The fingerprint of the public half, as `ssh-keygen -l` and forges show it. Null if the key is not in OpenSSH's form.
 */
export function keyFingerprint(key: string): string | null {
  const blob = openSshBlob(key)
  if (blob === null) return null
  try {
    let at = 15
    for (let skipped = 0; skipped < 3; skipped++) at += 4 + blob.readUInt32BE(at) // cipher, kdf, its options
    at += 4 // number of keys
    const length = blob.readUInt32BE(at)
    const digest = createHash('sha256')
      .update(blob.subarray(at + 4, at + 4 + length))
      .digest('base64')
    return `SHA256:${digest.replace(/=+$/, '')}`
  } catch {
    return null // cut short
  }
}

function openSshBlob(key: string): Buffer | null {
  const match = /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END/.exec(key)
  const blob = Buffer.from(match?.[1] ?? '', 'base64')
  return blob.length > 64 && blob.toString('latin1', 0, 15) === 'openssh-key-v1\0' ? blob : null
}

const missing = (detail: string, remedy?: string): AppError =>
  new AppError('credential_missing', { detail, ...(remedy === undefined ? {} : { remedy }) })
