// The connections to the server: proxy, certificate authority, one kept-alive pool. The Kubernetes link never uses
// them.

import { readFileSync, statSync } from 'node:fs'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { isLoopback } from '../../shared/runtime/loopback.ts'
import { proxyFor, proxyName } from './proxy-choice.ts'
import type { Fetcher } from './server-client.ts'

export interface ServerLinkOptions {
  serverUrl: string
  /** PEM of the authorities that are trusted in place of the system's; read again when it changes. */
  caFile: string | null
  /** SY12: use plain HTTP to another host. */
  insecureHttp?: boolean
  env: Readonly<Record<string, string | undefined>>
  log: Logger
}

/** Throws the problems that a person must fix before the agent can start. */
export function createServerLink({ serverUrl, caFile, insecureHttp = false, env, log }: ServerLinkOptions): Fetcher {
  if (!URL.canParse(serverUrl) || !/^https?:$/.test(new URL(serverUrl).protocol))
    throw new AppError('bad_options', { doing: 'read --server', detail: `${JSON.stringify(serverUrl)} is not an http:// or https:// URL` })
  const { username, password } = new URL(serverUrl)
  if (username !== '' || password !== '') {
    const detail = 'the URL contains a user or a password, which logs would show'
    throw new AppError('bad_options', {
      doing: 'read --server',
      detail,
      remedy: 'Remove them from the URL; the agent authenticates with its join token.',
    })
  }
  // Sync stops and enforcement continues: an agent that joined before this check existed must still start.
  if (!insecureHttp && isPlainElsewhere(new URL(serverUrl)))
    return () => Promise.reject(new AppError('link_insecure', { detail: serverUrl }))
  const proxy = proxyFor(new URL(serverUrl), env)
  if (proxy !== null) log.info('the server is reached through a proxy', { proxy: proxyName(proxy) })
  const ca = caFile === null ? null : new AuthorityFile(caFile, log)
  const open = () => new Bun.FetchSession({ proxy: proxy ?? false, ...(ca === null ? {} : { tls: { ca: ca.text } }) })
  let session = open()
  return (url, init) => {
    if (ca?.changed()) {
      session.close() // idle connections; what is in flight ends by itself
      session = open()
    }
    return session.fetch(url, init)
  }
}

function isPlainElsewhere({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isLoopback(hostname)
}

class AuthorityFile {
  readonly #path: string
  readonly #log: Logger
  text: string
  #seen: string

  constructor(path: string, log: Logger) {
    this.#path = path
    this.#log = log
    this.#seen = stamp(path)
    try {
      this.text = readPem(path)
    } catch (error) {
      throw new AppError('bad_options', { doing: `read --server-ca ${path}` }, { cause: error })
    }
  }

  /** Checks before every request: a stat costs nothing beside one. A file that is half written or missing leaves the
   *  old one in force. */
  changed(): boolean {
    const now = stamp(this.#path)
    if (now === this.#seen) return false
    try {
      const text = readPem(this.#path)
      this.#seen = now
      if (text === this.text) return false
      this.text = text
      this.#log.info('reloaded the certificate authority of the server', { file: this.#path })
      return true
    } catch {
      return false
    }
  }
}

const stamp = (path: string): string => {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? '' : `${stats.mtimeMs}.${stats.size}.${stats.ino}`
}

function readPem(path: string): string {
  const text = readFileSync(path, 'utf8')
  const begun = text.match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0
  if (begun === 0 || begun !== text.match(/-----END CERTIFICATE-----/g)?.length) throw new Error('the file has no PEM certificate')
  return text
}
