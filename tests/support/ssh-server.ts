// Debian's sshd on loopback, as this user, with keys of its own: what a Git server over ssh is. Nobody gets in but by
// the key that is made here.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../scripts/local-cluster/child-process.ts'

const SSHD = '/usr/sbin/sshd'
export const hasSshd = (): boolean => existsSync(SSHD)

export interface SshServer {
  /** `ssh://user@127.0.0.1:port`, without a path. */
  url: string
  port: number
  /** For a Config: the key that gets in, and the host's own. */
  secrets: { sshKey: string; knownHosts: string }
  /** Down: connections are refused. Up again on the same port. */
  setDown(down: boolean): Promise<void>
  stop(): Promise<void>
}

export function makeKey(path: string, type = 'ed25519'): { privateKey: string; publicKey: string } {
  const made = Bun.spawnSync(['ssh-keygen', '-q', '-t', type, '-N', '', '-C', 'test', '-f', path])
  if (made.exitCode !== 0) throw new Error(`ssh-keygen: ${made.stderr.toString()}`)
  return { privateKey: readFileSync(path, 'utf8'), publicKey: readFileSync(`${path}.pub`, 'utf8').trim() }
}

export async function startSshServer(dir: string): Promise<SshServer> {
  mkdirSync(dir, { recursive: true })
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 }) // it insists on it
  const host = makeKey(join(dir, 'host_key'))
  const user = makeKey(join(dir, 'user_key'))
  writeFileSync(join(dir, 'authorized_keys'), `${user.publicKey}\n`)
  chmodSync(join(dir, 'authorized_keys'), 0o600)
  const port = freePort()
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(dir, 'host_key')}`,
    `AuthorizedKeysFile ${join(dir, 'authorized_keys')}`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'AcceptEnv GIT_PROTOCOL',
    'MaxStartups 100',
  ]
  writeFileSync(join(dir, 'sshd_config'), `${config.join('\n')}\n`)
  let running: Awaited<ReturnType<typeof startSshd>> | null = await startSshd(dir)
  const end = async () => {
    running?.kill()
    await running?.exited
    running = null
  }
  return {
    url: `ssh://${Bun.spawnSync(['id', '-un']).stdout.toString().trim()}@127.0.0.1:${port}`,
    port,
    secrets: { sshKey: user.privateKey, knownHosts: `[127.0.0.1]:${port} ${host.publicKey}\n` },
    setDown: async (down) => {
      if (down) await end()
      else running ??= await startSshd(dir)
    },
    stop: end,
  }
}

async function startSshd(dir: string) {
  const sshd = Bun.spawn([SSHD, '-D', '-e', '-f', join(dir, 'sshd_config')], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const decoder = new TextDecoder()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  void (async () => {
    let text = ''
    for await (const chunk of sshd.stderr) {
      text = (text + decoder.decode(chunk)).slice(-4_096)
      if (text.includes('Server listening on')) resolve()
    }
    reject(new Error(`sshd ended: ${text}`))
  })()
  await promise
  return sshd
}
