// The certificate of the listening socket: read from two PEM files, checked before it is used, and read again when the
// files change.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'

export interface TlsPaths {
  cert: string
  key: string
}

export interface TlsPair {
  cert: string
  key: string
  /** Paths of both files. */
  digest: string
  expiresMs: number
}

/** Reading two small files costs less than a watch, which misses the symbolic links of mounted Kubernetes Secrets. */
export const TLS_RELOAD_MS = 5_000
const EXPIRES_SOON_MS = 14 * 24 * 60 * 60_000

/** Throws `bad_options` that names the file for a certificate that no client could use. */
export function readTlsPair(paths: TlsPaths): TlsPair {
  const cert = read('--tls-cert', paths.cert)
  const key = read('--tls-key', paths.key)
  const certificate = parse('--tls-cert', paths.cert, 'PEM certificates, the server certificate first', () => new X509Certificate(cert))
  const privateKey: KeyObject = parse('--tls-key', paths.key, 'an unencrypted private key in PEM', () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey)) throw unusable('--tls-key', paths.key, `is not the key of the certificate in ${paths.cert}`)
  return { cert, key, digest: sha256Hex(`${cert}\n${key}`), expiresMs: certificate.validToDate.getTime() }
}

function read(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw unusable(option, path, 'cannot be read', error)
  }
}

function parse<T>(option: string, path: string, expected: string, reading: () => T): T {
  try {
    return reading()
  } catch (error) {
    throw unusable(option, path, `does not hold ${expected}`, error)
  }
}

const unusable = (option: string, path: string, what: string, cause?: unknown): AppError =>
  new AppError(
    'bad_options',
    { detail: `${option} ${path} ${what}`, remedy: 'Set a certificate chain and its private key, both in PEM.' },
    { cause },
  )

export interface TlsFollower {
  paths: TlsPaths
  current: TlsPair
  /** Takes a new pair into use. A throw keeps the old one. */
  use(pair: TlsPair): void
  clock: Clock
  log: Logger
}

/** Runs until the signal. HT2: a pair that cannot be used is logged once, and the one before stays. */
export async function followTlsFiles({ paths, current, use, clock, log }: TlsFollower, signal: AbortSignal): Promise<void> {
  let inUse = current
  let complaint = ''
  warnOfExpiry(inUse, { paths, clock, log })
  while (!signal.aborted) {
    await clock.sleep(TLS_RELOAD_MS, signal)
    if (signal.aborted) return
    try {
      const pair = readTlsPair(paths)
      if (pair.digest === inUse.digest) {
        complaint = ''
        continue
      }
      use(pair)
      inUse = pair
      complaint = ''
      log.info('TLS certificate reloaded', { cert: paths.cert, expires: new Date(pair.expiresMs).toISOString() })
      warnOfExpiry(pair, { paths, clock, log })
    } catch (error) {
      const now = describeError(error)
      if (now !== complaint) log.error('TLS certificate not reloaded; the previous one stays in use', { cert: paths.cert, error: now })
      complaint = now
    }
  }
}

function warnOfExpiry({ expiresMs }: TlsPair, { paths, clock, log }: Pick<TlsFollower, 'paths' | 'clock' | 'log'>): void {
  if (expiresMs - clock.nowMs() > EXPIRES_SOON_MS) return
  log.warn('TLS certificate expires soon or has expired', { cert: paths.cert, expires: new Date(expiresMs).toISOString() })
}
